"""Panels of an audit about orders: the score under each, whether fewer would do, and how far ``--until`` went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant.metrics import METRICS, Block, Estimate, wilson
from unslant.metrics.anytime import ANYTIME
from unslant.reports import Chart, Column, Figure, Panel, Plot, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import count, number, percent
from unslant.responses.run import Step, UntilRun

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

MOST_ORDERS = 24
DRAWN = "K, drawn freely"
"""Name of the sets that a bare number draws."""


def orders_panel(result: AuditResult) -> Panel:
    """The score under each order, and how many questions depend on the order."""
    reordered = [block for block in result.whole.blocks if block.k > 1 and block.answers.any()]
    shared = sorted((block for block in reordered if block.same_orders), key=lambda block: -len(block.index))
    sampled = sum(len(block.index) for block in reordered if not block.same_orders)
    were = count(sampled, "question was shown in a sample of its", "questions were shown in a sample of their")
    plotted = next((block for block in shared if block.k <= MOST_ORDERS), None)
    figures = [_orders_figure(shared, plotted)] if shared else []
    by_share = _histogram(result)
    return Panel(
        "orders",
        "Score under each order",
        "The same questions and options in different orders. An unbiased model scores the same in every row.",
        (*(chart for figure in figures for chart in figure.charts), *by_share),
        tuple(table for figure in figures for table in figure.tables),
        (f"{were} orders: no order is common to all of them.",) if sampled else (),
        short="Orders",
    )


def order_name(contents: Sequence[int]) -> str:
    """An order named by the options' labels in the file, top to bottom: ``C A B D``."""
    return " ".join(chr(ord("A") + content) for content in contents)


def order_accuracies(block: Block) -> list[tuple[tuple[int, ...], Estimate]]:
    """Each order shared by the questions of a block and its accuracy, best first."""
    right = block.right[~np.isnan(block.right[:, 0])]
    orders = [tuple(int(c) for c in contents) for contents in block.contents[0]]
    found = [(order, wilson(float(right[:, k].mean()), len(right))) for k, order in enumerate(orders)]
    return sorted(found, key=lambda item: (-item[1].value, item[0]))


def _orders_figure(blocks: Sequence[Block], plotted: Block | None) -> Figure:
    """One row an order, of every number of options; the chart is of the commonest."""
    rows: list[dict[str, Any]] = [
        {
            "options": str(block.n), "order": order_name(order), "accuracy": value,
            "given": order == tuple(range(block.n)), "plotted": block is plotted,
        }
        for block in blocks for order, value in order_accuracies(block)
    ]  # fmt: skip
    shown = [row["accuracy"] for row in rows if row["plotted"]]
    plots = []
    if plotted is not None:
        mean = float(np.mean([value.value for value in shown]))
        plots = [
            Plot(
                partial(charts.intervals, fit=True, step=15, line=mean, highlight="as published"),
                "Each row is an order, named by the options' labels in the file from top to bottom. The file's own "
                "order is highlighted; the dashed line is the mean over orders.",
                ["accuracy"],
                f"{count(shown[0].n, 'question')} with {plotted.n} options in {plotted.k} orders",
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


def _smaller(row: Mapping[str, Any]) -> bool:
    """Whether a row is of a smaller set than that asked."""
    return bool(row["smaller"])


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
        row = {**vars(point), "series": series, "tokens": round(runs * tokens) if runs == runs else None}
        drawn = {"distance": point.apart if point.k > 1 else np.nan, "ordinary": runs}
        marks = {key: Estimate.bare(value, curve.n_questions, "") for key, value in drawn.items()}
        rows.append({**row, **marks, "smaller": point is not curve.points[-1]})

    def line(key: str, axis: str, id: str, title: str, explanation: str) -> Plot:
        kind = partial(charts.lines, axis=axis, zero=True, whole=True)
        return Plot(kind, explanation, [key], title, id, ["k"], "series", at="k", rows="orders", where=_smaller)

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
    title = f"Smaller sets of orders, {about}"
    names = [Column("--orders", key="orders")]
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
        {"asked": _step(step), "squares": step.squares, "whole": step.whole, "half-width": step.half_width}
        | {name: Estimate.from_dict(one) for name, one in step.numbers.items()}
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


def until_lines(result: AuditResult) -> list[str]:
    """What was asked, what that saved, what is left open, and what the intervals mean."""
    until = result.run.until
    if not until:
        return []
    everything = until.ended == "all"
    line = f"Asked {asked_until(until)}: {until.prompts:,} of {until.of_prompts:,} prompts"
    if until.tokens and not everything:
        line += f", {until.tokens:,} of about {until.of_tokens:,} tokens of all questions in all orders"
    saved = "" if everything else f" ({percent(1 - until.share)} saved)"
    lines = [f"{line}{saved}."]
    step = until.path[-1]
    if not until.reached and step.half_width:
        needed = until.questions * (step.half_width / until.half_width) ** 2
        why = "everything was asked" if everything else "more orders of these questions would not narrow it by much"
        lines.append(
            f"Left open is ±{number(step.half_width, 4)}, where ±{until.half_width:g} was asked for: {why}. About "
            f"{needed:,.0f} such questions would be needed."
        )
    names = [METRICS[name].name for name, one in step.numbers.items() if one["method"].startswith(ANYTIME)]
    if names and not everything:
        lines.append(
            f"Intervals of {', '.join(names)} are anytime-valid: stopping when they are narrow does not spoil them. "
            "All other intervals assume that the number of questions was fixed beforehand."
        )
    return lines


def asked_until(until: UntilRun) -> str:
    """What was asked, in words."""
    if until.ended == "all":
        return f"all {count(until.questions, 'question')} in all orders"
    every = until.questions == until.of_questions
    questions = f"all {until.questions:,}" if every else f"{until.questions:,} of {until.of_questions:,}"
    return f"{questions} questions, {until.squares:,} in a square of orders, {until.whole:,} in all"


def _step(step: Step) -> str:
    return f"{step.questions:,} ({step.squares:,}, {step.whole:,})"  # short, to leave room for the chart
