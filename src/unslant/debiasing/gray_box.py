"""Gray-box debiasing: the given and the reversed order together (Wei et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from unslant.arrays import Floats
from unslant.debiasing.asker import Asker
from unslant.debiasing.base import Method, OrderDebiaser, Outcome
from unslant.debiasing.pride import ask_labels, check_share, drawn_questions, sizes_without
from unslant.presentations import Order, orders_for
from unslant.questions import Question


@dataclass(frozen=True)
class GrayBox(Method):
    """The mean of each option's probability in the given and the reversed order. Two presentations per question.

    Reversing the file's order does not change the answer; any other rearrangement may. No right answers needed.

    Args:
        calibrated: divide each label's probability by the label's frequency among answers before averaging. The
            frequencies come from both orders of a share of the questions to fit on, separately for each number of
            options; one is added to every count.
        share: that share, above 0 and up to 1.
        seed: for drawing it.
    """

    calibrated: bool = False
    share: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        check_share("share", self.share)

    @property
    def name(self) -> str:
        return "gray-box-calibrated" if self.calibrated else "gray-box"

    @property
    def needs_fit(self) -> bool:
        return self.calibrated

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> OrderDebiaser:
        if not self.calibrated:
            return _TwoOrders(asker, {})
        frequencies = {}
        sample = drawn_questions(questions, self.share, self.seed)
        for n, by_label in ask_labels(asker, sample, lambda question: orders_for(question, "reverse")).items():
            # One is added to every count: a label that is never answered would be divided by 0.
            counts = 1 + np.bincount(np.concatenate(by_label).argmax(axis=1), minlength=n)
            frequencies[n] = counts / counts.sum()
        return _TwoOrders(asker, frequencies)


gray_box_calibrated = partial(GrayBox, calibrated=True)


def mean_of_orders(probs: Floats) -> Floats:
    """(..., n) mean over the orders of (..., K, n) probabilities by content, each order's summing to 1 first."""
    mean: Floats = (probs / probs.sum(axis=-1, keepdims=True)).mean(axis=-2)
    return mean


@dataclass(eq=False)
class _TwoOrders(OrderDebiaser):
    frequencies: Mapping[int, Floats]

    def orders(self, question: Question) -> list[Order]:
        return orders_for(question, "reverse")

    def outcome(self, question: Question, orders: Sequence[Order], probs: Floats) -> Outcome:
        frequency = self.frequencies.get(len(question.options))
        if frequency is not None:
            probs = probs / frequency[np.argsort(orders, axis=1)]
        return Outcome.by_place(mean_of_orders(probs), len(orders))

    def notes(self, questions: Sequence[Question]) -> tuple[str, ...]:
        missing = sizes_without(self.frequencies, questions) if self.frequencies else []
        averaged = (f"no label frequencies for {n} options: their answers are only averaged" for n in missing)
        return (*super().notes(questions), *averaged)
