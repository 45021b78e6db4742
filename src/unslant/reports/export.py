"""Charts and tables as files for papers and machines, and as pandas DataFrames; everything works offline."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from unslant.arrays import json_number
from unslant.errors import InputError
from unslant.extras import needed
from unslant.files import dump_json
from unslant.metrics import Estimate
from unslant.metrics.registry import metric_at
from unslant.reports.escape import TYPOGRAPHY, csv_text, drawable, file_name, one_line, tex, tex_needs
from unslant.reports.figure import Chart, Table, shared_n
from unslant.reports.numbers import RANGE, Cell, How, count, has_interval, number
from unslant.reports.style import PAPER, PLOT, Style, specification
from unslant.writing import make_folder, write_all, write_atomically

if TYPE_CHECKING:
    from pandas import DataFrame

PNG_SCALE = 4.0
FORMATS = (".pdf", ".svg", ".png")
_LONG, _PARAGRAPH = 60, r"p{0.5\linewidth}"
"""Columns of longer texts are set in lines."""
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_SMALL, _END, _N, _NOTHING = "\ue000", "\ue001", "\ue002", "\ue003"
"""Placeholders for small print, the symbol N, and nothing until the text is escaped."""
_MARKS = TYPOGRAPHY | {_SMALL: r"{\scriptsize ", _END: "}", _N: "$N$", _NOTHING: "{}"}
APART = frozenset({"by_subject", "given_labels", "order_labels", "labels", "positions", "provenance"})
"""Keys below which JSON repeats metrics for each of many things; tables of their own have those."""
COLUMNS = ("key", "name", "value", "low", "high", "n", "method", "note", "meaning", "unit")


@dataclass(frozen=True)
class Drawing:
    """A chart as drawn.

    Attributes:
        spec: Vega-Lite.
        n: what it rests on: ``N = 40 questions``; empty if unknown.
        methods: of its intervals.
    """

    chart: Chart
    spec: dict[str, Any]
    n: str
    methods: tuple[str, ...]

    @property
    def rests_on(self) -> str:
        """N, and how intervals were made: ``N = 40 questions; 95 % intervals: Wilson``."""
        made = [f"95 % intervals: {'; '.join(self.methods)}"] if self.methods else []
        return "; ".join(filter(None, (self.n, *made)))


def drawing(chart: Chart, style: Style) -> Drawing:
    """Draw a chart, with its name for those who cannot see it."""
    spec = specification(chart.draw(style), style)
    drawn = Drawing(chart, spec, *_basis(spec, chart.of))
    said = ". ".join(part.rstrip(".") for part in (chart.title, chart.explanation, drawn.rests_on) if part)
    return replace(drawn, spec=spec | {"description": drawable(f"{said}.")})


def _basis(spec: Mapping[str, Any], of: str) -> tuple[str, tuple[str, ...]]:
    """The smallest and largest ``n`` in the data of a chart, and every ``method`` of its intervals."""
    rows = list(_rows(spec))
    found = sorted({int(str(row["n"]).replace(",", "")) for row in rows if row.get("n") is not None})
    methods = dict.fromkeys(row["method"] for row in rows if row.get("method"))
    few = f"{found[0]:,} to " if len(found) > 1 else ""
    return (f"N = {few}{count(found[-1], of.removesuffix('s'), of)}" if found else "", tuple(methods))


def _rows(spec: Any) -> Iterator[Mapping[str, Any]]:
    """The rows of data anywhere in a specification."""
    if isinstance(spec, Mapping):
        for key, value in spec.items():
            if key == "datasets":
                for rows in value.values():
                    yield from rows
            elif key == "data" and isinstance(value, Mapping):
                yield from (row for row in value.get("values", ()) if isinstance(row, Mapping))
            elif key not in ("config", "values"):
                yield from _rows(value)
    elif isinstance(spec, list):
        for item in spec:
            yield from _rows(item)


def altair_chart(chart: Chart) -> Any:
    """A chart of the report, with title and explanation, as an altair chart."""
    import altair as alt

    title = {"text": one_line(chart.title), "subtitle": one_line(chart.explanation)}
    return alt.Chart.from_dict(specification(chart.draw(PLOT), PLOT) | {"title": title})


def save_figures(
    charts: Sequence[Chart], folder: Path, provenance: Sequence[Mapping[str, Any]] = (), style: Style = PAPER
) -> list[Path]:
    """Write every chart as ``<id>.pdf``, ``.svg`` and ``.png``, and its caption as ``<id>.tex``; return the files.

    Figures are a column (240 points) wide; fonts are embedded in the PDF; the PNG has four pixels a point.

    Args:
        provenance: how the results were made; every file carries it but the PDF, whose caption does.
    """
    needed("vl_convert", "drawing figures")
    make_folder(folder)
    writes: dict[Path, Callable[[], object]] = {}
    for chart in charts:
        drawn, name = drawing(chart, style), file_name(chart.id)
        for suffix in FORMATS:
            path = folder / f"{name}{suffix}"
            writes[path] = partial(save_figure, drawn.spec, path, provenance)
        path = folder / f"{name}.tex"
        writes[path] = partial(write_atomically, path, made_by(provenance) + _figure(drawn, name))
    write_all(*writes.values())
    return list(writes)


def made_by(provenance: Sequence[Mapping[str, Any]]) -> str:
    """A LaTeX comment on how results were made; empty if nothing is known."""
    return f"% made by: {json.dumps(list(provenance), sort_keys=True)}\n" if provenance else ""


def caption(*parts: str) -> str:
    """Parts of a caption, each ended by one full stop, as LaTeX."""
    return " ".join(f"{tex(part).rstrip('.')}." for part in parts if part)


def _figure(drawn: Drawing, name: str) -> str:
    chart = drawn.chart
    lines = [
        r"\begin{figure}", r"\centering", rf"\includegraphics[width=\columnwidth]{{{name}.pdf}}",
        rf"\caption{{{caption(chart.title, chart.explanation, drawn.rests_on)}}}",
        rf"\label{{fig:{name}}}", r"\end{figure}",
    ]  # fmt: skip
    return tex_needs("graphicx", body := "\n".join(lines)) + body + "\n"


def save_figure(spec: Mapping[str, Any], path: Path, provenance: Sequence[Mapping[str, Any]] = ()) -> None:
    """Draw a Vega-Lite specification as .pdf, .svg or .png, by the name of the file."""
    vl_convert = needed("vl_convert", "drawing figures")
    about = json.dumps(list(provenance), sort_keys=True) if provenance else ""
    if path.suffix.lower() == ".pdf":
        write_atomically(path, vl_convert.vegalite_to_pdf(spec))
    elif path.suffix.lower() == ".svg":
        write_atomically(path, _svg_with(str(vl_convert.vegalite_to_svg(spec)), about))
    else:
        write_atomically(path, _png_with(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE), about))


def _svg_with(svg: str, about: str) -> str:
    """The drawing with a text in its ``metadata``."""
    start = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:start]}<metadata>{escape(about)}</metadata>{svg[start:]}" if about else svg


def _png_with(png: bytes, about: str) -> bytes:
    """The picture with a text, "unslant", before its last chunk (PNG specification, iTXt)."""
    if not about:
        return png
    chunk = b"iTXt" + b"unslant\0\0\0\0\0" + about.encode()
    end = png.rindex(b"IEND") - 4
    return png[:end] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[end:]


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
    words = caption(table.title, table.explanation, _rests_on(table))
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{words}}}", rf"\label{{tab:{file_name(table.id)}}}",
        _FITTED, body + "}", r"\end{table}",
    ]  # fmt: skip
    return tex_needs("booktabs,graphicx", written := "\n".join(lines)) + written + "\n"


def _rests_on(table: Table) -> str:
    """N, and how the intervals in a table were made."""
    found = [cell for row in table.rows for cell in row if isinstance(cell, Estimate) and cell.defined]
    sizes = sorted({cell.n for cell in found})
    parts = [f"N = {sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "")] if sizes else []
    methods = dict.fromkeys(cell.method for cell in found if has_interval(cell))
    ranges = [method for method in methods if method == RANGE]
    made = [method for method in methods if method != RANGE]
    parts += [f"in small print 95 % intervals ({', '.join(made)})"] if made else []
    parts += [f"in small print the {RANGE} value"] if ranges else []
    return "; ".join(parts)


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
        provenance: how the results were made: a comment in every ``.tex``, and ``provenance.json`` in the same folder.
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


def table_frame(table: Table) -> DataFrame:
    """A table of the report, with the columns of its CSV file (:func:`columns_of`)."""
    heads, rows = columns_of(table)
    found: DataFrame = needed("pandas", "to_pandas", InputError).DataFrame(rows, columns=heads)
    return found


def metrics_frame(values: Mapping[str, Any]) -> DataFrame:
    """Every number of a result that has a record in :mod:`unslant.metrics.registry`, one row each.

    Args:
        values: the result as for JSON.

    Returns:
        Columns :data:`COLUMNS`; ``key`` is the path in JSON, ``name``, ``meaning`` and ``unit`` are of the record.
    """
    rows = []
    for path, found in numbers(values, APART):
        record = metric_at(path)
        if record is not None and (found["value"] is not None or "n" in found):
            about = {"key": ".".join(path), "name": record.name, "meaning": record.meaning, "unit": record.scale}
            rows.append(about | {key: value for key, value in found.items() if key in COLUMNS})
    frame: DataFrame = needed("pandas", "to_pandas", InputError).DataFrame(rows, columns=list(COLUMNS))
    return frame


def numbers(
    value: object, omit: Collection[str] = (), path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Path and parts of every estimate and plain number, None among them, but for what is below the keys ``omit``."""
    if isinstance(value, Mapping):
        if {"value", "low", "high", "n"} <= set(value):
            yield path, value
            return
        for key, item in value.items():
            if key not in omit:
                yield from numbers(item, omit, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from numbers(item, omit, (*path, str(at)))
    elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield path, {"value": value}
