"""The public names, each with the module that it is imported from when it is first used."""

from . import inspect as inspect
from . import study as study
from .auditing.comparison import AuditComparison as AuditComparison
from .auditing.result import AuditResult as AuditResult
from .auditing.study import audit as audit
from .debiasing.base import Answers as Answers
from .debiasing.base import Outcome as Outcome
from .debiasing.debiased_model import Debiased as Debiased
from .errors import InputError as InputError
from .errors import ModelError as ModelError
from .errors import OutputError as OutputError
from .errors import UnslantError as UnslantError
from .metrics.estimate import Estimate as Estimate
from .models.hf.loading import load_model as load_model
from .models.open import open_model as open_model
from .questions import Question as Question
from .questions import QuestionSet as QuestionSet
from .questions import load_questions as load_questions
from .reports.report import Report as Report
from .responses import Responses as Responses
from .studies import compare as compare
from .studies import read_result as read_result
from .studies.base_rate.study import BaseRateResult as BaseRateResult
from .studies.debias.answers import debias as debias
from .studies.debias.result import DebiasResult as DebiasResult
from .studies.debias.training import TrainingLog as TrainingLog
from .studies.debias.training import train as train
from .studies.instruction_boundary.comparison import BoundaryComparison as BoundaryComparison
from .studies.instruction_boundary.result import BoundaryStudy as BoundaryStudy
from .studies.leaderboard.study import Leaderboard as Leaderboard
from .studies.leaderboard.study import leaderboard as leaderboard
from .studies.plan.planning import PlanResult as PlanResult
from .studies.plan.planning import plan as plan
from .studies.question_check import QuestionCheck as QuestionCheck
from .studies.question_check import check_questions as check_questions
from .studies.unbiased.annotation import AnnotationAgreement as AnnotationAgreement
from .studies.unbiased.comparison import UnbiasedComparison as UnbiasedComparison
from .studies.unbiased.contamination.study import ContaminationResult as ContaminationResult
from .studies.unbiased.metrics import UnbiasedResult as UnbiasedResult
from .studies.unbiased.probe.result import ProbeResult as ProbeResult

__version__: str
