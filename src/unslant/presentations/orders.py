"""Which orders of the options are shown: all, cyclic, reversed, or a seeded sample."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence

from unslant.presentations.seeds import question_rng
from unslant.questions.question import Question

Order = tuple[int, ...]
"""Option index at each position, from top to bottom."""

DEFAULT_CAP = 24
"""Orders per question unless asked otherwise (P1 caps at 4! = 24)."""


def given_order(question: Question) -> Order:
    """The order in which the file lists the options."""
    return tuple(range(len(question.options)))


def place(question: Question, arrangement: Sequence[int]) -> Order:
    """Put ``arrangement`` of the movable options into their places, pinned options staying where they are."""
    return _placed(len(question.options), question.pinned, arrangement)


def _placed(n: int, pinned: Collection[int], arrangement: Sequence[int]) -> Order:
    rest = iter(arrangement)
    return tuple(i if i in pinned else next(rest) for i in range(n))


def canonical(question: Question) -> tuple[int, ...]:
    """The movable options sorted by content, so that it does not depend on the order in the file.

    Options of identical text are interchangeable and keep their file order.
    """
    return tuple(sorted(question.movable, key=lambda i: question.options[i]))


def all_orders(question: Question) -> list[Order]:
    """Every order of the movable options, lexicographic in option index (so the given order is first)."""
    return [place(question, p) for p in itertools.permutations(question.movable)]


def cyclic_orders(question: Question) -> list[Order]:
    """The rotations of the given order: every movable option in every movable place once."""
    return rotations(len(question.options), question.pinned)


def rotations(n: int, pinned: Collection[int] = ()) -> list[Order]:
    """:func:`cyclic_orders` of ``n`` options of which those in ``pinned`` keep their place."""
    movable = [i for i in range(n) if i not in pinned]
    return [_placed(n, pinned, movable[k:] + movable[:k]) for k in range(max(1, len(movable)))]


def reversed_order(question: Question) -> Order:
    """The given order with the movable options from last to first."""
    return place(question, question.movable[::-1])


def sampled_orders(question: Question, k: int, seed: int = 0) -> list[Order]:
    """``k`` distinct random orders, drawn from the canonical arrangement (sorted by content).

    The set of presented texts, and with it the voted answer, is therefore exactly independent of the order in
    which the file lists the options. If there are no more than ``k`` orders, all are returned.
    """
    base = canonical(question)
    total = math.factorial(len(base))
    if total <= k:
        return all_orders(question)
    rng = question_rng(question.id, seed, "orders")
    chosen: dict[Order, None] = {}
    while len(chosen) < k:
        arrangement = list(base)
        rng.shuffle(arrangement)
        chosen[place(question, arrangement)] = None
    return list(chosen)
