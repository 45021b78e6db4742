"""Several audits compared with the first, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from unslant.arrays import jsonable
from unslant.auditing.browser import browser
from unslant.auditing.notes import notes
from unslant.auditing.pairing import MEASURES, named, paired
from unslant.auditing.panels import numbers_panel, score_panel
from unslant.auditing.panels_labels import labels_panel
from unslant.auditing.panels_orders import MOST_ORDERS, order_accuracies, order_name
from unslant.auditing.result import AuditResult
from unslant.experiment.comparison import Comparison, slope_chart
from unslant.experiment.provenance import settings_rows
from unslant.experiment.result import StudyResult
from unslant.metrics import METRICS, PairedDifference
from unslant.reports import Chart, Page, Panel, Plot, Tile, charts
from unslant.reports.charts import MOST_ROWS, Mark
from unslant.reports.numbers import count, listed, number, with_interval

if TYPE_CHECKING:
    from unslant.reports import Describes

FEW = ("accuracy", "expected_accuracy")
"""Measures drawn where there are many runs."""
MOST_TILES, MOST_TOLD = 5, 3


@dataclass(frozen=True)
class AuditComparison(StudyResult):
    """Audits by name; the others are compared with the first."""

    study = "audit-comparison"
    unwritten = ("runs",)

    runs: Mapping[str, AuditResult]

    @classmethod
    def of(cls, results: Sequence[AuditResult], files: Sequence[str] = ()) -> AuditComparison:
        """Name audits by model, with the file name (or a number) added where models share a name."""
        return cls(named(results, files))

    @property
    def parts(self) -> Sequence[AuditResult]:
        return tuple(self.runs.values())

    @cached_property
    def comparison(self) -> Comparison:
        """The numbers of every audit, and its differences from the first."""
        numbers = {name: run.metrics.means.cells() for name, run in self.runs.items()}
        return Comparison(numbers, MEASURES, lambda *names: paired(*((name, self.runs[name]) for name in names)))

    @property
    def base(self) -> tuple[str, AuditResult]:
        """The first audit."""
        return next(iter(self.runs.items()))

    @property
    def differences(self) -> Sequence[tuple[str, PairedDifference]]:
        """Run name and difference from the first run, for each metric defined on shared questions."""
        return self.comparison.differences

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
            lines=(_lead(self.runs),),
            tiles=Tile.row(
                *(
                    ("expected_accuracy", run.metrics.means["expected_accuracy"], f"mean over orders, {name}")
                    for name, run in _shown(self.runs)
                ),
                ("chance", self.base[1].metrics.means["chance"], "chance"),
            ),
            panels=(
                score_panel(self.runs),
                _ranks(self.comparison),
                _differences(self),
                _orders(self.runs),
                labels_panel(self.runs),
                _subjects(self),
                numbers_panel(self.runs),
            ),
            notes=(
                *self.comparison.remarks,
                *(f"{name}: {note}" for name, run in self.runs.items() for note in notes(run)),
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


def _ranks(comparison: Comparison) -> Panel:
    """Three runs or more: their ranks as reported and over orders, and PBM against accuracy."""
    published, over_orders = (comparison.ranks(key) for key in ("accuracy", "expected_accuracy"))
    scores = [score.n for score in comparison.scores("expected_accuracy").values() if score.defined]
    if len(published) < 3 or len(scores) < 2:
        return Panel("ranks", "", "")
    plot = Plot(
        partial(charts.scatter, across="PBM", axis="accuracy, mean over orders", how_across=METRICS["pbm"]),
        "Each point is a run. PBM measures how far probabilities move with the order; it needs no right answers.",
        ["expected_accuracy"],
        "PBM against accuracy",
        at="pbm",
    )
    places = [(name, published[name], over_orders[name]) for name in published]
    return Panel(
        "ranks",
        "Ranks as published and whatever the order",
        "Each run on all of its own questions. A leaderboard of the runs says which neighbours can be told apart.",
        (*slope_chart("ranks", places, min(scores)), *comparison.figure("ranks-pbm", "", ["pbm"], [plot]).charts),
        short="Ranks",
    )


def _differences(compared: AuditComparison) -> Panel:
    base, found = compared.base[0], compared.differences
    many = len(compared.runs) > charts.MOST_SERIES  # runs are rows
    plot = Plot(
        partial(charts.intervals, axis=f"difference from {base}", fit=True),
        "On shared questions. The 95 % intervals are of the mean of the paired differences; one that excludes the "
        "dashed line shows a difference beyond the choice of questions.",
        ["difference"],
        f"Difference from {base}",
        name=["run" if many else "label"],
        series="label" if many else "run",
        where=(lambda row: row["measure"] in FEW) if many else None,
        rows="run" if many else "measure",
    )
    shared = {name for name, _ in found}
    unmatched = [name for name in list(compared.runs)[1:] if name not in shared]
    title = f"Differences from {base}"
    return Panel(
        "differences",
        "Paired differences",
        "Paired by question, which is more sensitive than comparing two scores and their separate intervals.",
        notes=(f"No question in common with {base}: {listed(unmatched)}.",) if unmatched else (),
        short="Differences",
        figures=[compared.comparison.difference_figure("differences", title, [plot])],
    )


def _orders(runs: Mapping[str, AuditResult]) -> Panel:
    marks = []
    for name, run in runs.items():
        for block in run.scores.blocks:
            if block.same_orders and 1 < block.k <= MOST_ORDERS and len(block.index) >= len(run.scores) / 2:
                marks += [Mark(name, e, series=order_name(order)) for order, e in order_accuracies(block)]
    chart = Chart(
        "orders",
        "Accuracy under each order",
        "One mark per order, for the most common number of options. The marks of an unbiased model coincide.",
        lambda style: charts.strip(marks, style, rows="run"),
    )
    explanation = "How far the score moves when only the order of options changes."
    return Panel("orders", "Score under each order", explanation, (chart,) if marks else (), short="Orders")


def _subjects(compared: AuditComparison) -> Panel:
    by_run = {name: run.metrics.by_subject for name, run in compared.runs.items()}
    subjects = sorted({subject for found in by_run.values() for subject in found})
    if not subjects:
        return Panel("subjects", "", "")
    values: dict[tuple[str, ...], dict[str, Any]] = {
        (subject or "(none)",): {name: m[subject]["expected_accuracy"] for name, m in by_run.items() if subject in m}
        for subject in subjects
    }
    plot = Plot(
        partial(charts.dumbbells, axis="accuracy, mean over orders"),
        "One point for each run.",
        list(by_run),
        "Mean over orders, by subject",
        most=MOST_ROWS,
    )
    title, metric = "Mean accuracy over orders, by subject", METRICS["expected_accuracy"]
    plots = [plot] * (len(by_run) <= charts.MOST_SERIES)
    figure = compared.comparison.by_run("subjects", title, ["subject"], values, metric, plots, folded=True)
    return Panel("subjects", "Subjects", "Where the runs differ.", figures=[figure])
