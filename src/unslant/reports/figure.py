"""Figures: rows under columns, from which both the table and the charts are made; and panels of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from unslant.errors import for_the_caller
from unslant.metrics import METRICS, Estimate, Metric
from unslant.reports.numbers import Cell, How, count, shared_n
from unslant.reports.style import Mark, Style

Row: TypeAlias = Mapping[Any, Any]
"""Cells by the key of their column, or by metric; and anything else that a plot draws."""


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        id: unique in the report; also the file name.
        explanation: how to read it, in one line.
        draw: makes an altair chart or a Vega-Lite specification in a style; ``n`` in its data is shown with it.
        of: what N counts.
    """

    id: str
    title: str
    explanation: str
    draw: Callable[[Style], Any] = field(compare=False)
    of: str = "questions"


@dataclass(frozen=True)
class Column:
    """One column of a table, with its number format.

    Attributes:
        key: of its cells in the rows of a figure; by default its name.
    """

    name: str
    how: How = 3
    explanation: str = ""
    key: str = ""

    @classmethod
    def of(cls, key: str, name: str = "") -> Column:
        """A column of the metric ``key``, by default under its short name."""
        metric = METRICS[key]
        return cls(name or metric.label, metric, metric.meaning, key)

    def cell(self, row: Mapping[Any, Any]) -> Any:
        """Its cell in a row: under its key, the last part of it (``accuracy`` for ``alone.accuracy``) or its metric."""
        key = self.key or self.name
        keys = (key, key.rpartition(".")[2], self.how)
        return next((row[one] for one in keys if one in row), None)


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column, or several, name the row.

    Attributes:
        id: unique in the report; also the file name.
        folded: initially closed in HTML, and never on the first screen of the terminal.
        by_row: the metric of each row, where rows determine the number format.
        names: leading columns that together name the row; they are in every part of a table too wide for the screen.
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

    def how(self, row: int, column: int) -> How:
        """Format of one cell: that of the column's metric, else of the row; differences have the row's digits."""
        how = self.columns[column].how
        if not self.by_row or (isinstance(how, Metric) and not how.signed):
            return how
        return replace(self.by_row[row], signed=True) if isinstance(how, Metric) else self.by_row[row]

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


@dataclass(frozen=True)
class Plot:
    """How rows of a figure are drawn.

    Attributes:
        kind: one of :mod:`unslant.reports.charts`, with its own options: ``partial(charts.intervals, line=0.25)``.
        explanation: how to read it, in one line.
        values: keys of the columns drawn, several as series; or keys with the names of their series.
        title, id: where they are not those of the figure.
        name: keys of the cells that name a mark; by default those that name the row.
        series, dash: keys of the cells that name the series and the kind of line.
        at: key of the place on a horizontal axis of numbers.
        expected: what a value would be without bias, from the row and the key of the value.
        out: whether a row is highlighted.
        where: whether a row is drawn.
        across: the rows are series, and the columns the rows of the chart.
        most: rows drawn; the title says if there are more.
        rows: what a row of the chart is; by default what names a row of the figure.
        of: what N counts.
    """

    kind: Callable[..., Any]
    explanation: str
    values: Sequence[str] | Mapping[str, str]
    title: str = ""
    id: str = ""
    name: Sequence[str] = ()
    series: str = ""
    dash: str = ""
    at: str = ""
    expected: Callable[[Row, str], Cell] | None = None
    out: Callable[[Row], bool] | None = None
    where: Callable[[Row], bool] | None = None
    across: bool = False
    most: int | None = None
    rows: str = ""
    of: str = "questions"


