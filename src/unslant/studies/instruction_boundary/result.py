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
        model: the model asked.
        metrics: every number, with N and interval; at the first temperature, where several were asked.
        by_temperature: temperature -> every number, where several were asked; else empty.
        responses: the table of responses.
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
    by_temperature: Mapping[float, BoundaryMetrics] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"meta": dict(self.responses.meta)} | self.metrics.to_dict()


def result_of(responses: Responses) -> BoundaryStudy:
    """The study's result from its table of responses alone.

    Raises:
        InputError: if the table holds no answers in words.
    """
    meta: Mapping[str, Any] = responses.meta
    rows = list(responses.rows())
    runs = sorted({row.run for row in rows}) or [0]
    measured = [
        boundary_metrics([row for row in rows if row.run == run], seed=int(meta.get("seed", 0))) for run in runs
    ]
    temperatures = meta.get("temperatures", ())
    return BoundaryStudy(
        str(meta.get("model", "model")),
        measured[0],
        responses,
        0,
        str(meta.get("log_dir", "")),
        Counter(row.status for row in rows),
        by_temperature={float(temperatures[run]): found for run, found in zip(runs, measured, strict=True)}
        if len(runs) > 1
        else {},
    )
