"""What a report is made of. A study describes itself in panels, and the report shows them without knowing the study.

A study's result takes part by having a method ``panels()`` that returns :class:`Panel` objects. Texts are plain text:
the report escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from unslant.metrics import Estimate

Cell: TypeAlias = str | int | float | Estimate | None
"""What stands in a table; ``None`` is shown as a dash."""


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
    """One column of a table: its name, and for numbers the digits after the point."""

    name: str
    digits: int = 3
    explanation: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column names the row.

    Attributes:
        id: unique in the report; names its files.
        folded: shown only when asked for, being long.
        row_digits: digits of each row, where they go by row and not by column.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    explanation: str = ""
    folded: bool = False
    row_digits: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.id!r}: a row of {len(row)} cells under {len(self.columns)} columns")

    def digits(self, row: int, column: int) -> int:
        """Digits after the point of one cell."""
        return self.row_digits[row] if self.row_digits else self.columns[column].digits


@dataclass(frozen=True)
class Panel:
    """One section of the report: pictures and tables that answer one question.

    Attributes:
        id: unique in the report.
        title: the question, or its answer.
        explanation: one or two lines for a reader who has not met the metric.
        notes: what to keep in mind.
        short: title in the page's navigation; empty is the title itself.
    """

    id: str
    title: str
    explanation: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    short: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.charts or self.tables or self.notes)


class HasPanels(Protocol):
    """A study's result that a report can show."""

    def panels(self) -> Sequence[Panel]: ...
