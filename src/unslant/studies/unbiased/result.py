"""The result of the unbiased evaluator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from unslant.errors import InputError
from unslant.experiment.result import RecordedResult
from unslant.responses import Responses
from unslant.studies.unbiased.metrics import BoatMetrics, Outcomes, boat_metrics


@dataclass(frozen=True)
class UnbiasedResult(RecordedResult):
    """One model under the unbiased evaluator.

    Attributes:
        responses: every answer.
        outcomes: the answers by question, on which ``metrics`` are measured.
    """

    study = "unbiased"
    unwritten = ("responses", "outcomes")

    responses: Responses
    metrics: BoatMetrics
    outcomes: Outcomes = field(repr=False)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.run.model or "model"

    def renamed(self, model: str) -> UnbiasedResult:
        """The same result under another name of the model."""
        return replace(self, responses=replace(self.responses, run=replace(self.run, model=model)))

    @classmethod
    def of(cls, responses: Responses) -> UnbiasedResult:
        outcomes = Outcomes(responses)
        return cls(responses, boat_metrics(outcomes), outcomes)


def check_comparable(first: UnbiasedResult, *others: UnbiasedResult) -> None:
    """Refuse results of different questions or settings.

    Raises:
        InputError: naming the models, and what differs.
    """
    for other in others:
        for what, same in {
            "questions": other.run.questions_digest == first.run.questions_digest,
            "settings": other.run.settings == first.run.settings,
        }.items():
            if not same:
                raise InputError(f"{first.model} and {other.model} cannot be compared: their {what} differ")
