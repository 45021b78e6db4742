"""Charts and tables as files for papers and machines, and as pandas DataFrames; everything works offline."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from unslant import __version__
from unslant.arrays import json_number
from unslant.errors import InputError, needed, one_line
from unslant.files import dump_json
from unslant.metrics import Estimate
from unslant.metrics.catalogue import metric_at
from unslant.reports.figure import Chart, Table
from unslant.reports.numbers import (
    APART,
    TYPOGRAPHY,
    Cell,
    count,
    csv_text,
    drawable,
    file_name,
    has_interval,
    interval,
    number,
    numbers,
    shared_n,
    tex,
    tex_needs,
)
from unslant.reports.style import PAPER, PLOT, Style, alt, specification
from unslant.writing import make_folder, write_all, write_atomically

if TYPE_CHECKING:
    from pandas import DataFrame

PNG_SCALE = 4.0
_SCREEN_SCALE = 2.0
FORMATS = (".pdf", ".svg", ".png")
_LONG, _PARAGRAPH = 60, r"p{0.5\linewidth}"
"""Letters above which a column of text breaks into lines."""
_OPEN, _CLOSE, _N, _NOTHING = "\ue000", "\ue001", "\ue002", "\ue003"
"""Placeholders for braces, the symbol N, and nothing until the text is escaped."""
_MARKS = TYPOGRAPHY | {_OPEN: "{", _CLOSE: "}", _N: "$N$", _NOTHING: "{}"}
_INTERVALS = 3
"""Columns of estimates in a LaTeX table, at most, that have a column with their intervals."""
_NOT_IN_PAPERS = ("meaning", "interval by")
"""Columns that explain the numbers to a reader of the report; the CSV file has them."""
_VALUE = re.compile(r"([-−]?)\+?(\d[\d,]*)(?:\.(\d+))?([\s\u202f\xa0]%)?")
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
        intervals = [f"95 % intervals: {'; '.join(self.methods)}"] if self.methods else []
        return "; ".join(filter(None, (self.n, *intervals)))


def drawing(chart: Chart, style: Style) -> Drawing:
    """Draw a chart, with its name for those who cannot see it."""
    spec = _spec(chart, style)
    picture = Drawing(chart, spec, *_basis(spec, chart.of))
    words = ". ".join(part.rstrip(".") for part in (chart.title, chart.explanation, picture.rests_on) if part)
    spec["description"] = drawable(f"{words}.")
    return picture


def _spec(chart: Chart, style: Style) -> dict[str, Any]:
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # each part is checked as a part of the whole, and by itself would be checked a second time
        parts = chart.draw(style)
    return specification(parts, style)


def _basis(spec: Mapping[str, Any], of: str) -> tuple[str, tuple[str, ...]]:
    """The smallest and largest ``n`` in the data of a chart, and every ``method`` of its intervals."""
    rows = list(_rows(spec))
    sizes = sorted({int(str(row["n"]).replace(",", "")) for row in rows if row.get("n") is not None})
    methods = dict.fromkeys(row["method"] for row in rows if row.get("method"))
    few, one = f"{sizes[0]:,} to " if len(sizes) > 1 else "", re.sub(r"s\b", "", of, count=1)
    return (f"N = {few}{count(sizes[-1], one, of)}" if sizes else "", tuple(methods))


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
    """A chart of the report, with title and explanation, as an altair chart that needs no network."""
    title = {"text": one_line(chart.title), "subtitle": one_line(chart.explanation)}
    picture = alt.Chart.from_dict(_spec(chart, PLOT) | {"title": title})
    kind = type(type(picture).__name__, (_SelfContained, type(picture)), {})
    object.__setattr__(picture, "__class__", kind)  # altair keeps attributes that are set as parts of the chart
    return picture


class _SelfContained:
    """A picture in notebooks, and pages with their own scripts: altair's would load theirs from the network."""

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
        chart: Any = self
        spec = chart.to_dict()
        png = needed("vl_convert", "drawing figures").vegalite_to_png(spec, scale=_SCREEN_SCALE)
        bundle = {"image/png": base64.b64encode(png).decode(), "text/plain": spec["title"]["text"]}
        width, _height = struct.unpack(">II", png[16:24])
        return bundle, {"image/png": {"width": round(width / _SCREEN_SCALE)}}

    def to_html(self, *arguments: Any, **options: Any) -> str:
        return str(super().to_html(*arguments, **{"inline": True} | options))  # type: ignore[misc]

    def save(self, *arguments: Any, **options: Any) -> None:
        super().save(*arguments, **{"inline": True} | options)  # type: ignore[misc]


