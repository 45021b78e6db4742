"""Several models under the same instructions: what every setting does over models, and who is robust (P3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from unslant.arrays import Jsonable
from unslant.experiment.comparison import ComparedModels, Comparison, agreements, lead
from unslant.experiment.page_parts import spent
from unslant.metrics import METRICS, Estimate, Numbers, verdicts
from unslant.metrics.association import MIN_PAIRS
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.sampling import holm
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, number, unsettled, with_interval
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, FORMS
from unslant.studies.instruction_boundary.metrics import SAME, robustness_difference
from unslant.studies.instruction_boundary.panels import KINDS, form_plots, most_missing
from unslant.studies.instruction_boundary.result import BoundaryStudy


@dataclass(frozen=True)
class AcrossModels(Jsonable):
    """Effect of a setting with models as observations (P3, appendix G).

    Attributes:
        accuracy: mean accuracy over the models asked under this setting and under vanilla.
        difference: mean accuracy difference from vanilla, with Student's t interval; N counts models.
        t, p_value: two-sided one-sample t test; ``nan`` with fewer than two models, or the same difference in all.
        p_corrected: the same for the number of settings tested (Holm 1979); the paper does not correct.
    """

    setting: str
    accuracy: float
    difference: Estimate
    t: float
    p_value: float
    p_corrected: float


def across_models(accuracies: Mapping[str, Mapping[str, float]]) -> list[AcrossModels]:
    """Test every setting against vanilla over models.

    Args:
        accuracies: model -> setting -> accuracy in [0, 1], nan where no reply came; models without vanilla or the
            setting are ignored.
    """
    from scipy.stats import ttest_1samp

    names = list(dict.fromkeys(name for by_setting in accuracies.values() for name in by_setting if name != BASELINE))
    results = []
    for name in names:
        both = [(a[name], a[BASELINE]) for a in accuracies.values() if name in a and BASELINE in a]
        both = [pair for pair in both if not any(map(math.isnan, pair))]
        differences = [here - there for here, there in both]
        if not differences:
            continue
        accuracy = float(np.mean([here for here, _ in both]))
        mean, n, method = float(np.mean(differences)), len(differences), "Student's t over models"
        if n < 2 or np.ptp(differences) < 1e-9:  # a few questions give the same difference by chance: no proof
            note = "one model: no test" if n < 2 else "the same in every model: no test"
            estimate, t, p = Estimate.bare(mean, n, note), math.nan, math.nan
        else:
            test = ttest_1samp(differences, 0.0)
            low, high = test.confidence_interval(CONFIDENCE)
            estimate = Estimate(mean, float(low), float(high), n, method)
            t, p = float(test.statistic), float(test.pvalue)
        results.append(AcrossModels(name, accuracy, estimate, t, p, math.nan))
    corrected = holm([one.p_value for one in results])
    return [replace(one, p_corrected=p) for one, p in zip(results, corrected, strict=True)]


@dataclass(frozen=True)
class BoundaryComparison(ComparedModels[BoundaryStudy]):
    """Several models on the same questions under the same settings, the most robust first."""

    study = "instruction-boundary-comparison"
    ranked_by = "robustness"
    asked = ("settings", "labels", "seed", "temperatures", "left_out")
    written = ("across", "agreement")

    @cached_property
    def comparison(self) -> Comparison:
        """The robustness of every model under vanilla."""
        nothing = Estimate.undefined("vanilla was not asked")
        runs = {one.model: {"robustness": one.metrics.robustness.get(BASELINE, nothing)} for one in self.results}
        return Comparison(runs, ["robustness"], ranking=self.ranking)

    @cached_property
    def across(self) -> Mapping[str, Sequence[AcrossModels]]:
        """Kind of question -> effect of every setting over models (P3, table 10)."""
        effects: dict[str, list[AcrossModels]] = {}
        for kind in FORMS:
            rows = {one.model: [row for row in one.metrics.settings if row.kind == kind] for one in self.results}
            scores = {name: {row.setting: row["accuracy"].value for row in group} for name, group in rows.items()}
            if across := across_models(scores):
                effects[kind] = across
        return effects

    @property
    def agreement(self) -> Numbers | None:
        """Of the robustness score with the other ranking (P3, figure 6); None with fewer than three models in both."""
        numbers = self.comparison.agreement("robustness", ("kendall", "spearman"))
        return numbers if numbers and numbers["kendall"].n >= MIN_PAIRS else None

    def described(self) -> Page:
        """Robustness, effects over models, forms of answers, and the agreement with another ranking."""
        unread = sorted((part for one in self.results for part in most_missing(one.metrics, one.model)), reverse=True)
        ends = [(name, score) for name, score in self.comparison.scores("robustness").items() if score.defined]
        settings = len({row.setting for one in self.results for row in one.metrics.settings})
        page = Page(
            about=f"{listed(list(self.models))} under {count(settings, 'setting')}",
            headline=self._headline(),
            lines=(
                self._effects(),
                *(f"{words}." for _, words in unread[:1]),
                spent(*(one.run for one in self.results)),
            ),
            tiles=Tile.row(
                *(("robustness", score, f"robustness, {name}") for name, score in dict(ends[:1] + ends[-1:]).items())
            ),
            panels=(
                self._robust(),
                *(_across(kind, rows, len(self.results)) for kind, rows in self.across.items()),
                self._accuracy(),
                *(self._forms(kind) for kind in FORMS),
                self._ranking(),
            ),
            notes=tuple(f"{result.model}: {note}" for result in self.results for note in result.notes),
        )
        return self.with_models(page)

    def _headline(self) -> str:
        scores = self.comparison.scores("robustness")
        names = [name for name in self.comparison.best_first("robustness") if scores[name].defined]
        if not names:
            return f"The robustness of {listed(list(self.models))} cannot be compared: vanilla was not asked"
        score = with_interval(scores[names[0]], 2)
        if len(names) == 1:
            return f"{names[0]} has a robustness of {score} to instructions"
        tables = {one.model: one.responses for one in self.results}
        ahead = lead(names, lambda one, other: robustness_difference(tables[one], tables[other]))
        if ahead.kind == "above":
            return f"{names[0]} is the most robust to instructions of {count(len(names), 'model')}: {score}"
        return f"Which of {listed(names)} is most robust to instructions cannot be determined {unsettled(ahead)}"

    def _effects(self) -> str:
        """Settings that change accuracy over models, or what is missing to say so."""
        rows = [(kind, row) for kind, rows in self.across.items() for row in rows if row.difference.defined]
        outcomes = verdicts([row.difference for _, row in rows], bound=SAME, p=[row.p_value for _, row in rows])
        how = METRICS["changes.difference"]
        effects = sorted(
            (one.estimate.value, f"{row.setting} ({KINDS[kind]}, {number(row.difference, how)})")
            for (kind, row), one in zip(rows, outcomes, strict=True)
            if one.differs
        )
        if effects:
            return f"Over models these settings change accuracy: {listed([words for _, words in effects])}."
        if not outcomes:
            return ""
        if all(one.kind == "equal" for one in outcomes):
            return f"Over models no setting changes accuracy by more than {SAME}."
        widest = max(outcomes, key=lambda one: abs(one.estimate.value))
        return f"Whether settings change accuracy over models cannot be determined {unsettled(widest, 'model')}."

    def _robust(self) -> Panel:
        id, settings = "boundary-robustness", dict.fromkeys(s for one in self.results for s in one.metrics.robustness)
        plot = Plot(
            partial(charts.intervals, axis="robustness score"),
            "RS under vanilla, the most robust model first (instruction-boundary paper, figure 6).",
            list(self.models),
            title="Robustness with a complete instruction",
            name=["setting"],
            where=lambda row: bool(row["setting"] == BASELINE),
            across=True,
            rows="model",
        )
        rows: dict[tuple[str, ...], dict[str, Estimate | None]]
        rows = {(s,): {one.model: one.metrics.robustness.get(s) for one in self.results} for s in settings}
        title, how = "Robustness by setting and model", METRICS["robustness"]
        return self.comparison.by_run(id, title, ["setting"], rows, how, [plot]).panel(
            "Which models are robust?",
            "RS, averaged over kinds of question; under vanilla the instruction names every form of answer.",
            short="Robustness",
        )

    def _accuracy(self) -> Panel:
        id, title = "boundary-accuracy", "Accuracy by setting and model"
        rows: dict[tuple[str, ...], dict[str, Estimate]] = {}
        for result in self.results:
            for row in result.metrics.settings:
                rows.setdefault((row.setting, KINDS[row.kind]), {})[result.model] = row["accuracy"]
        plots = [Plot(charts.intervals, "One point for each model.", list(self.models))]
        names, how = ["setting", "kind"], METRICS["settings.accuracy"]
        return self.comparison.by_run(id, title, names, rows, how, plots, folded=True).panel(
            "Accuracy of every model", "Share of questions answered right under each setting.", short="Accuracy"
        )

    def _forms(self, kind: str) -> Panel:
        """How often each model gives each form of answer under vanilla, and how often it is right (P3, figure 4)."""
        id = f"boundary-forms-{kind}"
        rows = [
            {"model": result.model, **row.cells()}
            for result in self.results
            for row in result.metrics.settings
            if (row.setting, row.kind) == (BASELINE, kind)
        ]
        columns: list[str | Column] = ["stability", "generalization", "outputs_sparse", "unreadable"]
        columns += [Column(form, METRICS["outputs"]) for form in FORMS[kind]]
        plots = form_plots(id, kind, "model", "by model", "instruction-boundary paper, figure 4")
        return Figure(id, f"Forms of answers, {KINDS[kind]}", ["model"], columns, rows, plots, folded=True).panel(
            f"Forms of answers with a complete instruction, {KINDS[kind]}",
            "An unbiased model gives each form as often as it is right, and is as often right in each.",
            short=f"Forms, {kind}",
        )

    def _ranking(self) -> Panel:
        id, notes = "boundary-ranking", [*self.comparison.unranked]
        rows = [
            {"model": name, "robustness": score, "ranking": self.ranking[name],
             "place": Estimate.bare(self.ranking[name], 1, "from the ranking")}
            for name, score in self.comparison.scores("robustness").items()
            if name in self.ranking
        ]  # fmt: skip
        plot = Plot(
            partial(charts.scatter, across="robustness score", axis="the other ranking", fit=True),
            "One point for each model (instruction-boundary paper, figure 6).",
            ["place"],
            title="Robustness and the other ranking",
            at="robustness",
            of="model",
        )
        columns = [Column.of("robustness"), Column("the other ranking", key="ranking")]
        figures = [Figure(id, "Scores", ["model"], columns, rows, [plot] * (len(rows) > 1))]
        if self.agreement:
            figures.append(
                agreements("boundary-agreement", "Agreement", {("RS under vanilla",): self.agreement}, "score")
            )
        elif self.ranking:
            notes.append(f"No correlation: the two rankings share fewer than {MIN_PAIRS} models.")
        return Panel(
            id,
            "Does the other ranking agree?",
            "Rank correlation of the robustness score with the other ranking (instruction-boundary paper, figure 6).",
            figures=figures,
            notes=tuple(notes),
            short="Other ranking",
        )


def _across(kind: str, rows: Sequence[AcrossModels], models: int) -> Panel:
    columns = [
        Column("accuracy, mean over models", METRICS["settings.accuracy"], key="accuracy"),
        Column.of("changes.difference"),
        Column("t", 2, "one-sample t test of the differences"),
        Column("p", METRICS["changes.p_value"], "two-sided t test over models", "p_value"),
        Column("p, corrected", METRICS["changes.p_value"], "for the number of settings (Holm 1979)", "p_corrected"),
    ]
    plot = Plot(
        partial(charts.intervals, axis="accuracy minus vanilla accuracy"),
        "Mean over models, with Student's t interval; one that excludes the dashed line shows an effect "
        "(instruction-boundary paper, table 10).",
        ["changes.difference"],
        title=f"Accuracy against vanilla, {KINDS[kind]}",
        of="models",
    )
    id, title = f"boundary-across-{kind}", f"Settings against vanilla over models, {KINDS[kind]}"
    return Figure(id, title, ["setting"], columns, [vars(row) for row in rows], [plot]).panel(
        f"What do the settings do over models, {KINDS[kind]}?",
        f"Each of {count(models, 'model')} is one observation (instruction-boundary paper, table 10); with few, only "
        "large effects show.",
        short=f"Effects, {kind}",
    )
