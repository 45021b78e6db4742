"""No debiasing at all, and voting over orders (P1 sec. 3.3.1, eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from unslant.arrays import Floats
from unslant.debiasing.asker import Asker, RecordedAsker
from unslant.debiasing.base import Method, OrderDebiaser, Outcome
from unslant.errors import InputError
from unslant.metrics import vote_over_orders
from unslant.presentations import Order, orders_for
from unslant.presentations.orders import DEFAULT_CAP, check_orders
from unslant.questions import Question
from unslant.responses import text_ranks

_BALANCED = f"balanced:{DEFAULT_CAP}"


@dataclass(frozen=True)
class Undebiased(Method):
    """The model's own answer to the question as listed: the baseline for every method."""

    name = "none"
    needs_scores = False

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> OrderDebiaser:
        return OrderDebiaser(asker)


@dataclass(frozen=True)
class Vote(Method):
    """Average over orders. No labels, no fit; K presentations per question.

    Args:
        orders: as ``--orders``; with all or sampled orders the answer does not depend on the file's order. ``auto`` has
            that property up to four options; beyond, it begins with the file's order. By default, the vote uses all
            recorded orders where scores were recorded, and one round (every option once in every place) where replies
            are read.
        rule: ``soft`` averages probabilities; ``hard`` counts the orders in which an option is chosen (equal counts go
            to the higher mean probability).
        seed: for sampling orders.
    """

    orders: str = _BALANCED
    rule: Literal["soft", "hard"] = "soft"
    seed: int = 0
    needs_scores = False

    def __post_init__(self) -> None:
        check_orders(self.orders)
        if self.rule not in ("soft", "hard"):
            raise InputError(f"unknown rule {self.rule!r}: use soft or hard")

    @property
    def name(self) -> str:
        return "vote" if self.rule == "soft" else "vote-hard"

    @property
    def order_invariant(self) -> bool:
        return self.orders not in ("auto", "given", "reverse", "cyclic")

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> OrderDebiaser:
        return OrderDebiaser(asker) if self.orders == "given" else _Voter(asker, self)


vote_hard = partial(Vote, rule="hard")


@dataclass(eq=False)
class _Voter(OrderDebiaser):
    method: Vote

    def orders(self, question: Question) -> list[Order]:
        orders = self.method.orders
        if orders == _BALANCED and isinstance(self.asker, RecordedAsker):
            return self.asker.orders(question)
        if orders == _BALANCED and self.asker.in_words:  # replies are expensive
            orders = "balanced:1"
        return orders_for(question, orders, self.method.seed)

    def outcome(self, question: Question, orders: Sequence[Order], probs: Floats) -> Outcome:
        choice, shares = vote_over_orders(probs, np.asarray(text_ranks(question.options)), self.method.rule)
        return Outcome(shares, int(choice), len(orders))
