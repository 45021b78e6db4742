"""Several audits compared with the first, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from unslant.arrays import jsonable
from unslant.auditing.browser import browser
from unslant.auditing.first_screen import score
from unslant.auditing.notes import caveats, notes
from unslant.auditing.pairing import MEASURES, named, paired
from unslant.auditing.panels import numbers_panel, score_panel
from unslant.auditing.panels_labels import labels_panel, one_order
from unslant.auditing.panels_orders import MOST_ORDERS, order_accuracies, order_name
from unslant.auditing.result import AuditResult
from unslant.experiment.comparison import Comparison, slope_chart
from unslant.experiment.provenance import settings_rows
from unslant.experiment.result import StudyResult
from unslant.metrics import METRICS, PairedDifference, Verdict, verdict
from unslant.reports import Chart, Page, Panel, Plot, Tile, charts
from unslant.reports.charts import MOST_ROWS, Mark
from unslant.reports.numbers import count, listed, number, unsettled

if TYPE_CHECKING:
    from unslant.reports import Describes

FEW = ("accuracy", "expected_accuracy")
"""Measures drawn where there are many runs."""
MOST_LINES = 3
"""Runs that get a line and a tile, the best of many."""
_SCORED = {"accuracy": "as published", "expected_accuracy": "averaged over orders", "robust_accuracy": "in every order"}


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
        sizes = {name: count(len(run.scores), "question") for name, run in self.runs.items()}
        same_size = len(set(sizes.values())) == 1
        about = (
            f"{listed(list(sizes))}: {next(iter(sizes.values()))}"
            if same_size
            else listed([f"{name} ({size})" for name, size in sizes.items()])
        )
        shown: list[tuple[str, str]] = []
        for key in rows:
            values = {name: found.get(key, "") for name, found in settings.items()}
            same = len(set(values.values())) == 1
            shown += [(key, next(iter(values.values())))] if same else [(f"{key}, {n}", v) for n, v in values.items()]
        return Page(
            about=about,
            headline=self._headline(),
            lines=self._lines(),
            caveats=tuple(f"{name}: {line}" for name, run in self.runs.items() for line in caveats(run)),
            tiles=Tile.row(
                *(
                    (self._key, self.runs[name].metrics.means[self._key], f"{METRICS[self._key].label}, {name}")
                    for name in self._ranked()[:MOST_LINES]
                ),
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
        """Which run scores highest, if that can be claimed."""
        ranked = self._ranked()
        if len(ranked) < 2:
            return f"{listed(list(self.runs))}: nothing could be compared"
        best, others = ranked[0], ranked[1:]
        compared = [(name, pair) for name in others if (pair := self._pair(best, name))]
        if not compared:
            return f"{listed(list(self.runs))} have no questions in common, so nothing could be compared"
        # the best of n was picked from n (n - 1) / 2 pairs
        pairs = len(ranked) * (len(ranked) - 1) // 2
        found = [(name, verdict(d.difference, looked_at=pairs, p=d.p_value)) for name, d in compared]
        if len(ranked) == 2:
            return self._of_two(best, *found[0])
        beaten = [name for name, one in found if one.differs]
        group = [name for name in ranked if name not in beaten]
        if len(group) == 1:
            name, nearest = min(found, key=lambda item: item[1].estimate.value)
            ahead = f"{score(nearest.estimate)} more than {name}"
            return f"{best} scores highest of {len(ranked)} runs, {ahead}, {self._how}"
        if beaten:
            rest = f"; it scores more than {count(len(beaten), 'other run')}, {self._how}"
            return f"{best} cannot be distinguished from {listed(group[1:], 2)}{rest}"
        return f"{best} cannot be distinguished from any of the {len(others)} other runs"

    def _of_two(self, best: str, other: str, found: Verdict) -> str:
        asked = count(found.estimate.n, "question")
        if found.differs:
            return f"{best} scores {score(found.estimate)} more than {other} on the same {asked}, {self._how}"
        return f"{best} and {other} cannot be distinguished {unsettled(found)}"

    def _lines(self) -> tuple[str, ...]:
        """The scores of the best runs, and what each falls back on."""
        lines = []
        for name in self._ranked()[:MOST_LINES]:
            means, preference = self.runs[name].metrics.means, self.runs[name].metrics.preference
            parts = [
                f"{number(means[key], 2)} {words}"
                for key, words in _SCORED.items()
                if means[key].defined and not (key != "accuracy" and one_order(self.runs[name]))
            ]
            prefers = f"; {preference.phrase}" if preference.unsure.defined else ""
            lines.append(f"{name}: {', '.join(parts)}{prefers}.")
        return tuple(lines)

    @property
    def _key(self) -> str:
        """The score that runs are ranked by: over orders, if all have it."""
        means = [run.metrics.means for run in self.runs.values()]
        return "expected_accuracy" if all(one["expected_accuracy"].defined for one in means) else "accuracy"

    @property
    def _how(self) -> str:
        return "averaged over option orders" if self._key == "expected_accuracy" else "as published"

    def _ranked(self) -> list[str]:
        """Runs with a score, best first."""
        found = {name: run.metrics.means[self._key] for name, run in self.runs.items()}
        return sorted((n for n, one in found.items() if one.defined), key=lambda name: -found[name].value)

    def _pair(self, one: str, other: str) -> PairedDifference | None:
        """The difference of two runs on the questions of both, wherever these can be paired."""
        pairs = paired((one, self.runs[one]), (other, self.runs[other])).differences
        return next((pair for pair in pairs if pair.measure == self._key), None)


def side_by_side(results: Sequence[Describes], files: Sequence[str] = ()) -> list[Describes]:
    """Replace several audits by one comparison in the place of the first; ``files`` names each result."""
    audits = [i for i, result in enumerate(results) if isinstance(result, AuditResult)]
    if len(audits) < 2:
        return list(results)
    found = cast(list[AuditResult], [results[i] for i in audits])
    compared = AuditComparison.of(found, [files[i] for i in audits] if files else ())
    return [compared if i == audits[0] else r for i, r in enumerate(results) if i == audits[0] or i not in audits]


def _ranks(comparison: Comparison) -> Panel:
    """Three runs or more: their ranks as published and over orders, and PBM against accuracy."""
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
        "Ranks as published and over orders",
        "Each run on all of its own questions. A leaderboard of the runs says which neighbours differ.",
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
        shown = sum(len(block.index) for block in run.whole.blocks)
        for block in run.whole.blocks:
            if block.same_orders and 1 < block.k <= MOST_ORDERS and len(block.index) >= shown / 2:
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
