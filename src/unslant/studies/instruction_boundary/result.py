"""The result of the instruction-boundary study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unslant.responses import Responses
from unslant.studies.instruction_boundary.metrics import BoundaryMetrics, boundary_metrics
from unslant.studies.result import RecordedResult


@dataclass(frozen=True)
class BoundaryStudy(RecordedResult):
    """The result of the study.

    Attributes:
        asked_now: requests made by this run; the others were in the logs.
        log_dir: folder of inspect's logs (``inspect view --log-dir ...``).
        statuses: status -> number of rows.
    """

    study = "instruction-boundary"
    unwritten = ("metrics", "responses", "log_dir")

    model: str
    metrics: BoundaryMetrics
    responses: Responses
    asked_now: int
    log_dir: str
    statuses: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"meta": dict(self.responses.meta)} | self.metrics.to_dict()


def result_of(responses: Responses) -> BoundaryStudy:
    """The result from a table of responses; InputError if it has no generated replies."""
    meta = responses.meta
    return BoundaryStudy(
        str(meta.get("model", "model")),
        boundary_metrics(responses, seed=int(str(meta.get("seed", 0)))),
        responses,
        0,
        str(meta.get("log_dir", "")),
        Counter(row.status for row in responses.rows()),
    )
