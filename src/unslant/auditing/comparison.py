"""Several audits compared with the first, question by question; audits of logged answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from unslant.arrays import jsonable
from unslant.auditing.browser import browser
from unslant.auditing.notes import notes
from unslant.auditing.panels import caveats
from unslant.auditing.panels_labels import labels_panel
from unslant.auditing.panels_scores import MOST_ORDERS, numbers_panel, order_accuracies, order_name, score_panel
from unslant.auditing.result import MEASURES, AuditResult, named, paired
from unslant.experiment.comparison import ComparedResult, Comparison, check_whole, slope_chart
from unslant.experiment.page_parts import settings_rows
from unslant.experiment.result import Paired, StudyResult, listed_files, logs_in, tables_of
from unslant.metrics import METRICS, PairedDifference, verdict
from unslant.reports import Chart, Describes, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, number, unsettled, with_interval
from unslant.reports.style import MOST_ROWS, MOST_SERIES, Mark
from unslant.responses.importers.logged import placed

FEW = ("accuracy", "expected_accuracy")
"""Measures drawn where there are many runs."""
MOST_LINES = 3
"""Runs that get a line and a tile, the best of many."""
_SCORED = {"accuracy": "as published", "expected_accuracy": "averaged over orders", "robust_accuracy": "in every order"}


@dataclass(frozen=True)
class AuditComparison(ComparedResult):
    """Audits by name; the others are compared with the first."""

    study = "audit-comparison"
    unwritten = ("runs",)

    runs: Mapping[str, AuditResult]

    @classmethod
    def of(cls, results: Sequence[AuditResult], files: Sequence[str] = ()) -> AuditComparison:
        """Name audits by model, with the file name (or a number) added where models share a name."""
        check_whole(results)
        return cls(named(results, files))

    @property
    def named_parts(self) -> Sequence[tuple[str, AuditResult]]:
        return tuple(self.runs.items())

    @property
    def answered(self) -> StudyResult | None:
        rest = {name: run for name, run in self.runs.items() if not run.failure}
        return AuditComparison(rest) if len(rest) > 1 else next(iter(rest.values()), None)

    @cached_property
    def comparison(self) -> Comparison:
        """The numbers of every audit, and its differences from the first."""
        numbers = {name: run.metrics.means.cells() for name, run in self.runs.items()}
        return Comparison(numbers, MEASURES, self._paired)  # no lambda: it is kept, and the object may be pickled

    def _paired(self, name: str, other: str) -> Paired:
        return paired((name, self.runs[name]), (other, self.runs[other]))

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
        sizes = {name: count(len(run.scores), "question") for name, run in self.runs.items()}
        if len(set(sizes.values())) == 1:
            about = f"{listed(list(sizes))}: {sizes[self.comparison.base]}"
        else:
            about = listed([f"{name} ({size})" for name, size in sizes.items()])
        known = {name: caveats(run) for name, run in self.runs.items()}
        return Page(
            about=about,
            headline=self._headline(),
            lines=self._lines(),
            caveats=tuple(f"{name}: {line}" for name, lines in known.items() for line in lines),
            tiles=Tile.row(
                *(
                    (self._key, self.runs[name].metrics.means[self._key], f"{METRICS[self._key].label}, {name}")
                    for name in self._leading()
                )
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
                *(f"{name}: {note}" for name, run in self.runs.items() for note in notes(run, known[name])),
            ),
            settings=tuple(self._settings()),
            example=self.parts[0].run.example_prompt,
            questions=partial(browser, self.runs),
            name=", ".join(self.runs),
            compared=tuple(self.runs),
        )

    def _settings(self) -> Iterator[tuple[str, str]]:
        """Settings that all runs share once, the others for each run."""
        by_run = {name: dict(settings_rows(run.run)) for name, run in self.runs.items()}
        for key in dict.fromkeys(key for settings in by_run.values() for key in settings):
            values = {name: settings.get(key, "") for name, settings in by_run.items()}
            if len(set(values.values())) == 1:
                yield key, values[self.comparison.base]
            else:
                yield from ((f"{key}, {name}", value) for name, value in values.items())

    def _headline(self) -> str:
        """Which run scores highest, if that can be claimed."""
        ranked = self._ranked()
        if len(ranked) < 2:
            return f"{listed(list(self.runs))}: nothing could be compared"
        if not self._ahead_of:
            none = f"{listed(list(self.runs))} have no questions in common, so nothing could be compared"
            return f"{none}; if they are parts of one run, join the files"
        best = self._leading()[0]
        pairs = {name: pair for name in ranked if name != best and (pair := self._pair(best, name))}
        apart = [name for name in ranked if name not in (best, *pairs)]
        rest = f"; {listed(apart, 2)} answered other questions" if apart else ""
        if unranked := [name for name in self.runs if name not in ranked]:
            rest += f"; {listed(unranked, 2)} {'has' if len(unranked) == 1 else 'have'} no score {self._how}"
        return self._claim([best, *pairs], [*pairs.values()]) + rest

    @cached_property
    def _ahead_of(self) -> Mapping[str, int]:
        """Run -> how many others it is ahead of on the questions of both; without runs that share none.

        Runs may have answered other questions, easier ones for example: their own scores do not show who is best.
        """
        ahead = Counter[str]()
        for one, other in combinations(self._ranked(), 2):
            if pair := self._pair(one, other):
                ahead[one] += pair.difference.value > 0
                ahead[other] += pair.difference.value < 0
        return ahead

    def _claim(self, ranked: Sequence[str], pairs: Sequence[PairedDifference]) -> str:
        """What can be said of the best run, compared in ``pairs`` with each of the others."""
        best, others = ranked[0], ranked[1:]
        # the best of n was picked from n (n - 1) / 2 pairs
        n_pairs = len(ranked) * len(others) // 2
        differences = [verdict(pair.difference, looked_at=n_pairs, p=pair.p_value) for pair in pairs]
        tests = [*zip(others, differences, strict=True)]
        if len(ranked) == 2:
            other, test = tests[0]
            more = f"{with_interval(test.estimate, 2)} more than {other}"
            if test.kind == "above":
                return f"{best} scores {more} on the same {count(test.estimate.n, 'question')}, {self._how}"
            return f"{best} and {other} cannot be distinguished {unsettled(test)}"
        if better := [name for name, test in tests if test.kind == "below"]:
            return f"No run scores highest: {best} is ahead of most, and behind {listed(better, 2)}, {self._how}"
        beaten = [name for name, test in tests if test.kind == "above"]
        group = [name for name in ranked if name not in beaten]
        if len(group) == 1:
            name, nearest = min(tests, key=lambda item: item[1].estimate.value)
            ahead = f"{with_interval(nearest.joint, 2)} more than {name}"
            return f"{best} scores highest of {len(ranked)} runs, {ahead}, {self._how}"
        if beaten:
            rest = f"; it scores more than {count(len(beaten), 'other run')}, {self._how}"
            return f"{best} cannot be distinguished from {listed(group[1:], 2)}{rest}"
        return f"{best} cannot be distinguished from any of the {len(others)} other runs"

    def _lines(self) -> tuple[str, ...]:
        """The scores of the best runs, and what each falls back on."""
        lines = []
        for name in self._leading():
            means, preference = self.runs[name].metrics.means, self.runs[name].metrics.preference
            parts = [
                f"{number(means[key], 2)} {words}"
                for key, words in _SCORED.items()
                if means[key].defined and not (key != "accuracy" and self.runs[name].one_order)
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
        scores = self.comparison.scores(self._key)
        return [name for name in self.comparison.best_first(self._key) if scores[name].defined]

    def _leading(self) -> list[str]:
        """The runs that get a line: the one ahead of most others, which the headline names, and the next best."""
        ranked = self._ranked()
        best = [max(ranked, key=lambda name: self._ahead_of.get(name, -1))] if ranked else []
        return [*best, *(name for name in ranked if name not in best)][:MOST_LINES]

    def _pair(self, one: str, other: str) -> PairedDifference | None:
        """The difference of two runs on the questions of both, wherever these can be paired."""
        return next(iter(paired((one, self.runs[one]), (other, self.runs[other]), [self._key]).differences), None)


def side_by_side(results: Sequence[Describes], files: Sequence[str] = ()) -> list[Describes]:
    """Replace several audits by one comparison in the place of the first; ``files`` names each result."""
    audits = [i for i, result in enumerate(results) if isinstance(result, AuditResult)]
    if len(audits) < 2:
        return list(results)
    comparison = AuditComparison.of(
        cast(list[AuditResult], [results[i] for i in audits]), [files[i] for i in audits] if files else ()
    )
    return [comparison if i == audits[0] else r for i, r in enumerate(results) if i == audits[0] or i not in audits]


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


def _differences(comparison: AuditComparison) -> Panel:
    base, differences = comparison.comparison.base, comparison.differences
    many = len(comparison.runs) > MOST_SERIES  # runs are rows
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
    paired_runs = {name for name, _ in differences}
    unmatched = [name for name in list(comparison.runs)[1:] if name not in paired_runs]
    return comparison.comparison.difference_figure("differences", f"Differences from {base}", [plot]).panel(
        "Paired differences",
        "Paired by question, which is more sensitive than comparing two scores and their separate intervals.",
        notes=(f"No question in common with {base}: {listed(unmatched)}.",) if unmatched else (),
        short="Differences",
    )


def _orders(runs: Mapping[str, AuditResult]) -> Panel:
    marks = []
    for name, run in runs.items():
        block = max(run.whole.blocks, key=lambda block: len(block.index), default=None)
        if block and block.same_orders and 1 < block.k <= MOST_ORDERS:
            scores = order_accuracies(block, run.bootstrap)
            marks += [Mark(name, score, series=order_name(order)) for order, score in scores]
    chart = Chart(
        "orders",
        "Accuracy under each order",
        "One mark per order, for the most common number of options (or the least of several equally common ones). The "
        "marks of an unbiased model coincide.",
        lambda style: charts.strip(marks, style, rows="run"),
    )
    explanation = "How far the score moves when only the order of options changes."
    return Panel("orders", "Score under each order", explanation, (chart,) if marks else (), short="Orders")


def _subjects(comparison: AuditComparison) -> Panel:
    by_run = {name: run.metrics.by_subject for name, run in comparison.runs.items()}
    subjects = sorted({subject for of_run in by_run.values() for subject in of_run})
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
    plots = [plot] * (len(by_run) <= MOST_SERIES)
    figure = comparison.comparison.by_run("subjects", title, ["subject"], values, metric, plots, folded=True)
    return Panel("subjects", "Subjects", "Where the runs differ.", figures=[figure])


def audit_logs(
    logs: Any, fields: Mapping[str, str] | None = None, skip_bad: bool = False
) -> AuditResult | AuditComparison:
    """Audit logged answers, without a model and without PyTorch.

    Args:
        logs: files of any format of :mod:`unslant.responses.importers`, or tables in memory; a model's are joined.
        fields: field -> column or key, for tables of your own.
        skip_bad: leave out rows of such tables whose question cannot be read; a caveat counts them.

    Returns:
        One audit, or the comparison of several models' (or of several tables that unslant wrote).

    Raises:
        InputError: naming a file that cannot be read or is another study's.
    """
    logs = logs_in(logs)
    results = recorded_audits(logs, fields, skip_bad)
    if len(results) == 1:
        return results[0]
    named = len(logs) == len(results) and all(isinstance(one, str | Path) for one in logs)
    names = [Path(one).stem for one in logs] if named else [result.name for result in results]
    return AuditComparison.of(results, files=names)


def recorded_audits(logs: Any, fields: Mapping[str, str] | None = None, skip_bad: bool = False) -> list[AuditResult]:
    """One audit a model (or a table that unslant wrote); see :func:`audit_logs`."""
    tables = tables_of("audit", logs, fields, skip_bad)
    with placed(listed_files(logs)):
        return [AuditResult.of(table) for table in tables]
