"""Which orders of the options are shown: all, a Latin square, cyclic, reversed, a seeded sample, or another set.

In balanced sets every movable option is in every movable place equally often, so that no place is measured with
one option more than with another. Random sets start from the canonical arrangement of the options: the presented texts
then do not depend on the order in the file.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from unslant.errors import InputError, one_of
from unslant.questions.question import Question

Order = tuple[int, ...]
"""Option index at each position, from top to bottom."""

DEFAULT_CAP = 24
"""Orders per question unless asked otherwise (P1 caps at 4! = 24)."""
MOST_IN_COSETS = 12
"""``auto`` adds further rotations to those of the given order up to this many movable options."""
_MOST_MISSES = 1000
"""Random squares in a row that share an order with earlier ones, after which no further one is sought."""


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


def wording(question: Question) -> tuple[str, ...]:
    """What a question asks: equal for any order of its options and any id, since numbered sets reuse ids.

    Without a recorded text it is the id.
    """
    return (question.stem or question.id, question.context, *sorted(question.options))


def all_orders(question: Question) -> list[Order]:
    """Every order of the movable options, lexicographic in option index (so the given order is first)."""
    return [place(question, p) for p in itertools.permutations(question.movable)]


def cyclic_orders(question: Question, k: int = 1) -> list[Order]:
    """The rotations of the given order: every movable option in every movable place once.

    Args:
        k: for at least ``k`` orders, the further sets of rotations that :func:`auto_orders` has, as far as they go.
    """
    n = len(question.movable)
    whole = -(-k // max(1, n)) * n
    return rotations(len(question.options), question.pinned) if whole <= n else auto_orders(question)[:whole]


def rotations(n: int, pinned: Collection[int] = ()) -> list[Order]:
    """:func:`cyclic_orders` of ``n`` options where those in ``pinned`` keep their place."""
    movable = [i for i in range(n) if i not in pinned]
    return [_placed(n, pinned, movable[k:] + movable[:k]) for k in range(max(1, len(movable)))]


def reversed_order(question: Question) -> Order:
    """The given order with the movable options from last to first."""
    return place(question, question.movable[::-1])


def auto_orders(question: Question) -> list[Order]:
    """All orders of up to four movable options; of more, whole sets of rotations, at least 24 orders up to twelve.

    Every movable option is in every movable place equally often. The rotations of the given order come first and
    those of the reversed order second; the rest are rotations of the given order with two neighbours swapped. The same
    arrangements of places serve every question of one size, so that order k means the same in all of them.

    The set depends on the order in the file; ``balanced:24`` and other sampled sets do not.
    """
    return [place(question, [question.movable[i] for i in order]) for order in auto_arrangements(len(question.movable))]


@lru_cache
def auto_arrangements(n: int) -> tuple[Order, ...]:
    """The arrangements of ``n`` movable options that :func:`auto_orders` shows."""
    first = tuple(range(n))
    if n < 3:
        return tuple(itertools.permutations(first))
    swapped = [(*first[:i], i + 1, i, *first[i + 2 :]) for i in range(n - 2, 0, -1)]
    rest = [(0, *others) for others in itertools.permutations(first[1:])] if n <= 4 else []
    count = math.factorial(n - 1) if n <= 4 else math.ceil(DEFAULT_CAP / n) if n <= MOST_IN_COSETS else 1
    orders: dict[Order, None] = {}
    # The first two bases make what PriDe and gray-box ask always part of the set; neighbours swapped from the bottom up
    # share the longest beginnings with the first.
    for base in (first, first[::-1], *swapped, *rest):
        if base not in orders and len(orders) < count * n:
            orders.update(dict.fromkeys(base[k:] + base[:k] for k in first))
    return tuple(orders)


@lru_cache
def latin_squares(n: int) -> tuple[tuple[Order, ...], ...]:
    """The Latin squares among the orders of :func:`auto_orders`: n orders each, with every option in every place once.

    Of up to four options all that there are (1, 1, 2 and 24, and every order is in equally many), of more the sets of
    rotations: every order is in one. So an order of a square drawn at random is equally likely to be any of
    them, and a mean over the square estimates that over all of them without bias.

    Args:
        n: movable options.
    """
    orders = auto_arrangements(n)
    if not 1 < n <= 4:
        return tuple(orders[k : k + max(1, n)] for k in range(0, len(orders), max(1, n)))
    by_first = [[order for order in orders if order[0] == first] for first in range(n)]
    sets = itertools.product(*by_first)
    return tuple(rows for rows in sets if all(len(set(column)) == n for column in zip(*rows, strict=True)))


def auto_square(question: Question, seed: int = 0) -> list[Order]:
    """A random Latin square of the orders of :func:`auto_orders`."""
    n = len(question.movable)
    if n <= 4:
        return latin_orders(question, seed)
    square = question_rng(question.id, seed, "square").choice(latin_squares(n))
    return [place(question, [question.movable[i] for i in order]) for order in square]


def latin_orders(question: Question, seed: int = 0) -> list[Order]:
    """A random Latin square of the movable options: as many orders as options, every option in every place once.

    Of up to four options, each square is equally likely; of more, it is the cyclic square with options and places
    shuffled (a random isotopy), as in :func:`balanced_rounds`. Either way each order is equally likely to be in it. The
    texts shown do not depend on the order of the options in the file.
    """
    base = canonical(question)
    if not 0 < len(base) <= 4:
        return balanced_rounds(question, len(base), seed)[0]
    square = question_rng(question.id, seed, "latin").choice(latin_squares(len(base)))
    return [place(question, [base[i] for i in order]) for order in square]


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
    orders: dict[Order, None] = {}
    while len(orders) < k:
        arrangement = list(base)
        rng.shuffle(arrangement)
        orders[place(question, arrangement)] = None
    return list(orders)


def question_rng(question_id: str, seed: int, purpose: str) -> random.Random:
    """A generator for one kind of choice about one question.

    Leaving a question out, or making another choice first, changes nothing for the others.
    """
    digest = hashlib.sha256(f"{seed}\x1f{purpose}\x1f{question_id}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


# Balanced sets: random rounds, and sets whose prompts share as much text as balance allows


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
    and the n/2 arrangements in reverse that put the other options first. (Of an odd number, the middle option is in
    the middle of both, so no Latin square holds them.) The set depends on the order in the file.
    """
    base = question.movable
    n = len(base)
    if math.factorial(n) <= k:
        return all_orders(question)
    rotated = [[(i + turn) % n for i in range(n)] for turn in range(0, n, 1 + (n % 2 == 0))]
    mirrored = [[(last - i) % n for i in range(n)] for last in range(n - 1, 0, -2)] if n % 2 == 0 else []
    return _groups(question, [[base[i] for i in row] for row in (*rotated, *mirrored)], k)


