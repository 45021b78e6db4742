"""Every metric of the room: one is known once its module is imported, and importing this module imports all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unslant.metrics import association as association
from unslant.metrics import base_rate as base_rate
from unslant.metrics import label_bias as label_bias
from unslant.metrics import measures as measures
from unslant.metrics import nvr as nvr
from unslant.metrics import pairs as pairs
from unslant.metrics import shortcuts as shortcuts
from unslant.metrics import variance_components as variance_components
from unslant.metrics.registry import METRICS as METRICS
from unslant.metrics.registry import Metric


def metric_at(path: Sequence[str]) -> Metric | None:
    """The metric of the number at a path in JSON (``metrics``, ``means``, ``accuracy``); None if it has none.

    Metrics whose key names the object before it go first: which other studies are imported must not change a name, and
    their keys may end in the same word. An item of a list or mapping of numbers has their metric.
    """
    named = [METRICS[key] for key in reversed(path[-2:]) if key in METRICS]
    homes = [one.home.split(".")[:3] for one in named]
    if len(named) == 2 and "studies" in homes[0] and homes[0] != homes[1]:
        named.reverse()  # one study calls an item of a mapping as another calls a metric
    keys = (*_with_object(path), *_with_object(path[:-1]))
    return next(filter(None, (*map(METRICS.get, keys), *named)), None)


def _with_object(path: Sequence[str]) -> Iterator[str]:
    """Keys of the last word after objects before it, nearest first."""
    yield from (".".join(path[start:]) for start in range(len(path) - 1))
    yield from (f"{before}.{path[-1]}" for before in reversed(path[:-1]))
