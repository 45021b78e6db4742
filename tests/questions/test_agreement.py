"""Columns that hold one field twice: the first was read, and the second ignored in silence."""

from __future__ import annotations

import re
from typing import Any

import pytest

from unslant.errors import InputError
from unslant.questions import load_questions

OPTIONS = ["grass", "blood", "sky", "milk"]
RIGHT = [1, 2, 0, 3]
FORMS: dict[str, list[Any]] = {
    "from 0": RIGHT,
    "from 1": [i + 1 for i in RIGHT],
    "texts of numbers": [str(i) for i in RIGHT],
    "decimals": [float(i) for i in RIGHT],
    "letters": ["ABCD"[i] for i in RIGHT],
    "texts": [OPTIONS[i].upper() for i in RIGHT],
    "marked": [f"({'ABCD'[i]}) {OPTIONS[i]}" for i in RIGHT],
    "lists": [[i] for i in RIGHT],
}


def rows(**columns: list[Any]) -> list[dict[str, Any]]:
    asked = [{"question": f"Question {n}?", "options": OPTIONS} for n in range(len(RIGHT))]
    return [one | {name: values[n] for name, values in columns.items()} for n, one in enumerate(asked)]


@pytest.mark.parametrize("other", FORMS)
@pytest.mark.parametrize("form", ["letters", "from 0", "texts"])
def test_two_columns_of_answers_that_agree_or_not(form: str, other: str) -> None:
    agreeing = rows(answer=FORMS[form], correct_option=FORMS[other])
    assert [question.answers for question in load_questions(agreeing)] == [{i} for i in RIGHT]
    swapped = [*FORMS[other][:2], FORMS[other][3], FORMS[other][2]]
    differing = rows(answer=FORMS[form], correct_option=swapped)
    message = (
        r"item 3, field \"answer\": the column 'correct_option' says option 4 \('milk'\), but 'answer' says option 1"
    )
    with pytest.raises(InputError, match=message):
        load_questions(differing)
    for column, rights in {"answer": RIGHT, "correct_option": [1, 2, 3, 0]}.items():
        base = 1 if column != "answer" and other == "from 1" else None
        chosen = load_questions(differing, fields={"answer": column}, answer_base=base)
        assert [question.answers for question in chosen] == [{i} for i in rights]
    assert load_questions(differing, skip_bad=True).report.skipped == {"columns with different answers": 2}


@pytest.mark.parametrize("name", ["Key", "ans"])
def test_a_key_that_differs_from_a_column_with_a_usual_name(name: str) -> None:
    """In silence, a column of groups called label was read as the answers, and the one called Key was not read."""
    with pytest.raises(InputError, match=f"the column '{name}' says option 2 .* but 'label' says option 3"):
        load_questions(rows(**{name: FORMS["letters"], "label": [2, 1, 2, 1]}))
    assert len(load_questions(rows(**{name: FORMS["letters"], "label": RIGHT}))) == len(RIGHT)


@pytest.mark.parametrize("numbers", [["0", "1", "2", "3"], [1, 2, 3, 4], [3, 1, 0, 2]])
def test_a_key_that_numbers_the_questions_is_not_an_answer(numbers: list[Any]) -> None:
    """Files of few questions with such a key were refused, since it could be read as places."""
    found = load_questions(rows(key=numbers, answer=FORMS["letters"]))
    assert [question.answers for question in found] == [{i} for i in RIGHT]


@pytest.mark.parametrize("number", ["70", "0.7", "70%", 70])
def test_numbers_in_columns_for_each_option_are_not_options(number: Any) -> None:
    """Files that say how often each option was chosen were refused, also where they were read right."""
    texts = [{f"Option {letter}": text * 2 for letter in "ABC"} for text in ("x", "5")]
    records = [{"question": "Which?", **one, **dict.fromkeys("ABC", number), "answer": "B"} for one in texts]
    assert [question.options for question in load_questions(records)] == [("xx",) * 3, ("55",) * 3]


@pytest.mark.parametrize("first", [True, False])
def test_two_groups_of_columns_that_may_be_the_options(first: bool) -> None:
    """In silence, how often A, B and C were chosen were the options, where these columns came first."""
    counts, texts = {"A": "few", "B": "some", "C": "most"}, {f"Option {letter}": letter * 3 for letter in "ABC"}
    record = {"question": "Which?", **(counts | texts if first else texts | counts), "answer": "B"}
    groups = sorted([",".join(counts), ",".join(texts)], reverse=not first)
    either = ", or ".join(f'fields={{"options": "{group}"}}' for group in groups)
    with pytest.raises(
        InputError, match=f"list different options; choose the one that the answer refers to: {re.escape(either)};"
    ):
        load_questions([record])
    chosen = load_questions([record], fields={"options": ",".join(texts)})
    assert chosen[0].options == ("AAA", "BBB", "CCC")


@pytest.mark.parametrize(
    "values",
    [
        ["hard", "easy", "hard", ""],
        [0.25, 0.5, 0.75, 0.1],
        [17, 40, 33, 99],
        [None] * 4,
        [[0, 1, 0, 0]] * 4,
        ["hard", "A", "easy", "easy"],
    ],
)
@pytest.mark.parametrize("name", ["label", "target", "correct"])
def test_a_column_that_is_no_answer_is_not_compared(name: str, values: list[Any]) -> None:
    read = load_questions(rows(answer=FORMS["letters"], **{name: values}))
    assert [question.answers for question in read] == [{i} for i in RIGHT]


