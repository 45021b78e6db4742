"""The sets of orders that ``--orders`` names."""

from __future__ import annotations

import math
from collections.abc import Callable

from unslant.errors import InputError, one_of
from unslant.presentations.orders import (
    DEFAULT_CAP,
    Order,
    all_orders,
    auto_orders,
    cyclic_orders,
    given_order,
    reversed_order,
    sampled_orders,
)
from unslant.presentations.sharing import anchored_orders, balanced_orders, sharing_orders
from unslant.questions.question import Question

MAX_ALL = 5040
"""``all`` is refused beyond this many orders a question (7!)."""
SIZED: dict[str, Callable[[Question, int, int], list[Order]]] = {
    "cyclic": lambda question, k, _: cyclic_orders(question, k),
    "balanced": balanced_orders,
    "shared": sharing_orders,
    "given": lambda question, k, _: anchored_orders(question, k),
}
"""Name of a set -> at least K of its orders, by question, K and seed."""


def orders_for(question: Question, spec: str, seed: int = 0) -> list[Order]:
    """The orders that ``--orders`` names.

    ``auto`` (see :func:`~unslant.presentations.orders.auto_orders`), ``all``, ``cyclic``, ``reverse`` (given and
    reversed), ``given``, or a number K (K sampled orders, all when there are no more). In four more sets of at least K
    orders, every option stands in every place equally often: ``cyclic:K`` (the first of ``auto``), ``balanced:K``
    (random rounds), ``shared:K`` (chosen to share long beginnings) and ``given:K`` (as cheap, around the given order);
    see :mod:`unslant.presentations.sharing`.

    Raises:
        InputError: on an unknown name, or ``all`` with more than 5,040 orders.
    """
    kind, _, number = spec.partition(":")
    if kind in SIZED and number.isdecimal() and int(number) >= 1:
        return SIZED[kind](question, int(number), seed)
    if spec == "auto":
        return auto_orders(question)
    if spec == "all":
        total = math.factorial(len(question.movable))
        if total > MAX_ALL:
            raise InputError(
                f"--orders all: question {question.id!r} has {total:,} orders; use --orders {DEFAULT_CAP} to sample"
            )
        return all_orders(question)
    if spec == "cyclic":
        return cyclic_orders(question)
    if spec == "reverse":
        return list(dict.fromkeys((given_order(question), reversed_order(question))))
    if spec == "given":
        return [given_order(question)]
    if spec.isdecimal() and int(spec) >= 1:
        return sampled_orders(question, int(spec), seed)
    raise InputError(
        f"unknown orders {spec!r}: {one_of(spec, ('auto', 'all', 'cyclic', 'reverse', 'given'))}, or a number of "
        f"sampled orders (in sets with a structure: {', '.join(f'{kind}:K' for kind in SIZED)})"
    )
