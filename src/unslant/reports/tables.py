"""Tables as CSV for machines and as LaTeX for papers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from unslant.arrays import json_number
from unslant.metrics import Estimate
from unslant.reports.panels import Cell, Table

DASH = "–"
_NOISE = 1e-12


def cell_text(cell: Cell, digits: int = 3) -> str:
    """A cell as a person reads it, without its interval. A number that is not 0 never reads as 0 (nor does rounding in
    the last bits read as a number)."""
    value = cell.value if isinstance(cell, Estimate) else cell
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    least = 10.0**-digits
    if _NOISE < abs(value) < least / 2:
        return f"<{least:.{digits}f}" if value > 0 else f">−{least:.{digits}f}"
    return f"{value:.{digits}f}".replace("-", "−")


def interval_text(estimate: Estimate, digits: int = 3) -> str:
    """``low – high``, or nothing where the data allow none."""
    if not has_interval(estimate):
        return ""
    joined = "–" if estimate.low >= 0 else "to"
    return f"{cell_text(estimate.low, digits)} {joined} {cell_text(estimate.high, digits)}"


def has_interval(cell: Cell) -> bool:
    """Whether the cell is an estimate with an interval."""
    return isinstance(cell, Estimate) and cell.defined and not math.isnan(cell.low)


def shared_n(row: Sequence[Cell]) -> int | None:
    """The N of all estimates of a row, if they have the same; ``None`` if not."""
    found = {cell.n for cell in row if isinstance(cell, Estimate) and cell.defined}
    return found.pop() if len(found) == 1 else None


def one_n(table: Table) -> bool:
    """Whether every row has one N for all its numbers, so that a single column can tell it."""
    rows = [row for row in table.rows if any(isinstance(cell, Estimate) and cell.defined for cell in row)]
    return bool(rows) and all(shared_n(row) is not None for row in rows)


def estimate_columns(table: Table) -> list[int]:
    """Which columns hold estimates."""
    return [i for i in range(len(table.columns)) if any(isinstance(row[i], Estimate) for row in table.rows)]


def to_csv(table: Table) -> str:
    """The table in full precision: an estimate fills columns ``name``, ``name low``, ``name high`` and ``name n``.

    Undefined is empty, infinite ``inf``.
    """
    estimates = set(estimate_columns(table))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    header: list[str] = []
    for i, column in enumerate(table.columns):
        header += [column.name] + [f"{column.name} {part}" for part in ("low", "high", "n") if i in estimates]
    writer.writerow(header)
    for row in table.rows:
        cells: list[object] = []
        for i, cell in enumerate(row):
            if i in estimates:
                cells += _parts(cell)
            else:
                cells.append(json_number(cell) if isinstance(cell, float) else cell)
        writer.writerow(cells)
    return stream.getvalue()


def _parts(cell: Cell) -> list[object]:
    if not isinstance(cell, Estimate):
        return [cell, None, None, None]
    return [json_number(cell.value), json_number(cell.low), json_number(cell.high), cell.n if cell.defined else None]


_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$", "∞": r"$\infty$",
    "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "\n": " ",
}  # fmt: skip


def tex(text: str) -> str:
    """Plain text with everything LaTeX would take for a command escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def to_latex(table: Table) -> str:
    """A ``table`` environment with ``booktabs`` rules; intervals in small print beside their values."""
    estimates = estimate_columns(table)
    single = one_n(table)
    numeric = [
        i for i in range(len(table.columns)) if all(not isinstance(row[i], str) for row in table.rows) and table.rows
    ]
    align = "".join("r" if i in numeric else "l" for i in range(len(table.columns)))
    heads = [tex(column.name) for column in table.columns]
    at = estimates[-1] + 1 if single else len(heads)
    if single:
        heads.insert(at, "$N$")
        align = align[:at] + "r" + align[at:]
    lines = [r"\begin{table}", r"  \centering", rf"  \caption{{{_caption(table, bool(estimates))}}}"]
    lines += [rf"  \label{{tab:{table.id}}}", rf"  \begin{{tabular}}{{{align}}}", r"    \toprule"]
    lines += [f"    {' & '.join(heads)} \\\\", r"    \midrule"]
    for r, row in enumerate(table.rows):
        cells = [_tex_cell(cell, table.digits(r, c), not single) for c, cell in enumerate(row)]
        if single:
            n = shared_n(row)
            cells.insert(at, "" if n is None else f"{n:,}".replace(",", "{,}"))
        lines.append(f"    {' & '.join(cells)} \\\\")
    lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]
    return "% needs \\usepackage{booktabs}\n" + "\n".join(lines) + "\n"


def _caption(table: Table, intervals: bool) -> str:
    parts = [table.title, table.explanation, "95\\,\\% intervals in small print" if intervals else ""]
    return ". ".join(part if "\\" in part else tex(part).rstrip(".") for part in parts if part) + "."


def _tex_cell(cell: Cell, digits: int, with_n: bool) -> str:
    text = tex(cell_text(cell, digits))
    if not isinstance(cell, Estimate) or not cell.defined:
        return text
    if has_interval(cell):
        low, high = (tex(cell_text(bound, digits)) for bound in (cell.low, cell.high))
        text += rf" {{\scriptsize [{low}, {high}]}}"
    return text + (rf" {{\scriptsize $N={cell.n}$}}" if with_n else "")


def save_tables(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write every table as ``<id>.csv`` and ``<id>.tex``.

    Returns:
        the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in tables:
        for suffix, text in ((".csv", to_csv(table)), (".tex", to_latex(table))):
            written.append(folder / f"{table.id}{suffix}")
            written[-1].write_text(text, "utf-8")
    return written
