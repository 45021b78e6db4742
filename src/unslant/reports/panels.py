"""The parts of a report.

A study describes itself once, as a :class:`Page`, from which terminal text and HTML are rendered. Texts are plain; the
renderers escape them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from unslant.metrics import METRICS, Estimate, Metric
from unslant.reports.browser import QuestionBrowser
from unslant.reports.numbers import Cell, How


@dataclass(frozen=True)
class Style:
    """Size and colours of charts.

    Attributes:
        width: pixels, or ``container`` to fill the page.
        ink, muted, line: text, secondary text, grids and axes.
        accent, contrast, faint: subject of the chart, what it is compared with, background.
        series: colours of compared series, see :meth:`looks`.
        size: of the text in pixels; marks and rows go with it.
        compared: the runs of the page, each of which looks the same in every chart.
    """

    width: int | Literal["container"]
    ink: str
    muted: str
    line: str
    accent: str
    contrast: str
    faint: str
    surface: str
    series: tuple[str, ...]
    size: int = 12
    compared: tuple[str, ...] = ()

    def looks(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """A colour and a shape for each name: those of its meaning, else the next that no meaning has.

        Up to 24 names without a meaning differ from each other in colour or shape.
        """
        others = [*self.compared, *(name for name in names if name not in self.compared and name not in MEANINGS)]
        free = self.series[len(set(MEANINGS.values())) :]
        found = []
        for name in names:
            at = MEANINGS.get(name)
            if at is None:
                i = others.index(name)
                found.append((free[i % len(free)], SHAPES[(i + i // len(free)) % len(SHAPES)]))
            else:
                found.append((self.series[at], SHAPES[at]))
        return found

    def colour(self, name: str) -> str | None:
        """The colour of a name that means the same in every chart, else None."""
        return self.series[MEANINGS[name]] if name in MEANINGS else None

    def scaled(self, pixels: float) -> float:
        """A length for text of 12 pixels, as large beside the text of this style."""
        return round(pixels * self.size / 12, 2)


SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
MEANINGS: Mapping[str, int] = {
    "mean over orders": 0, "under interventions": 0, "gained": 0,
    "as reported": 1, "as published": 1, "undebiased": 1, "lost": 1,
    "right in every order": 2, "right in both": 2,
    "voted": 3,
    "right in neither": 4,
}  # fmt: skip
"""Which of :attr:`Style.series` a name has in every chart."""


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        id: unique in the report; also the file name.
        explanation: how to read it, in one line.
        draw: makes an altair chart or a Vega-Lite specification in a style; ``n`` in its data is shown beside it.
        of: what N counts.
    """

    id: str
    title: str
    explanation: str
    draw: Callable[[Style], Any] = field(compare=False)
    of: str = "questions"


