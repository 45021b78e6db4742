"""How an audit presents a question."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.presentations import (
    Order,
    Presentation,
    cyclic_orders,
    given_order,
    labels_for,
    orders_for,
    present,
    reversed_order,
)
from unslant.questions import Question

MOST_ORDERS = 6
"""Orders of a question unless asked otherwise: replies are expensive."""


def order_presentations(
    question: Question, orders: str, alphabet: tuple[str, ...], seed: int = 0
) -> list[Presentation]:
    """A question's order set, plus given and reversed where not already included."""
    found = orders_for(question, orders, seed)
    shown = [present(question, order, alphabet) for order in found]
    for kind, order in (("given", given_order(question)), ("reverse", reversed_order(question))):
        if order not in found:
            shown.append(present(question, order, alphabet, kind))
    return shown


def square_presentations(question: Question, orders: Sequence[Order], alphabet: tuple[str, ...]) -> list[Presentation]:
    """Some orders, and the given one if it is not among them."""
    shown = [present(question, order, alphabet) for order in orders]
    given = given_order(question)
    return shown if given in orders else [*shown, present(question, given, alphabet, "given")]


def audit_presentations(
    question: Question, orders: str, alphabet: tuple[str, ...], seed: int = 0, *, own_labels: bool = True
) -> list[Presentation]:
    """The :func:`order_presentations` of a question, and rearranged labels.

    Labels are reversed, on the given and the reversed order, and with three options or more shifted by one, which
    separates label from position bias at every place; reversal leaves the middle label in place. Questions whose
    options are all pinned have a single order, hence no reversed one. Of ``latin``, whose point is its price, the
    square and the published order are all that is shown.

    Args:
        own_labels: the labels are ours; a decision endpoint has its own, which cannot be rearranged.
    """
    if orders == "latin":
        return square_presentations(question, orders_for(question, orders, seed), alphabet)
    shown = order_presentations(question, orders, alphabet, seed)
    given, reverse = given_order(question), reversed_order(question)
    if not own_labels:
        return shown
    labels = labels_for(alphabet, len(question.options))
    upside_down = labels[::-1]
    shown.append(present(question, given, kind="labels-reversed", labels=upside_down))
    if reverse != given:
        shown.append(present(question, reverse, kind="both-reversed", labels=upside_down))
    if len(labels) > 2:
        shown.append(present(question, given, kind="labels-shifted", labels=(*labels[1:], labels[0])))
    return shown


def orders_in_words(question: Question, spec: str, seed: int = 0) -> list[Order]:
    """The orders that ``--orders`` names; ``auto`` are the rotations, of more than six options six of them."""
    if spec != "auto":
        return orders_for(question, spec, seed)
    turns = cyclic_orders(question)
    few = min(len(turns), MOST_ORDERS)
    return [turns[k * len(turns) // few] for k in range(few)]
