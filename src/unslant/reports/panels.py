"""The parts of a report.

A study describes itself once, as a :class:`Page`, from which terminal text and HTML are rendered. Texts are plain; the
renderers escape them.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import release_memory
from unslant.metrics import Estimate, Metric
from unslant.metrics.registry import METRICS

if TYPE_CHECKING:
    from unslant.reports.figure import Panel

T = TypeVar("T")
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
        n = self.size
        if n > _PILOT:
            n = min(n, _PILOT * self.most_bytes // len(self._pack(_PILOT)))
        while len(data := self._pack(n)) > self.most_bytes and n > 1:
            n = min(n - 1, int(0.97 * n * self.most_bytes / len(data)))
        return data, n

    def explanation_of(self, n: int) -> str:
        """The explanation, with the number of questions on the page where they are not all."""
        if n == self.size:
            return self.explanation
        part = f"This page holds {n:,} of the {self.size:,} questions, drawn at random to keep the file small; every"
        return f"{self.explanation} {part} other number on it is of all questions."

    def _pack(self, n: int) -> str:
        release_memory()
        places = np.sort(np.random.default_rng(0).permutation(self.size)[:n])
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


@dataclass(frozen=True)
class Tile:
    """One of the key numbers at the top, under its own name or that of the metric."""

    metric: Metric
    estimate: Estimate
    own: str = ""

    @property
    def name(self) -> str:
        return self.own or self.metric.name

    @classmethod
    def row(cls, *tiles: tuple[str, Estimate] | tuple[str, Estimate, str]) -> tuple[Tile, ...]:
        """Tiles of the defined metrics: key, estimate and, if not that of the metric, name."""
        return tuple(cls(METRICS[tile[0]], *tile[1:]) for tile in tiles if tile[1].defined)


class Later(Generic[T]):
    """Panels or notes that are made when a report is drawn, each time: the first screen shows none of them.

    Args:
        make: yields them; one panel at least has a table.
    """

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[T]:
        return iter(self._make())

    def __eq__(self, other: object) -> bool:
        """Equal if they yield the same, so that pages of the same result are equal."""
        return list(self) == list(other) if isinstance(other, Later) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Page:
    """A study's result as shown to a reader.

    Attributes:
        about: model and questions: ``prefers-a on embedded: 400 questions, each in 2 to 24 orders``.
        headline: the outcome in one sentence of at most 30 words that a stranger understands.
        lines: at most three more sentences or so, the last of them the cost. Headline and lines are the first screen in
            the terminal, in HTML and in notebooks, and are in JSON; empty ones are left out.
        caveats: what must be known before the first number, in sentences, which nothing shortens: records left out.
        notes: omissions, failures and cost; all at once, or made :class:`Later`.
        settings: names and values.
        panels: all at once, or made :class:`Later`.
        example: a prompt as sent to the model.
        questions: to be looked at one by one; a function makes them when a report is written.
        name: title of the browser tab, usually the model.
        compared: names of the runs shown side by side.
        provenance: how the result was made, see :class:`unslant.responses.provenance.Provenance`.
    """

    about: str
    headline: str
    lines: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    panels: Iterable[Panel] = ()
    notes: Iterable[str] = ()
    settings: tuple[tuple[str, str], ...] = ()
    example: str = ""
    questions: QuestionBrowser | Callable[[], QuestionBrowser] | None = None
    name: str = ""
    compared: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(filter(None, self.lines)))

    @property
    def has_tables(self) -> bool:
        """Whether there is more than the first screen."""
        return isinstance(self.panels, Later) or any(panel.tables for panel in self.panels)

    @property
    def browser(self) -> QuestionBrowser | None:
        """The questions, made now if they have not been."""
        return self.questions() if callable(self.questions) else self.questions

    @property
    def sections(self) -> tuple[Panel, ...]:
        """The panels that are not empty."""
        return tuple(panel for panel in self.panels if not panel.empty)


class Describes(Protocol):
    """A result that can be shown."""

    def page(self) -> Page: ...
