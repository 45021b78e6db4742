"""What the instruction-boundary study found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.responses.table import Responses
from unslant.studies.instruction_boundary.metrics import BoundaryMetrics, boundary_metrics
from unslant.studies.result import StudyResult

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


@dataclass(frozen=True)
class BoundaryStudy(StudyResult):
    """What the study found.

    Attributes:
        model: the model asked.
        metrics: every number, with N and interval.
        responses: the table of responses.
        asked_now: requests made by this run; the others were in the logs.
        log_dir: folder of inspect's logs (``inspect view --log-dir ...``).
        statuses: status -> number of rows.
        notes: what a reader should know.
    """

    model: str
    metrics: BoundaryMetrics
    responses: Responses
    asked_now: int
    log_dir: str
    statuses: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "study": "instruction-boundary",
            "model": self.model,
            "meta": dict(self.responses.meta),
            "statuses": dict(self.statuses),
            "asked_now": self.asked_now,
            "notes": list(self.notes),
            **self.metrics.to_dict(),
        }

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        from unslant.studies.instruction_boundary.panels import headline

        return headline(self.metrics)

    def summary(self, width: int = 110, color: bool = False) -> str:
        """The study as text for the terminal."""
        from unslant.studies.instruction_boundary.panels import summary

        return summary(self, width, color)

    def panels(self) -> list[Panel]:
        """The study as sections of a report."""
        from unslant.studies.instruction_boundary.panels import panels

        return panels(self)

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of responses."""
        self.responses.to_parquet(path)


def result_of(responses: Responses) -> BoundaryStudy:
    """The study's result from its table of responses alone.

    Raises:
        InputError: if the table holds no answers in words.
    """
    meta = responses.meta
    return BoundaryStudy(
        str(meta.get("model", "model")),
        boundary_metrics(responses, seed=int(str(meta.get("seed", 0)))),
        responses,
        0,
        str(meta.get("log_dir", "")),
        Counter(row.status for row in responses.rows()),
    )
