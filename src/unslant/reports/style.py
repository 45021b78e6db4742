"""Colours and sizes of charts, in HTML and in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from unslant.reports.escape import drawable


@dataclass(frozen=True)
class Style:
    """Size and colours of charts.

    Attributes:
        width: pixels, or ``container`` to fill the page.
        ink, muted, line: text, secondary text, grids and axes.
        accent, contrast, faint: subject of the chart, what it is compared with, background.
        series: colours of compared series, see :meth:`looks`.
        size: of the text in pixels; marks and rows go with it.
        compared: the runs of the page; each looks the same in every chart.
    """

    width: int | Literal["container"]
    ink: str
    muted: str
    line: str
    accent: str
    contrast: str
    faint: str
    surface: str
    series: tuple[str, ...]
    size: int = 12
    compared: tuple[str, ...] = ()

    def looks(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """A colour and a shape for each name: those of its meaning, else the next that no meaning has.

        Up to 24 names without a meaning differ from each other in colour or shape.
        """
        others = [*self.compared, *(name for name in names if name not in self.compared and name not in MEANINGS)]
        free = self.series[len(set(MEANINGS.values())) :]
        found = []
        for name in names:
            at = MEANINGS.get(name)
            if at is None:
                i = others.index(name)
                found.append((free[i % len(free)], SHAPES[(i + i // len(free)) % len(SHAPES)]))
            else:
                found.append((self.series[at], SHAPES[at]))
        return found

    def colour(self, name: str) -> str | None:
        """The colour of a name that means the same in every chart, else None."""
        return self.series[MEANINGS[name]] if name in MEANINGS else None

    def scaled(self, pixels: float) -> float:
        """A length for text of 12 pixels, as large relative to the text of this style."""
        return round(pixels * self.size / 12, 2)


SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
MEANINGS: Mapping[str, int] = {
    "mean over orders": 0, "under interventions": 0, "gained": 0,
    "as published": 1, "undebiased": 1, "lost": 1,
    "right in every order": 2, "right in both": 2,
    "voted": 3,
    "right in neither": 4,
}  # fmt: skip
"""Which of :attr:`Style.series` a name has in every chart."""


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
