"""Several audits compared with the first, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from unslant.arrays import jsonable
from unslant.auditing.browser import browser
from unslant.auditing.notes import notes
from unslant.auditing.paired import PairedAudits, named
from unslant.auditing.panels import (
    MOST_ORDERS,
    numbers_panel,
    order_accuracies,
    order_name,
    score_panel,
)
from unslant.auditing.panels_labels import labels_panel
from unslant.auditing.result import AuditResult
from unslant.auditing.untold import untold
from unslant.experiment.provenance import settings_rows
from unslant.experiment.ranking import ranks_of, slope_chart
from unslant.experiment.result import StudyResult
from unslant.metrics import METRICS, Estimate, PairedDifference
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import MOST_ROWS, Mark, first_rows
from unslant.reports.numbers import Cell, count, listed, number, with_interval

if TYPE_CHECKING:
    from unslant.reports import Describes

FEW = ("accuracy", "expected_accuracy")
"""Measures drawn where there are many runs."""
MOST_TILES, MOST_TOLD = 5, 3


@dataclass(frozen=True)
class AuditComparison(PairedAudits[AuditResult], StudyResult):
    """Audits by name; the others are compared with the first."""

    study = "audit-comparison"
    unwritten = ("runs",)

    @classmethod
    def of(cls, results: Sequence[AuditResult], files: Sequence[str] = ()) -> AuditComparison:
        """Name audits by model, with the file name (or a number) added where models share a name."""
        return cls(named(results, files))

    @property
    def parts(self) -> Sequence[AuditResult]:
        return tuple(self.runs.values())

    def to_dict(self) -> dict[str, Any]:
        """All numbers of each run, and the differences, as plain values for JSON."""
        return super().to_dict() | {
            "runs": {name: run.to_dict() for name, run in self.runs.items()},
            "differences": [{"run": name, **jsonable(pair)} for name, pair in self.differences],
        }

    def described(self) -> Page:
        settings = {name: dict(settings_rows(run.run)) for name, run in self.runs.items()}
        rows = dict.fromkeys(key for found in settings.values() for key in found)
        sizes = [count(len(run.scores), "question") for run in self.runs.values()]
        shown: list[tuple[str, str]] = []
        for key in rows:
            values = {name: found.get(key, "") for name, found in settings.items()}
            same = len(set(values.values())) == 1
            shown += [(key, next(iter(values.values())))] if same else [(f"{key}, {n}", v) for n, v in values.items()]
        return Page(
            about=f"{listed(list(self.runs))}: {', '.join(dict.fromkeys(sizes))}",
            headline=self._headline(),
            lead=_lead(self.runs),
            tiles=Tile.row(
                *(
                    ("expected_accuracy", run.metrics.means["expected_accuracy"], f"mean over orders, {name}")
                    for name, run in _shown(self.runs)
                ),
                ("chance", self.base[1].metrics.means["chance"], "chance"),
            ),
            panels=(
                score_panel(self.runs),
                _ranks(self.runs),
                _differences(self),
                _orders(self.runs),
                labels_panel(self.runs),
                _subjects(self.runs),
                numbers_panel(self.runs),
            ),
            notes=(
                *self.remarks,
                *(f"{name}: {note}" for name, run in self.runs.items() for note in notes(run, untold(run))),
            ),
            settings=tuple(shown),
            example=self.base[1].run.example_prompt,
            questions=browser(self.runs),
            name=", ".join(self.runs),
            compared=tuple(self.runs),
        )

    def _headline(self) -> str:
        found = {pair.measure: pair.difference for _, pair in self.differences}
        if len(self.runs) > 2 or not self.differences:
            scores = {name: run.metrics.means["expected_accuracy"] for name, run in self.runs.items()}
            best = max(scores, key=lambda name: scores[name].value if scores[name].defined else -1.0)
            how = METRICS["expected_accuracy"]
            leads = f": {best} has {with_interval(scores[best], how)} as mean over orders" * scores[best].defined
            return f"{count(len(self.runs), 'run')} side by side{leads}"
        how = METRICS["difference"]
        words = {"expected_accuracy": "as mean over orders", "accuracy": "as reported"}
        key = next((key for key in words if key in found), None)
        other, base = list(self.runs)[1], self.base[0]
        if key is None:
            return f"{other} against {base}: nothing could be compared"
        written = f"{with_interval(found[key], how)} {words[key]}, same questions"
        if not found[key].excludes(0.0):
            return f"No difference shown between {other} and {base}: {written}"
        return f"{other} against {base}: {written}"


def side_by_side(results: Sequence[Describes], files: Sequence[str] = ()) -> list[Describes]:
    """Replace several audits by one comparison in the place of the first; ``files`` names each result."""
    audits = [i for i, result in enumerate(results) if isinstance(result, AuditResult)]
    if len(audits) < 2:
        return list(results)
    found = cast(list[AuditResult], [results[i] for i in audits])
    compared = AuditComparison.of(found, [files[i] for i in audits] if files else ())
    return [compared if i == audits[0] else r for i, r in enumerate(results) if i == audits[0] or i not in audits]


def _shown(runs: Mapping[str, AuditResult]) -> list[tuple[str, AuditResult]]:
    """Runs that get a tile: all, or of many the best."""
    found = list(runs.items())
    if len(found) > MOST_TILES:
        score = {name: run.metrics.means["expected_accuracy"] for name, run in found}
        found.sort(key=lambda item: -score[item[0]].value if score[item[0]].defined else 1.0)
    return found[:MOST_TILES]


def _lead(runs: Mapping[str, AuditResult]) -> str:
    parts = []
    for name, run in list(runs.items())[:MOST_TOLD]:
        means, preference = run.metrics.means, run.metrics.preference
        prefers = f", {preference.phrase}" if preference.unsure.defined else ""
        scores = f"{number(means['accuracy'])} as reported, {number(means['robust_accuracy'])} in every order"
        parts.append(f"{name}: {scores}{prefers}")
    more = len(runs) - MOST_TOLD
    return "; ".join([*parts, *[f"and {count(more, 'more run')}"] * (more > 0)]) + "."


def _ranks(runs: Mapping[str, AuditResult]) -> Panel:
    """Three runs or more: their ranks as reported and over orders, and PBM against accuracy."""
    means = {name: run.metrics.means for name, run in runs.items()}
    published = ranks_of([found["accuracy"] for found in means.values()])
    over_orders = ranks_of([found["expected_accuracy"] for found in means.values()])
    scores = [found["expected_accuracy"].n for found in means.values() if found["expected_accuracy"].defined]
    if len(runs) < 3 or len(scores) < 2:
        return Panel("ranks", "", "")
    points = [Mark(name, found["expected_accuracy"], at=found["pbm"]) for name, found in means.items()]
    how, beside = METRICS["pbm"], "accuracy, mean over orders"
    scatter = Chart(
        "ranks-pbm",
        "PBM against accuracy",
        "Each point is a run. PBM measures how far probabilities move with the order; it needs no right answers.",
        lambda style: charts.scatter(points, style, across="PBM", axis=beside, how_across=how),
    )
    return Panel(
        "ranks",
        "Ranks as published and whatever the order",
        "Each run on all of its own questions. A leaderboard of the runs says which neighbours can be told apart.",
        (*slope_chart("ranks", list(zip(runs, published, over_orders, strict=True)), min(scores)), scatter),
        short="Ranks",
    )


def _differences(comparison: AuditComparison) -> Panel:
    base, found = comparison.base[0], comparison.differences
    unmatched = comparison.unmatched
    if len(comparison.runs) > charts.MOST_SERIES:  # runs are rows
        rows, drawn = "run", [pair for pair in found if pair[1].measure in FEW]
        marks = [Mark(name, pair.difference, series=METRICS[pair.measure].label) for name, pair in drawn]
    else:
        rows = "measure"
        marks = [Mark(METRICS[pair.measure].label, pair.difference, series=name) for name, pair in found]
    how = METRICS["difference"]
    chart = Chart(
        "differences",
        f"Difference from {base}",
        "On shared questions. The 95 % intervals are of the mean of the paired differences; one that excludes the "
        "dashed line shows a difference beyond the choice of questions.",
        lambda style: charts.intervals(marks, style, rows=rows, axis=f"difference from {base}", how=how),
    )
    return Panel(
        "differences",
        "Paired differences",
        "Paired by question, which is more sensitive than comparing two scores and their separate intervals.",
        (chart,) if marks else (),
        (_difference_table(base, found),) if found else (),
        (f"No question in common with {base}: {listed(unmatched)}.",) if unmatched else (),
        short="Differences",
        first_screen=True,
    )


def _difference_table(base: str, found: Sequence[tuple[str, PairedDifference]]) -> Table:
    columns = (
        Column("measure"),
        Column("run"),
        Column(base),
        Column("this run"),
        Column.of("difference"),
        Column("only this run", explanation="questions where the measure holds only for this run"),
        Column(f"only {base}", explanation="questions where the measure holds only for the first run"),
        Column.of("p_value", "McNemar p"),
        Column("left out", explanation="questions missing or undefined in either run"),
    )

    def only(pair: PairedDifference, n: int) -> int | None:
        return n if pair.p_value == pair.p_value else None

    rows: list[tuple[Cell, ...]] = [
        (METRICS[pair.measure].label, name, pair.b, pair.a, pair.difference, only(pair, pair.only_a),
         only(pair, pair.only_b), pair.p_value, pair.n_unpaired)
        for name, pair in found
    ]  # fmt: skip
    by_row = tuple(METRICS[pair.measure] for _, pair in found)
    return Table("differences", f"Differences from {base}", columns, tuple(rows), by_row=by_row)


def _orders(runs: Mapping[str, AuditResult]) -> Panel:
    marks = []
    for name, run in runs.items():
        for block in run.scores.blocks:
            if block.same_orders and 1 < block.k <= MOST_ORDERS and len(block.index) >= len(run.scores) / 2:
                letters = [chr(ord("A") + i) for i in range(block.n)]
                marks += [Mark(name, e, series=order_name(order, letters)) for order, e in order_accuracies(block)]
    chart = Chart(
        "orders",
        "Accuracy under each order",
        "One mark per order, for the most common number of options. The marks of an unbiased model coincide.",
        lambda style: charts.strip(marks, style, rows="run"),
    )
    explanation = "How far the score moves when only the order of options changes."
    return Panel("orders", "Score under each order", explanation, (chart,) if marks else (), short="Orders")


def _subjects(runs: Mapping[str, AuditResult]) -> Panel:
    by_run = {name: run.metrics.by_subject for name, run in runs.items()}
    subjects = sorted({subject for found in by_run.values() for subject in found})
    if not subjects:
        return Panel("subjects", "", "")

    def values(subject: str) -> dict[str, Estimate]:
        return {name: found[subject]["expected_accuracy"] for name, found in by_run.items() if subject in found}

    marks = [
        Mark(subject or "(none)", value, series=name)
        for subject in subjects[:MOST_ROWS]
        for name, value in values(subject).items()
    ]
    columns = (Column("subject"), *map(Column, runs))
    cells = tuple((subject or "(none)", *map(values(subject).get, runs)) for subject in subjects)
    table = Table("subjects", "Mean accuracy over orders, by subject", columns, cells, folded=True)
    chart = Chart(
        "subjects",
        f"Mean over orders, by subject{first_rows(len(subjects))}",
        "One point for each run.",
        lambda style: charts.dumbbells(marks, style, rows="subject", axis="accuracy, mean over orders"),
    )
    drawn = (chart,) if len(runs) <= charts.MOST_SERIES else ()
    return Panel("subjects", "Subjects", "Where the runs differ.", drawn, (table,))