def save_figures(
    charts: Sequence[Chart], folder: str | Path, provenance: Sequence[Mapping[str, Any]] = (), style: Style = PAPER
) -> list[Path]:
    """Write every chart as ``<id>.pdf``, ``.svg`` and ``.png``, and its caption as ``<id>.tex``; return the files.

    Figures are a column (240 points) wide; fonts are embedded in the PDF; the PNG has four pixels a point.

    Args:
        provenance: how the results were made; SVG and PNG carry it, the caption says where it is, and
            ``provenance.json`` in the same folder has it for all.
    """
    needed("vl_convert", "drawing figures")
    folder = make_folder(folder)
    writes: dict[Path, Callable[[], object]] = {}
    for chart in charts:
        picture, name = drawing(chart, style), file_name(chart.id)
        for suffix in FORMATS:
            path = folder / f"{name}{suffix}"
            writes[path] = partial(save_figure, picture.spec, path, provenance)
        path = folder / f"{name}.tex"
        writes[path] = partial(
            write_atomically, path, made_by(provenance, f"metadata of {name}.svg") + _figure(picture, name)
        )
    write_all(partial(_save_provenance, folder, provenance), *writes.values())
    return list(writes)


def _save_provenance(folder: Path, provenance: Sequence[Mapping[str, Any]]) -> None:
    if provenance:
        write_atomically(folder / "provenance.json", dump_json(list(provenance)))


def made_by(provenance: Sequence[Mapping[str, Any]], where: str) -> str:
    """A LaTeX comment on where it is written how results were made; empty if nothing is known."""
    return f"% unslant {__version__}; how it was made: {where}\n" if provenance else ""


def caption(*parts: str) -> str:
    """Parts of a caption, each ended by one full stop, as LaTeX."""
    return " ".join(f"{tex(part).rstrip('.')}." for part in parts if part)


def _figure(picture: Drawing, name: str) -> str:
    chart = picture.chart
    lines = [
        r"\begin{figure}", r"\centering", rf"\includegraphics[width=\columnwidth]{{{name}.pdf}}",
        rf"\caption{{{caption(chart.title, chart.explanation, picture.rests_on)}}}",
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
    sizes = [4 if i in estimates else 1 for i in range(len(table.columns))]
    rows = [[part for cell, n in zip(row, sizes, strict=True) for part in _parts(cell)[:n]] for row in table.rows]
    return header, rows


def to_csv(table: Table) -> str:
    """The table as :func:`columns_of` gives it; undefined values are empty."""
    return csv_text(*columns_of(table))


def _parts(cell: Cell) -> list[object]:
    if isinstance(cell, Estimate):
        return [*map(json_number, (cell.value, cell.low, cell.high)), cell.n if cell.defined else None]
    return [json_number(cell) if isinstance(cell, float) else cell, None, None, None]


def _tabular(rows: Sequence[Sequence[str]], specs: Sequence[str]) -> str:
    """Rows of text, heads first, as a ``tabular`` with LaTeX escaped."""
    from tabulate import tabulate

    flat = [[" ".join(cell.split()) for cell in row] for row in rows]
    for row in flat:  # the end of the row before takes a bracket or star that follows for its argument
        row[0] = (_NOTHING if row[0][:1] in ("[", "*") else "") + row[0]
    align = ["left"] * len(specs)
    latex = str(tabulate(flat[1:], flat[0], tablefmt="latex_booktabs", colalign=align, disable_numparse=True))
    fitted_specs = [
        _PARAGRAPH if spec == "l" and max(map(len, cells)) > _LONG else spec
        for spec, cells in zip(specs, zip(*flat, strict=True), strict=True)
    ]
    latex = latex.replace(f"{{{'l' * len(specs)}}}", f"{{{''.join(fitted_specs)}}}", 1)
    return "".join(_MARKS.get(character, character) for character in latex)


def to_latex(table: Table) -> str:
    """A ``table`` environment with ``booktabs`` rules, values in ``siunitx`` columns, and one note.

    Intervals have columns of their own where there are at most :data:`_INTERVALS` columns of estimates; those of larger
    tables are in the CSV file, as are explanations. N has a column where rows differ in it.
    """
    estimates, single = table.estimate_columns, table.one_n
    sizes = ["" if (n := shared_n(row)) is None else f"{n:,}" for row in table.rows]
    columns: list[tuple[str, str, list[str]]] = []
    for c, column in enumerate(table.columns):
        if column.name in _NOT_IN_PAPERS and len(table.columns) > 2:
            continue
        cells = [number(row[c], table.how(r, c)) for r, row in enumerate(table.rows)]
        columns.append(
            _values(one_line(column.name), cells) if table.numeric[c] else (one_line(column.name), "l", cells)
        )
        ranges = [interval(cell, table.how(r, c)) for r, cell in enumerate(table.column(c))]
        if c in estimates and len(estimates) <= _INTERVALS and any(ranges):
            columns.append(("95 % interval", "l", ranges))
        if single and c == estimates[-1] and len({*sizes} - {""}) > 1:
            columns.append(_values(_N, sizes))
    heads, specs, body = zip(*columns, strict=True)
    tabular = _tabular([heads, *zip(*body, strict=True)], specs)
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{caption(table.title, table.explanation)}}}",
        rf"\label{{tab:{file_name(table.id)}}}", tabular,
        rf"\par\smallskip{{\footnotesize {caption(_rests_on(table))}}}", r"\end{table}",
    ]  # fmt: skip
    return tex_needs("booktabs,siunitx", latex := "\n".join(lines)) + latex + "\n"


