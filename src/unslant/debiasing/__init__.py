"""How to correct the answer: one method a file, one contract (:mod:`unslant.debiasing.base`)."""

from unslant.debiasing.base import Answers, Debiaser, Method, OrderDebiaser, Outcome, debias
from unslant.debiasing.debiased_model import Debiased
from unslant.debiasing.registry import METHODS, method_named

__all__ = [
    "METHODS", "Answers", "Debiased", "Debiaser", "Method", "OrderDebiaser", "Outcome", "debias", "method_named",
]  # fmt: skip
