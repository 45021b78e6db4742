"""Panels of an audit about orders: the score under each, whether fewer would do, how far ``--until`` went, variance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant.auditing.notes import phase_lines
from unslant.metrics import Block, Estimate, wilson
from unslant.metrics.variance_components import NAMES
from unslant.reports import Chart, Column, Figure, Panel, Plot, charts
from unslant.reports.numbers import Cell, count, listed, percent
from unslant.reports.style import Mark

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

MOST_ORDERS = 24
DRAWN = "K, drawn freely"
"""Name of the sets that a bare number draws."""
_OF_PHASES = (
    *("expected_accuracy", "square_vote_accuracy", "vote_accuracy", "place_accuracy", "robust_accuracy"),
    *("consistency", "square_pbm", "pbm"),
)


def orders_panel(result: AuditResult) -> Panel:
    """The score under each order, and how many questions depend on the order."""
    reordered = [block for block in result.whole.blocks if block.k > 1 and block.answers.any()]
    shared = sorted((block for block in reordered if block.same_orders), key=lambda block: -len(block.index))
    sampled = sum(len(block.index) for block in reordered if not block.same_orders)
    sentence = count(sampled, "question was shown in a sample of its", "questions were shown in a sample of their")
    plotted = next((block for block in shared if block.k <= MOST_ORDERS), None)
    figure = _orders_figure(shared, plotted)
    return Panel(
        "orders",
        "Score under each order",
        "The same questions and options in different orders. An unbiased model scores the same in every row.",
        (*figure.charts, *_histogram(result)),
        figure.tables,
        (f"{sentence} orders: no order is common to all of them.",) if sampled else (),
        short="Orders",
    )


def order_name(contents: Sequence[int]) -> str:
    """An order named by the options' labels in the file, top to bottom: ``C A B D``."""
    return " ".join(chr(ord("A") + content) for content in contents)


def order_accuracies(block: Block) -> list[tuple[tuple[int, ...], Estimate]]:
    """Each order shared by the questions of a block and its accuracy, best first."""
    right = block.right[~np.isnan(block.right[:, 0])]
    orders = [tuple(int(c) for c in contents) for contents in block.contents[0]]
    accuracies = [(order, wilson(float(right[:, k].mean()), len(right))) for k, order in enumerate(orders)]
    return sorted(accuracies, key=lambda item: (-item[1].value, item[0]))


def _orders_figure(blocks: Sequence[Block], plotted: Block | None) -> Figure:
    """One row an order, of every number of options; the chart is of the commonest."""
    rows: list[dict[str, Any]] = [
        {
            "options": str(block.n), "order": order_name(order), "accuracy": value,
            "given": order == tuple(range(block.n)), "plotted": block is plotted,
        }
        for block in blocks for order, value in order_accuracies(block)
    ]  # fmt: skip
    plots = []
    if plotted is not None:
        estimates = [row["accuracy"] for row in rows if row["plotted"]]
        mean = float(np.mean([estimate.value for estimate in estimates]))
        plots = [
            Plot(
                partial(charts.intervals, fit=True, step=15, line=mean, highlight="as published"),
                "Each row is an order, named by the options' labels in the file from top to bottom. The file's own "
                "order is highlighted; the dashed line is the mean over orders.",
                ["accuracy"],
                f"{count(estimates[0].n, 'question')} with {plotted.n} options in {plotted.k} orders",
                name=["order"],
                out=lambda row: bool(row["given"]),
                where=lambda row: bool(row["plotted"]),
            )
        ]
    how = "Orders are named by the options' labels in the file, from top to bottom."
    return Figure("orders", "Accuracy by order", ["options", "order"], ["accuracy"], rows, plots, how, folded=True)


def _histogram(result: AuditResult) -> tuple[Chart, ...]:
    if result.scores.stopped is not None:
        return ()
    values = result.metrics.questions["expected_accuracy"][result.whole.order_counts > 1]
    values = values[~np.isnan(values)]
    if not values.size:
        return ()
    edges = np.linspace(0, 1, 11)
    inner = values[(values > 0) & (values < 1)]
    counted = [int((values == 0).sum()), *np.histogram(inner, edges)[0].tolist(), int((values == 1).sum())]
    names = ["never", *[f"{low:.1f}–{high:.1f}" for low, high in pairwise(edges)], "always"]
    marks = [
        Mark(name, Estimate.bare(float(n), n, ""), stands_out=0 < i < len(names) - 1)
        for i, (name, n) in enumerate(zip(names, counted, strict=True))
    ]
    chart = Chart(
        "share-right",
        f"For {percent(sum(counted[1:-1]) / values.size)} of the questions, the order decides",
        f"{count(values.size, 'question')} by the share of orders in which the answer is right. Between never and "
        "always, only the order decides whether the model is right.",
        partial(charts.counts, marks, rows="share of orders in which the answer is right"),
    )
    return (chart,)


