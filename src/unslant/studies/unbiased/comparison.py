"""Several models under the unbiased evaluator: who loses what, by size, and agreement with another ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError
from unslant.metrics.association import Association, agreement
from unslant.questions.formats import read_records
from unslant.studies.result import StudyResult
from unslant.studies.unbiased.result import UnbiasedResult

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


@dataclass(frozen=True)
class UnbiasedComparison(StudyResult):
    """Results of several models on the same questions, the best under interventions first.

    Attributes:
        results: one for each model.
        vanilla_agreement, ours_agreement: of the two scores with the external ranking, over the models in both
            (P4, table 4); None without one.
    """

    results: tuple[UnbiasedResult, ...]
    vanilla_agreement: Association | None
    ours_agreement: Association | None

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        first, *others = self.results
        said = f"{first.model} is best under interventions ({first.metrics.ours.value:.2f})"
        worst = max(self.results, key=lambda result: result.metrics.drop.value)
        return f"{said}; {worst.model} loses most ({worst.metrics.drop.value:.2f})" if others else said

    def panels(self) -> Sequence[Panel]:
        """What a report shows."""
        from unslant.studies.unbiased.panels import comparison_panels

        return comparison_panels(self)

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        return {
            "study": "unbiased-compare",
            "headline": self.headline,
            "models": {result.model: result.to_dict() for result in self.results},
            "vanilla_agreement": None if self.vanilla_agreement is None else self.vanilla_agreement.to_dict(),
            "ours_agreement": None if self.ours_agreement is None else self.ours_agreement.to_dict(),
        }


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
    for key in ("questions_digest", "settings"):
        for other in results[1:]:
            if other.meta.get(key) != results[0].meta.get(key):
                raise InputError(f"{names[0]} and {other.model} cannot be compared: their {key} differ")
    ranked = sorted(results, key=lambda result: -result.metrics.ours.value)
    if external is None:
        return UnbiasedComparison(tuple(ranked), None, None)
    return UnbiasedComparison(
        tuple(ranked),
        agreement({result.model: result.metrics.vanilla.value for result in results}, external),
        agreement({result.model: result.metrics.ours.value for result in results}, external),
    )


def load_ranking(path: str | Path) -> dict[str, float]:
    """Model -> score, from a file with the columns ``model`` and ``score``.

    Raises:
        InputError: naming line and field.
    """
    found = {}
    for record in read_records(Path(path), ("model", "score")):
        for name in ("model", "score"):
            if name not in record.data:
                raise InputError.at(record.place, record.problem or "missing; needed are model, score", field=name)
        try:
            found[str(record.data["model"])] = float(str(record.data["score"]))
        except ValueError:
            raise InputError.at(record.place, f"{record.data['score']!r} is not a number", field="score") from None
    return found
