"""What each correction makes of orders that are already scored, with no further call of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Ints, Jsonable
from unslant.debias.gray_box import mean_of_orders
from unslant.debias.pride import ALPHA, drawn, label_prior, without_prior
from unslant.metrics import Bootstrap, Estimate, OrderScores, QuestionMeasures, choose
from unslant.presentations import rotations


@dataclass(frozen=True)
class Correction(Jsonable):
    """One method on the questions whose recorded orders suffice for it.

    Attributes:
        accuracy: of its answers; ``n`` says on how many questions.
        change: accuracy less that of the undebiased given order, paired over the same questions.
        orders: mean orders a question that the method looked at.
    """

    method: str
    accuracy: Estimate
    change: Estimate
    orders: float


@dataclass(frozen=True)
class _Corrected:
    """(Q, N) corrected probabilities by content, (Q,) orders looked at, and (Q,) which questions have them."""

    probs: Floats
    orders: Ints
    usable: Bools


def corrections(scores: OrderScores, measures: QuestionMeasures, bootstrap: Bootstrap) -> tuple[Correction, ...]:
    """Vote, PriDe and gray-box read off the scores; a method without a single usable question is left out.

    PriDe needs the rotations of the given order and gray-box the reversed order, so that questions shown in a random
    sample of their orders may not be usable; ``accuracy.n`` counts those that were.

    Args:
        measures: of the same questions.
        bootstrap: over the same questions.
    """

    def correction(method: str, right: Floats, orders: float) -> Correction:
        change = bootstrap.mean(right - measures.accuracy, share=False)
        return Correction(method, bootstrap.mean(right), change, orders)

    found = [correction("vote", measures.vote_accuracy, float(scores.order_counts.mean()))]
    for method, corrected in (("pride", _pride(scores)), ("gray-box", _gray_box(scores))):
        usable = corrected.usable & scores.has_answer
        if (usable & ~scores.pinned.any(axis=1)).any():
            answered = choose(corrected.probs, np.arange(scores.width))
            right = np.take_along_axis(scores.answers, answered[:, None], axis=1)[:, 0]
            found.append(correction(method, np.where(usable, right, np.nan), float(corrected.orders[usable].mean())))
    return tuple(item for item in found if item.accuracy.defined)


def _pride(scores: OrderScores, seed: int = 0) -> _Corrected:
    """The prior comes from a share of the usable questions; these are answered by the mean over their rotations."""
    by_position, known = scores.under(_rotations(scores))
    usable = known.all(axis=1) & scores.has_answer
    free = np.flatnonzero(usable & ~scores.pinned.any(axis=1))
    drawn_rows = drawn([scores.ids[q] for q in free], scores.n_options[free].tolist(), ALPHA, seed)
    sample = free[drawn_rows] if len(free) else free
    probs, orders = by_position[:, 0].copy(), np.ones(len(scores), np.int64)
    for n in map(int, np.unique(scores.n_options[sample])):
        rows = sample[scores.n_options[sample] == n]
        by_label = by_position[rows, :n, :n]
        others = usable & (scores.n_options == n)
        probs[others, :n] = without_prior(by_position[others, 0, :n], label_prior(by_label))
        turned = np.argsort(rotations(n), axis=1)
        probs[rows, :n] = np.take_along_axis(by_label, turned[None], axis=2).mean(axis=1)
        orders[rows] = n
    return _Corrected(probs, orders, usable)


def _rotations(scores: OrderScores) -> Ints:
    """(Q, N, N) contents, from the top, under every cyclic order of each question; the last is repeated as padding."""
    result = np.zeros((len(scores), scores.width, scores.width), np.int64)
    patterns, of = np.unique(np.column_stack([scores.n_options, scores.pinned]), axis=0, return_inverse=True)
    for i, (n, *pinned) in enumerate(patterns.tolist()):
        orders = rotations(n, np.flatnonzero(pinned[:n]).tolist())
        orders += orders[-1:] * (scores.width - len(orders))
        result[of.ravel() == i, :, :n] = orders
    return result


def _gray_box(scores: OrderScores) -> _Corrected:
    given, reverse = scores.given, scores.reversed
    single = scores.movable < 2  # the reversed order is the given one
    usable = given.ok & (reverse.ok | single)
    both = np.stack([given.probs, np.where(single[:, None], given.probs, reverse.probs)], axis=1)
    probs = np.zeros(given.probs.shape)
    probs[usable] = mean_of_orders(both[usable])
    return _Corrected(probs, np.where(single, 1, 2), usable)
