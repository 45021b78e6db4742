"""How an audit asks."""

from dataclasses import dataclass

from unslant.studies.options import PromptOptions, ScoredLabelOptions, ShotOptions


@dataclass(frozen=True, kw_only=True)
class AuditSettings(ShotOptions, ScoredLabelOptions, PromptOptions):
    """How the questions are asked; see :func:`unslant.audit`."""

    orders: str = "auto"
    """auto (up to 24, balanced over positions), all, cyclic, reverse, given, or the number to sample."""
