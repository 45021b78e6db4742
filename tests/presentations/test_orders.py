from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.order_variance import option_segments
from tests.presentations.strategies import questions
from unslant.errors import InputError
from unslant.presentations import (
    all_orders,
    canonical,
    cyclic_orders,
    given_order,
    orders_for,
    present,
    question_rng,
    reversed_order,
    sampled_orders,
)
from unslant.presentations.orders import auto_arrangements, auto_orders, auto_square, latin_squares
from unslant.questions.question import Question

SPECS = st.sampled_from(["auto", "all", "latin", "cyclic", "reverse", "given", "1", "2", "7", "24", "100"])


def question(n: int, pinned: tuple[int, ...] = ()) -> Question:
    return Question("q", "Which?", tuple(f"option {i}" for i in range(n)), frozenset({0}), pinned=pinned)


@given(questions(), SPECS, st.integers(0, 3))
def test_orders_are_distinct_permutations_with_pinned_options_in_place(q, spec, seed):
    orders = orders_for(q, spec, seed)
    assert orders
    assert len(set(orders)) == len(orders)
    for order in orders:
        assert sorted(order) == list(range(len(q.options)))
        assert all(order[i] == i for i in q.pinned)


@given(questions())
def test_all_are_all_and_cyclic_and_reversed_are_among_them(q):
    everything = all_orders(q)
    assert len(everything) == math.factorial(len(q.movable))
    assert everything[0] == given_order(q)
    assert {*cyclic_orders(q), reversed_order(q), given_order(q)} <= set(everything)


@given(questions())
def test_cyclic_orders_put_every_movable_option_in_every_movable_place_once(q):
    orders = cyclic_orders(q)
    assert orders[0] == given_order(q)
    for place in q.movable:
        assert sorted(order[place] for order in orders) == list(q.movable)


@given(questions(), st.integers(1, 130))
def test_sampling_gives_k_orders_or_all_there_are(q, k):
    assert len(sampled_orders(q, k)) == min(k, math.factorial(len(q.movable)))


@given(st.data(), questions(pins=False), st.integers(1, 30), st.integers(0, 3))
def test_sampled_presentations_do_not_depend_on_the_order_in_the_file(data, q, k, seed):
    shuffled = data.draw(st.permutations(range(len(q.options))))
    other = replace(
        q,
        options=tuple(q.options[i] for i in shuffled),
        answers=frozenset(shuffled.index(i) for i in q.answers),
    )

    def shown(q: Question) -> Counter[tuple[str, ...]]:
        return Counter(tuple(q.options[i] for i in order) for order in sampled_orders(q, k, seed))

    assert shown(q) == shown(other)


@given(questions(pins=False, distinct=True), st.integers(1, 30))
def test_sampled_right_answers_have_the_same_places_in_every_order_of_the_file(q, k):
    backwards = replace(q, options=q.options[::-1], answers=frozenset(len(q.options) - 1 - i for i in q.answers))

    def marked(q: Question) -> set[tuple[tuple[str, bool], ...]]:
        return {tuple((q.options[i], i in q.answers) for i in order) for order in sampled_orders(q, k)}

    assert marked(q) == marked(backwards)


@given(questions())
def test_canonical_is_sorted_by_text(q):
    texts = [q.options[i] for i in canonical(q)]
    assert texts == sorted(texts)
    assert set(canonical(q)) == set(q.movable)


def test_one_questions_orders_do_not_depend_on_what_was_drawn_before():
    q = question(6)
    alone = sampled_orders(q, 10, seed=3)
    random.seed(0)
    for other in range(5):
        sampled_orders(replace(q, id=f"other {other}"), 10, seed=3)
    random.random()
    assert sampled_orders(q, 10, seed=3) == alone
    assert sampled_orders(q, 10, seed=4) != alone
    assert sampled_orders(replace(q, id="r"), 10, seed=3) != alone


def test_draws_stay_what_they_were():
    """Published numbers name their seed: a change of these values is a change of results."""
    assert sampled_orders(question(5), 3, seed=0) == [(2, 4, 0, 1, 3), (0, 2, 1, 4, 3), (4, 1, 3, 2, 0)]


@given(st.text(), st.text(), st.integers(0, 5))
def test_generators_differ_by_question_seed_and_purpose(a, b, seed):
    def first(*key: object) -> float:
        return question_rng(*key).random()

    assert first(a, seed, "orders") == first(a, seed, "orders")
    assert first(a, seed, "orders") != first(a, seed + 1, "orders")
    assert first(a, seed, "orders") != first(a, seed, "shots")
    assert a == b or first(a, seed, "orders") != first(b, seed, "orders")


