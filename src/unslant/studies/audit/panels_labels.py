"""The panels of one audit that are about labels: what is preferred, what it costs, and what labels are worth alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from unslant.metrics import METRICS
from unslant.reports import Chart, Column, Panel, Table, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number

if TYPE_CHECKING:
    from unslant.metrics import BaseRates
    from unslant.studies.audit.result import AuditResult


def labels_panel(runs: Mapping[str, AuditResult]) -> Panel:
    """What is chosen when unsure, and accuracy by where the right option stands, of one audit or several."""
    several = len(runs) > 1
    metrics = {name: result.metrics for name, result in runs.items()}
    first = next(iter(metrics.values()))
    mean = first.means.expected_accuracy.value if first.means.expected_accuracy.defined and not several else None
    chosen = [
        Mark(s.label, s.chosen, name * several, _finite(s.expected), s.label == found.preference.named)
        for name, found in metrics.items()
        for s in found.preference.slots
        if s.chosen.defined
    ]
    recall = [
        Mark(row.label, row.recall, name * several)
        for name, found in metrics.items()
        for row in found.order_labels
        if row.recall.defined
    ]
    phrase = first.preference.phrase[:1].upper() + first.preference.phrase[1:]
    told = "; ".join(f"{name} {found.preference.phrase}" for name, found in metrics.items()) + ". "
    unsure = count(chosen[0].estimate.n, "question") if chosen and not several else "questions"
    content = "by content alone"
    pictures = (
        Chart(
            "preference",
            "What is chosen when unsure" if several else phrase,
            f"{told * several}Share of orders in which each label is chosen, on the {unsure} whose answer changes with "
            "the order. Dashes: what a model going by content alone would choose there. last: the last position.",
            lambda style: charts.columns(chosen, style, title="share chosen", under="label", expected=content),
        ),
        Chart(
            "gold-position",
            "Accuracy by where the right option stands",
            "The same questions with the right option moved to each place in turn, over all orders. Level points mean "
            f"that the place does not matter.{' Dashed: the mean over orders.' * (not several)}",
            lambda style: charts.intervals(recall, style, axis="accuracy", step=26, line=mean),
        ),
    )
    return Panel(
        "labels",
        "Labels and positions",
        "What the model falls back on when it does not know, and what that does to questions whose right option stands "
        "there.",
        tuple(chart for chart, marks in zip(pictures, (chosen, recall), strict=True) if marks),
        tuple(_labels_table(result, name * several) for name, result in runs.items()) if chosen or recall else (),
        tuple(f"{f'{name}: ' * several}{m.preference.note}" for name, m in metrics.items() if m.preference.note),
        short="Labels",
    )


def _finite(value: float) -> float | None:
    return value if value == value else None


def _labels_table(result: AuditResult, name: str) -> Table:
    """One row per label, and one for the last position."""
    metrics = result.metrics
    given = {row.label: row for row in metrics.given_labels}
    moved = {row.label: row for row in metrics.order_labels}
    never = dict(zip(result.nvr.labels, result.nvr.accuracy, strict=True))
    rates = _usual_rates(result)
    alone = {}
    if rates:
        alone = {label: (e, s) for label, e, s in zip(rates.labels, rates.by_label, rates.shares.tolist(), strict=True)}
    rows: list[tuple[Cell, ...]] = []
    for slot in metrics.preference.slots:
        own, other = given.get(slot.label), moved.get(slot.label)
        rows.append(
            (
                slot.label,
                slot.chosen,
                _finite(slot.expected),
                own.predicted if own else None,
                own.gold if own else None,
                own.recall if own else None,
                other.recall if other else None,
                never.get(slot.label),
                *(alone.get(slot.label, (None, None)) if rates else ()),
            )
        )
    keys = ("chosen", "expected", "predicted", "gold", "recall", "order_labels.recall", "nvr.accuracy")
    shares = (Column.of("base_rates.by_label"), Column.of("base_rates.shares"))
    columns = (Column("label"), *map(Column.of, keys), *(shares if rates else ()))
    return Table("labels", f"Labels, {name}" if name else "Labels", columns, tuple(rows), folded=True)


def _usual_rates(result: AuditResult) -> BaseRates | None:
    """Base rates of the most common number of options."""
    counts = result.metrics.counts.by_options
    return result.base_rates.get(max(counts, key=lambda n: counts[n]))


def priors_panel(result: AuditResult) -> Panel:
    """What labels are worth without a question (base rates), and the score when one label is never right (Nvr-X)."""
    nvr, rates = result.nvr, _usual_rates(result)
    values: dict[str, Cell] = {f"nvr.{key}": getattr(nvr, key) for key in ("score", "plain", "drop", "guess", "never")}
    keys = ("distance", "position_distance", "label_part", "position_part", "label_p", "position_p")
    values |= {f"base_rates.{key}": getattr(rates, key) for key in keys} if rates else {}
    table = Table.of_metrics("priors", "Base rates and Nvr-X", {"value": values}, folded=True)
    return Panel(
        "priors",
        "Base rates and Nvr-X",
        "A label can be likely before anything is read, and a model that leans to it is right wherever the right "
        "option happens to stand there.",
        (*_base_rates(result), *_nvr(result)),
        (table,) if table.rows else (),
        short="Base rates",
    )


def _base_rates(result: AuditResult) -> tuple[Chart, ...]:
    rates = _usual_rates(result)
    if rates is None:
        return ()
    marks = [
        Mark(label, value, stands_out=rates.uneven and label == rates.top)
        for label, value in zip(rates.labels, rates.by_label, strict=True)
    ]

    how = METRICS["base_rates.by_label"]

    title = f"Without a question, {rates.top} is likeliest" if rates.uneven else "Without a question, labels are even"
    return (
        Chart(
            "base-rates",
            title,
            f"Probability of each of {rates.n_options} labels after a question without content, mean over "
            f"{rates.n_orders} orders of the labels (N counts orders). Dashed: their mean. Distance from even: "
            f"{number(rates.distance)}.",
            lambda style: charts.intervals(
                marks, style, axis="probability", domain=None, step=26, line=float(rates.values.mean()), how=how
            ),
        ),
    )


def _nvr(result: AuditResult) -> tuple[Chart, ...]:
    nvr = result.nvr
    if not nvr.score.defined:
        return ()
    standing = {reading.label for reading in nvr.readings}
    marks = [
        Mark(f"never {label}", value, stands_out=label in standing)
        for label, value in zip(nvr.labels, nvr.accuracy, strict=True)
    ]

    readings = "; ".join(reading.phrase for reading in nvr.readings)
    return (
        Chart(
            "nvr",
            f"Nvr-X: {number(nvr.score)} when the best label is taken away",
            "Accuracy on the same questions when the right option never stands under a label; the least is the score. "
            f"Dashed: as given. Guessing scores {number(nvr.guess)}."
            + (f" Standing out: {readings}." if readings else ""),
            lambda style: charts.intervals(marks, style, step=26, line=nvr.plain.value if nvr.plain.defined else None),
        ),
    )
