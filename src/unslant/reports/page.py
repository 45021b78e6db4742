"""A page and its parts, and its text for a terminal: a few sentences, or everything with ``details``.

A study describes itself once, as a :class:`Page`, which text and HTML are rendered from. Renderers escape its texts.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from unslant.arrays import release_memory
from unslant.errors import for_the_caller, one_line
from unslant.flags import typed
from unslant.metrics import Estimate, Metric
from unslant.metrics.registry import METRICS
from unslant.reports.numbers import interval, number, shared_n

if TYPE_CHECKING:
    from unslant.reports.figure import Panel, Table

T = TypeVar("T")
LEVELS = 65535
"""A probability p is stored as round(p * LEVELS), exact to 0.00001."""
_PILOT = 64
"""Questions packed first, to estimate how many will fit."""
_GAP = 2
_NAME, _WORDS = 44, 26
"""Column widths of row names and of running text in wide tables."""
_PROMPT_WIDTH, _LONGEST = 100, 400
"""Of lines, and letters of a text, at the prompt of an interactive session."""


@dataclass(frozen=True)
class QuestionBrowser:
    """Single questions, as shown by ``templates/browser.js``.

    Attributes:
        metric: the measure listed with every question.
        filters: title -> conditions ``(measure, "=" or "<" or ">", number)``; undefined values meet none.
        sorts: title -> measure, after a minus highest first, undefined values last; empty for the order of the file.
            The first filter and the first sort are the default.
        data: of the questions at given places: ``questions`` (texts, options, right answers) and ``runs`` (measures by
            question; contents, labels and probabilities); called only when a page is written.
        size: how many questions there are.
        most_bytes: of :meth:`packed`; a random sample of the questions is shown where all of them are more.
    """

    explanation: str
    metric: Metric
    filters: Mapping[str, Sequence[tuple[str, str, float]]]
    sorts: Mapping[str, str]
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
            "filters": [{"title": title, "where": where} for title, where in self.filters.items()],
            "sorts": [
                {"title": title, "measure": measure.removeprefix("-"), "descending": measure.startswith("-")}
                for title, measure in self.sorts.items()
            ],
        }
        as_text = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        questions = deque(data.pop("questions"))
        packed = io.BytesIO()
        # A question at a time: there may be many. Level 9 takes six times as long, and saves 0.8 % of the bytes.
        with gzip.GzipFile("", "wb", 6, packed, mtime=0) as file:
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

    @property
    def title(self) -> str:
        """The name where there is little room."""
        return (name := self.own or self.metric.label)[:1].upper() + name[1:]

    @classmethod
    def row(cls, *tiles: tuple[str, Estimate] | tuple[str, Estimate, str]) -> tuple[Tile, ...]:
        """Tiles of the defined metrics: key, estimate and, if not that of the metric, name."""
        return tuple(cls(METRICS[tile[0]], *tile[1:]) for tile in tiles if tile[1].defined)


class Later(Generic[T]):
    """Panels or notes that are made each time a report is drawn, because the first screen shows none of them.

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
        caveats: what must be known before the first number, in full sentences, such as records left out.
        notes: omissions, failures and cost; all at once, or made :class:`Later`.
        settings: names and values.
        panels: all at once, or made :class:`Later`.
        example: a prompt as sent to the model.
        questions: makes the browser of single questions when a report is written; None without one.
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
    questions: Callable[[], QuestionBrowser | None] = field(default=lambda: None, compare=False)
    name: str = ""
    compared: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Python users read keywords and command-line users read flags, in files as on screen.
        object.__setattr__(self, "headline", for_the_caller(self.headline))
        object.__setattr__(self, "lines", tuple(map(for_the_caller, filter(None, self.lines))))
        object.__setattr__(self, "caveats", tuple(map(for_the_caller, self.caveats)))

    @property
    def sentences(self) -> Iterator[str]:
        """The notes, in the words of the interface used."""
        return map(for_the_caller, self.notes)

    @property
    def sections(self) -> tuple[Panel, ...]:
        """The panels that are not empty."""
        return tuple(panel for panel in self.panels if not panel.empty)


class Describes(Protocol):
    """A result that can be shown."""

    def page(self) -> Page: ...


def text(page: Page, width: int = 100, color: bool = False, details: bool = False) -> str:
    """The page as text.

    Args:
        width: columns; only numbers that do not fit exceed it.
        color: use terminal styles.
        details: every panel in full; otherwise caveats, headline and lines alone.
    """
    width = typed("width", width, int)
    if details:
        lines = [*_lines(page.about, width, color)[:2], *_drawn(_everything(page, width), width, color)]
    else:
        lines = _drawn((*page.caveats, _bold(page.headline), *page.lines), width, color)
        if isinstance(page.panels, Later) or any(panel.tables for panel in page.panels):
            lines.append(for_the_caller("All tables and notes: --details=True"))
    return "\n".join(lines) + "\n"


