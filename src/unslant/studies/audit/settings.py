"""How an audit asks."""

from dataclasses import dataclass

from unslant.studies.options import LabelOptions, PromptOptions, ShotOptions


@dataclass(frozen=True, kw_only=True)
class AuditSettings(ShotOptions, LabelOptions, PromptOptions):
    """How the questions are asked; see :func:`unslant.audit`."""

    orders: str = "auto"
    """auto (up to 24, balanced over positions), all, cyclic, reverse, given, or the number to sample."""
