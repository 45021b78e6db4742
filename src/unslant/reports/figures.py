"""Charts as SVG and PNG files for papers, drawn offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def save_figures(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write every chart as ``<id>.svg`` and ``<id>.png`` (three pixels per point), and return the files."""
    import vl_convert

    make_folder(folder)
    written = []
    for chart in charts:
        spec = specification(chart.draw(PAPER), PAPER)
        svg, png = folder / f"{file_name(chart.id)}.svg", folder / f"{file_name(chart.id)}.png"
        write_atomically(svg, str(vl_convert.vegalite_to_svg(spec)))
        write_atomically(png, vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))
        written += [svg, png]
    return written
