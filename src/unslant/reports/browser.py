"""The question browser: its filters, sort orders and packed data."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import release_memory
from unslant.metrics import Metric

LEVELS = 65535
"""A probability p is stored as round(p * LEVELS), exact to 0.00001."""
_PILOT = 64
"""Questions packed first, to estimate how many will fit."""


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
        data: of the questions at given places: ``questions`` (texts, options, right answers) and ``runs`` (measures by
            question; contents, labels and probabilities); called only when a page is written.
        size: how many questions there are.
        most_bytes: of :meth:`packed`; a random sample of the questions is shown where all of them are more.
    """

    explanation: str
    metric: Metric
    filters: tuple[Filter, ...]
    sorts: tuple[Sort, ...]
    data: Callable[[Sequence[int]], dict[str, Any]]
    size: int
    most_bytes: int

    def packed(self) -> tuple[str, int]:
        """Gzipped JSON in base64, which cannot be mistaken for markup, and the number of questions in it."""
        shown = self.size
        if shown > _PILOT:
            shown = min(shown, _PILOT * self.most_bytes // len(self._pack(_PILOT)))
        while len(found := self._pack(shown)) > self.most_bytes and shown > 1:
            shown = min(shown - 1, int(0.97 * shown * self.most_bytes / len(found)))
        return found, shown

    def explanation_of(self, shown: int) -> str:
        """The explanation, and how many questions of how many are shown, if not all."""
        part = f" This page holds {shown:,} of the {self.size:,} questions, drawn at random to keep the file small; "
        return self.explanation + (part + "every other number on it is of all questions.") * (shown < self.size)

    def _pack(self, shown: int) -> str:
        release_memory()
        places = np.sort(np.random.default_rng(0).permutation(self.size)[:shown])
        data = self.data(places.tolist()) | {
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
