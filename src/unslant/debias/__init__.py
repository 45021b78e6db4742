"""How to correct the answer: one method a file, one contract (:mod:`unslant.debias.base`)."""

from unslant.debias.asking import Asker, ModelAsker, RecordedAsker
from unslant.debias.base import Answers, Debiaser, Method, Outcome, debias, fitted
from unslant.debias.registry import METHODS, method_named

__all__ = [
    "METHODS",
    "Answers",
    "Asker",
    "Debiaser",
    "Method",
    "ModelAsker",
    "Outcome",
    "RecordedAsker",
    "debias",
    "fitted",
    "method_named",
]
