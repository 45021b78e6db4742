"""Which orders of the options are shown: all, cyclic, reversed, or a seeded sample."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from functools import lru_cache

from unslant.presentations.seeds import question_rng
from unslant.questions.question import Question

Order = tuple[int, ...]
"""Option index at each position, from top to bottom."""

DEFAULT_CAP = 24
"""Orders per question unless asked otherwise (P1 caps at 4! = 24)."""
MOST_IN_COSETS = 12
"""``auto`` adds further rotations to those of the given order up to this many movable options."""


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


def cyclic_orders(question: Question, k: int = 1) -> list[Order]:
    """The rotations of the given order: every movable option in every movable place once.

    Args:
        k: for at least so many orders, the further sets of rotations that :func:`auto_orders` has, as far as they go.
    """
    n = len(question.movable)
    whole = -(-k // max(1, n)) * n
    return rotations(len(question.options), question.pinned) if whole <= n else auto_orders(question)[:whole]


def rotations(n: int, pinned: Collection[int] = ()) -> list[Order]:
    """:func:`cyclic_orders` of ``n`` options of which those in ``pinned`` keep their place."""
    movable = [i for i in range(n) if i not in pinned]
    return [_placed(n, pinned, movable[k:] + movable[:k]) for k in range(max(1, len(movable)))]


def reversed_order(question: Question) -> Order:
    """The given order with the movable options from last to first."""
    return place(question, question.movable[::-1])


def auto_orders(question: Question) -> list[Order]:
    """All orders of up to four movable options; of more, whole sets of rotations, at least 24 orders up to twelve.

    Every movable option stands in every movable place equally often. The rotations of the given order come first and
    those of the reversed order second, so that what PriDe and gray-box ask is always there. The rest are rotations of
    the given order with two neighbours swapped, from the bottom up, which share the longest beginnings with it. The
    same arrangements of places serve every question of one size, so that order k means the same in all of them.

    The set depends on the order in the file; ``balanced:24`` and other sampled sets do not.
    """
    return [place(question, [question.movable[i] for i in order]) for order in _cosets(len(question.movable))]


@lru_cache
def _cosets(n: int) -> tuple[Order, ...]:
    given = tuple(range(n))
    if n < 3:
        return tuple(itertools.permutations(given))
    swapped = [(*given[:i], i + 1, i, *given[i + 2 :]) for i in range(n - 2, 0, -1)]
    rest = [(0, *others) for others in itertools.permutations(given[1:])] if n <= 4 else []
    count = math.factorial(n - 1) if n <= 4 else math.ceil(DEFAULT_CAP / n) if n <= MOST_IN_COSETS else 1
    found: dict[Order, None] = {}
    for base in (given, given[::-1], *swapped, *rest):
        if base not in found and len(found) < count * n:
            found.update(dict.fromkeys(base[k:] + base[:k] for k in given))
    return tuple(found)


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
