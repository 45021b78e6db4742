"""The result of the unbiased evaluator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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
