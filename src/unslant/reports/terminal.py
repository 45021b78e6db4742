"""A page as terminal text: a few sentences, or everything with ``details``."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from unslant.errors import for_the_caller, one_line
from unslant.metrics import Estimate
from unslant.reports.numbers import has_interval, interval, number, shared_n
from unslant.reports.panels import Page

if TYPE_CHECKING:
    from unslant.reports.figure import Table

_GAP = 2
_NAME, _WORDS = 44, 26
"""Column widths of row names and of running text in wide tables."""
_PROMPT_WIDTH, _LONGEST = 100, 400
"""Of lines, and letters of a text, at the prompt of an interactive session."""


def text(page: Page, width: int = 100, color: bool = False, details: bool = False) -> str:
    """The page as text.

    Args:
        width: columns; only numbers that do not fit exceed it.
        color: use terminal styles.
        details: every panel in full; otherwise caveats, headline and lines alone.
    """
    if details:
        lines = [*_lines(page.about, width, color)[:2], *_drawn(_everything(page, width), width, color)]
    else:
        lines = _drawn((*page.caveats, _bold(page.headline), *page.lines), width, color)
        lines += [for_the_caller("All tables and notes: --details=True")] * page.has_tables
    return "\n".join(lines) + "\n"


def outline(kind: str, page: Page) -> str:
    """Class, model, questions and headline in a few lines."""
    lines = [f"{kind}: {one_line(page.about)}", *map(one_line, (*page.caveats, page.headline))]
    return "\n".join(
        part for line in lines for part in wrap(shorten(line, _LONGEST, placeholder=" ..."), _PROMPT_WIDTH)
    )


def _everything(page: Page, width: int) -> Iterator[RenderableType]:
    yield from (*page.caveats, "")
    yield _bold(page.headline)
    yield ""
    if page.lines:
        yield from (*page.lines, "")
    if page.tiles:
        yield _tiles(page)
        yield ""
    for panel in page.sections:
        if panel.tables or panel.notes:
            yield _bold(panel.title)
            yield panel.explanation
            for table in panel.tables:
                yield ""
                yield _bold(table.title)
                if table.explanation:
                    yield table.explanation
                for i, block in enumerate(_blocks(table, width)):
                    yield from [""] * bool(i)
                    yield block
            for note in panel.notes:
                yield from ("", note)
            yield ""
    yield from (f"{name}: {value}" for name, value in page.settings)
    yield from page.notes


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

    heads: list[str]
    cells: list[list[str]]  # by row
    words: bool

    def wide(self, first: bool = False) -> int:
        whole = [max(map(len, column)) for column in zip(self.heads, *self.cells, strict=True)]
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
            for head in strip.heads:
                left = i == 0 or strip.words
                justify: Literal["left", "right"] = "left" if left else "right"
                grid.add_column(escape(head), justify=justify, no_wrap=not strip.words, overflow="fold")
        for r in range(len(table.rows)):
            grid.add_row(*[escape(cell) for strip in block for cell in strip.cells[r]])
        yield grid
        if not rest:
            return


def _strips(table: Table) -> Iterator[_Strip]:
    rows, estimates, numeric, single = table.rows, table.estimate_columns, table.numeric, table.one_n
    for c, column in enumerate(table.columns):
        heads, texts = [column.name], [[number(row[c], table.how(r, c)) for r, row in enumerate(rows)]]
        cells = [cell if isinstance(cell, Estimate) else None for cell in table.column(c)]
        if any(map(has_interval, cells)):
            heads.append("95 % interval")
            texts.append([interval(cell, table.how(r, c)) if cell else "" for r, cell in enumerate(cells)])
        if c in estimates and not single:
            heads.append("N")
            texts.append([f"{cell.n:,}" if cell and cell.defined else "" for cell in cells])
        if single and c == estimates[-1]:
            heads.append("N")
            texts.append(["" if n is None else f"{n:,}" for n in map(shared_n, rows)])
        by_row = [list(row) for row in zip(*texts, strict=True)]
        yield _Strip(heads, by_row, c == 0 or (not numeric[c] and c not in estimates))


def _grid() -> RichTable:
    return RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))


def _bold(words: str) -> Text:
    return Text(one_line(words), style="bold")


def _drawn(parts: Iterable[RenderableType], width: int, color: bool) -> list[str]:
    return [line for part in parts for line in _lines(part, width, color)]


def _lines(part: RenderableType, width: int, color: bool) -> list[str]:
    """One part as lines; strings are never markup."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=color, color_system="auto" if color else None)
    console.print(Text(one_line(part)) if isinstance(part, str) else part, highlight=False)
    return [line.rstrip() for line in stream.getvalue().splitlines()]
