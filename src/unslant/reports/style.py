"""Colours and sizes of charts, in HTML and in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unslant.reports.escape import drawable
from unslant.reports.panels import Style

SERIES = 6
BELOW_TITLE = 32
"""A legend at the top must clear the title of the y axis."""
PAGE = Style(
    width="container",
    ink="var(--ink)",
    muted="var(--muted)",
    line="var(--line)",
    accent="var(--accent)",
    contrast="var(--contrast)",
    faint="var(--faint)",
    surface="var(--page)",
    series=tuple(f"var(--series-{i})" for i in range(1, SERIES + 1)),
)
"""Uses the colours of the style sheet, so that charts follow light and dark mode."""
PAPER = Style(
    width=460,
    ink="#1d1f23",
    muted="#5e636b",
    line="#e2e2de",
    accent="#2b5a9e",
    contrast="#b4531a",
    faint="#c9ccd1",
    surface="#ffffff",
    series=("#2b5a9e", "#b4531a", "#4d7a5a", "#7d5a94", "#8a7327", "#6b7078"),
)
"""Figures for papers; the same colours as the page in light."""
_FONTS = {
    "page": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif",
    "paper": "Helvetica, Arial, sans-serif",
}


def specification(chart: Any, style: Style) -> dict[str, Any]:
    """A chart (altair or Vega-Lite) as Vega-Lite with the fonts, axes and grids of a style."""
    spec: dict[str, Any] = drawable(chart.to_dict() if hasattr(chart, "to_dict") else chart)
    spec["config"] = _config(style)
    spec.pop("background", None)
    return spec


def _config(style: Style) -> Mapping[str, Any]:
    font = _FONTS["page" if style.width == "container" else "paper"]
    text = {"labelColor": style.muted, "titleColor": style.muted, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": "transparent" if style.width == "container" else style.surface,
        "font": font,
        "padding": 4,
        "view": {"stroke": None, "continuousHeight": 220, "step": 22},
        "axis": text
        | {
            "domain": False,
            "ticks": False,
            "gridColor": style.line,
            "labelPadding": 8,
            "titlePadding": 10,
            "titleFontWeight": "normal",
            "labelLimit": 220,
            "labelFlush": False,
            "tickCount": 6,
        },
        "axisY": {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleY": -14, "titleX": 0},
        "axisYBand": {"grid": False, "labelColor": style.ink},
        "axisYPoint": {"grid": False, "labelColor": style.ink},
        "axisXBand": {"grid": False, "labelColor": style.ink, "labelAngle": 0},
        "legend": text
        | {
            "orient": "top",
            "direction": "horizontal",
            "symbolType": "circle",
            "symbolOpacity": 1,
            "offset": BELOW_TITLE,
            "title": None,
            "labelColor": style.ink,
        },
        "title": {"color": style.ink, "subtitleColor": style.muted, "anchor": "start"},
        "text": {"color": style.ink, "font": font, "fontSize": 12},
        "rule": {"color": style.muted},
        "point": {"filled": True, "size": 70, "opacity": 1, "color": style.accent},
        "bar": {"color": style.accent},
    }