def test_a_column_that_is_read_as_another_field_is_not_compared() -> None:
    asked = rows(answer=FORMS["letters"], label=FORMS["letters"][::-1])
    assert [question.answers for question in load_questions(asked, fields={"subject": "label"})] == [{i} for i in RIGHT]
    with pytest.raises(InputError, match="the column 'label' says"):
        load_questions(asked)
    asked = rows(answer=FORMS["letters"], context=["It is so."] * 4, passage=["A text of a page."] * 4)
    assert load_questions(asked, fields={"subject": "passage"})[0].context == "It is so."


def test_a_column_that_corrects_a_few_answers_is_not_ignored() -> None:
    """As in MMLU-Redux, which has the corrected answer of wrong keys only."""
    corrected = rows(answer=RIGHT, correct_answer=["", "", "", "A"])
    with pytest.raises(InputError, match=r"item 4.*'correct_answer' says option 1.*'answer' says option 4"):
        load_questions(corrected)


def test_marks_of_the_options_and_an_answer_that_differ() -> None:
    marked = [
        {"question": "Which is red?", "options": [{"text": text, "correct": text == "blood"} for text in OPTIONS]}
        | {"answer": answer}
        for answer in ("B", "C")
    ]
    with pytest.raises(InputError, match=r"item 2.*'answer' says option 3 \('sky'\), but the marks of the options say"):
        load_questions(marked)
    assert [question.answers for question in load_questions(marked, fields={"answer": ""})] == [{1}, {1}]


def test_two_columns_with_passages_are_refused_unless_they_say_the_same() -> None:
    passages = {
        "context": ["Blood is red, and milk is not."] * 4,
        "passage": ["The sky is blue, and so is the sea."] * 4,
    }
    with pytest.raises(InputError, match=r"item 1, field \"context\": the columns 'context' and 'passage' both hold"):
        load_questions(rows(answer=RIGHT, **passages))
    both = load_questions(rows(answer=RIGHT, **passages), fields={"context": "context,passage"})
    assert both[0].context == "Blood is red, and milk is not.\nThe sky is blue, and so is the sea."
    one = load_questions(rows(answer=RIGHT, **passages), fields={"context": "passage"})
    assert one[0].context == passages["passage"][0]
    same = {"context": passages["context"], "passage": ["Title. Blood is red,  and milk is not."] * 4}
    assert load_questions(rows(answer=RIGHT, **same))[0].context == passages["context"][0]
    same = {"context": same["passage"], "passage": same["context"]}
    assert load_questions(rows(answer=RIGHT, **same))[0].context == same["context"][0]
    names = {"context": passages["context"], "story": ["story_17"] * 4}
    assert load_questions(rows(answer=RIGHT, **names))[0].context == passages["context"][0]


@pytest.mark.parametrize(
    "other",
    [
        {"choices": OPTIONS[::-1]},
        dict(zip("ABCD", OPTIONS[::-1], strict=True)),
        {"candidates": "|".join(OPTIONS[::-1])},
    ],
)
def test_two_lists_of_the_options_in_different_orders(other: dict[str, Any]) -> None:
    asked = {"question": "Which is red?", "options": OPTIONS, "answer": "B"}
    with pytest.raises(
        InputError, match=r"item 1, field \"options\": the columns .* list the options in different order"
    ):
        load_questions([asked | other])
    (first,) = load_questions([asked | other], fields={"options": "options"})
    (second,) = load_questions([asked | other], fields={"options": ",".join(other)})
    assert (first.options[1], second.options[1]) == ("blood", "sky")
    (by_text,) = load_questions([asked | other | {"answer": "blood"}])
    assert by_text.answers == {1}
    marked = [{"text": text, "correct": text == "blood"} for text in OPTIONS]
    assert load_questions([{"question": "Which is red?", "options": marked} | other])[0].answers == {1}
    same = {key: OPTIONS if isinstance(value, list) else value for key, value in other.items()}
    assert same == other or load_questions([asked | same])[0].answers == {1}


def test_another_list_is_compared_without_its_numbering_and_only_if_it_has_the_same_options() -> None:
    asked = {"question": "Which is red?", "options": OPTIONS, "answer": "B"}
    with pytest.raises(InputError, match="list the options in different order"):
        load_questions(
            [asked | {"choices": [f"{label}. {text}" for label, text in zip("ABCD", OPTIONS[::-1], strict=True)]}]
        )
    for others in (["blue", "red", "green", "white"], 4, "none"):
        assert load_questions([asked | {"choices": others}])[0].answers == {1}


@pytest.mark.parametrize("answers", [[True, False], ["Yes", "No"], ["yes", "no"]])
def test_1_and_0_beside_yes_and_no_agree(answers: list[Any]) -> None:
    asked = [{"question": f"Is it {a}?", "passage": "It may be so.", "answer": a} for a in answers]
    agreeing = [one | {"label": 1 - i} for i, one in enumerate(asked)]
    assert [question.answers for question in load_questions(agreeing)] == [{0}, {1}]
    with pytest.raises(InputError, match="'label' says option 2"):
        load_questions([*agreeing, asked[0] | {"question": "Is it?", "label": 0}])
    texts = [one | {"label": "hard"} for one in asked]
    assert [question.answers for question in load_questions(texts)] == [{0}, {1}]
    others = [{"question": f"{i}?", "options": ["cats", "dogs"], "answer": "AB"[i], "label": 1 - i} for i in (0, 1)]
    with pytest.raises(InputError, match="the column 'label' says"):
        load_questions(others)


def test_identical_options_are_named_by_their_text() -> None:
    asked = {"question": "How many?", "options": ["687", "687", "1"], "answer": "A", "correct_answer": "687"}
    assert load_questions([asked])[0].answers == {0}
