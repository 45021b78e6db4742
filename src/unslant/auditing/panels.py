"""Panels of an audit: scores, orders, labels and subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from unslant.auditing.browser import browser
from unslant.auditing.notes import few_labels, notes
from unslant.auditing.paired import SCORES
from unslant.auditing.panels_harness import harness_panel
from unslant.auditing.panels_labels import labels_panel, priors_panel
from unslant.auditing.panels_orders import order_curve_panel
from unslant.auditing.panels_published import length_panel, one_order, published_panel, stands_out, tiles_of
from unslant.auditing.panels_replies import noise_lead, replies_panel
from unslant.auditing.panels_until import partial, until_headline, until_panel
from unslant.auditing.untold import untold
from unslant.experiment.provenance import asked_about, settings_rows
from unslant.experiment.shortcut_panel import shortcut_panel
from unslant.metrics import METRICS, Block, Estimate, Metrics, wilson
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import MOST_ROWS, Mark, first_rows
from unslant.reports.numbers import Cell, count, number, percent, with_interval

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

MOST_ORDERS = 24
MANY_FAILED = 0.05
"""Share of responses without an answer above which the headline tells of it."""
TILES_IN_WORDS = ("accuracy", "robust_accuracy", "expected_accuracy", "vote_accuracy", "consistency", "answered")
TILES = ("accuracy", "robust_accuracy", "expected_accuracy", "vote_accuracy", "consistency", "pbm")


def page(result: AuditResult) -> Page:
    """Every panel this audit has data for."""
    orders = sorted({block.k for block in result.scores.blocks})
    shown = "each in " + (f"{orders[0]} to " if len(orders) > 1 else "") + count(orders[-1], "order") if orders else ""
    unknown = untold(result)
    more = filter(None, (stands_out(result), unknown, until_headline(result)))
    said = headline(result.metrics, *more, robust="in every order asked" if partial(result) else "whatever the order")
    if result.replies:  # what stands alone, in JSON say, tells who answered what
        said = f"{result.name} in words, {count(len(result.scores), 'question')}: {said}"
    keys = TILES_IN_WORDS if result.replies else TILES
    return Page(
        about=asked_about(result.run, count(len(result.scores), "question"), shown),
        headline=said,
        lead=_lead(result),
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
            order_curve_panel(result),
            *([] if one_order(result) else [labels_panel({result.name: result})]),
            priors_panel(result),
            replies_panel(result.replies),
            corrections_panel(result),
            subjects_panel(result),
            shortcut_panel(result.shortcuts, "shortcuts"),
            numbers_panel({result.name: result}),
        ),
        notes=tuple(notes(result, unknown)),
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
    several = len(runs) > 1
    found = {name: whole_set(result.metrics) for name, result in runs.items()}
    many = len(runs) > charts.MOST_SERIES  # runs are rows, and the scores series
    keys = SCORES[:2] if many else (*SCORES, "over_orders.worst", "over_orders.best")
    marks = [
        Mark(
            *((name, value, METRICS[key].label) if many else (METRICS[key].label, value, name * several)),
            stands_out=key == "accuracy",
        )
        for key in keys
        for name, values in found.items()
        if isinstance(value := values[key], Estimate) and value.defined
    ]
    first = next(iter(runs.values())).metrics.means["chance"]
    chance = first.value if first.defined and not several else None
    explanation = "each run on all of its own questions" if several else "the dashed line is chance"
    shown = {name: {key: values[key] for key in (*SCORES, "consistency", "pbm")} for name, values in found.items()}
    chart = Chart(
        "score",
        "Scores of each run" if several else "One model, several scores",
        f"Points with 95 % intervals; {explanation}.",
        lambda style: charts.intervals(marks, style, rows="run" if many else "score", line=chance),
    )
    return Panel(
        "score",
        "What the score is worth",
        "The reported score uses the option order of the file. The mean over orders removes luck with it: quote that "
        "in a paper. The vote is the corrected answer, for production. Right in every order is a floor.",
        (chart,) if marks else (),
        (Table.of_metrics("scores", "Scores of each run", shown),) if several else (),
        short="Score",
        first_screen=True,
    )


def orders_panel(result: AuditResult) -> Panel:
    """The score under each order, and how many questions depend on the order."""
    found: list[Chart] = []
    tables: list[Table] = []
    reordered = [block for block in result.scores.blocks if block.k > 1 and block.answers.any()]
    shared = [block for block in reordered if block.same_orders]
    sampled = sum(len(block.index) for block in reordered if not block.same_orders)
    were = count(sampled, "question was shown in a sample of its", "questions were shown in a sample of their")
    note = f"{were} orders: no order is common to all of them."
    for block in sorted(shared, key=lambda b: -len(b.index)):
        rows = order_accuracies(block)
        named = [(order_name(order, [chr(ord("A") + i) for i in range(block.n)]), value) for order, value in rows]
        id, columns = f"orders-{block.n}-{block.k}", (Column("order"), Column("accuracy"))
        title = f"Accuracy by order, questions with {block.n} options"
        how = "Orders are named by the options' labels in the file, from top to bottom."
        tables.append(Table(id, title, columns, tuple(named), how, folded=True))
        if block.k <= MOST_ORDERS and not found:
            found.append(_orders_chart(id, block, rows, named))
    return Panel(
        "orders",
        "Score under each order",
        "The same questions and options in different orders. An unbiased model scores the same in every row.",
        (*found, *_histogram(result)),
        tuple(tables),
        (note,) if sampled else (),
        short="Orders",
    )


def order_name(contents: Sequence[int], labels: Sequence[str]) -> str:
    """An order named by the options' labels in the file, top to bottom: ``C A B D``."""
    return " ".join(labels[content] for content in contents)


