"""How much answers and scores move with the order of the options, and when the same page is asked again.

First of single questions: no right answer is needed. The functions named like the papers' metrics take probabilities
P[..., k, i] of option content i under order k, over the shown labels only (each row sums to 1), of one question or any
leading axes of questions. Then of the whole set: how far its score moves with the order, and would by chance alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.registry import NEEDS_ORDERS, Measured, Numbers, metric, question_metric
from unslant.metrics.sampling import Codes, by_unit, too_few
from unslant.metrics.scores import Block, OrderScores, View, is_tie, over_orders


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
        result[over_orders(scores, lambda block: (block.chosen < 0).sum(axis=1)) > 0] = np.nan
    return result


@question_metric("consistency", "consistency", "questions with the same answer in every order", unit="share",
                 unmoved=1.0)  # fmt: skip
def consistency(scores: OrderScores) -> Floats:
    """A question with a reply that contains no answer is not consistent."""

    def same(block: Block) -> Bools:
        return np.asarray(((block.chosen == block.chosen[:, :1]) & (block.chosen >= 0)).all(axis=1))

    return over_orders(scores, same, least=2)


@metric("unsure", "unsure", "questions whose answer changes with the order or the labels", unit="share")
def unsure_questions(scores: OrderScores) -> Floats:
    """(Q,) 1 where the answer changes with the order or the place of the labels, 0 where not; nan with one order."""
    result = np.full(len(scores), np.nan)
    for block in scores.blocks:
        if block.k > 1:
            # All pages count alike. Were questions picked by their orders alone, content would seem to attract less
            # there than on the other pages, and the label it carries on those more.
            others = [np.where(view.ok, view.chosen, -1)[block.index] for view in scores.relabelled]
            pages = np.column_stack([block.chosen, *others])
            changes = ((pages >= 0) & (pages != pages.max(axis=1, keepdims=True))).any(axis=1)
            result[block.index] = np.where((block.chosen >= 0).any(axis=1), changes, np.nan)
    return result


def flipped(scores: OrderScores, other: View) -> Floats:
    """Whether the chosen content differs between the given order and another view (fluctuation, P1 eq. 3).

    Returns:
        (Q,) 0, 1, or nan where either reply is missing or no answer, or both views show the same page.
    """
    first = scores.given
    differs: Floats = (first.chosen != other.chosen).astype(np.float64)
    same_page = (first.positions == other.positions).all(axis=1) & (first.labels == other.labels).all(axis=1)
    answered = first.ok & other.ok & (first.chosen >= 0) & (other.chosen >= 0)
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


@question_metric("tie_rate", "ties", "several options equally probable, as published", unit="share",
                 missing="no usable answer to the given order")  # fmt: skip
def tie_rate(scores: OrderScores) -> Floats:
    return np.where(scores.given.ok, is_tie(scores.given.probs).astype(np.float64), np.nan)


@question_metric("order_tie_rate", "ties, all orders", "share of orders with several options equally probable",
                 unit="share", unmoved=0.0, averaged=True)  # fmt: skip
def order_tie_rate(scores: OrderScores) -> Floats:
    return over_orders(scores, lambda block: is_tie(block.probs).mean(axis=1))


@question_metric("margin", "margin", "probability of the label chosen minus that of the runner-up, as published",
                 unit="share", missing="answers are replies, not scores")  # fmt: skip
def margin(scores: OrderScores) -> Floats:
    """Among the labels; 0 for a tie."""
    if not scores.is_scored:
        return np.full(len(scores), np.nan)
    second, first = np.sort(scores.given.probs, axis=1)[:, -2:].T
    return np.where(scores.given.ok, first - second, np.nan)


@question_metric("label_mass", "label mass", "probability of all labels together, among all possible next tokens",
                 unit="share", missing="no log-probabilities over the whole vocabulary")  # fmt: skip
def label_mass(scores: OrderScores) -> Floats:
    """Small where the model would probably say something other than a label; nan for scores normalised over labels."""
    return np.full(len(scores), np.nan) if scores.label_mass is None else scores.label_mass


def flips(answers: Sequence[int]) -> float:
    """Share of pairs of answers that differ; those below 0 are no answers. nan with fewer than two."""
    _, counts = np.unique([answer for answer in answers if answer >= 0], return_counts=True)
    n = counts.sum()
    return float(1 - (counts * (counts - 1)).sum() / (n * (n - 1))) if n > 1 else math.nan


@metric("noise.between_orders", "flips between orders", "pairs of orders with different answers", unit="share")
@metric("noise.between_repeats", "flips between repeats", "pairs of replies to the same page that differ", unit="share")
@metric("noise.beyond_noise", "flips beyond noise", "between orders minus between repeats, same questions",
        unit="difference")  # fmt: skip
@metric("unparsed", "unparsed", "replies in which no answer could be read; they count as not right", unit="share")
@metric("refused", "refused", "refusals; they count as not right", unit="share")
@metric("unreadable", "no answer", "replies without an answer, unparsed or refused; they count as not right",
        unit="share")  # fmt: skip
@metric("readable", "right among readable replies", "accuracy over the replies that contain an answer", unit="share")
@metric("errors", "no reply", "requests without a reply; they are left out of the accuracy", unit="share")
def noise_floor(
    ids: Sequence[str],
    by_order: Mapping[str, Sequence[int]],
    by_repeat: Mapping[str, Sequence[Sequence[int]]],
    bootstrap: Bootstrap,
) -> Numbers:
    """How often two answers to a question differ: between orders, between repeats, and by order beyond repeats.

    Replies without an answer are in no pair; a question without a pair is left out, and N says so.

    Args:
        ids: the questions that ``bootstrap`` resamples.
        by_order: question -> its answer under each order.
        by_repeat: question -> for every page that was shown again, all answers to it.
    """

    def of(pages: Mapping[str, Sequence[Sequence[int]]]) -> Floats:
        by_question = [[share for page in pages.get(name, ()) if (share := flips(page)) == share] for name in ids]
        return np.asarray([np.mean(shares) if shares else np.nan for shares in by_question])

    orders, repeats = of({name: [answers] for name, answers in by_order.items()}), of(by_repeat)
    once = "nothing was asked twice"
    numbers = {
        "noise.between_orders": bootstrap.mean(orders, note=NEEDS_ORDERS),
        "noise.between_repeats": bootstrap.mean(repeats, note=once),
        "noise.beyond_noise": bootstrap.mean(orders - repeats, share=False, note=once),
    }
    return Numbers(numbers)


@dataclass(frozen=True)
class CochranTest:
    """Whether the orders differ at all: Cochran's Q on questions that were all shown in the same orders.

    Attributes:
        n_options, orders, questions: what was tested; a question right or wrong in every order decides nothing.
        q: Cochran's Q (Cochran 1950).
        degrees: orders - 1.
        epsilon: Huynh and Feldt's (1976) measure of how alike orders are, up to 1. Orders with the same option on top
            are right and wrong together, so that Q varies more than chi-squared with ``degrees``.
        p: chance of so large a Q where no order is better: that of chi-squared at epsilon Q, epsilon ``degrees``.
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
_SAMPLED = "orders were sampled for each question, so order k is a different one for each: mostly chance; "
_RANGE = "the range over the orders shown: no interval"


