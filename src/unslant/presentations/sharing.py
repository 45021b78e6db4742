"""Balanced order sets: random rounds, and sets whose prompts share as much text as balance allows.

Every movable option stands in every movable place equally often. Orders are drawn from the canonical arrangement of the
options, so the presented texts do not depend on the order in the file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from unslant.presentations.orders import Order, all_orders, canonical, place
from unslant.presentations.seeds import question_rng
from unslant.questions.question import Question


def sharing_orders(question: Question, k: int, seed: int = 0) -> list[Order]:
    """At least ``k`` orders, balanced, whose prompts share the longest beginnings that balance allows.

    Each of the n movable options leads equally often, so K = mn (``k`` rounded up to a multiple of n) orders fall into
    n groups of m that begin with the same option, and groups share nothing. Within a group the lexicographically first
    m orders have the fewest prefix-tree nodes: they differ in as few last places as m distinct orders can. All groups
    use this one pattern, with options assigned by a row of a Latin square, which balances the whole. For 24 orders of
    8 options: eight groups of three that share their five leading options, 104 option segments instead of 192.

    Because the orders are alike, the saved computation costs variance: see ``docs/orders.md``.
    If there are no more than ``k`` orders, all are returned.
    """
    base = list(canonical(question))
    n = len(base)
    if math.factorial(n) <= k:
        return all_orders(question)
    rng = question_rng(question.id, seed, "sharing-orders")
    rng.shuffle(base)
    columns = list(range(n))
    rng.shuffle(columns)
    return _groups(question, [[base[(column + group) % n] for column in columns] for group in range(n)], k)


def anchored_orders(question: Question, k: int) -> list[Order]:
    """As :func:`sharing_orders`, around the given order: as cheap, and not drawn but the same for all questions.

    The given order is the first. Of an even number n of movable options the reversed order is there too, so that an
    audit, which shows both, asks nothing twice: the Latin square is that of the n/2 even rotations of the given order
    and the n/2 arrangements in reverse that put the other options first. (Of an odd number, the middle option stands in
    the middle of both, so no Latin square holds them.) The set depends on the order in the file.
    """
    base = question.movable
    n = len(base)
    if math.factorial(n) <= k:
        return all_orders(question)
    turned = [[(i + turn) % n for i in range(n)] for turn in range(0, n, 1 + (n % 2 == 0))]
    mirrored = [[(last - i) % n for i in range(n)] for last in range(n - 1, 0, -2)] if n % 2 == 0 else []
    return _groups(question, [[base[i] for i in row] for row in (*turned, *mirrored)], k)


def _groups(question: Question, square: Sequence[Sequence[int]], k: int) -> list[Order]:
    """The rows of a Latin square, each in the lexicographically first arrangements that make at least ``k`` orders."""
    n = len(square)
    pattern = list(itertools.islice(itertools.permutations(range(n)), math.ceil(k / n)))
    return [place(question, [row[role] for role in roles]) for row in square for roles in pattern]


def balanced_rounds(question: Question, k: int, seed: int = 0) -> list[list[Order]]:
    """At least ``k`` distinct orders in rounds: within each, every movable option stands in every movable place once.

    A round is a random Latin square; ``k`` is rounded up to whole rounds. If there are no more than ``k`` orders, all
    are returned, as (n-1)! rounds of rotations in random sequence.
    """
    base = canonical(question)
    n = len(base)
    if n == 0:
        return [[place(question, ())]]
    rng = question_rng(question.id, seed, "rounds")
    if math.factorial(n) <= k:
        starts = list(itertools.permutations(base[1:]))
        rng.shuffle(starts)
        return [_round(question, (base[0], *start), range(n)) for start in starts]
    rounds: list[list[Order]] = []
    seen: set[Order] = set()
    while len(rounds) < math.ceil(k / n):
        # Rotations alone would keep the same options next to each other in the whole round; shuffled columns do not.
        symbols, columns = rng.sample(base, n), rng.sample(range(n), n)
        orders = _round(question, symbols, columns)
        if seen.isdisjoint(orders):
            seen.update(orders)
            rounds.append(orders)
    return rounds


def balanced_orders(question: Question, k: int, seed: int = 0) -> list[Order]:
    """The orders of :func:`balanced_rounds`, round by round."""
    return list(itertools.chain.from_iterable(balanced_rounds(question, k, seed)))


def _round(question: Question, symbols: Sequence[int], columns: Sequence[int]) -> list[Order]:
    """The rows of the cyclic Latin square of ``symbols`` with its columns rearranged."""
    n = len(symbols)
    return [place(question, [symbols[(column + row) % n] for column in columns]) for row in range(n)]


def option_segments(orders: Sequence[Order]) -> int:
    """Prefix-tree nodes of a set of orders, counted in option lines: how many lines have to be computed."""
    return len({order[:depth] for order in orders for depth in range(1, len(order) + 1)})