def order_curve_panel(result: AuditResult) -> Panel:
    """Distance from all orders and cost of every smaller set."""
    curve = result.order_curve
    if curve is None:
        return Panel("order-curve", "", "")
    costed, tokens = curve.points[-1].ordinary_runs >= 0, result.cost.tokens_ordinary
    rows: list[dict[str, Any]] = []
    for point in curve.points:
        runs, kind = point.ordinary_runs, point.orders.partition(":")[0]
        series = DRAWN if kind.isdecimal() else "given:K" if kind == "reverse" else f"{kind}:K"
        rows.append({**vars(point), "series": series, "tokens": round(runs * tokens) if runs == runs else None})
        if point is not curve.points[-1]:  # only smaller sets are drawn
            values = {"distance": point.apart if point.k > 1 else np.nan, "ordinary": runs}
            rows[-1] |= {key: Estimate.bare(value, curve.n_questions, "") for key, value in values.items()}

    def line(key: str, axis: str, id: str, title: str, explanation: str) -> Plot:
        kind = partial(charts.lines, axis=axis, zero=True, whole=True)
        return Plot(kind, explanation, [key], title, id, ["k"], "series", at="k", rows="orders")

    plots = [
        line(
            *("distance", "largest distance", "order-curve", "How close fewer orders come"),
            f"Distance from all {curve.n_orders} orders: the largest of those of the mean over orders, the vote and "
            "PBM.",
        ),
        line(
            *("ordinary", "ordinary runs", "order-cost", "What fewer orders would have cost"),
            "In ordinary runs: tokens over those of the published order alone, each prompt whole. Controls are "
            "included.",
        ),
    ]
    columns = [
        Column("orders", 0, key="k"),
        Column("mean", 4, "distance of the mean over orders", "accuracy"),
        Column("vote", 4, "distance of the voted accuracy"),
        Column("PBM", 4, "distance of PBM", "pbm"),
        Column("other vote", 3, "share of questions whose voted answer differs", "votes_differ"),
        *[Column("ordinary runs", 2, key="ordinary_runs"), Column("tokens", 0)] * costed,
    ]
    about = f"{count(curve.n_questions, 'question')} with {curve.n_options} options"
    title, names = f"Smaller sets of orders, {about}", [Column("--orders", key="orders")]
    return Panel(
        "order-curve",
        "Are fewer orders enough?",
        "Smaller sets of orders against all that were asked, from the scores already there. A distance holds the "
        "difference and its standard error over questions and draws, so that luck does not count.",
        short="Cost",
        figures=[Figure("order-curve", title, names, columns, rows, plots[: 1 + costed], folded=True)],
    )


def until_panel(result: AuditResult) -> Panel:
    """The intervals after each step."""
    until = result.run.until
    if not until:
        return Panel("until", "", "")
    rows: list[dict[str, Any]] = [
        {
            "asked": f"{step.questions:,} ({step.squares:,}, {step.whole:,})",  # short, to leave room for the chart
            "squares": step.squares,
            "whole": step.whole,
            "half-width": step.half_width,
            **{name: Estimate.from_dict(one) for name, one in step.numbers.items()},
        }
        for step in until.path
    ]
    plot = Plot(
        partial(charts.intervals, fit=True),
        "Each row is a step: questions asked (in a square of orders, in all orders). Bars are 95 % intervals that hold "
        "at all steps at once; where all questions are asked, the usual ones.",
        ["accuracy", "expected_accuracy"],
        "The score, the more is asked",
    )
    columns: list[str | Column] = [
        Column("in a square", 0, key="squares"),
        Column("in all orders", 0, key="whole"),
        Column("half-width", 4),
        *until.path[-1].numbers,
    ]
    return Panel(
        "until",
        "How much had to be asked",
        "Questions came in random order, each in the published order, a random share of them also in a Latin square of "
        f"their orders and the first in all orders, until every interval below was ±{until.half_width:g} or narrower.",
        short="Until",
        figures=[Figure("until", "Intervals, step by step", ["asked"], columns, rows, [plot], folded=True)],
    )


def phases_panel(result: AuditResult) -> Panel:
    """The numbers over one square next to those over all orders."""
    if result.run.two_phase is None:
        return Panel("phases", "", "")
    beyond = result.beyond_places.cells() if result.beyond_places else {}
    values: dict[str, Cell] = {**result.metrics.means.cells(*_OF_PHASES), **beyond}
    return Panel(
        "phases",
        "What was asked of what",
        " ".join(phase_lines(result)),
        short="Phases",
        figures=[Figure.of_metrics("phases", "Over a square and over all orders", {"value": values})],
    )


def variance_panel(result: AuditResult) -> Panel:
    """The variance components of an audit in several orders."""
    variance = result.variance_components
    if variance is None or not variance.components:
        return Panel("variance", "", "")
    rows = [
        {"component": NAMES.get(name, name.replace("question_", "question × ")), **one.cells()}
        for name, one in variance.components.items()
    ]
    columns = [Column.of(key) for key in ("components.variance", "components.of_answer", "components.of_score")]
    plot = Plot(
        partial(charts.intervals, fit=True),
        "Variance of an answer, right (1) or wrong (0), with 95 % intervals over questions. Position and label are "
        "those of the right option.",
        ["components.variance"],
        "What the variance of an answer consists of",
    )
    lost = f"No page separates {listed([NAMES.get(one, one) for one in variance.inseparable])} from the others."
    return Panel(
        "variance",
        "Where the variance comes from",
        "Each answer differs by question, by where the right option is and what its label is, by order, and by repeat. "
        "The mean over orders averages all but the questions; more questions reduce what is left.",
        notes=(lost,) if variance.inseparable else (),
        short="Variance",
        figures=[Figure("variance", "Variance components", ["component"], columns, rows, [plot], folded=True)],
    )
