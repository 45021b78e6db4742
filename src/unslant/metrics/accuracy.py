"""Right and wrong: under the given order, under every order, and for the vote; and whether that is above chance.

Everything is per question, ``nan`` where undefined (no reply, no right option, orders missing), so that any mean over
questions leaves those out and knows its N. An answer is right when its content is one of the right ones, so several
right options are fine; a reply without an answer is not right. Accuracies over orders are defined with one order (where
every option is pinned, say), so that they cover the same questions as the accuracy under the given order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.registry import metric, question_metric
from unslant.metrics.scores import OrderScores, View, is_right, over_orders
from unslant.metrics.ties import choose, credit
from unslant.metrics.vote import VotedAnswers, vote

TieRule = Literal["first", "last", "split"]
LEVEL = 0.05
NO_ANSWER = "no question has both a usable answer and a right option"
NO_REPLIES = "answers are scores, not replies"


def correct(scores: OrderScores, view: View, ties: TieRule = "first") -> Floats:
    """Whether each question is right under one presentation: (Q,) of 0, 1 or (``split``) between, and nan.

    Args:
        ties: among equally probable options, the first or last label shown counts, or each counts in part.
    """
    if ties == "split":
        right = np.zeros(len(scores))
        right[view.ok] = (credit(view.probs[view.ok]) * scores.answers[view.ok]).sum(axis=1)
    else:
        chosen = view.chosen if ties == "first" else choose(view.probs, -view.positions)
        right = is_right(scores.answers, chosen[:, None])[:, 0].astype(np.float64)
    right[~view.ok | ~scores.has_answer] = np.nan
    return right


@question_metric("accuracy", "accuracy, as published", "options in the order of the file", unit="share",
                 short="as published", missing=NO_ANSWER)  # fmt: skip
def accuracy(scores: OrderScores) -> Floats:
    """Right under the given order; the first label shown wins a tie, as in greedy decoding."""
    return correct(scores, scores.given)


@question_metric("accuracy_last_tie", "accuracy, last label wins ties", "as published, ties to the last label shown",
                 unit="share", missing=NO_ANSWER)  # fmt: skip
def accuracy_last_tie(scores: OrderScores) -> Floats:
    return correct(scores, scores.given, "last")


@question_metric("accuracy_split_tie", "accuracy, ties share", "as published, tied options share the credit",
                 unit="share", missing=NO_ANSWER)  # fmt: skip
def accuracy_split_tie(scores: OrderScores) -> Floats:
    return correct(scores, scores.given, "split")


@question_metric("expected_accuracy", "accuracy, mean over orders", "the score averaged over option orders",
                 unit="share", short="mean over orders", unmoved="accuracy", averaged=True)  # fmt: skip
def expected_accuracy(scores: OrderScores) -> Floats:
    """Share of orders under which each question is right: the score of a random order."""
    return over_orders(scores, lambda block: block.right.mean(axis=1))


@question_metric("order_advantage", "order advantage", "as published minus the mean over orders", unit="difference",
                 unmoved=0.0, averaged=True)  # fmt: skip
def order_advantage(scores: OrderScores) -> Floats:
    """What the order of the file adds."""
    return accuracy(scores) - expected_accuracy(scores)


def _voted(scores: OrderScores, values: NDArray[np.generic]) -> Floats:
    """Values of the vote, which there is where orders are complete, and any question was shown in two."""
    voted = scores.order_counts > 0 if scores.reordered else np.zeros(len(scores), bool)
    return np.where(voted, values.astype(np.float64), np.nan)


def vote_correct(scores: OrderScores, voted: VotedAnswers) -> Floats:
    """(Q,) whether the voted answer is right."""
    right = is_right(scores.answers, voted.content[:, None])[:, 0].astype(np.float64)
    right[(scores.order_counts == 0) | ~scores.has_answer] = np.nan
    return right


@question_metric("vote_accuracy", "accuracy, voted", "mean probability over orders: the corrected answer", unit="share",
                 source="P1 eq. 6", short="voted", unmoved="accuracy")  # fmt: skip
def vote_accuracy(scores: OrderScores) -> Floats:
    return _voted(scores, vote_correct(scores, vote(scores)))


@question_metric("hard_vote_accuracy", "accuracy, voted by counts", "the option chosen under most orders", unit="share",
                 unmoved="accuracy")  # fmt: skip
def hard_vote_accuracy(scores: OrderScores) -> Floats:
    return _voted(scores, vote_correct(scores, vote(scores, "hard")))


@question_metric("robust_accuracy", "accuracy, right in every order", "right however the options are ordered",
                 unit="share", short="right in every order", unmoved="accuracy")  # fmt: skip
def robust_accuracy(scores: OrderScores) -> Floats:
    return over_orders(scores, lambda block: block.right.min(axis=1))


@question_metric("chance", "chance", "share of options that are right", unit="share",
                 missing="no question has a right option", exact=True)  # fmt: skip
def chance(scores: OrderScores) -> Floats:
    return np.where(scores.has_answer, scores.answers.sum(axis=1) / scores.n_options, np.nan)


@question_metric("vote_tie_rate", "ties in the vote", "several options tied in the vote", unit="share", unmoved=0.0)
def vote_tie_rate(scores: OrderScores) -> Floats:
    return _voted(scores, vote(scores).tied)


@question_metric("answered", "replies that answer", "share of replies, over all orders, that name one option",
                 unit="share", missing=NO_REPLIES)  # fmt: skip
def answered(scores: OrderScores) -> Floats:
    result = np.full(len(scores), np.nan)
    if not scores.is_scored:
        for block in scores.blocks:
            result[block.index] = (block.chosen >= 0).mean(axis=1)
    return result


@question_metric("answered_accuracy", "accuracy, of answered", "as published, without replies that contain no answer",
                 unit="share", short="of answered", missing=NO_REPLIES)  # fmt: skip
def answered_accuracy(scores: OrderScores) -> Floats:
    return np.where(~scores.is_scored & (scores.given.chosen >= 0), accuracy(scores), np.nan)


@dataclass(frozen=True)
class ChanceTest:
    """A score against guessing.

    Attributes:
        excess: score less chance, question by question.
        p: one-sided p-value of "no better than guessing".
        above: whether p is below ``LEVEL``; if not, the score is not above chance.
    """

    excess: Estimate
    p: float
    above: bool


@metric("above_chance.excess", "above chance", "mean over orders less chance", unit="difference")
@metric("above_chance.p", "p", "one-sided: no better than guessing", unit="p")
def above_chance(right: Floats, chance: Floats, bootstrap: Bootstrap) -> ChanceTest:
    """Test a score against each question's chance.

    Answers that are right (1) or wrong (0): exact, a sum of independent guesses being a sum of binomials (Poisson
    binomial). Shares of orders: Student's test of the mean difference, because orders of one question are no
    independent guesses; where the difference is the same for every question, by its interval.

    Args:
        right: (Q,) whether each question is right, or the share of orders in which it is; nan where unknown.
        chance: (Q,) share of its options that are right; nan where none is.
    """
    known = np.isfinite(right) & np.isfinite(chance)
    excess = bootstrap.mean(
        np.where(known, right - chance, np.nan), share=False, note="" if known.any() else "no answer"
    )
    if not known.any():
        return ChanceTest(excess, math.nan, False)
    right, chance = right[known], chance[known]
    if np.isin(right, (0.0, 1.0)).all():
        p = _at_least(int(right.sum()), chance)
    else:
        residuals = np.zeros(len(known))
        residuals[known] = (right - chance - excess.value) / len(right)
        variance = float(bootstrap.sampling.variance(residuals, known))
        if len(right) > 1 and variance > 1e-24:
            from scipy.special import stdtr

            p = float(stdtr(bootstrap.sampling.degrees(residuals, known), -excess.value / math.sqrt(variance)))
        else:
            p = 0.0 if excess.low > 0 else 1.0
    return ChanceTest(excess, p, p < LEVEL)


def _at_least(hits: int, chance: Floats) -> float:
    """Probability of this many hits or more from independent guesses."""
    from scipy.stats import binom

    distribution = np.ones(1)
    for share, count in zip(*np.unique(chance, return_counts=True), strict=True):
        distribution = np.convolve(distribution, binom.pmf(np.arange(count + 1), count, share))
    return float(min(1.0, distribution[hits:].sum()))
