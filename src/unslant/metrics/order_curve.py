"""How close fewer orders would have come to the result of all orders, computed from the recorded scores.

And where questions are asked in a square of orders, how many of them need all orders for intervals that are narrow
enough: see :mod:`unslant.metrics.two_phase` for the estimates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.accuracy import expected_accuracy, vote_over_orders
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate, normal_quantile, wilson, yes_or_no
from unslant.metrics.permutation import pbm
from unslant.metrics.registry import bounds_of
from unslant.metrics.sampling import Sampling
from unslant.metrics.scores import Block, OrderScores, is_right
from unslant.metrics.two_phase import TwoPhaseValues, over_squares, whole_part
from unslant.presentations import Order, orders_for
from unslant.questions.question import Question

SIZES = (2, 3, 4, 6, 8, 12, 24)
MOST_QUESTIONS = 4_000
"""Questions compared, evenly spaced among more."""
SAME = 0.01
"""Fewer orders give the same result where nothing is further apart than this."""
_POOL, _DRAWS = 48, 4
WIDTH = 2.0
"""Widest intervals of :data:`WIDENED` allowed, relative to an audit in all orders."""
WIDENED = ("pbm", "normalised_pbm", "consistency", "robust_accuracy")
"""Numbers that need all orders and for which the part grows. Not the votes: for 1,000 questions and a model that only
follows the place, they would cost 3.8 instead of 3.0 ordinary runs, and the vote over a square is narrow."""
WIDTH_OF_MEAN = 1.15
"""The same for the mean over orders, which misses only what differs between the squares of a question."""
_SAFE = 0.9
"""Share of the allowed squared width that the next size aims at, so that the part need not grow again."""


@dataclass(frozen=True)
class OrderPoint:
    """The result and cost of one smaller set of orders.

    Distances are sqrt(d^2 + s^2): d is the difference from all orders, s its standard error over the questions (and
    draws, where the set is drawn), so that a set that came near by luck is not taken for a good one.

    Attributes:
        orders: the set, as ``--orders`` names it.
        k: how many orders it has.
        accuracy, vote, pbm: distance of the mean accuracy over orders, of the voted accuracy and of PBM; nan where no
            option is right, and one order has no PBM.
        votes_differ: share of questions whose voted answer differs.
        ordinary_runs: what an audit in these orders costs, its controls included (see
            :class:`unslant.models.base.Cost`); nan where tokens were not counted.
    """

    orders: str
    k: int
    accuracy: float
    vote: float
    pbm: float
    votes_differ: float
    ordinary_runs: float

    @property
    def apart(self) -> float:
        """The largest of the distances; infinite where one is not known. Without right options, the votes that differ
        count in place of accuracy: PBM alone can be the same while the answers are not."""
        distances = (self.votes_differ if math.isnan(self.vote) else max(self.accuracy, self.vote), self.pbm)
        return math.inf if any(map(math.isnan, distances)) else max(distances)

    @property
    def within(self) -> float:
        """:attr:`apart`, rounded up to three decimals; at least 0.001."""
        return max(1, math.ceil(1000 * self.apart - 1e-9)) / 1000


@dataclass(frozen=True)
class OrderCurve:
    """Smaller sets of orders against the whole set.

    Attributes:
        n_options, n_orders, n_questions: the largest group with one number of options and orders, which is compared.
        points: by number of orders; the last is the whole set.
        ordinary_runs: cost of the audit, less than that of the last point if few questions were asked in the whole set;
            nan if unknown.
    """

    n_options: int
    n_orders: int
    n_questions: int
    points: tuple[OrderPoint, ...]
    ordinary_runs: float

    @property
    def enough(self) -> OrderPoint | None:
        """The cheapest set that gives the same result to within :data:`SAME` (if costs are unknown, the smallest);
        None if no set does, or none that is cheaper than what was asked."""
        # a cost that is not known (nan) is neither less nor more
        near = [p for p in self.points[:-1] if p.apart <= SAME and not p.ordinary_runs >= self.ordinary_runs]
        cost = {p.orders: p.ordinary_runs if p.ordinary_runs >= 0 else math.inf for p in near}
        return min(near, key=lambda p: (cost[p.orders], p.k, p.apart), default=None)


def set_names(n: int, k: int) -> list[str]:
    """Names of the sets of fewer than ``k`` orders of ``n`` movable options that are compared."""
    names = ["given", "reverse", *["latin"] * (n < k)]
    for size in (size for size in SIZES if size < k):
        names += [str(size), *(f"{kind}:{size}" for kind in ("given", "cyclic", "balanced", "shared") if size % n == 0)]
    return names + [name for name in balanced_names(n, k) if name not in names]


def balanced_names(n: int, k: int) -> list[str]:
    """Names of sets of fewer than ``k`` orders that put each of ``n`` movable options everywhere equally often."""
    sizes = [size for size in SIZES if size % n == 0] if n else []
    names = [f"given:{size}" for size in sizes] or [f"cyclic:{size}" for size in range(n, k, n or 1)]
    return [name for name in names if int(name.partition(":")[2]) < k]


def order_curve(
    scores: OrderScores, spec: str, runs: Mapping[str, float] | None = None, spent: float | None = None
) -> OrderCurve | None:
    """The curve of the largest group of questions whose labels were scored in two orders or more.

    Random sets are drawn separately for every question; sets with orders that were not asked are left out. If every
    question had its own orders, only random subsets of them can be compared, and only if the orders were drawn freely.

    Args:
        spec: the orders asked, as ``--orders`` named them.
        runs: ordinary runs of each set, where known; that of all under ``spec``.
        spent: ordinary runs of what was asked; by default those of ``spec``.

    Returns:
        None where there is no such group, or no smaller set to compare.
    """
    blocks = [block for block in scores.blocks if block.k > 2 and (block.same_orders or spec.isdecimal())]
    if not scores.is_scored or not blocks:
        return None
    block = max(blocks, key=lambda block: len(block.index))
    names = set_names(block.n - int(block.pinned[0].sum()), block.k)
    pools = {name: pool for name in names if (pool := _pool(block, name)) is not None}
    if not pools:
        return None
    costs = runs or {}
    some = block.only(np.arange(len(block.index))[:: -(-len(block.index) // MOST_QUESTIONS)], np.arange(block.k))
    whole = _results(some, some.right, some.probs)
    sampling = Sampling(len(some.index), None, [scores.contexts[q] for q in some.index])
    points = [_compared(some, whole, name, pool, costs.get(name, math.nan), sampling) for name, pool in pools.items()]
    everything = OrderPoint(spec, block.k, 0.0, 0.0, 0.0, 0.0, costs.get(spec, math.nan))
    ranked = (*sorted(points, key=lambda p: p.k), everything)
    return OrderCurve(block.n, block.k, len(block.index), ranked, everything.ordinary_runs if spent is None else spent)


def _pool(block: Block, name: str) -> Ints | None:
    """(P, K) places, among the orders asked, of the orders of P draws of a set; None if it holds others."""
    if not block.same_orders:
        if not name.isdecimal():
            return None
        return np.stack([np.random.default_rng(i).permutation(block.k)[: int(name)] for i in range(_POOL)])
    places = {tuple(contents): k for k, contents in enumerate(block.contents[0].tolist())}
    draws = _draws(block.n, tuple(np.flatnonzero(block.pinned[0]).tolist()), name)
    if len(draws[0]) >= block.k or any(order not in places for orders in draws for order in orders):
        return None
    return np.asarray([[places[order] for order in orders] for orders in draws])


@lru_cache
def _draws(n: int, pinned: tuple[int, ...], name: str) -> list[list[Order]]:
    """Draws of a set for a question of ``n`` options; one, where it is not drawn."""
    question = Question("any", "?", tuple(f"{i:03d}" for i in range(n)), frozenset(), pinned=pinned)
    first, second = (orders_for(question, name, seed) for seed in range(2))
    return [first] if first == second else [orders_for(question, name, seed) for seed in range(_POOL)]


_Results = tuple[Floats, Floats, Floats, Ints]


def _results(block: Block, right: Floats, probs: Floats) -> _Results:
    """(Q,) share of the orders that are right, whether the vote is right (nan if no option is), PBM, and the vote."""
    content, _ = vote_over_orders(probs, block.text_ranks)
    voted = np.where(np.isnan(right[:, 0]), np.nan, is_right(block.answers, content))
    return right.mean(axis=1), voted, pbm(probs), content


def _compared(block: Block, whole: _Results, name: str, pool: Ints, runs: float, sampling: Sampling) -> OrderPoint:
    """A set, whose draws are in ``pool``, (P, K), compared with all orders."""
    questions = np.arange(len(block.index))[:, None]
    rng = np.random.default_rng(0)
    apart: list[list[NDArray[Any]]] = []
    for _ in range(_DRAWS if len(pool) > 1 else 1):
        orders = pool[rng.integers(len(pool), size=len(questions))]
        part = _results(block, block.right[questions, orders], block.probs[questions, orders])
        apart.append([one - other for one, other in zip(part, whole, strict=True)])
    *differences, votes = (np.concatenate(draws) for draws in zip(*apart, strict=True))
    accuracy, vote, bias = (_distance(values, sampling) for values in differences)
    k = pool.shape[1]
    return OrderPoint(name, k, accuracy, vote, bias if k > 1 else math.nan, float((votes != 0).mean()), runs)


def _distance(differences: Floats, sampling: Sampling) -> float:
    """sqrt(d^2 + s^2) of the differences of single questions, those of one draw after those of another; nan of none."""
    questions = len(sampling.unit)
    values = differences[~np.isnan(differences)]
    if not values.size:
        return math.nan
    together = differences.reshape(-1, questions).mean(axis=0)
    effect = max(1.0, sampling.design_effect(together)) if sampling.clustered else 1.0
    return float(math.sqrt(values.mean() ** 2 + effect * values.var() / questions))


# How many questions need all orders


def noise_between_squares(scores: OrderScores) -> Floats:
    """(n,) variance of the share right between the squares of each question shown in all orders."""
    pairs, rows = over_squares(replace(whole_part(scores), full=scores.full))
    right, counts = expected_accuracy(pairs), np.bincount(rows)
    mean, square = (np.bincount(rows, right**power) / np.maximum(1, counts) for power in (1, 2))
    return np.asarray(np.maximum(0.0, square - mean**2)[counts > 0])


def next_part(phased: TwoPhaseValues, full: Bools, means: Floats, noise: Floats, bootstrap: Bootstrap) -> int:
    """The size that the part grows to: the larger of :func:`part_needed` and :func:`part_for_mean`, at most double.

    A small part estimates its own best size poorly, so it grows in steps and is estimated again after each.
    """
    size = max(part_needed(phased, full, bootstrap), part_for_mean(means, noise, full))
    return min(size, 2 * int(full.sum()), len(full))


def part_needed(phased: TwoPhaseValues, full: Bools, bootstrap: Bootstrap) -> int:
    """Questions to ask in all orders, so that the intervals of :data:`WIDENED` are narrow enough.

    Args:
        phased: the values of every question, and those known over all orders.
        full: (Q,) questions of the part so far.

    Returns:
        The size of the part at which each interval is at most :data:`WIDTH` times as wide as if every question had been
        asked in all orders; the present size where that is so already.
    """
    size, needed = len(full), phased.shown
    for key in WIDENED:
        values, bounds = phased.values[key], bounds_of(key)
        known = phased.known[key][np.isfinite(phased.known[key]) & full]
        estimate = bootstrap.two_phase(values, phased.known[key], phased.shown, bounds=bounds)
        if len(known) < 2 or math.isnan(estimate.low):
            continue
        # The interval of all orders is that of N questions like the part, or wider, where the squares show that the
        # part by chance has fewer questions of a rare sort than the others.
        usual = _width(bootstrap.mean(np.resize(known, size), bounds=bounds, room="bounds, unsure"))
        if yes_or_no(known):
            usual = max(usual, _width(wilson(estimate.value, estimate.n)))
        else:
            spread = float(np.nanstd(values[~full])) if np.isfinite(values[~full]).any() else 0.0
            usual = max(usual, 2 * normal_quantile(estimate.confidence) * spread / math.sqrt(estimate.n))
        ratio = _width(estimate) / usual
        if ratio > WIDTH and phased.shown < size:
            # the square of the ratio is about 1 + c (1 / n - 1 / N)
            c = (ratio**2 - 1) / (1 / phased.shown - 1 / size)
            needed = max(needed, math.ceil(1 / ((_SAFE * WIDTH**2 - 1) / c + 1 / size)))
    return min(size, needed)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def part_for_mean(means: Floats, noise: Floats, full: Bools) -> int:
    """Questions to ask in all orders, so that the interval of the mean over orders is narrow enough.

    A question's mean over its square varies by v + s: v between questions, s between the squares of one question. With
    n of N questions in all orders, the variance of the mean is (v + (1 - n / N) s) / N.

    Args:
        means: (Q,) share right over the orders shown.
        noise: (n,) of the part: s of each question.
        full: (Q,) questions of the part so far.

    Returns:
        As :func:`part_needed`, with :data:`WIDTH_OF_MEAN`.
    """
    size, shown = len(full), int(full.sum())
    far = (means - np.nanmean(means)) ** 2
    total, noisy = float(np.nanmean(far)), float(np.nansum(noise))
    if total == 0:
        return shown
    # If few questions move at all, the part may show none whose squares differ: one more is assumed, whose share right
    # varies by an eighth. (With as much as any question lies off the mean, strong models, whose squares hardly differ,
    # would be asked for half as many questions more.)
    unseen = min(float(np.nanmax(far)), 1 / 64)
    share = (noisy + unseen) / (noisy + float(np.nansum(far[full])) + unseen)  # s / (v + s)
    both = total / (1 - share * shown / size) if shown < size else total
    v, s = (1 - share) * both, share * both
    if total <= WIDTH_OF_MEAN**2 * v:
        return shown
    return max(shown, math.ceil(size * share_in_all(v, s)))


def share_in_all(v: float, s: float) -> float:
    """Share of the questions to ask in all orders, so that the mean over orders is known as :data:`WIDTH_OF_MEAN` says.

    Args:
        v: variance between questions.
        s: variance between the squares of one question.
    """
    return 1 - min(1.0, (_SAFE * WIDTH_OF_MEAN**2 - 1) * v / s) if s > (WIDTH_OF_MEAN**2 - 1) * v else 0.0
