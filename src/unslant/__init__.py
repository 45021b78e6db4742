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
    from unslant import study
    from unslant.auditing.comparison import AuditComparison
    from unslant.auditing.logs import audit_logs as audit_log
    from unslant.auditing.result import AuditResult
    from unslant.auditing.study import audit
    from unslant.debiasing.base import Answers, Outcome
    from unslant.debiasing.debiased_model import Debiased
    from unslant.errors import InputError, ModelError, OutputError, UnslantError
    from unslant.metrics.estimate import Estimate
    from unslant.models.hf.loading import load_model
    from unslant.models.open import open_model
    from unslant.questions import Question, QuestionSet, load_questions
    from unslant.reports.report import Report
    from unslant.responses.table import Responses
    from unslant.studies.base_rate.result import BaseRateResult
    from unslant.studies.compare import compare
    from unslant.studies.debias.adapter import train
    from unslant.studies.debias.answers import debias
    from unslant.studies.debias.recorded import debias_log
    from unslant.studies.debias.result import DebiasResult
    from unslant.studies.debias.training_log import TrainingLog
    from unslant.studies.instruction_boundary.comparison import BoundaryComparison
    from unslant.studies.instruction_boundary.result import BoundaryStudy
    from unslant.studies.leaderboard.result import Leaderboard
    from unslant.studies.leaderboard.study import leaderboard
    from unslant.studies.question_check.check import QuestionCheck, check_questions
    from unslant.studies.readers import read_result
    from unslant.studies.unbiased.annotation.metrics import AnnotationAgreement
    from unslant.studies.unbiased.comparison import UnbiasedComparison
    from unslant.studies.unbiased.contamination.result import ContaminationResult
    from unslant.studies.unbiased.probe.result import ProbeResult
    from unslant.studies.unbiased.result import UnbiasedResult

__all__ = [
    "AnnotationAgreement",
    "Answers",
    "AuditComparison",
    "AuditResult",
    "BaseRateResult",
    "BoundaryComparison",
    "BoundaryStudy",
    "ContaminationResult",
    "DebiasResult",
    "Debiased",
    "Estimate",
    "InputError",
    "Leaderboard",
    "ModelError",
    "Outcome",
    "OutputError",
    "ProbeResult",
    "Question",
    "QuestionCheck",
    "QuestionSet",
    "Report",
    "Responses",
    "TrainingLog",
    "UnbiasedComparison",
    "UnbiasedResult",
    "UnslantError",
    "__version__",
    "audit",
    "audit_log",
    "check_questions",
    "compare",
    "debias",
    "debias_log",
    "leaderboard",
    "load_model",
    "load_questions",
    "open_model",
    "read_result",
    "study",
    "train",
]

_HOMES = {
    "debiasing.base": ("Answers", "Outcome"),
    "debiasing.debiased_model": ("Debiased",),
    "errors": ("InputError", "ModelError", "OutputError", "UnslantError"),
    "metrics.estimate": ("Estimate",),
    "models.hf.loading": ("load_model",),
    "models.open": ("open_model",),
    "questions": ("Question", "QuestionSet", "load_questions"),
    "reports.report": ("Report",),
    "responses.table": ("Responses",),
    "studies.unbiased.annotation.metrics": ("AnnotationAgreement",),
    "auditing.comparison": ("AuditComparison",),
    "auditing.logs": ("audit_logs as audit_log",),
    "auditing.result": ("AuditResult",),
    "auditing.study": ("audit",),
    "studies.base_rate.result": ("BaseRateResult",),
    "studies.compare": ("compare",),
    "studies.unbiased.contamination.result": ("ContaminationResult",),
    "studies.debias.adapter": ("train",),
    "studies.debias.answers": ("debias",),
    "studies.debias.recorded": ("debias_log",),
    "studies.debias.result": ("DebiasResult",),
    "studies.debias.training_log": ("TrainingLog",),
    "studies.instruction_boundary.comparison": ("BoundaryComparison",),
    "studies.instruction_boundary.result": ("BoundaryStudy",),
    "studies.leaderboard.result": ("Leaderboard",),
    "studies.leaderboard.study": ("leaderboard",),
    "studies.unbiased.probe.result": ("ProbeResult",),
    "studies.question_check.check": ("QuestionCheck", "check_questions"),
    "studies.readers": ("read_result",),
    "studies.unbiased.comparison": ("UnbiasedComparison",),
    "studies.unbiased.result": ("UnbiasedResult",),
}
"""Module -> the names it has for us, the same as above."""


def __getattr__(name: str) -> Any:
    if name in ("inspect", "study"):
        return import_module(f"unslant.{name}")
    for home, names in _HOMES.items():
        for own in names:
            real, _, shown = own.partition(" as ")
            if name == (shown or real):
                return getattr(import_module(f"unslant.{home}"), real)
    raise AttributeError(f"module 'unslant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
