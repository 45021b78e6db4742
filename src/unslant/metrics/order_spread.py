"""How far the score of the whole set moves with the order, and how far it would by chance alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.estimate import Estimate
from unslant.metrics.registry import Measured, Numbers, metric
from unslant.metrics.scores import OrderScores


@dataclass(frozen=True)
class CochranTest:
    """Whether the orders differ at all: Cochran's Q on questions that were all shown in the same orders.

    Attributes:
        n_options, orders, questions: what was tested; a question right or wrong in every order decides nothing.
        q: Cochran's Q (Cochran 1950).
        degrees: orders - 1.
        epsilon: Huynh and Feldt's (1976) measure of how alike orders are, up to 1. Orders with the same option on top
            are right and wrong together, so that Q varies more than chi-squared with ``degrees``.
        p: chance of so large a Q where no order is better than another: that of chi-squared at epsilon Q, with epsilon
            times ``degrees``.
    """

    n_options: int
    orders: int
    questions: int
    q: float
    degrees: int
    epsilon: float
    p: float


@dataclass(frozen=True)
class OrderAccuracy(Measured):
    """Accuracy of the whole set under one order after another.

    Attributes:
        numbers: AccStd, worst and best order; ``p`` of all tests together, their Qs and degrees added up.
        tests: Cochran's Q for each set of questions that were shown in the same orders.
    """

    numbers: Numbers
    tests: tuple[CochranTest, ...]


_KEYS = ("acc_std", "acc_std_by_chance", "acc_std_corrected", "over_orders.worst", "over_orders.best")
SAMPLED_NOTE = "orders were sampled for each question, so order k is a different one for each: mostly chance"
_RANGE_NOTE = "the range over the orders shown: no interval"
_STD_NOTE = "holds chance as well: compare the value by chance; no interval"
_FOUND_NOTE = "no interval: see the test of whether orders differ"


@metric("over_orders.worst", "accuracy, worst order", "whole set under one order", unit="share", short="worst order")
@metric("over_orders.best", "accuracy, best order", "whole set under one order", unit="share", short="best order")
@metric("acc_std", "AccStd", "spread of accuracy over the orders", digits=4, source='P1, "Perm Acc Std"')
@metric("acc_std_by_chance", "AccStd by chance", "what AccStd would be if no order were better", digits=4)
@metric("acc_std_corrected", "AccStd, chance taken out", "spread that the orders themselves make", digits=4)
@metric("over_orders.p", "p", "Cochran's Q: no order is better than another", unit="p", source="Cochran 1950")
def order_accuracy(scores: OrderScores) -> OrderAccuracy:
    """AccStd (P1, "Perm Acc Std"), the accuracy under the worst and best order, and whether orders differ at all.

    "Order k" is the k-th in lexicographic order. Questions with other option or order counts have no order k in
    common, so each group's order is taken to be drawn independently of the other groups'. With group g holding a
    share w_g of the questions: AccStd^2 = sum_g w_g^2 Var_k(accuracy of g under order k); worst and best are
    sum_g w_g min_k and sum_g w_g max_k. For one group this is the plain definition.

    The part of chance is that of a two-way layout of questions by orders: the mean square of what neither explains,
    divided by the number of questions (times (K-1)/K, AccStd being a population value).
    """
    rights, tests = [], []
    for block in scores.blocks:
        right = block.right
        answered = np.isfinite(right[:, 0])
        if not answered.any():
            continue
        rights.append(right[answered])
        _, shown = np.unique(block.positions.reshape(len(right), -1), axis=0, return_inverse=True)
        for code in np.unique(shown[answered]):
            same = right[answered & (shown == code)]
            if len(same) > 1 and block.k > 1:
                tests.append(cochran(same, block.n))
    n = sum(map(len, rights))
    if all(right.shape[1] < 2 for right in rights):
        empty = dict.fromkeys(_KEYS, Estimate.undefined("needs two or more orders a question"))
        return OrderAccuracy(Numbers({**empty, "over_orders.p": math.nan}), ())
    weights = [len(right) / n for right in rights]
    means = [right.mean(axis=0) for right in rights]
    variance = sum(w**2 * float(mean.var()) for w, mean in zip(weights, means, strict=True))
    chance = sum(w**2 * _chance_variance(right) for w, right in zip(weights, rights, strict=True))
    mean = float(np.concatenate([right.mean(axis=1) for right in rights]).mean())
    worst = min(mean, sum(w * float(mean.min()) for w, mean in zip(weights, means, strict=True)))
    best = max(mean, sum(w * float(mean.max()) for w, mean in zip(weights, means, strict=True)))
    sampled = "" if all(block.same_orders for block in scores.blocks) else f"{SAMPLED_NOTE}; "

    def bare(value: float, note: str) -> Estimate:
        return Estimate.bare(value, n, sampled + note)

    found: dict[str, Estimate | float] = {
        "acc_std": bare(math.sqrt(variance), _STD_NOTE),
        "acc_std_by_chance": bare(math.sqrt(chance), "expected where no order is better than another: no interval"),
        "acc_std_corrected": bare(math.sqrt(max(0.0, variance - chance)), _FOUND_NOTE),
        "over_orders.worst": bare(worst, _RANGE_NOTE),
        "over_orders.best": bare(best, _RANGE_NOTE),
        "over_orders.p": _together(tests),
    }
    return OrderAccuracy(Numbers(found), tuple(tests))


def _chance_variance(right: Floats) -> float:
    """Expected population variance over K orders of the mean over Q questions where orders do not differ."""
    questions, orders = right.shape
    if questions < 2:
        return float(right.mean(axis=0).var())
    within = ((right - right.mean(axis=1, keepdims=True)) ** 2).sum()
    between = questions * orders * right.mean(axis=0).var()
    return float(max(0.0, within - between) / (orders * questions * (questions - 1)))


def cochran(right: Floats, n_options: int) -> CochranTest:
    """Cochran's Q of (Q, K) answers that are right (1) or wrong (0), two questions and two orders at least."""
    questions, orders = right.shape
    rest = right - right.mean(axis=1, keepdims=True)
    within = float((rest**2).sum())
    if within == 0:
        return CochranTest(n_options, orders, questions, 0.0, orders - 1, 1.0, 1.0)
    q = orders * (orders - 1) * float((rest.sum(axis=0) ** 2).sum()) / (orders * within)
    epsilon = _epsilon(np.atleast_2d(np.cov(rest, rowvar=False)), questions)
    return CochranTest(n_options, orders, questions, q, orders - 1, epsilon, _chi2(q, orders - 1, epsilon))


def _epsilon(covariance: Floats, questions: int) -> float:
    """Huynh and Feldt's epsilon from the (K, K) covariance of answers less their question's mean."""
    degrees = len(covariance) - 1
    square = float((covariance**2).sum())
    if square == 0:
        return 1.0
    box = float(np.trace(covariance)) ** 2 / (degrees * square)
    below = degrees * (questions - 1 - degrees * box)
    epsilon = (questions * degrees * box - 2) / below if below > 0 else 1.0
    return min(1.0, max(1 / degrees, epsilon))


def _chi2(q: float, degrees: float, epsilon: float) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(epsilon * degrees, epsilon * q))


def _together(tests: list[CochranTest]) -> float:
    if not tests:
        return math.nan
    return _chi2(sum(t.epsilon * t.q for t in tests), sum(t.epsilon * t.degrees for t in tests), 1.0)
