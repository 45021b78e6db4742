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
from unslant.reports.panels import Cell, Chart, Column, Panel, Style, Table
from unslant.studies.audit.panels_labels import labels_panel, priors_panel
from unslant.studies.audit.rows import minus, percent, score_rows
from unslant.studies.audit.runs import Run

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
    panels = [
        score_panel(run),
        orders_panel(run),
        labels_panel(run),
        priors_panel(run),
        corrections_panel(run),
        subjects_panel(run),
        numbers_panel(run),
    ]
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
        short="Score",
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
        if block.k <= MOST_ORDERS and not found:
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
        short="Orders",
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


def corrections_panel(run: Run) -> Panel:
    """Accuracy after each correction that the recorded scores allow."""
    found = run.result.corrections
    means, nvr = run.metrics.means, run.result.nvr.score
    marks = [Mark("as reported", means.accuracy, stands_out=True), *[Mark(c.method, c.accuracy) for c in found]]

    def draw(style: Style) -> object:
        return charts.intervals(marks, style, line=means.accuracy.value if means.accuracy.defined else None)

    chart = Chart(
        "corrections",
        "The score after each correction",
        "Each on the questions it can be used for. The dashed line is the score as reported.",
        draw,
    )
    columns = (
        Column("method"),
        Column("accuracy"),
        Column("change", explanation="accuracy less that of the order of the file, on the same questions"),
        Column("orders", 1, "orders a question that the method looks at"),
    )
    rows: list[tuple[Cell, ...]] = [(c.method, c.accuracy, c.change, c.orders) for c in found]
    rows += [("Nvr-X (least)", nvr, None, None)] if nvr.defined else []
    table = Table("corrections", "Corrected, from the same scores", columns, tuple(rows))
    return Panel(
        "corrections",
        "Corrected answers",
        "What debiasing methods make of the scores already at hand: the vote over orders, the label prior of a few "
        "questions taken out of all (PriDe), and the given and the reversed order together (gray-box).",
        (chart,) if found else (),
        (table,) if found else (),
        short="Corrections",
    )


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
        short="Numbers",
    )
