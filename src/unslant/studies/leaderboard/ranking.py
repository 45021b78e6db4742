"""Models ranked on the questions that all of them have answers to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable
from unslant.auditing.result import AuditResult
from unslant.experiment.comparison import EQUAL, ranks_of
from unslant.metrics import Bootstrap, Estimate, Measured, Numbers
from unslant.metrics.estimate import BY_DESIGN, CONFIDENCE
from unslant.metrics.registry import bounds_of, metric
from unslant.metrics.sampling import holm

SCORE = "expected_accuracy"
KEYS = (SCORE, "accuracy", "vote_accuracy", "pbm")


@dataclass(frozen=True)
class Standing(Measured):
    """One model: each of its numbers is the mean over sets of the mean over their common questions.

    Attributes:
        rank: by ``expected_accuracy``, 1 is best, equal scores share one; None without a score.
        ranks: lowest and highest rank in 95 % of bootstrap resamples of the questions.
        published_rank: by ``accuracy``, the score in the order of the file.
        change: places gained from the published rank; negative if lost.
    """

    model: str
    rank: int | None
    ranks: tuple[int, int] | None
    published_rank: int | None
    change: int | None
    numbers: Numbers


@dataclass(frozen=True)
class Neighbours(Jsonable):
    """A model and the next in rank.

    Attributes:
        higher, lower: names of the models.
        difference: of their order-free scores, paired by question.
        p: of "they are equally good", corrected for the number of pairs (Holm 1979).
        told_apart: whether ``p`` is below 0.05 and the interval of the difference excludes 0.
    """

    higher: str
    lower: str
    difference: Estimate
    p: float
    told_apart: bool


class Pool:
    """The questions of all sets, with each model's values.

    A set's questions are a stratum, and each set counts the same: a mean is that over sets of the mean over questions.

    Args:
        audits: model -> its audits, of the same sets in the same order.
    """

    def __init__(self, audits: Mapping[str, Sequence[AuditResult]]) -> None:
        self.models = list(audits)
        sets = list(zip(*audits.values(), strict=True))
        ids = [list(dict.fromkeys(name for audit in own for name in audit.scores.ids)) for own in sets]
        self.sizes = [len(names) for names in ids]
        self._set = np.repeat(np.arange(len(sets)), self.sizes)
        strata, units = [], []
        for s, (own, names) in enumerate(zip(sets, ids, strict=True)):
            about = {
                name: about
                for audit in reversed(own)
                for name, *about in zip(audit.scores.ids, audit.scores.subjects, audit.scores.contexts, strict=True)
            }
            single = len({context for _, context in about.values()}) == 1
            for subject, context in map(about.__getitem__, names):
                strata.append(f"{s}\0{subject}")
                units.append(f"{s}\0{context}" if context and not single else "")
        self.bootstrap = Bootstrap(len(self._set), strata, contexts=units)
        self._values: dict[str, Floats] = {}
        self._audits, self._ids, self._sets = audits, ids, sets
        score = self.values(SCORE, common=False)
        self.has_score: Bools = np.asarray([self._everywhere(np.isfinite(column)) for column in score.T], bool)
        wanting = (np.isnan(score) & np.isfinite(score).any(axis=1, keepdims=True)).sum(axis=0)
        self.unpaired = {model: int(n) for model, n in zip(self.models, wanting, strict=True) if n}

    def values(self, measure: str, common: bool = True) -> Floats:
        """(Q, models) values; with ``common``, nan where a model with values in every set has none."""
        if measure not in self._values:
            found = np.full((len(self._set), len(self.models)), np.nan)
            for m, own in enumerate(self._audits.values()):
                rows = []
                for audit, names in zip(own, self._ids, strict=True):
                    values = audit.metrics.questions[measure]
                    known = dict(zip(audit.scores.ids, values.tolist(), strict=True))
                    rows += [known.get(name, math.nan) for name in names]
                found[:, m] = rows
            self._values[measure] = found
        found = self._values[measure]
        if not common:
            return found
        usable = [m for m in range(len(self.models)) if self._everywhere(np.isfinite(found[:, m]))]
        kept = np.isfinite(found[:, usable]).all(axis=1, keepdims=True)
        return np.where(kept, found, np.nan)

    def _everywhere(self, kept: Bools) -> bool:
        return bool(np.bincount(self._set, kept, len(self.sizes)).all())

    def weights(self, kept: Bools) -> Floats:
        """(Q,) weights of the questions kept: those of each set sum to 1."""
        sizes = np.bincount(self._set, kept, len(self.sizes))
        result: Floats = np.divide(kept, sizes[self._set], out=np.zeros(len(kept)), where=kept)
        return result

    def mean(self, values: Floats, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
        """Mean over sets of (Q,) values, with its interval."""
        kept = np.isfinite(values)
        if not self._everywhere(kept):
            return Estimate.undefined("no value on some set: shown in one order only, or nothing was answered")
        weights = self.weights(kept)
        return self.bootstrap.ratio(np.nan_to_num(values) * weights, weights, bounds=bounds)

    def p(self, values: Floats) -> float:
        """Two-sided p of "the mean over sets is 0"; nan for fewer than two questions."""
        kept = np.isfinite(values)
        n = int(kept.sum())
        if n < 2 or not self._everywhere(kept):
            return math.nan
        terms = np.nan_to_num(values) * self.weights(kept) * n / len(self.sizes)
        return float(self.bootstrap.sampling.student(terms[:, None], kept)[1][0])

    @property
    def chance(self) -> Estimate:
        """Score of guessing, on the questions that count."""
        counts = np.isfinite(self.values(SCORE)).any(axis=1)
        found = self.mean(np.where(counts, np.fmax.reduce(self.values("chance", common=False), axis=1), np.nan))
        return Estimate.bare(found.value, found.n, BY_DESIGN) if found.defined else found

    def rank_ranges(self) -> dict[str, tuple[int, int]]:
        """Of each model with a score, the range of its rank in 95 % of the resamples."""
        values = self.values(SCORE)[:, self.has_score]
        if not values.shape[1] or not len(values):
            return {}
        kept: Bools = np.asarray(np.isfinite(values).all(axis=1))
        if not self._everywhere(kept):
            return {}
        weights = self.weights(kept)
        totals = self.bootstrap.totals(np.column_stack([np.nan_to_num(values) * weights[:, None], weights]))
        means = totals[:, :-1] / totals[:, -1:]
        drawn = 1 + (means[:, None, :] > means[:, :, None] + EQUAL).sum(axis=2)
        tail = (1 - CONFIDENCE) / 2
        low = np.quantile(drawn, tail, axis=0, method="lower")
        high = np.quantile(drawn, 1 - tail, axis=0, method="higher")
        names = [model for model, has in zip(self.models, self.has_score, strict=True) if has]
        return {name: (int(a), int(b)) for name, a, b in zip(names, low, high, strict=True)}


def standings(pool: Pool) -> tuple[Standing, ...]:
    """Every model, best first; those without a score last."""
    found = {key: [pool.mean(column, bounds_of(key)) for column in pool.values(key).T] for key in KEYS}
    ranks, published = ranks_of(found[SCORE]), ranks_of(found["accuracy"])
    ranges = pool.rank_ranges()
    rows = []
    for m, model in enumerate(pool.models):
        rank, before = ranks[m], published[m]
        drawn = ranges.get(model)
        if rank is not None and drawn is not None:
            drawn = min(rank, drawn[0]), max(rank, drawn[1])
        change = before - rank if rank is not None and before is not None else None
        numbers = Numbers({key: values[m] for key, values in found.items()})
        rows.append(Standing(model, rank, drawn, before, change, numbers))
    return tuple(sorted(rows, key=lambda row: (row.rank is None, row.rank or 0)))


@metric(
    "neighbours.p",
    "p",
    "paired: both models are equally good; corrected for the number of pairs",
    unit="p",
    source="Holm 1979",
)
def neighbours(pool: Pool, ranked: Sequence[Standing]) -> tuple[Neighbours, ...]:
    """Each model that has a rank, and the next one."""
    column = dict(zip(pool.models, pool.values(SCORE).T, strict=True))
    names = [row.model for row in ranked if row.rank is not None]
    pairs = list(pairwise(names))
    differences = [column[a] - column[b] for a, b in pairs]
    corrected = holm([pool.p(values) for values in differences])
    found = []
    for (a, b), values, p in zip(pairs, differences, corrected, strict=True):
        difference = pool.mean(values, (-1.0, 1.0))
        found.append(Neighbours(a, b, difference, p, p < 1 - CONFIDENCE and difference.excludes(0.0)))
    return tuple(found)
