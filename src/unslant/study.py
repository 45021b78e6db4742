"""The experiments as functions: ``unslant.study.base_rate("org/name", "questions.jsonl")``.

Each takes what ``unslant study NAME`` takes, options as keywords, and returns the study's result. Imported when used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unslant.studies.base_rate.study import base_rate
    from unslant.studies.debias.study import debias_study as debias
    from unslant.studies.instruction_boundary.study import instruction_boundary
    from unslant.studies.unbiased.annotation.study import read_sheets as annotation
    from unslant.studies.unbiased.annotation.study import sheet as annotation_sheet
    from unslant.studies.unbiased.contamination.study import contamination
    from unslant.studies.unbiased.probe.study import probe
    from unslant.studies.unbiased.study import unbiased

__all__ = [
    "annotation",
    "annotation_sheet",
    "base_rate",
    "contamination",
    "debias",
    "instruction_boundary",
    "probe",
    "unbiased",
]

_NAMES = {"annotation": "read_sheets", "annotation_sheet": "sheet", "debias": "debias_study"}
"""Those whose functions are called otherwise where they are defined."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'unslant.study' has no attribute {name!r}")
    folder = name.removesuffix("_sheet")
    parent = "studies.unbiased" if folder in ("annotation", "contamination", "probe") else "studies"
    return getattr(import_module(f"unslant.{parent}.{folder}.study"), _NAMES.get(name, name))


def __dir__() -> list[str]:
    return __all__
