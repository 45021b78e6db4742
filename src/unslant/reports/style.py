"""Colours and sizes of charts, in HTML and in files, and what chart types share: marks, axes, series and tooltips."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from textwrap import wrap
from typing import Any, Literal, TypeAlias

from lazy_loader import load

from unslant.metrics import Estimate, Metric
from unslant.reports.numbers import How, drawable, has_interval, interval, number

alt: Any = load("altair")
"""Loaded when the first chart is drawn: most reports are texts, which need none."""
Ends: TypeAlias = tuple[float, float]


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
        looks = []
        for name in names:
            at = MEANINGS.get(name)
            if at is None:
                i = others.index(name)
                looks.append((free[i % len(free)], SHAPES[(i + i // len(free)) % len(SHAPES)]))
            else:
                looks.append((self.series[at], SHAPES[at]))
        return looks

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


SHARE = (0.0, 1.0)
MOST_ROWS = 15
"""Most rows in a chart of subjects; the table has all of them."""
MOST_SERIES = 6
"""Most runs that charts show as series; more are rows, or in the table alone."""
_TICKS = 5
_LETTER = 0.016
"""Width of a letter of a label, as a share of the plot's width."""
_SHORT = 24
_LONG_NAME = 24
"""Letters of a row's name above which it breaks."""


@dataclass(frozen=True)
class Mark:
    """One estimate in a chart: row or place, series, and whether it is highlighted.

    Attributes:
        expected: what it would be without bias, drawn as a tick if it is known.
        dash: kind of line, where lines are drawn.
        at: its place on a horizontal axis of numbers.
    """

    name: str
    estimate: Estimate
    series: str = ""
    expected: float | None = None
    stands_out: bool = False
    dash: str = ""
    at: Estimate | float | None = None


def records_of(marks: Sequence[Mark], how: How = 3) -> list[dict[str, Any]]:
    return [
        {
            "name": mark.name,
            "series": mark.series,
            "dash": mark.dash,
            "value": mark.estimate.value,
            "low": mark.estimate.low if has_interval(mark.estimate) else None,
            "high": mark.estimate.high if has_interval(mark.estimate) else None,
            "expected": mark.expected if mark.expected is not None and math.isfinite(mark.expected) else None,
            "out": mark.stands_out,
            "shown": number(mark.estimate, how),
            "interval": interval(mark.estimate, how) or "none",
            "method": mark.estimate.method if has_interval(mark.estimate) else "",
            "n": f"{mark.estimate.n:,}",
        }
        | ({} if mark.at is None else {"at": mark.at.value if isinstance(mark.at, Estimate) else mark.at})
        for mark in marks
        if mark.estimate.defined
    ]


def values_of(records: Sequence[dict[str, Any]], field: str) -> list[str]:
    return list(dict.fromkeys(record[field] for record in records))


def numbers_of(records: Sequence[Mapping[str, Any]], *fields: str) -> list[float]:
    return [record[field] for record in records for field in fields if record.get(field) is not None]


def rings(records: Sequence[dict[str, Any]], spots: Sequence[tuple[float, float]], style: Style) -> None:
    """Give each record a ``size`` by which marks in one place are drawn around each other.

    Args:
        spots: of each record, in shares of the plot.
    """
    for i, (x, y) in enumerate(spots):
        under_it = sum(abs(x - other[0]) < 0.015 and abs(y - other[1]) < 0.02 for other in spots[:i])
        records[i]["size"] = style.scaled(style.scaled(70 * (1 + 1.7 * under_it)))


