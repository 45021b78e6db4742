"""Several models under the unbiased evaluator, side by side, and their agreement with another ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from unslant.experiment.comparison import ComparedModels, Comparison, agreements, check_comparable, check_one_of_each
from unslant.metrics import METRICS, Numbers
from unslant.reports import Column, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import number, with_interval
from unslant.studies.unbiased.panels import confusion, names_of, notes, replies_of, unread
from unslant.studies.unbiased.result import UnbiasedResult


@dataclass(frozen=True)
class UnbiasedComparison(ComparedModels[UnbiasedResult]):
    """Results of several models on the same questions, the best under interventions first.

    Attributes:
        vanilla_agreement, ours_agreement: of the two scores with the other ranking, over the models in both (P4,
            table 4); None without one.
    """

    study = "unbiased-compare"

    vanilla_agreement: Numbers | None
    ours_agreement: Numbers | None

    @cached_property
    def comparison(self) -> Comparison:
        """The scores of every model."""
        return _scores(self.results, self.ranking)

    def described(self) -> Page:
        """Models side by side, and the agreement of both scores with another ranking."""
        first, *others = self.results
        best, worst = first.metrics, max(self.results, key=lambda result: result.metrics.drop.value)
        chance = f", chance {number(best.ours_chance)}" * best.ours_chance.defined
        said = f"{first.model} is best under interventions: {with_interval(best.ours, METRICS['ours'])}{chance}"
        if others:
            said += f"; {worst.model} loses most ({number(worst.metrics.drop.value, METRICS['drop'].digits)})"
        words, more_unread = unread(*self.results)
        page = Page(
            about=f"{self.size} on {first.run.question_set}",
            headline=said + words,
            lines=(more_unread,),
            tiles=Tile.row(
                ("ours", best.ours, f"under interventions, {first.model}"),
                ("ours_chance", best.ours_chance, "chance"),
                *((("drop", worst.metrics.drop, f"largest drop, {worst.model}"),) if others else ()),
            ),
            panels=(self._models(), self._agreement(), self._alone(), self._confusion()),
            notes=tuple(f"{result.model}: {note}" for result in self.results for note in notes(result)),
        )
        return self.with_models(page)

    def _models(self) -> Panel:
        both = "As published and under interventions, with 95 % intervals"
        keys = ["vanilla", "ours"]
        plots = [
            Plot(
                partial(charts.intervals, expected="chance"),
                f"{both}; ticks: chance.",
                keys,
                title="Score of every model",
                expected=lambda row, key: row[f"{key}_chance"],
            )
        ]
        if len({size for result in self.results if (size := result.run.parameters)}) > 1:
            plots.append(
                Plot(
                    partial(charts.lines, axis="accuracy", ratio=True),
                    f"{both} (P4, figure 5).",
                    keys,
                    title="Score by number of weights",
                    id="unbiased-sizes",
                    at="weights",
                    where=lambda row: bool(row["weights"]),
                    rows="weights (logarithmic axis)",
                )
            )
        columns: list[str | Column] = [Column("weights"), "vanilla", "ours", "run_std", "drop"]
        figure = self.comparison.figure("unbiased-models", "Models", [*columns, *replies_of(self.results)], plots)
        return Panel(
            "unbiased-models",
            "Which models keep their score?",
            "Accuracy as published and under interventions, the best under interventions first.",
            figures=(figure,),
            short="Score",
        )

    def _agreement(self) -> Panel:
        found: dict[tuple[str, ...], Numbers | None]
        found = {("as published",): self.vanilla_agreement, ("under interventions",): self.ours_agreement}
        return Panel(
            "unbiased-agreement",
            "Which score agrees with the other ranking?",
            "Correlation of the models' scores with an external one (P4, table 4).",
            figures=(agreements("unbiased-agreement", "Agreement", found, "score"),),
            notes=tuple(self.comparison.unranked),
            short="Other ranking",
        )

    def _alone(self) -> Panel:
        """Every model under each single intervention (P4, fig. 6)."""
        rows: dict[tuple[str, ...], dict[str, Any]] = {}
        for result in self.results:
            for codes, alone in result.metrics.alone.items():
                row = rows.setdefault((names_of(codes),), {})
                row |= {result.model: alone.change, f"accuracy of {result.model}": alone.accuracy}
        plot = Plot(
            charts.intervals,
            "One point for each model (P4, figure 6).",
            {f"accuracy of {name}": name for name in self.models},
            title="Accuracy under one intervention alone",
        )
        title, metric = "Change against the same questions as published", METRICS["alone.change"]
        return Panel(
            "unbiased-alone",
            "Which change costs which model most?",
            "Each intervention alone, on the questions that can take it (P4, figure 6).",
            figures=(self.comparison.by_run("unbiased-alone", title, ["intervention"], rows, metric, [plot]),),
            short="One change",
        )

    def _confusion(self) -> Panel:
        """Whose answers do not survive (P4, fig. 4)."""
        return Panel(
            "unbiased-confusion",
            "Whose answers do not survive?",
            "Shares of all pairs of question and run: lost is right as published only, gained right under "
            "interventions only (P4, figure 4).",
            figures=confusion(self.models),
            short="Answers",
        )


def _scores(results: Sequence[UnbiasedResult], ranking: Mapping[str, float] | None) -> Comparison:
    runs = {
        one.model: {
            **vars(one.metrics),
            "unreadable": one.metrics.replies["ours"].unreadable,
            "weights": one.run.parameters,
        }
        for one in results
    }
    return Comparison(runs, ["vanilla", "ours"], ranking=ranking or {})


def compare_models(
    results: Sequence[UnbiasedResult], external: Mapping[str, float] | None = None
) -> UnbiasedComparison:
    """Set results side by side.

    Args:
        external: model -> score elsewhere (a leaderboard).

    Raises:
        InputError: if there is no result, two are of one model, or they are of different questions or settings.
    """
    check_one_of_each(results)
    check_comparable(results)
    found = _scores(results, external)
    by_name = {result.model: result for result in results}
    ranked = tuple(by_name[name] for name in found.best_first("ours"))
    return UnbiasedComparison(ranked, dict(external or {}), found.agreement("vanilla"), found.agreement("ours"))
