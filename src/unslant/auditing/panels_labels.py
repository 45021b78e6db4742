"""Panels of an audit about labels and replies: preference, places of the right option, base rates, Nvr-X, length."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from unslant.auditing.panels_scores import order_name
from unslant.auditing.result import AuditResult
from unslant.metrics import METRICS, BaseRates, Estimate
from unslant.metrics.accuracy import Calibration
from unslant.metrics.base_rate import MATERIAL
from unslant.reports import Chart, Column, Figure, Panel, Plot, charts
from unslant.reports.numbers import Cell, count, number
from unslant.reports.style import MOST_SERIES, Mark
from unslant.responses import NO_ANSWER
from unslant.responses.run import Harness


def labels_panel(runs: Mapping[str, AuditResult]) -> Panel:
    """Labels chosen when unsure, and accuracy by position of the right option, for one audit or several."""
    several = len(runs) > 1
    metrics = {name: result.metrics for name, result in runs.items()}
    first = next(iter(metrics.values()))
    fallbacks = [
        Mark(s.label, s.chosen, name * several, s.expected, s.label == of_run.preference.named)
        for name, of_run in metrics.items()
        for s in of_run.preference.slots
        if s.chosen.defined
    ]
    recall = [
        Mark(row.label, row["recall"], name * several)
        for name, of_run in metrics.items()
        for row in of_run.order_labels
        if row["recall"].defined
    ]
    phrase = first.preference.phrase[:1].upper() + first.preference.phrase[1:]
    phrases = "; ".join(f"{name} {of_run.preference.phrase}" for name, of_run in metrics.items()) + ". "
    unsure = count(fallbacks[0].estimate.n, "question") if fallbacks and not several else "questions"
    shares = partial(charts.columns, fallbacks, rows="label", axis="share chosen", expected="by content alone")
    mean = None if several else first.means["expected_accuracy"].value
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
    drawn = zip(pictures, (fallbacks, recall), strict=True)
    tables = [_labels_figure(result, name * several) for name, result in runs.items()] if fallbacks or recall else []
    return Panel(
        "labels",
        "Labels and positions",
        "What the model falls back on when unsure, and the effect on accuracy by position of the right option.",
        tuple(chart for chart, marks in drawn if marks and len(runs) <= MOST_SERIES),
        notes=tuple(f"{f'{name}: ' * several}{m.preference.note}" for name, m in metrics.items() if m.preference.note),
        short="Labels",
        figures=tables,
    )


def _labels_figure(result: AuditResult, name: str) -> Figure:
    """One row per label, plus the last position."""
    metrics, rates = result.metrics, _usual_rates(result)
    published = {row.label: row for row in metrics.given_labels}
    over_orders = {row.label: row for row in metrics.order_labels}
    never = dict(zip(result.nvr.labels, result.nvr.accuracy, strict=True))
    alone = {}
    if rates:
        pairs = zip(rates.labels, rates.by_label, rates.shares.tolist(), strict=True)
        alone = {label: {"base_rates.by_label": rate, "base_rates.shares": share} for label, rate, share in pairs}
    rows = []
    for slot in metrics.preference.slots:
        row: dict[str, Cell] = {"label": slot.label, "chosen": slot.chosen, "expected": slot.expected}
        row |= published[slot.label].numbers.cells("predicted", "gold", "recall")
        row["order_labels.recall"] = over_orders[slot.label]["recall"]
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
    return Figure.of_metrics("priors", "Base rates and Nvr-X", {"value": values}, plots, folded=True).panel(
        "Base rates and Nvr-X",
        "A model that favours a label before reading the question scores well where that label happens to be right. "
        "Its base rates are the probabilities it gives the labels of a question without content. Nvr-X is its accuracy "
        "when the right option is never under label X; the lowest, within each number of options, is its score without "
        "the label that helps it most.",
        short="Priors",
    )


def _base_rates(rates: BaseRates | None) -> list[Chart]:
    if rates is None:
        return []
    marks = [
        Mark(label, value, stands_out=rates.uneven and label == rates.top)
        for label, value in zip(rates.labels, rates.by_label, strict=True)
    ]
    how, mean = METRICS["base_rates.by_label"], float(rates.values.mean())
    even = (
        "labels are about equally likely" if rates["distance"].value < MATERIAL else "no label is shown to be likelier"
    )
    likely = f"{rates.top} is most likely" if rates.uneven else even
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
    outliers = {reading.label for reading in nvr.readings}
    marks = [
        Mark(f"never {label}", value, stands_out=label in outliers)
        for label, value in zip(nvr.labels, nvr.accuracy, strict=True)
    ]
    readings = "; ".join(reading.phrase for reading in nvr.readings)
    return [
        Chart(
            "nvr",
            f"Nvr-X: {number(nvr['score'])} without the best label",
            "Accuracy when the right option is never under a given label, on the questions with that label; the score "
            f"is the lowest within each number of options. Dashed: as given. Guessing scores {number(nvr['guess'])}."
            + (f" Outliers: {readings}." if readings else ""),
            partial(charts.intervals, marks, rows="variant", step=26, line=nvr["plain"].value),
        )
    ]


def published_panel(result: AuditResult) -> Panel:
    """Labels, places and confidence under the order of the file; on the first screen if there is no other order."""
    metrics, alone = result.metrics, result.one_order
    means, bias = metrics.means, metrics.label_bias
    values: dict[str, Cell] = {
        **bias.numbers.cells("cramers_v", "p"),
        "margin": means["margin"],
        "tie_rate": means["tie_rate"] if result.scores.is_scored else None,
        "label_mass": means["label_mass"],
        **(metrics.calibration.numbers.cells() if metrics.calibration else {}),
        "minimum_difference": metrics.minimum_difference,
        "minimum_difference_unpaired": metrics.minimum_difference_unpaired,
    }
    rows = [  # where there are more orders, these are among all labels
        {"label": row.label, **row.numbers.cells()}
        for row in metrics.given_labels
        if row["predicted"].defined and alone
    ]
    v, p = METRICS["cramers_v"], METRICS["label_bias.p"]
    test = f"Cramér's V {number(bias['cramers_v'], v)}, p {number(bias['p'], p)}. "
    plots = [
        Plot(
            partial(charts.columns, axis="share", expected="right options"),
            "Share of answers under each label as published. Dashes: share of right options. last: the last position.",
            ["predicted"],
            "Labels answered and right",
            expected=lambda row, _: row["gold"],
        ),
        Plot(
            partial(charts.intervals, step=26, line=means["accuracy"].value),
            f"{test * bias['cramers_v'].defined}Each place has different questions, so some of the difference is "
            "chance. Dashed: the accuracy.",
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
        "differs with the place of the right option, is a sign of bias; only other orders show what kind.",
        short="Published",
        figures=[labels, numbers],
    )


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
    return Figure.of_metrics("length", "Length of option texts", {"value": numbers.cells()}, [chart]).panel(
        "Length of option texts",
        "Each text was scored by itself. The sum of its log-probabilities falls with its length.",
        short="Length",
    )


def harness_panel(result: AuditResult) -> Panel:
    """lm-eval's own metrics of each task in the published order, for an audit made inside lm-eval."""
    harness = result.run.lm_eval or Harness(version="", orders=0)
    names = list(dict.fromkeys(name for task in harness.tasks.values() for name in task.metrics))
    rows: list[dict[str, Any]] = [
        {"task": name, "examples": str(task.num_fewshot), "scored": task.scored}
        | {key: Estimate.from_dict(value) for key, value in task.metrics.items()}
        for name, task in harness.tasks.items()
    ]
    title = f"Published order, as lm-eval {harness.version} reports it"
    columns = [Column("examples"), Column("scored"), *map(Column, names)]
    lost = sum(task.missing for task in harness.tasks.values())
    missing = [f"Documents without scores, left out of lm-eval's metrics: {lost:,}."] * bool(lost)
    return Panel(
        "lm-eval",
        "In lm-eval",
        "lm-eval's own requests and metrics, in the order that the task publishes.",
        notes=(*missing, *harness.notes),
        figures=[Figure("lm-eval", title, ["task"], columns, rows)],
    )


