"""Tables as CSV for machines and as LaTeX for papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unslant.arrays import json_number
from unslant.files import dump_json
from unslant.metrics import Estimate
from unslant.reports.escape import TYPOGRAPHY, csv_text, file_name, one_line, tex_needs
from unslant.reports.figure import Table, shared_n
from unslant.reports.figures import caption, made_by
from unslant.reports.numbers import RANGE, Cell, How, has_interval, number
from unslant.writing import make_folder, write_all, write_atomically

_LONG, _PARAGRAPH = 60, r"p{0.5\linewidth}"
"""Columns of longer texts are set in lines."""
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_SMALL, _END, _N, _NOTHING = "\ue000", "\ue001", "\ue002", "\ue003"
"""Placeholders for small print, the symbol N, and nothing until the text is escaped."""
_MARKS = TYPOGRAPHY | {_SMALL: r"{\scriptsize ", _END: "}", _N: "$N$", _NOTHING: "{}"}


def columns_of(table: Table) -> tuple[list[str], list[list[object]]]:
    """Heads and rows in full precision; estimates fill columns ``name``, ``name low``, ``name high`` and ``name n``.

    Undefined values are None, infinity is ``inf``.
    """
    estimates = set(table.estimate_columns)
    header: list[str] = []
    for i, column in enumerate(table.columns):
        header += [column.name] + [f"{column.name} {part}" for part in ("low", "high", "n") if i in estimates]
    rows = []
    for row in table.rows:
        cells: list[object] = []
        for i, cell in enumerate(row):
            if i in estimates:
                cells += _parts(cell)
            else:
                cells.append(json_number(cell) if isinstance(cell, float) else cell)
        rows.append(cells)
    return header, rows


def to_csv(table: Table) -> str:
    """The table as :func:`columns_of` gives it; undefined values are empty."""
    return csv_text(*columns_of(table))


def _parts(cell: Cell) -> list[object]:
    if not isinstance(cell, Estimate):
        return [cell, None, None, None]
    return [json_number(cell.value), json_number(cell.low), json_number(cell.high), cell.n if cell.defined else None]


def _tabular(rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    """Rows of text, heads first, as a ``tabular`` with LaTeX escaped."""
    from tabulate import tabulate

    flat = [[_set_off(" ".join(cell.split())) if c == 0 else " ".join(cell.split()) for c, cell in enumerate(row)]
            for row in rows]  # fmt: skip
    drawn = str(tabulate(flat[1:], flat[0], tablefmt="latex_booktabs", colalign=align, disable_numparse=True))
    letters = [name[0] for name in align]
    wide = [
        _PARAGRAPH if max(map(len, cells)) > _LONG else letters[i] for i, cells in enumerate(zip(*flat, strict=True))
    ]
    drawn = drawn.replace(f"{{{''.join(letters)}}}", f"{{{''.join(wide)}}}", 1)
    return "".join(_MARKS.get(character, character) for character in drawn)


def _set_off(cell: str) -> str:
    """The first cell of a row: the end of the row before takes a bracket or star that follows for its argument."""
    return (_NOTHING if cell[:1] in ("[", "*") else "") + cell


def to_latex(table: Table) -> str:
    """A ``table`` environment with ``booktabs`` rules, no wider than the text; intervals in small print."""
    estimates, single = table.estimate_columns, table.one_n
    align = ["right" if numeric else "left" for numeric in table.numeric]
    heads = [one_line(column.name) for column in table.columns]
    rows = [
        [_cell(cell, table.how(r, c), not single) for c, cell in enumerate(row)] for r, row in enumerate(table.rows)
    ]
    if single:
        at = estimates[-1] + 1
        align.insert(at, "right")
        for cells, shown in zip((heads, *rows), (_N, *(_n(row) for row in table.rows)), strict=True):
            cells.insert(at, shown)
    body = _tabular([heads, *rows], align)
    told = caption(table.title, table.explanation, _rests_on(table))
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{told}}}", rf"\label{{tab:{file_name(table.id)}}}",
        _FITTED, body + "}", r"\end{table}",
    ]  # fmt: skip
    return tex_needs("booktabs,graphicx", written := "\n".join(lines)) + written + "\n"


def _rests_on(table: Table) -> str:
    """N, and how the intervals in a table were made."""
    found = [cell for row in table.rows for cell in row if isinstance(cell, Estimate) and cell.defined]
    sizes = sorted({cell.n for cell in found})
    told = [f"N = {sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "")] if sizes else []
    methods = dict.fromkeys(cell.method for cell in found if has_interval(cell))
    ranges = [method for method in methods if method == RANGE]
    made = [method for method in methods if method != RANGE]
    told += [f"in small print 95 % intervals ({', '.join(made)})"] if made else []
    told += [f"in small print the {RANGE} value"] if ranges else []
    return "; ".join(told)


def _n(row: Sequence[Cell]) -> str:
    n = shared_n(row)
    return "" if n is None else f"{n:,}"


def _cell(cell: Cell, how: How, with_n: bool) -> str:
    text = number(cell, how)
    if not isinstance(cell, Estimate) or not cell.defined:
        return text
    if has_interval(cell):
        text += f" {_SMALL}[{', '.join(number(bound, how) for bound in (cell.low, cell.high))}]{_END}"
    return text + (f" {_SMALL}{_N}={cell.n:,}{_END}" if with_n else "")


def save_tables(tables: Sequence[Table], folder: Path, provenance: Sequence[Mapping[str, Any]] = ()) -> list[Path]:
    """Write every table as ``<id>.csv`` and ``<id>.tex``, and return the files.

    Args:
        provenance: how the results were made: a comment in every ``.tex``, and ``provenance.json`` beside them.
    """
    make_folder(folder)
    about = made_by(provenance)
    files = {
        folder / f"{file_name(table.id)}{suffix}": text
        for table in tables
        for suffix, text in ((".csv", to_csv(table)), (".tex", about + to_latex(table)))
    }
    made = {folder / "provenance.json": dump_json(list(provenance))} if provenance else {}
    write_all(*(partial(write_atomically, *file) for file in (files | made).items()))
    return list(files)
