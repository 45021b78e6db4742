"""Columns that hold one field twice: the first was read, and the second ignored in silence."""

from __future__ import annotations

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


@pytest.mark.parametrize("values", [["hard", "easy", "hard", ""], [0.25, 0.5, 0.75, 0.1], [17, 40, 33, 99], [None] * 4])
@pytest.mark.parametrize("name", ["label", "target", "correct"])
def test_a_column_that_is_no_answer_is_not_compared(name: str, values: list[Any]) -> None:
    read = load_questions(rows(answer=FORMS["letters"], **{name: values}))
    assert [question.answers for question in read] == [{i} for i in RIGHT]


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
    names = {"context": passages["context"], "story": ["story_17"] * 4}
    assert load_questions(rows(answer=RIGHT, **names))[0].context == passages["context"][0]