def _values(head: str, cells: list[str]) -> tuple[str, str, list[str]]:
    """A column that ``siunitx`` aligns at the decimal point; percent signs go to its head, words are set in braces."""
    matches = [_VALUE.fullmatch(cell) for cell in cells]
    if not any(matches):
        return head, "r", cells
    groups = [match.groups() for match in matches if match]
    unit = " (%)" if all(part[3] for part in groups) else ""
    whole, decimals = (max(len((part[place] or "").replace(",", "")) for part in groups) for place in (1, 2))
    sign = "-" * any(part[0] for part in groups)
    texts = [
        f"{'-' * bool(match[1])}{match[2].replace(',', '')}{f'.{match[3]}' if match[3] else ''}"
        + ("" if unit or not match[4] else f"{_OPEN}%{_CLOSE}")
        if match
        else f"{_OPEN}{cell}{_CLOSE}" * bool(cell)
        for match, cell in zip(matches, cells, strict=True)
    ]
    return f"{_OPEN}{head}{unit}{_CLOSE}", f"S[table-format={sign}{whole}.{decimals}]", texts


def _rests_on(table: Table) -> str:
    """N, and how the intervals in a table were made."""
    estimates = [cell for row in table.rows for cell in row if isinstance(cell, Estimate) and cell.defined]
    sizes = sorted({cell.n for cell in estimates})
    parts = [f"N = {sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "")] if sizes else []
    methods = dict.fromkeys(cell.method for cell in estimates if has_interval(cell))
    where = "" if len(table.estimate_columns) <= _INTERVALS else " in the CSV file"
    parts += [f"95 % intervals{where}: {', '.join(methods)}"] if methods else []
    return "; ".join(parts)


def save_tables(
    tables: Sequence[Table], folder: str | Path, provenance: Sequence[Mapping[str, Any]] = ()
) -> list[Path]:
    """Write every table as ``<id>.csv`` and ``<id>.tex``, and return the files.

    Args:
        provenance: how the results were made: a comment in every ``.tex``, and ``provenance.json`` in the same folder.
    """
    folder = make_folder(folder)
    comment = made_by(provenance, "provenance.json")
    files = {
        folder / f"{file_name(table.id)}{suffix}": text
        for table in tables
        for suffix, text in ((".csv", to_csv(table)), (".tex", comment + to_latex(table)))
    }
    writes = [partial(write_atomically, *file) for file in files.items()]
    write_all(partial(_save_provenance, folder, provenance), *writes)
    return list(files)


def metrics_frame(values: Mapping[str, Any]) -> DataFrame:
    """Every number of a result that has a record in :mod:`unslant.metrics.registry`, one row each.

    Args:
        values: the result as for JSON.

    Returns:
        Columns :data:`COLUMNS`; ``key`` is the path in JSON, ``name``, ``meaning`` and ``unit`` are of the record.
    """
    rows = []
    for path, parts in numbers(values, APART):
        metric = metric_at(path)
        if metric is not None and (parts["value"] is not None or "n" in parts):
            about = {"key": ".".join(path), "name": metric.name, "meaning": metric.meaning, "unit": metric.scale}
            rows.append(about | {key: value for key, value in parts.items() if key in COLUMNS})
    return needed("pandas", "to_pandas", InputError).DataFrame(rows, columns=list(COLUMNS))
