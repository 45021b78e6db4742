"""How an audit asks."""

from __future__ import annotations

from dataclasses import dataclass

from unslant.studies.options import LabelOptions, PromptOptions, ShotOptions


@dataclass(frozen=True, kw_only=True)
class AuditSettings(ShotOptions, LabelOptions, PromptOptions):
    """How the questions are asked; see :func:`unslant.audit`."""

    orders: str = "auto"
    """auto (all up to 24, else 24 in which every option stands in every place equally often), all, cyclic, reverse,
    given, or a number of sampled orders."""
