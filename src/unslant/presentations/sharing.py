"""Order sets of chosen structure: balanced rounds, and balanced sets that share as much of the prompt as any can.

Both are drawn from the canonical arrangement of the options, so the presented texts do not depend on the order in which
the file lists them. In both, every movable option stands in every movable place equally often.
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

    Balance means that each of the n movable options leads equally often, so K = mn (``k`` rounded up to a multiple of
    n) orders fall into n groups of m that begin with the same option, and groups share nothing. Within a group the
    fewest prefix-tree nodes that m orders can have is that of the lexicographically first m: they differ in as few
    last places as m distinct orders can. Each of the n groups is this one pattern with the options assigned by a row of
    a Latin square, which makes the whole balanced. For 24 orders of 8 options: eight groups of three that share their
    five leading options, 104 option segments instead of 192.

    What is saved in computing is paid for in variance, because the orders are alike: see ``docs/orders.md``.
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
    pattern = list(itertools.islice(itertools.permutations(range(n)), math.ceil(k / n)))
    return [
        place(question, [base[(columns[role] + group) % n] for role in roles])
        for group in range(n)
        for roles in pattern
    ]


def balanced_rounds(question: Question, k: int, seed: int = 0) -> list[list[Order]]:
    """At least ``k`` distinct orders in rounds: within each, every movable option stands in every movable place once.

    A round is the n rotations of one random arrangement; ``k`` is rounded up to whole rounds. If there are no more
    than ``k`` orders, all (n-1)! rounds are returned, in random sequence.
    """
    base = canonical(question)
    n = len(base)
    if n == 0:
        return [[place(question, ())]]
    rng = question_rng(question.id, seed, "rounds")
    wanted = min(math.ceil(k / n), math.factorial(n - 1))
    if math.factorial(n) <= k:
        starts = [(base[0], *rest) for rest in itertools.permutations(base[1:])]
        rng.shuffle(starts)
    else:
        found: dict[tuple[int, ...], None] = {}
        while len(found) < wanted:
            rest = list(base[1:])
            rng.shuffle(rest)
            found[base[0], *rest] = None
        starts = list(found)
    return [[place(question, _rotated(start, by)) for by in range(n)] for start in starts]


def balanced_orders(question: Question, k: int, seed: int = 0) -> list[Order]:
    """The orders of :func:`balanced_rounds`, round by round."""
    return [order for round_ in balanced_rounds(question, k, seed) for order in round_]


def _rotated(arrangement: Sequence[int], by: int) -> tuple[int, ...]:
    return (*arrangement[by:], *arrangement[:by])


def option_segments(orders: Sequence[Order]) -> int:
    """Prefix-tree nodes of a set of orders, an option line counting as one: the lines that have to be computed."""
    return len({order[:depth] for order in orders for depth in range(1, len(order) + 1)})