def order_accuracies(block: Block) -> list[tuple[tuple[int, ...], Estimate]]:
    """Each order shared by the questions of a block and its accuracy, best first."""
    right = block.right
    right = right[~np.isnan(right[:, 0])]
    orders = [tuple(int(c) for c in contents) for contents in block.contents[0]]
    found = [(order, wilson(float(right[:, k].mean()), len(right))) for k, order in enumerate(orders)]
    return sorted(found, key=lambda item: (-item[1].value, item[0]))


def _orders_chart(
    id: str, block: Block, rows: Sequence[tuple[tuple[int, ...], Estimate]], named: Sequence[tuple[str, Estimate]]
) -> Chart:
    given = [order == tuple(range(block.n)) for order, _ in rows]
    marks = [Mark(*item, stands_out=own) for item, own in zip(named, given, strict=True)]
    mean = float(np.mean([value.value for _, value in rows]))
    return Chart(
        id,
        f"{count(rows[0][1].n, 'question')} with {block.n} options in {block.k} orders",
        "Each row is an order, named by the options' labels in the file from top to bottom. The file's own order is "
        "highlighted; the dashed line is the mean over orders. The 95 % intervals treat the questions as a sample.",
        lambda style: charts.intervals(
            marks, style, rows="order", fit=True, step=15, line=mean, highlight="as reported"
        ),
    )


def _histogram(result: AuditResult) -> tuple[Chart, ...]:
    if result.scores.stopped is not None:
        return ()
    values = result.metrics.questions["expected_accuracy"][result.scores.order_counts > 1]
    values = values[~np.isnan(values)]
    if not values.size:
        return ()
    edges = np.linspace(0, 1, 11)
    inner = values[(values > 0) & (values < 1)]
    counted = [int((values == 0).sum()), *np.histogram(inner, edges)[0].tolist(), int((values == 1).sum())]
    names = ["never", *[f"{low:.1f}–{high:.1f}" for low, high in pairwise(edges)], "always"]
    middle = [False, *[True] * 10, False]
    axis = "share of orders in which the answer is right"
    marks = [Mark(*bar[:2], stands_out=bar[2]) for bar in zip(names, map(_count, counted), middle, strict=True)]
    chart = Chart(
        "share-right",
        f"For {percent(sum(counted[1:-1]) / values.size)} of the questions, the order decides",
        f"{count(values.size, 'question')} by the share of orders in which the answer is right. Between never and "
        "always, only the order decides whether the model is right.",
        lambda style: charts.counts(marks, style, rows=axis),
    )
    return (chart,)


