"""The question browser: its filters, sort orders and packed data."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import release_memory
from unslant.metrics import Metric

LEVELS = 65535
"""A probability p is stored as round(p * LEVELS), exact to 0.00001."""


@dataclass(frozen=True)
class Filter:
    """Questions meeting every condition ``(measure, "=" or "<" or ">", number)``; undefined values meet none."""

    title: str
    where: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True)
class Sort:
    """Sort by one measure, undefined values last; an empty measure is the file order."""

    title: str
    measure: str = ""
    descending: bool = False


@dataclass(frozen=True)
class QuestionBrowser:
    """Single questions, as shown by ``templates/browser.js``.

    Attributes:
        metric: the measure listed with every question.
        filters, sorts: the first of each is the default.
        data: returns ``questions`` (texts, options, right answers) and ``runs`` (measures by question; contents, labels
            and probabilities); called only when a page is written.
    """

    explanation: str
    metric: Metric
    filters: tuple[Filter, ...]
    sorts: tuple[Sort, ...]
    data: Callable[[], dict[str, Any]]

    def packed(self) -> str:
        """Gzipped JSON in base64, which cannot be mistaken for markup."""
        release_memory()
        data = self.data() | {
            "levels": LEVELS,
            "metric": {"key": self.metric.key, "name": self.metric.label, "digits": self.metric.digits},
            "filters": [asdict(f) for f in self.filters],
            "sorts": [asdict(s) for s in self.sorts],
        }
        as_text = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        questions = deque(data.pop("questions"))
        packed = io.BytesIO()
        with gzip.GzipFile("", "wb", 9, packed, mtime=0) as file:  # a question at a time: there may be many
            file.write(b'{"questions":[')
            while questions:
                file.write(as_text(questions.popleft()).encode() + (b"," if questions else b""))
            file.write(b"],")
            file.write(memoryview(as_text(data).encode())[1:])
        return base64.b64encode(packed.getvalue()).decode()


def packed_bytes(values: NDArray[Any], dtype: Any = np.uint8) -> str:
    """Integers as base64 of their bytes."""
    return base64.b64encode(np.ascontiguousarray(values.astype(dtype)).tobytes()).decode()


def packed_probs(values: NDArray[np.float64]) -> str:
    """Probabilities as base64 of 16-bit integers, see :data:`LEVELS`."""
    levels = values * LEVELS
    return packed_bytes(np.rint(levels, out=levels), np.dtype("<u2"))
