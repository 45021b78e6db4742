"""How much the answer to one question moves with the order of its options. No right answer is needed.

The functions named like the papers' metrics take probabilities P[..., k, i] of option content i under order k, over the
shown labels only (each row sums to 1), of one question or any leading axes of questions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats
from unslant.metrics.registry import question_metric
from unslant.metrics.scores import Block, OrderScores, View, over_orders
from unslant.metrics.ties import choose, is_tie


def pbm(probs: Floats) -> Floats:
    """Permutation bias metric of each question: mean over contents of the variance over orders (P1, eq. 1-2).

    Population variance (ddof 0); eq. 2 is misprinted there, the text and every use of it mean the variance. An
    implementation with the unbiased variance gives K/(K-1) of this.

    Args:
        probs: (..., K, n).

    Returns:
        (...), from 0 (the same probabilities under every order) to (n-1)/n^2 (always certain, of every content equally
        often), which is 1/4 for n = 2.
    """
    # a variance does not change with a shift; shifted by the first order, equal orders give exactly 0
    result: Floats = (probs - probs[..., :1, :]).var(axis=-2).mean(axis=-1)
    return result


def normalised_pbm(probs: Floats) -> Floats:
    """PBM divided by the largest value that n options with the same mean probabilities can have.

    A probability with mean m has variance at most m(1-m), reached when it is only ever 0 or 1; so the largest PBM is
    mean_i m_i(1-m_i). A model that always answers A has 1 for every n, one that ignores the order 0.

    Args:
        probs: (..., K, n).

    Returns:
        (...), 0 to 1; 0 where the mean is certain of one option (nothing can move then).
    """
    mean = probs.mean(axis=-2)
    largest = (mean * (1 - mean)).mean(axis=-1)
    value = pbm(probs)
    share: Floats = np.divide(value, largest, out=np.zeros_like(value), where=largest > 0)
    return np.clip(share, 0.0, 1.0)


def consistent(probs: Floats, positions: NDArray[np.integer]) -> Bools:
    """Whether the chosen content is the same under all orders; among tied options the first shown is chosen.

    A question with a reply that contains no answer is not consistent.

    Args:
        probs, positions: (..., K, n).

    Returns:
        (...)
    """
    chosen = choose(probs, positions)
    same: Bools = ((chosen == chosen[..., :1]) & (chosen >= 0)).all(axis=-1)
    return same


@question_metric("pbm", "PBM", "variance of an option's probability over the orders", digits=4, source="P1 eq. 1-2",
                 bounds=(0.0, 0.25), unmoved=0.0)  # fmt: skip
def question_pbm(scores: OrderScores) -> Floats:
    return _scored(scores, lambda block: pbm(block.probs))


@question_metric("normalised_pbm", "PBM, normalised", "share of its maximum", unit="share", unmoved=0.0)
def question_normalised_pbm(scores: OrderScores) -> Floats:
    return _scored(scores, lambda block: normalised_pbm(block.probs))


def _scored(scores: OrderScores, value: Callable[[Block], Floats]) -> Floats:
    """(Q,) a value of probabilities under two orders or more."""
    result = over_orders(scores, value, least=2)
    if scores.is_scored:  # an order without an answer, a refusal say, has no probabilities to compare
        result[over_orders(scores, _unanswered) == 1] = np.nan
    return result


def _unanswered(block: Block) -> Bools:
    return np.asarray((block.chosen < 0).any(axis=1))


@question_metric("consistency", "consistency", "questions with the same answer in every order", unit="share",
                 unmoved=1.0)  # fmt: skip
def consistency(scores: OrderScores) -> Floats:
    return over_orders(scores, lambda block: consistent(block.probs, block.positions), least=2)


def flipped(scores: OrderScores, other: View) -> Floats:
    """Whether the chosen content differs between the given order and another view (fluctuation, P1 eq. 3).

    Returns:
        (Q,) 0, 1, or nan where either reply is missing or no answer, or the view cannot differ (fewer than two movable
        options and the labels in place).
    """
    given = scores.given
    differs: Floats = (given.chosen != other.chosen).astype(np.float64)
    same_page = (given.positions == other.positions).all(axis=1) & (given.labels == other.labels).all(axis=1)
    answered = given.ok & other.ok & (given.chosen >= 0) & (other.chosen >= 0)
    differs[~answered | same_page] = np.nan
    return differs


@question_metric("fr", "flips when reversed (FR)", "answer changes when the order is reversed", unit="share",
                 source="P1 eq. 3", short="FR",
                 missing="no answers to the reversed order, or nothing to reverse")  # fmt: skip
def fr(scores: OrderScores) -> Floats:
    return flipped(scores, scores.reversed)


@question_metric("fr_labels", "flips, labels reversed", "answer changes when only the labels are reversed",
                 unit="share", source="P1 eq. 3", missing="no answers with reversed labels")  # fmt: skip
def fr_labels(scores: OrderScores) -> Floats:
    return flipped(scores, scores.labels_reversed)


@question_metric("fr_both", "flips, both reversed", "answer changes when order and labels are reversed", unit="share",
                 source="P1 eq. 3", missing="no answers with both reversed")  # fmt: skip
def fr_both(scores: OrderScores) -> Floats:
    return flipped(scores, scores.both_reversed)


@question_metric("tie_rate", "ties", "several options equally probable, given order", unit="share",
                 missing="no usable answer to the given order")  # fmt: skip
def tie_rate(scores: OrderScores) -> Floats:
    return np.where(scores.given.ok, is_tie(scores.given.probs).astype(np.float64), np.nan)


@question_metric("order_tie_rate", "ties, all orders", "share of orders with several options equally probable",
                 unit="share", unmoved=0.0, averaged=True)  # fmt: skip
def order_tie_rate(scores: OrderScores) -> Floats:
    return over_orders(scores, lambda block: is_tie(block.probs).mean(axis=1))


@question_metric("margin", "margin", "probability of the label chosen minus that of the next, given order",
                 unit="share", missing="answers are replies, not scores")  # fmt: skip
def margin(scores: OrderScores) -> Floats:
    """Among the labels; 0 for a tie."""
    if not scores.is_scored:
        return np.full(len(scores), np.nan)
    second, first = np.sort(scores.given.probs, axis=1)[:, -2:].T
    return np.where(scores.given.ok, first - second, np.nan)


@question_metric("label_mass", "label mass", "probability of all labels together, of all that could be said next",
                 unit="share", missing="no log-probabilities over the whole vocabulary")  # fmt: skip
def label_mass(scores: OrderScores) -> Floats:
    """Small where the model would probably say something other than a label; nan for scores normalised over labels."""
    return np.full(len(scores), np.nan) if scores.label_mass is None else scores.label_mass
