"""Gray-box debiasing: the given and the reversed order together (Wei et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, Ints
from unslant.asking import Asker, ask_orders
from unslant.debias.base import Method, OrderDebiaser, Outcome
from unslant.debias.pride import drawn_questions
from unslant.presentations import Order, given_order, reversed_order
from unslant.questions import Question


@dataclass(frozen=True)
class GrayBox(Method):
    """The mean of each option's probability in the given and the reversed order. Two presentations a question.

    The answer is independent of reversing the file's order, not of any other rearrangement. No labels needed.

    Args:
        calibrated: divide each label's probability by how often that label is answered, before averaging. The
            frequencies are measured on a share of the questions to fit on, in both orders, for each number of options
            on its own; one is added to every count.
        share: that share, 0 to 1.
        seed: of drawing it.
    """

    calibrated: bool = False
    share: float = 0.1
    seed: int = 0

    @property
    def name(self) -> str:
        return "gray-box-calibrated" if self.calibrated else "gray-box"

    @property
    def needs_fit(self) -> bool:
        return self.calibrated

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> _TwoOrders:
        if not self.calibrated:
            return _TwoOrders(asker, {})
        sample = drawn_questions(questions, self.share, self.seed)
        counts: dict[int, Floats] = {}
        orders = [_both(question) for question in sample]
        for question, own, probs in zip(sample, orders, ask_orders(asker, sample, orders), strict=True):
            n = len(question.options)
            answered = np.take_along_axis(probs, np.asarray(own), axis=1).argmax(axis=1)
            counts[n] = counts.get(n, np.ones(n)) + np.bincount(answered, minlength=n)
        return _TwoOrders(asker, {n: count / count.sum() for n, count in counts.items()})


def mean_of_orders(probs: Floats, positions: Ints | None = None, frequency: Floats | None = None) -> Floats:
    """(..., n) mean over the orders of (..., K, n) probabilities by content.

    Args:
        positions: (..., K, n) label under which each content stood, 0 = first; with ``frequency``.
        frequency: (n,) how often each label is answered; divided out before averaging.
    """
    if frequency is not None and positions is not None:
        probs = probs / frequency[positions]
    mean: Floats = (probs / probs.sum(axis=-1, keepdims=True)).mean(axis=-2)
    return mean


def _both(question: Question) -> list[Order]:
    """The given order and the reversed one, if it is another."""
    return list(dict.fromkeys((given_order(question), reversed_order(question))))


class _TwoOrders(OrderDebiaser):
    def __init__(self, asker: Asker, frequencies: Mapping[int, Floats]) -> None:
        super().__init__(asker)
        self.frequencies = frequencies

    def orders(self, question: Question) -> list[Order]:
        return _both(question)

    def outcome(self, question: Question, orders: Sequence[Order], probs: Floats) -> Outcome:
        frequency = self.frequencies.get(len(question.options))
        return Outcome.by_place(mean_of_orders(probs, np.argsort(orders, axis=1), frequency), len(orders))

    def remarks(self, questions: Sequence[Question]) -> tuple[str, ...]:
        missing = sorted({len(q.options) for q in questions} - set(self.frequencies)) if self.frequencies else []
        return tuple(f"no label frequencies for {n} options: their answers are only averaged" for n in missing)
