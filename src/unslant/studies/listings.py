"""What a debiased model still does with order: its answers to every question, listed in other orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unslant.debias import Debiaser, Outcome
from unslant.metrics import OrderScores
from unslant.presentations import given_order, orders_for, present, reversed_order
from unslant.questions.question import Question
from unslant.responses.table import Response, Responses

Order = tuple[int, ...]
_DECISIVE = 1 + 1e-8


def relisted(question: Question, order: Order) -> Question:
    """The same question as a file that lists its options in ``order`` would have it."""
    place = {content: position for position, content in enumerate(order)}
    return replace(
        question,
        options=tuple(question.options[i] for i in order),
        answers=frozenset(place[i] for i in question.answers),
        pinned=tuple(sorted(place[i] for i in question.pinned)),
    )


def listing_orders(question: Question, orders: str, seed: int) -> list[tuple[str, Order]]:
    """Name and order of every listing: the order set, then the given and the reversed order if it lacks them."""
    found = orders_for(question, orders, seed)
    named = [("order", order) for order in found]
    for name, order in (("given", given_order(question)), ("reverse", reversed_order(question))):
        if order not in found and order not in [listed for _, listed in named]:
            named.append((name, order))
    return named


def listing_scores(
    debiaser: Debiaser, questions: Sequence[Question], orders: str, alphabet: tuple[str, ...], seed: int
) -> OrderScores:
    """The debiased answers to all listings, as the scores every order metric is computed from."""
    listings = [(q, name, order) for q in questions for name, order in listing_orders(q, orders, seed)]
    outcomes = debiaser.answer([relisted(question, order) for question, _, order in listings])
    rows = []
    for (question, name, order), outcome in zip(listings, outcomes, strict=True):
        shown = present(question, order, alphabet, name)
        with np.errstate(divide="ignore"):
            rows.append(Response.scored(question, shown, "cloze", np.log(_weights(outcome))))
    return OrderScores.from_responses(Responses.from_rows(rows))


def _weights(outcome: Outcome) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Probabilities in which the method's own way of breaking a tie shows, by a hair."""
    weights = outcome.probs.copy()
    weights[outcome.choice] *= _DECISIVE
    return weights
