"""Right and wrong: under the given order, under every order, for the vote, against chance, and against confidence.

Accuracies are per question, ``nan`` where undefined (no reply, no right option, orders missing), so that any mean over
questions leaves those out and knows its N. An answer is right when its content is one of the right ones, so several
right options are fine; a reply without an answer is not right. Accuracies over orders are defined with one order (where
every option is pinned, say), so that they cover the same questions as the accuracy under the given order.

The vote is over all orders of a question (P1 sec. 3.3.1, eq. 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints, Jsonable
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate, yes_or_no
from unslant.metrics.registry import Measured, Numbers, metric, question_metric
from unslant.metrics.scores import OrderScores, choose, credit, is_right, is_tie, over_orders


@dataclass(frozen=True)
class VotedAnswers:
    """Voted answers of Q questions.

    Attributes:
        content: (Q,) the voted content; -1 without a complete order set.
        tied: (Q,) whether several contents have the highest share.
    """

    content: NDArray[np.intp]
    tied: Bools


def mean_over_orders(probs: Floats) -> Floats:
    """Mean over the orders, (..., K, n) to (..., n), the same to the last bit in any sequence."""
    # sums of floats depend on their sequence, and the vote must not depend on the order of options in the file
    return np.asarray(np.sort(probs, axis=-2).mean(axis=-2))


def vote_over_orders(
    probs: Floats, text_ranks: Ints, rule: Literal["soft", "hard"] = "soft"
) -> tuple[NDArray[np.intp], Floats]:
    """The voted content (...), see :func:`vote`, and mean probabilities (soft) or shares of orders (hard), (..., n).

    Args:
        probs: (..., K, n).
        text_ranks: (..., n) rank of each content's text; the least wins a tie.
    """
    mean = mean_over_orders(probs)
    if rule == "soft":
        return choose(mean, text_ranks), mean
    shares = mean_over_orders(credit(probs))
    return choose(np.where(credit(shares) > 0, mean, 0.0), text_ranks), shares


def vote(scores: OrderScores, rule: Literal["soft", "hard"] = "soft") -> VotedAnswers:
    """Vote over all orders of each question.

    ``soft``: the content of highest mean probability. ``hard``: the content chosen under most orders, where tied
    options share the vote of their order and equal counts go to the higher mean probability.

    Ties (see ``TIE_TOLERANCE``) go to the option whose text sorts first, so that the vote does not depend on the order
    of options in the file; to the first in the file where the table has no text ranks.
    """
    content, ties = np.full(len(scores), -1, dtype=np.intp), np.zeros(len(scores), bool)
    for block in scores.blocks:
        content[block.index], shares = vote_over_orders(block.probs, block.text_ranks, rule)
        ties[block.index] = is_tie(shares)
    return VotedAnswers(content, ties)


LEVEL = 0.05
NO_ANSWER = "no question has both a usable answer and a right option"
NO_REPLIES = "answers are scores, not replies"


def _as_given(scores: OrderScores, right: NDArray[np.generic]) -> Floats:
    """(Q,) values under the given order; nan without a reply to it or without a right option."""
    return np.where(scores.given.ok & scores.has_answer, right, np.nan)


@question_metric("accuracy", "accuracy, as published", "options in the order of the file", unit="share",
                 short="as published", missing=NO_ANSWER)  # fmt: skip
def accuracy(scores: OrderScores) -> Floats:
    """Right under the given order; the first label shown wins a tie, as in greedy decoding."""
    return _as_given(scores, is_right(scores.answers, scores.given.chosen))


@question_metric("accuracy_last_tie", "accuracy, last label wins ties", "as published, ties to the last label shown",
                 unit="share", missing=NO_ANSWER)  # fmt: skip
def accuracy_last_tie(scores: OrderScores) -> Floats:
    return _as_given(scores, is_right(scores.answers, choose(scores.given.probs, -scores.given.positions)))


@question_metric("accuracy_split_tie", "accuracy, ties share", "as published, tied options share the credit",
                 unit="share", missing=NO_ANSWER)  # fmt: skip
def accuracy_split_tie(scores: OrderScores) -> Floats:
    return _as_given(scores, (credit(scores.given.probs) * scores.answers).sum(axis=1))


@question_metric("expected_accuracy", "accuracy, mean over orders", "the score averaged over option orders",
                 unit="share", short="mean over orders", unmoved="accuracy", averaged=True)  # fmt: skip
def expected_accuracy(scores: OrderScores) -> Floats:
    """Share of orders under which each question is right: the score of a random order."""
    return over_orders(scores, lambda block: block.right.mean(axis=1))


@question_metric("order_advantage", "order advantage", "as published minus the mean over orders", unit="difference",
                 unmoved=0.0, averaged=True, swings=True)  # fmt: skip
def order_advantage(scores: OrderScores) -> Floats:
    """What the order of the file adds."""
    return accuracy(scores) - expected_accuracy(scores)


def _voted(scores: OrderScores, values: NDArray[np.generic]) -> Floats:
    """Values of the vote; nan where orders are incomplete, or no question was shown in two."""
    return np.where(scores.reordered & (scores.order_counts > 0), values, np.nan)


def _vote_right(scores: OrderScores, rule: Literal["soft", "hard"]) -> Floats:
    right = is_right(scores.answers, vote(scores, rule).content)
    return _voted(scores, np.where(scores.has_answer, right, np.nan))


@question_metric("vote_accuracy", "accuracy, voted", "mean probability over orders: the corrected answer", unit="share",
                 source="P1 eq. 6", short="voted", unmoved="accuracy")  # fmt: skip
def vote_accuracy(scores: OrderScores) -> Floats:
    return _vote_right(scores, "soft")


@question_metric("hard_vote_accuracy", "accuracy, voted by counts", "the option chosen under most orders", unit="share",
                 unmoved="accuracy")  # fmt: skip
def hard_vote_accuracy(scores: OrderScores) -> Floats:
    return _vote_right(scores, "hard")


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
    for block in scores.blocks if not scores.is_scored else ():
        result[block.index] = (block.chosen >= 0).mean(axis=1)
    return result


@question_metric("answered_accuracy", "accuracy, of answered", "as published, without replies that contain no answer",
                 unit="share", short="of answered", missing=NO_REPLIES)  # fmt: skip
def answered_accuracy(scores: OrderScores) -> Floats:
    return np.where((not scores.is_scored) & (scores.given.chosen >= 0), accuracy(scores), np.nan)


@dataclass(frozen=True)
class ChanceTest:
    """A score against guessing.

    Attributes:
        excess: score minus chance, question by question.
        p: one-sided p-value of "no better than guessing".
        above: whether p is below ``LEVEL``; if not, the score is not above chance.
    """

    excess: Estimate
    p: float
    above: bool


@metric("above_chance.excess", "above chance", "score minus chance, same questions", unit="difference")
@metric("above_chance.p", "p", "one-sided test that the score is no better than guessing", unit="p")
def above_chance(right: Floats, chance: Floats, bootstrap: Bootstrap) -> ChanceTest:
    """Test a score against each question's chance.

    Answers that are right (1) or wrong (0): exact, a sum of independent guesses being a sum of binomials (Poisson
    binomial). Shares of orders, and questions that share passages: Student's test of the mean difference, because
    orders of one question, or guesses about one passage, are not independent; where the difference is the same for
    every question, by its interval.

    Args:
        right: (Q,) whether each question is right, or the share of orders in which it is; nan where unknown.
        chance: (Q,) share of its options that are right; nan where none is.
    """
    both = np.isfinite(right) & np.isfinite(chance)
    if not both.any():
        return ChanceTest(Estimate.undefined("no answer"), math.nan, False)
    # narrower bounds than those of any difference of shares: of four options, all right is 0.75 above chance, not 1
    bounds = -float(chance[both].max()), 1 - float(chance[both].min())
    sure = yes_or_no(right[both])
    excess = bootstrap.mean(np.where(both, right - chance, np.nan), bounds=bounds, swings=sure, room="bounds, unsure")
    right, chance = right[both], chance[both]
    if sure and not bootstrap.sampling.clustered:
        p = _at_least(int(right.sum()), chance)
    else:
        sampling, weights, residuals = bootstrap.sampling, both.astype(np.float64), np.zeros(len(both))
        residuals[both] = (right - chance - excess.value) / len(right)
        residuals = sampling.jackknifed(residuals, weights)
        variance = float(sampling.variance(residuals, both))
        if len(right) > 1 and variance > 1e-24:
            from scipy.special import stdtr

            degrees = min(sampling.effective_units(weights, both), sampling.degrees(residuals, both))
            p = float(stdtr(degrees, -excess.value / math.sqrt(variance)))
        else:
            p = 0.0 if excess.low > 0 else 1.0
    return ChanceTest(excess, p, p < LEVEL)


def _at_least(hits: int, chance: Floats) -> float:
    """Probability of this many hits or more from independent guesses."""
    from scipy.stats import binom

    # questions with as many options are one binomial each; their sum is the Poisson binomial
    distribution = np.ones(1)
    for share, count in zip(*np.unique(chance, return_counts=True), strict=True):
        distribution = np.convolve(distribution, binom.pmf(np.arange(count + 1), count, share))
    return float(min(1.0, distribution[hits:].sum()))


BINS = 10
_DRAWS, _AT_ONCE = 1000, 2_000_000


@dataclass(frozen=True)
class CalibrationBin(Jsonable):
    """Answers of similar confidence.

    Attributes:
        above, to: their confidence is more than the one (in the first bin it can be 0) and at most the other.
        replies: how many answers these are.
        confidence: mean confidence.
        right: share that is right.
    """

    above: float
    to: float
    replies: int
    confidence: float
    right: Estimate


@dataclass(frozen=True)
class Calibration(Measured):
    """Confidence against what is right, over all answers that have both.

    The confidence is the probability of the label chosen among the labels shown, or what a reply states.

    Attributes:
        replies: how many answers these are.
        numbers: see :func:`calibration`.
        bins: those with an answer, for the reliability diagram.
    """

    replies: int
    numbers: Numbers
    bins: tuple[CalibrationBin, ...]


@metric("calibration.confidence", "confidence", "probability of the label chosen as published, or as the reply states",
        unit="share")  # fmt: skip
@metric("calibration.right", "right, of these", "share right of the answers with a confidence", unit="share")
@metric("calibration.ece", "ECE", "mean distance between confidence and share right, in ten equal bins",
        unit="share", source="Guo et al. 2017")  # fmt: skip
@metric("calibration.ece_by_chance", "ECE by chance", "ECE of answers right exactly as often as the confidence says",
        unit="share", plain=True)  # fmt: skip
@metric("calibration.p", "p", "test that answers are right as often as the confidence says", unit="p",
        source="Bröcker and Smith 2007")  # fmt: skip
@metric("calibration.brier", "Brier score", "mean squared distance of confidence from right (1) or wrong (0)",
        unit="share", source="Brier 1950")  # fmt: skip
def calibration(
    question: Ints, confidence: Floats, right: Bools, bootstrap: Bootstrap, least: float = 0.0
) -> Calibration | None:
    """Calibration of R answers; None if there are none.

    ECE: in :data:`BINS` bins of equal width, the mean distance between confidence and share right, weighted by answers
    (Guo et al. 2017, eq. 3). Chance alone makes it more than 0, so it is shown with what it is on average for answers
    of the same confidence that are right exactly that often, and with the share ``p`` of such samples whose ECE is as
    large (Bröcker and Smith 2007). The Brier score is over the answer given, 0.25 for saying 0.5 always: not
    the sum over all options that lm-eval calls ``brier_score``.

    Args:
        question: (R,) row of the question in what ``bootstrap`` resamples.
        confidence: (R,) ``least`` to 1; that of the most probable of n labels is at least 1/n.
        right: (R,) whether the answer is right.
    """
    if not len(question):
        return None
    size, hit = bootstrap.n_questions, right.astype(np.float64)
    # rounded, so that a confidence of 0.3 is in the bin up to 0.3
    bins = np.clip(np.ceil(np.round(confidence * BINS, 9)).astype(np.int64) - 1, 0, BINS - 1)

    def mean(values: Floats, of: Bools, least: float = 0.0, over: Bootstrap = bootstrap) -> Estimate:
        counts = np.bincount(question[of], minlength=size).astype(np.float64)
        totals = np.bincount(question[of], values[of], size).astype(np.float64)
        return over.ratio(totals, counts, bounds=(least, 1.0), room="bounds, unsure")

    every = np.ones(len(bins), bool)
    # where most right options have the label that a model falls back on, unsure answers are mostly right, and do not
    # show the large distances of the wrong ones
    unsure = bootstrap.unsure & (np.bincount(question, ~right, size) > 0)
    error = float(np.abs(np.bincount(bins, confidence - hit, BINS)).sum() / len(bins))
    # Answers to one question, or to questions on one passage, are taken to be right together: the test is cautious.
    chance = _by_chance(bootstrap.sampling.unit[question], bins, confidence, bootstrap.seed)
    numbers: dict[str, Estimate | float] = {
        "calibration.confidence": mean(confidence, every, least),
        "calibration.right": mean(hit, every),
        "calibration.ece": Estimate.bare(error, len(np.unique(question)), "holds chance as well: no interval"),
        "calibration.ece_by_chance": float(chance.mean()),
        "calibration.p": float((1 + (chance >= error - 1e-12).sum()) / (1 + len(chance))),
        "calibration.brier": mean((confidence - hit) ** 2, every, over=bootstrap.knowing(unsure)),
    }
    return Calibration(
        len(question),
        Numbers(numbers),
        tuple(
            CalibrationBin(b / BINS, (b + 1) / BINS, int(of.sum()), float(confidence[of].mean()), mean(hit, of))
            for b in range(BINS)
            if (of := bins == b).any()
        ),
    )


def _by_chance(unit: Ints, bins: Ints, confidence: Floats, seed: int) -> Floats:
    """ECE of samples in which answers of confidence c are right with probability c, all of a unit by the same draw."""
    rng = np.random.default_rng(seed)
    by_bin = np.argsort(bins, kind="stable")
    _, starts = np.unique(bins[by_bin], return_index=True)
    units, unit = np.unique(unit[by_bin], return_inverse=True)
    errors: list[Floats] = []
    step = max(1, _AT_ONCE // len(bins))  # draws at a time, so that memory stays small
    for start in range(0, _DRAWS, step):
        right = rng.random((min(step, _DRAWS - start), len(units)))[:, unit] < confidence[by_bin]
        gaps = np.add.reduceat(confidence[by_bin] - right, starts, axis=1)
        errors.append(np.abs(gaps).sum(axis=1) / len(bins))
    return np.concatenate(errors)


def given_calibration(scores: OrderScores, right: Floats, bootstrap: Bootstrap) -> Calibration | None:
    """Calibration of the scored labels under the given order; None for replies, whose probabilities are 0 and 1.

    Args:
        right: (Q,) whether the question is right under the given order; nan where unknown.
    """
    rows = np.flatnonzero(np.isfinite(right) & (scores.given.chosen >= 0) & scores.is_scored)
    return calibration(rows, scores.given.probs[rows].max(axis=1), right[rows] > 0, bootstrap, 1 / scores.width)