def _count(n: int) -> Estimate:
    return Estimate.bare(float(n), n, "")


def corrections_panel(result: AuditResult) -> Panel:
    """Accuracy after each correction the recorded scores allow."""
    found = [c for c in result.corrections if c.accuracy.defined]
    left_out = [f"{c.method}: no answer; {c.accuracy.note}." for c in result.corrections if not c.accuracy.defined]
    means, nvr = result.metrics.means, result.nvr["score"]
    marks = [Mark("as reported", means["accuracy"], stands_out=True), *[Mark(c.method, c.accuracy) for c in found]]
    chart = Chart(
        "corrections",
        "The score after each correction",
        "All on the same questions. The dashed line is the score as reported.",
        lambda style: charts.intervals(
            marks, style, rows="method", line=means["accuracy"].value if means["accuracy"].defined else None
        ),
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
        first_screen=True,
    )


def subjects_panel(result: AuditResult) -> Panel:
    """The scores of each subject, most order-dependent first."""
    by_subject = result.metrics.by_subject
    if not by_subject:
        return Panel("subjects", "", "")
    pbm = {subject: means["pbm"].value if means["pbm"].defined else 0.0 for subject, means in by_subject.items()}
    ranked = sorted(by_subject.items(), key=lambda item: (-pbm[item[0]], item[0]))
    named = [(subject or "(none)", means) for subject, means in ranked]
    drawn = ("accuracy", "robust_accuracy", "vote_accuracy")
    marks = [
        Mark(subject, means[key], series=METRICS[key].label) for subject, means in named[:MOST_ROWS] for key in drawn
    ]
    title = f"Scores by subject{first_rows(len(ranked))}"
    explanation = "Subjects whose answers move most with the order (highest PBM) come first."
    found = [Chart("subjects", title, explanation, lambda style: charts.dumbbells(marks, style, rows="subject"))]
    shown = [key for key in (*SCORES, "consistency", "pbm") if any(m[key].defined for _, m in named)]
    cells: list[tuple[Cell, ...]] = [(subject, *(means[key] for key in shown)) for subject, means in named]
    title = "Subjects, by PBM" if "pbm" in shown else "Subjects"
    tables = [Table("subjects", title, (Column("subject"), *map(Column.of, shown)), tuple(cells))]
    correlation = result.metrics.pbm_accuracy
    pearson = correlation["pearson"]
    if pearson.defined:
        points = [Mark(subject, means["expected_accuracy"], at=means["pbm"]) for subject, means in named]
        how = METRICS["pbm"]
        r = METRICS["pbm_accuracy.pearson"]
        found.append(
            Chart(
                "pbm-accuracy",
                f"Does PBM predict difficulty? r = {number(pearson, r)}",
                f"Each point is a subject (r = {with_interval(pearson, r)}, N = {pearson.n}). "
                "PBM needs no right answers.",
                lambda style: charts.scatter(
                    points, style, across="PBM", axis="accuracy, mean over orders", how_across=how
                ),
                of="questions a subject",
            )
        )
        title = "PBM against accuracy, across subjects"
        tables.append(Table.of_metrics("pbm-accuracy", title, {"value": correlation.cells()}, folded=True))
    return Panel(
        "subjects",
        "Subjects",
        "Where the score is reliable, and where the order decides.",
        tuple(found),
        tuple(tables),
        first_screen=True,
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
        tables=(Table.of_metrics("numbers", "Metrics", values, methods=not several), by_options),
        short="Numbers",
        reference=True,
    )


def whole_set(metrics: Metrics) -> dict[str, Cell]:
    """Metric key -> value, for all metrics with one value for the whole set."""
    means, bias, over = metrics.means, metrics.label_bias.numbers, metrics.over_orders.numbers
    first = means.cells(*SCORES, "hard_vote_accuracy") | over.cells("worst", "best", "acc_std")
    others = means.cells() | bias.cells("rstd", "rsd", "ckld", "ckld_smoothed")
    return {**first, **others, "unsure": metrics.preference.unsure, "sticky": metrics.preference.sticky}