@dataclass(frozen=True)
class Column:
    """One column of a table, with its number format."""

    name: str
    how: How = 3
    explanation: str = ""

    @classmethod
    def of(cls, key: str, name: str = "") -> Column:
        """A column of the metric ``key``, by default under its short name."""
        metric = METRICS[key]
        return cls(name or metric.label, metric, metric.meaning)


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column, or several, name the row.

    Attributes:
        id: unique in the report; also the file name.
        folded: initially closed in HTML, and never on the first screen of the terminal.
        by_row: the metric of each row, where rows determine the number format.
        names: leading columns that together name the row; they stand in every part of a table too wide for the screen.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    explanation: str = ""
    folded: bool = False
    by_row: tuple[Metric, ...] = ()
    names: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.id!r}: a row of {len(row)} cells under {len(self.columns)} columns")

    @classmethod
    def of_metrics(
        cls, id: str, title: str, by_column: Mapping[str, Mapping[str, Cell]], methods: bool = False, **options: Any
    ) -> Table:
        """One row per metric defined in any column, with its values and meaning.

        Args:
            by_column: column name -> metric key -> value.
            methods: add a column with the interval method.
        """
        keys = dict.fromkeys(key for found in by_column.values() for key, value in found.items() if defined(value))
        rows: list[tuple[Cell, ...]] = []
        for metric in (METRICS[key] for key in keys):
            values = [found.get(metric.key) for found in by_column.values()]
            unit = f", in {metric.unit}" if metric.unit not in ("", "%") else ""
            method = next((value.method for value in values if isinstance(value, Estimate)), "")
            rows.append((metric.name, *values, metric.meaning + unit, *([method] if methods else [])))
        names = ("metric", *by_column, "meaning", *(["interval by"] if methods else []))
        by_row = tuple(METRICS[key] for key in keys)
        return cls(id, title, tuple(map(Column, names)), tuple(rows), by_row=by_row, **options)

    def how(self, row: int, column: int) -> How:
        """Format of one cell: that of the column's metric, else of the row; differences have the row's digits."""
        own = self.columns[column].how
        if not self.by_row or (isinstance(own, Metric) and not own.signed):
            return own
        return replace(self.by_row[row], signed=True) if isinstance(own, Metric) else self.by_row[row]

    def column(self, index: int) -> list[Cell]:
        return [row[index] for row in self.rows]

    @property
    def estimate_columns(self) -> list[int]:
        """Indices of columns with estimates."""
        return [i for i in range(len(self.columns)) if any(isinstance(cell, Estimate) for cell in self.column(i))]

    @property
    def numeric(self) -> list[bool]:
        """For each column, whether it is free of text."""
        columns = map(self.column, range(len(self.columns)))
        return [bool(cells) and not any(isinstance(cell, str) for cell in cells) for cells in columns]

    @property
    def one_n(self) -> bool:
        """Whether each row has a single N, so that one column can show it."""
        rows = [row for row in self.rows if any(isinstance(cell, Estimate) and cell.defined for cell in row)]
        return bool(rows) and all(shared_n(row) is not None for row in rows)


def defined(cell: Cell) -> bool:
    """Whether there is a value to show."""
    return cell.defined if isinstance(cell, Estimate) else cell is not None and cell == cell


def shared_n(row: Sequence[Cell]) -> int | None:
    """The common N of a row's estimates, or ``None``."""
    found = {cell.n for cell in row if isinstance(cell, Estimate) and cell.defined}
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class Panel:
    """One section of the report: charts and tables that answer one question.

    Attributes:
        id: unique in the report.
        explanation: one or two lines for readers new to the metric.
        short: title in the page navigation, if ``title`` is longer than a word or two.
        first_screen: show its tables on the first terminal screen if there is room.
        reference: placed after the questions in HTML.
    """

    id: str
    title: str
    explanation: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    short: str = ""
    first_screen: bool = False
    reference: bool = False

    @property
    def empty(self) -> bool:
        return not (self.charts or self.tables or self.notes)


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
    def row(cls, *found: tuple[str, Estimate] | tuple[str, Estimate, str]) -> tuple[Tile, ...]:
        """Tiles of the defined metrics: key, estimate and, if not that of the metric, name."""
        return tuple(cls(METRICS[tile[0]], *tile[1:]) for tile in found if tile[1].defined)


@dataclass(frozen=True)
class Page:
    """A study's result as shown to a reader.

    Attributes:
        about: model and questions: ``prefers-a on embedded: 400 questions, each in 2 to 24 orders``.
        headline: the outcome in a sentence, for terminal, HTML and JSON.
        caveats: what must be known before the first number, in sentences, which nothing shortens: records left out.
        lead: a second sentence.
        notes: omissions, failures and cost.
        settings: names and values.
        example: a prompt as sent to the model.
        name: title of the browser tab, usually the model.
        compared: names of the runs shown side by side.
        provenance: how the result was made, see :class:`unslant.responses.provenance.Provenance`.
    """

    about: str
    headline: str
    lead: str = ""
    tiles: tuple[Tile, ...] = ()
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    example: str = ""
    questions: QuestionBrowser | None = None
    name: str = ""
    compared: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @property
    def sections(self) -> tuple[Panel, ...]:
        """The panels that are not empty."""
        return tuple(panel for panel in self.panels if not panel.empty)


class Describes(Protocol):
    """A result that can be shown."""

    def page(self) -> Page: ...
