"""Numbering inside option texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.errors import InputError
from unslant.questions import load_questions
from unslant.questions.numbering import split_options, strip_numbering


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
        ("Ａ．red", "Ｂ．green", "Ｃ．blue"),
        ("A - red", "B - green", "C - blue"),
        ("ア\u3000red", "イ\u3000green", "ウ\u3000blue"),
        ("【A】red", "【B】green", "【C】blue"),
        ("A\tred", "B\tgreen", "C\tblue"),
        ("①red", "②green", "③blue"),
        ("⑴ red", "⑵ green", "⑶ blue"),
        ("А. red", "Б. green", "В. blue"),
        ("а) red", "б) green", "в) blue"),
        ("Α. red", "Β. green", "Γ. blue"),
        ("أ- red", "ب- green", "ج- blue"),
        ("الف) red", "ب) green", "ج) blue"),
        ("١. red", "٢. green", "٣. blue"),
        ("א. red", "ב. green", "ג. blue"),
        ("가. red", "나. green", "다. blue"),
        ("ア．red", "イ．green", "ウ．blue"),
        ("甲、red", "乙、green", "丙、blue"),
        ("ก. red", "ข. green", "ค. blue"),
        ("(क) red", "(ख) green", "(ग) blue"),
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
        ("a - b", "b - c", "c - d"),
        ("1 - x", "2 - x", "3 - x"),
        ("А.С. Пушкин", "Б.Л. Пастернак", "В.В. Маяковский"),
        ("и так", "не так"),
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


@pytest.mark.parametrize(
    "names", ["ＡＢＣＤ", "АБВГ", "ΑΒΓΔ", "أبجد", "אבגד", "가나다라", "アイウエ", "甲乙丙丁", "①②③④", "กขคง", "ⅠⅡⅢⅣ"]
)
@pytest.mark.parametrize("form", ["{}", "({})", "{}."])
def test_answers_are_read_by_the_names_that_the_options_carry(names: str, form: str) -> None:
    """The third letter of Cyrillic, В, is not B, whose place it would have had."""
    rows = [
        {
            "question": f"Which is number {place}?",
            "options": [f"{name}. {text}" for name, text in zip(names, ("grass", "blood", "sky", "milk"), strict=True)],
            "answer": form.format(names[place]),
        }
        for place in (2, 3, 0, 1)
    ]
    read = load_questions(rows)
    assert [question.answers for question in read] == [{2}, {3}, {0}, {1}]
    assert {question.options for question in read} == {("grass", "blood", "sky", "milk")}


def test_the_fifth_arabic_letter_has_a_stroke() -> None:
    assert strip_numbering(["أ- red", "ب- green", "ج- blue", "د- white", "هـ- black"])[4] == "black"


def test_a_letter_that_looks_like_another_is_named() -> None:
    with pytest.raises(InputError, match=r"'В' \(CYRILLIC CAPITAL LETTER VE\) is none of the 3 options"):
        load_questions([{"question": "Which is red?", "options": ["grass", "blood", "sky"], "answer": "В"}])


def test_letters_of_two_scripts_in_one_file_are_refused() -> None:
    options = ["А. grass", "Б. blood", "В. sky", "Г. milk"]
    rows = [{"question": f"Which, {answer}?", "options": options, "answer": answer} for answer in "БГB"]  # a Latin B
    with pytest.raises(InputError, match=r"item 3.*'B' is option 2 of 4 read as letters.*read as labels"):
        load_questions(rows)


@given(st.lists(st.text(), max_size=8))
def test_stripping_twice_changes_no_more(options: list[str]) -> None:
    once = strip_numbering(options)
    assert strip_numbering(once) == once


@given(st.lists(st.text(alphabet="rgb ", min_size=1), min_size=2, max_size=8))
def test_added_numbering_is_taken_off_again(options: list[str]) -> None:
    texts = tuple(option.strip() or "r" for option in options)
    assert strip_numbering([f"{chr(65 + i)}) {text}" for i, text in enumerate(texts)]) == texts


def test_options_written_into_a_text(subtests: pytest.Subtests) -> None:
    stem, options = "Which is red?", ("grass", "blood, fresh", "sky")
    for text in (
        "Which is red? A. grass B. blood, fresh C. sky",
        "Which is red? (A) grass (B) blood, fresh (C) sky",
        "Which is red?\nOptions:\n(A) grass\n(B) blood, fresh\n(C) sky",
        "Which is red?\n\nA) grass\nB) blood, fresh\nC) sky\nAnswer:",
        "Which is red? a ) grass , b ) blood, fresh , c ) sky",
        "Which is red?\nA．grass；B．blood, fresh；C．sky\n",
        "Which is red? A: grass; B: blood, fresh; C: sky",
    ):
        with subtests.test(text):
            assert split_options(text) == (stem, options)
    assert split_options("I. Grass. II. Sky. Which? A. I only B. II only C. both") == (
        "I. Grass. II. Sky. Which?",
        ("I only", "II only", "both"),
    )
    assert split_options("下列正确的是（ ）A．草B．血C．天") == ("下列正确的是（ ）", ("草", "血", "天"))
    assert split_options("(A) yes (B) no") == ("", ("yes", "no"))
    assert split_options("Which?\nA. x = 1;\nB. x = 2;\nC. x = 3;") == ("Which?", ("x = 1;", "x = 2;", "x = 3;"))


def test_a_million_spaces_before_the_end_are_read_like_one() -> None:
    spaces = " " * 1_000_000
    assert split_options(f"Options{spaces}x A. a B. b C. c") == (f"Options{spaces}x", ("a", "b", "c"))
    assert split_options(f"Which?\nanswer{spaces}x") is None


def test_a_text_that_may_hold_no_options_is_left_alone(subtests: pytest.Subtests) -> None:
    for text in (
        "Which is red?",
        "Who spoke? A: Hello! B: Good morning.",  # speakers
        "Which? A. grass B. blood C. sky\n\nWho? A. Ann B. Bob C. Cy",  # two questions
        "Vitamin A. is it? A. no B. yes C. both",
        "Which? A. grass B. blood D. sky",
        "Which? A. grass B. blood C. sky\n\nThe sky is blue.",
        "Which? A. grass B. blood C. sky\nAnswer: B",
        "Which? A. grass B. blood C. sky.D. sea",
        "Which? A. B. blood C. sky",
        "Which? (A) x (B) y (C) z, or A. x B. y C. z",
    ):
        with subtests.test(text):
            assert split_options(text) is None


@given(
    stem=st.text("xyz .?\n", max_size=20),
    options=st.lists(
        st.text("uvw 01\n", min_size=1).map(str.split).filter(bool).map(" ".join), min_size=3, max_size=26
    ),
    form=st.sampled_from(["{}. ", "({}) ", "{}) ", "[{}] ", "{}: "]),
    between=st.sampled_from([" ", "\n", ", ", " ; "]),
)
def test_options_written_into_a_text_are_found_again(stem: str, options: list[str], form: str, between: str) -> None:
    listed = between.join(form.format(chr(ord("A") + i)) + option for i, option in enumerate(options))
    assert split_options(f"{stem} {listed}") == (stem.strip(), tuple(options))
