"""Atomic changes to how a question is shown, and their composition at random (P4, section 4.2)."""

from unslant.presentations.interventions.choice import Pool
from unslant.presentations.interventions.compose import (
    BOAT,
    ONLY,
    VANILLA,
    Composed,
    NotApplicable,
    apply,
    compose,
    open_question,
    pool_of,
    possible,
)
from unslant.presentations.interventions.language import equivalent
from unslant.presentations.interventions.matrix import (
    KINDS,
    MATRIX,
    NAMES,
    NEEDS,
    PROBABILITIES,
    combinations,
    conflict,
    in_order,
)

__all__ = [
    "BOAT", "KINDS", "MATRIX", "NAMES", "NEEDS", "ONLY", "PROBABILITIES", "VANILLA", "Composed", "NotApplicable",
    "Pool", "apply", "combinations", "compose", "conflict", "equivalent", "in_order", "open_question", "pool_of",
    "possible",
]  # fmt: skip
