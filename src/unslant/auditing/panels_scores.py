"""Panels of an audit about scores and orders: under each order, with fewer of them, corrected, by subject; variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from unslant.auditing.notes import phase_lines
from unslant.auditing.result import SCORES, AuditResult
from unslant.metrics import METRICS, Block, Bootstrap, Estimate, Metrics
from unslant.metrics.variance_components import NAMES
from unslant.presentations import ALPHABETS
from unslant.reports import Chart, Column, Figure, Panel, Plot, Table, charts
from unslant.reports.numbers import Cell, count, listed, number, percent, with_interval
from unslant.reports.style import MOST_ROWS, MOST_SERIES, Mark

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
    figure = _orders_figure(shared, plotted, result.bootstrap)
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
    return " ".join(ALPHABETS["A"][content] for content in contents)


def order_accuracies(block: Block, bootstrap: Bootstrap) -> list[tuple[tuple[int, ...], Estimate]]:
    """Each order shared by the questions of a block and its accuracy, best first."""
    right = np.full((bootstrap.n_questions, block.k), np.nan)
    right[block.index] = block.right
    orders = [tuple(int(c) for c in contents) for contents in block.contents[0]]
    accuracies = [(order, bootstrap.mean(hits)) for order, hits in zip(orders, right.T, strict=True)]
    return sorted(accuracies, key=lambda item: (-item[1].value, item[0]))


def _orders_figure(blocks: Sequence[Block], plotted: Block | None, bootstrap: Bootstrap) -> Figure:
    """One row an order, of every number of options; the chart is of the commonest."""
    rows: list[dict[str, Any]] = [
        {
            "options": str(block.n), "order": order_name(order), "accuracy": value,
            "given": order == tuple(range(block.n)), "plotted": block is plotted,
        }
        for block in blocks for order, value in order_accuracies(block, bootstrap)
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
    columns = [Column("accuracy", METRICS["accuracy"])]
    how = "Orders are named by the options' labels in the file, from top to bottom."
    return Figure("orders", "Accuracy by order", ["options", "order"], columns, rows, plots, how, folded=True)


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
    title, names = f"Smaller sets of orders, {about}", [Column("set of orders", key="orders")]
    figure = Figure("order-curve", title, names, columns, rows, plots[: 1 + costed], folded=True)
    return figure.panel(
        "Are fewer orders enough?",
        "Smaller sets of orders against all that were asked, from the recorded scores. A distance combines the "
        "difference and its standard error over questions and draws, so that a set close by luck does not pass.",
        short="Cost",
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
        "at all steps at once; once all questions are asked, ordinary ones.",
        ["accuracy", "expected_accuracy"],
        "The score, the more is asked",
    )
    reached = "until" if until.reached else "but not until"
    columns: list[str | Column] = [
        Column("in a square", 0, key="squares"),
        Column("in all orders", 0, key="whole"),
        Column("half-width", 4),
        *until.path[-1].numbers,
    ]
    return Figure("until", "Intervals, step by step", ["asked"], columns, rows, [plot], folded=True).panel(
        "How much had to be asked",
        "Questions came in random order, each in the published order, a random share of them also in a Latin square of "
        f"their orders and the first in all orders, {reached} every interval was ±{until.half_width:g} or narrower.",
        short="Until",
    )


def phases_panel(result: AuditResult) -> Panel:
    """The numbers over one square next to those over all orders."""
    if result.run.two_phase is None:
        return Panel("phases", "", "")
    beyond = result.beyond_places.cells() if result.beyond_places else {}
    values: dict[str, Cell] = {**result.metrics.means.cells(*_OF_PHASES), **beyond}
    figure = Figure.of_metrics("phases", "Over one Latin square and over all orders", {"value": values})
    return figure.panel("Which orders each question was shown in", " ".join(phase_lines(result)), short="Phases")


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
    lost = f"No presentation separates {listed([NAMES.get(key, key) for key in variance.inseparable])} from the others."
    return Figure("variance", "Variance components", ["component"], columns, rows, [plot], folded=True).panel(
        "Where the variance comes from",
        "Each answer differs by question, by where the right option is and what its label is, by order, and by repeat. "
        "The mean over orders averages all but the questions; more questions reduce what is left.",
        notes=(lost,) if variance.inseparable else (),
        short="Variance",
    )


def score_panel(runs: Mapping[str, AuditResult]) -> Panel:
    """The published score next to the order-free ones, for one audit or several."""
    several, many = len(runs) > 1, len(runs) > MOST_SERIES  # of many, runs are rows, and the scores series
    of_runs = {name: whole_set(result.metrics) for name, result in runs.items()}
    marks = [
        Mark(
            *((name, value, METRICS[key].label) if many else (METRICS[key].label, value, name * several)),
            stands_out=key == "accuracy",
        )
        for key in (SCORES[:2] if many else (*SCORES, "over_orders.worst", "over_orders.best"))
        for name, values in of_runs.items()
        if isinstance(value := values[key], Estimate) and value.defined
    ]
    chance = next(iter(runs.values())).metrics.means["chance"]
    line = None if several else chance.value
    explanation = "each run on all of its own questions" if several else "the dashed line is chance"
    chart = Chart(
        "score",
        "Scores of each run" if several else "One model, several scores" if len(marks) > 1 else "The score",
        f"Points with 95 % intervals; {explanation}.",
        partial(charts.intervals, marks, rows="run" if many else "score", line=line),
    )
    worth = (
        "Quote the mean over orders: it does not depend on the order of the file. The vote is the corrected answer, "
        "right in every order a floor."
    )
    if all(result.one_order for result in runs.values()):
        worth = "The score as published, in one order of the options."  # the page's lines say what that leaves open
    keys = (*SCORES, "consistency", "pbm")
    rows = {name: {key: values[key] for key in keys} for name, values in of_runs.items()}
    return Panel(
        "score",
        "What the score is worth",
        worth,
        (chart,) if marks else (),
        (Figure.of_metrics("scores", "Scores of each run", rows).table,) if several else (),
        short="Score",
    )


def corrections_panel(result: AuditResult) -> Panel:
    """Accuracy after each correction the recorded scores allow."""
    answered = [c for c in result.corrections if c.accuracy.defined]
    left_out = [f"{c.method}: no answer; {c.accuracy.note}." for c in result.corrections if not c.accuracy.defined]
    published, nvr = result.metrics.means["accuracy"], result.nvr["score"]
    marks = [Mark(c.method, c.accuracy) for c in answered]
    line = None
    if result.run.two_phase is None:  # in two phases, the published score is of other questions than the corrections
        marks.insert(0, Mark("as published", published, stands_out=True))
        line = published.value
    chart = Chart(
        "corrections",
        "The score after each correction",
        "All on the same questions. The dashed line is the score as published.",
        partial(charts.intervals, marks, rows="method", line=line),
    )
    keys = ("corrections.accuracy", "corrections.change", "corrections.orders")
    rows = [vars(correction) for correction in answered]
    rows += [{"method": "Nvr-X (least)", "accuracy": nvr}] if nvr.defined else []
    figure = Figure("corrections", "Corrections from the same scores", ["method"], keys, rows, [chart])
    return Panel(
        "corrections",
        "Corrected answers",
        "Debiasing methods applied to the recorded scores: the vote over orders, removal of a label prior estimated on "
        "a few questions (PriDe), and the mean of the given and the reversed order (gray-box).",
        notes=tuple(left_out),
        short="Corrections",
        figures=[figure] if answered else (),
    )


def subjects_panel(result: AuditResult) -> Panel:
    """The scores of each subject, most order-dependent first."""
    by_subject = result.metrics.by_subject
    if not by_subject:
        return Panel("subjects", "", "")
    key = "square_pbm" if result.run.two_phase else "pbm"
    pbm = {subject: means[key].value if means[key].defined else 0.0 for subject, means in by_subject.items()}
    ranked = sorted(by_subject, key=lambda subject: (-pbm[subject], subject))
    rows = [{"subject": subject or "(none)", **by_subject[subject].cells()} for subject in ranked]
    candidates = (*SCORES, "square_vote_accuracy", "place_accuracy", "consistency", "pbm", "square_pbm")
    keys = [key for key in candidates if any(means[key].defined for means in by_subject.values())]
    correlation, r = result.metrics.pbm_accuracy, METRICS["pbm_accuracy.pearson"]
    pearson = correlation["pearson"]
    plots = [
        Plot(
            charts.dumbbells,
            "Subjects whose answers move most with the order come first (highest PBM, the permutation bias metric).",
            {name: METRICS[name].label for name in _drawn(keys)},
            "Scores by subject",
            most=MOST_ROWS,
        ),
        Plot(
            partial(charts.scatter, across="PBM", axis="accuracy, mean over orders", how_across=METRICS["pbm"]),
            f"Each point is a subject (r = {with_interval(pearson, r)}, N = {pearson.n}). PBM, the permutation bias "
            "metric, is how far probabilities move with the order; it needs no right answers.",
            ["expected_accuracy"],
            f"Does PBM predict difficulty? r = {number(pearson, r)}",
            "pbm-accuracy",
            at=key,
            of="questions a subject",
        ),
    ][: 1 + pearson.defined]
    title = "Subjects, by PBM" if key in keys else "Subjects"
    values = {"value": correlation.cells()} if pearson.defined else {}
    return Panel(
        "subjects",
        "Subjects",
        "Where the score is reliable, and where the order decides.",
        figures=[
            Figure("subjects", title, ["subject"], keys, rows, plots),
            Figure.of_metrics("pbm-accuracy", "PBM against accuracy, across subjects", values, folded=True),
        ],
    )


def _drawn(keys: Sequence[str]) -> list[str]:
    """The scores of subjects that are drawn: over a square where not all orders were shown."""
    pairs = (("robust_accuracy", "place_accuracy"), ("vote_accuracy", "square_vote_accuracy"))
    return ["accuracy", *(next((key for key in pair if key in keys), pair[0]) for pair in pairs)]


def numbers_panel(runs: Mapping[str, AuditResult]) -> Panel:
    """Every number of the whole set with its meaning, for one audit or several."""
    several = len(runs) > 1
    values = {name if several else "value": whole_set(result.metrics) for name, result in runs.items()}
    sizes = sorted({n for result in runs.values() for n in result.metrics.counts.by_options})
    counts = [result.metrics.counts.by_options for result in runs.values()]
    by_options = Table(
        "options",
        "Questions by number of options",
        (Column("options"), *(Column(name if several else "questions") for name in runs)),
        tuple((str(n), *(of_run.get(n, 0) for of_run in counts)) for n in sizes),
        folded=True,
    )
    return Panel(
        "numbers",
        "All numbers",
        "Every number with its 95 % interval, the number of questions behind it, and its meaning.",
        tables=(Figure.of_metrics("numbers", "Metrics", values, methods=not several).table, by_options),
        short="Numbers",
        reference=True,
    )


def whole_set(metrics: Metrics) -> dict[str, Cell]:
    """Metric key -> value, for all metrics with one value for the whole set."""
    means, bias, over = metrics.means, metrics.label_bias.numbers, metrics.over_orders.numbers
    first = means.cells(*SCORES, "hard_vote_accuracy") | over.cells("worst", "best", "acc_std")
    others = means.cells() | bias.cells("rstd", "rsd", "ckld", "ckld_smoothed")
    return {**first, **others, "unsure": metrics.preference.unsure, "sticky": metrics.preference.sticky}
