"""What each correction makes of orders that are already scored, with no further call of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unslant.debias import RecordedAsker, debias, method_named
from unslant.metrics import Bootstrap, Estimate, OrderScores, measure
from unslant.presentations import Order, cyclic_orders, given_order, reversed_order
from unslant.questions import Question

ORDERS_WANTED: dict[str, Callable[[Question], list[Order]]] = {
    "pride": cyclic_orders,
    "gray-box": lambda question: [given_order(question), reversed_order(question)],
}
"""Methods that need no model beside recorded orders, and which; the vote takes whatever orders there are."""


@dataclass(frozen=True)
class Correction:
    """One method on the questions whose recorded orders suffice for it.

    Attributes:
        accuracy: of its answers; ``n`` says on how many questions.
        change: accuracy less that of the undebiased given order, paired over the same questions.
        orders: mean orders a question that the method looked at.
    """

    method: str
    accuracy: Estimate
    change: Estimate
    orders: float

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "method": self.method,
            "accuracy": self.accuracy.to_dict(),
            "change": self.change.to_dict(),
            "orders": self.orders,
        }


def corrections(scores: OrderScores, *, seed: int = 0) -> tuple[Correction, ...]:
    """Vote, PriDe and gray-box read off the table; a method without a single usable question is left out.

    PriDe needs the rotations of the given order and gray-box the reversed order, so that questions shown in a random
    sample of their orders may not be usable; ``accuracy.n`` counts those that were.
    """
    asker = RecordedAsker(scores)
    bootstrap = Bootstrap(len(scores), scores.subjects, seed=seed)
    measures = measure(scores)

    def correction(method: str, right: NDArray[np.float64], orders: float) -> Correction:
        change = bootstrap.mean(right - measures.accuracy, share=False)
        return Correction(method, bootstrap.mean(right), change, orders)

    found = [correction("vote", measures.vote_accuracy, float(scores.order_counts.mean()))]
    for method, wanted in ORDERS_WANTED.items():
        usable = [
            q
            for q, question in enumerate(asker.questions)
            if question.answers and all(asker.has(question.id, order) for order in wanted(question))
        ]
        if not any(not asker.questions[q].pinned for q in usable):
            continue
        answers = debias(method_named(method), asker, [asker.questions[q] for q in usable])
        right: NDArray[np.float64] = np.full(len(scores), np.nan)
        for q, outcome in zip(usable, answers.outcomes, strict=True):
            right[q] = outcome.choice in asker.questions[q].answers
        found.append(correction(method, right, answers.forwards_per_question))
    return tuple(item for item in found if item.accuracy.defined)
