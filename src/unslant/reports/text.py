"""A page as terminal text: a few sentences, or everything with ``details``."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Literal, NamedTuple

from unslant.metrics import Estimate
from unslant.reports.escape import one_line
from unslant.reports.figure import Table, shared_n
from unslant.reports.numbers import RANGE, has_interval, interval, number
from unslant.reports.panels import Page

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

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
    lines = _everything(page, width, color) if details else _first_screen(page, width, color)
    return "\n".join(lines) + "\n"


def outline(kind: str, page: Page) -> str:
    """Class, model, questions and headline in a few lines."""
    lines = [f"{kind}: {one_line(page.about)}", *map(one_line, (*page.caveats, page.headline))]
    return "\n".join(
        part for line in lines for part in wrap(shorten(line, _LONGEST, placeholder=" ..."), _PROMPT_WIDTH)
    )


def _everything(page: Page, width: int, color: bool) -> list[str]:
    lines = [*_head(page, width, color), *([*_notes(page.lines, width), ""] if page.lines else [])]
    if page.tiles:
        lines += [*_drawn(_tiles(page), width, color), ""]
    for panel in page.sections:
        if not (panel.tables or panel.notes):
            continue
        lines += [*_drawn(_bold(panel.title), width, color), *_drawn(panel.explanation, width)]
        for table in panel.tables:
            lines += ["", *_titled(table, width, color)]
        lines += [line for note in panel.notes for line in ("", *_drawn(note, width))]
        lines.append("")
    for name, value in page.settings:
        lines += _drawn(f"{name}: {value}", width)
    return [*lines, *_notes(page.notes, width)]


def _first_screen(page: Page, width: int, color: bool) -> list[str]:
    caveats = [line for caveat in page.caveats for line in _drawn(caveat, width)]
    lines = [*caveats, *_drawn(_bold(page.headline), width, color), *_notes(page.lines, width)]
    more = any(panel.tables for panel in page.sections)
    return [*lines, "All tables and notes: --details, or summary(details=True)"] if more else lines


def _head(page: Page, width: int, color: bool) -> list[str]:
    about = _drawn(page.about, width)[:2]
    caveats = [line for caveat in page.caveats for line in _drawn(caveat, width)]
    return [*about, *caveats, "", *_drawn(_bold(page.headline), width, color), ""]


def _titled(table: Table, width: int, color: bool) -> Iterator[str]:
    yield from _drawn(_bold(table.title), width, color)
    yield from _drawn(table.explanation, width) if table.explanation else ()
    for i, block in enumerate(_blocks(table, width)):
        yield from [""] * bool(i)
        yield from _drawn(block, width, color)


def _tiles(page: Page) -> RichTable:
    drawn = _grid()
    for head in ("", "value", "95 % interval", "N"):
        drawn.add_column(head, justify="right" if head else "left", no_wrap=bool(head), overflow="fold")
    drawn.add_column("")
    for tile in page.tiles:
        value, metric = tile.estimate, tile.metric
        row = (tile.name, number(value, metric), interval(value, metric), f"{value.n:,}", metric.meaning)
        drawn.add_row(*map(_plain, row))
    return drawn


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
        drawn = _grid()
        for i, strip in enumerate(block):
            for head in strip.heads:
                left = i == 0 or strip.words
                justify: Literal["left", "right"] = "left" if left else "right"
                drawn.add_column(_plain(head), justify=justify, no_wrap=not strip.words, overflow="fold")
        for r in range(len(table.rows)):
            drawn.add_row(*[_plain(cell) for strip in block for cell in strip.cells[r]])
        yield drawn
        if not rest:
            return


def _strips(table: Table) -> Iterator[_Strip]:
    rows, estimates, numeric, single = table.rows, table.estimate_columns, table.numeric, table.one_n
    for c, column in enumerate(table.columns):
        heads, cells = [column.name], [[number(row[c], table.how(r, c))] for r, row in enumerate(rows)]

        def beside(head: str, shown: Sequence[str], heads: list[str] = heads, cells: list[list[str]] = cells) -> None:
            heads.append(head)
            for row, text in zip(cells, shown, strict=True):
                row.append(text)

        found = [row[c] if isinstance(row[c], Estimate) else None for row in rows]
        own = [cell for cell in table.column(c) if has_interval(cell)]
        if own:
            ranges = all(isinstance(cell, Estimate) and cell.method == RANGE for cell in own)
            shown = [interval(e, table.how(r, c)) if isinstance(e, Estimate) else "" for r, e in enumerate(found)]
            beside(RANGE if ranges else "95 % interval", shown)
        if c in estimates and not single:
            beside("N", [f"{e.n:,}" if isinstance(e, Estimate) and e.defined else "" for e in found])
        if single and c == estimates[-1]:
            beside("N", ["" if n is None else f"{n:,}" for n in map(shared_n, rows)])
        yield _Strip(heads, cells, c == 0 or (not numeric[c] and c not in estimates))


def _notes(notes: Sequence[str], width: int) -> list[str]:
    return [line for note in notes for line in _drawn(note, width)]


def _grid() -> RichTable:
    from rich.table import Table as RichTable

    return RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))


def _plain(words: str) -> str:
    from rich.markup import escape

    return escape(words)


def _bold(words: str) -> RenderableType:
    from rich.text import Text

    return Text(words, style="bold")


def _drawn(part: RenderableType, width: int, color: bool = False) -> list[str]:
    """One part as lines; strings are never markup."""
    from rich.console import Console
    from rich.text import Text

    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=color, color_system="auto" if color else None)
    console.print(Text(one_line(part)) if isinstance(part, str) else part, highlight=False)
    return [line.rstrip() for line in stream.getvalue().splitlines()]
