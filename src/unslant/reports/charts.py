"""Chart types shared by panels; tooltips show value, interval and N."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unslant.metrics import Estimate
from unslant.reports.numbers import How, count, has_interval, interval, number, with_interval
from unslant.reports.panels import Style
from unslant.reports.style import BELOW_TITLE

SHARE = (0.0, 1.0)
MOST_ROWS = 15
"""Most rows in a chart of subjects; the table has all of them."""


def first_rows(total: int, thing: str = "subject") -> str:
    """Title suffix of a truncated chart: `` (the first 15 of 57 subjects)``."""
    return f" (the first {MOST_ROWS} of {count(total, thing)})" if total > MOST_ROWS else ""


@dataclass(frozen=True)
class Mark:
    """One estimate in a chart: row or place, series, and whether it is highlighted."""

    name: str
    estimate: Estimate
    series: str = ""
    expected: float | None = None
    stands_out: bool = False


def _records(marks: Sequence[Mark], how: How = 3) -> list[dict[str, Any]]:
    return [
        {
            "name": mark.name,
            "series": mark.series,
            "value": mark.estimate.value,
            "low": mark.estimate.low if has_interval(mark.estimate) else None,
            "high": mark.estimate.high if has_interval(mark.estimate) else None,
            "expected": mark.expected,
            "out": mark.stands_out,
            "shown": number(mark.estimate, how),
            "interval": interval(mark.estimate, how) or "none",
            "n": f"{mark.estimate.n:,}",
        }
        for mark in marks
        if mark.estimate.defined
    ]


def _values(records: Sequence[dict[str, Any]], field: str) -> list[str]:
    return list(dict.fromkeys(record[field] for record in records))


def _tooltip(alt: Any, **extra: str) -> list[Any]:
    """Tooltips of ``extra`` fields by title, then value, interval and N."""
    fields = {**extra, "shown": "value", "interval": "95 % interval", "n": "N"}
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]


def _series(alt: Any, style: Style, names: Sequence[str], offset: int = 10) -> Any:
    scale = alt.Scale(domain=list(names), range=[style.series[i % len(style.series)] for i in range(len(names))])
    return alt.Color("series:N", scale=scale, legend=alt.Legend(columns=2, offset=offset) if len(names) > 1 else None)


def intervals(
    marks: Sequence[Mark],
    style: Style,
    *,
    axis: str = "accuracy",
    domain: tuple[float, float] | None = SHARE,
    step: int = 30,
    zero: bool = False,
    how: How = 3,
    line: float | None = None,
) -> Any:
    """Rows of points with intervals, series grouped within a row.

    Args:
        domain: of the axis; ``None`` fits it to the values.
        zero: draw a dashed line at 0.
        line: draw a dashed line at this value.
    """
    import altair as alt

    records = _records(marks, how)
    rows, names = _values(records, "name"), _values(records, "series")
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=zero, nice=True)
    x = alt.X("value:Q", title=axis, scale=scale)
    y = alt.Y("name:N", sort=rows, title=None, axis=alt.Axis(labelLimit=210))
    base = alt.Chart(alt.Data(values=records)).encode(y=y)
    offset: dict[str, Any] = {}
    if len(names) > 1:
        colour = _series(alt, style, names)
        offset = {"yOffset": alt.YOffset("series:N", sort=names, scale=alt.Scale(paddingOuter=0.6))}
    else:
        colour = alt.condition("datum.out", alt.value(style.contrast), alt.value(style.accent))
    tips = _tooltip(alt, name=" ", **({"series": "series"} if len(names) > 1 else {}))
    bars = base.mark_rule(strokeWidth=2, opacity=0.45).encode(
        x=alt.X("low:Q", title=axis, scale=scale), x2="high:Q", color=colour, tooltip=tips, **offset
    )
    points = base.mark_point().encode(x=x, color=colour, tooltip=tips, **offset)
    layers = [bars, points]
    for at in [0.0] * zero + ([line] if line is not None else []):
        rule = alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(strokeDash=[3, 3], color=style.muted)
        layers.insert(0, rule.encode(x=alt.X("at:Q", title=axis, scale=scale)))
    return alt.layer(*layers).properties(width=style.width, height=len(rows) * max(step, 13 * len(names) + 8))


def columns(
    marks: Sequence[Mark],
    style: Style,
    *,
    title: str,
    under: str,
    expected: str = "",
    domain: tuple[float, float] | None = SHARE,
    how: How = 3,
) -> Any:
    """Vertical bars with intervals, series side by side; a tick where ``expected`` is known."""
    import altair as alt

    records = _records(marks, how)
    places, names = _values(records, "name"), _values(records, "series")
    x = alt.X("name:N", sort=places, title=under, axis=alt.Axis(labelAngle=0), scale=alt.Scale(padding=0.35))
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=True, nice=True)
    tips = _tooltip(alt, name=under, **({"series": "series"} if len(names) > 1 else {}))
    if expected:
        tips.append(alt.Tooltip("expected:Q", title=expected, format=".3f"))
    offset: dict[str, Any] = {}
    if len(names) > 1:
        colour = _series(alt, style, names, BELOW_TITLE)
        offset = {"xOffset": alt.XOffset("series:N", sort=names)}
    else:
        colour = alt.condition("datum.out", alt.value(style.contrast), alt.value(style.faint))
    base = alt.Chart(alt.Data(values=records)).encode(x=x, tooltip=tips, **offset)
    bars = base.mark_bar(cornerRadiusEnd=2).encode(y=alt.Y("value:Q", title=title, scale=scale), color=colour)
    rules = base.mark_rule(strokeWidth=1.5, color=style.ink, opacity=0.7).encode(
        y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q"
    )
    layers = [bars, rules]
    if expected:
        ticks = base.mark_tick(orient="horizontal", thickness=2, color=style.ink, width={"band": 1.0})
        layers.append(ticks.encode(y=alt.Y("expected:Q", title=title, scale=scale)))
    return alt.layer(*layers).properties(width=style.width, height=220)


def counts(names: Sequence[str], values: Sequence[int], middle: Sequence[bool], style: Style, *, under: str) -> Any:
    """A histogram from counts; bars of the ``middle`` are highlighted."""
    import altair as alt

    total = sum(values)
    records = [
        {"name": name, "count": value, "out": out, "share": f"{number(value / max(1, total))} of {total:,}"}
        for name, value, out in zip(names, values, middle, strict=True)
    ]
    colour = alt.condition("datum.out", alt.value(style.contrast), alt.value(style.faint))
    x = alt.X("name:N", sort=list(names), title=under, axis=alt.Axis(labelAngle=0, labelOverlap=True))
    tips = [alt.Tooltip("name:N", title=under), alt.Tooltip("count:Q", title="questions"), alt.Tooltip("share:N")]
    bars = alt.Chart(alt.Data(values=records)).mark_bar(cornerRadiusEnd=2)
    return bars.encode(x=x, y=alt.Y("count:Q", title="questions"), color=colour, tooltip=tips).properties(
        width=style.width, height=200
    )


def dumbbells(rows: Sequence[tuple[str, Sequence[Mark]]], style: Style, *, axis: str = "accuracy") -> Any:
    """One row per name with several estimates joined by a line."""
    import altair as alt

    records = [record | {"name": name} for name, marks in rows for record in _records(marks)]
    y = alt.Y("name:N", sort=[name for name, _ in rows], title=None, axis=alt.Axis(labelLimit=180))
    x, ends = (alt.X(f"{at}:Q", title=axis, scale=alt.Scale(domain=list(SHARE))) for at in ("value", "min(value)"))
    base = alt.Chart(alt.Data(values=records)).encode(y=y)
    joined = base.mark_rule(strokeWidth=2, color=style.line).encode(x=ends, x2="max(value):Q")
    colour = _series(alt, style, _values(records, "series"))
    points = base.mark_point().encode(x=x, color=colour, tooltip=_tooltip(alt, name=" ", series=" "))
    return alt.layer(joined, points).properties(width=style.width, height=24 * len(rows))


def scatter(
    rows: Sequence[tuple[str, Estimate, Estimate]], style: Style, *, under: str, beside: str, how: How = 3
) -> Any:
    """One point per name, at two estimates (x, y)."""
    import altair as alt

    records = [
        {"name": name, "x": a.value, "y": b.value, "n": f"{b.n:,}"}
        | {"shown x": with_interval(a, how), "shown y": with_interval(b)}
        for name, a, b in rows
        if a.defined and b.defined
    ]
    titles = {"name": " ", "shown x": under, "shown y": beside, "n": "N"}
    tips = [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]
    points = alt.Chart(alt.Data(values=records)).mark_point(size=80, opacity=0.75, color=style.accent)
    return points.encode(
        x=alt.X("x:Q", title=under, scale=alt.Scale(zero=False)),
        y=alt.Y("y:Q", title=beside, scale=alt.Scale(domain=list(SHARE))),
        tooltip=tips,
    ).properties(width=style.width, height=240)


def against(points: Sequence[tuple[str, float, Estimate]], style: Style, *, under: str, beside: str) -> Any:
    """Shares with intervals against other shares, and the dashed line on which both are equal."""
    import altair as alt

    at = {name: x for name, x, _ in points}
    records = [r | {"at": at[r["name"]]} for r in _records([Mark(name, value) for name, _, value in points])]
    x, y = (
        alt.X("at:Q", title=under, scale=alt.Scale(domain=list(SHARE))),
        alt.Y("value:Q", title=beside, scale=alt.Scale(domain=list(SHARE))),
    )
    ends = alt.Chart(alt.Data(values=[{"at": end, "value": end} for end in SHARE]))
    base = alt.Chart(alt.Data(values=records)).encode(x=x, tooltip=_tooltip(alt, name=under))
    layers = [
        ends.mark_line(strokeDash=[3, 3], color=style.muted).encode(x=x, y=y),
        base.mark_rule(strokeWidth=2, color=style.accent, opacity=0.45).encode(
            y=alt.Y("low:Q", title=beside), y2="high:Q"
        ),
        base.mark_point(size=60, color=style.accent).encode(y=y),
    ]
    return alt.layer(*layers).properties(width=style.width, height=240)


def strip(marks: Sequence[Mark], style: Style, *, axis: str = "accuracy") -> Any:
    """Ticks on one line per name; the tooltip shows the series as order."""
    import altair as alt

    records = _records(marks)
    rows, tips = _values(records, "name"), _tooltip(alt, name=" ", series="order")
    ticks = alt.Chart(alt.Data(values=records)).mark_tick(thickness=2, size=22, opacity=0.6, color=style.accent)
    return ticks.encode(
        x=alt.X("value:Q", title=axis, scale=alt.Scale(zero=False, nice=True)),
        y=alt.Y("name:N", sort=rows, title=None),
        tooltip=tips,
    ).properties(width=style.width, height=40 * len(rows))


def line(marks: Sequence[Mark], style: Style, *, under: str, beside: str, how: How = 3) -> Any:
    """Estimates with intervals at integers (the names), joined by a line."""
    import altair as alt

    records = [record | {"at": int(record["name"])} for record in _records(marks, how)]
    tips = _tooltip(alt, name=under)
    scale = alt.Scale(zero=False, nice=True)
    x = alt.X("at:Q", title=under, axis=alt.Axis(tickMinStep=1, format="d"))
    base = alt.Chart(alt.Data(values=records)).encode(x=x, tooltip=tips)
    y = alt.Y("value:Q", title=beside, scale=scale)
    joined = base.mark_line(strokeWidth=2, color=style.accent).encode(y=y)
    points = base.mark_point(size=40, color=style.accent).encode(y=y)
    bars = base.mark_rule(strokeWidth=1.5, color=style.accent, opacity=0.45).encode(
        y=alt.Y("low:Q", title=beside, scale=scale), y2="high:Q"
    )
    return alt.layer(bars, joined, points).properties(width=style.width, height=200)


def slopes(rows: Sequence[tuple[str, int, int]], style: Style, *, ends: tuple[str, str]) -> Any:
    """Ranks under two scores, one line per name, 1 at the top; lines that rise or fall are highlighted."""
    import altair as alt

    records = [
        {"name": name, "at": at, "rank": rank, "moved": before != after, "change": f"{before} to {after}"}
        for name, before, after in rows
        for at, rank in zip(ends, (before, after), strict=True)
    ]
    labels = [
        {"at": at, "rank": rank, "names": ", ".join(name for name, *ranks in rows if ranks[i] == rank)}
        for i, at in enumerate(ends)
        for rank in sorted({row[1 + i] for row in rows})
    ]
    last = max((max(before, after) for _, before, after in rows), default=1)
    x = alt.X("at:N", sort=list(ends), title=None, axis=alt.Axis(labelAngle=0), scale=alt.Scale(padding=0.6))
    scale = alt.Scale(domain=[0.5, last + 0.5], reverse=True, nice=False)
    y = alt.Y("rank:Q", title="rank", scale=scale, axis=alt.Axis(values=list(range(1, last + 1)), format="d"))
    colour = alt.condition("datum.moved", alt.value(style.contrast), alt.value(style.muted))
    tips = [alt.Tooltip("name:N", title=" "), alt.Tooltip("change:N", title="rank")]
    base = alt.Chart(alt.Data(values=records)).encode(x=x, y=y, detail="name:N", tooltip=tips, color=colour)
    layers = [base.mark_line(strokeWidth=2), base.mark_point(size=60)]
    for i, (align, dx) in enumerate((("right", -10), ("left", 10))):
        own = alt.Chart(alt.Data(values=[record for record in labels if record["at"] == ends[i]]))
        text = own.mark_text(align=align, dx=dx, limit=180, color=style.ink)
        layers.append(text.encode(x=x, y=y, text="names:N"))
    return alt.layer(*layers).properties(width=style.width, height=60 + 34 * last)
