"""The base-rate study in a report, and its pictures as one file: base rates, accuracy by gold label, and one against
the other (P5, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError
from unslant.reports.figures import PNG_SCALE
from unslant.reports.panels import Chart, Column, Panel, Style, Table
from unslant.reports.style import PAPER, specification

if TYPE_CHECKING:
    from unslant.studies.base_rate.findings import Findings
    from unslant.studies.base_rate.result import BaseRateResult
    from unslant.studies.base_rate.subject_correlation import SubjectCorrelation

FORMATS = (".svg", ".png")
_WIDTH = 320


def check_format(path: str | Path) -> None:
    """Refuse what cannot be drawn before any work is done.

    Raises:
        InputError: if the ending is not ``.svg`` or ``.png``.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError.at(path, f"charts are written as {' or '.join(FORMATS)}")


def save_charts(result: BaseRateResult, path: str | Path) -> None:
    """Draw all pictures into one SVG or PNG file, offline: a column per elicitation.

    Raises:
        InputError: see :func:`check_format`.
    """
    import altair as alt
    import vl_convert

    check_format(path)
    style = replace(PAPER, width=_WIDTH)
    columns = []
    for found in result.found.values():
        drawn = [chart.draw(style).properties(title=chart.title, width=_WIDTH) for chart in elicitation_charts(found)]
        columns.append(alt.vconcat(*drawn, spacing=30).resolve_scale(xOffset="independent", color="independent"))
    whole = alt.hconcat(*columns, spacing=50, title=str(result.meta.get("model", "model")))
    spec = specification(whole.resolve_scale(xOffset="independent", color="independent"), style)
    if Path(path).suffix.lower() == ".svg":
        Path(path).write_text(vl_convert.vegalite_to_svg(spec), "utf-8")
    else:
        Path(path).write_bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))


def base_rate_panels(result: BaseRateResult) -> list[Panel]:
    """The study as sections of a report: the hypotheses, then each elicitation, then the shortcuts."""
    verdicts = tuple((h.name, h.claim, h.verdict, h.words) for h in result.hypotheses)
    columns = (Column("hypothesis"), Column("claim"), Column("verdict"), Column("in words"))
    first = Panel(
        "base-rate-hypotheses",
        "Labels that the model likes before it has read anything",
        "Base rates are how probable each label is where there is nothing to know.",
        tables=(Table("base-rate-hypotheses-table", "Hypotheses", columns, verdicts),),
    )
    panels = [first, *(_elicitation_panel(found) for found in result.found.values())]
    if result.published:
        panels.append(_published_panel(result))
    if result.shortcuts:
        panels.append(_shortcut_panel(result))
    return panels


def _elicitation_panel(found: Findings) -> Panel:
    from unslant.studies.base_rate.findings import name

    rules = (Column("ties to the first"), Column("ties shared"), Column("ties to the last"))
    columns = (Column("questions"), *rules, Column("mean over subjects"), Column("tie rate"), Column("doubt"))
    rows = tuple(
        (
            name(cell.presentation),
            *(cell.accuracy[rule] for rule in ("first", "split", "last")),
            cell.by_subject["first"],
            cell.tie_rate,
            cell.doubt or None,
        )
        for cell in found.cells
    )
    table = Table(f"base-rate-accuracy-{found.elicitation}", "Accuracy as given and on Nvr-X", columns, rows)
    notes = tuple(f"Not to be trusted: {name(cell.presentation)}, {cell.doubt}." for cell in found.cells if cell.doubt)
    return Panel(
        f"base-rate-{found.elicitation}",
        f"Base rates and accuracy by gold label, {found.elicitation}",
        "In Nvr-X the right option is never under label X: where accuracy falls there, X is answered when unsure.",
        charts=tuple(elicitation_charts(found)),
        tables=(table,),
        notes=notes,
    )


def _published_panel(result: BaseRateResult) -> Panel:
    columns = (Column("elicitation"), Column("questions"), Column("paper"), Column("here"), Column("difference", 4))
    rows = tuple((c.elicitation, c.presentation, c.published, c.ours, c.difference) for c in result.published)
    return Panel(
        "base-rate-published",
        "Beside the paper's table 3",
        "Unweighted mean over subjects; ties go to the first label.",
        tables=(Table("base-rate-published-table", "Accuracy", columns, rows),),
    )


def _shortcut_panel(result: BaseRateResult) -> Panel:
    columns = (
        Column("shortcut"),
        Column("scores alone"),
        Column("guessing"),
        Column("followed when wrong"),
        Column("by chance"),
        Column("difference"),
    )
    rows = tuple((s.name, s.score, s.guess, s.follow, s.follow_chance, s.excess) for s in result.shortcuts)
    return Panel(
        "base-rate-shortcuts",
        "Test-taking shortcuts",
        "What each shortcut would score alone, and how often a wrong answer is the one a wrong shortcut gives.",
        tables=(Table("base-rate-shortcuts-table", "Shortcuts", columns, rows),),
    )


