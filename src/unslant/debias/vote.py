"""No debiasing at all, and voting over orders (P1 sec. 3.3.1, eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from unslant.debias.asking import Asker, ask_orders
from unslant.debias.base import Outcome, Traits, Unchanged
from unslant.metrics.ties import credit
from unslant.metrics.vote import mean_over_orders
from unslant.presentations import given_order, orders_for
from unslant.questions.question import Question


@dataclass(frozen=True)
class Undebiased(Traits):
    """The model's own answer to the question as listed: what every method is compared with."""

    name: str = field(default="none", init=False)

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> _Voter:
        return _Voter(asker, "given", "soft", 0)


@dataclass(frozen=True)
class Vote(Traits):
    """Average over orders. Needs no labels and no fit; K presentations a question.

    Args:
        orders: as ``--orders``; all and the sampled kinds make the answer independent of the file's order. ``auto``
            does so up to four options; beyond, it begins from the file's order.
        rule: ``soft`` averages probabilities; ``hard`` counts in how many orders an option is chosen (equal counts go
            to the higher mean probability).
        seed: of the sample of orders.
    """

    orders: str = "balanced:24"
    rule: Literal["soft", "hard"] = "soft"
    seed: int = 0

    @property
    def name(self) -> str:
        return "vote" if self.rule == "soft" else "vote-hard"

    @property
    def order_invariant(self) -> bool:
        return self.orders not in ("auto", "given", "reverse", "cyclic")

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> _Voter:
        return _Voter(asker, self.orders, self.rule, self.seed)


class _Voter(Unchanged):
    def __init__(self, asker: Asker, orders: str, rule: str, seed: int) -> None:
        super().__init__()
        self.asker, self.orders, self.rule, self.seed = asker, orders, rule, seed

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        orders = [
            [given_order(question)] if self.orders == "given" else orders_for(question, self.orders, self.seed)
            for question in questions
        ]
        outcomes = []
        for question, rows in zip(questions, ask_orders(self.asker, questions, orders), strict=True):
            probs = np.stack(rows)
            mean = mean_over_orders(probs)
            if self.orders == "given":
                outcomes.append(Outcome.by_place(mean, 1))
                continue
            if self.rule == "soft":
                outcomes.append(Outcome.by_text(question, mean, len(rows)))
                continue
            shares = mean_over_orders(credit(probs))
            best = Outcome.by_text(question, np.where(credit(shares) > 0, mean, 0.0), len(rows))
            outcomes.append(Outcome(shares, best.choice, len(rows)))
        return outcomes