def outline(kind: str, page: Page) -> str:
    """Class, model, questions and headline in a few lines."""
    lines = [f"{kind}: {one_line(page.about)}", *map(one_line, (*page.caveats, page.headline))]
    return "\n".join(
        part for line in lines for part in wrap(shorten(line, _LONGEST, placeholder=" ..."), _PROMPT_WIDTH)
    )


def _everything(page: Page, width: int) -> Iterator[RenderableType]:
    yield from (*page.caveats, "", _bold(page.headline), "")
    if page.lines:
        yield from (*page.lines, "")
    if page.tiles:
        yield from (_tiles(page), "")
    for panel in page.sections:
        if panel.tables or panel.notes:
            yield from (_bold(panel.title), panel.explanation)
            for table in panel.tables:
                yield from ("", _bold(table.title), *[table.explanation] * bool(table.explanation))
                for i, block in enumerate(_blocks(table, width)):
                    yield from [""] * bool(i)
                    yield block
            for note in panel.notes:
                yield from ("", note)
            yield ""
    yield from (f"{name}: {value}" for name, value in page.settings)
    yield from page.sentences


def _tiles(page: Page) -> RichTable:
    grid = _grid()
    for head in ("", "value", "95 % interval", "N"):
        grid.add_column(head, justify="right" if head else "left", no_wrap=bool(head), overflow="fold")
    grid.add_column("")
    for tile in page.tiles:
        value, metric = tile.estimate, tile.metric
        row = (tile.name, number(value, metric), interval(value, metric), f"{value.n:,}", metric.meaning)
        grid.add_row(*map(escape, row))
    return grid


class _Strip(NamedTuple):
    """Columns kept together: a single one, or an estimate's value, interval and N."""

    columns: dict[str, list[str]]  # by head
    words: bool

    def wide(self, first: bool = False) -> int:
        whole = [max(map(len, (head, *cells))) for head, cells in self.columns.items()]
        return sum(min(w, _NAME if first else _WORDS) if self.words else w for w in whole) + _GAP * len(whole)


def _blocks(table: Table, width: int) -> Iterator[RichTable]:
    """The table in parts that fit the width, each with the row names."""
    strips = list(_strips(table))
    names, rest = strips[: table.names], strips[table.names :]
    while True:
        block, used = [*names], sum(name.wide(first=i == 0) for i, name in enumerate(names))
        while rest and (len(block) == len(names) or used + rest[0].wide() <= width + _GAP):
            used += rest[0].wide()
            block.append(rest.pop(0))
        grid = _grid()
        for i, strip in enumerate(block):
            justify: Literal["left", "right"] = "left" if i == 0 or strip.words else "right"
            for head in strip.columns:
                grid.add_column(escape(head), justify=justify, no_wrap=not strip.words, overflow="fold")
        for row in zip(*(cells for strip in block for cells in strip.columns.values()), strict=True):
            grid.add_row(*map(escape, row))
        yield grid
        if not rest:
            return


def _strips(table: Table) -> Iterator[_Strip]:
    rows, estimates, numeric, single = table.rows, table.estimate_columns, table.numeric, table.one_n
    for c, column in enumerate(table.columns):
        texts = {column.name: [number(row[c], table.how(r, c)) for r, row in enumerate(rows)]}
        ranges = [interval(cell, table.how(r, c)) for r, cell in enumerate(table.column(c))]
        if any(ranges):
            texts["95 % interval"] = ranges
        if c in estimates and (not single or c == estimates[-1]):
            cells = rows if single else [(row[c],) for row in rows]
            texts["N"] = ["" if n is None else f"{n:,}" for n in map(shared_n, cells)]
        yield _Strip(texts, c == 0 or (not numeric[c] and c not in estimates))


def _grid() -> RichTable:
    return RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))


def _bold(words: str) -> RenderableType:
    return Text(one_line(words), style="bold")


def _drawn(parts: Iterable[RenderableType], width: int, color: bool) -> list[str]:
    return [line for part in parts for line in _lines(part, width, color)]


def _lines(part: RenderableType, width: int, color: bool) -> list[str]:
    """One part as lines; strings are never markup."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=color, color_system="auto" if color else None)
    console.print(Text(one_line(part)) if isinstance(part, str) else part, highlight=False)
    return [line.rstrip() for line in stream.getvalue().splitlines()]
