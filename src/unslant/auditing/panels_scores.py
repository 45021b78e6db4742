"""Panels of an audit: scores, corrections, subjects, and all numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from unslant.auditing.result import SCORES
from unslant.metrics import METRICS, Estimate, Metrics
from unslant.reports import Chart, Column, Figure, Panel, Plot, Table, charts
from unslant.reports.numbers import Cell, number, with_interval
from unslant.reports.style import MOST_ROWS, MOST_SERIES, Mark

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult


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
    line = chance.value if chance.defined and not several else None
    explanation = "each run on all of its own questions" if several else "the dashed line is chance"
    chart = Chart(
        "score",
        "Scores of each run" if several else "One model, several scores",
        f"Points with 95 % intervals; {explanation}.",
        partial(charts.intervals, marks, rows="run" if many else "score", line=line),
    )
    keys = (*SCORES, "consistency", "pbm")
    rows = {name: {key: values[key] for key in keys} for name, values in of_runs.items()}
    return Panel(
        "score",
        "What the score is worth",
        "Quote the mean over orders: it does not depend on the order of the file. The vote is the corrected answer, "
        "right in every order a floor.",
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
        line = published.value if published.defined else None
    chart = Chart(
        "corrections",
        "The score after each correction",
        "All on the same questions. The dashed line is the score as published.",
        partial(charts.intervals, marks, rows="method", line=line),
    )
    keys = ("corrections.accuracy", "corrections.change", "corrections.orders")
    columns = (Column("method"), *map(Column.of, keys))
    rows: list[tuple[Cell, ...]] = [(c.method, c.accuracy, c.change, c.orders) for c in answered]
    rows += [("Nvr-X (least)", nvr, None, None)] if nvr.defined else []
    table = Table("corrections", "Corrections from the same scores", columns, tuple(rows))
    return Panel(
        "corrections",
        "Corrected answers",
        "Debiasing methods applied to the recorded scores: the vote over orders, removal of a label prior estimated on "
        "a few questions (PriDe), and the mean of the given and the reversed order (gray-box).",
        (chart,) if answered else (),
        (table,) if answered else (),
        tuple(left_out),
        short="Corrections",
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
