"""Several models under the same instructions: what every setting does over models, and who is robust (P3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.experiment.provenance import settings_rows, worst_first
from unslant.experiment.ranking import unmatched
from unslant.experiment.result import StudyResult, write_each
from unslant.metrics import METRICS, Estimate
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, listed, number, with_interval
from unslant.studies.instruction_boundary.instruction_settings import BASELINE
from unslant.studies.instruction_boundary.metrics import (
    FORMS,
    AcrossModels,
    Agreement,
    across_models,
    leaderboard_agreement,
)
from unslant.studies.instruction_boundary.panels import KINDS, most_missing
from unslant.studies.instruction_boundary.result import BoundaryStudy

LEAST_MODELS = 3
"""Models that a rank correlation needs."""


@dataclass(frozen=True)
class BoundaryComparison(StudyResult):
    """Several models on the same questions under the same settings, the most robust first.

    Attributes:
        across: kind of question -> effect of every setting over models (P3, table 10).
        ranking: the other ranking, model -> score; empty without one.
        agreement: of the robustness score under vanilla with it (P3, figure 6); None with fewer than three models.
    """

    study = "instruction-boundary-comparison"
    unwritten = ("results",)

    results: tuple[BoundaryStudy, ...]
    across: Mapping[str, tuple[AcrossModels, ...]]
    ranking: Mapping[str, float]
    agreement: Agreement | None

    @property
    def parts(self) -> Sequence[BoundaryStudy]:
        return self.results

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        return super().to_dict() | {"models": {result.model: result.to_dict() for result in self.results}}

    def to_parquet(self, path: str | Path) -> None:
        """Write one table of responses for each model, as ``NAME-MODEL``."""
        write_each(self.results, path)

    def described(self) -> Page:
        """Robustness, effects over models, forms of answers, and the agreement with another ranking."""
        names = [result.model for result in self.results]
        first = self.results[0].run
        words, more = worst_first([part for one in self.results for part in most_missing(one.metrics, one.model)])
        scores = [(name, robustness(one)) for name, one in zip(names, self.results, strict=True)]
        ends = [score for score in scores if score[1].defined]
        settings = len({row.setting for one in self.results for row in one.metrics.settings})
        return Page(
            about=f"{listed(names)} under {count(settings, 'setting')}",
            headline=self._headline() + words,
            lead=more,
            tiles=Tile.row(
                *(("robustness", score, f"RS, {name}") for name, score in dict(ends[:1] + ends[-1:]).items())
            ),
            panels=(
                _robustness(self),
                *(_across(kind, rows, len(names)) for kind, rows in self.across.items()),
                _accuracy(self.results),
                *(_forms(kind, self.results) for kind in FORMS),
                _ranking(self),
            ),
            notes=tuple(f"{result.model}: {note}" for result in self.results for note in result.notes),
            settings=settings_rows(replace(first, model=", ".join(names))),
            name=", ".join(names),
            compared=tuple(names),
        )

    def _headline(self) -> str:
        parts = []
        scores = {result.model: robustness(result) for result in self.results}
        if any(score.defined for score in scores.values()):
            best = max(scores, key=lambda name: scores[name].value if scores[name].defined else -1.0)
            score = with_interval(scores[best], METRICS["robustness"])
            parts.append(f"{best} is most robust with a complete instruction: {score}")
        sure = [
            (
                row.difference.value,
                f"{row.setting} ({KINDS[kind]}, {number(row.difference, METRICS['changes.difference'])})",
            )
            for kind, rows in self.across.items()
            for row in rows
            if row.p_corrected < 0.05
        ]
        if sure:
            parts.append(f"over models these settings change accuracy: {listed([words for _, words in sorted(sure)])}")
        elif any(row.p_value == row.p_value for rows in self.across.values() for row in rows):
            parts.append("no setting changes accuracy consistently over models")
        return "; ".join(parts) or f"{count(len(self.results), 'model')} side by side"


def robustness(result: BoundaryStudy) -> Estimate:
    """RS of a model under vanilla."""
    return result.metrics.robustness.get(BASELINE, Estimate.undefined("vanilla was not asked"))


_ASKED = ("settings", "labels", "seed", "temperatures")
"""Settings that decide what is asked; models with other ones cannot be compared."""


def compare_boundaries(
    results: Sequence[BoundaryStudy], ranking: Mapping[str, float] | None = None
) -> BoundaryComparison:
    """Set results side by side.

    Args:
        ranking: model -> score elsewhere (a leaderboard).

    Raises:
        InputError: if two results are of one model, or they are of different questions or settings.
    """
    names = [result.model for result in results]
    if len(set(names)) < len(names):
        raise InputError(f"two of the results are of one model: {', '.join(names)}")
    first = results[0].run
    for other in results[1:]:
        differ = [key for key in _ASKED if other.run.settings.get(key) != first.settings.get(key)]
        differ += ["questions"] * (other.run.questions_digest != first.questions_digest)
        if differ:
            raise InputError(f"{results[0].model} and {other.model} cannot be compared: their {differ[0]} differ")
    across = {
        kind: across_models(
            {
                result.model: {row.setting: row.accuracy.value for row in result.metrics.settings if row.kind == kind}
                for result in results
            }
        )
        for kind in FORMS
    }
    scores = {result.model: robustness(result).value for result in results}
    ranked = sorted(results, key=lambda result: -score if (score := scores[result.model]) == score else 1.0)
    known = {name: score for name, score in scores.items() if score == score and name in (ranking or {})}
    agreed = leaderboard_agreement(known, ranking or {}) if len(known) >= LEAST_MODELS else None
    kept = {kind: tuple(rows) for kind, rows in across.items() if rows}
    return BoundaryComparison(tuple(ranked), kept, dict(ranking or {}), agreed)


def _robustness(found: BoundaryComparison) -> Panel:
    results = found.results
    settings = list(dict.fromkeys(name for result in results for name in result.metrics.robustness))
    marks = [Mark(result.model, robustness(result)) for result in results if robustness(result).defined]
    rows: list[tuple[Cell, ...]] = [
        (name, *(result.metrics.robustness.get(name) for result in results)) for name in settings
    ]
    columns = (Column("setting"), *(Column(result.model, METRICS["robustness"]) for result in results))
    return Panel(
        "boundary-robustness",
        "Which models are robust?",
        "RS, averaged over kinds of question; under vanilla the instruction names every form of answer.",
        charts=(
            Chart(
                "boundary-robustness",
                "Robustness with a complete instruction",
                "RS under vanilla, the most robust model first (P3, figure 6).",
                lambda style: charts.intervals(marks, style, rows="model", axis="robustness score"),
            ),
        ) if marks else (),
        tables=(Table("boundary-robustness", "Robustness by setting and model", columns, tuple(rows)),),
        short="Robustness",
        first_screen=True,
    )  # fmt: skip


def _across(kind: str, rows: Sequence[AcrossModels], models: int) -> Panel:
    columns = (
        Column("setting"),
        Column("accuracy, mean over models", METRICS["settings.accuracy"]),
        Column.of("changes.difference"),
        Column("t", 2, "one-sample t test of the differences"),
        Column("p", METRICS["changes.p_value"], "two-sided t test over models"),
        Column("p, corrected", METRICS["changes.p_value"], "for the number of settings (Holm 1979)"),
    )
    body = tuple((row.setting, row.accuracy, row.difference, row.t, row.p_value, row.p_corrected) for row in rows)
    marks = [Mark(row.setting, row.difference) for row in rows if row.difference.defined]
    id = f"boundary-across-{kind}"
    return Panel(
        id,
        f"What do the settings do over models, {KINDS[kind]}?",
        f"Each of {count(models, 'model')} is one observation (P3, table 10); with few, only large effects show.",
        charts=(
            Chart(
                id,
                f"Accuracy against vanilla, {KINDS[kind]}",
                "Mean over models, with Student's t interval; one that excludes the dashed line shows an effect (P3, "
                "table 10).",
                lambda style: charts.intervals(
                    marks, style, rows="setting", axis="accuracy less that under vanilla",
                    how=METRICS["changes.difference"]
                ),
                of="models",
            ),
        ) if marks else (),
        tables=(Table(id, f"Settings against vanilla over models, {KINDS[kind]}", columns, body),),
        short=f"Effects, {kind}",
        first_screen=True,
    )  # fmt: skip


def _accuracy(results: Sequence[BoundaryStudy]) -> Panel:
    found: dict[tuple[str, str], dict[str, Estimate]] = {}
    for result in results:
        for row in result.metrics.settings:
            found.setdefault((row.setting, row.kind), {})[result.model] = row.accuracy
    marks = [
        Mark(f"{setting}, {KINDS[kind]}", value, series=name)
        for (setting, kind), values in found.items()
        for name, value in values.items()
    ]
    columns = (Column("setting"), Column("kind"), *(Column(one.model, METRICS["settings.accuracy"]) for one in results))
    rows = tuple(
        (setting, KINDS[kind], *(values.get(one.model) for one in results)) for (setting, kind), values in found.items()
    )
    return Panel(
        "boundary-accuracy",
        "Accuracy of every model",
        "Share of questions answered right under each setting.",
        charts=(
            Chart(
                "boundary-accuracy",
                "Accuracy by setting and model",
                "One point for each model.",
                lambda style: charts.intervals(marks, style, rows="setting"),
            ),
        ),
        tables=(Table("boundary-accuracy", "Accuracy by setting and model", columns, rows, folded=True, names=2),),
        short="Accuracy",
    )


def _forms(kind: str, results: Sequence[BoundaryStudy]) -> Panel:
    """How often each model gives each form of answer under vanilla, beside how often it is right (P3, figure 4)."""
    rows = [
        (result.model, row)
        for result in results
        for row in result.metrics.settings
        if (row.setting, row.kind) == (BASELINE, kind)
    ]
    id = f"boundary-forms-{kind}"
    if not rows:
        return Panel(id, "", "")
    marks = [
        Mark(name, share, form, expected=row.truth[form]) for name, row in rows for form, share in row.outputs.items()
    ]
    halves = [
        Mark(name, value, series)
        for name, row in rows
        for value, series in ((row.stability, "SR, usual form"), (row.generalization, "GR, unusual form"))
    ]
    keys = ("stability", "generalization", "outputs_sparse", "unreadable")
    columns = (Column("model"), *map(Column.of, keys), *(Column(form, METRICS["outputs"]) for form in FORMS[kind]))
    body = tuple((name, *(getattr(row, key) for key in keys), *row.outputs.values()) for name, row in rows)
    return Panel(
        id,
        f"Forms of answers with a complete instruction, {KINDS[kind]}",
        "An unbiased model gives each form as often as it is right, and is as often right in each.",
        charts=(
            Chart(f"{id}-rates", f"Output rate by model, {KINDS[kind]}",
                  "Share of each form among all replies that came; ticks: of an unbiased model (P3, figure 4).",
                  lambda style: charts.intervals(marks, style, rows="model", axis="share of replies",
                                                 expected="share of questions it is right for")),
            Chart(f"{id}-halves", f"SR and GR by model, {KINDS[kind]}", "Accuracy on both halves of the questions.",
                  lambda style: charts.dumbbells(halves, style, rows="model")),
        ),
        tables=(Table(id, f"Forms of answers, {KINDS[kind]}", columns, body, folded=True),),
        short=f"Forms, {kind}",
    )  # fmt: skip


def _ranking(found: BoundaryComparison) -> Panel:
    if not found.ranking:
        return Panel("boundary-ranking", "", "")
    robustness_of = {one.model: robustness(one) for one in found.results}
    points = [
        Mark(one.model, Estimate.bare(found.ranking[one.model], 1, "from the ranking"), at=robustness(one))
        for one in found.results
        if one.model in found.ranking
    ]
    notes = unmatched([one.model for one in found.results], found.ranking)
    tables: list[Table] = []
    if points:
        columns = (Column("model"), Column.of("robustness"), Column("the other ranking"))
        tables.append(
            Table(
                "boundary-ranking",
                "Scores",
                columns,
                tuple((one.name, robustness_of[one.name], one.estimate.value) for one in points),
            )
        )
    if agreed := found.agreement:
        p = METRICS["kendall_p"]
        heads = (Column("score"), Column("Kendall", 2), Column("p", p), Column("Spearman", 2), Column("Spearman p", p))
        row = ("RS under vanilla", agreed.kendall, agreed.kendall_p, agreed.spearman, agreed.spearman_p)
        tables.append(Table("boundary-agreement", "Agreement", heads, (row,)))
    else:
        notes.append(f"No correlation: the two rankings share fewer than {LEAST_MODELS} models.")
    return Panel(
        "boundary-ranking",
        "Does the other ranking agree?",
        "Rank correlation of the robustness score with the scores of the other ranking (P3, figure 6).",
        charts=(
            Chart("boundary-ranking", "Robustness and the other ranking", "One point for each model (P3, figure 6).",
                  lambda style: charts.scatter(points, style, across="robustness score", axis="the other ranking",
                                               fit=True), "model"),
        ) if len(points) > 1 else (),
        tables=tuple(tables),
        notes=tuple(notes),
        short="Other ranking",
        first_screen=True,
    )  # fmt: skip
