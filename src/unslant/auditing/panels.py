"""Panels of an audit: scores, orders, labels and subjects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from unslant.auditing.browser import browser
from unslant.auditing.notes import few_labels, notes
from unslant.auditing.pairing import SCORES
from unslant.auditing.panels_labels import (
    harness_panel,
    labels_panel,
    length_panel,
    one_order,
    priors_panel,
    published_panel,
    stands_out,
    tiles_of,
)
from unslant.auditing.panels_orders import order_curve_panel, orders_panel, some_orders, until_headline, until_panel
from unslant.auditing.panels_replies import noise_lead, replies_panel
from unslant.auditing.panels_variance import variance_panel
from unslant.experiment.provenance import asked_about, settings_rows
from unslant.experiment.shortcut_panel import shortcut_panel
from unslant.metrics import METRICS, Estimate, Metrics
from unslant.reports import Chart, Column, Figure, Page, Panel, Plot, Table, Tile, charts
from unslant.reports.charts import MOST_ROWS, Mark
from unslant.reports.numbers import Cell, count, number, percent, with_interval

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

MANY_FAILED = 0.05
"""Share of responses without an answer above which the headline tells of it."""
TILES_IN_WORDS = ("accuracy", "robust_accuracy", "expected_accuracy", "vote_accuracy", "consistency", "answered")
TILES = ("accuracy", "robust_accuracy", "expected_accuracy", "vote_accuracy", "consistency", "pbm")


def page(result: AuditResult) -> Page:
    """Every panel this audit has data for."""
    orders = sorted({block.k for block in result.scores.blocks})
    shown = "each in " + (f"{orders[0]} to " if len(orders) > 1 else "") + count(orders[-1], "order") if orders else ""
    more = filter(None, (stands_out(result), result.left_open, until_headline(result)))
    said = headline(
        result.metrics, *more, robust="in every order asked" if some_orders(result) else "whatever the order"
    )
    if result.replies:  # what stands alone, in JSON say, tells who answered what
        said = f"{result.name} in words, {count(len(result.scores), 'question')}: {said}"
    keys = TILES_IN_WORDS if result.replies else TILES
    return Page(
        about=asked_about(result.run, count(len(result.scores), "question"), shown),
        headline=said,
        lines=(_lead(result),),
        tiles=Tile.row(
            *((key, result.metrics.means[key]) for key in keys),
            *tiles_of(result),
            ("label_mass", result.metrics.means["label_mass"], METRICS["label_mass"].label),
        ),
        panels=(
            score_panel({result.name: result}),
            until_panel(result),
            harness_panel(result),
            published_panel(result),
            length_panel(result),
            orders_panel(result),
            variance_panel(result.variance_components),
            order_curve_panel(result),
            *([] if one_order(result) else [labels_panel({result.name: result})]),
            priors_panel(result),
            replies_panel(result.replies),
            corrections_panel(result),
            subjects_panel(result),
            shortcut_panel(result.shortcuts, "shortcuts"),
            numbers_panel({result.name: result}),
        ),
        notes=tuple(notes(result)),
        settings=settings_rows(result.run),
        example=result.run.example_prompt,
        questions=browser({result.name: result}),
        name=result.name,
    )


def headline(metrics: Metrics, *more: str, robust: str = "whatever the order") -> str:
    """The outcome in one sentence, for any reader; ``more`` at its end."""
    means, preference = metrics.means, metrics.preference
    words = {
        "accuracy": "as reported",
        "expected_accuracy": "as mean over orders",
        "robust_accuracy": robust,
        "vote_accuracy": "voted",
    }
    found = [(METRICS[key], means[key], said) for key, said in words.items()]
    written = [
        f"{with_interval(value, metric) if i < 2 else number(value, metric)} {said}"
        for i, (metric, value, said) in enumerate(found)
        if value.defined
    ]
    counts = metrics.counts
    no_answer = counts.failed_rows + counts.unanswered_rows
    failed = f"no answer in {no_answer:,} of {counts.rows:,} responses" if no_answer else ""
    if not written or no_answer == counts.rows:
        return f"Nothing could be measured{': ' * bool(failed)}{failed}"
    chance = f"chance {number(means['chance'], METRICS['chance'])}"
    parts = [", ".join(written) if metrics.above_chance.above else f"Not above chance: {', '.join(written)}", chance]
    parts += [preference.phrase] if preference.unsure.defined else []
    if failed and no_answer > MANY_FAILED * counts.rows:
        parts.append(failed)
    if few_labels(metrics):
        parts.append(f"labels hold {percent(means['label_mass'].value, 1)} of the probability")
    return "; ".join((*parts, *more))


def _lead(result: AuditResult) -> str:
    means, over = result.metrics.means, result.metrics.over_orders
    parts = []
    if means["consistency"].defined:
        changing = percent(1 - means["consistency"].value)
        missing = " or is missing" if result.metrics.counts.unanswered_rows else ""
        parts.append(f"For {changing} of the questions, the answer changes with the order of options{missing}")
    parts += [told] if (told := noise_lead(result.replies)) else []
    if over["worst"].defined and "sampled" not in over["worst"].note:
        parts.append(f"the whole set scores from {number(over['worst'])} to {number(over['best'])}, by order alone")
    return "; ".join(parts) + "." if parts else ""


def score_panel(runs: Mapping[str, AuditResult]) -> Panel:
    """The reported score beside the order-free ones, for one audit or several."""
    several, many = len(runs) > 1, len(runs) > charts.MOST_SERIES  # of many, runs are rows, and the scores series
    numbers = {name: whole_set(result.metrics) for name, result in runs.items()}
    marks = [
        Mark(
            *((name, value, METRICS[key].label) if many else (METRICS[key].label, value, name * several)),
            stands_out=key == "accuracy",
        )
        for key in (SCORES[:2] if many else (*SCORES, "over_orders.worst", "over_orders.best"))
        for name, values in numbers.items()
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
    shown = {name: {key: values[key] for key in (*SCORES, "consistency", "pbm")} for name, values in numbers.items()}
    return Panel(
        "score",
        "What the score is worth",
        "The reported score uses the option order of the file. The mean over orders removes luck with it: quote that "
        "in a paper. The vote is the corrected answer, for production. Right in every order is a floor.",
        (chart,) if marks else (),
        (Figure.of_metrics("scores", "Scores of each run", shown).table,) if several else (),
        short="Score",
    )


def corrections_panel(result: AuditResult) -> Panel:
    """Accuracy after each correction the recorded scores allow."""
    found = [c for c in result.corrections if c.accuracy.defined]
    left_out = [f"{c.method}: no answer; {c.accuracy.note}." for c in result.corrections if not c.accuracy.defined]
    means, nvr = result.metrics.means, result.nvr["score"]
    given = means["accuracy"]
    marks = [Mark("as reported", given, stands_out=True), *[Mark(c.method, c.accuracy) for c in found]]
    line = given.value if given.defined else None
    chart = Chart(
        "corrections",
        "The score after each correction",
        "All on the same questions. The dashed line is the score as reported.",
        partial(charts.intervals, marks, rows="method", line=line),
    )
    keys = ("corrections.accuracy", "corrections.change", "corrections.orders")
    columns = (Column("method"), *map(Column.of, keys))
    rows: list[tuple[Cell, ...]] = [(c.method, c.accuracy, c.change, c.orders) for c in found]
    rows += [("Nvr-X (least)", nvr, None, None)] if nvr.defined else []
    table = Table("corrections", "Corrections from the same scores", columns, tuple(rows))
    return Panel(
        "corrections",
        "Corrected answers",
        "Debiasing methods applied to the recorded scores: the vote over orders, removal of a label prior estimated on "
        "a few questions (PriDe), and the mean of the given and the reversed order (gray-box).",
        (chart,) if found else (),
        (table,) if found else (),
        tuple(left_out),
        short="Corrections",
    )


def subjects_panel(result: AuditResult) -> Panel:
    """The scores of each subject, most order-dependent first."""
    by_subject = result.metrics.by_subject
    if not by_subject:
        return Panel("subjects", "", "")
    pbm = {subject: means["pbm"].value if means["pbm"].defined else 0.0 for subject, means in by_subject.items()}
    ranked = sorted(by_subject, key=lambda subject: (-pbm[subject], subject))
    rows = [{"subject": subject or "(none)", **by_subject[subject].cells()} for subject in ranked]
    shown = [key for key in (*SCORES, "consistency", "pbm") if any(means[key].defined for means in by_subject.values())]
    correlation, r = result.metrics.pbm_accuracy, METRICS["pbm_accuracy.pearson"]
    pearson = correlation["pearson"]
    plots = [
        Plot(
            charts.dumbbells,
            "Subjects whose answers move most with the order (highest PBM) come first.",
            {key: METRICS[key].label for key in ("accuracy", "robust_accuracy", "vote_accuracy")},
            "Scores by subject",
            most=MOST_ROWS,
        ),
        Plot(
            partial(charts.scatter, across="PBM", axis="accuracy, mean over orders", how_across=METRICS["pbm"]),
            f"Each point is a subject (r = {with_interval(pearson, r)}, N = {pearson.n}). PBM needs no right answers.",
            ["expected_accuracy"],
            f"Does PBM predict difficulty? r = {number(pearson, r)}",
            "pbm-accuracy",
            at="pbm",
            of="questions a subject",
        ),
    ][: 1 + pearson.defined]
    title = "Subjects, by PBM" if "pbm" in shown else "Subjects"
    values = {"value": correlation.cells()} if pearson.defined else {}
    return Panel(
        "subjects",
        "Subjects",
        "Where the score is reliable, and where the order decides.",
        figures=[
            Figure("subjects", title, ["subject"], shown, rows, plots),
            Figure.of_metrics("pbm-accuracy", "PBM against accuracy, across subjects", values, folded=True),
        ],
    )


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
        tuple((str(n), *(found.get(n, 0) for found in counts)) for n in sizes),
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
