"""Gray-box debiasing: the given and the reversed order together (Wei et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats
from unslant.debias.asking import Asker, ask_orders
from unslant.debias.base import Outcome, Traits, Unchanged
from unslant.debias.pride import drawn
from unslant.presentations import given_order, reversed_order
from unslant.questions.question import Question


@dataclass(frozen=True)
class GrayBox(Traits):
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
        sample = drawn(questions, self.share, self.seed)
        counts: dict[int, Floats] = {}
        for question, both in zip(sample, _ask(asker, sample), strict=True):
            n = len(question.options)
            counts.setdefault(n, np.ones(n))
            for order, probs in both:
                counts[n][int(probs[order].argmax())] += 1
        return _TwoOrders(asker, {n: count / count.sum() for n, count in counts.items()})


def _ask(asker: Asker, questions: Sequence[Question]) -> list[list[tuple[list[int], Floats]]]:
    """Order and (n,) probabilities by content, for the given order and the reversed one if it is another."""
    orders = [list(dict.fromkeys((given_order(q), reversed_order(q)))) for q in questions]
    return [
        [(list(order), probs) for order, probs in zip(own, rows, strict=True)]
        for own, rows in zip(orders, ask_orders(asker, questions, orders), strict=True)
    ]


class _TwoOrders(Unchanged):
    def __init__(self, asker: Asker, frequencies: Mapping[int, Floats]) -> None:
        super().__init__()
        self.asker, self.frequencies = asker, frequencies

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        outcomes = []
        for question, both in zip(questions, _ask(self.asker, questions), strict=True):
            n = len(question.options)
            frequency = self.frequencies.get(n, np.ones(n))
            total = np.zeros(n)
            for order, probs in both:
                weighted = probs.copy()
                weighted[order] /= frequency
                total += weighted / weighted.sum()
            outcomes.append(Outcome.by_place(total / len(both), len(both)))
        missing = sorted({len(q.options) for q in questions} - set(self.frequencies)) if self.frequencies else []
        self.notes = tuple(f"no label frequencies for {n} options: their answers are only averaged" for n in missing)
        return outcomes
