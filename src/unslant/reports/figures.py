"""Charts as PDF, SVG and PNG files for papers, drawn offline."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from unslant.extras import needed
from unslant.reports.escape import drawable, file_name, one_line, tex, tex_needs
from unslant.reports.figure import Chart
from unslant.reports.numbers import count
from unslant.reports.style import PAPER, PLOT, Style, specification
from unslant.writing import make_folder, write_all, write_atomically

PNG_SCALE = 4.0
FORMATS = (".pdf", ".svg", ".png")


@dataclass(frozen=True)
class Drawing:
    """A chart as drawn.

    Attributes:
        spec: Vega-Lite.
        rests_on: N, and how intervals were made: ``N 40 questions; 95 % intervals: Wilson``; empty if unknown.
    """

    chart: Chart
    spec: dict[str, Any]
    rests_on: str


def drawing(chart: Chart, style: Style) -> Drawing:
    """Draw a chart, with its name for those who cannot see it."""
    spec = specification(chart.draw(style), style)
    told = rests_on(spec, chart.of)
    said = ". ".join(part.rstrip(".") for part in (chart.title, chart.explanation, told) if part)
    return Drawing(chart, spec | {"description": drawable(f"{said}.")}, told)


def rests_on(spec: Mapping[str, Any], of: str) -> str:
    """The smallest and largest ``n`` in the data of a chart, and every ``method`` of its intervals."""
    rows = list(_rows(spec))
    found = sorted({int(str(row["n"]).replace(",", "")) for row in rows if row.get("n") is not None})
    methods = dict.fromkeys(row["method"] for row in rows if row.get("method"))
    few = f"{found[0]:,} to " if len(found) > 1 else ""
    told = [f"N = {few}{count(found[-1], of.removesuffix('s'), of)}"] if found else []
    return "; ".join([*told, *([f"95 % intervals: {'; '.join(methods)}"] if methods else [])])


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
