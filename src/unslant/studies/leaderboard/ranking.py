"""Models ranked on the questions that all of them have answers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from unslant.arrays import Jsonable
from unslant.experiment.comparison import ranks_of
from unslant.experiment.ranking import Ranks, rank_sets
from unslant.metrics import Estimate, Measured, Numbers, Verdict, verdicts
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.registry import bounds_of, metric
from unslant.studies.leaderboard.pool import Pool

RANK_BY = {"mean": "expected_accuracy", "vote": "vote_accuracy"}
"""What models are ranked by -> key of the metric."""
KEYS = ("expected_accuracy", "accuracy", "vote_accuracy", "pbm")
_DIFFERENCE = (-1.0, 1.0)


@dataclass(frozen=True)
class Pair(Jsonable):
    """Two models, compared on the same questions.

    Attributes:
        higher, lower: names of the models, that of the higher score first.
        difference: higher minus lower, paired by question; the 95 % intervals of all pairs hold together.
        p: of "both are equally good", corrected for the number of all pairs (Holm 1979).
        differ: whether ``p`` is below 0.05 and the interval excludes 0.
        needed: questions that would probably settle which of the two is better; None where that is settled, or where
            no number can be named.
    """

    higher: str
    lower: str
    difference: Estimate
    p: float
    differ: bool
    needed: int | None

    @property
    def verdict(self) -> Verdict:
        """What may be said of the difference."""
        return Verdict("above" if self.differ else "unclear", self.difference, 0.0, None, self.p, self.needed)


@dataclass(frozen=True)
class Standing(Measured):
    """One model: each of its numbers is the mean over sets of the mean over their common questions.

    Attributes:
        rank: by the score that is ranked by, 1 is best, equal scores share one; None without a score.
        ranks: lowest and highest rank of its confidence set; see :func:`~unslant.experiment.ranking.rank_sets`.
        mean_rank, vote_rank: by the mean over orders, and by the vote over them.
        published_rank: by ``accuracy``, the score in the order of the file.
        change: places gained from the published rank; negative if lost.
        changes: fewest and most places gained that the confidence sets of both ranks allow.
    """

    model: str
    rank: int | None
    ranks: Ranks | None
    mean_rank: int | None
    vote_rank: int | None
    published_rank: int | None
    change: int | None
    changes: Ranks | None
    numbers: Numbers


@metric(
    "pairs.p",
    "p",
    "paired: both models are equally good; corrected for the number of all pairs",
    unit="p",
    source="Holm 1979",
)
def compared(pool: Pool, key: str, confidence: float = CONFIDENCE) -> tuple[Pair, ...]:
    """Every two models with a score, compared on the questions of all.

    Two models differ where two corrections agree: Holm's, of the p-values of all pairs, and the simultaneous interval
    (:meth:`Pool.level`), so that no pair is called different whose interval holds 0.
    """
    places, values, level = pool.pairs(key), pool.values(key), pool.level(key, confidence)
    apart = [values[:, a] - values[:, b] for a, b in places]
    alone = [pool.mean(one, _DIFFERENCE, confidence) for one in apart]
    rows = []
    for (a, b), one, found in zip(places, apart, verdicts(alone), strict=True):
        wide = pool.mean(one, _DIFFERENCE, level)
        together = replace(wide, confidence=confidence, method=f"{wide.method}, all pairs together")
        differ = found.differs and together.excludes(0.0)
        names = pool.models[a], pool.models[b]
        if together.value < 0:
            names, together = names[::-1], together.taken_from(0.0)
        rows.append(Pair(*names, together, found.p, differ, None if differ else found.needed))
    return tuple(rows)


def _sets(pool: Pool, key: str, confidence: float) -> dict[str, Ranks]:
    return rank_sets([pool.models[m] for m in pool.usable(key)], compared(pool, key, confidence))


@metric(
    "habit_price",
    "price of the habit",
    "vote minus mean over orders, same questions: what a random order costs",
    unit="difference",
)
def standings(pool: Pool, pairs: Sequence[Pair]) -> tuple[Standing, ...]:
    """Every model, best first; those without a score last.

    Args:
        pairs: of the score that is ranked by.
    """
    found = {key: [pool.mean(column, bounds_of(key)) for column in pool.values(key).T] for key in KEYS}
    price = (pool.values("vote_accuracy") - pool.values("expected_accuracy")).T
    found["habit_price"] = [pool.mean(column, _DIFFERENCE) for column in price]
    by = {key: ranks_of(found[key]) for key in KEYS}
    ranked = [model for model, rank in zip(pool.models, by[pool.score], strict=True) if rank is not None]
    sets = rank_sets(ranked, pairs)
    each = 1 - (1 - CONFIDENCE) / 2  # both sets hold with 95 %
    before, now = _sets(pool, "accuracy", each), _sets(pool, pool.score, each)
    rows = []
    for m, model in enumerate(pool.models):
        rank, published = by[pool.score][m], by["accuracy"][m]
        known = rank is not None and published is not None
        rows.append(
            Standing(
                model,
                rank,
                sets.get(model),
                by["expected_accuracy"][m],
                by["vote_accuracy"][m],
                published,
                published - rank if rank is not None and published is not None else None,
                _gained(before[model], now[model]) if known else None,
                Numbers({key: values[m] for key, values in found.items()}),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.rank is None, row.rank or 0)))


def _gained(before: Ranks, now: Ranks) -> Ranks:
    return before[0] - now[1], before[1] - now[0]


def neighbours(models: Sequence[Standing], pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs of each ranked model and the next."""
    by_names = {frozenset((pair.higher, pair.lower)): pair for pair in pairs}
    names = [one.model for one in models if one.rank is not None]
    return tuple(by_names[key] for key in map(frozenset, pairwise(names)) if key in by_names)
