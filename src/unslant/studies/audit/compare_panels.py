"""Several audits side by side: each against the first, question by question."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.metrics import Estimate, PairedDifference, paired_difference
from unslant.reports import charts
from unslant.reports.charts import Mark
from unslant.reports.panels import Cell, Chart, Column, Panel, Style, Table
from unslant.reports.terminal import number
from unslant.studies.audit.panels import MOST_ORDERS, MOST_SUBJECTS, SCORES, order_accuracies, order_name
from unslant.studies.audit.rows import score_rows
from unslant.studies.audit.runs import Run

MEASURES = (*SCORES, ("consistency", "consistency"), ("PBM", "pbm"))
"""What is compared question by question."""


def compare_panels(runs: Sequence[Run]) -> list[Panel]:
    """All panels that these audits have data for; the first audit is the one the others are compared with."""
    panels = [_scores(runs), _differences(runs), _orders(runs), _labels(runs), _subjects(runs), _numbers(runs)]
    return [panel for panel in panels if not panel.empty]


def compare_headline(runs: Sequence[Run]) -> str:
    """The outcome in a sentence."""
    if len(runs) > 2 or not _shared(runs[0], runs[1]):
        return f"{len(runs)} runs side by side"
    base, other = runs
    parts = []
    for measure, words in (("accuracy", "as reported"), ("robust_accuracy", "whatever the order")):
        difference = paired_difference(other.scores, base.scores, measure).difference
        if difference.defined:
            parts.append(f"{difference.value:+.2f} {words}")
    return f"{other.name} against {base.name}: {', '.join(parts) or 'nothing could be compared'}"


def compare_lead(runs: Sequence[Run]) -> str:
    """Each run in a few words."""
    told = []
    for run in runs:
        means = run.metrics.means
        preference = f", {run.metrics.preference.phrase}" if run.metrics.preference.unsure.defined else ""
        told.append(
            f"{run.name}: {number(means.accuracy, 2)} as reported, {number(means.robust_accuracy, 2)} in every order"
            f"{preference}"
        )
    return "; ".join(told) + "."


def _shared(a: Run, b: Run) -> int:
    return len(set(a.scores.ids) & set(b.scores.ids))


def _marks(runs: Sequence[Run], measures: Sequence[tuple[str, str]]) -> list[Mark]:
    return [Mark(name, getattr(run.metrics.means, m), series=run.name) for name, m in measures for run in runs]


def _scores(runs: Sequence[Run]) -> Panel:
    marks = _marks(runs, SCORES)

    def draw(style: Style) -> object:
        return charts.intervals(marks, style)

    chart = Chart(
        "scores", "The scores of each run", "Points with 95 % intervals, each run on all of its own questions.", draw
    )
    return Panel(
        "scores",
        "What the scores are worth",
        "The reported score uses the order of options in the file; the mean over orders is free of luck with it; the "
        "vote is the corrected answer; right in every order is what no order can take away.",
        (chart,),
        short="Scores",
    )


def _differences(runs: Sequence[Run]) -> Panel:
    base, others = runs[0], [run for run in runs[1:] if _shared(runs[0], run)]
    found = [
        (name, run, paired_difference(run.scores, base.scores, measure)) for name, measure in MEASURES for run in others
    ]
    found = [(name, run, pair) for name, run, pair in found if pair.difference.defined]
    unmatched = [run.name for run in runs[1:] if run not in others]
    notes = (f"No question in common with {base.name}: {', '.join(unmatched)}.",) if unmatched else ()
    marks = [Mark(name, pair.difference, series=run.name) for name, run, pair in found]

    def draw(style: Style) -> object:
        return charts.intervals(marks, style, axis=f"difference from {base.name}", domain=None, zero=True)

    chart = Chart(
        "differences",
        f"Difference from {base.name}",
        "On the questions both answered. Intervals (95 %) resample both answers of a question together; one that lies "
        "beside the dashed line is a difference that questions alone do not explain.",
        draw,
    )
    return Panel(
        "differences",
        "Paired differences",
        "The same questions asked of both: far sharper than comparing two scores with their own intervals.",
        (chart,) if marks else (),
        (_difference_table(base, found),) if found else (),
        notes,
        short="Differences",
    )


def _difference_table(base: Run, found: Sequence[tuple[str, Run, PairedDifference]]) -> Table:
    columns = (
        Column("measure"),
        Column("run"),
        Column(base.name),
        Column("this run"),
        Column("difference"),
        Column("only this run", explanation="questions where the measure holds for this run alone"),
        Column(f"only {base.name}", explanation="questions where the measure holds for the first run alone"),
        Column("McNemar p", explanation="exact, two-sided: both are equally likely to be the only one"),
        Column("left out", explanation="questions that only one of the runs has, or that are undefined in either"),
    )

    def only(pair: PairedDifference, count: int) -> int | None:
        return count if pair.p_value == pair.p_value else None

    rows: list[tuple[Cell, ...]] = [
        (name, run.name, pair.b, pair.a, pair.difference, only(pair, pair.only_a), only(pair, pair.only_b),
         pair.p_value, pair.n_unpaired)
        for name, run, pair in found
    ]  # fmt: skip
    digits = tuple(4 if pair.measure == "pbm" else 3 for _, _, pair in found)
    return Table("differences", f"Differences from {base.name}", columns, tuple(rows), row_digits=digits)


def _orders(runs: Sequence[Run]) -> Panel:
    marks = []
    for run in runs:
        for block in run.scores.blocks:
            if block.same_orders and 1 < block.k <= MOST_ORDERS and len(block.index) >= len(run.scores) / 2:
                letters = [chr(ord("A") + i) for i in range(block.n)]
                marks += [
                    Mark(run.name, value, series=order_name(order, letters)) for order, value in order_accuracies(block)
                ]

    def draw(style: Style) -> object:
        return charts.strip(marks, style)

    chart = Chart(
        "orders",
        "Each mark is one order",
        "Accuracy of the most common option count under each order of its options. A run that goes by content has its "
        "marks in one place.",
        draw,
    )
    return Panel(
        "orders",
        "Score under each order",
        "How far the score moves when nothing but the order of options does.",
        (chart,) if marks else (),
        short="Orders",
    )


def _labels(runs: Sequence[Run]) -> Panel:
    chosen = [
        Mark(
            slot.label, slot.chosen, series=run.name, expected=slot.expected if slot.expected == slot.expected else None
        )
        for run in runs
        for slot in run.metrics.preference.slots
    ]
    recall = [Mark(row.label, row.recall, series=run.name) for run in runs for row in run.metrics.order_labels]

    def draw_chosen(style: Style) -> object:
        return charts.columns(chosen, style, title="share chosen", under="label", expected="by content alone")

    def draw_recall(style: Style) -> object:
        return charts.intervals(recall, style)

    found = []
    if any(mark.estimate.defined for mark in chosen):
        words = "; ".join(f"{run.name} {run.metrics.preference.phrase}" for run in runs)
        found.append(
            Chart(
                "preference",
                "What is chosen when unsure",
                f"{words}. Dashes: what a model going by content alone would choose there. last: the last position.",
                draw_chosen,
            )
        )
    if any(mark.estimate.defined for mark in recall):
        found.append(
            Chart(
                "gold-position",
                "Accuracy by where the right option stands",
                "The same questions with the right option moved to each place in turn, over all orders.",
                draw_recall,
            )
        )
    return Panel(
        "labels",
        "Labels and positions",
        "What each model falls back on when it does not know, and what that does to questions whose right option "
        "stands there.",
        tuple(found),
        short="Labels",
    )


def _subjects(runs: Sequence[Run]) -> Panel:
    subjects = sorted({subject for run in runs for subject in run.metrics.by_subject})
    if not subjects:
        return Panel("subjects", "", "")

    def value(run: Run, subject: str) -> Estimate | None:
        means = run.metrics.by_subject.get(subject)
        return means.expected_accuracy if means else None

    found = [(subject, [(run, value(run, subject)) for run in runs]) for subject in subjects]
    rows = [
        (subject or "(none)", [Mark(subject, estimate, series=run.name) for run, estimate in values if estimate])
        for subject, values in found
    ]

    def draw(style: Style) -> object:
        return charts.dumbbells(rows[:MOST_SUBJECTS], style, axis="accuracy, mean over orders")

    table = Table(
        "subjects",
        "Mean accuracy over orders, by subject",
        (Column("subject"), *[Column(run.name) for run in runs]),
        tuple((subject or "(none)", *[estimate for _, estimate in values]) for subject, values in found),
        folded=True,
    )
    first = f" (the first {MOST_SUBJECTS} of {len(rows)})" if len(rows) > MOST_SUBJECTS else ""
    chart = Chart("subjects", f"Mean over orders, by subject{first}", "One point for each run.", draw)
    return Panel("subjects", "Subjects", "Where the runs differ.", (chart,), (table,))


def _numbers(runs: Sequence[Run]) -> Panel:
    by_run = [{row.name: row for row in score_rows(run.metrics)} for run in runs]
    names = list(dict.fromkeys(name for rows in by_run for name in rows))
    rows, digits = [], []
    for name in names:
        known = [rows_of.get(name) for rows_of in by_run]
        first = next(row for row in known if row)
        rows.append((name, *[row.estimate if row else None for row in known], first.meaning))
        digits.append(first.digits)
    columns = (Column("metric"), *[Column(run.name) for run in runs], Column("meaning"))
    return Panel(
        "numbers",
        "All numbers",
        "Every number of every run with its 95 % interval, the number of questions it rests on, and what it means.",
        tables=(Table("numbers", "Metrics", columns, tuple(rows), row_digits=tuple(digits)),),
        short="Numbers",
    )
