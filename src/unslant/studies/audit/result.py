"""What an audit found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unslant
from unslant.metrics import Metrics, OrderScores, compute
from unslant.metrics.base_rate import BaseRates, base_rates
from unslant.metrics.nvr import Nvr, nvr_from_scores
from unslant.models.base import Cost
from unslant.responses.table import Responses
from unslant.studies.audit.corrections import Correction, corrections
from unslant.studies.result import StudyResult

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


@dataclass(frozen=True)
class AuditSettings:
    """How the questions are asked; see :func:`audit`."""

    orders: str = "auto"
    labels: str = "A"
    template: str = "plain"
    chat: bool = False
    shots: int = 0
    seed: int = 0


@dataclass(frozen=True)
class AuditResult(StudyResult):
    """What an audit found.

    Attributes:
        responses: every score, one row per presentation; ``responses.meta`` tells how they came about.
        metrics: every number, with its interval and N.
        nvr: accuracy when the right option never stands under a label (P5), read off the orders.
        base_rates: number of options -> what the labels are worth to the model where there is no content (P5).
        corrections: accuracy after vote, PriDe and gray-box, read off the orders.
        cost: tokens and time.
    """

    responses: Responses
    metrics: Metrics
    nvr: Nvr
    base_rates: dict[int, BaseRates]
    corrections: tuple[Correction, ...]
    cost: Cost
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        from unslant.reports.terminal import headline

        return headline(self)

    def summary(self, width: int = 100, color: bool = False) -> str:
        """The outcome as text for a terminal, led by the headline."""
        from unslant.reports.terminal import summary

        return summary(self, width=width, color=color)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able."""
        return {
            "unslant": unslant.__version__,
            "headline": self.headline,
            **self.meta,
            "cost": asdict(self.cost),
            "metrics": self.metrics.to_dict(),
            "nvr": self.nvr.to_dict(),
            "base_rates": {str(n): rates.to_dict() for n, rates in self.base_rates.items()},
            "corrections": [correction.to_dict() for correction in self.corrections],
        }

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of responses; :meth:`from_parquet` reads it back without the model."""
        self.responses.to_parquet(path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> AuditResult:
        """An audit from its table of responses; every metric is computed anew."""
        return result_of(Responses.from_parquet(path))

    @classmethod
    def from_responses(cls, responses: Responses) -> AuditResult:
        """The same from a table at hand."""
        return result_of(responses)

    def panels(self) -> Sequence[Panel]:
        """The audit as sections of a report."""
        from unslant.reports.html import panels_of
        from unslant.studies.audit.runs import named

        return panels_of(named([self]))


def result_of(responses: Responses) -> AuditResult:
    meta = {key: value for key, value in responses.meta.items() if key not in ("cost", "study")}
    spent = responses.meta.get("cost")
    cost = Cost(**spent) if isinstance(spent, dict) else Cost()
    scores = OrderScores.from_responses(responses)
    return AuditResult(
        responses,
        compute(scores),
        nvr_from_scores(scores),
        base_rates(responses, labels=scores.labels),
        corrections(scores),
        cost,
        meta,
    )
