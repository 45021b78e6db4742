"""Several models under the unbiased evaluator, side by side, and their agreement with another ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from unslant.checked import TableRow
from unslant.errors import InputError
from unslant.metrics import METRICS, Association, agreement
from unslant.questions.tables import read_table
from unslant.reports import Column, Page, Panel, Table
from unslant.reports.numbers import Cell, count, number
from unslant.studies.provenance import settings_rows
from unslant.studies.result import StudyResult
from unslant.studies.unbiased.panels import associations, notes, unread, unreadable
from unslant.studies.unbiased.result import UnbiasedResult, check_comparable


@dataclass(frozen=True)
class UnbiasedComparison(StudyResult):
    """Results of several models on the same questions, the best under interventions first.

    Attributes:
        vanilla_agreement, ours_agreement: of the two scores with another ranking, over the models in both (P4,
            table 4); None without one.
    """

    study = "unbiased-compare"
    unwritten = ("results",)

    results: tuple[UnbiasedResult, ...]
    vanilla_agreement: Association | None
    ours_agreement: Association | None

    @property
    def parts(self) -> Sequence[UnbiasedResult]:
        return self.results

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        return super().to_dict() | {"models": {result.model: result.to_dict() for result in self.results}}

    def page(self) -> Page:
        """Models side by side, and the agreement of both scores with another ranking."""
        first, *others = self.results
        names = ", ".join(result.model for result in self.results)
        said = f"{first.model} is best under interventions ({number(first.metrics.ours, METRICS['ours'])})"
        if others:
            worst = max(self.results, key=lambda result: result.metrics.drop.value)
            said += f"; {worst.model} loses most ({number(worst.metrics.drop.value, METRICS['drop'].digits)})"
        keys = ("vanilla", "ours", "run_std", "drop")
        more, cells = unreadable(self.results)
        columns = (Column("model"), Column("weights"), *map(Column.of, keys), *more)
        rows: list[tuple[Cell, ...]] = [
            (result.model, result.meta.get("parameters"), *(getattr(result.metrics, key) for key in keys), *cell)
            for result, cell in zip(self.results, cells, strict=True)
        ]
        agreed = associations(
            "unbiased-agreement",
            "Agreement",
            {("as published",): self.vanilla_agreement, ("under interventions",): self.ours_agreement},
            "score",
        )
        return Page(
            about=f"{count(len(self.results), 'model')} on {first.meta.get('questions', 'questions')}",
            headline=said + unread(*self.results),
            panels=(
                Panel(
                    "unbiased-models",
                    "Which models keep their score?",
                    "Accuracy as published and under interventions, the best under interventions first.",
                    tables=(Table("unbiased-models", "Models", columns, tuple(rows)),),
                    first_screen=True,
                ),
                Panel(
                    "unbiased-agreement",
                    "Which score agrees with the other ranking?",
                    "Correlation of the models' scores with an external one (P4, table 4).",
                    tables=(agreed,) if agreed.rows else (),
                    first_screen=True,
                ),
            ),
            notes=tuple(f"{result.model}: {note}" for result in self.results for note in notes(result)),
            settings=settings_rows({**first.meta, "model": names}),
            name=names,
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
    return UnbiasedComparison(
        ranked, vanilla, agreement({result.model: result.metrics.ours.value for result in results}, external)
    )


def load_ranking(path: str | Path) -> dict[str, float]:
    """Model -> score, from a file with the columns ``model`` and ``score``.

    Raises:
        InputError: naming line and field.
    """
    return {row.model: row.score for _, row in read_table(path, _Ranked)}


class _Ranked(TableRow):
    model: str
    score: float = Field(allow_inf_nan=False, description="a number")
