"""unslant: how much of a multiple-choice score is option order, label preference or luck.

>>> import unslant
>>> result = unslant.audit("prefers-a", "embedded", limit=20)
>>> print(result.summary())

Everything below is imported when first used, so that ``import unslant`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unslant.version import __version__

if TYPE_CHECKING:
    from unslant.debias.debiased_model import Debiased
    from unslant.errors import InputError, ModelError, UnslantError
    from unslant.models.hf.loading import load_model
    from unslant.models.open import open_model
    from unslant.questions import Question, load_questions
    from unslant.responses.table import Responses
    from unslant.studies.audit.result import AuditResult
    from unslant.studies.audit.study import audit
    from unslant.studies.question_check.check import check_questions

__all__ = [
    "AuditResult",
    "Debiased",
    "InputError",
    "ModelError",
    "Question",
    "Responses",
    "UnslantError",
    "__version__",
    "audit",
    "check_questions",
    "load_model",
    "load_questions",
    "open_model",
]

_HOMES = {
    "AuditResult": "unslant.studies.audit.result",
    "Debiased": "unslant.debias.debiased_model",
    "InputError": "unslant.errors",
    "ModelError": "unslant.errors",
    "Question": "unslant.questions",
    "Responses": "unslant.responses.table",
    "UnslantError": "unslant.errors",
    "audit": "unslant.studies.audit.study",
    "check_questions": "unslant.studies.question_check.check",
    "load_model": "unslant.models.hf.loading",
    "load_questions": "unslant.questions",
    "open_model": "unslant.models.open",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'unslant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
