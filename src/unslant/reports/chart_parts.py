"""What chart types share: marks, axes, series and tooltips."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from unslant.metrics import Estimate, Metric
from unslant.reports.numbers import How, count, has_interval, interval, number
from unslant.reports.style import Style

SHARE = (0.0, 1.0)
MOST_ROWS = 15
"""Most rows in a chart of subjects; the table has all of them."""
MOST_SERIES = 6
"""Most runs that charts show as series; more are rows, or in the table alone."""
_TICKS = 5
_SHORT = 24
_LONG_NAME = 24
"""Letters of a row's name above which it breaks."""


def first_rows(total: int, thing: str = "subject") -> str:
    """Title suffix of a truncated chart: `` (the first 15 of 57 subjects)``."""
    return f" (the first {MOST_ROWS} of {count(total, thing)})" if total > MOST_ROWS else ""


@dataclass(frozen=True)
class Mark:
    """One estimate in a chart: row or place, series, and whether it is highlighted.

    Attributes:
        expected: what it would be without bias, drawn as a tick.
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
            "expected": mark.expected,
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


def tooltip(alt: Any, **extra: str) -> list[Any]:
    """Tooltips of ``extra`` fields by title, then value, interval and N."""
    fields = {**extra, "shown": "value", "interval": "95 % interval", "n": "N"}
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]


def fitted(values: Iterable[float], zero: bool = False) -> tuple[float, float]:
    """The range of an axis that holds the values, and 0 with ``zero``, between round numbers."""
    found = [value for value in values if math.isfinite(value)] + [0.0] * zero or [0.0]
    low, high = min(found), max(found)
    if low == high:
        low, high = low - (abs(low) / 10 or 0.5) * (low != 0 or not zero), high + (abs(high) / 10 or 0.5)
    size = 10 ** math.floor(math.log10((high - low) / _TICKS))
    step = next(size * times for times in (1, 2, 5, 10) if (high - low) / (size * times) <= _TICKS)
    return round(math.floor(low / step + 1e-9) * step, 12), round(math.ceil(high / step - 1e-9) * step, 12)


def range_of(how: How, fit: bool) -> tuple[float, float] | None:
    """The range of an axis of values: from 0 to 1, or None if it is fitted to them, as where they are not shares."""
    return None if fit or (isinstance(how, Metric) and not how.share) else SHARE


def axis_of(
    alt: Any,
    title: str,
    domain: tuple[float, float] | None,
    values: Iterable[float],
    zero: bool = False,
    lines: int = 2,
) -> Any:
    """Scale and title of an axis; where it is fitted to the values, the title says from where to where it goes."""
    ends = domain or fitted(values, zero)
    low, high = (f"{end:g}".replace("-", "−") for end in ends)
    parts = [title] if domain else [title, f"(axis {low} to {high})"]
    said = parts if lines > 1 and len(" ".join(parts)) > _SHORT else " ".join(parts)
    return alt.Scale(domain=list(ends), nice=False), said


def series_of(alt: Any, style: Style, names: Sequence[str], offset: int = 10, shapes: bool = True) -> dict[str, Any]:
    """Encodings of the series: a colour and, for points, a shape."""
    looks = style.looks(names)
    columns = 2 if max(map(len, names), default=0) <= (_SHORT if style.width == "container" else 12) else 1
    legend = alt.Legend(columns=columns, offset=style.scaled(offset)) if len(names) > 1 else None
    ranges = {"color": [colour for colour, _ in looks], "shape": [shape for _, shape in looks]}
    made = {"color": alt.Color, "shape": alt.Shape}
    return {
        key: of("series:N", scale=alt.Scale(domain=list(names), range=ranges[key]), legend=legend)
        for key, of in made.items()
        if shapes or key == "color"
    }


def two_lines(name: str, width: int = _LONG_NAME) -> list[str]:
    """A name in at most two lines, broken before a minus, else behind a word or hyphen."""
    lines = name.replace(" − ", "\n− ").split("\n") if len(name) > width else [name]
    lines = wrap(name, width) if len(lines) == 1 else lines
    return lines if len(lines) < 3 else [lines[0], f"{lines[1]}…"]


def rows_of(alt: Any, style: Style, names: Sequence[str], title: str) -> Any:
    return alt.Y(
        "name:N",
        sort=list(names),
        title=title or None,
        axis=alt.Axis(
            labelExpr=f"{json.dumps({name: two_lines(name) for name in names})}[datum.label]",
            labelLimit=style.scaled(210 if style.width == "container" else 165),
        ),
    )


def rule_at(alt: Any, style: Style, at: float, **encoding: Any) -> Any:
    rule = alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(strokeDash=[3, 3], color=style.muted)
    return rule.encode(**encoding)