def _groups(question: Question, square: Sequence[Sequence[int]], k: int) -> list[Order]:
    """The rows of a Latin square, each in the lexicographically first arrangements that make at least ``k`` orders."""
    n = len(square)
    pattern = list(itertools.islice(itertools.permutations(range(n)), math.ceil(k / n)))
    return [place(question, [row[role] for role in roles]) for row in square for roles in pattern]


def balanced_rounds(question: Question, k: int, seed: int = 0) -> list[list[Order]]:
    """At least ``k`` distinct orders in rounds: within each, every movable option is in every movable place once.

    A round is a random Latin square; ``k`` is rounded up to whole rounds. Near all orders, random squares leave too few
    that fit together for another: rounds are then rotations, in random sequence. If there are no more than ``k``
    orders, all are returned in this way, as (n-1)! rounds.
    """
    base = canonical(question)
    n = len(base)
    if n == 0:
        return [[place(question, ())]]
    rng = question_rng(question.id, seed, "rounds")
    rounds: list[list[Order]] = []
    seen: set[Order] = set()
    wanted, misses = math.ceil(k / n), 0
    while math.factorial(n) > k and len(rounds) < wanted and misses < _MOST_MISSES:
        # Rotations alone would keep the same options next to each other in the whole round; shuffled columns do not.
        symbols, columns = rng.sample(base, n), rng.sample(range(n), n)
        orders = _round(question, symbols, columns)
        misses += 1
        if seen.isdisjoint(orders):
            seen.update(orders)
            rounds.append(orders)
            misses = 0
    if len(rounds) < wanted:
        starts = list(itertools.permutations(base[1:]))
        rng.shuffle(starts)
        rounds = [_round(question, (base[0], *start), range(n)) for start in starts[:wanted]]
    return rounds


