"""Colours and sizes of charts, in HTML and in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unslant.reports.escape import drawable
from unslant.reports.numbers import count
from unslant.reports.panels import Chart, Style

SERIES = 9
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
    width=240,
    ink="#1d1f23",
    muted="#5e636b",
    line="#e2e2de",
    accent="#2b5a9e",
    contrast="#b4531a",
    faint="#c9ccd1",
    surface="#ffffff",
    series=(
        "#2b5a9e", "#b4531a", "#4d7a5a", "#7d5a94", "#6b7078",  # those with a meaning
        "#0f7680", "#a8336c", "#8a7327", "#40507d",
    ),
    size=8,
)  # fmt: skip
"""Figures for papers, a column (240 points) wide; the same colours as the page in light."""
PLOT = replace(PAPER, width=560, size=12)
"""Single charts on a screen."""
_FONTS = {
    "page": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif",
    "paper": "Helvetica, Arial, sans-serif",
}


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


def specification(chart: Any, style: Style) -> dict[str, Any]:
    """A chart (altair or Vega-Lite) as Vega-Lite with the fonts, axes and grids of a style."""
    spec: dict[str, Any] = drawable(chart.to_dict() if hasattr(chart, "to_dict") else chart)
    spec["config"] = _config(style)
    spec.pop("background", None)
    if style.width != "container" and not {"hconcat", "vconcat"} & set(spec):
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}  # with its labels, as wide as a column
    return spec


def _config(style: Style) -> Mapping[str, Any]:
    font = _FONTS["page" if style.width == "container" else "paper"]
    sizes = {"labelFontSize": style.size, "titleFontSize": style.size}
    text = {"labelColor": style.muted, "titleColor": style.muted, **sizes}
    clear = style.scaled(14)
    return {
        "background": "transparent" if style.width == "container" else style.surface,
        "font": font,
        "padding": 4,
        "view": {"stroke": None, "continuousHeight": style.scaled(220), "step": style.scaled(22)},
        "axis": text
        | {
            "domain": False,
            "ticks": False,
            "gridColor": style.line,
            "labelPadding": style.scaled(8),
            "titlePadding": style.scaled(10),
            "titleFontWeight": "normal",
            "labelLimit": style.scaled(220),
            "labelFlush": False,
            "tickCount": 6 if style.width == "container" else 4,
        },
        "axisY": {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleY": -clear, "titleX": 0},
        "axisYBand": {"grid": False, "labelColor": style.ink, "titleAlign": "right", "titleX": -style.scaled(8)},
        "axisYPoint": {"grid": False, "labelColor": style.ink, "titleAlign": "right", "titleX": -style.scaled(8)},
        "axisXBand": {"grid": False, "labelColor": style.ink, "labelAngle": 0},
        "legend": text
        | {
            "orient": "top",
            "direction": "horizontal",
            "symbolOpacity": 1,
            "labelLimit": style.scaled(300),
            "symbolSize": style.scaled(style.scaled(70)),
            "offset": style.scaled(BELOW_TITLE),
            "title": None,
            "labelColor": style.ink,
        },
        "title": {"color": style.ink, "subtitleColor": style.muted, "anchor": "start"},
        "text": {"color": style.ink, "font": font, "fontSize": style.size},
        "rule": {"color": style.muted},
        "point": {"filled": True, "size": style.scaled(style.scaled(70)), "opacity": 1, "color": style.accent},
        "bar": {"color": style.accent},
    }
