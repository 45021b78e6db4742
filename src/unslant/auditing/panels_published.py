"""The panel of the published order: what a single order tells of labels, places, confidence and length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.auditing.panels_replies import calibration_chart, calibration_values
from unslant.metrics import METRICS, Bootstrap, Estimate
from unslant.metrics.labels import LabelShare, given_slots, label_shares
from unslant.reports import Chart, Column, Panel, Table, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, number, percent

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult


def one_order(result: AuditResult) -> bool:
    """Whether every question was shown in a single order."""
    return result.metrics.counts.one_order == result.metrics.counts.questions


def tiles_of(result: AuditResult) -> tuple[tuple[str, Estimate], ...]:
    """The numbers of a single order, for the top; nothing if there are more."""
    if not one_order(result):
        return ()
    metrics, length = result.metrics, result.length_bias
    found = (
        [("length_bias.normalised", length["normalised"])]
        if length
        else [("cramers_v", metrics.label_bias["cramers_v"])]
    )
    found += [("calibration.ece", metrics.calibration["ece"])] if metrics.calibration else []
    return (*found, ("label_mass", metrics.means["label_mass"]))


def published_panel(result: AuditResult) -> Panel:
    """Labels, places and confidence under the order of the file; on the first screen if there is no other order."""
    metrics, alone = result.metrics, one_order(result)
    means, bias = metrics.means, metrics.label_bias
    values: dict[str, Cell] = {
        **bias.numbers.cells("cramers_v", "p"),
        "margin": means["margin"],
        "tie_rate": means["tie_rate"] if result.scores.is_scored else None,
        "label_mass": means["label_mass"],
        **calibration_values(metrics.calibration),
        "minimum_difference": metrics.minimum_difference,
        "minimum_difference_unpaired": metrics.minimum_difference_unpaired,
    }
    keys = ("predicted", "gold", "predicted_excess", "recall")
    shares = [row for row in metrics.given_labels if row["predicted"].defined and alone]  # else among all labels
    rows = tuple((row.label, *row.numbers.cells(*keys).values()) for row in shares)
    labels = Table("published-labels", "Labels, published order", (Column("label"), *map(Column.of, keys)), rows)
    numbers = Table.of_metrics("published", "Published order", {"value": values}, folded=not alone)
    return Panel(
        "published",
        "Published order",
        "What the order of the file alone tells. A label answered more often than it is right, or an accuracy that "
        "differs with the place of the right option, is a sign of bias; only other orders tell it from the content.",
        (*_charts(result, shares), *calibration_chart(metrics.calibration)),
        tuple(table for table in (labels, numbers) if table.rows),
        first_screen=alone,
    )


def _charts(result: AuditResult, shares: list[LabelShare]) -> tuple[Chart, ...]:
    answers = [Mark(r.label, r["predicted"], expected=r["gold"].value if r["gold"].defined else None) for r in shares]
    recall = [Mark(r.label, r["recall"]) for r in shares if r["recall"].defined]
    v, p = METRICS["cramers_v"], METRICS["label_bias.p"]
    bias, mean = result.metrics.label_bias, result.metrics.means["accuracy"]
    told = f"Cramér's V {number(bias['cramers_v'], v)}, p {number(bias['p'], p)}. " if bias["cramers_v"].defined else ""
    found = (
        Chart(
            "published-labels",
            "Labels answered and right",
            "Share of answers under each label as published. Dashes: share of right options. last: the last position.",
            lambda style: charts.columns(answers, style, rows="label", axis="share", expected="right options"),
        ),
        Chart(
            "published-gold-position",
            "Accuracy by position of the right option, as published",
            f"{told}These are different questions at each place, so that chance plays a part. Dashed: the accuracy.",
            lambda style: charts.intervals(
                recall,
                style,
                rows="label of the right option",
                axis="accuracy",
                step=26,
                line=mean.value if mean.defined else None,
            ),
        ),
    )
    return tuple(chart for chart, marks in zip(found, (answers, recall), strict=True) if marks)


def stands_out(result: AuditResult) -> str:
    """What stands out in a single order, for the headline; empty if nothing does, or there are more orders."""
    if not one_order(result):
        return ""
    return _lengths(result) if result.length_bias else _surplus(result)


def _surplus(result: AuditResult) -> str:
    """The label answered most beyond its share of right options, if that cannot be chance."""
    confidence = 1 - 0.05 / max(1, result.scores.width)  # the most conspicuous of so many (Bonferroni)
    bootstrap = Bootstrap.of(result.scores, confidence=confidence)
    rows = label_shares(result.scores, given_slots(result.scores), bootstrap)[: result.scores.width]
    found = [row for row in rows if row["predicted_excess"].low > 0]
    if not found:
        return ""
    top = max(found, key=lambda row: row["predicted_excess"].value)
    answered, right = percent(top["predicted"].value), percent(top["gold"].value)
    return f"{top.label} is {answered} of the answers but {right} of the right options"


def length_panel(result: AuditResult) -> Panel:
    """Whether the length of scored option texts decides; nothing where labels or replies were logged."""
    found = result.length_bias
    if found is None:
        return Panel("length", "", "")
    names = {"accuracy": "sum", "normalised": "per character"}
    marks = [Mark(words, found[key]) for key, words in names.items()]
    chart = Chart(
        "length",
        "The score by the sum and per character",
        "Two ways to choose between the same scores of option texts.",
        lambda style: charts.intervals(marks, style, rows="score"),
    )
    return Panel(
        "length",
        "Length of option texts",
        "Each text was scored by itself. The sum of its log-probabilities falls with its length.",
        (chart,),
        (Table.of_metrics("length", "Length of option texts", {"value": found.cells()}),),
        short="Length",
        first_screen=True,
    )


def _lengths(result: AuditResult) -> str:
    """The accuracy per character, and which length is answered too often by the sum."""
    found = result.length_bias
    if found is None:
        return ""
    ends = {"shortest": found["shortest_excess"], "longest": found["longest_excess"]}
    too_often = "".join(f", the {name} option is answered too often" for name, e in ends.items() if e.low > 0)
    return f"{number(found['normalised'])} per character{too_often and ', by the sum' + too_often[1:]}"
