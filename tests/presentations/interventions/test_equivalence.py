"""What counts as saying the same, and what the wording of a stem gives away."""

from __future__ import annotations

import pytest

from unslant.presentations.interventions import equivalent, language
from unslant.presentations.interventions.language import overlapping


def test_equivalent(subtests: pytest.Subtests) -> None:
    for a, b in (
        ("Paris", "paris."),
        ("The Moon", "moon"),
        ("$1,000.00", "1000"),
        ("1/2", "50%"),
        ("0.50", ".5"),
        ("seven", "7"),
        ("−5", "-5"),
        ("“Yes!”", "yes"),
        ("x^2 + 1", "x^2+1"),
        ("  two  words ", "two words"),
        ("½", "1/2"),
    ):
        with subtests.test(a=a, b=b):
            assert equivalent(a, b)
            assert equivalent(b, a)


def test_not_equivalent(subtests: pytest.Subtests) -> None:
    for a, b in (
        ("5", "-5"),
        ("x+1", "x-1"),
        ("Paris", "Parisian"),
        ("10", "100"),
        (">", "<"),
        ("1.5", "15"),
        ("A", "B"),
        ("?", "!"),
        ("", "a"),
    ):
        with subtests.test(a=a, b=b):
            assert not equivalent(a, b)


def test_overlap():
    assert overlapping("Paris", "Paris, France")
    assert not overlapping("Paris, Texas", "Paris, France")


def test_stems(subtests: pytest.Subtests) -> None:
    for stem, generic, exception, compares, of_options in (
        ("Which of the following is true?", True, False, False, True),
        ("Which of these is NOT a mammal?", True, True, False, True),
        ("All of these are mammals except the", True, True, False, True),
        ("Which planet is the largest by mass?", False, False, True, True),
        ("What is the most likely cause of the fire in the forest?", False, False, False, False),
        ("It does not rain there. The air is dry. The sand is hot. What do camels store?", False, False, False, False),
        ("What does the miller eat at noon?", False, False, False, False),
        ("Who invented the steam engine? Where was it built?", False, False, False, True),
        ("What shouldn't a diver hold?", False, True, False, False),
    ):
        with subtests.test(stem=stem, generic=generic):
            assert language.generic(stem) == generic
            assert language.asks_for_exception(stem) == exception
            assert language.compares(stem) == compares
            assert language.speaks_of_options(stem) == of_options


@pytest.mark.parametrize(
    "text", ["None of the above", "neither", "No change", "no correct answer", "There is no such law"]
)
def test_options_that_say_none(text):
    assert language.says_none(text)


@pytest.mark.parametrize("text", ["Nonesuch", "Norway", "a nonet", "Neithercut"])
def test_options_that_do_not(text):
    assert not language.says_none(text)


def test_options_that_cannot_be_borrowed(subtests: pytest.Subtests) -> None:
    for text in (
        "yes",
        "Both of them",
        "all of the above",
        "I and II",
        "",
        "It is red",
        "True",
        "cannot be determined",
    ):
        with subtests.test(text=text):
            assert not language.stands_alone(text)
