"""Shortcut controls."""

from __future__ import annotations

import numpy as np
import pytest

from unslant.metrics.shortcuts import (
    ANSWER_RUN,
    Shortcut,
    longest,
    numeric_outlier,
    shortcut_picks,
    shortcuts,
    stem_overlap,
)
from unslant.questions import Question


def _question(options: tuple[str, ...], stem: str = "?", answer: int = 0, key: str = "q") -> Question:
    return Question(key, stem, options, frozenset({answer}), subject="s")


@pytest.mark.parametrize(
    ("options", "picked"),
    [
        (("aa", "b", "cc"), {0, 2}),
        (("a", "bb ", "c"), {1}),
        (("aa", "bb"), set()),
    ],
)
def test_longest(options: tuple[str, ...], picked: set[int]) -> None:
    assert longest(_question(options)) == picked


@pytest.mark.parametrize(
    ("options", "picked"),
    [
        (("1", "2", "3", "900"), {3}),
        (("$1,000", "$1,010", "$20", "$990"), {2}),
        (("-5 °C", "−4 °C", "40 °C"), {2}),
        (("1e3", "2", "3"), {0}),
        (("1", "2", "three"), set()),
        (("1 or 2", "3", "4"), set()),
        (("1", "9"), set()),
        (("5", "5", "5"), set()),
    ],
)
def test_numeric_outlier(options: tuple[str, ...], picked: set[int]) -> None:
    assert numeric_outlier(_question(options)) == picked


def test_stem_overlap_counts_content_words() -> None:
    question = _question(("the blue whale", "a red fox", "the whale"), "What is the colour of the Whale?")
    assert stem_overlap(question) == {2}
    assert stem_overlap(_question(("of the", "is it"), "What is the colour of it?")) == set()


def test_answer_runs_repeat_the_label_before() -> None:
    questions = [_question(("a", "b", "c"), answer=a, key=f"q{a}{i}") for i, a in enumerate((2, 2, 0))]
    questions.insert(1, Question("none", "?", ("a", "b"), frozenset()))
    assert shortcut_picks(questions)[ANSWER_RUN] == [set(), set(), set(), {2}]


def _by_name(found: tuple[Shortcut, ...]) -> dict[str, Shortcut]:
    return {shortcut.name: shortcut for shortcut in found}


def _set(n: int, long_is_right: float) -> list[Question]:
    """One long option, right in a share of the questions; no other shortcut says anything but runs."""
    rng = np.random.default_rng(0)
    made = []
    for i in range(n):
        options = ["wort", "haus", "baum", "feld"]
        place = int(rng.integers(4))
        options[place] = "sehr langes Wort"
        answer = place if rng.random() < long_is_right else (place + 1 + int(rng.integers(3))) % 4
        made.append(_question(tuple(options), answer=answer, key=f"q{i}"))
    return made


def test_a_shortcut_that_earns_and_is_followed() -> None:
    questions = _set(400, 0.5)
    found = _by_name(shortcuts(questions, [longest(q).pop() for q in questions]))["longest option"]
    assert found.score.value == pytest.approx(0.5, abs=0.08)
    assert found.guess == 0.25
    assert found.earns
    assert found.follow.value == 1
    assert found.follow_chance == pytest.approx(1 / 3)
    assert found.follow.n == sum(longest(q) != q.answers for q in questions)
    assert found.excess.value == pytest.approx(2 / 3)
    assert found.followed
    assert found.applies.value == 1


def test_wrong_answers_at_random_follow_by_chance() -> None:
    questions = _set(600, 0.25)
    drawn = [np.random.default_rng(seed).integers(4, size=len(questions)) for seed in range(20)]
    results = [_by_name(shortcuts(questions, chosen)) for chosen in drawn]
    assert sum(found["longest option"].followed for found in results) <= 2  # 0.5 expected
    found = results[0]
    assert not found["longest option"].earns
    assert found["longest option"].follow.value == pytest.approx(found["longest option"].follow_chance, abs=0.08)
    assert not found["numeric outlier"].score.defined
    assert found["numeric outlier"].applies.value == 0
    assert found["numeric outlier"].to_dict()["guess"] is None


@pytest.mark.parametrize(("n", "followed"), [(8, 0.2), (12, 0.1), (30, 0.05)])
def test_a_shortcut_that_no_wrong_answer_follows_may_be_followed_elsewhere(n: int, followed: float) -> None:
    """With 3 to 5 options the chances differ a little, which is all that such a sample shows: 0.79 were held."""
    rng, held = np.random.default_rng(n), []
    for _ in range(200):
        sizes = rng.integers(3, 6, n)
        lengths = [[*range(2, size + 1), 20] for size in sizes]
        questions = [_question(tuple("x" * k for k in each), key=f"q{i}") for i, each in enumerate(lengths)]
        chosen = [len(each) - 1 if rng.random() < followed else 1 for each in lengths]
        excess = _by_name(shortcuts(questions, chosen))["longest option"].excess
        held.append(excess.low <= followed - (1 / 2 + 1 / 3 + 1 / 4) / 3 <= excess.high)
    assert np.mean(held) >= 0.93


def test_four_questions_show_no_shortcut() -> None:
    for n, shown in ((4, False), (40, True)):
        questions = _set(n, 1.0)
        found = _by_name(shortcuts(questions, [0] * n))["longest option"]
        assert found.score.value == 1
        assert found.earns == shown  # the interval of four, 0.47 to 1, is above guessing


def test_runs_in_the_key_are_worth_something() -> None:
    questions = [_question(("wort", "haus", "baum", "feld"), answer=i // 25 % 4, key=f"q{i}") for i in range(400)]
    found = _by_name(shortcuts(questions, [None] * 400))[ANSWER_RUN]
    assert found.score.value == pytest.approx(1 - 15 / 399)
    assert found.earns
    assert not found.follow.defined


def test_questions_with_no_right_option_are_left_out() -> None:
    questions = [Question("none", "?", ("a", "bb"), frozenset()), _question(("a", "bb"), answer=1)]
    found = _by_name(shortcuts(questions, [1, 0]))["longest option"]
    assert found.score.n == found.applies.n == 1
