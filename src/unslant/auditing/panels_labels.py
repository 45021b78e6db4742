"""Panels of an audit about labels: preference, accuracy by position of the right option, base rates, Nvr-X, length."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from unslant.auditing.panels_replies import calibration_chart, calibration_values
from unslant.metrics import METRICS, Estimate, verdicts
from unslant.reports import Chart, Column, Figure, Panel, Plot, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, percent
from unslant.responses.run import Harness

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult
    from unslant.metrics import BaseRates


def labels_panel(runs: Mapping[str, AuditResult]) -> Panel:
    """Labels chosen when unsure, and accuracy by position of the right option, for one audit or several."""
    several = len(runs) > 1
    metrics = {name: result.metrics for name, result in runs.items()}
    first = next(iter(metrics.values()))
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
    shares = partial(charts.columns, chosen, rows="label", axis="share chosen", expected="by content alone")
    mean = None if several else _value(first.means["expected_accuracy"])
    pictures = (
        Chart(
            "preference",
            "What is chosen when unsure" if several else phrase,
            f"{phrases * several}Share of orders in which each label is chosen, on the {unsure} whose answer changes "
            "with the order. Dashes: the share expected by content alone. last: the last position.",
            shares,
        ),
        Chart(
            "gold-position",
            "Accuracy by position of the right option",
            "The same questions with the right option moved to each place in turn, over all orders. Equal values mean "
            f"that the place does not matter.{' Dashed: the mean over orders.' * (not several)}",
            partial(charts.intervals, recall, rows="label", step=26, line=mean),
        ),
    )
    drawn = zip(pictures, (chosen, recall), strict=True)
    tables = [_labels_figure(result, name * several) for name, result in runs.items()] if chosen or recall else []
    return Panel(
        "labels",
        "Labels and positions",
        "What the model falls back on when unsure, and the effect on accuracy by position of the right option.",
        tuple(chart for chart, marks in drawn if marks and len(runs) <= charts.MOST_SERIES),
        notes=tuple(f"{f'{name}: ' * several}{m.preference.note}" for name, m in metrics.items() if m.preference.note),
        short="Labels",
        figures=tables,
    )


def _finite(value: float) -> float | None:
    return value if value == value else None


def _value(estimate: Estimate) -> float | None:
    return estimate.value if estimate.defined else None


def _labels_figure(result: AuditResult, name: str) -> Figure:
    """One row per label, plus the last position."""
    metrics, rates = result.metrics, _usual_rates(result)
    given = {row.label: row for row in metrics.given_labels}
    moved = {row.label: row for row in metrics.order_labels}
    never = dict(zip(result.nvr.labels, result.nvr.accuracy, strict=True))
    alone = {}
    if rates:
        pairs = zip(rates.labels, rates.by_label, rates.shares.tolist(), strict=True)
        alone = {label: {"base_rates.by_label": rate, "base_rates.shares": share} for label, rate, share in pairs}
    rows = []
    for slot in metrics.preference.slots:
        row: dict[str, Cell] = {"label": slot.label, "chosen": slot.chosen, "expected": _finite(slot.expected)}
        if own := given.get(slot.label):
            row |= own.numbers.cells("predicted", "gold", "recall")
        if other := moved.get(slot.label):
            row["order_labels.recall"] = other["recall"]
        rows.append(row | {"nvr.accuracy": never.get(slot.label)} | alone.get(slot.label, {}))
    columns = ["chosen", "expected", "predicted", "gold", "recall", "order_labels.recall", "nvr.accuracy"]
    columns += ["base_rates.by_label", "base_rates.shares"] if rates else []
    return Figure("labels", f"Labels, {name}" if name else "Labels", ["label"], columns, rows, folded=True)


def _usual_rates(result: AuditResult) -> BaseRates | None:
    """Base rates of the most common number of options."""
    counts = result.metrics.counts.by_options
    return result.base_rates.get(max(counts, key=lambda n: counts[n]))


def priors_panel(result: AuditResult) -> Panel:
    """Label probabilities without content (base rates), and accuracy when one label is never right (Nvr-X)."""
    rates = _usual_rates(result)
    values: dict[str, Cell] = {**result.nvr.numbers.cells(), **(rates.numbers.cells() if rates else {})}
    plots = [*_base_rates(rates), *_nvr(result)]
    return Panel(
        "priors",
        "Base rates and Nvr-X",
        "A model that favours a label before reading the question scores well where that label happens to be right. "
        "Its base rates are the probabilities it gives the labels of a question without content. Nvr-X is its accuracy "
        "when the right option is never under label X; the lowest is its score without the label that helps it most.",
        short="Priors",
        figures=[Figure.of_metrics("priors", "Base rates and Nvr-X", {"value": values}, plots, folded=True)],
    )


def _base_rates(rates: BaseRates | None) -> list[Chart]:
    if rates is None:
        return []
    marks = [
        Mark(label, value, stands_out=rates.uneven and label == rates.top)
        for label, value in zip(rates.labels, rates.by_label, strict=True)
    ]
    how, mean = METRICS["base_rates.by_label"], float(rates.values.mean())
    likely = f"{rates.top} is most likely" if rates.uneven else "labels are equally likely"
    return [
        Chart(
            "base-rates",
            f"Without content, {likely}",
            f"Probability of each of {rates.n_options} labels after a question without content, mean over "
            f"{rates.n_orders} label orders (N counts orders). Dashed: the mean. Distance from uniform: "
            f"{number(rates['distance'])}.",
            partial(charts.intervals, marks, rows="label", axis="probability", fit=True, step=26, line=mean, how=how),
            of="label orders",
        )
    ]


def _nvr(result: AuditResult) -> list[Chart]:
    nvr = result.nvr
    if not nvr["score"].defined:
        return []
    standing = {reading.label for reading in nvr.readings}
    marks = [
        Mark(f"never {label}", value, stands_out=label in standing)
        for label, value in zip(nvr.labels, nvr.accuracy, strict=True)
    ]
    readings = "; ".join(reading.phrase for reading in nvr.readings)
    return [
        Chart(
            "nvr",
            f"Nvr-X: {number(nvr['score'])} without the best label",
            "Accuracy on the same questions when the right option is never under a given label; the lowest is the "
            f"score. Dashed: as given. Guessing scores {number(nvr['guess'])}."
            + (f" Outliers: {readings}." if readings else ""),
            partial(charts.intervals, marks, rows="variant", step=26, line=_value(nvr["plain"])),
        )
    ]


def shown_once(result: AuditResult) -> bool:
    """Whether every question was shown in a single order, answered or not."""
    if result.scores.reordered or not result.metrics.counts.incomplete:
        return not result.scores.reordered
    table = result.responses.where(kind="order").table
    names = table["question_id"].to_pylist()
    shown = set(zip(names, map(tuple, table["contents"].to_pylist()), strict=True))  # repeats show one order often
    return len(shown) == len(set(names))


def one_order(result: AuditResult) -> bool:
    """Whether every question was shown in a single order, though it has more."""
    return bool((result.scores.movable > 1).all()) and shown_once(result)


def tiles_of(result: AuditResult) -> tuple[tuple[str, Estimate], ...]:
    """The numbers of a single order, for the top; nothing if there are more."""
    if not one_order(result):
        return ()
    metrics, length = result.metrics, result.length_bias
    key, numbers = ("length_bias.normalised", length) if length else ("cramers_v", metrics.label_bias.numbers)
    ece = [("calibration.ece", metrics.calibration["ece"])] if metrics.calibration else []
    return ((key, numbers[key]), *ece, ("label_mass", metrics.means["label_mass"]))


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
    rows = [  # where there are more orders, these are among all labels
        {"label": row.label, **row.numbers.cells()}
        for row in metrics.given_labels
        if row["predicted"].defined and alone
    ]
    v, p = METRICS["cramers_v"], METRICS["label_bias.p"]
    tested = f"Cramér's V {number(bias['cramers_v'], v)}, p {number(bias['p'], p)}. "
    plots = [
        Plot(
            partial(charts.columns, axis="share", expected="right options"),
            "Share of answers under each label as published. Dashes: share of right options. last: the last position.",
            ["predicted"],
            "Labels answered and right",
            expected=lambda row, _: row["gold"],
        ),
        Plot(
            partial(charts.intervals, step=26, line=_value(means["accuracy"])),
            f"{tested * bias['cramers_v'].defined}These are different questions at each place, so that chance plays a "
            "part. Dashed: the accuracy.",
            ["recall"],
            "Accuracy by position of the right option, as published",
            "published-gold-position",
            rows="label of the right option",
        ),
    ]
    columns = ["predicted", "gold", "predicted_excess", "recall"]
    labels = Figure("published-labels", "Labels, published order", ["label"], columns, rows, plots)
    reliability = calibration_chart(metrics.calibration)
    numbers = Figure.of_metrics("published", "Published order", {"value": values}, reliability, folded=not alone)
    return Panel(
        "published",
        "Published order",
        "What the order of the file alone shows. A label answered more often than it is right, or an accuracy that "
        "differs with the place of the right option, is a sign of bias; only other orders show which.",
        short="Published",
        figures=[labels, numbers],
    )


def stands_out(result: AuditResult) -> str:
    """What stands out in a single order, for the headline; empty if nothing does, or there are more orders."""
    if not one_order(result):
        return ""
    return _lengths(result) if result.length_bias else _surplus(result)


def _surplus(result: AuditResult) -> str:
    """The label answered most beyond its share of right options, if that cannot be chance."""
    rows = result.metrics.given_labels[: result.scores.width]
    found = verdicts([row["predicted_excess"] for row in rows])
    more = [row for row, one in zip(rows, found, strict=True) if one.kind == "above"]
    if not more:
        return ""
    top = max(more, key=lambda row: row["predicted_excess"].value)
    answered, right = percent(top["predicted"].value), percent(top["gold"].value)
    return f"{top.label} is {answered} of the answers but {right} of the right options"


def length_panel(result: AuditResult) -> Panel:
    """Whether the length of scored option texts decides; nothing where labels or replies were logged."""
    numbers = result.length_bias
    if numbers is None:
        return Panel("length", "", "")
    marks = [Mark("sum", numbers["accuracy"]), Mark("per character", numbers["normalised"])]
    chart = Chart(
        "length",
        "The score by the sum and per character",
        "Two ways to choose between the same scores of option texts.",
        partial(charts.intervals, marks, rows="score"),
    )
    return Panel(
        "length",
        "Length of option texts",
        "Each text was scored by itself. The sum of its log-probabilities falls with its length.",
        short="Length",
        figures=[Figure.of_metrics("length", "Length of option texts", {"value": numbers.cells()}, [chart])],
    )


def _lengths(result: AuditResult) -> str:
    """The accuracy per character, and which length is answered too often by the sum."""
    numbers = result.length_bias
    if numbers is None:
        return ""
    names = ("shortest", "longest")
    found = zip(names, verdicts([numbers[f"{name}_excess"] for name in names]), strict=True)
    too_often = [f"the {name} option is answered too often" for name, one in found if one.kind == "above"]
    per_character = f"Chosen per character, it scores {number(numbers['normalised'], 2)}"
    return f"{per_character}; by the sum, {' and '.join(too_often)}" if too_often else per_character


def harness_panel(result: AuditResult) -> Panel:
    """Of an audit made inside lm-eval, its own metrics of each task in the published order."""
    harness = result.run.lm_eval or Harness(version="", orders=0)
    names = list(dict.fromkeys(name for task in harness.tasks.values() for name in task.metrics))
    rows: list[dict[str, Any]] = [
        {"task": name, "examples": str(task.num_fewshot), "scored": task.scored}
        | {key: Estimate.from_dict(value) for key, value in task.metrics.items()}
        for name, task in harness.tasks.items()
    ]
    title = f"Published order, as lm-eval {harness.version} reports it"
    columns = [Column("examples"), Column("scored"), *map(Column, names)]
    left_out = sum(task.missing for task in harness.tasks.values())
    missing = [f"Documents without scores, left out of lm-eval's metrics: {left_out:,}."] * bool(left_out)
    return Panel(
        "lm-eval",
        "In lm-eval",
        "The same requests and metrics as lm-eval's, of the order that the task publishes.",
        notes=(*missing, *harness.notes),
        figures=[Figure("lm-eval", title, ["task"], columns, rows)],
    )
