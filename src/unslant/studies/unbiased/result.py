"""The result of the unbiased evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.models import Cost
from unslant.responses import Responses
from unslant.studies.result import RecordedResult
from unslant.studies.unbiased.metrics import BoatMetrics, Outcomes, boat_metrics


@dataclass(frozen=True)
class UnbiasedResult(RecordedResult):
    """One model under the unbiased evaluator.

    Attributes:
        responses: every answer.
        counts: what was composed and what could not be, as in :class:`Plan`.
        outcomes: the answers by question, on which ``metrics`` are measured.
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
        """All numbers, computed from the table that :meth:`to_parquet` wrote."""
        return result_of(Responses.from_parquet(path))


def result_of(responses: Responses) -> UnbiasedResult:
    """All numbers from the responses of a run."""
    meta: dict[str, Any] = dict(responses.meta)
    cost, counts = Cost.of(meta.pop("cost", None)), meta.pop("counts", {})
    outcomes = Outcomes(responses)
    return UnbiasedResult(responses, boat_metrics(outcomes), counts, cost, meta, outcomes)


def check_comparable(first: UnbiasedResult, *others: UnbiasedResult) -> None:
    """Refuse results of different questions or settings.

    Raises:
        InputError: naming the models, and what differs.
    """
    for key in ("questions_digest", "settings"):
        for other in others:
            if other.meta.get(key) != first.meta.get(key):
                raise InputError(f"{first.model} and {other.model} cannot be compared: their {key} differ")
