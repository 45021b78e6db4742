"""Which reading of the answers was taken, by what evidence, and that a second one that fits is named."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reliability.ambiguous import answers_misread
from tests.command_line import unslant
from tests.fakes import RuleModel
from unslant import InputError, check_questions, load_questions
from unslant.auditing.study import audit
from unslant.questions import load_judging, write_questions

OPTIONS = ["oxygen", "carbon dioxide", "neon", "argon"]


def rows(answers: list[Any], options: list[Any] = OPTIONS, **more: Any) -> list[dict[str, Any]]:
    return [{"question": f"Gas {i}?", "options": options, "answer": answer, **more} for i, answer in enumerate(answers)]


@pytest.mark.parametrize("answers", [[3, 1, 2], ["3", "1", "2"], [1], [1.0, 2.0], [-1, 1, 2], [[1, 2], [3]]])
def test_numbers_that_count_from_0_or_1_are_said(answers: list[Any]) -> None:
    found = load_questions(rows(answers), skip_bad=True)
    assert "are read as counting from 0" in found.report.doubts[0]
    assert "answer_base=1" in found.report.doubts[0]
    for base in (0, 1):
        assert not load_questions(rows(answers), skip_bad=True, answer_base=base).report.doubts


@pytest.mark.parametrize("answers", [[3, 0, 2], ["A", "B"], ["neon", "argon"], [[], []]])
def test_what_can_be_read_in_one_way_raises_no_doubt(answers: list[Any]) -> None:
    assert not load_questions(rows(answers)).report.doubts


def test_written_questions_count_from_0(tmp_path: Path) -> None:
    write_questions(load_questions(rows([1, 2, 3]), answer_base=0), tmp_path / "q.jsonl")
    assert not load_questions(tmp_path / "q.jsonl").report.doubts


def test_labels_that_are_numbers_say_where_numbers_count_from() -> None:
    found = load_questions(rows([1, 2], labels=["1", "2", "3", "4"]))
    assert [question.answers for question in found] == [{0}, {1}]
    assert "counting from 1" in found.report.doubts[0]


@pytest.mark.parametrize("answers", [[2, 3, 1], ["2", "3", "1"], [[2], ["3"], ["1"]]])
def test_numbers_before_the_options_say_where_numbers_count_from(answers: list[Any]) -> None:
    numbered = [
        {"question": f"Q{i}", "options": ["1. x", "2. y", "3. z", "4. w"], "answer": a} for i, a in enumerate(answers)
    ]
    assert [question.answers for question in load_questions(numbered)] == [{1}, {2}, {0}]
    assert (
        "are read as counting from 1, but 3 of 3 could also count from 0" in load_questions(numbered).report.doubts[0]
    )
    (first, *_) = load_questions([*numbered, numbered[0] | {"question": "Q", "answer": 0}])
    assert first.answers == {2}


@pytest.mark.parametrize("answer", [["AD"], ["A, D"], ["[0, 3]"], "AD"])
def test_several_answers_in_the_only_text_of_a_list(answer: object) -> None:
    (question,) = load_questions([{"question": "Q", "options": ["x", "y", "z", "w"], "answer": answer}])
    assert question.answers == {0, 3}


def test_labels_are_no_reading_of_a_file_where_others_fit_more() -> None:
    """An index such as 1 is not the option labelled 1 where other answers are none of the labels."""
    found = load_questions(rows(["0", "1", "2"], labels=["1", "2", "3", "4"]))
    assert [question.answers for question in found] == [{0}, {1}, {2}]


@pytest.mark.parametrize(
    ("options", "answer", "right"),
    [
        (["grass", "blood"], "BLOOD.", 1),
        (["grass.", "blood."], "blood", 1),
        (["the\u0301", "cafe\u0301"], "café", 1),
        (["its", "it’s"], "it's", 1),
        (["a &gt; b", "a &lt; b"], "a < b", 1),
        (["CO", "Co"], "Co", 1),
        (["1. grass", "2. blood"], "(2)", 1),
    ],
)
def test_texts_that_differ_from_the_option_only_in_their_writing(options: list[str], answer: str, right: int) -> None:
    assert load_questions(rows([answer], options), skip_bad=True)[0].answers == {right}


def test_a_text_that_is_that_of_two_different_options_is_refused() -> None:
    """Both cobalt and carbon monoxide counted as right."""
    with pytest.raises(InputError, match=r"'co' is none of the 3 options"):
        load_questions(rows(["co"], ["CO", "Co", "O2"]))


def test_numbers_that_are_options() -> None:
    assert load_questions(rows([20, 10], [10, 20, 30]))[0].answers == {1}
    with pytest.raises(InputError, match=r"item 1, .*: 2 can be read as index and as text.*answer_kind=.index. or"):
        load_questions(rows([2], [2, 3, 5]))
    assert load_questions(rows([2], [2, 3, 5]), answer_kind="text")[0].answers == {0}


def test_an_option_text_among_letters_is_said_to_be_one() -> None:
    mixed = rows([*"ABCDABC", "carbon dioxide"])
    with pytest.raises(InputError) as error:
        load_questions(mixed)
    assert "'carbon dioxide' is option 2 of 4 read as option texts" in str(error.value)
    assert "read as letters, as 7 of 8 can be (first: list, item 1, 'A')" in str(error.value)
    assert 'answer_kind="text"' in str(error.value)
    skipped = load_questions(mixed, skip_bad=True).report
    assert skipped.skipped == {"answer that fits only as option texts, not letters": 1}


def test_as_many_letters_as_texts() -> None:
    with pytest.raises(InputError, match=r"as many answers fit only as letters .*'A'.* as fit only as option texts"):
        load_questions(rows(["A", "neon"]))


@pytest.mark.parametrize(
    ("answer", "place"), [("B) carbon dioxide", 1), ("(C)", 2), ("D. argon gas", 3), ("option 2: Carbon Dioxide", 1)]
)
def test_a_letter_with_a_text_is_read_unless_the_text_is_of_another_option(answer: str, place: int) -> None:
    """In silence, the answer 'B) oxygen' was option B."""
    assert load_questions(rows(["A) oxygen", answer]))[1].answers == {place}
    with pytest.raises(InputError, match=r"'B\) oxygen' is none of the 4 options"):
        load_questions(rows([answer, "A) oxygen", "B) oxygen"]))


@pytest.mark.parametrize(
    "answer", ["A) and B)", "A. B.", "(A) (B)", "A: B", "A) / B)", "A) or C)", "A) und B)", "A) & B", "option 1 and 3"]
)
def test_several_marks_in_one_answer_are_not_read_as_the_first(answer: str) -> None:
    """In silence, of 'A) and B)' only A was right."""
    for others in (["C", "D"], ["C) nitrogen"]):
        with pytest.raises(
            InputError, match=rf"{re.escape(repr(answer))} is none of the 4 options; .* or several: A,B"
        ):
            load_questions(rows([*others, answer]))


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        ("A) A large dog", "a large, brown dog"),
        ("A. 5 mg/kg", "5 mg per kg"),
        ("A) 2", "two"),
        ("A) X-rays", "X rays"),
        ("A. E. coli", "Escherichia coli"),
        ("A. I, II", "I and II"),
        ("A) B and C", "both B and C"),
        ("A) A", "vitamin A"),
        ("option 1: 3 dogs", "three dogs"),
        ("option 1. 3", "three"),
    ],
)
def test_a_mark_is_read_where_its_text_begins_with_a_letter_or_number(answer: str, option: str) -> None:
    """They were taken for a second mark, and files in which a text differs from its option were refused."""
    first = {"question": "Which?", "options": [option, "x", "y", "z"], "answer": answer}
    assert [q.answers for q in load_questions([first, *rows(["B) carbon dioxide", "D. argon gas"])])] == [{0}, {1}, {3}]


def test_a_near_second_reading_is_a_doubt() -> None:
    found = load_questions(rows(["2", "1", "8"], ["2", "4", "8", "1"]))
    assert [question.answers for question in found] == [{0}, {3}, {2}]
    assert "as indices, 2 would fit" in found.report.doubts[0]


def test_verdicts_as_numbers_that_count_from_0_or_1() -> None:
    record = {"statement": "s", "context": "c", "options": ["True", "False", "Unknown"], "answer": 1}
    with pytest.raises(InputError, match="write the verdicts in words"):
        load_judging([record], fields={"verdict": "answer"})


def model() -> RuleModel:
    return RuleModel(lambda stem, labels, texts: [-1.0 - i for i in range(len(texts))], "rule")


@pytest.mark.thorough
def test_records_left_out_and_doubts_stand_before_the_first_number(tmp_path: Path) -> None:
    """Terminal, JSON, HTML and notebook: with every reason, whatever else is shortened."""
    bad: list[Any] = [9, None, "", "x", [7], "Z"] * 2 + [9, None, 9]
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows([1 + i % 3 for i in range(15)] + bad)))
    result = audit(model(), path, skip_bad=True)
    left = f"{path}: 15 of 30 records left out (9 answer out of range; 6 answer missing)."
    assert result.page().caveats[0].replace(" ", "").startswith(f"{path}:15of30recordsleftout(")
    for shown in (result.summary(width=2000), repr(result).replace("\n", " "), result._repr_html_()):
        assert "15 of 30 records left out" in shown
        assert shown.index("left out") < shown.index("0.")
    written = result.to_dict()
    assert any("15 of 30 records left out" in caveat for caveat in written["caveats"])
    assert any("counting from 0" in caveat for caveat in written["caveats"])
    assert sum(written["loading"]["skipped"].values()) == 15
    for reason, n in written["loading"]["skipped"].items():
        assert f"{n:,} {reason}" in result.summary(width=2000)
    result.to_html(tmp_path / "r.html")
    assert "15 of 30 records left out" in (tmp_path / "r.html").read_text("utf-8")
    assert left.partition("(")[0] in result.summary(width=2000)


def test_a_check_says_which_reading_was_taken() -> None:
    check = check_questions(rows([3, 1, 2]))
    assert check.headline.count("answers that fit two readings") == 1
    assert "answer_base=1" in check.summary(width=2000)
    assert any("answer_base=1" in caveat for caveat in check.to_dict()["caveats"])


@pytest.mark.thorough
def test_random_encodings_are_read_right_refused_or_doubted() -> None:
    wrong = [found for seed in range(1500) if (found := answers_misread(random.Random(seed)))]
    assert wrong == []


@pytest.mark.parametrize("command", [["audit", "--dry-run", "fair"], ["debias", "fair"]])
def test_commands_without_a_page_say_so_too(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows([*"ABCD", "Z"])))
    more = ["--method", "pride", "--out", str(tmp_path / "a.jsonl")] if command[0] == "debias" else []
    ran = unslant(*command, path, "--skip-bad", "--store", tmp_path / "s.sqlite3", *more)
    assert "1 of 5 records left out (1 answer out of range)" in ran.out


@pytest.mark.parametrize("flags", [[0, 0, 1, 0], [1, 1, 0, 0], "[0, 0, 1, 0]", "0,0,1,0", "0 ; 1 ; 0 ; 0"], ids=str)
def test_flags_of_0_and_1_are_no_places(flags: object) -> None:
    with pytest.raises(InputError, match="is not a list of places; where it is 0 or 1 for each option"):
        load_questions([{"question": "Which?", "options": ["x", "y", "z", "w"], "answer": flags}])


@pytest.mark.parametrize("flags", [[1, 0], "[1, 0]", [1.0, 0.0]], ids=str)
def test_flags_of_two_options_are_no_places(flags: object) -> None:
    # As places, both options would be right in every question. [0, 1] is how both are written.
    asked = {"question": "Which?", "options": ["x", "y"]}
    with pytest.raises(InputError, match="is not a list of places; where it is 0 or 1 for each option"):
        load_questions([asked | {"answer": [0, 1]}, asked | {"answer": flags}])
    assert load_questions([asked | {"answer": [0, 1]}])[0].answers == {0, 1}


@pytest.mark.parametrize(
    "columns",
    [
        ["option1", "option2", "option3", "option4"],
        ["opa", "opb", "opc", "opd"],
        ["ending0", "ending1", "ending2", "ending3"],
        ["eins", "zwei", "drei", "vier"],
    ],
)
def test_answers_that_are_names_of_columns(columns: list[str]) -> None:
    table = [
        {"question": f"Gas {i}?", **dict(zip(columns, OPTIONS, strict=True)), "answer": columns[i]} for i in (1, 3, 0)
    ]
    read = load_questions(table, fields={"options": ",".join(columns)})
    assert [question.answers for question in read] == [{1}, {3}, {0}]


@pytest.mark.parametrize(("answers", "first"), [([1, 2, 3], 0), (["2", "4", "1"], 1), ([1.0, 4.0, 2.0], 0)])
def test_columns_numbered_from_1_say_where_answers_count_from(answers: list[Any], first: int) -> None:
    """The answers 1, 2 and 3 were read as options 2, 3 and 4."""
    table = [
        {"question": f"Gas {i}?", **{f"option{k}": text for k, text in enumerate(OPTIONS, 1)}, "answer": answer}
        for i, answer in enumerate(answers)
    ]
    read = load_questions(table)
    assert read[0].answers == {first}
    assert "counting from 1" in read.report.answers
    from_0 = load_questions([*table, table[0] | {"question": "Gas?", "answer": 0}], skip_bad=4 in map(float, answers))
    assert "counting from 0" in from_0.report.answers


def test_two_numbered_columns_say_nothing_of_where_answers_count_from() -> None:
    (piqa,) = load_questions([{"goal": "Open a jar.", "sol1": "Turn the lid.", "sol2": "Eat it.", "label": 1}])
    assert piqa.answers == {1}


@pytest.mark.parametrize("options", [["Yes", "No"], ["True", "False"], ["yes", "no"], [True, False]])
def test_0_and_1_for_yes_and_no_are_in_doubt(options: list[Any]) -> None:
    (doubt,) = [one for one in load_questions(rows([1, 0, 1], options)).report.doubts if "places" in one]
    assert f"so that 1 is {str(options[1])!r}: add answer_kind=" in doubt
    assert not load_questions(rows([1, 0, 1], options), answer_kind="index").report.doubts
    assert not load_questions(rows([1, 0, 1], options[::-1])).report.doubts


@pytest.mark.parametrize("ids", [[11, 12, 13, 14], [3, 2, 1, 0], [2, 1, 4, 3]])
def test_numbers_that_are_ids_of_the_options_are_labels(ids: list[int]) -> None:
    """The id 2 of the first option was read as the third place, and 12 refused."""
    choices = [{"id": name, "text": text} for name, text in zip(ids, OPTIONS, strict=True)]
    read = load_questions([{"question": f"Gas {i}?", "choices": choices, "answer": ids[i]} for i in (1, 3, 0)])
    assert [question.answers for question in read] == [{1}, {3}, {0}]


@pytest.mark.parametrize("mark", ["\u200b", "\u200f", "\ufeff", "\u00a0"])
def test_marks_that_nobody_sees_are_not_part_of_an_answer(mark: str) -> None:
    assert load_questions(rows([f"{mark}B"]))[0].answers == {1}
    assert load_questions(rows([f"neon{mark}"]))[0].answers == {2}


@pytest.mark.parametrize("marks", [("false", "true"), ("False", "True"), ("incorrect", "correct"), (False, True)])
def test_marks_of_options_in_words(marks: tuple[Any, Any]) -> None:
    options = [{"text": text, "is_correct": marks[text == "neon"]} for text in OPTIONS]
    assert load_questions([{"question": "Gas?", "options": options}])[0].answers == {2}
