"""No debiasing at all, and voting over orders (P1 sec. 3.3.1, eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unslant.arrays import Floats
from unslant.asking import Asker
from unslant.debias.base import Method, OrderDebiaser, Outcome
from unslant.metrics import vote_over_orders
from unslant.presentations import Order, orders_for
from unslant.questions import Question
from unslant.responses import text_ranks


@dataclass(frozen=True)
class Undebiased(Method):
    """The model's own answer to the question as listed: what every method is compared with."""

    name = "none"

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> OrderDebiaser:
        return OrderDebiaser(asker)


@dataclass(frozen=True)
class Vote(Method):
    """Average over orders. Needs no labels and no fit; K presentations a question.

    Args:
        orders: as ``--orders``; all and the sampled kinds make the answer independent of the file's order.
        rule: ``soft`` averages probabilities; ``hard`` counts in how many orders an option is chosen (equal counts go
            to the higher mean probability).
        seed: of the sample of orders.
    """

    orders: str = "auto"
    rule: Literal["soft", "hard"] = "soft"
    seed: int = 0

    @property
    def name(self) -> str:
        return "vote" if self.rule == "soft" else "vote-hard"

    @property
    def order_invariant(self) -> bool:
        return self.orders not in ("given", "reverse", "cyclic")

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> OrderDebiaser:
        return OrderDebiaser(asker) if self.orders == "given" else _Voter(asker, self)


class _Voter(OrderDebiaser):
    def __init__(self, asker: Asker, method: Vote) -> None:
        super().__init__(asker)
        self.method = method

    def orders(self, question: Question) -> list[Order]:
        return orders_for(question, self.method.orders, self.method.seed)

    def outcome(self, question: Question, orders: Sequence[Order], probs: Floats) -> Outcome:
        choice, shares = vote_over_orders(probs, np.asarray(text_ranks(question.options)), self.method.rule)
        return Outcome(shares, int(choice), len(orders))
