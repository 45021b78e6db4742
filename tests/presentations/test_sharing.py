import itertools
import math
from collections import Counter
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.order_variance import option_segments
from unslant.errors import InputError
from unslant.presentations import orders_for
from unslant.presentations.orders import anchored_orders, balanced_rounds, sharing_orders
from unslant.questions import Question


def question(n: int, pinned: tuple[int, ...] = (), options: tuple[str, ...] | None = None) -> Question:
    return Question("q", "?", options or tuple(f"option {i}" for i in range(n)), frozenset({0}), pinned=pinned)


def counts(orders: list[tuple[int, ...]]) -> Counter:
    return Counter((place, option) for order in orders for place, option in enumerate(order))


@lru_cache
def fewest(m: int, left: int) -> float:
    """Fewest nodes below a node with ``m`` leaves and ``left`` options still to come, over all ways to branch."""
    if m == 1:
        return left
    if m > math.factorial(left):
        return math.inf

    @lru_cache
    def split(rest: int, children: int) -> float:
        if rest == 0:
            return 0
        if children == 0:
            return math.inf
        return min(
            1 + fewest(own, left - 1) + split(rest - own, children - 1)
            for own in range(1, min(rest, math.factorial(left - 1)) + 1)
        )

    return split(m, left)


@pytest.mark.parametrize("n", range(5, 11))
@pytest.mark.parametrize("k", [5, 24, 25, 60])
def test_shared_orders_are_balanced_distinct_and_share_as_much_as_balance_allows(n: int, k: int) -> None:
    m = math.ceil(k / n)
    for orders in (sharing_orders(question(n), k), around := anchored_orders(question(n), k)):
        assert len(set(orders)) == len(orders) == m * n
        assert set(counts(orders).values()) == {m}
        # balance makes every option lead m orders, and orders that begin differently share nothing
        assert option_segments(orders) == n * (1 + fewest(m, n - 1))
    assert around[0] == tuple(range(n))
    assert n % 2 or around[0][::-1] in around


def test_eight_orders_of_four_options_around_the_given_one() -> None:
    shown = {"".join("ABCD"[i] for i in order) for order in orders_for(question(4), "given:8")}
    assert shown == {"ABCD", "ABDC", "BACD", "BADC", "CDAB", "CDBA", "DCAB", "DCBA"}
    fixed = orders_for(question(5, pinned=(4,)), "given:8")
    assert len(fixed) == 8
    assert {order[4] for order in fixed} == {4}


def test_cyclic_sets_are_the_first_of_auto() -> None:
    auto = orders_for(question(5), "auto")
    for spec, size in {"cyclic:1": 5, "cyclic:6": 10, "cyclic:25": 25, "cyclic:99": 25}.items():
        assert orders_for(question(5), spec) == auto[:size]
    assert set(orders_for(question(4), "cyclic:8")) == {
        (0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2), (3, 2, 1, 0), (2, 1, 0, 3), (1, 0, 3, 2), (0, 3, 2, 1)
    }  # fmt: skip


def test_24_of_8_options() -> None:
    orders = sharing_orders(question(8), 24)
    assert option_segments(orders) == 104
    assert len({order[:5] for order in orders}) == 8


def test_rounds_are_balanced_each(subtests: pytest.Subtests) -> None:
    for n, k in (
        (2, 24),
        (3, 24),
        (4, 24),
        (5, 24),
        (6, 24),
        (7, 24),
        (8, 24),
        (4, 8),
        (5, 120),
        (5, 119),  # no search for a last random square, of which there may be none
        (6, 600),
    ):
        with subtests.test(n=n, k=k):
            rounds = balanced_rounds(question(n), k)
            orders = [order for round_ in rounds for order in round_]
            assert len(set(orders)) == len(orders) == min(math.ceil(k / n) * n, math.factorial(n))
            for round_ in rounds:
                assert set(counts(round_).values()) == {1}
                assert len(round_) == n


def test_all_orders_where_there_are_few() -> None:
    every = set(itertools.permutations(range(4)))
    assert set(orders_for(question(4), "shared:24")) == set(orders_for(question(4), "balanced:24")) == every


@pytest.mark.parametrize("kind", ["shared", "balanced"])
@given(listing=st.permutations(range(6)), seed=st.integers(0, 5))
def test_texts_shown_do_not_depend_on_the_file(kind: str, listing: list[int], seed: int) -> None:
    texts = tuple(f"option {i}" for i in listing)
    shown = {tuple(texts[i] for i in order) for order in orders_for(question(6, options=texts), f"{kind}:24", seed)}
    plain = question(6)
    assert shown == {tuple(plain.options[i] for i in order) for order in orders_for(plain, f"{kind}:24", seed)}


@pytest.mark.parametrize("kind", ["shared", "balanced", "given", "cyclic"])
def test_pinned_options_stay(kind: str) -> None:
    orders = orders_for(question(7, pinned=(2, 6)), f"{kind}:24")
    assert all(order[2] == 2 and order[6] == 6 for order in orders)
    assert {c for (_, option), c in counts(orders).items() if option not in (2, 6)} == {5}
    assert orders_for(question(3, pinned=(0, 1, 2)), f"{kind}:24") == [(0, 1, 2)]


@pytest.mark.parametrize("spec", ["shared", "shared:", "shared:0", "balanced:x", "shared:-3"])
def test_malformed_names(spec: str) -> None:
    with pytest.raises(InputError, match="shared:K"):
        orders_for(question(5), spec)
