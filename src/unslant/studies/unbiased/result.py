"""What the unbiased evaluator found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unslant
from unslant.models.base import Cost
from unslant.responses.table import Responses
from unslant.studies.result import StudyResult
from unslant.studies.unbiased.metrics import BoatMetrics, boat_metrics

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


@dataclass(frozen=True)
class UnbiasedResult(StudyResult):
    """What the study found.

    Attributes:
        responses: every answer; ``responses.meta`` tells how they came about.
        metrics: vanilla, ours, drop and the rest, each with its interval and N.
        counts: what was composed and what could not be, as in :class:`Plan`.
        cost: tokens and time.
    """

    responses: Responses
    metrics: BoatMetrics
    counts: Mapping[str, Any]
    cost: Cost
    meta: Mapping[str, Any]

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.meta.get("model", "model"))

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        from unslant.studies.unbiased.panels import headline

        return headline(self)

    def panels(self) -> Sequence[Panel]:
        """What a report shows."""
        from unslant.studies.unbiased.panels import panels

        return panels(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able."""
        return {
            "unslant": unslant.__version__,
            "headline": self.headline,
            **self.meta,
            "counts": dict(self.counts),
            "cost": asdict(self.cost),
            "metrics": self.metrics.to_dict(),
        }

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of responses; :meth:`from_parquet` reads it back without the model."""
        self.responses.to_parquet(path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> UnbiasedResult:
        """A result from its table of responses; every number is computed anew."""
        return result_of(Responses.from_parquet(path))


def result_of(responses: Responses) -> UnbiasedResult:
    """All numbers from the responses of a run."""
    meta = {key: value for key, value in responses.meta.items() if key not in ("cost", "counts")}
    cost, counts = responses.meta.get("cost"), responses.meta.get("counts")
    return UnbiasedResult(
        responses,
        boat_metrics(responses),
        counts if isinstance(counts, dict) else {},
        Cost(**cost) if isinstance(cost, dict) else Cost(),
        meta,
    )