def elicitation_charts(found: Findings) -> list[Chart]:
    """The three pictures of one elicitation; those without data are left out."""
    charts = []
    if found.rates is not None:
        charts.append(
            Chart(
                f"base-rates-{found.elicitation}",
                f"Base rates, {found.elicitation}",
                "Mean probability of each label over all label orders, with intervals over orders.",
                lambda style: _rates(found, style),
            )
        )
    charts.append(
        Chart(
            f"gold-labels-{found.elicitation}",
            f"Accuracy by gold label, {found.elicitation}",
            "A dot is a subject; the line is all questions whose right option stands under that label.",
            lambda style: _gold(found, style),
        )
    )
    correlation = found.correlation
    if correlation is not None and correlation.r.defined:
        charts.append(
            Chart(
                f"base-rate-correlation-{found.elicitation}",
                f"r = {correlation.r.value:.2f}, {found.elicitation}",
                f"Base rate of a label against accuracy on its questions: {correlation.pairs} subjects x labels.",
                lambda style: _correlation(found, style),
            )
        )
    within = found.by_subject
    if within is not None and len(within.r) > 1:
        charts.append(
            Chart(
                f"base-rate-within-{found.elicitation}",
                f"Within subjects, median r = {within.median.value:.2f}, {found.elicitation}",
                f"Cloze base rate against accuracy, one r for each of {len(within.r)} subjects (P5, figure 1, bottom).",
                lambda style: _within(within, style),
            )
        )
    return charts


def _rates(found: Findings, style: Style) -> Any:
    import altair as alt

    rates = found.rates
    assert rates is not None
    rows = [
        {"label": label, "rate": e.value, "low": e.low, "high": e.high, "n": e.n}
        for label, e in zip(rates.labels, rates.by_label, strict=True)
    ]
    x = alt.X("label:N", title="label", sort=None, scale=alt.Scale(paddingInner=0.4))
    base = alt.Chart(alt.Data(values=rows), width=style.width).encode(x=x)
    tooltip = [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("rate", "low", "high")]
    bars = base.mark_bar().encode(
        y=alt.Y("rate:Q", title="probability"), color=_colour(alt, found.gold.labels, style), tooltip=tooltip
    )
    return bars + base.mark_rule(color=style.ink).encode(y="low:Q", y2="high:Q")


def _colour(alt: Any, labels: Sequence[str], style: Style) -> Any:
    colours = [style.series[i % len(style.series)] for i in range(len(labels))]
    return alt.Color("label:N", scale=alt.Scale(domain=list(labels), range=colours), legend=None)


def _dots(found: Findings) -> list[dict[str, Any]]:
    """One record per subject and label that has questions."""
    gold, rates = found.gold, found.rates
    return [
        {
            "label": label,
            "accuracy": float(gold.accuracy[s, i]),
            "subject": subject,
            "questions": int(gold.counts[s, i]),
            # spread by the golden ratio instead of at random, so that the same numbers give the same picture
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
    points = (
        alt.Chart(alt.Data(values=_dots(found)), width=style.width)
        .mark_circle(size=30, opacity=0.45)
        .encode(
            x=x,
            xOffset=alt.XOffset("spread:Q", scale=alt.Scale(domain=[-0.3, 1.3])),
            y=alt.Y("accuracy:Q", title="accuracy", scale=scale),
            color=_colour(alt, gold.labels, style),
            tooltip=["subject:N", alt.Tooltip("accuracy:Q", format=".3f"), "questions:Q"],
        )
    )
    tooltip = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("all", "low", "high")]
    ticks = (
        alt.Chart(alt.Data(values=lines))
        .mark_point(shape="stroke", size=1600, strokeWidth=2, color=style.ink, filled=False)
        .encode(x=x, xOffset=alt.XOffsetDatum(0.5), y=alt.Y("all:Q", scale=scale), tooltip=[*tooltip, "n:Q"])
    )
    return points + ticks


def _within(within: SubjectCorrelation, style: Style) -> Any:
    """P5's box plot (whiskers within 1.5 interquartile ranges of the quartiles), and every subject."""
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

    x = alt.X(
        "rate:Q", title="base rate of the label", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5)
    )
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))
    chart = alt.Chart(alt.Data(values=_dots(found)), width=style.width)
    points = chart.mark_circle(size=30, opacity=0.45).encode(
        x=x, y=y, color=_colour(alt, found.gold.labels, style), tooltip=["label:N", "subject:N", "accuracy:Q"]
    )
    line = chart.transform_regression("rate", "accuracy").mark_line(color=style.ink, clip=True).encode(x=x, y=y)
    ends = [
        {"rate": float(rate), "label": label}
        for rate, label in zip(found.rates.values if found.rates else (), found.gold.labels, strict=True)
    ]
    names = (
        alt.Chart(alt.Data(values=ends))
        .mark_text(dx=9, fontWeight="bold")
        .encode(x=x, y=alt.datum(0.97), text="label:N", color=_colour(alt, found.gold.labels, style))
    )
    return points + line + names
