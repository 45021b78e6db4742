"""The table of studies: a row makes a command, a function of :mod:`unslant.study`, and the reader of its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError
from unslant.extras import load_row, with_plugins

if TYPE_CHECKING:
    from unslant.experiment.study import Study
    from unslant.reports import Describes

STUDIES = {
    "audit": "unslant.auditing.study:Audit",
    "leaderboard": "unslant.studies.leaderboard.study:LeaderboardStudy",
    "base-rate": "unslant.studies.base_rate.study:BaseRate",
    "unbiased": "unslant.studies.unbiased.study:Unbiased",
    "contamination": "unslant.studies.unbiased.contamination.study:Contamination",
    "debias": "unslant.studies.debias.study:DebiasStudy",
    "judge": "unslant.studies.judge.study:Judge",
    "probe": "unslant.studies.unbiased.probe.study:Probe",
    "instruction-boundary": "unslant.studies.instruction_boundary.study:InstructionBoundary",
}
"""Name -> ``module:class`` of every :class:`~unslant.experiment.study.Study`, imported when it is used."""
TOP = ("audit", "leaderboard")
"""Studies that are commands of their own; the others are called by ``unslant study NAME``."""
BY_HAND = {
    "annotation-sheet": "unslant.studies.unbiased.annotation.command:annotation_sheet",
    "annotation-agreement": "unslant.studies.unbiased.annotation.command:annotation_agreement",
}
"""Commands of ``unslant study`` that ask no model."""
TRAINING = "unslant.studies.debias.training_log:TrainingLog"


def studies() -> dict[str, str]:
    """:data:`STUDIES`, and those of installed packages (entry points of the group ``unslant.studies``)."""
    return with_plugins(STUDIES, "unslant.studies")


def study_named(name: str) -> type[Study[Any]]:
    """The study of this name.

    Raises:
        KeyError: if there is none.
        ModelError: naming the package that cannot be imported.
    """
    study: type[Study[Any]] = load_row(studies()[name], f"the study {name}")
    return study


def read_result(path: str | Path) -> Describes:
    """The result whose ``to_parquet`` wrote ``path``, the audit of a log, or the training log in an adapter's folder.

    Raises:
        InputError: if the file is neither, holds answers of several models, or its study needs more than responses.
    """
    if Path(path).is_dir():
        training: Describes = load_row(TRAINING, "a training log").read(path)
        return training
    from unslant.experiment.recorded import responses_in
    from unslant.experiment.result import RecordedResult

    name = responses_in(path).run.study
    known = studies()
    kind = study_named(name).result if name in known else None
    if kind is None or not issubclass(kind, RecordedResult):
        usable = ", ".join(name for name in known if issubclass(study_named(name).result, RecordedResult))
        raise InputError.at(path, f"holds responses of the study {name!r}; a report can be made from those of {usable}")
    return kind.from_parquet(path)
