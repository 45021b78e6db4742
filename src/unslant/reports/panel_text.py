"""Panels as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import table as rich_table
from rich.markup import escape

from unslant.metrics.estimate import Estimate
from unslant.reports.panels import Cell, Panel, Table
from unslant.reports.terminal import interval, number, render

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_ROWS = 20


def text(headline: str, panels: Sequence[Panel], width: int = 100, color: bool = False) -> str:
    """The headline, then every table of every panel with its notes; long tables are cut, and say so."""
    parts: list[RenderableType] = [f"[bold]{escape(headline)}[/bold]\n"]
    for panel in panels:
        for table in panel.tables:
            parts += [f"[bold]{escape(table.title)}[/bold]", _drawn(table), ""]
        parts += [escape(f"{note}") for note in panel.notes]
        if panel.notes:
            parts.append("")
    return render(*parts, width=width, color=color).rstrip() + "\n"


def _drawn(table: Table) -> rich_table.Table:
    """The table; an estimate takes three columns: value, interval and N."""
    drawn = rich_table.Table(box=None, pad_edge=False)
    estimates = [any(isinstance(row[i], Estimate) for row in table.rows) for i in range(len(table.columns))]
    for i, (column, wide) in enumerate(zip(table.columns, estimates, strict=True)):
        drawn.add_column(escape(column.name), justify="left" if i == 0 else "right", no_wrap=i > 0, overflow="fold")
        if wide:
            drawn.add_column("95 % interval", justify="right", no_wrap=True)
            drawn.add_column("N", justify="right", no_wrap=True)
    for row in table.rows[:MOST_ROWS]:
        cells: list[str] = []
        for cell, column, wide in zip(row, table.columns, estimates, strict=True):
            cells += _cells(cell, column.digits, wide)
        drawn.add_row(*cells)
    if len(table.rows) > MOST_ROWS:
        drawn.add_row(f"... and {len(table.rows) - MOST_ROWS} more (--json has all)")
    return drawn


def _cells(cell: Cell, digits: int, wide: bool) -> list[str]:
    if isinstance(cell, Estimate):
        return [number(cell, digits), interval(cell, digits), f"{cell.n:,}"]
    if cell is None or cell != cell:
        shown = "–"
    elif isinstance(cell, float):
        shown = f"{cell:.{digits}f}"
    else:
        shown = f"{cell:,}" if isinstance(cell, int) else escape(cell)
    return [shown, "", ""] if wide else [shown]
