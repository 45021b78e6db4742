"""Debiasing methods applied to scores already recorded, without asking the model again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Ints, Jsonable
from unslant.debiasing.gray_box import mean_of_orders
from unslant.debiasing.pride import ALPHA, drawn, label_prior, without_prior
from unslant.metrics import Bootstrap, Estimate, OrderScores, QuestionValues, choose
from unslant.metrics.registry import metric
from unslant.metrics.scores import is_right
from unslant.presentations import rotations
from unslant.responses import GENERATE

LEAST_SHARE = 0.5
"""A method that can answer a smaller share of the questions is left out, so that the others keep theirs."""


@dataclass(frozen=True)
class Correction(Jsonable):
    """One method, on the questions that all methods of the table can answer.

    Attributes:
        accuracy: undefined, with the reason in its note, for a method that can answer too few questions.
        change: accuracy minus that of the given order, paired by question.
        orders: mean number of orders used per question.
    """

    method: str
    accuracy: Estimate
    change: Estimate
    orders: float


@dataclass(frozen=True)
class _Corrected:
    """What a method answers: (Q,) whether it is right, number of orders used, and whether it can answer at all."""

    right: Floats
    orders: Ints
    usable: Bools
    needs: str = ""

    @classmethod
    def of(cls, scores: OrderScores, probs: Floats, orders: Ints, usable: Bools, needs: str) -> _Corrected:
        """From (Q, N) corrected probabilities by content."""
        right = is_right(scores.answers, choose(probs, np.arange(scores.width)))
        return cls(right.astype(np.float64), orders, usable & scores.has_answer, needs)


@metric("corrections.accuracy", "accuracy", "of the corrected answers", unit="share")
@metric(
    "corrections.change", "change", "accuracy minus that of the order of the file, same questions", unit="difference"
)
@metric("corrections.orders", "orders", "orders a question that the method looks at", digits=1, unit="orders")
def corrections(scores: OrderScores, measures: QuestionValues, bootstrap: Bootstrap) -> tuple[Correction, ...]:
    """Vote, PriDe and gray-box from recorded scores, all on the same questions.

    PriDe needs the rotations of the given order, gray-box the reversed order: questions shown in a random sample of
    orders may not have them. Both need log-probabilities: replies have the vote alone. A method that can answer less
    than :data:`LEAST_SHARE` of the questions has no accuracy.
    """
    if scores.order_counts.max(initial=0) < 2:
        return ()
    voted = measures["vote_accuracy"]
    orders = scores.order_counts if scores.stopped is None else np.where(scores.stopped, 2, scores.order_counts)
    answers = {"vote": _Corrected(np.nan_to_num(voted), orders, ~np.isnan(voted))}
    if scores.elicitation != GENERATE and not scores.pinned.all(axis=1).all():
        answers |= {"pride": _pride(scores), "gray-box": _gray_box(scores)}
    as_reported = ~np.isnan(measures["accuracy"])
    total = int((as_reported & scores.has_answer).sum())
    enough = [c.usable & as_reported for c in answers.values() if (c.usable & as_reported).sum() >= LEAST_SHARE * total]
    shared = np.logical_and.reduce([as_reported, *enough])

    def correction(method: str, corrected: _Corrected) -> Correction:
        usable = int((corrected.usable & as_reported).sum())
        if usable < LEAST_SHARE * total:
            nothing = Estimate.undefined(f"{usable:,} of {total:,} questions were shown {corrected.needs}")
            return Correction(method, nothing, nothing, float("nan"))
        right = np.where(shared, corrected.right, np.nan)
        change = bootstrap.mean(right - measures["accuracy"], share=False)
        return Correction(method, bootstrap.mean(right), change, float(corrected.orders[shared].mean()))

    return tuple(correction(method, corrected) for method, corrected in answers.items()) if total else ()


def _pride(scores: OrderScores) -> _Corrected:
    """Estimate the prior on a sample of usable questions; answer those by the mean over their rotations."""
    by_position, complete = scores.under(_rotations(scores))
    usable = complete.all(axis=1) & (by_position.sum(axis=2) > 0).all(axis=1) & scores.has_answer
    free = np.flatnonzero(usable & ~scores.pinned.any(axis=1))
    places = drawn([scores.ids[q] for q in free], scores.n_options[free].tolist(), ALPHA, 0)
    sample = free[places] if len(free) else free
    probs, orders = by_position[:, 0].copy(), np.ones(len(scores), np.int64)
    for n in map(int, np.unique(scores.n_options[sample])):
        rows = sample[scores.n_options[sample] == n]
        by_label = by_position[rows, :n, :n]
        others = usable & (scores.n_options == n)
        probs[others, :n] = without_prior(by_position[others, 0, :n], label_prior(by_label))
        turned = np.argsort(rotations(n), axis=1)
        probs[rows, :n] = np.take_along_axis(by_label, turned[None], axis=2).mean(axis=1)
        orders[rows] = n
    return _Corrected.of(scores, probs, orders, usable, "in all rotations, which PriDe needs")


def _rotations(scores: OrderScores) -> Ints:
    """(Q, N, N) contents from top to bottom under each rotation; the last is repeated as padding."""
    result = np.zeros((len(scores), scores.width, scores.width), np.int64)
    patterns, of = np.unique(np.column_stack([scores.n_options, scores.pinned]), axis=0, return_inverse=True)
    for i, (n, *pinned) in enumerate(patterns.tolist()):
        orders = rotations(n, np.flatnonzero(pinned[:n]).tolist())
        orders += orders[-1:] * (scores.width - len(orders))
        result[of.ravel() == i, :, :n] = orders
    return result


def _gray_box(scores: OrderScores) -> _Corrected:
    published, reverse = scores.given, scores.reversed
    single = scores.movable < 2  # the reversed order is the given one
    usable = (published.chosen >= 0) & ((reverse.chosen >= 0) | single)
    both = np.stack([published.probs, np.where(single[:, None], published.probs, reverse.probs)], axis=1)
    probs = np.zeros(published.probs.shape)
    probs[usable] = mean_of_orders(both[usable])
    needs = "in reversed order too, which gray-box needs"
    return _Corrected.of(scores, probs, np.where(single, 1, 2), usable, needs)
