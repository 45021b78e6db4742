"""Right and wrong: under the given order, under every order, and for the vote.

Everything is per question, ``nan`` where undefined (no answer, no right option, orders missing), so that any mean over
questions leaves those out and knows its N. An answer is right when its content is one of the right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.ties import choose, credit
from unslant.metrics.vote import VotedAnswers

TieRule = Literal["first", "last", "split"]


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
        right = np.take_along_axis(scores.answers, chosen[:, None], axis=1)[:, 0].astype(np.float64)
    right[~view.ok | ~scores.has_answer] = np.nan
    return right


def correct_under_orders(block: Block) -> Floats:
    """(Q, K) whether each question is right under each order; rows of nan where no option is right."""
    right = np.take_along_axis(block.answers, block.chosen, axis=1).astype(np.float64)
    right[~block.answers.any(axis=1)] = np.nan
    return right


def vote_correct(scores: OrderScores, voted: VotedAnswers) -> Floats:
    """(Q,) whether the voted answer is right."""
    right = np.take_along_axis(scores.answers, np.maximum(voted.content, 0)[:, None], axis=1)[:, 0].astype(np.float64)
    right[(voted.content < 0) | ~scores.has_answer] = np.nan
    return right


@dataclass(frozen=True)
class OrderAccuracy:
    """Accuracy of the whole set under one order after another.

    Attributes:
        acc_std: AccStd, population standard deviation over orders.
        worst, best: under the worst and the best order.
    """

    acc_std: Estimate
    worst: Estimate
    best: Estimate


SAMPLED_NOTE = "orders were sampled for each question, so order k is a different one for each: mostly chance"


def order_accuracy(scores: OrderScores, bootstrap: Bootstrap) -> OrderAccuracy:
    """AccStd (P1, "Perm Acc Std") and the accuracy under the worst and best order.

    "Order k" is the k-th in lexicographic order. Questions with other option or order counts have no order k in
    common, so each group's order is taken to be drawn independently of the other groups'. With group g holding a
    share w_g of the questions: AccStd^2 = sum_g w_g^2 Var_k(accuracy of g under order k); worst and best are
    sum_g w_g min_k and sum_g w_g max_k. For one group this is the plain definition.
    """
    groups = [block for block in scores.blocks if block.answers.any()]
    answered = [np.isfinite(right[:, 0]) for right in map(correct_under_orders, groups)]
    n = int(sum(mask.sum() for mask in answered))
    if not n or all(block.k < 2 for block in groups):
        empty = Estimate.undefined("needs two or more orders a question", confidence=bootstrap.confidence)
        return OrderAccuracy(empty, empty, empty)
    widths = [block.k + 1 for block in groups]
    features = np.zeros((len(scores), sum(widths)))
    start = 0
    for block, mask, width in zip(groups, answered, widths, strict=True):
        rows = block.index[mask]
        features[rows, start : start + block.k] = correct_under_orders(block)[mask]
        features[rows, start + block.k] = 1.0
        start += width

    def combine(totals: Floats, reduce: Literal["var", "min", "max"]) -> Floats:
        total, questions, at = np.zeros(len(totals)), np.zeros(len(totals)), 0
        for width in widths:
            right, size = totals[:, at : at + width - 1], totals[:, at + width - 1]
            at += width
            questions += size
            # size * accuracy is right itself, so the weights w_g need no division until the end
            total += (
                right.var(axis=1) if reduce == "var" else right.min(axis=1) if reduce == "min" else right.max(axis=1)
            )
        with np.errstate(invalid="ignore"):
            return np.sqrt(total) / questions if reduce == "var" else total / questions

    note = "" if all(block.same_orders for block in groups) else SAMPLED_NOTE
    return OrderAccuracy(
        acc_std=bootstrap.statistic(features, lambda t: combine(t, "var"), n, reflect=2, low=0, high=0.5, note=note),
        worst=bootstrap.statistic(features, lambda t: combine(t, "min"), n, reflect=1, low=0, high=1, note=note),
        best=bootstrap.statistic(features, lambda t: combine(t, "max"), n, reflect=1, low=0, high=1, note=note),
    )
