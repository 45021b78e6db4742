"""Charts of the base-rate study, for its report and as one file (P5, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError
from unslant.extras import needed
from unslant.metrics import METRICS
from unslant.reports import Chart, Style, charts, number
from unslant.reports.charts import Mark
from unslant.reports.figures import save_figure
from unslant.reports.style import PAPER, specification
from unslant.studies.base_rate.findings import Findings
from unslant.studies.base_rate.subject_correlation import SubjectCorrelation

if TYPE_CHECKING:
    from unslant.studies.base_rate.result import BaseRateResult

FORMATS = (".svg", ".png")
_WIDTH = 320


def check_format(path: str | Path) -> None:
    """Raise InputError unless the path ends in ``.svg`` or ``.png``, ModelError if charts cannot be drawn here."""
    needed("vl_convert", "drawing figures")
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError.at(path, f"charts can be written as {' or '.join(FORMATS)}")


def save_charts(result: BaseRateResult, path: str | Path) -> None:
    """Draw all charts into one SVG or PNG file, offline, with a column per elicitation.

    Raises:
        InputError: see :func:`check_format`.
    """
    import altair as alt

    check_format(path)
    style = replace(PAPER, width=_WIDTH)
    columns = []
    for found in result.found.values():
        drawn = [chart.draw(style).properties(title=chart.title, width=_WIDTH) for chart in elicitation_charts(found)]
        columns.append(alt.vconcat(*drawn, spacing=30).resolve_scale(xOffset="independent", color="independent"))
    whole = alt.hconcat(*columns, spacing=50, title=str(result.meta.get("model", "model")))
    spec = specification(whole.resolve_scale(xOffset="independent", color="independent"), style)
    save_figure(spec, Path(path), [result.provenance])


def elicitation_charts(found: Findings) -> list[Chart]:
    """The charts of one elicitation that have data."""
    name, drawn = found.elicitation, []
    if found.rates is not None:
        rates, how = found.rates, METRICS["base_rates.by_label"]
        top = rates.top if rates.uneven else ""
        marks = [Mark(x, rate, stands_out=x == top) for x, rate in zip(rates.labels, rates.by_label, strict=True)]
        drawn.append(
            Chart(
                f"base-rates-{name}",
                f"Base rates, {name}",
                "Mean probability of each label over all label orders, with intervals over orders.",
                lambda style: charts.columns(marks, style, title="probability", under="label", domain=None, how=how),
            )
        )
    about = "Each dot is a subject; the line is the accuracy on all questions whose right option has that label."
    title = f"Accuracy by gold label, {name}"
    drawn.append(Chart(f"gold-labels-{name}", title, about, lambda style: _gold(found, style)))
    correlation = found.correlation
    if correlation is not None and correlation.r.defined:
        title = f"r = {number(correlation.r, 2)}, {name}"
        about = f"Base rate of a label against accuracy on its questions: {correlation.pairs} subjects x labels."
        drawn.append(Chart(f"base-rate-correlation-{name}", title, about, lambda style: _correlation(found, style)))
    within = found.by_subject
    if within is not None and len(within.r) > 1:
        title = f"Within subjects, median r = {number(within.median, 2)}, {name}"
        about = f"Cloze base rate against accuracy, one r for each of {len(within.r)} subjects (P5, figure 1, bottom)."
        drawn.append(Chart(f"base-rate-within-{name}", title, about, lambda style: _within(within, style)))
    return drawn


def _colour(alt: Any, labels: Sequence[str], style: Style) -> Any:
    colours = [style.series[i % len(style.series)] for i in range(len(labels))]
    return alt.Color("label:N", scale=alt.Scale(domain=list(labels), range=colours), legend=None)


def _dots(found: Findings) -> list[dict[str, Any]]:
    gold, rates = found.gold, found.rates
    return [
        {
            "label": label,
            "accuracy": float(gold.accuracy[s, i]),
            "subject": subject,
            "questions": int(gold.counts[s, i]),
            # golden-ratio spread instead of random jitter, so that charts are reproducible
            "spread": s * 0.618 % 1,
            "rate": float(rates.values[i]) if rates is not None else None,
        }
        for s, subject in enumerate(gold.subjects)
        for i, label in enumerate(gold.labels)
        if gold.counts[s, i]
    ]


def _gold(found: Findings, style: Style) -> Any:
    import altair as alt

    gold = found.gold
    lines = [
        {"label": label, "all": e.value, "low": e.low, "high": e.high, "n": e.n}
        for label, e in zip(gold.labels, gold.by_label, strict=True)
        if e.defined
    ]
    x = alt.X("label:N", title="label of the right option", sort=None)
    scale = alt.Scale(domain=[0, 1])
    dots = alt.Chart(alt.Data(values=_dots(found)), width=style.width).mark_circle(size=30, opacity=0.45)
    points = dots.encode(
        x=x,
        xOffset=alt.XOffset("spread:Q", scale=alt.Scale(domain=[-0.3, 1.3])),
        y=alt.Y("accuracy:Q", title="accuracy", scale=scale),
        color=_colour(alt, gold.labels, style),
        tooltip=["subject:N", alt.Tooltip("accuracy:Q", format=".3f"), "questions:Q"],
    )
    tooltip = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("all", "low", "high")]
    y, middle = alt.Y("all:Q", scale=scale), alt.XOffsetDatum(0.5)
    ticks = alt.Chart(alt.Data(values=lines)).mark_point(
        shape="stroke", size=1600, strokeWidth=2, color=style.ink, filled=False
    )
    return points + ticks.encode(x=x, xOffset=middle, y=y, tooltip=[*tooltip, "n:Q"])


def _within(within: SubjectCorrelation, style: Style) -> Any:
    """P5's box plot (whiskers at 1.5 interquartile ranges), plus one tick per subject."""
    import altair as alt

    rows = [{"subject": s, "r": float(r)} for s, r in zip(within.subjects, within.r, strict=True)]
    x = alt.X("r:Q", title="Pearson's r within a subject", scale=alt.Scale(domain=[-1, 1]))
    chart = alt.Chart(alt.Data(values=rows), width=style.width, height=70).encode(x=x)
    box = chart.mark_boxplot(
        size=26, color=style.faint, median={"color": style.ink}, outliers=False, rule={"color": style.ink}
    )
    return box + chart.mark_tick(thickness=1, opacity=0.6, color=style.accent).encode(tooltip=["subject:N", "r:Q"])


def _correlation(found: Findings, style: Style) -> Any:
    import altair as alt

    scale, axis = alt.Scale(zero=False, nice=True), alt.Axis(tickCount=5)
    x = alt.X("rate:Q", title="base rate of the label", scale=scale, axis=axis)
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))
    color = _colour(alt, found.gold.labels, style)
    chart = alt.Chart(alt.Data(values=_dots(found)), width=style.width)
    tips = ["label:N", "subject:N", "accuracy:Q"]
    points = chart.mark_circle(size=30, opacity=0.45).encode(x=x, y=y, color=color, tooltip=tips)
    line = chart.transform_regression("rate", "accuracy").mark_line(color=style.ink, clip=True).encode(x=x, y=y)
    ends = [
        {"rate": float(rate), "label": label}
        for rate, label in zip(found.rates.values if found.rates else (), found.gold.labels, strict=True)
    ]
    names = alt.Chart(alt.Data(values=ends)).mark_text(dx=9, fontWeight="bold")
    return points + line + names.encode(x=x, y=alt.datum(0.97), text="label:N", color=color)