@metric("over_orders.worst", "accuracy, worst order", "worst order of each option count", unit="share",
        short="worst order")  # fmt: skip
@metric("over_orders.best", "accuracy, best order", "best order of each option count", unit="share",
        short="best order")  # fmt: skip
@metric("acc_std", "AccStd", "spread of accuracy over the orders", digits=4, source='P1, "Perm Acc Std"')
@metric("acc_std_by_chance", "AccStd by chance", "what AccStd would be if no order were better", digits=4)
@metric("acc_std_corrected", "AccStd, chance taken out", "spread of accuracy that the orders cause", digits=4)
@metric("over_orders.p", "p", "Cochran's Q test that no order is better than another", unit="p", source="Cochran 1950")
def order_accuracy(scores: OrderScores, unit: Codes | None = None) -> OrderAccuracy:
    """AccStd (P1, "Perm Acc Std"), the accuracy under the worst and best order, and whether orders differ at all.

    "Order k" is the k-th in lexicographic order. Questions with other option or order counts have no order k in
    common, so each group's order is taken to be drawn independently of the other groups'. With group g holding a
    share w_g of the questions: AccStd^2 = sum_g w_g^2 Var_k(accuracy of g under order k); worst and best are
    sum_g w_g min_k and sum_g w_g max_k. For one group this is the plain definition.

    The part of chance is that of a two-way layout of questions by orders: the mean square of what neither explains,
    divided by the number of questions (times (K-1)/K, AccStd being a population value).

    Args:
        unit: (Q,) number of the passage of each question, where some share one: answers about it can go with the same
            order, so that chance and the test rest on totals of passages.
    """
    rights, units, tests = [], [], []
    for block in scores.blocks:
        right = block.right
        scored = np.isfinite(right[:, 0])
        if not scored.any():
            continue
        block_unit = np.arange(len(right)) if unit is None else unit[block.index]
        rights.append(right[scored])
        units.append(block_unit[scored])
        _, orders = np.unique(block.positions.reshape(len(right), -1), axis=0, return_inverse=True)
        for code in np.unique(orders[scored]):
            same = scored & (orders == code)
            if same.sum() > 1 and block.k > 1 and not too_few(block_unit[same]):
                tests.append(cochran(right[same], block.n, block_unit[same]))
    n = sum(map(len, rights))
    if all(right.shape[1] < 2 for right in rights):
        empty = dict.fromkeys(_KEYS, Estimate.undefined(NEEDS_ORDERS))
        return OrderAccuracy(Numbers({**empty, "over_orders.p": math.nan}), ())
    weights = [len(right) / n for right in rights]
    means = [right.mean(axis=0) for right in rights]
    variance = sum(w**2 * float(mean.var()) for w, mean in zip(weights, means, strict=True))
    chances = map(_chance_variance, rights, units)
    chance = sum(w**2 * part for w, part in zip(weights, chances, strict=True))
    mean = float(np.concatenate([right.mean(axis=1) for right in rights]).mean())
    worst = min(mean, sum(w * float(mean.min()) for w, mean in zip(weights, means, strict=True)))
    best = max(mean, sum(w * float(mean.max()) for w, mean in zip(weights, means, strict=True)))
    sampled = _SAMPLED * any(not block.same_orders for block in scores.blocks)
    corrected = math.sqrt(max(0.0, variance - chance))
    numbers = {
        "acc_std": (math.sqrt(variance), "holds chance as well: compare the value by chance; no interval"),
        "acc_std_by_chance": (math.sqrt(chance), "expected where no order is better than another: no interval"),
        "acc_std_corrected": (corrected, "no interval: see the test of whether orders differ"),
        "over_orders.worst": (worst, _RANGE),
        "over_orders.best": (best, _RANGE),
    }
    q, degrees = sum(t.epsilon * t.q for t in tests), sum(t.epsilon * t.degrees for t in tests)
    p = _chi2(q, degrees, 1.0) if tests else math.nan
    estimates = {key: Estimate.bare(value, n, sampled + note) for key, (value, note) in numbers.items()}
    return OrderAccuracy(Numbers({**estimates, "over_orders.p": p}), tuple(tests))


