"""Panels of an audit about labels: preference, accuracy by gold position, base rates and Nvr-X."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from unslant.metrics import METRICS
from unslant.reports import Chart, Column, Panel, Table, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult
    from unslant.metrics import BaseRates


def labels_panel(runs: Mapping[str, AuditResult]) -> Panel:
    """Labels chosen when unsure, and accuracy by position of the right option, for one audit or several."""
    several = len(runs) > 1
    metrics = {name: result.metrics for name, result in runs.items()}
    first = next(iter(metrics.values()))
    mean = first.means["expected_accuracy"].value if first.means["expected_accuracy"].defined and not several else None
    chosen = [
        Mark(s.label, s.chosen, name * several, _finite(s.expected), s.label == found.preference.named)
        for name, found in metrics.items()
        for s in found.preference.slots
        if s.chosen.defined
    ]
    recall = [
        Mark(row.label, row["recall"], name * several)
        for name, found in metrics.items()
        for row in found.order_labels
        if row["recall"].defined
    ]
    phrase = first.preference.phrase[:1].upper() + first.preference.phrase[1:]
    phrases = "; ".join(f"{name} {found.preference.phrase}" for name, found in metrics.items()) + ". "
    unsure = count(chosen[0].estimate.n, "question") if chosen and not several else "questions"
    content = "by content alone"
    pictures = (
        Chart(
            "preference",
            "What is chosen when unsure" if several else phrase,
            f"{phrases * several}Share of orders in which each label is chosen, on the {unsure} whose answer changes "
            "with the order. Dashes: the share expected by content alone. last: the last position.",
            lambda style: charts.columns(chosen, style, rows="label", axis="share chosen", expected=content),
        ),
        Chart(
            "gold-position",
            "Accuracy by position of the right option",
            "The same questions with the right option moved to each place in turn, over all orders. Equal values mean "
            f"that the place does not matter.{' Dashed: the mean over orders.' * (not several)}",
            lambda style: charts.intervals(recall, style, rows="label", step=26, line=mean),
        ),
    )
    return Panel(
        "labels",
        "Labels and positions",
        "What the model falls back on when unsure, and the effect on accuracy by position of the right option.",
        tuple(
            chart
            for chart, marks in zip(pictures, (chosen, recall), strict=True)
            if marks and len(runs) <= charts.MOST_SERIES
        ),
        tuple(_labels_table(result, name * several) for name, result in runs.items()) if chosen or recall else (),
        tuple(f"{f'{name}: ' * several}{m.preference.note}" for name, m in metrics.items() if m.preference.note),
        short="Labels",
    )


def _finite(value: float) -> float | None:
    return value if value == value else None


def _labels_table(result: AuditResult, name: str) -> Table:
    """One row per label, plus the last position."""
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
        shares = (own["predicted"], own["gold"], own["recall"]) if own else (None, None, None)
        priors = alone.get(slot.label, (None, None)) if rates else ()
        recall = other["recall"] if other else None
        rows.append((slot.label, slot.chosen, _finite(slot.expected), *shares, recall, never.get(slot.label), *priors))
    keys: tuple[str, ...] = ("chosen", "expected", "predicted", "gold", "recall", "order_labels.recall", "nvr.accuracy")
    keys += ("base_rates.by_label", "base_rates.shares") if rates else ()
    columns = (Column("label"), *map(Column.of, keys))
    return Table("labels", f"Labels, {name}" if name else "Labels", columns, tuple(rows), folded=True)


def _usual_rates(result: AuditResult) -> BaseRates | None:
    """Base rates of the most common number of options."""
    counts = result.metrics.counts.by_options
    return result.base_rates.get(max(counts, key=lambda n: counts[n]))


def priors_panel(result: AuditResult) -> Panel:
    """Label probabilities without content (base rates), and accuracy when one label is never right (Nvr-X)."""
    nvr, rates = result.nvr, _usual_rates(result)
    values: dict[str, Cell] = {**nvr.numbers.cells(), **(rates.numbers.cells() if rates else {})}
    table = Table.of_metrics("priors", "Base rates and Nvr-X", {"value": values}, folded=True)
    return Panel(
        "priors",
        "Base rates and Nvr-X",
        "A model that favours a label before reading the question scores well where that label happens to be right.",
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
    how, mean = METRICS["base_rates.by_label"], float(rates.values.mean())
    chart = Chart(
        "base-rates",
        f"Without content, {rates.top} is most likely"
        if rates.uneven
        else "Without content, labels are equally likely",
        f"Probability of each of {rates.n_options} labels after a question without content, mean over "
        f"{rates.n_orders} label orders (N counts orders). Dashed: the mean. Distance from uniform: "
        f"{number(rates['distance'])}.",
        lambda s: charts.intervals(marks, s, rows="label", axis="probability", fit=True, step=26, line=mean, how=how),
        of="label orders",
    )
    return (chart,)


def _nvr(result: AuditResult) -> tuple[Chart, ...]:
    nvr = result.nvr
    if not nvr["score"].defined:
        return ()
    standing = {reading.label for reading in nvr.readings}
    marks = [
        Mark(f"never {label}", value, stands_out=label in standing)
        for label, value in zip(nvr.labels, nvr.accuracy, strict=True)
    ]
    readings = "; ".join(reading.phrase for reading in nvr.readings)
    line = nvr["plain"].value if nvr["plain"].defined else None
    chart = Chart(
        "nvr",
        f"Nvr-X: {number(nvr['score'])} without the best label",
        "Accuracy on the same questions when the right option is never under a given label; the lowest is the score. "
        f"Dashed: as given. Guessing scores {number(nvr['guess'])}." + (f" Outliers: {readings}." if readings else ""),
        lambda style: charts.intervals(marks, style, rows="variant", step=26, line=line),
    )
    return (chart,)