def test_samples_are_even():
    """Every option in every place about equally often, over many questions."""
    counts = Counter(
        (option, place)
        for i in range(600)
        for order in sampled_orders(replace(question(4), id=str(i)), 5)
        for place, option in enumerate(order)
    )
    # 3,000 orders: 750 expected in each cell, standard deviation below 24
    assert len(counts) == 16
    assert all(abs(count - 750) < 5 * 24 for count in counts.values())


def test_auto_is_all_up_to_four_options_and_sets_of_rotations_beyond():
    assert [len(orders_for(question(n), "auto")) for n in range(2, 15)] == [
        2, 6, 24, 25, 24, 28, 24, 27, 30, 33, 24, 13, 14,
    ]  # fmt: skip
    assert set(orders_for(question(4), "auto")) == set(orders_for(question(4), "all"))
    assert len(orders_for(question(5, pinned=(4,)), "auto")) == 24


@given(questions(max_options=14))
def test_auto_begins_with_the_rotations_and_puts_every_option_everywhere_equally_often(q):
    orders = orders_for(q, "auto")
    free = max(1, len(q.movable))
    assert orders[:free] == cyclic_orders(q)
    assert len(set(orders)) == len(orders)
    assert free > 12 or reversed_order(q) in orders
    if 3 <= free <= 12:
        assert orders[free] == reversed_order(q)
    counts = Counter((place, order[place]) for order in orders for place in q.movable)
    assert set(counts.values()) <= {len(orders) // free}
    assert len(counts) == len(q.movable) ** 2


@pytest.mark.parametrize("n", range(5, 9))
def test_no_other_rotations_share_more_with_those_already_chosen(n):
    """Greedily: of all sets of rotations, none that could come next adds fewer lines to compute."""
    orders = orders_for(question(n), "auto")
    bases = [(0, *rest) for rest in itertools.permutations(range(1, n))]
    for start in range(2 * n, len(orders), n):
        chosen, before = set(orders[:start]), option_segments(orders[:start])
        others = (
            option_segments([*orders[:start], *(b[k:] + b[:k] for k in range(n))]) for b in bases if b not in chosen
        )
        assert option_segments(orders[: start + n]) - before == min(others) - before


@given(questions(), st.integers(0, 3))
def test_a_latin_square_has_every_option_in_every_place_once(q, seed):
    for orders in (orders_for(q, "latin", seed), auto_square(q, seed)):
        assert len(orders) == max(1, len(q.movable))
        for place in set(range(len(q.options))) - set(q.pinned):
            assert sorted(order[place] for order in orders) == sorted(q.movable)
    assert set(auto_square(q, seed)) <= set(auto_orders(q))


@pytest.mark.parametrize("n", range(1, 14))
def test_each_order_is_in_equally_many_squares(n):
    counts = Counter(order for square in latin_squares(n) for order in square)
    assert set(counts) == set(auto_arrangements(n))
    assert len(set(counts.values())) == 1
    assert len(latin_squares(n)) == {1: 1, 2: 1, 3: 2, 4: 24}.get(n, len(auto_arrangements(n)) // n)


@pytest.mark.parametrize("n", [4, 5])
def test_each_order_is_equally_likely_to_be_asked(n):
    draws = 1200
    counts = Counter(order for i in range(draws) for order in orders_for(replace(question(n), id=f"q{i}"), "latin"))
    expected = draws * n / math.factorial(n)
    assert len(counts) == math.factorial(n)
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 1.5 * math.factorial(n)


@given(questions(), st.integers(0, 3))
def test_the_texts_of_a_square_do_not_depend_on_the_order_of_the_file(q, seed):
    if q.pinned or len(set(q.options)) < len(q.options):
        return
    turned = replace(q, options=q.options[::-1], answers=frozenset(len(q.options) - 1 - a for a in q.answers))
    shown = ({tuple(one.options[i] for i in order) for order in orders_for(one, "latin", seed)} for one in (q, turned))
    assert next(shown) == next(shown)


def test_with_everything_pinned_only_the_given_order_is_left():
    q = question(3, pinned=(0, 1, 2))
    for spec in ("auto", "all", "latin", "cyclic", "reverse", "given", "5"):
        assert orders_for(q, spec) == [(0, 1, 2)]


@pytest.mark.parametrize("spec", ["", "0", "-1", "2.5", "some", "ALL", " 4"])
def test_unknown_orders_are_refused_with_the_allowed_ones(spec):
    with pytest.raises(InputError, match="use one of auto, all, latin, cyclic, reverse, given, or a number"):
        orders_for(question(4), spec)


def test_too_many_orders_are_refused_with_a_way_out():
    with pytest.raises(InputError, match="40,320 orders; use orders=24"):
        orders_for(question(8), "all")
    assert len(orders_for(question(26), "auto")) == 26  # the rotations


@given(questions(), st.integers(0, 3))
def test_presenting_an_order_shows_it(q, seed):
    for order in orders_for(q, "5", seed):
        assert tuple(option.content for option in present(q, order).shown) == order
