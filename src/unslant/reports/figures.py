"""Charts as SVG and PNG files for papers, drawn offline."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from unslant.extras import needed
from unslant.files import make_folder, write_atomically
from unslant.reports.escape import file_name, one_line
from unslant.reports.panels import Chart
from unslant.reports.style import PAPER, specification

PNG_SCALE = 3.0


def altair_chart(chart: Chart) -> Any:
    """A chart of the report, with title and explanation, as an altair chart."""
    import altair as alt

    title = {"text": one_line(chart.title), "subtitle": one_line(chart.explanation)}
    return alt.Chart.from_dict(specification(chart.draw(PAPER), PAPER) | {"title": title})


def save_figures(charts: Sequence[Chart], folder: Path, provenance: Sequence[Mapping[str, Any]] = ()) -> list[Path]:
    """Write every chart as ``<id>.svg`` and ``<id>.png`` (three pixels per point), and return the files.

    Args:
        provenance: how the results were made; every file carries it.
    """
    needed("vl_convert", "drawing figures")
    make_folder(folder)
    written = []
    for chart in charts:
        spec = specification(chart.draw(PAPER), PAPER)
        for suffix in (".svg", ".png"):
            written.append(folder / f"{file_name(chart.id)}{suffix}")
            save_figure(spec, written[-1], provenance)
    return written


def save_figure(spec: Mapping[str, Any], path: Path, provenance: Sequence[Mapping[str, Any]] = ()) -> None:
    """Draw a Vega-Lite specification as .svg or .png, by the name of the file."""
    vl_convert = needed("vl_convert", "drawing figures")
    about = json.dumps(list(provenance), sort_keys=True) if provenance else ""
    if path.suffix.lower() == ".svg":
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
