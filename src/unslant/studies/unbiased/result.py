"""What the unbiased evaluator found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unslant.models import Cost
from unslant.responses import Responses
from unslant.studies.result import RecordedResult
from unslant.studies.unbiased.metrics import BoatMetrics, Outcomes, boat_metrics


@dataclass(frozen=True)
class UnbiasedResult(RecordedResult):
    """What the study found.

    Attributes:
        responses: every answer; ``responses.meta`` tells how they came about.
        metrics: vanilla, ours, drop and the rest, each with its interval and N.
        counts: what was composed and what could not be, as in :class:`Plan`.
        cost: tokens and time.
        outcomes: the answers question by question, read once; ``metrics`` is measured on them.
    """

    study = "unbiased"
    unwritten = ("responses", "meta", "outcomes")

    responses: Responses
    metrics: BoatMetrics
    counts: Mapping[str, Any]
    cost: Cost
    meta: Mapping[str, Any]
    outcomes: Outcomes = field(repr=False)

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.meta.get("model", "model"))

    def renamed(self, model: str) -> UnbiasedResult:
        """The same result under another name of the model."""
        responses = replace(self.responses, meta={**self.responses.meta, "model": model})
        return replace(self, responses=responses, meta={**self.meta, "model": model})

    @classmethod
    def from_parquet(cls, path: str | Path) -> UnbiasedResult:
        """A result from the table that :meth:`to_parquet` wrote; every number is computed anew, without the model."""
        return result_of(Responses.from_parquet(path))


def result_of(responses: Responses) -> UnbiasedResult:
    """All numbers from the responses of a run."""
    meta = {key: value for key, value in responses.meta.items() if key not in ("cost", "counts")}
    cost, counts = responses.meta.get("cost"), responses.meta.get("counts")
    outcomes = Outcomes(responses)
    return UnbiasedResult(
        responses,
        boat_metrics(outcomes),
        counts if isinstance(counts, dict) else {},
        Cost(**cost) if isinstance(cost, dict) else Cost(),
        meta,
        outcomes,
    )
