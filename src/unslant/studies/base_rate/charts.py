"""Charts of the base-rate study (P5, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from unslant.arrays import Floats
from unslant.metrics import METRICS, BaseRates
from unslant.reports import Chart, Column, Figure, Plot, Style, charts, number
from unslant.reports.style import MOST_ROWS, alt, fitted
from unslant.studies.base_rate.accuracies import SubjectCorrelation
from unslant.studies.base_rate.findings import Findings

_DOTS = (
    "Each dot is a subject, each box half of them (whiskers: 1.5 interquartile ranges); the thick line is the accuracy "
    "on all questions whose right option has that label (base-rate paper, figure 1, middle)."
)
_PAIRS = "Base rate of a label against accuracy on its questions, one dot for each subject and label."
_TICKS = (
    "Cloze base rate of the labels against accuracy, one r a subject; the box holds half of them, whiskers reach 1.5 "
    "interquartile ranges (base-rate paper, figure 1, bottom)."
)


def figure_1(findings: Findings) -> tuple[Figure, ...]:
    """Base rates, and accuracy by gold label, of one elicitation (P5, figure 1)."""
    return (*([] if findings.rates is None else [_rates(findings, findings.rates)]), _gold_labels(findings))


def _rates(findings: Findings, main: BaseRates) -> Figure:
    name, top = findings.elicitation, main.top if main.uneven else ""
    rows = [
        {"label": f"{n} options, {letter}", "letter": letter, "n": n, "place": str(i + 1)}
        | {"by_label": rates.by_label[i], "shares": float(rates.shares[i]), "by_position": rates.by_position[i]}
        for n, rates in findings.base_rates.items()
        for i, letter in enumerate(rates.labels)
    ]
    plot = Plot(
        partial(charts.columns, axis="probability", fit=True),
        "Mean probability of each label over all label orders (base-rate paper, figure 1, top).",
        ["base_rates.by_label"],
        id=f"base-rates-{name}",
        name=["letter"],
        out=lambda row: row["letter"] == top,
        where=lambda row: row["n"] == findings.n_options,
        of="label orders",
    )
    return Figure(
        f"base-rate-rates-{name}",
        f"Base rates, {name}",
        ["label"],
        ["base_rates.by_label", "base_rates.shares", Column("place"), "base_rates.by_position"],
        rows,
        [plot],
        "Mean probability of each label and of each position over all label orders.",
    )


def _gold_labels(findings: Findings) -> Figure:
    name, gold = findings.elicitation, findings.gold
    columns = [Column(label, METRICS["accuracy_by_gold_label.by_label"]) for label in gold.labels]
    everyone = ("all", gold.by_label, sum(estimate.n for estimate in gold.by_label))
    subjects = zip(gold.subjects, gold.accuracy.tolist(), gold.counts.sum(axis=1).tolist(), strict=True)
    rows = [
        {"subject": subject or "(none)", "questions": questions, **dict(zip(gold.labels, accuracy, strict=True))}
        for subject, accuracy, questions in (everyone, *(subjects if len(gold.subjects) > 1 else ()))
    ]
    drawings = [
        Chart(
            f"gold-labels-{name}",
            f"Accuracy by gold label, {name}",
            _DOTS,
            partial(_gold, findings),
            "questions a label",
        )
    ]
    if findings.rates is not None and findings.correlation is not None and findings.correlation.r.defined:
        title, about = f"r = {number(findings.correlation.r, 2)}, {name}", _PAIRS
        draw, of = partial(_correlation, findings, findings.rates.values), "pairs of subject and label"
        drawings.append(Chart(f"base-rate-correlation-{name}", title, about, draw, of))
    if findings.by_subject is not None and len(findings.by_subject.r) > 1:
        title = f"Within subjects, median r = {number(findings.by_subject.median, 2)}, {name}"
        drawings.append(
            Chart(f"base-rate-within-{name}", title, _TICKS, partial(_within, findings.by_subject), "subjects")
        )
    title = f"Accuracy by the right option's label, {name}, questions of {findings.n_options} options"
    columns.append(Column("questions"))
    return Figure(f"base-rate-gold-{name}", title, ["subject"], columns, rows, drawings, folded=len(rows) > MOST_ROWS)


def _dots(findings: Findings) -> list[dict[str, Any]]:
    gold, rates = findings.gold, findings.rates
    return [
        {
            "label": label,
            "accuracy": float(gold.accuracy[s, i]),
            "subject": subject or "(none)",
            "questions": int(gold.counts[s, i]),
            # golden-ratio spread instead of random jitter, so that charts are reproducible
            "spread": s * 0.618 % 1,
            "rate": float(rates.values[i]) if rates is not None else None,
        }
        for s, subject in enumerate(gold.subjects)
        for i, label in enumerate(gold.labels)
        if gold.counts[s, i]
    ]


def _box(style: Style, size: float) -> dict[str, Any]:
    line = {"color": style.muted, "strokeWidth": style.scaled(1)}
    box = {"fill": style.faint, "fillOpacity": 0.55, "stroke": style.muted, "strokeWidth": style.scaled(1)}
    return {"size": style.scaled(size), "box": box, "median": line, "outliers": False, "rule": line, "ticks": line}


def _dot(style: Style) -> dict[str, Any]:
    return {"size": style.scaled(style.scaled(26)), "opacity": 0.5, "color": style.accent}


def _gold(findings: Findings, style: Style) -> Any:
    gold = findings.gold
    lines = [
        {"label": label, "all": e.value, "low": e.low, "high": e.high, "n": e.n}
        for label, e in zip(gold.labels, gold.by_label, strict=True)
        if e.defined
    ]
    x = alt.X("label:N", title="label of the right option", sort=list(gold.labels), scale=alt.Scale(domain=gold.labels))
    scale = alt.Scale(domain=[0, 1])
    y = {name: alt.Y(f"{name}:Q", title="accuracy", scale=scale) for name in ("accuracy", "all")}
    dots = alt.Chart(alt.Data(values=_dots(findings)), width=style.width, height=style.scaled(220)).encode(x=x)
    boxes = dots.mark_boxplot(**_box(style, 46)).encode(y=y["accuracy"], xOffset=alt.XOffsetDatum(0.5))
    points = dots.mark_circle(**_dot(style)).encode(
        xOffset=alt.XOffset("spread:Q", scale=alt.Scale(domain=[-0.3, 1.3])),
        y=y["accuracy"],
        tooltip=["subject:N", alt.Tooltip("accuracy:Q", format=".3f"), "questions:Q"],
    )
    tooltip = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("all", "low", "high")]
    ticks = alt.Chart(alt.Data(values=lines)).mark_point(
        shape="stroke",
        size=style.scaled(style.scaled(2600)),
        strokeWidth=style.scaled(3),
        color=style.ink,
        filled=False,
    )
    every = ticks.encode(x=x, xOffset=alt.XOffsetDatum(0.5), y=y["all"], tooltip=[*tooltip, "n:Q"])
    return boxes + points + every


def _within(within: SubjectCorrelation, style: Style) -> Any:
    """P5's box plot, plus one tick per subject."""
    rows = [{"subject": s, "r": float(r), "n": len(within.r)} for s, r in zip(within.subjects, within.r, strict=True)]
    x = alt.X("r:Q", title="Pearson's r within a subject", scale=alt.Scale(domain=[-1, 1]))
    chart = alt.Chart(alt.Data(values=rows), width=style.width, height=style.scaled(70)).encode(x=x)
    ticks = chart.mark_tick(thickness=style.scaled(1.5), size=style.scaled(20), opacity=0.6, color=style.accent)
    return chart.mark_boxplot(**_box(style, 30)) + ticks.encode(tooltip=["subject:N", "r:Q"])


