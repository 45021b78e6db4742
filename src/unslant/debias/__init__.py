"""How to correct the answer: one method a file, one contract (:mod:`unslant.debias.base`)."""

from unslant.debias.base import Answers, Debiaser, Method, OrderDebiaser, Outcome, debias
from unslant.debias.debiased_model import Debiased
from unslant.debias.registry import METHODS, method_named

__all__ = [
    "METHODS", "Answers", "Debiased", "Debiaser", "Method", "OrderDebiaser", "Outcome", "debias", "method_named",
]  # fmt: skip
