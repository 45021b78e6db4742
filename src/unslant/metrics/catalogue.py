"""Every metric of the room: one is known once its module is imported, and importing this module imports all of them."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.metrics import base_rate as base_rate
from unslant.metrics import measures as measures
from unslant.metrics import nvr as nvr
from unslant.metrics import shortcuts as shortcuts
from unslant.metrics import variance_components as variance_components
from unslant.metrics.registry import METRICS as METRICS
from unslant.metrics.registry import Metric


def metric_at(path: Sequence[str]) -> Metric | None:
    """The metric of the number at a path in JSON (``metrics``, ``means``, ``accuracy``); None if it has none.

    Metrics whose key names the object before it go first.
    """
    return _metric_of(path) or _metric_of(path[:-1])  # one of several, by its label or place


def _metric_of(path: Sequence[str]) -> Metric | None:
    for start in range(len(path)):
        if metric := METRICS.get(".".join(path[start:])):
            return metric
    qualified = (METRICS.get(f"{before}.{path[-1]}") for before in reversed(path[:-1]))
    return next(filter(None, qualified), METRICS.get(path[-1]) if path else None)
