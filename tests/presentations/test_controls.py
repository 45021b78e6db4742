"""Control presentations and Nvr-X orders."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.errors import InputError
from unslant.presentations import all_orders, control_presentations, label_orders, nvr_order, nvr_presentations, present
from unslant.prompts import Cloze, Counterfactual, Writer, load_template
from unslant.questions import Question


@pytest.mark.parametrize("n", range(2, 11))
def test_every_label_appears_at_every_position_equally_often(n: int) -> None:
    orders = label_orders(n)
    assert len(set(orders)) == len(orders)
    assert len(orders) == (math.factorial(n) if n <= 4 else n * math.ceil(24 / n))
    counts = Counter((place, label) for order in orders for place, label in enumerate(order))
    assert set(counts.values()) == {len(orders) // n}
    assert len(counts) == n * n


def test_control_prompts_are_the_papers_word_for_word() -> None:
    writer = Writer(load_template("base-rate"))
    shown = control_presentations(4)
    assert len(shown) == 24
    first = shown[0][1]
    (cloze,) = Cloze(writer).prompts(first)
    assert cloze.text == (
        "Select an answer choice (A) choice (B) choice (C) choice (D) choice. Of the answer choices above, "
        "the best answer choice is ("
    )
    assert cloze.continuations == ("A", "B", "C", "D")
    counterfactual = Counterfactual(writer, "the very best").prompts(first)
    shared = cloze.text.removesuffix(" the best answer choice is (")
    assert [p.text for p in counterfactual] == [f"{shared} answer choice {label} is the" for label in "ABCD"]
    assert {p.continuations for p in counterfactual} == {(" the very best",)}
    assert {presentation.labels for _, presentation in shown} == set(itertools.permutations("ABCD"))
    assert not any(presentation.answers for _, presentation in shown)


def test_too_few_labels_are_refused() -> None:
    with pytest.raises(InputError, match="5 options"):
        control_presentations(5, ("W", "X", "Y", "Z"))


@st.composite
def questions(draw: st.DrawFn) -> Question:
    n = draw(st.integers(2, 7))
    options = draw(st.lists(st.text("abc", min_size=1, max_size=4), min_size=n, max_size=n))
    answers = draw(st.sets(st.integers(0, n - 1), max_size=n))
    pinned = draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    return Question(draw(st.uuids()).hex, "?", tuple(options), frozenset(answers), pinned=tuple(sorted(pinned)))


@given(questions(), st.integers(0, 6), st.integers(0, 3))
def test_no_right_option_has_label_x(question: Question, x: int, seed: int) -> None:
    fits = [o for o in all_orders(question) if question.answers and x < len(o) and o[x] not in question.answers]
    order = nvr_order(question, x, seed)
    assert (order is None) == (not fits)
    assert order is None or order in fits
    assert order == nvr_order(question, x, seed)


def test_all_fitting_orders_are_equally_likely() -> None:
    question = Question("q", "?", tuple("wxyz"), frozenset({2}))
    counts = Counter(nvr_order(question, 1, seed) for seed in range(3600))
    assert len(counts) == 18
    assert max(abs(count - 200) for count in counts.values()) < 5 * math.sqrt(200)
    wrong_is_pinned = replace(question, answers=frozenset({0}), pinned=(3,))
    assert len({nvr_order(wrong_is_pinned, 3, seed) for seed in range(30)}) == 6


@given(st.permutations(range(4)), st.integers(0, 3), st.integers(0, 5))
def test_what_is_shown_does_not_depend_on_the_order_in_the_file(place: list[int], x: int, seed: int) -> None:
    texts = ("red", "green", "blue", "white")
    one = Question("q", "?", texts, frozenset({0}))
    other = Question("q", "?", tuple(texts[i] for i in place), frozenset({place.index(0)}))
    shown = [[q.options[i] for i in nvr_order(q, x, seed) or ()] for q in (one, other)]
    assert shown[0] == shown[1]


def test_variants_are_all_there_or_none() -> None:
    question = Question("q", "?", ("a", "b", "all of these"), frozenset({2}), pinned=(2,))
    assert nvr_order(question, 2) is None
    assert nvr_presentations(question) == []
    only_the_pinned_is_wrong = replace(question, answers=frozenset({0, 1}))
    assert (nvr_order(only_the_pinned_is_wrong, 0), nvr_order(only_the_pinned_is_wrong, 2)) == (None, (1, 0, 2))
    free = Question("q", "?", ("a", "b", "c"), frozenset({2}))
    shown = nvr_presentations(free, seed=1)
    assert [(p.kind, p.item) for p in shown] == [("nvr", "A"), ("nvr", "B"), ("nvr", "C")]
    assert all(p.item not in p.right_labels for p in shown)


def test_a_presentation_decodes_to_content() -> None:
    question = Question("q", "?", ("a", "b", "c", "d"), frozenset({3}))
    order = nvr_order(question, 0)
    assert order is not None
    shown = present(question, order)
    assert [option.text for option in shown.shown] == [question.options[i] for i in order]
