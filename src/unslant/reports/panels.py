"""What a report is made of.

A study describes itself once, as a :class:`Page`; the terminal and the HTML report are drawn from it, and know no
study. Texts are plain text: the renderers escape them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from unslant.metrics import METRICS, Estimate, Metric
from unslant.reports.browser import QuestionBrowser
from unslant.reports.numbers import Cell, How


@dataclass(frozen=True)
class Style:
    """How a chart is drawn: sizes and colours. A chart uses no colour of its own.

    Attributes:
        width: pixels, or ``container`` to fill the page.
        ink, muted, line: of text, of secondary text, of grids and axes.
        accent: of what the chart is about.
        contrast: of what is set against it.
        faint: of what is only background.
        series: one colour per run, where several are compared.
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


@dataclass(frozen=True)
class Chart:
    """One picture.

    Attributes:
        id: unique in the report; names its file.
        title, explanation: what is shown, and how to read it, in a line each.
        draw: from a style to an altair chart (or the plain Vega-Lite specification).
    """

    id: str
    title: str
    explanation: str
    draw: Callable[[Style], Any]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        how: how its numbers are written: the metric it holds, or digits after the point.
    """

    name: str
    how: How = 3
    explanation: str = ""

    @classmethod
    def of(cls, key: str, name: str = "") -> Column:
        """A column of the metric with this key, by default under its short name."""
        metric = METRICS[key]
        return cls(name or metric.label, metric, metric.meaning)


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column names the row.

    Attributes:
        id: unique in the report; names its files.
        folded: closed on the page until asked for, being long, and never on the first screen of the terminal.
        by_row: the metric of each row, where numbers are written by row and not by column.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    explanation: str = ""
    folded: bool = False
    by_row: tuple[Metric, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.id!r}: a row of {len(row)} cells under {len(self.columns)} columns")

    @classmethod
    def of_metrics(
        cls, id: str, title: str, by_column: Mapping[str, Mapping[str, Cell]], methods: bool = False, **options: Any
    ) -> Table:
        """One metric a row, by key, with its values and meaning; those defined nowhere are left out.

        Args:
            by_column: name of a column of values -> key of a metric -> value.
            methods: a column too that tells how the intervals were made.
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
        """How one cell is written: as its column's metric says, else its row's; differences have the row's digits."""
        own = self.columns[column].how
        if not self.by_row or (isinstance(own, Metric) and not own.signed):
            return own
        return replace(self.by_row[row], signed=True) if isinstance(own, Metric) else self.by_row[row]

    def column(self, index: int) -> list[Cell]:
        """The cells of one column."""
        return [row[index] for row in self.rows]

    @property
    def estimate_columns(self) -> list[int]:
        """Which columns hold estimates."""
        return [i for i in range(len(self.columns)) if any(isinstance(cell, Estimate) for cell in self.column(i))]

    @property
    def numeric(self) -> list[bool]:
        """For each column whether it holds no text."""
        columns = map(self.column, range(len(self.columns)))
        return [bool(cells) and not any(isinstance(cell, str) for cell in cells) for cells in columns]

    @property
    def one_n(self) -> bool:
        """Whether every row has one N for all its numbers, so that a single column can tell it."""
        rows = [row for row in self.rows if any(isinstance(cell, Estimate) and cell.defined for cell in row)]
        return bool(rows) and all(shared_n(row) is not None for row in rows)


def defined(cell: Cell) -> bool:
    """Whether there is a value to show."""
    return cell.defined if isinstance(cell, Estimate) else cell is not None and cell == cell


def shared_n(row: Sequence[Cell]) -> int | None:
    """The N of all estimates of a row, if they have the same; ``None`` if not."""
    found = {cell.n for cell in row if isinstance(cell, Estimate) and cell.defined}
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class Panel:
    """One section of the report: pictures and tables that answer one question.

    Attributes:
        id: unique in the report.
        title: the question, or its answer.
        explanation: one or two lines for a reader who has not met the metric.
        notes: what to keep in mind.
        short: title in the page's navigation; empty is the title itself.
        first_screen: whether the terminal shows its tables without being asked for details, as far as there is room.
        reference: to look things up in; the page has it after the questions.
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
        """Whether there is nothing to show."""
        return not (self.charts or self.tables or self.notes)


@dataclass(frozen=True)
class Tile:
    """One of the few numbers at the top."""

    metric: Metric
    estimate: Estimate

    @classmethod
    def row(cls, *found: tuple[str, Estimate]) -> tuple[Tile, ...]:
        """Tiles of metrics by key; undefined ones are left out."""
        return tuple(cls(METRICS[key], estimate) for key, estimate in found if estimate.defined)


@dataclass(frozen=True)
class Page:
    """What a study's result says of itself.

    Attributes:
        about: what was asked of whom: ``prefers-a on embedded: 400 questions, each in 2 to 24 orders``.
        headline: the outcome in a sentence; the terminal, the page and JSON have this one.
        lead: a sentence more.
        tiles: the numbers to see first.
        panels: everything.
        notes: what was left out, what failed, what it cost.
        settings: how the numbers came about, as names and values.
        example: a prompt as it was sent.
        questions: where questions can be looked at one by one.
        name: of the page in a browser's tab, usually the model.
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

    @property
    def sections(self) -> tuple[Panel, ...]:
        """The panels that hold anything."""
        return tuple(panel for panel in self.panels if not panel.empty)


class Describes(Protocol):
    """A result that can be shown."""

    def page(self) -> Page: ...
