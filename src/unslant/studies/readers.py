"""The studies by name, and how to read their recorded results; imported lazily."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unslant.errors import InputError

if TYPE_CHECKING:
    from unslant.reports import Describes


class Study(NamedTuple):
    """One study.

    Attributes:
        home: its package, whose module ``command`` has a function for each command.
        commands: ``unslant NAME`` for those of :data:`TOP`, ``unslant study NAME`` for the others.
        result: the class of its result, where that can be made from a table of responses.
    """

    home: str
    commands: tuple[str, ...]
    result: str = ""

    def homes(self) -> dict[str, str]:
        """Name of each command -> ``module:function``."""
        return {name: f"{self.home}.command:{name.replace('-', '_')}" for name in self.commands}


STUDIES = {
    "audit": Study("unslant.auditing", ("audit",), "unslant.auditing.result:AuditResult"),
    "leaderboard": Study("unslant.studies.leaderboard", ("leaderboard",)),
    "base-rate": Study("unslant.studies.base_rate", ("base-rate",), "unslant.studies.base_rate.result:BaseRateResult"),
    "unbiased": Study(
        "unslant.studies.unbiased", ("unbiased", "unbiased-compare"), "unslant.studies.unbiased.result:UnbiasedResult"
    ),
    "contamination": Study("unslant.studies.unbiased.contamination", ("contamination",)),
    "debias": Study("unslant.studies.debias", ("debias",)),
    "probe": Study("unslant.studies.unbiased.probe", ("probe",)),
    "instruction-boundary": Study(
        "unslant.studies.instruction_boundary",
        ("instruction-boundary",),
        "unslant.studies.instruction_boundary.result:BoundaryStudy",
    ),
    "annotation": Study("unslant.studies.unbiased.annotation", ("annotation-sheet", "annotation-agreement")),
}
"""Studies by name, as in the metadata of their responses."""
TOP = ("audit", "leaderboard")
"""Studies that are commands of their own."""
TRAINING = "unslant.studies.debias.training_log:TrainingLog"


def read_result(path: str | Path) -> Describes:
    """The result whose ``to_parquet`` wrote ``path``, the audit of a log, or the training log in an adapter's folder.

    Raises:
        InputError: if the file is neither, holds answers of several models, or its study needs more than responses.
    """
    if Path(path).is_dir():
        training: Describes = _named(TRAINING).read(path)
        return training
    from unslant.experiment.recorded import responses_in
    from unslant.responses.importers.logged import placed

    responses = responses_in(path)
    name = responses.run.study
    study = STUDIES.get(name)
    if study is None or not study.result:
        known = ", ".join(name for name, study in STUDIES.items() if study.result)
        raise InputError.at(path, f"holds responses of the study {name!r}; a report can be made from those of {known}")
    with placed(path):
        result: Describes = _named(study.result).of(responses)
    return result


def _named(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