def replies_panel(result: AuditResult) -> Panel:
    """Replies without an answer, by order; noise; what stopping early saved; nothing where labels were scored."""
    replies = result.replies
    if replies is None:
        return Panel("replies", "", "")
    right = ("right", *["right_by_label", "right_by_text"] * bool(replies.example))
    values: dict[str, Cell] = {
        **replies.numbers.cells(*right, "unparsed", "conflict", "cut", "refused", "none_or_several"),
        **replies.noise.cells(),
        **(replies.calibration.numbers.cells() if replies.calibration else {}),
        "adaptive.other_vote": replies.adaptive.other_vote if replies.adaptive else None,
    }
    orders = [order_name(row.order) or f"{row.n_options} options, all orders" for row in replies.by_order]
    rows = [{**vars(row), "order": name} for row, name in zip(replies.by_order, orders, strict=True)]
    words = {"replies": "replies", "answered": "answers", "none_or_several": "none or several"}
    words |= {name: name for name in NO_ANSWER} | {"failed": "no reply"}
    by_order = Figure(
        "replies",
        "Replies by order",
        ["order"],
        [Column(name, key=key) for key, name in words.items()],
        rows,
        explanation="Orders are named by the options' labels in the file, from top to bottom. A reply that names none "
        "or several options, is unparsed, gives a label with another option's text (conflict), was cut or refused "
        "counts as not right.",
    )
    labels = Figure(
        "labels-written",
        "Labels as written",
        ["label"],
        [
            Column("replies naming it", key="written"),
            Column("right option under it", key="right"),
            Column("shown", key="of"),
        ],
        [vars(one) for one in replies.labels],
        explanation="Labels that replies name, whether the text after them is that option's or another's.",
    )
    numbers = Figure.of_metrics(
        "noise", "Flips and confidence", {"value": values}, calibration_chart(replies.calibration)
    )
    return Panel(
        "replies",
        "Replies",
        "How many replies contain an answer, and how often the same prompt gets another one.",
        short="Replies",
        figures=[numbers, by_order, labels],
    )


def calibration_chart(calibration: Calibration | None) -> tuple[Chart, ...]:
    """The reliability diagram; nothing where there is no confidence."""
    if calibration is None:
        return ()
    points = [Mark(f"{b.above:.1f} to {b.to:.1f}", b.right, at=b.confidence) for b in calibration.bins]
    answers = count(calibration.replies, "answer")
    chart = Chart(
        "reliability",
        "Is the confidence justified?",
        f"Share right, with 95 % intervals, against confidence, in ten bins; {answers}. On the dashed line the two "
        "agree; below it the model is overconfident.",
        lambda style: charts.against(points, style, rows="confidence", axis="share right"),
    )
    return (chart,)
