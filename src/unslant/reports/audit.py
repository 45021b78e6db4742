"""The panels of one audit: what the score is worth, order by order, label by label, subject by subject."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from unslant.metrics import Estimate, wilson
from unslant.metrics.accuracy import correct_under_orders
from unslant.metrics.scores import Block
from unslant.reports import charts
from unslant.reports.charts import Mark
from unslant.reports.panels import Chart, Column, Panel, Style, Table
from unslant.reports.rows import minus, percent, score_rows
from unslant.reports.runs import Run

MOST_ORDERS = 24
MOST_SUBJECTS = 15
SCORES = (
    ("as reported", "accuracy"),
    ("mean over orders", "expected_accuracy"),
    ("voted", "vote_accuracy"),
    ("right in every order", "robust_accuracy"),
)
"""The accuracies that are shown side by side, by their names in :class:`unslant.metrics.measures.Measures`."""


def audit_panels(run: Run) -> list[Panel]:
    """All panels that this audit has data for."""
    panels = [score_panel(run), orders_panel(run), labels_panel(run), subjects_panel(run), numbers_panel(run)]
    return [panel for panel in panels if not panel.empty]


def score_panel(run: Run) -> Panel:
    """The score as reported beside what is left of it."""
    means, over = run.metrics.means, run.metrics.over_orders
    marks = [Mark(name, getattr(means, measure), stands_out=measure == "accuracy") for name, measure in SCORES]
    marks += [Mark("worst order", over.worst), Mark("best order", over.best)]
    chance = means.chance.value if means.chance.defined else None

    def draw(style: Style) -> object:
        return charts.intervals(marks, style, line=chance)

    chart = Chart(
        "score",
        "One model, several scores",
        "Points with 95 % intervals; the dashed line is what guessing gives.",
        draw,
    )
    return Panel(
        "score",
        "What the score is worth",
        "The reported score uses the order of options in the file. The mean over orders is free of luck with that "
        "order; the vote is the corrected answer; right in every order is what no order can take away.",
        (chart,) if any(mark.estimate.defined for mark in marks) else (),
    )


def orders_panel(run: Run) -> Panel:
    """The score under each order, and how many questions hang on the order."""
    found: list[Chart] = []
    tables: list[Table] = []
    reordered = [block for block in run.scores.blocks if block.k > 1 and block.answers.any()]
    shared = [block for block in reordered if block.same_orders]
    sampled = sum(len(block.index) for block in reordered if not block.same_orders)
    note = f"{sampled:,} questions were shown in a sample of their orders: no order is common to all of them."
    for block in sorted(shared, key=lambda b: -len(b.index)):
        rows = order_accuracies(block)
        tables.append(_orders_table(block, rows))
        if block.k <= MOST_ORDERS and len(found) < 2 and len(block.index) >= 0.1 * len(run.scores):
            found.append(_orders_chart(block, rows))
    histogram = _histogram(run)
    return Panel(
        "orders",
        "Score under each order",
        "The same questions, the same options, only in another order. A model that goes by content scores the same in "
        "every row.",
        (*found, *histogram),
        tuple(tables),
        (note,) if sampled else (),
    )


def order_name(contents: Sequence[int], labels: Sequence[str]) -> str:
    """An order by the labels its options have in the file, from top to bottom: ``C A B D``."""
    return " ".join(labels[content] for content in contents)


def order_accuracies(block: Block) -> list[tuple[tuple[int, ...], Estimate]]:
    """Every order of a block whose questions share them, with the accuracy of the block under it, best first."""
    right = correct_under_orders(block)
    right = right[~np.isnan(right[:, 0])]
    orders = [tuple(int(c) for c in contents) for contents in block.contents[0]]
    found = [(order, wilson(float(right[:, k].mean()), len(right))) for k, order in enumerate(orders)]
    return sorted(found, key=lambda item: (-item[1].value, item[0]))


def _labels(block: Block) -> list[str]:
    return [chr(ord("A") + i) for i in range(block.n)]


def _orders_chart(block: Block, rows: Sequence[tuple[tuple[int, ...], Estimate]]) -> Chart:
    given = tuple(range(block.n))
    marks = [Mark(order_name(order, _labels(block)), value, stands_out=order == given) for order, value in rows]
    mean = float(np.mean([value.value for _, value in rows]))

    def draw(style: Style) -> object:
        return charts.intervals(marks, style, domain=None, step=15, line=mean)

    n = f"{rows[0][1].n:,}"
    return Chart(
        f"orders-{block.n}-{block.k}",
        f"{n} questions with {block.n} options in {block.k} orders",
        "Each row is one order, named by the options from top to bottom as the file letters them. The order of the "
        "file stands out; the dashed line is the mean over orders. Intervals: 95 %, questions as a sample.",
        draw,
    )


def _orders_table(block: Block, rows: Sequence[tuple[tuple[int, ...], Estimate]]) -> Table:
    return Table(
        f"orders-{block.n}-{block.k}",
        f"Accuracy by order, questions with {block.n} options",
        (Column("order"), Column("accuracy")),
        tuple((order_name(order, _labels(block)), value) for order, value in rows),
        "Orders by the options from top to bottom, as the file letters them.",
        folded=True,
    )


def _histogram(run: Run) -> tuple[Chart, ...]:
    values = run.metrics.questions.expected_accuracy[run.scores.order_counts > 1]
    values = values[~np.isnan(values)]
    if not values.size:
        return ()
    edges = np.linspace(0, 1, 11)
    inner = values[(values > 0) & (values < 1)]
    counted = [int((values == 0).sum()), *np.histogram(inner, edges)[0].tolist(), int((values == 1).sum())]
    names = ["never", *[f"{low:.1f}–{high:.1f}" for low, high in pairwise(edges)], "always"]
    middle = [False, *[True] * 10, False]

    def draw(style: Style) -> object:
        return charts.counts(names, counted, middle, style, under="share of its orders in which a question is right")

    share = sum(counted[1:-1]) / values.size
    return (
        Chart(
            "share-right",
            f"For {percent(share)} of the questions, the order decides",
            f"{values.size:,} questions by the share of their orders in which the answer is right. Between never and "
            "always, whether the model is right depends on the order alone.",
            draw,
        ),
    )


def labels_panel(run: Run) -> Panel:
    """What is chosen when unsure, and accuracy by where the right option stands."""
    metrics = run.metrics
    preference = metrics.preference
    slots = [slot for slot in preference.slots if slot.chosen.defined]
    found: list[Chart] = []
    if slots:
        chosen = [
            Mark(s.label, s.chosen, expected=_finite(s.expected), stands_out=s.label == preference.named) for s in slots
        ]

        def draw_chosen(style: Style) -> object:
            return charts.columns(chosen, style, title="share chosen", under="label", expected="by content alone")

        found.append(
            Chart(
                "preference",
                preference.phrase[:1].upper() + preference.phrase[1:],
                f"Share of orders in which each label is chosen, on the {slots[0].chosen.n:,} questions whose answer "
                "changes with the order. Dashes: what a model going by content alone would choose there. "
                "last: the last position.",
                draw_chosen,
            )
        )
    recall = [Mark(row.label, row.recall) for row in metrics.order_labels if row.recall.defined]
    if recall:
        mean = metrics.means.expected_accuracy

        def draw_recall(style: Style) -> object:
            return charts.intervals(recall, style, axis="accuracy", step=26, line=mean.value if mean.defined else None)

        found.append(
            Chart(
                "gold-position",
                "Accuracy by where the right option stands",
                "The same questions with the right option moved to each place in turn, over all orders. Level points "
                "mean that the place does not matter. Dashed: the mean over orders.",
                draw_recall,
            )
        )
    return Panel(
        "labels",
        "Labels and positions",
        "What the model falls back on when it does not know, and what that does to questions whose right option stands "
        "there.",
        tuple(found),
        (labels_table(run),) if slots or recall else (),
        (preference.note,) if preference.note else (),
    )


def _finite(value: float) -> float | None:
    return value if value == value else None


def labels_table(run: Run) -> Table:
    """One row per label, and one for the last position."""
    metrics = run.metrics
    given = {row.label: row for row in metrics.given_labels}
    moved = {row.label: row for row in metrics.order_labels}
    rows = []
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
            )
        )
    columns = (
        Column("label"),
        Column("chosen when unsure", explanation="share of orders, where the answer changes with the order"),
        Column("expected", explanation="the same for a model going by content alone"),
        Column("predicted", explanation="share of answers, given order"),
        Column("gold", explanation="share of right options, given order"),
        Column("recall", explanation="accuracy when the right option stands there, given order"),
        Column("recall, all orders", explanation="the same over all orders"),
    )
    return Table("labels", "Labels", columns, tuple(rows), folded=True)


def subjects_panel(run: Run) -> Panel:
    """The scores of each subject, most order-dependent first."""
    by_subject = run.metrics.by_subject
    if not by_subject:
        return Panel("subjects", "", "")
    ranked = sorted(by_subject.items(), key=lambda item: (-_or_zero(item[1].pbm), item[0]))
    rows = [
        (
            subject or "(none)",
            [
                Mark(subject, getattr(means, measure), series=name)
                for name, measure in (SCORES[0], SCORES[3], SCORES[2])
            ],
        )
        for subject, means in ranked[:MOST_SUBJECTS]
    ]

    def draw(style: Style) -> object:
        return charts.dumbbells(rows, style)

    more = f"the {MOST_SUBJECTS} of {len(ranked)} subjects" if len(ranked) > MOST_SUBJECTS else "subjects"
    found = [
        Chart("subjects", "Scores by subject", f"Here: {more} whose answers move most with the order (PBM).", draw)
    ]
    correlation = run.metrics.pbm_accuracy
    if correlation.pearson.defined:
        points = [(subject or "(none)", means.pbm, means.expected_accuracy) for subject, means in ranked]

        def draw_scatter(style: Style) -> object:
            return charts.scatter(points, style, under="PBM", beside="accuracy, mean over orders")

        r = correlation.pearson
        bounds = f", 95 % interval {minus(r.low)} to {minus(r.high)}" if r.low == r.low else ""
        found.append(
            Chart(
                "pbm-accuracy",
                f"Does PBM tell what is hard? r = {minus(r.value)}",
                f"Each point is a subject (N = {r.n}{bounds}; Spearman {minus(correlation.spearman)}). PBM needs no "
                "right answers.",
                draw_scatter,
            )
        )
    return Panel(
        "subjects",
        "Subjects",
        "Where the score can be relied on, and where the order decides.",
        tuple(found),
        (subjects_table(run),),
    )


def _or_zero(estimate: Estimate) -> float:
    return estimate.value if estimate.defined else 0.0


def subjects_table(run: Run) -> Table:
    """Every subject, by PBM."""
    columns = (
        Column("subject"),
        *[Column(name) for name, _ in SCORES],
        Column("consistency", explanation="share of questions with the same answer in every order"),
        Column("PBM", 4, explanation="variance of an option's probability over the orders"),
    )
    ranked = sorted(run.metrics.by_subject.items(), key=lambda item: (-_or_zero(item[1].pbm), item[0]))
    rows = tuple(
        (subject or "(none)", *[getattr(means, m) for _, m in SCORES], means.consistency, means.pbm)
        for subject, means in ranked
    )
    return Table("subjects", "Subjects, by PBM", columns, rows)


def numbers_panel(run: Run) -> Panel:
    """Every number of the whole set, with its meaning."""
    found = score_rows(run.metrics)
    rows = tuple((row.name, row.estimate, row.meaning, row.estimate.method) for row in found)
    columns = (Column("metric"), Column("value"), Column("meaning"), Column("interval by"))
    return Panel(
        "numbers",
        "All numbers",
        "Every number with its 95 % interval, the number of questions it rests on, and what it means.",
        tables=(Table("numbers", "Metrics", columns, rows, row_digits=tuple(row.digits for row in found)),),
    )