def point_labels(points: Sequence[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """Where to write the name of each point, in shares of the plot: next to it, or not at all if names overlap.

    Names of one point share a label.
    """
    names: dict[tuple[float, float], list[str]] = {}
    for name, x, y in points:
        at = next((at for at in names if abs(at[0] - x) < 0.015 and abs(at[1] - y) < 0.02), (x, y))
        names.setdefault(at, []).append(name)
    boxes = [(x - 0.012, y - 0.02, x + 0.012, y + 0.02) for _, x, y in points]
    labels = []
    for (x, y), of_point in names.items():
        text = ", ".join(dict.fromkeys(of_point))
        width, gap = _LETTER * len(text), "\N{EN SPACE}" * (len(of_point) - 1)  # the gap is clear of the rings
        for dy, align in product((0.0, 0.07, -0.07), ("left", "right")):
            left = x + 0.02 if align == "left" else x - 0.02 - width
            box = (left, y + dy - 0.035, left + width, y + dy + 0.035)
            free = all(box[0] > b[2] or b[0] > box[2] or box[1] > b[3] or b[1] > box[3] for b in boxes)
            if free and box[0] >= -0.02 and box[2] <= 1.02:
                boxes.append(box)
                words = gap + text if align == "left" else text + gap
                labels.append({"text": words, "at": x, "up": y + dy, "align": align})
                break
    return labels


def tooltip(name: str, series: str = "", expected: str = "") -> list[Any]:
    """Tooltips of name and series by title, then value, interval and N, and what is expected without bias."""
    fields = {"name": name, **({"series": series} if series else {})}
    fields |= {"shown": "value", "interval": "95 % interval", "n": "N"}
    tips = [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]
    return [*tips, alt.Tooltip("expected:Q", title=expected, format=".3f")] if expected else tips


def fitted(values: Iterable[float], zero: bool = False) -> Ends:
    """The range of an axis that holds the values, and 0 with ``zero``, between round numbers."""
    finite = [value for value in values if math.isfinite(value)] + [0.0] * zero or [0.0]
    # Values that are equal but for the last digits of their sums would get an axis without a length.
    low, high = round(min(finite), 9), round(max(finite), 9)
    if math.isclose(low, high):
        low, high = low - (abs(low) / 10 or 0.5) * (low != 0 or not zero), high + (abs(high) / 10 or 0.5)
    size = 10 ** math.floor(math.log10((high - low) / _TICKS))
    step = next(size * times for times in (1, 2, 5, 10) if (high - low) / (size * times) <= _TICKS)
    return round(math.floor(low / step + 1e-9) * step, 12), round(math.ceil(high / step - 1e-9) * step, 12)


def range_of(how: How, fit: bool) -> Ends | None:
    """The range of an axis of values: from 0 to 1, or None if it is fitted to them, as where they are not shares."""
    return None if fit or (isinstance(how, Metric) and not how.share) else SHARE


def axis_of(title: str, domain: Ends | None, values: Iterable[float], zero: bool = False, lines: int = 2) -> Any:
    """Scale and title of an axis; where it is fitted to the values, the title says from where to where it goes."""
    ends = domain or fitted(values, zero)
    low, high = (f"{end:g}".replace("-", "−") for end in ends)
    parts = [title] if domain else [title, f"(axis {low} to {high})"]
    words = parts if lines > 1 and len(" ".join(parts)) > _SHORT else " ".join(parts)
    return alt.Scale(domain=list(ends), nice=False), words


def series_of(style: Style, names: Sequence[str], offset: int = 10, shapes: bool = True) -> dict[str, Any]:
    """Encodings of the series: a colour and, for points, a shape."""
    looks = style.looks(names)
    columns = 2 if max(map(len, names), default=0) <= (_SHORT if style.width == "container" else 12) else 1
    legend = alt.Legend(columns=columns, offset=style.scaled(offset)) if len(names) > 1 else None
    ranges = {"color": [colour for colour, _ in looks], "shape": [shape for _, shape in looks]}
    channels = {"color": alt.Color, "shape": alt.Shape}
    return {
        key: of("series:N", scale=alt.Scale(domain=list(names), range=ranges[key]), legend=legend)
        for key, of in channels.items()
        if shapes or key == "color"
    }


def two_lines(name: str, width: int = _LONG_NAME) -> list[str]:
    """A name in at most two lines, broken before a minus, else behind a word or hyphen."""
    lines = name.replace(" − ", "\n− ").split("\n") if len(name) > width else [name]
    lines = wrap(name, width) if len(lines) == 1 else lines
    return lines if len(lines) < 3 else [lines[0], f"{lines[1]}…"]


def rows_of(style: Style, names: Sequence[str], title: str) -> Any:
    return alt.Y(
        "name:N",
        sort=list(names),
        title=title or None,
        axis=alt.Axis(
            labelExpr=f"{json.dumps({name: two_lines(name) for name in names})}[datum.label]",
            labelLimit=style.scaled(210 if style.width == "container" else 165),
        ),
    )


def rule_at(style: Style, at: float, x: Any) -> Any:
    return alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(strokeDash=[3, 3], color=style.muted).encode(x=x)
