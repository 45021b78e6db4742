"""Chart types that compare models: a grid of models and question sets, and ranks under two scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from unslant.reports.chart_parts import SHARE, Mark, records_of, rows_of, tooltip, two_lines, values_of
from unslant.reports.numbers import How
from unslant.reports.style import Style

_WIDTH = 20
"""Letters in a line of a name next to a slope."""


def matrix(
    marks: Sequence[Mark], style: Style, *, rows: str, columns: str, axis: str = "accuracy", how: How = 3
) -> Any:
    """Shares in a grid, names down and series across, each written in its cell; darker is higher."""
    import altair as alt

    records = records_of(marks, how)
    series = values_of(records, "series")
    x = alt.X(
        "series:N",
        sort=series,
        title=columns,
        axis=alt.Axis(labelAngle=0 if len(series) < 6 else -45, labelLimit=style.scaled(110)),
    )
    y = rows_of(alt, style, values_of(records, "name"), rows)
    tips = tooltip(alt, name=rows, series=columns)
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
    import altair as alt

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
        written = [two_lines(f"{row[1 + side]}  {row[0]}", _WIDTH) for row in rows]
        axis = alt.Axis(
            orient=("left", "right")[side],
            values=list(range(len(rows))),
            labelExpr=f"{json.dumps(written)}[datum.value]",
            labelLimit=style.scaled(150),
            tickCount=len(rows),
            labelOverlap=False,
            labelColor=style.ink,
            grid=False,
        )
        layers.append(mark.encode(y=alt.Y("place:Q", title="rank" if side == 0 else None, scale=scale, axis=axis)))
    chart = alt.layer(*layers).resolve_scale(y="independent")
    return chart.properties(width=style.width, height=style.scaled(30 + 26 * len(places)))
