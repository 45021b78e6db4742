"""Chart types; tooltips show value, interval and N."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from unslant.metrics import Estimate, Metric
from unslant.reports.numbers import How, number, with_interval
from unslant.reports.style import (
    BELOW_TITLE,
    SHARE,
    Mark,
    Style,
    alt,
    axis_of,
    numbers_of,
    point_labels,
    range_of,
    records_of,
    rings,
    rows_of,
    rule_at,
    series_of,
    tooltip,
    two_lines,
    values_of,
)

_FEW_COUNTS = 6
_WIDTH = 20
"""Letters in a line of a name next to a slope."""


def intervals(
    marks: Sequence[Mark],
    style: Style,
    *,
    rows: str = "",
    axis: str = "accuracy",
    how: How = 3,
    fit: bool = False,
    step: int = 30,
    line: float | None = None,
    expected: str = "",
    highlight: str = "",
) -> Any:
    """Rows of points with intervals, series grouped within a row; differences with a dashed line at 0.

    Args:
        rows: what a row is.
        fit: fit the axis to shares too, as to all other values.
        line: draw a dashed line at this value, if it is known.
        expected: what a tick in the row is, where marks have one.
        highlight: the name whose colour highlighted marks have.
    """
    records = records_of(marks, how)
    names, series = values_of(records, "name"), values_of(records, "series")
    known = [line] if line is not None and math.isfinite(line) else []
    lines = [0.0] if isinstance(how, Metric) and how.signed else known
    values = numbers_of(records, "value", "low", "high", "expected") + lines
    scale, title = axis_of(axis, range_of(how, fit), values)
    x = {key: alt.X(f"{key}:Q", title=title, scale=scale) for key in ("value", "low", "expected", "at")}
    base = alt.Chart(alt.Data(values=records)).encode(y=rows_of(style, names, rows))
    offset: dict[str, Any] = {}
    if len(series) > 1:
        looks = series_of(style, series)
        offset = {"yOffset": alt.YOffset("series:N", sort=series, scale=alt.Scale(paddingOuter=0.6))}
    else:
        plain = style.muted if any(record["out"] for record in records) else style.accent
        out = style.colour(highlight) or style.accent
        for record in records:
            record["colour"] = style.colour(record["name"]) or (out if record["out"] else plain)
        looks = {"color": alt.Color("colour:N", scale=None)}
    tips = tooltip(rows, "series" * (len(series) > 1), expected)
    bars = base.mark_rule(strokeWidth=style.scaled(2), opacity=0.45).encode(
        x=x["low"], x2="high:Q", color=looks["color"], tooltip=tips, **offset
    )
    points = base.mark_point().encode(x=x["value"], tooltip=tips, **looks, **offset)
    layers = [*(rule_at(style, at, x=x["at"]) for at in lines), bars, points]
    if expected and any(record["expected"] is not None for record in records):
        length = style.scaled(18 if len(series) < 2 else 11)
        ticks = base.mark_tick(orient="vertical", thickness=style.scaled(2), size=length, color=style.ink)
        layers.append(ticks.encode(x=x["expected"], tooltip=tips, **offset))
    height = len(names) * max(step, 13 * len(series) + 8)
    return alt.layer(*layers).properties(width=style.width, height=style.scaled(height))


def columns(
    marks: Sequence[Mark],
    style: Style,
    *,
    rows: str,
    axis: str = "accuracy",
    how: How = 3,
    fit: bool = False,
    expected: str = "",
) -> Any:
    """Vertical bars with intervals, series side by side; a tick where ``expected`` is known."""
    records = records_of(marks, how)
    places, names = values_of(records, "name"), values_of(records, "series")
    x = alt.X("name:N", sort=places, title=rows, axis=alt.Axis(labelAngle=0), scale=alt.Scale(padding=0.35))
    scale, title = axis_of(axis, range_of(how, fit), numbers_of(records, "value", "high", "expected"), True, 1)
    y = {key: alt.Y(f"{key}:Q", title=title, scale=scale) for key in ("value", "low", "expected")}
    tips = tooltip(rows, "series" * (len(names) > 1), expected)
    offset: dict[str, Any] = {}
    if len(names) > 1:
        colour = series_of(style, names, BELOW_TITLE, shapes=False)["color"]
        offset = {"xOffset": alt.XOffset("series:N", sort=names)}
    else:
        colour = alt.condition("datum.out", alt.value(style.accent), alt.value(style.faint))
    base = alt.Chart(alt.Data(values=records)).encode(x=x, tooltip=tips, **offset)
    bars = base.mark_bar(cornerRadiusEnd=2).encode(y=y["value"], color=colour)
    layers = [bars, base.mark_rule(strokeWidth=1.5, color=style.ink, opacity=0.7).encode(y=y["low"], y2="high:Q")]
    if expected:
        ticks = base.mark_tick(orient="horizontal", thickness=2, color=style.ink, width={"band": 1.0})
        layers.append(ticks.encode(y=y["expected"]))
    return alt.layer(*layers).properties(width=style.width, height=style.scaled(220))


def counts(marks: Sequence[Mark], style: Style, *, rows: str, how: How = 0) -> Any:
    """A histogram: the values are counts; bars that stand out are highlighted."""
    values = [int(mark.estimate.value) for mark in marks]
    total = sum(values)
    records = [
        {"name": mark.name, "count": value, "out": mark.stands_out, "n": total}
        | {"share": f"{number(value / max(1, total))} of {total:,}"}
        for mark, value in zip(marks, values, strict=True)
    ]
    names = values_of(records, "name")
    colour = alt.condition("datum.out", alt.value(style.accent), alt.value(style.faint))
    x = alt.X("name:N", sort=names, title=rows, axis=alt.Axis(labelAngle=-45 if len(names) > 6 else 0))
    # Vega puts ticks between few counts in spite of tickMinStep, and rounding would show a label twice.
    highest = max(values, default=0)
    ticks: dict[str, Any] = {"values": list(range(highest + 1))} if highest <= _FEW_COUNTS else {}
    y = alt.Y("count:Q", title="questions", axis=alt.Axis(format=",d", **ticks))
    tips = [alt.Tooltip("name:N", title=rows), alt.Tooltip("count:Q", title="questions"), alt.Tooltip("share:N")]
    bars = alt.Chart(alt.Data(values=records)).mark_bar(cornerRadiusEnd=2)
    return bars.encode(x=x, y=y, color=colour, tooltip=tips).properties(width=style.width, height=style.scaled(200))


def dumbbells(marks: Sequence[Mark], style: Style, *, rows: str = "", axis: str = "accuracy", how: How = 3) -> Any:
    """One row per name with several estimates joined by a line; those in one place are rings around each other."""
    records = records_of(marks, how)
    names = values_of(records, "name")
    rings(records, [(record["value"], float(names.index(record["name"]))) for record in records], style)
    y = rows_of(style, names, rows)
    x, ends = (alt.X(f"{at}:Q", title=axis, scale=alt.Scale(domain=list(SHARE))) for at in ("value", "min(value)"))
    base = alt.Chart(alt.Data(values=records)).encode(y=y)
    joined = base.mark_rule(strokeWidth=style.scaled(2), color=style.line).encode(x=ends, x2="max(value):Q")
    looks = series_of(style, values_of(records, "series"))
    rounds = base.mark_point(filled=False, strokeWidth=style.scaled(2))
    tips = tooltip(rows, "series")
    points = rounds.encode(x=x, size=alt.Size("size:Q", scale=None), tooltip=tips, **looks)
    return alt.layer(joined, points).properties(width=style.width, height=style.scaled(26 * len(names)))


def stacked(marks: Sequence[Mark], style: Style, *, rows: str, axis: str, how: How = 3) -> Any:
    """One bar a row, divided into the shares of its series, with their values where they fit."""
    records = records_of(marks, how)
    names, series = values_of(records, "name"), values_of(records, "series")
    ends = dict.fromkeys(names, 0.0)
    for record in records:
        record["start"] = ends[record["name"]]
        ends[record["name"]] = record["end"] = record["start"] + record["value"]
        record["middle"] = (record["start"] + record["end"]) / 2
    base = alt.Chart(alt.Data(values=records)).encode(y=rows_of(style, names, rows), tooltip=tooltip(rows, "share"))
    x = {key: alt.X(f"{key}:Q", title=axis, scale=alt.Scale(domain=list(SHARE))) for key in ("start", "middle")}
    bars = base.mark_bar(stroke=style.surface, strokeWidth=1.5).encode(
        x=x["start"], x2="end:Q", **series_of(style, series, shapes=False)
    )
    text = base.transform_filter("datum.value >= 0.08").mark_text(color=style.surface)
    layers = alt.layer(bars, text.encode(x=x["middle"], text=alt.Text("value:Q", format=".2f")))
    return layers.properties(width=style.width, height=style.scaled(34 * len(names)))


def scatter(
    marks: Sequence[Mark],
    style: Style,
    *,
    rows: str = "",
    across: str,
    axis: str = "accuracy",
    how: How = 3,
    how_across: How = 3,
    fit: bool = False,
    zero: bool = False,
    names: bool = True,
) -> Any:
    """One point per mark, at two estimates; points in one place are drawn as rings around each other.

    Args:
        rows: what a point is.
        across, axis: titles of the x axis (``at``) and of the y axis.
        fit: fit the y axis to shares too, as to all other values.
        zero: begin fitted axes at 0.
        names: write the names next to the points, where there is room.
    """
    points = [(mark, at, mark.estimate) for mark in marks if isinstance(at := mark.at, Estimate) and at.defined]
    series = any(mark.series for mark in marks)
    records: list[dict[str, Any]] = [
        {"name": mark.name, "x": a.value, "y": b.value, "n": f"{b.n:,}", "series": mark.series}
        | {"shown x": with_interval(a, how_across), "shown y": with_interval(b, how)}
        for mark, a, b in points
        if b.defined
    ]
    x_scale, x_title = axis_of(across, None, numbers_of(records, "x"), zero)
    up, y_title = axis_of(axis, range_of(how, fit), numbers_of(records, "y"), zero, 1)
    (x0, x1), (y0, y1) = x_scale.domain, up.domain
    spots = [((r["x"] - x0) / (x1 - x0), (r["y"] - y0) / (y1 - y0)) for r in records]
    rings(records, spots, style)
    titles = {"name": rows or " ", **({"series": "series"} if series else {})}
    titles |= {"shown x": across, "shown y": axis, "n": "N"}
    tips = [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]
    looks = {"color": alt.value(style.accent)}
    if series:
        looks = series_of(style, values_of(records, "series"), BELOW_TITLE)
    base = alt.Chart(alt.Data(values=records)).mark_point(filled=False, strokeWidth=style.scaled(2))
    x, y = alt.X("x:Q", title=x_title, scale=x_scale), alt.Y("y:Q", title=y_title, scale=up)
    layers = [base.encode(x=x, y=y, size=alt.Size("size:Q", scale=None), tooltip=tips, **looks)]
    labels = point_labels([(r["name"], *at) for r, at in zip(records, spots, strict=True)]) if names else []
    for label in labels:
        label |= {"at": x0 + label["at"] * (x1 - x0), "up": y0 + label["up"] * (y1 - y0)}
    for align, dx in (("left", 9), ("right", -9)):
        if texts := [label for label in labels if label["align"] == align]:
            text = alt.Chart(alt.Data(values=texts)).mark_text(align=align, dx=style.scaled(dx), color=style.muted)
            layers.append(text.encode(x=alt.X("at:Q", scale=x_scale), y=alt.Y("up:Q", scale=up), text="text:N"))
    return alt.layer(*layers).properties(width=style.width, height=style.scaled(280))


def against(marks: Sequence[Mark], style: Style, *, rows: str, axis: str, how: How = 3) -> Any:
    """Shares with intervals against other shares (``at``), and the dashed line on which both are equal."""
    records = records_of(marks, how)
    x = alt.X("at:Q", title=rows, scale=alt.Scale(domain=list(SHARE)))
    y = alt.Y("value:Q", title=axis, scale=alt.Scale(domain=list(SHARE)))
    ends = alt.Chart(alt.Data(values=[{"at": end, "value": end} for end in SHARE]))
    base = alt.Chart(alt.Data(values=records)).encode(x=x, tooltip=tooltip(rows))
    layers = [
        ends.mark_line(strokeDash=[3, 3], color=style.muted).encode(x=x, y=y),
        base.mark_rule(strokeWidth=2, color=style.accent, opacity=0.45).encode(
            y=alt.Y("low:Q", title=axis), y2="high:Q"
        ),
        base.mark_point(size=60, color=style.accent).encode(y=y),
    ]
    return alt.layer(*layers).properties(width=style.width, height=240)


def strip(marks: Sequence[Mark], style: Style, *, rows: str = "", axis: str = "accuracy", how: How = 3) -> Any:
    """Ticks on one line per name; the tooltip shows the series as order."""
    records = records_of(marks, how)
    names, tips = values_of(records, "name"), tooltip(rows, "order")
    scale, title = axis_of(axis, None, numbers_of(records, "value"))
    mark = {"thickness": style.scaled(2), "size": style.scaled(22), "opacity": 0.6, "color": style.accent}
    ticks = alt.Chart(alt.Data(values=records)).mark_tick(**mark)
    return ticks.encode(
        x=alt.X("value:Q", title=title, scale=scale), y=rows_of(style, names, rows), tooltip=tips
    ).properties(width=style.width, height=style.scaled(40 * len(names)))


def lines(
    marks: Sequence[Mark],
    style: Style,
    *,
    rows: str,
    axis: str,
    how: How = 3,
    zero: bool = False,
    whole: bool = False,
    ratio: bool = False,
) -> Any:
    """Estimates with intervals at numbers (``at``), joined by a line for each series and kind of line.

    Args:
        zero: begin the y axis at 0.
        whole: the numbers are whole, such as epochs: no ticks between them.
        ratio: the x axis is logarithmic.
    """
    records = [record | {"name": f"{record['at']:g}"} for record in records_of(marks, how)]
    series, dashes = values_of(records, "series"), values_of(records, "dash")
    at = sorted({record["at"] for record in records})
    kinds = list(dict.fromkeys((record["series"], record["dash"]) for record in records))
    gap = 0 if ratio or not at else 0.012 * (at[-1] - at[0])
    for record in records:  # next to each other, so that no interval hides another
        record["at"] += gap * (kinds.index((record["series"], record["dash"])) - (len(kinds) - 1) / 2)
    ticks = alt.Axis(values=at[:: -(-len(at) // 8) or 1], format="d") if whole else alt.Axis(format="~g")
    scale, title = axis_of(axis, None, numbers_of(records, "value", "low", "high"), zero, 1)
    across = alt.Scale(type="log" if ratio else "linear", zero=False, nice=False, padding=style.scaled(12))
    tips = tooltip(rows, "series" * (len(series) > 1))
    looks = series_of(style, series, BELOW_TITLE) if len(series) > 1 else {"color": alt.value(style.accent)}
    dash: dict[str, Any] = {}
    if len(dashes) > 1:
        legend = alt.Legend(symbolType="stroke", symbolStrokeColor=style.ink, symbolSize=400, offset=style.scaled(4))
        patterns = [[1, 0], [5, 4], [1, 3]][: len(dashes)]
        dash = {"strokeDash": alt.StrokeDash("dash:N", scale=alt.Scale(domain=dashes, range=patterns), legend=legend)}
    y = {key: alt.Y(f"{key}:Q", title=title, scale=scale) for key in ("value", "low")}
    base = alt.Chart(alt.Data(values=records)).encode(
        x=alt.X("at:Q", title=rows, axis=ticks, scale=across), tooltip=tips
    )
    joined = base.mark_line(strokeWidth=style.scaled(2)).encode(y=y["value"], color=looks["color"], **dash)
    points = base.mark_point(size=style.scaled(style.scaled(45))).encode(y=y["value"], **looks)
    layers = [joined, points]
    if any(record["low"] is not None for record in records):
        bars = base.mark_rule(strokeWidth=style.scaled(1.5), opacity=0.45)
        layers.insert(0, bars.encode(y=y["low"], y2="high:Q", color=looks["color"]))
    return alt.layer(*layers).properties(width=style.width, height=style.scaled(200))


def matrix(
    marks: Sequence[Mark], style: Style, *, rows: str, columns: str, axis: str = "accuracy", how: How = 3
) -> Any:
    """Shares in a grid, names down and series across, each written in its cell; darker is higher."""
    records = records_of(marks, how)
    series = values_of(records, "series")
    x = alt.X(
        "series:N",
        sort=series,
        title=columns,
        axis=alt.Axis(labelAngle=0 if len(series) < 6 else -45, labelLimit=style.scaled(110)),
    )
    y = rows_of(style, values_of(records, "name"), rows)
    tips = tooltip(rows, columns)
    base = alt.Chart(alt.Data(values=records)).encode(x=x, y=y, tooltip=tips)
    shade = alt.FillOpacity("value:Q", scale=alt.Scale(domain=list(SHARE), range=[0.03, 0.55]), legend=None, title=axis)
    cells = base.mark_rect(fill=style.accent, stroke=style.surface, strokeWidth=style.scaled(2)).encode(
        fillOpacity=shade
    )
    text = base.mark_text(color=style.ink).encode(text="shown:N")
    height = style.scaled(26 * len(values_of(records, "name")))
    return alt.layer(cells, text).properties(width=style.width, height=height)


def slopes(places: Sequence[tuple[str, int, int]], style: Style, *, ends: tuple[str, str], n: int) -> Any:
    """Ranks under two scores, one line per name, the best at the top; lines that rise or fall are highlighted.

    Each name is at both ends of its line with its rank there; names of equal rank are under each other.
    """
    by_end = [sorted(places, key=lambda row: (row[i], row[3 - i])) for i in (1, 2)]
    spots = [{row[0]: place for place, row in enumerate(rows)} for rows in by_end]
    records = [
        {"name": name, "at": at, "place": spot[name], "moved": a != b, "change": f"{a} to {b}", "n": n}
        for name, a, b in places
        for at, spot in zip(ends, spots, strict=True)
    ]
    words = alt.Axis(labelAngle=0, labelExpr="split(datum.label, ' ')")
    x = alt.X("at:N", sort=list(ends), title="ranked by", axis=words, scale=alt.Scale(padding=0.25))
    scale = alt.Scale(domain=[-0.5, len(places) - 0.5], reverse=True, nice=False)
    colour = alt.condition("datum.moved", alt.value(style.accent), alt.value(style.faint))
    tips = [alt.Tooltip("name:N", title=" "), alt.Tooltip("change:N", title="rank")]
    base = alt.Chart(alt.Data(values=records)).encode(x=x, detail="name:N", tooltip=tips, color=colour)
    marks = (base.mark_line(strokeWidth=style.scaled(2)), base.mark_point(size=style.scaled(style.scaled(60))))
    layers = []
    for side, (mark, rows) in enumerate(zip(marks, by_end, strict=True)):
        labels = [two_lines(f"{row[1 + side]}  {row[0]}", _WIDTH) for row in rows]
        axis = alt.Axis(
            orient=("left", "right")[side],
            values=list(range(len(rows))),
            labelExpr=f"{json.dumps(labels)}[datum.value]",
            labelLimit=style.scaled(150),
            tickCount=len(rows),
            labelOverlap=False,
            labelColor=style.ink,
            grid=False,
        )
        layers.append(mark.encode(y=alt.Y("place:Q", title="rank" if side == 0 else None, scale=scale, axis=axis)))
    chart = alt.layer(*layers).resolve_scale(y="independent")
    return chart.properties(width=style.width, height=style.scaled(30 + 26 * len(places)))
