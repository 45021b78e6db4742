"""Several models under the unbiased evaluator, side by side, and their agreement with another ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.experiment.provenance import settings_rows
from unslant.experiment.ranking import unmatched
from unslant.experiment.result import StudyResult, write_each
from unslant.metrics import METRICS, Numbers, agreement
from unslant.presentations.interventions import NAMES
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, with_interval
from unslant.studies.unbiased.panels import PARTS, associations, confusion_charts, notes, unread, unreadable
from unslant.studies.unbiased.result import UnbiasedResult, check_comparable


@dataclass(frozen=True)
class UnbiasedComparison(StudyResult):
    """Results of several models on the same questions, the best under interventions first.

    Attributes:
        vanilla_agreement, ours_agreement: of the two scores with another ranking, over the models in both (P4,
            table 4); None without one.
        ranking: the other ranking, model -> score; empty without one.
    """

    study = "unbiased-compare"
    unwritten = ("results",)

    results: tuple[UnbiasedResult, ...]
    vanilla_agreement: Numbers | None
    ours_agreement: Numbers | None
    ranking: Mapping[str, float] = field(default_factory=dict)

    def to_parquet(self, path: str | Path) -> None:
        """Write one table of responses for each model, as ``NAME-MODEL``."""
        write_each(self.results, path)

    @property
    def parts(self) -> Sequence[UnbiasedResult]:
        return self.results

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        return super().to_dict() | {"models": {result.model: result.to_dict() for result in self.results}}

    def described(self) -> Page:
        """Models side by side, and the agreement of both scores with another ranking."""
        first, *others = self.results
        names = ", ".join(result.model for result in self.results)
        chance = f", chance {number(first.metrics.ours_chance)}" * first.metrics.ours_chance.defined
        said = (
            f"{first.model} is best under interventions: {with_interval(first.metrics.ours, METRICS['ours'])}{chance}"
        )
        worst = max(self.results, key=lambda result: result.metrics.drop.value)
        if others:
            said += f"; {worst.model} loses most ({number(worst.metrics.drop.value, METRICS['drop'].digits)})"
        keys = ("vanilla", "ours", "run_std", "drop")
        more, cells = unreadable(self.results)
        columns = (Column("model"), Column("weights"), *map(Column.of, keys), *more)
        rows: list[tuple[Cell, ...]] = [
            (result.model, result.run.parameters, *(getattr(result.metrics, key) for key in keys), *cell)
            for result, cell in zip(self.results, cells, strict=True)
        ]
        agreed = associations(
            "unbiased-agreement",
            "Agreement",
            {("as published",): self.vanilla_agreement, ("under interventions",): self.ours_agreement},
            "score",
        )
        words, more_unread = unread(*self.results)
        return Page(
            about=f"{count(len(self.results), 'model')} on {first.run.question_set}",
            headline=said + words,
            lead=more_unread,
            tiles=Tile.row(
                ("ours", first.metrics.ours, f"under interventions, {first.model}"),
                ("ours_chance", first.metrics.ours_chance, "chance"),
                *((("drop", worst.metrics.drop, f"largest drop, {worst.model}"),) if others else ()),
            ),
            panels=(
                Panel(
                    "unbiased-models",
                    "Which models keep their score?",
                    "Accuracy as published and under interventions, the best under interventions first.",
                    charts=_scores(self.results),
                    tables=(Table("unbiased-models", "Models", columns, tuple(rows)),),
                    short="Score",
                    first_screen=True,
                ),
                Panel(
                    "unbiased-agreement",
                    "Which score agrees with the other ranking?",
                    "Correlation of the models' scores with an external one (P4, table 4).",
                    tables=(agreed,) if agreed.rows else (),
                    notes=tuple(unmatched([one.model for one in self.results], self.ranking) if self.ranking else ()),
                    short="Other ranking",
                    first_screen=True,
                ),
                _alone(self.results),
                _confusion(self.results),
            ),
            notes=tuple(f"{result.model}: {note}" for result in self.results for note in notes(result)),
            settings=settings_rows(replace(first.run, model=names)),
            name=names,
            compared=tuple(result.model for result in self.results),
        )


def compare_models(
    results: Sequence[UnbiasedResult], external: Mapping[str, float] | None = None
) -> UnbiasedComparison:
    """Set results side by side.

    Args:
        external: model -> score elsewhere (a leaderboard).

    Raises:
        InputError: if there is no result, two are of one model, or they are of different questions or settings.
    """
    if not results:
        raise InputError("nothing to compare: give the responses of one model or more")
    names = [result.model for result in results]
    if len(set(names)) < len(names):
        raise InputError(f"two of the results are of one model: {', '.join(names)}")
    check_comparable(*results)
    ranked = tuple(sorted(results, key=lambda result: -result.metrics.ours.value))
    if external is None:
        return UnbiasedComparison(ranked, None, None)
    vanilla = agreement({result.model: result.metrics.vanilla.value for result in results}, external)
    ours = agreement({result.model: result.metrics.ours.value for result in results}, external)
    return UnbiasedComparison(ranked, vanilla, ours, dict(external))


def _scores(results: Sequence[UnbiasedResult]) -> tuple[Chart, ...]:
    """Both scores of every model, and by number of weights where it is known (P4, figure 5)."""
    keys = ("vanilla", "ours")
    marks = [
        Mark(one.model, getattr(one.metrics, key), METRICS[key].label, getattr(one.metrics, f"{key}_chance").value)
        for one in results
        for key in keys
    ]
    sized = [(float(size), one) for one in results if (size := one.run.parameters)]
    weights = [
        Mark(repr(size), getattr(one.metrics, key), METRICS[key].label)
        for key in keys
        for size, one in sorted(sized, key=lambda each: each[0])
    ]
    both = "As published and under interventions, with 95 % intervals"
    found = Chart(
        "unbiased-models", "Score of every model", f"{both}; ticks: chance.",
        lambda style: charts.intervals(marks, style, rows="model", expected="chance"),
    )  # fmt: skip
    by_size = Chart(
        "unbiased-sizes", "Score by number of weights", f"{both} (P4, figure 5).",
        lambda style: charts.lines(weights, style, under="weights (logarithmic axis)", beside="accuracy", ratio=True),
    )  # fmt: skip
    return (found, *[by_size] * (len({size for size, _ in sized}) > 1))


def _alone(results: Sequence[UnbiasedResult]) -> Panel:
    """Every model under each single intervention (P4, fig. 6)."""
    codes = list(dict.fromkeys(code for result in results for code in result.metrics.alone))
    if not codes:
        return Panel("unbiased-alone", "", "")
    words = {code: " + ".join(NAMES[one] for one in code.split("+")) for code in codes}
    marks = [
        Mark(words[code], result.metrics.alone[code].accuracy, series=result.model)
        for code in codes
        for result in results
        if code in result.metrics.alone
    ]
    rows: list[tuple[Cell, ...]] = [
        (words[code], *(getattr(result.metrics.alone.get(code), "change", None) for result in results))
        for code in codes
    ]
    columns = (Column("intervention"), *(Column(result.model, METRICS["alone.change"]) for result in results))
    return Panel(
        "unbiased-alone",
        "Which change costs which model most?",
        "Each intervention alone, on the questions that can take it (P4, figure 6).",
        charts=(
            Chart("unbiased-alone", "Accuracy under one intervention alone", "One point for each model (P4, figure 6).",
                  lambda style: charts.intervals(marks, style, rows="intervention")),
        ),
        tables=(Table("unbiased-alone", "Change against the same questions as published", columns, tuple(rows)),),
        short="One change",
        first_screen=True,
    )  # fmt: skip


def _confusion(results: Sequence[UnbiasedResult]) -> Panel:
    """Whose answers do not survive (P4, fig. 4)."""
    drawn = confusion_charts(results)
    rows = tuple((one.model, *(getattr(one.metrics.confusion, part) for part in PARTS)) for one in results)
    columns = (Column("model"), *(Column.of(f"confusion.{part}", name) for part, name in PARTS.items()))
    return Panel(
        "unbiased-confusion",
        "Whose answers do not survive?",
        "Shares of all pairs of question and run: lost is right as published only, gained right under interventions "
        "only (P4, figure 4).",
        charts=drawn,
        tables=(Table("unbiased-confusion", "Question by question", columns, rows),) if drawn else (),
        short="Answers",
    )
