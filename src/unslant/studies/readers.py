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
        folder: its module ``command`` has a function for each command.
        commands: ``unslant NAME`` for those of :data:`TOP`, ``unslant study NAME`` for the others.
        reader: function that makes its result from a table of responses; empty if that is not enough.
    """

    folder: str
    commands: tuple[str, ...]
    reader: str = ""

    def homes(self) -> dict[str, str]:
        """Name of each command -> ``module:function``."""
        return {name: f"unslant.studies.{self.folder}.command:{name.replace('-', '_')}" for name in self.commands}


STUDIES = {
    "audit": Study("audit", ("audit",), "result:result_of"),
    "leaderboard": Study("leaderboard", ("leaderboard",)),
    "base-rate": Study("base_rate", ("base-rate",), "study:base_rate_recorded"),
    "unbiased": Study("unbiased", ("unbiased", "unbiased-compare"), "result:result_of"),
    "contamination": Study("contamination", ("contamination",)),
    "debias": Study("debias", ("debias",)),
    "probe": Study("probe", ("probe",)),
    "instruction-boundary": Study("instruction_boundary", ("instruction-boundary",), "result:result_of_table"),
    "annotation": Study("annotation", ("annotation-sheet", "annotation-agreement")),
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
    from unslant.responses.importers import load_logs

    responses, *others = load_logs([path])
    if others:
        raise InputError.at(path, f"holds answers of {1 + len(others)} models; give a file of one")
    name = responses.run.study
    study = STUDIES.get(name)
    if study is None or not study.reader:
        known = ", ".join(name for name, study in STUDIES.items() if study.reader)
        raise InputError.at(path, f"holds responses of the study {name!r}; a report can be made from those of {known}")
    try:
        found: Describes = _named(f"unslant.studies.{study.folder}.{study.reader}")(responses)
    except InputError as error:
        raise InputError.at(path, str(error)) from None
    return found


def _named(reader: str) -> Any:
    module, _, name = reader.partition(":")
    return getattr(import_module(module), name)
