"""Every metric of every single question: what means, subject tables, scatter plots and pairs start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.accuracy import correct, correct_under_orders, vote_correct
from unslant.metrics.permutation import consistent, flipped, normalised_pbm, pbm
from unslant.metrics.rounds import pbm_of_all
from unslant.metrics.scores import OrderScores
from unslant.metrics.ties import is_tie
from unslant.metrics.vote import vote

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class Measures(Generic[T]):
    """One T per metric: the values of all questions (:data:`QuestionMeasures`), or their mean with its interval.

    Accuracies are undefined without a right option. PBM, normalised PBM and consistency need two or more orders;
    accuracies over orders are defined with one (where every option is pinned, say), so that they cover the same
    questions as the accuracy under the given order.

    Attributes:
        accuracy: right under the given order; the first label shown wins a tie.
        accuracy_last_tie, accuracy_split_tie: the same with the other tie rules.
        expected_accuracy: share of orders under which it is right: the score whatever the order.
        order_advantage: accuracy minus expected accuracy: what the given order adds.
        vote_accuracy, hard_vote_accuracy: the voted answer is right.
        robust_accuracy: right under every order.
        chance: share of options that are right.
        pbm, normalised_pbm, consistency: see :mod:`unslant.metrics.permutation`.
        fr, fr_labels, fr_both: the answer changes when the order, the labels, or both are reversed.
        tie_rate: several options are most probable under the given order.
        order_tie_rate: share of orders under which they are.
        vote_tie_rate: the soft vote is tied.
        answered: share of replies, over all orders, that are an answer; undefined where labels are scored.
        answered_accuracy: right under the given order, of the questions answered there; undefined likewise.
        label_mass: probability of all labels together, of the whole vocabulary; small where the model is about to say
            something else than a label. Undefined where scores are normalised over the labels.
        margin: probability of the most probable label less that of the next, among the labels, under the given order;
            0 for a tie, undefined for replies.
    """

    accuracy: T
    accuracy_last_tie: T
    accuracy_split_tie: T
    expected_accuracy: T
    order_advantage: T
    vote_accuracy: T
    hard_vote_accuracy: T
    robust_accuracy: T
    chance: T
    pbm: T
    normalised_pbm: T
    consistency: T
    fr: T
    fr_labels: T
    fr_both: T
    tie_rate: T
    order_tie_rate: T
    vote_tie_rate: T
    answered: T
    answered_accuracy: T
    label_mass: T
    margin: T

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of the metrics, in the order of a table."""
        return tuple(f.name for f in fields(cls))

    def map(self, function: Callable[[str, T], S]) -> Measures[S]:
        """``function(name, value)`` of every metric."""
        return Measures[S](**{name: function(name, getattr(self, name)) for name in self.names()})


QuestionMeasures: TypeAlias = Measures[Floats]
"""The values of all questions: each metric (Q,) in the order of ``OrderScores.ids``, ``nan`` where undefined."""


BOUNDS = {"pbm": (0.0, 0.25), "order_advantage": (-1.0, 1.0)}
"""Least and greatest value of the metrics that are not shares."""


def measure(scores: OrderScores) -> QuestionMeasures:
    """All per-question values."""
    size = len(scores)
    per_order = {
        name: np.full(size, np.nan)
        for name in ("expected", "robust", "pbm", "normalised", "consistency", "ties", "answered")
    }
    for block in scores.blocks:
        right = correct_under_orders(block)
        per_order["expected"][block.index] = right.mean(axis=1)
        per_order["robust"][block.index] = np.where(np.isnan(right[:, 0]), np.nan, right.min(axis=1))
        per_order["ties"][block.index] = is_tie(block.probs).mean(axis=1)
        per_order["answered"][block.index] = (block.chosen >= 0).mean(axis=1)
        if block.k > 1:
            per_order["pbm"][block.index] = (
                pbm(block.probs) if scores.whole is None else pbm_of_all(block, scores.whole[block.index])
            )
            per_order["normalised"][block.index] = normalised_pbm(block.probs)
            per_order["consistency"][block.index] = consistent(block.probs, block.positions)
    if not (scores.order_counts > 1).any():  # nothing was reordered: no number here says anything about orders
        for name, values in per_order.items():
            if name != "answered":
                values[:] = np.nan
    in_words = not scores.is_scored
    if not in_words:  # an order without an answer, a refusal say, has no probabilities to compare
        for name in ("pbm", "normalised"):
            per_order[name][per_order["answered"] < 1] = np.nan
    soft, hard = vote(scores), vote(scores, "hard")
    voted = scores.order_counts > 0 if (scores.order_counts > 1).any() else np.zeros(size, bool)
    accuracy = correct(scores, scores.given)
    given_tie = np.where(scores.given.ok, is_tie(scores.given.probs).astype(np.float64), np.nan)
    return Measures(
        accuracy=accuracy,
        accuracy_last_tie=correct(scores, scores.given, "last"),
        accuracy_split_tie=correct(scores, scores.given, "split"),
        expected_accuracy=per_order["expected"],
        order_advantage=accuracy - per_order["expected"],
        vote_accuracy=np.where(voted, vote_correct(scores, soft), np.nan),
        hard_vote_accuracy=np.where(voted, vote_correct(scores, hard), np.nan),
        robust_accuracy=per_order["robust"],
        chance=np.where(scores.has_answer, scores.answers.sum(axis=1) / scores.n_options, np.nan),
        pbm=per_order["pbm"],
        normalised_pbm=per_order["normalised"],
        consistency=per_order["consistency"],
        fr=flipped(scores, scores.reversed),
        fr_labels=flipped(scores, scores.labels_reversed),
        fr_both=flipped(scores, scores.both_reversed),
        tie_rate=given_tie,
        order_tie_rate=per_order["ties"],
        vote_tie_rate=np.where(voted, soft.tied.astype(np.float64), np.nan),
        answered=per_order["answered"] if in_words else np.full(size, np.nan),
        answered_accuracy=np.where(in_words & (scores.given.chosen >= 0), accuracy, np.nan),
        label_mass=np.full(size, np.nan) if scores.label_mass is None else scores.label_mass,
        margin=np.full(size, np.nan) if in_words else _margin(scores),
    )


def _margin(scores: OrderScores) -> Floats:
    """(Q,) see :class:`Measures`."""
    second, first = np.sort(scores.given.probs, axis=1)[:, -2:].T
    margin: Floats = np.where(scores.given.ok, first - second, np.nan)
    return margin
