"""How to correct the answer: one method a file, one contract (:mod:`unslant.debias.base`).

Called, the package is the function :func:`unslant.studies.debias.answers.debias`: ``unslant.debias(model, questions)``.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from unslant.debias.base import Answers, Debiaser, Method, OrderDebiaser, Outcome, debias
from unslant.debias.debiased_model import Debiased
from unslant.debias.registry import METHODS, method_named

__all__ = [
    "METHODS", "Answers", "Debiased", "Debiaser", "Method", "OrderDebiaser", "Outcome", "debias", "method_named",
]  # fmt: skip


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Answers:
        made: Answers = import_module("unslant.studies.debias.answers").debias(*arguments, **options)
        return made


sys.modules[__name__].__class__ = _Callable
