"""The table of studies, and reading and comparing their results.

Each row becomes a command, a function of :mod:`unslant.study` and a reader of its files. Studies are imported on use.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError, ModelError, load_row, with_plugins
from unslant.flags import path_in

if TYPE_CHECKING:
    from unslant.experiment.result import StudyResult
    from unslant.experiment.study import Study

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
"""Studies that are top-level commands; the others are run with ``unslant study NAME``."""
BY_HAND = {
    "annotation-sheet": "unslant.studies.unbiased.annotation:annotation_sheet",
    "annotation-agreement": "unslant.studies.unbiased.annotation:annotation_agreement",
}
"""Commands of ``unslant study`` that ask no model."""
TRAINING, TRAINING_LOG = "unslant.studies.debias.training:TrainingLog", "log.jsonl"
"""What reads the log of ``unslant train``, and its name in the adapter's folder."""


def studies() -> dict[str, str]:
    """:data:`STUDIES`, and those of installed packages (entry points of the group ``unslant.studies``)."""
    return with_plugins(STUDIES, "unslant.studies")


def study_named(name: str) -> type[Study[Any]]:
    """The study of this name.

    Raises:
        KeyError: if it does not exist.
        ModelError: naming the package that cannot be imported.
    """
    return study_at(studies()[name], f"the study {name}")


def study_at(home: str, what: str) -> type[Study[Any]]:
    """The study that a row ``module:class`` names; ModelError if it is not one."""
    study: Any = load_row(home, what)
    from unslant.experiment.study import Study

    if not (isinstance(study, type) and issubclass(study, Study)):
        raise ModelError(f"{what}: {home} is not an unslant.experiment.study.Study; report it to its package")
    return study


def read_result(path: str | Path) -> StudyResult:
    """The result whose ``to_parquet`` wrote ``path``, or which is in the folder of ``--out``; or the audit of a log.

    Of an adapter's folder, it is the training log.

    Raises:
        InputError: on other files, on answers of several models, or if the study needs more than responses.

    Examples:
        >>> unslant.audit("fair", "embedded", limit=20).to_parquet("fair.parquet")
        >>> unslant.read_result("fair.parquet").name
        'fair'
    """
    path = path_in("path", path, "the name of a file, or of an adapter's folder")
    if os.path.isfile(path / TRAINING_LOG):
        training: StudyResult = load_row(TRAINING, "a training log").read(path)
        return training
    from unslant.experiment.result import RecordedResult, responses_in
    from unslant.responses.importers.logged import placed

    responses = responses_in(path)
    name = responses.run.study
    kind = study_named(name).result if name in studies() else None
    if kind is None or not issubclass(kind, RecordedResult):
        usable = ", ".join(name for name in studies() if issubclass(study_named(name).result, RecordedResult))
        raise InputError.at(path, f"holds responses of the study {name!r}; a report can be made from those of {usable}")
    with placed(path):
        return kind.of(responses)


def compare(*results: StudyResult | str | Path) -> StudyResult:
    """Compare audits with the first, question by question, or models or judges under the same study.

    Args:
        results: two or more results of one study, such as audits; or Parquet files of their responses.

    Raises:
        InputError: if a file cannot be read, or the results cannot be compared.

    Examples:
        >>> audits = [unslant.audit(name, "embedded", limit=20) for name in ("fair", "prefers-a")]
        >>> list(unslant.compare(*audits).runs)
        ['fair', 'prefers-a']
    """
    from unslant.experiment.job import Given
    from unslant.experiment.study import Study

    if len(results) < 2:
        raise InputError("nothing to compare: give two results or more, each as an argument of its own")
    runs: list[Any] = [read_result(item) if isinstance(item, str | Path) else item for item in results]
    kinds = sorted({getattr(run, "study", type(run).__name__) for run in runs})
    study = study_named(kinds[0])() if kinds[0] in studies() else None
    if study is None or type(study).compare is Study.compare or not all(isinstance(one, study.result) for one in runs):
        usable = ", ".join(name for name in studies() if study_named(name).compare is not Study.compare)
        raise InputError(f"results of {', '.join(kinds)} cannot be compared: give results of one of {usable}")
    if study.name == "audit":
        from unslant.auditing.comparison import AuditComparison

        names = [Path(item).stem if isinstance(item, str | Path) else str(i) for i, item in enumerate(results, start=1)]
        return AuditComparison.of(runs, names)
    return study.compare(runs, Given(settings=study.settings(), inputs=study.inputs() if study.inputs else None))
