"""The browser of single questions: what it can be filtered and sorted by, and its data packed for a page."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.metrics import Metric

LEVELS = 65535
"""A probability p is kept as the integer nearest to p * LEVELS: exact to 0.00001."""


@dataclass(frozen=True)
class Filter:
    """Questions for which every condition holds: ``(measure, "=" or "<" or ">", number)``; undefined never holds."""

    title: str
    where: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True)
class Sort:
    """An order of the list by one measure; undefined comes last. An empty measure is the order of the file."""

    title: str
    measure: str = ""
    descending: bool = False


@dataclass(frozen=True)
class QuestionBrowser:
    """Questions to be looked at one by one, as ``templates/browser.js`` shows them.

    Attributes:
        explanation: what is seen there.
        metric: the measure told with every question of the list.
        filters, sorts: what the list can be cut and ordered by; the first of each to begin with.
        data: ``questions`` (texts, options, right answers) and ``runs`` (each with its measures by question, and its
            pages: contents, labels and probabilities). Called only when a page is written.
    """

    explanation: str
    metric: Metric
    filters: tuple[Filter, ...]
    sorts: tuple[Sort, ...]
    data: Callable[[], dict[str, Any]]

    def packed(self) -> str:
        """JSON, gzipped, in base64: what a page can carry without a word of it being taken for markup."""
        data = self.data() | {
            "levels": LEVELS,
            "metric": {"key": self.metric.key, "name": self.metric.label, "digits": self.metric.digits},
            "filters": [{"title": f.title, "where": f.where} for f in self.filters],
            "sorts": [{"title": s.title, "measure": s.measure, "descending": s.descending} for s in self.sorts],
        }
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def packed_bytes(values: NDArray[Any], dtype: Any = np.uint8) -> str:
    """Whole numbers as base64 of their bytes."""
    return base64.b64encode(np.ascontiguousarray(values.astype(dtype)).tobytes()).decode()


def packed_probs(values: NDArray[np.float64]) -> str:
    """Probabilities as base64 of 16-bit whole numbers, see :data:`LEVELS`."""
    return packed_bytes(np.rint(values * LEVELS), np.dtype("<u2"))
