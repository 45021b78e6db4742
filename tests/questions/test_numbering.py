"""Numbering inside option texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.questions import load_questions
from unslant.questions.numbering import strip_numbering


def test_consistent_numbering_goes(subtests: pytest.Subtests) -> None:
    for options in (
        ("0. red", "1. green", "2. blue"),
        ("1) red", "2) green", "3) blue"),
        ("A. red", "B. green", "C. blue"),
        ("(a) red", "(b) green", "(c) blue"),
        ("[A] red", "[B] green", "[C] blue"),
        ("a)\tred", "b)\tgreen", "c)\tblue"),
        ("A: red", "B: green", "C: blue"),
        ("i. red", "ii. green", "iii. blue"),
        ("0. 0. red", "1. 1. green", "2. 2. blue"),
        ("Option 1: red", "Option 2: green", "Option 3: blue"),
        ("A.red", "B.green", "C.blue"),
        ("A、red", "B、green", "C、blue"),
        ("A．red", "B．green", "C．blue"),
        ("（A）red", "（B）green", "（C）blue"),
        ("A ) red", "B ) green", "C ) blue"),
        ("A.red", "(B)green", " C) blue"),
    ):
        with subtests.test(options=options):
            assert strip_numbering(options) == ("red", "green", "blue")


def test_everything_else_stays(subtests: pytest.Subtests) -> None:
    for options in (
        ("1.5 hours", "2.5 hours", "3.5 hours"),
        ("1: wool; 2: silk", "1: silk; 2: wool"),
        ("0. red", "1. green", "blue"),
        ("A. red", "C. green", "B. blue"),
        ("(G) red", "(B) green", "(D) blue", "(A) grey", "(C) pink", "(F) black", "(E) white"),
        ("A.D.", "B.C."),
        ("(1)(2)", "(2)", "(3)(1)"),
        ("(1) and (2)", "(2) and (3)", "(3) and (1)"),
        ("(c), (a), (b)", "(a), (b), (c)", "(b), (c), (a)"),
        ("A、B", "B、C", "C、A"),
        ("(ii) and (iv) only", "(i) and (iii) only"),
        ("J. B. Rhine proved it", "J. B. Rhine denied it"),
        ("9:00 A.M.", "10:00 A.M."),
        ("1", "2", "3"),
        ("1.", "2.", "3."),
        ("a cat", "b flat"),
    ):
        with subtests.test(options=options):
            assert strip_numbering(options) == options


def test_what_the_options_name_stays_after_their_numbering(subtests: pytest.Subtests) -> None:
    for named in (
        ("(i) only", "(ii) only", "(iii) only"),
        ("(1)(2)", "(2)", "(3)(1)"),
        ("(a) and (c)", "(b) only", "(c) only"),
        ("Both (A) and (R) are true", "(A) is true, (R) is false", "A new one"),
    ):
        with subtests.test(named=named):
            assert strip_numbering([f"({letter}) {text}" for letter, text in zip("ABC", named, strict=True)]) == named


def test_the_letters_of_the_options_name_the_answer_where_they_are_out_of_order() -> None:
    """As where a page in two columns was read row by row."""
    question = {"question": "Which is red?", "options": ["(A)No.1", "(C)No.3", "(B)No.2", "(D)milk"]}
    for answer, place in {"A": 0, "B": 2, "C": 1, "D": 3}.items():
        (read,) = load_questions([{**question, "answer": answer}])
        assert (read.options, read.answers) == (("No.1", "No.3", "No.2", "milk"), {place})
    assert load_questions([{**question, "answer": 1}])[0].answers == {1}


@given(st.lists(st.text(), max_size=8))
def test_stripping_twice_changes_no_more(options: list[str]) -> None:
    once = strip_numbering(options)
    assert strip_numbering(once) == once


@given(st.lists(st.text(alphabet="rgb ", min_size=1), min_size=2, max_size=8))
def test_added_numbering_is_taken_off_again(options: list[str]) -> None:
    texts = tuple(option.strip() or "r" for option in options)
    assert strip_numbering([f"{chr(65 + i)}) {text}" for i, text in enumerate(texts)]) == texts
