"""Nvr-X scores: closed forms, readings, and orders that are already scored."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from unslant.metrics import Bootstrap, OrderScores, read_scores
from unslant.metrics.nvr import nvr, nvr_from_scores
from unslant.presentations import all_orders, nvr_order, present
from unslant.questions import Question
from unslant.responses import Response

QUESTIONS = 3000
Choice = Callable[[np.random.Generator, int], int]
"""From a generator and the number of options to the position answered."""


def _question(i: int, n: int) -> Question:
    return Question(f"q{n}/{i}", "?", tuple(f"option {k}" for k in range(n)), frozenset({i % n}), subject=f"s{i % 12}")


def _measured(n: int, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    right = np.zeros((QUESTIONS, n))
    plain = np.zeros(QUESTIONS)
    for i in range(QUESTIONS):
        question = _question(i, n)
        plain[i] = choice(rng, n) in question.answers
        for x in range(n):
            order = nvr_order(question, x)
            assert order is not None
            right[i, x] = order[choice(rng, n)] in question.answers
    return right, plain


def _guess(rng: np.random.Generator, n: int) -> int:
    return int(rng.integers(n))


def _first(rng: np.random.Generator, n: int) -> int:
    return 0


def _never_first(rng: np.random.Generator, n: int) -> int:
    return int(rng.integers(1, n))


@pytest.mark.thorough
@pytest.mark.parametrize("n", range(2, 7))
@pytest.mark.parametrize(("choice", "expected"), [(_guess, "guess"), (_first, None), (_never_first, "never")])
def test_answerers_without_knowledge_score_the_closed_form(n: int, choice: Choice, expected: str | None) -> None:
    right, plain = _measured(n, choice)
    found = nvr(right, plain, np.full(QUESTIONS, n), "ABCDEF"[:n], Bootstrap(QUESTIONS))
    assert found["score"].n == QUESTIONS
    # the least of n accuracies lies a little below their common expectation: at most 3 standard errors
    tolerance = 3 * np.sqrt(0.25 / QUESTIONS)
    assert found["score"].value == pytest.approx(found[expected].value if expected else 0.0, abs=tolerance)
    assert found["plain"].value == pytest.approx(1 / n, abs=tolerance)
    if choice is _first:
        assert found["score"].value == 0
        assert found.accuracy[-1].value == pytest.approx(1 / (n - 1), abs=tolerance)


def test_closed_forms_of_the_paper() -> None:
    two, four = (nvr(np.ones((9, n)), np.ones(9), np.full(9, n), "ABCD"[:n], Bootstrap(9)) for n in (2, 4))
    assert four["guess"].value == 0.25
    assert four["never"].value == pytest.approx(2 / 9)
    assert two["never"].value == 0


@pytest.mark.parametrize(
    ("choice", "readings"), [(_guess, []), (_first, [("A", "prefers")]), (_never_first, [("A", "avoids")])]
)
def test_a_preferred_or_avoided_label_is_named(choice: Choice, readings: list[tuple[str, str]]) -> None:
    right, plain = _measured(4, choice)
    found = nvr(right, plain, np.full(QUESTIONS, 4), "ABCD", Bootstrap(QUESTIONS))
    assert [(r.label, r.kind) for r in found.readings] == readings


def test_questions_of_other_sizes_count_in_their_own_way() -> None:
    # always the last position: no single letter is at fault, yet nothing is known
    parts = [_measured(n, lambda rng, n: n - 1) for n in (2, 4)]
    right = np.full((2 * QUESTIONS, 4), np.nan)
    right[:QUESTIONS, :2], right[QUESTIONS:] = parts[0][0], parts[1][0]
    plain = np.concatenate([parts[0][1], parts[1][1]])
    sizes = np.repeat([2, 4], QUESTIONS)
    found = nvr(right, plain, sizes, "ABCD", Bootstrap(2 * QUESTIONS))
    assert found["score"].value == 0
    assert found["guess"].value == pytest.approx(0.375)
    assert [estimate.n for estimate in found.accuracy] == [2 * QUESTIONS] * 2 + [QUESTIONS] * 2


def test_questions_without_every_variant_are_left_out_and_counted() -> None:
    right = np.array([[1.0, 0.0], [np.nan, 1.0], [1.0, 1.0]])
    found = nvr(right, np.array([1.0, 1.0, 0.0]), np.array([2, 2, 2]), "AB", Bootstrap(3))
    assert found.left_out == 1
    assert found["plain"].n == found["score"].n == 2
    assert found["score"].value == 0.5
    empty = nvr(np.full((2, 2), np.nan), np.zeros(2), np.array([2, 2]), "AB", Bootstrap(2))
    assert not empty["score"].defined
    assert empty.left_out == 2


def _scored(questions: list[Question], position: Choice) -> OrderScores:
    rng = np.random.default_rng(0)
    rows = []
    for question in questions:
        n = len(question.options)
        for order in all_orders(question):
            logprobs = np.full(n, -5.0)
            logprobs[position(rng, n)] = -0.1
            rows.append(Response.of(question, present(question, order), "cloze", logprobs=logprobs))
    return read_scores(rows)


def test_orders_already_scored_give_nvr_without_another_call() -> None:
    found = nvr_from_scores(_scored([_question(i, 4) for i in range(200)], _first))
    assert found["score"].value == 0
    assert found.accuracy[0].value == 0
    assert found.accuracy[2].value == pytest.approx(1 / 3, abs=1e-9)
    assert found.left_out == 0
    assert found.readings[0].phrase == "prefers A when unsure"


def test_uneven_orders_count_each_place_of_the_right_option_the_same() -> None:
    """Right at the top in one order, at the bottom in three: either place is half of the score."""
    question = _question(0, 4)
    rows = []
    for order in [(0, 1, 2, 3), (1, 2, 3, 0), (2, 1, 3, 0), (3, 2, 1, 0)]:
        logprobs = np.array([-0.1, -5.0, -5.0, -5.0])
        rows.append(Response.of(question, present(question, order), "cloze", logprobs=logprobs))
    found = nvr_from_scores(read_scores(rows))
    assert [estimate.value for estimate in found.accuracy] == pytest.approx([0, 0.5, 0.5, 1])


def test_the_right_options_places_weigh_the_same() -> None:
    """Checked against a plain enumeration, on a model whose answer hangs on the whole order."""
    question = _question(1, 4)
    rng = np.random.default_rng(3)
    right = {order: bool(rng.integers(2)) for order in all_orders(question)}
    rows = []
    for order, good in right.items():
        logprobs = np.full(4, -5.0)
        place = order.index(1)
        logprobs[place if good else (place + 1) % 4] = -0.1
        rows.append(Response.of(question, present(question, order), "cloze", logprobs=logprobs))
    found = nvr_from_scores(read_scores(rows))
    for x in range(4):
        by_place = [
            np.mean([good for order, good in right.items() if order[place] == 1]) for place in range(4) if place != x
        ]
        assert found.accuracy[x].value == pytest.approx(np.mean(by_place))


def test_ties_go_to_the_first_label() -> None:
    question = _question(0, 3)
    rows = [
        Response.of(question, present(question, o), "cloze", logprobs=np.zeros(3))
        for o in itertools.permutations(range(3))
    ]
    found = nvr_from_scores(read_scores(rows))
    assert [estimate.value for estimate in found.accuracy] == pytest.approx([0, 0.5, 0.5])


def test_a_little_noise_does_not_show_that_no_label_is_preferred() -> None:
    """40 questions that a strong model is hardly sure of may show none that it does not know: the gap was then said to
    be 0 to within 0.05, and held in 0.89 of the samples."""
    right = 1 - np.random.default_rng(0).binomial(1, 0.1, (40, 4)) / 18
    gaps = [one.gap for one in nvr(right, right[:, 0], np.full(40, 4), "ABCD", Bootstrap(40)).extremes]
    assert all(abs(gap.value) < 0.01 and gap.low < -0.05 and gap.high > 0.05 for gap in gaps)
    unsure = Bootstrap(40, unsure=np.arange(40) < 5)
    (prefers, _) = nvr(right, right[:, 0], np.full(40, 4), "ABCD", unsure).extremes
    assert prefers.gap.low > -0.05