def _round(question: Question, symbols: Sequence[int], columns: Sequence[int]) -> list[Order]:
    """The rows of the cyclic Latin square of ``symbols`` with its columns rearranged."""
    n = len(symbols)
    return [place(question, [symbols[(column + row) % n] for column in columns]) for row in range(n)]


# The sets of orders that ``--orders`` names

MAX_ALL = 5040
"""``all`` is refused beyond this many orders a question (7!)."""


def _all_orders(question: Question, seed: int) -> list[Order]:
    total = math.factorial(len(question.movable))
    if total > MAX_ALL:
        raise InputError(
            f"--orders=all: question {question.id!r} has {total:,} orders; use --orders={DEFAULT_CAP} to sample"
        )
    return all_orders(question)


SETS: dict[str, Callable[[Question, int], list[Order]]] = {
    "auto": lambda question, _: auto_orders(question),
    "all": _all_orders,
    "latin": latin_orders,
    "cyclic": lambda question, _: cyclic_orders(question),
    "reverse": lambda question, _: list(dict.fromkeys((given_order(question), reversed_order(question)))),
    "given": lambda question, _: [given_order(question)],
}
"""Name of a set -> its orders, by question and seed."""
SIZED: dict[str, Callable[[Question, int, int], list[Order]]] = {
    "cyclic": lambda question, k, _: cyclic_orders(question, k),
    "balanced": lambda question, k, seed: list(itertools.chain.from_iterable(balanced_rounds(question, k, seed))),
    "shared": sharing_orders,
    "given": lambda question, k, _: anchored_orders(question, k),
}
"""Name of a set -> at least K of its orders, by question, K and seed."""


def orders_for(question: Question, spec: str, seed: int = 0) -> list[Order]:
    """The orders that ``--orders`` names.

    ``auto`` (see :func:`auto_orders`), ``all``, ``latin`` (a random Latin square), ``cyclic``, ``reverse`` (given and
    reversed), ``given``, or a number K (K sampled orders, all when there are no more). In four more sets of at least K
    orders, every option is in every place equally often: ``cyclic:K`` (the first of ``auto``), ``balanced:K``
    (random rounds), ``shared:K`` (chosen to share long beginnings) and ``given:K`` (as cheap, around the given order).

    Raises:
        InputError: on an unknown name, or ``all`` with more than 5,040 orders.
    """
    check_orders(spec)
    if spec in SETS:
        return SETS[spec](question, seed)
    kind, _, number = spec.rpartition(":")
    return SIZED[kind](question, int(number), seed) if kind else sampled_orders(question, int(number), seed)


def check_orders(spec: str) -> None:
    """Raise InputError if ``spec`` does not name a set of orders."""
    kind, colon, number = spec.rpartition(":")
    sized = number.isdecimal() and int(number) >= 1 and (kind in SIZED or not colon)
    if spec not in SETS and not sized:
        raise InputError(
            f"unknown orders {spec!r}: {one_of(spec, SETS)}, or a number "
            f"of sampled orders (in sets with a structure: {', '.join(f'{kind}:K' for kind in SIZED)})"
        )