def _correlation(findings: Findings, rates: Floats, style: Style) -> Any:
    low, high = fitted(map(float, rates))
    title = f"base rate of the label (axis {low:g} to {high:g})"
    x = alt.X("rate:Q", title=title, scale=alt.Scale(domain=[low, high]), axis=alt.Axis(tickCount=5))
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))
    dots = _dots(findings)
    dots = [dot | {"n": len(dots)} for dot in dots]
    chart = alt.Chart(alt.Data(values=dots), width=style.width, height=style.scaled(220))
    points = chart.mark_circle(**_dot(style)).encode(x=x, y=y, tooltip=["label:N", "subject:N", "accuracy:Q"])
    line = chart.transform_regression("rate", "accuracy").mark_line(color=style.ink, clip=True).encode(x=x, y=y)
    marks = alt.Chart(alt.Data(values=_names(rates, findings.gold.labels, high - low)))
    names = marks.mark_text(dx=style.scaled(9), fontWeight="bold", color=style.ink)
    return points + line + names.encode(x=x, y=alt.Y("at:Q", scale=alt.Scale(domain=[0, 1])), text="label:N")


def _names(rates: Floats, labels: Sequence[str], span: float) -> list[dict[str, Any]]:
    """The labels above their dots, one below the other where they would meet."""
    marks: list[dict[str, Any]] = []
    for rate, label in sorted(zip(map(float, rates), labels, strict=True)):
        near = {each["at"] for each in marks if rate - each["rate"] < 0.05 * span}
        at = next(level for level in (round(0.97 - 0.09 * i, 2) for i in range(len(labels))) if level not in near)
        marks.append({"rate": rate, "label": label, "at": at})
    return marks