def _chance_variance(right: Floats, unit: Codes) -> float:
    """Expected population variance over K orders of the mean over Q questions where orders do not differ."""
    rest = by_unit(right - right.mean(axis=1, keepdims=True), unit)
    units = len(rest)
    if units < 2:
        return float(right.mean(axis=0).var())
    return float(((rest - rest.mean(axis=0)) ** 2).sum()) * units / (units - 1) / right.size / len(right)


def cochran(right: Floats, n_options: int, unit: Codes) -> CochranTest:
    """Cochran's Q of (Q, K) answers that are right (1) or wrong (0), two questions and two orders at least.

    Q compares the totals of orders with what they would vary by if orders did not matter. That is the sum of squares of
    each question's answers about their mean or, where questions share a passage, of the passage's totals of these.
    """
    orders, degrees = right.shape[1], right.shape[1] - 1
    rest = by_unit(right - right.mean(axis=1, keepdims=True), unit)
    questions = len(rest)
    within, covariance = float((rest**2).sum()), np.atleast_2d(np.cov(rest, rowvar=False))
    q = orders * degrees * float((rest.sum(axis=0) ** 2).sum()) / (orders * within) if within else 0.0
    epsilon, square = 1.0, float((covariance**2).sum())
    if square:
        box = float(np.trace(covariance)) ** 2 / (degrees * square)
        below = degrees * (questions - 1 - degrees * box)
        epsilon = min(1.0, max(1 / degrees, (questions * degrees * box - 2) / below)) if below > 0 else 1.0
    return CochranTest(n_options, orders, len(right), q, degrees, epsilon, _chi2(q, degrees, epsilon))


def _chi2(q: float, degrees: float, epsilon: float) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(epsilon * degrees, epsilon * q))
