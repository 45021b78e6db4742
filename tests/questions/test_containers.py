"""Files in which questions come from other programs: quizzes in text, the Hub's viewer, spreadsheets, nested JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from unslant.errors import InputError
from unslant.questions import load_questions

ASKED: list[tuple[str, list[str], int]] = [
    ("Which is red?", ["grass", "blood", "sky"], 1),
    ("Which is blue?", ["grass", "blood", "sky"], 2),
    ("Which is green?", ["grass", "blood", "sky"], 0),
]
EXPECTED = [(stem, tuple(options), {right}) for stem, options, right in ASKED]
ROWS = [{"question": stem, "options": options, "answer": right} for stem, options, right in ASKED]


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(name: str, content: object) -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def read(path: Path, **options: Any) -> list[tuple[str, tuple[str, ...], frozenset[int]]]:
    return [(question.stem, question.options, question.answers) for question in load_questions(path, **options)]


@pytest.mark.parametrize("mark", ["{}. {}", "{}) {}"])
@pytest.mark.parametrize("between", ["\n\n", "\n", "\r\n\r\n"])
def test_aiken(file: Any, mark: str, between: str) -> None:
    blocks = [
        "\n".join([stem, *(mark.format("ABC"[i], text) for i, text in enumerate(options)), f"ANSWER: {'ABC'[right]}"])
        for stem, options, right in ASKED
    ]
    assert read(file("quiz.txt", between.join(blocks))) == EXPECTED
    lines = blocks[0].splitlines()
    unanswered = "\n".join(lines[:-1]) + "\n\n" + blocks[1]
    with pytest.raises(InputError, match=r"quiz.txt, line 1: begins a question without .* a line such as ANSWER: B;"):
        load_questions(file("quiz.txt", unanswered))
    assert load_questions(file("quiz.txt", unanswered), skip_bad=True).report.skipped == {"not a record": 1}


def test_text_of_logiqa(file: Any) -> None:
    blocks = [
        "\n".join(["", "abc"[right], "A passage.", stem, *(f"{'ABC'[i]}.{text}" for i, text in enumerate(options))])
        for stem, options, right in ASKED
    ]
    path = file("Test.txt", "\n".join(blocks) + "\n")
    assert read(path) == EXPECTED
    assert load_questions(path)[0].context == "A passage."


@pytest.mark.parametrize(
    ("name", "way"), [("q.gift", "Aiken"), ("q.xml", "Aiken"), ("q.db", "parquet"), ("q.ods", "csv")]
)
def test_files_of_other_programs_are_refused_with_a_way_out(file: Any, name: str, way: str) -> None:
    with pytest.raises(InputError, match=rf"unknown file type.*{way}"):
        load_questions(file(name, "x"))


def test_rows_of_the_data_set_server(file: Any) -> None:
    rows = [{"row_idx": i, "row": row, "truncated_cells": list[str]()} for i, row in enumerate(ROWS)]
    features = [{"feature_idx": 0, "name": "question", "type": {"dtype": "string", "_type": "Value"}}]
    page = {"features": features, "rows": rows, "num_rows_total": 3, "partial": False}
    assert read(file("rows.json", page)) == EXPECTED
    rows[1]["truncated_cells"] = ["question"]
    with pytest.raises(InputError, match=r"row 1 is cut off in \['question'\]; load the data set"):
        load_questions(file("rows.json", page))


def test_files_of_dream(file: Any) -> None:
    talks = [
        [["M: Hello.", "W: Hi."], [{"question": stem, "choice": options, "answer": options[right]}], f"4-{right}"]
        for stem, options, right in ASKED
    ]
    path = file("dream.json", talks)
    assert read(path) == EXPECTED
    assert load_questions(path)[0].context == "M: Hello.\nW: Hi."


def test_passages_in_sections_and_in_passages(file: Any) -> None:
    sections = {"data": [{"title": "t", "sections": [{"passage": "One.", "questions": ROWS}]}]}
    assert read(file("sections.json", sections)) == EXPECTED
    assert load_questions(file("sections.json", sections))[0].context == "One."
    twice = [{"passage": "Outer.", "questions": [{"passage": "Inner.", "questions": ROWS}]}]
    with pytest.raises(
        InputError, match=r"item 1, question 1: has 'passage' in its list of questions, and another one"
    ):
        load_questions(file("twice.json", twice))


def test_json_that_is_not_one_record_per_line(file: Any) -> None:
    assert read(file("list.jsonl", ROWS)) == EXPECTED
    assert read(file("list.jsonl", json.dumps(ROWS, indent=1))) == EXPECTED
    lines = [json.dumps(row) for row in ROWS]
    for text, hint in {
        ",\n".join(lines): "remove the comma",
        " ".join(lines): "one record per line: jq -c",
        "\n".join(json.dumps(row, indent=1) for row in ROWS): "goes on in the next line: jq -c",
    }.items():
        with pytest.raises(InputError, match=rf"line 1: not valid JSON.*{hint}"):
            load_questions(file("rows.jsonl", text))


def workbook(path: Path, *cells: object, number_format: str = "General") -> Path:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(["question", "A", "B", "answer"])
    sheet.append(["How much?", *cells, "B"])
    for column in (2, 3):
        sheet.cell(2, column).number_format = number_format
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("number_format", "expected"),
    [
        ('"$"#,##0.00', ("$1,234.50", "-$5.00")),
        ('#,##0.00\\ "€"', ("1,234.50 €", "-5.00 €")),
        ("[$€-407]0;[Red]-[$€-407]0", ("€1234", "-€5")),
        ('0.0" kg"', ("1234.5 kg", "-5.0 kg")),
        ("0%", ("123450%", "-500%")),
        ("#,##0.00", ("1234.5", "-5")),
        ("_(* #,##0_)", ("1234.5", "-5")),
        ("0.00E+00", ("1234.5", "-5")),
        ("General", ("1234.5", "-5")),
    ],
)
def test_units_of_numbers_are_part_of_an_option(tmp_path: Path, number_format: str, expected: tuple[str, ...]) -> None:
    (question,) = load_questions(workbook(tmp_path / "q.xlsx", 1234.5, -5, number_format=number_format))
    assert question.options == expected


def test_an_error_in_a_cell_is_no_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the cell B2 of 'Sheet' shows the error #REF!"):
        load_questions(workbook(tmp_path / "q.xlsx", "#REF!", "5"))


def test_a_formula_that_was_never_computed_is_no_empty_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the cell C2 has a formula without its value: open the file in Excel"):
        load_questions(workbook(tmp_path / "q.xlsx", "5", "=2+3"))
