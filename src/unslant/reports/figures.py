"""Charts as SVG and PNG files for papers, drawn offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unslant.reports.panels import Chart
from unslant.reports.style import PAPER, specification

PNG_SCALE = 3.0


def save_figures(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write every chart as ``<id>.svg`` and ``<id>.png`` (three pixels per point), and return the files."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts:
        spec = specification(chart.draw(PAPER), PAPER)
        svg, png = folder / f"{chart.id}.svg", folder / f"{chart.id}.png"
        svg.write_text(vl_convert.vegalite_to_svg(spec), "utf-8")
        png.write_bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))
        written += [svg, png]
    return written
