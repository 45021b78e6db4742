"""The experiments as functions: ``unslant.study.base_rate("org/name", "questions.jsonl")``.

Each takes the arguments of ``unslant study NAME``, options as keywords, and returns the result of the study.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unslant.studies import TOP, studies, study_named

if TYPE_CHECKING:
    from unslant.studies.base_rate.study import base_rate
    from unslant.studies.debias.study import debias
    from unslant.studies.instruction_boundary.study import instruction_boundary
    from unslant.studies.judge.study import judge
    from unslant.studies.unbiased.annotation import read_sheets as annotation
    from unslant.studies.unbiased.annotation import sheet as annotation_sheet
    from unslant.studies.unbiased.contamination.study import contamination
    from unslant.studies.unbiased.probe.study import probe
    from unslant.studies.unbiased.study import unbiased

__all__ = [
    "annotation", "annotation_sheet", "base_rate", "contamination", "debias", "instruction_boundary", "judge", "probe",
    "unbiased",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("annotation", "annotation_sheet"):
        from unslant.studies.unbiased import annotation

        return annotation.read_sheets if name == "annotation" else annotation.sheet
    command = name.replace("_", "-")
    if command in TOP or command not in studies():
        raise AttributeError(f"module 'unslant.study' has no attribute {name!r}")
    return study_named(command).function


def __dir__() -> list[str]:
    return sorted({*__all__, *(name.replace("-", "_") for name in studies() if name not in TOP)})