@dataclass(frozen=True)
class Figure:
    """Rows under columns: one table, and charts of the same rows.

    Attributes:
        id: unique in the report; also the file name.
        names: columns that name a row, by key or whole.
        columns: metrics by key, or whole columns.
        rows: cells by key, or by metric; those that are not there are empty.
        plots: charts of the rows, or ready-made charts.
        explanation: what the table holds.
        folded: see :class:`Table`.
        by_row: the metric of each row, where rows determine the number format.
        drawn_only: whether to leave out the table, because another has the same numbers.

    Examples:
        >>> rows = [{"model": "a", "accuracy": Estimate.bare(0.5, 8, "made")}]
        >>> Figure("scores", "Scores", ["model"], ["accuracy"], rows).table.rows[0][0]
        'a'
    """

    id: str
    title: str
    names: Sequence[str | Column]
    columns: Sequence[str | Column]
    rows: Sequence[Row]
    plots: Sequence[Plot | Chart] = ()
    explanation: str = ""
    folded: bool = False
    by_row: tuple[Metric, ...] = ()
    drawn_only: bool = False

    @classmethod
    def of_metrics(
        cls,
        id: str,
        title: str,
        by_column: Mapping[str, Mapping[str, Cell]],
        plots: Sequence[Plot | Chart] = (),
        *,
        folded: bool = False,
        methods: bool = False,
    ) -> Figure:
        """One row per metric defined in any column, with its values and meaning.

        Plots find the metric under ``metric.key`` and its short name, by which marks are named, under ``metric.label``.

        Args:
            by_column: column name -> metric key -> value.
            methods: add a column with the interval method.
        """
        keys = dict.fromkeys(key for values in by_column.values() for key, value in values.items() if defined(value))
        metrics = tuple(METRICS[key] for key in keys)
        rows = []
        for metric in metrics:
            cells: dict[str, Cell] = {name: values.get(metric.key) for name, values in by_column.items()}
            method = next((cell.method for cell in cells.values() if isinstance(cell, Estimate)), "")
            unit = f", in {metric.unit}" if metric.unit not in ("", "%") else ""
            about = {"key": metric.key, "name": metric.name, "label": metric.label, "meaning": metric.meaning + unit}
            words = {f"metric.{key}": text for key, text in (about | {"method": method}).items()}
            rows.append({**words, **cells})
        more = [Column("meaning", key="metric.meaning"), *[Column("interval by", key="metric.method")] * methods]
        named_plots = [
            replace(plot, name=plot.name or ["metric.label"]) if isinstance(plot, Plot) else plot for plot in plots
        ]
        names, columns = [Column("metric", key="metric.name")], [*map(Column, by_column), *more]
        return cls(id, title, names, columns, rows, named_plots, folded=folded, by_row=metrics)

    @property
    def heads(self) -> tuple[Column, ...]:
        """Every column, those that name the row first."""
        names = [Column(one) if isinstance(one, str) else one for one in self.names]
        return (*names, *(Column.of(one) if isinstance(one, str) else one for one in self.columns))

    @property
    def table(self) -> Table:
        """The rows as a table."""
        cells = tuple(tuple(column.cell(row) for column in self.heads) for row in self.rows)
        about = (self.explanation, self.folded, self.by_row, len(self.names))
        return Table(self.id, self.title, self.heads, cells, *about)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The table, if it is shown and has a row."""
        return (self.table,) if self.rows and not self.drawn_only else ()

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts that have something to draw."""
        charts = [plot if isinstance(plot, Chart) else self._chart(plot) for plot in self.plots]
        return tuple(chart for chart in charts if chart is not None)

    def _chart(self, plot: Plot) -> Chart | None:
        marks = self.marks(plot)
        if not marks:
            return None
        total, cut = len(self.rows), ""
        if plot.most and total > plot.most:
            cut = f" (the first {plot.most} of {count(total, 'subject')})"
        how = self._column(next(iter(plot.values))).how
        if self.by_row and not isinstance(how, Metric):
            how = next(
                how for row, how in zip(self.rows, self.by_row, strict=True) if not plot.where or plot.where(row)
            )
        draw = partial(plot.kind, marks, rows=plot.rows or self.heads[0].name, how=how)
        return Chart(plot.id or self.id, (plot.title or self.title) + cut, plot.explanation, draw, plot.of)

    def panel(self, title: str, explanation: str, *, id: str = "", short: str = "", notes: Sequence[str] = ()) -> Panel:
        """A section of a page with this figure alone, by default under the figure's id; see :class:`Panel`.

        Args:
            short: by default the title of the figure.
        """
        return Panel(
            id or self.id, title, explanation, self.charts, self.tables, tuple(notes), short=short or self.title
        )

    def marks(self, plot: Plot) -> list[Mark]:
        """What a plot draws: one mark for each defined value of each row."""
        labels = (
            plot.values if isinstance(plot.values, Mapping) else {key: self._column(key).name for key in plot.values}
        )
        rows = [row for row in self.rows if plot.where is None or plot.where(row)][: plot.most]
        keys, marks = plot.name or [column.key or column.name for column in self.heads[: len(self.names)]], []
        for row in rows:
            name = ", ".join(str(self._column(key).cell(row)) for key in keys)
            series = str(row[plot.series]) if plot.series else ""
            for key, label in labels.items():
                value = _estimate(self._column(key).cell(row))
                if not value.defined:
                    continue
                ends = (label, name * (len(rows) > 1)) if plot.across else (name, series or label * (len(labels) > 1))
                reference = _estimate(plot.expected(row, key) if plot.expected else None).value
                marks.append(
                    Mark(
                        *(ends[0], value, ends[1]),
                        expected=reference if math.isfinite(reference) else None,
                        stands_out=plot.out is not None and plot.out(row),
                        dash=str(row[plot.dash]) if plot.dash else "",
                        at=self._column(plot.at).cell(row) if plot.at else None,
                    )
                )
        return marks

    def _column(self, key: str) -> Column:
        """The column of a key; of one that only plots draw, that of its metric."""
        in_table = next((column for column in self.heads if key in (column.key, column.name)), None)
        return in_table or (Column.of(key) if key in METRICS else Column(key))


@dataclass(frozen=True)
class Panel:
    """One section of the report: charts and tables that answer one question.

    Attributes:
        id: unique in the report.
        explanation: one or two lines for readers new to the metric.
        short: title in the page navigation, if ``title`` is longer than a word or two.
        reference: placed after the questions in HTML.
        figures: their charts and tables follow those given.
    """

    id: str
    title: str
    explanation: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    short: str = ""
    reference: bool = False
    figures: InitVar[Sequence[Figure]] = ()

    def __post_init__(self, figures: Sequence[Figure]) -> None:
        for name in ("charts", "tables"):
            more = tuple(item for figure in figures for item in getattr(figure, name))
            object.__setattr__(self, name, (*getattr(self, name), *more))
        object.__setattr__(self, "explanation", for_the_caller(self.explanation))
        object.__setattr__(self, "notes", tuple(map(for_the_caller, self.notes)))

    @property
    def empty(self) -> bool:
        return not (self.charts or self.tables or self.notes)


def _estimate(cell: Cell) -> Estimate:
    """A cell as drawn: counts and numbers have no interval."""
    if isinstance(cell, Estimate):
        return cell
    if isinstance(cell, int | float) and math.isfinite(cell):
        return Estimate.bare(float(cell), round(cell), "")
    return Estimate.undefined("")
