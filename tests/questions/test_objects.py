"""Questions from Python objects are those of a file that holds the same."""

from __future__ import annotations

import csv
import datetime
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict
from hypothesis import strategies as st

import unslant
from unslant.errors import InputError
from unslant.presentations import present
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.questions import JudgingQuestion, MathQuestion, Question, QuestionSet, load_judging, load_math
from unslant.studies.instruction_boundary.question_sources import load_boundary

pytestmark = pytest.mark.thorough

ROWS: list[dict[str, Any]] = [
    {"question": f"What is {i}?", "options": [f"{i}", f"{i + 1}", "none of the above"], "answer": "ABC"[i % 3]}
    | {"subject": "sums" if i % 2 else "more", "context": f"Passage {i // 4}."}
    for i in range(40)
]
KINDS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": lambda rows: (row for row in rows),
    "column lists": lambda rows: {key: [row[key] for row in rows] for key in rows[0]},
    "dict by id": lambda rows: {f"q{i}": row for i, row in enumerate(rows)},
    "pandas": pd.DataFrame,
    "pandas, of numpy": lambda rows: pd.DataFrame([row | {"options": np.array(row["options"])} for row in rows]),
    "pandas, filtered": lambda rows: pd.DataFrame([rows[0], *rows]).iloc[1:],
    "polars": pl.DataFrame,
    "pyarrow": pa.Table.from_pylist,
    "record batch": lambda rows: pa.RecordBatch.from_pylist(rows),
    "Dataset": Dataset.from_list,
    "Dataset, selected": lambda rows: Dataset.from_list([*rows, *rows]).select(range(len(rows))),
    "iterable Dataset": lambda rows: Dataset.from_list(rows).to_iterable_dataset(),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("set") / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_questions_as_from_the_file(file: Path, kind: str) -> None:
    for options in ({}, {"limit": 7}, {"limit": 7, "seed": 3}):
        of_file = unslant.load_questions(file, **options)
        if kind == "dict by id":  # which gives them ids
            named = [row | {"id": f"q{i}"} for i, row in enumerate(ROWS)]
            of_file = unslant.load_questions(named, name="set", **options)
        found = unslant.load_questions(KINDS[kind](ROWS), name="set", **options)
        assert found.questions == of_file.questions
        assert found.digest == of_file.digest
        same = ("n_read", "n_loaded", "fields", "pinned", "option_counts", "notes")
        assert [getattr(found.report, name) for name in same] == [getattr(of_file.report, name) for name in same]


def test_ready_made_questions_are_taken_as_they_are(file: Path) -> None:
    whole = unslant.load_questions(file)
    for given in (whole, list(whole), tuple(whole), iter(whole)):
        assert unslant.load_questions(given, limit=9).questions == unslant.load_questions(file, limit=9).questions
    assert unslant.load_questions(whole).report == whole.report
    counted = unslant.load_questions(list(whole)).report
    assert (counted.pinned, counted.option_counts) == (whole.report.pinned, whole.report.option_counts)
    assert unslant.load_questions(whole[0]).questions == (whole[0],)
    numbered = Question("q", "Which?", ("A) one", "B) two"), frozenset({0}))
    assert unslant.load_questions([numbered])[0].options == ("A) one", "B) two")


def test_data_sets_with_the_columns_of_arc_are_the_same_questions_as_lists() -> None:
    rows = [
        {
            "id": f"ARC_{i}",
            "question": f"Which is number {i}?",
            "choices": {
                "text": [f"{i} {text}" for text in TEXTS[: 3 + i % 3]],
                "label": list("12345" if i % 2 else "ABCDE")[: 3 + i % 3],
            },
            "answerKey": "3" if i % 2 else "B",
        }
        for i in range(9)
    ]
    by_option = [
        {**row, "question": {"stem": row["question"], "choices": [
            {"text": text, "label": label} for text, label in zip(*row["choices"].values(), strict=True)]}}
        for row in rows
    ]  # fmt: skip
    for given in (rows, [{k: v for k, v in row.items() if k != "choices"} for row in by_option]):
        whole = unslant.load_questions(given)
        data_set = Dataset.from_list(given)
        for same in (data_set, DatasetDict({"test": data_set})):
            assert unslant.load_questions(same).questions == whole.questions
        assert [sorted(question.answers) for question in whole] == [[1], [2]] * 4 + [[1]]


TEXTS = ("one", "two", "three", "four", "five")


@st.composite
def arc_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records with ARC's columns: three to five options, labelled by letters or by numbers."""
    rows = []
    for i in range(draw(st.integers(1, 4))):
        labels = draw(st.sampled_from(["ABC", "ABCD", "ABCDE", "1234", "123", "12345"]))
        texts = [f"{i} {text}" for text in TEXTS[: len(labels)]]
        choices = {"text": texts, "label": [*labels]}
        rows.append(
            {
                "id": f"ARC_{i}",
                "question": f"Which is {i}?",
                "choices": choices,
                "answerKey": draw(st.sampled_from(labels)),
            }
        )
    return rows


def _by_option(row: dict[str, Any], *keys: str) -> list[dict[str, str]]:
    return [{key: row["choices"][key][k] for key in keys} for k in range(len(row["choices"]["text"]))]


SHAPES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "as the Hub has it": dict,
    "more columns": lambda row: row | {"fold": "Challenge", "source_url": None, "n": 1},
    "columns in another order": lambda row: dict(reversed(row.items())),
    "label before text": lambda row: row | {"choices": dict(reversed(row["choices"].items()))},
    "an object an option": lambda row: row | {"choices": _by_option(row, "text", "label")},
    "the label first": lambda row: row | {"choices": _by_option(row, "label", "text")},
    "nested in the question": lambda row: {
        "id": row["id"], "answerKey": row["answerKey"],
        "question": {"stem": row["question"], "choices": _by_option(row, "text", "label")},
    },
    "nested, the label first": lambda row: {
        "id": row["id"], "answerKey": row["answerKey"],
        "question": {"stem": row["question"], "choices": _by_option(row, "label", "text")},
    },
    "plain columns": lambda row: {
        "id": row["id"], "question": row["question"], "options": row["choices"]["text"],
        "answer": row["choices"]["label"].index(row["answerKey"]),
    },
}  # fmt: skip
DOORS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list": list,
    "Dataset": Dataset.from_list,
    "iterable Dataset": KINDS["iterable Dataset"],
    "DatasetDict of one split": lambda rows: DatasetDict({"test": Dataset.from_list(rows)}),
    "questions": lambda rows: list(unslant.load_questions(rows)),
}


@hypothesis.settings(max_examples=15)
@hypothesis.given(arc_rows())
def test_prompts_are_the_same_through_every_door(rows: list[dict[str, Any]]) -> None:
    elicitation = Cloze(Writer(load_template("plain")))

    def prompts(source: Any) -> list[tuple[object, list[Prompt]]]:
        return [
            (question.answers, elicitation.prompts(present(question, order)))
            for question in unslant.load_questions(source)
            for order in itertools.permutations(range(len(question.options)))
            if order[0] < 2
        ]

    expected = prompts(rows)
    for shape in SHAPES.values():
        shaped = [shape(row) for row in rows]
        for door in DOORS.values():
            assert prompts(door(shaped)) == expected


def test_values_of_several_types_in_a_column() -> None:
    frame = pd.DataFrame(
        {"question": ["a?", "b?"], "options": [["x", "y"], ["z", "w"]], "answer": [np.int64(1), "A"], "id": [1, "two"]}
    )
    found = unslant.load_questions(frame)
    assert [(question.id, question.answers) for question in found] == [("1", {1}), ("two", {0})]


def test_numpy_values_sets_and_booleans() -> None:
    rows = [
        {"question": "a?", "options": np.array(["x", "y"]), "answer": np.int64(1)},
        {"question": "b?", "options": ("x", "y", "z"), "answer": {0, 2}},
    ]
    assert [question.answers for question in unslant.load_questions(rows)] == [{1}, {0, 2}]
    assert unslant.load_questions([{"question": "Is it?", "options": [True, False], "answer": False}])[0].answers == {1}


def test_what_cannot_be_used_is_refused_in_one_line(subtests: pytest.Subtests) -> None:
    for source, message in (
        (list, "list holds no questions"),
        (lambda: pd.DataFrame(), "DataFrame holds no questions"),
        (lambda: iter(()), "list holds no questions"),
        (lambda: 3, "questions of type int: give a file, a name, a list of dicts"),
        (lambda: ["What?"], "list, item 1: is a text, not a JSON object"),
        (lambda: [ROWS[0], 3], "list, item 2: is a number"),
        (lambda: [ROWS[0] | {"id": "a"}, ROWS[9] | {"id": "a"}], r"'a' was used before \(list, item 1\)"),
        (lambda: [ROWS[0], ROWS[1] | {"answer": "E"}], r'list, item 2, field "answer": \'E\' is none of the 3 options'),
        (lambda: pd.DataFrame([ROWS[0], ROWS[1] | {"answer": "E"}]), r'DataFrame, row 2, field "answer"'),
        (lambda: Dataset.from_list([ROWS[0], ROWS[1] | {"answer": "E"}]), r'Dataset, row 2, field "answer"'),
        (
            lambda: DatasetDict({"train": Dataset.from_list(ROWS), "test": Dataset.from_list(ROWS)}),
            r"holds the splits train, test; give one of them: \['train",
        ),
        (lambda: {"train": ROWS, "test": ROWS}, "several lists of records, 'train', 'test': give only one of them"),
        (lambda: pd.Series([1, 2]), "Series"),
        (lambda: pl.DataFrame(ROWS).lazy(), r"LazyFrame is not computed yet; give its .collect\(\)"),
        (lambda: [Question("q", "?", ("a", "b"), frozenset()), ROWS[0]], "list, item 2: is dict, where Question"),
        (lambda: [Question("q", "?", ("a", "b"), frozenset())] * 2, "item 2.*'q' was used before"),
        (lambda: [MathQuestion("q", "?", "1")], "item 1: is MathQuestion, where Question is expected"),
        (lambda: QuestionSet.of([]), "holds no questions"),
        (lambda: pd.DataFrame({"a": [1]}), r'DataFrame, field "question": no column was found for it among a'),
        (lambda: {"question": ["a", "b"], "options": [["x", "y"]]}, "have different lengths"),
    ):
        with subtests.test(source=source, message=message):
            with pytest.raises(InputError, match=message) as caught:
                unslant.load_questions(source())
            assert "\n" not in str(caught.value)


def test_duplicates_and_nothing_fail_before_the_model_is_asked() -> None:
    def never() -> Any:
        pytest.fail("the model was opened")

    one = Question("q", "?", ("a", "b"), frozenset({0}))
    for questions in ([one, one], [], [ROWS[0] | {"id": "a"}] * 2):
        with pytest.raises(InputError):
            unslant.audit(never, questions)


def test_an_audit_of_a_data_frame_is_that_of_the_file(tmp_path: Path) -> None:
    model = unslant.load_model("fair")
    rows = [
        row | {"id": f"q{i}", "source": "sums", "options": [*row["options"][:2], "x"]} for i, row in enumerate(ROWS)
    ]
    file = tmp_path / "set.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    how: dict[str, Any] = {"orders": "cyclic", "limit": 5, "shots": 1}
    of_file = unslant.audit(model, file, shots_from=file, **how)
    for kind in ("list", "pandas", "polars", "pyarrow", "Dataset"):
        found = unslant.audit(model, KINDS[kind](rows), shots_from=KINDS[kind](rows), **how)
        assert found.responses.table.equals(of_file.responses.table)
        assert found.metrics.to_dict() == of_file.metrics.to_dict()
        assert found.run.questions_digest == of_file.run.questions_digest


@pytest.mark.parametrize("study", ["base_rate", "unbiased", "debias"])
def test_every_study_takes_what_audit_takes(tmp_path: Path, study: str) -> None:
    rows = [row | {"id": f"q{i}", "source": "sums"} for i, row in enumerate(ROWS[:6])]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = unslant.load_model("fair")
    run = getattr(unslant.study, study)
    how = {"base_rate": {"no_nvr": True}, "unbiased": {"runs": 1, "shots": 0, "no_alone": True}, "debias": {}}[study]
    how = how | ({"methods": ["vote"], "orders": "cyclic"} if study == "debias" else {})

    def tables(source: Any) -> list[str]:
        found = run([model] if study == "debias" else model, source, **how)
        texts = [str(table) for panel in found.page().panels for table in panel.tables]
        return [text for text in texts if "seconds" not in text]

    of_file = tables(tmp_path / "questions.jsonl")
    assert of_file
    for source in (rows, pd.DataFrame(rows), Dataset.from_list(rows)):
        assert tables(source) == of_file


def test_other_kinds_of_questions_and_the_boundary_set() -> None:
    sums = [{"question": "9 + 9?", "answer": "18"}]
    statements = [{"statement": "Tom purrs.", "verdict": "True", "context": "All cats purr."}]
    assert load_math(pd.DataFrame(sums))[0].answer == "18"
    assert load_judging(statements)[0].verdict == "True"
    assert load_judging([JudgingQuestion("q", "s", "True")])[0].id == "q"
    assert len(load_boundary(pd.DataFrame(statements)).judging) == 1
    assert len(load_boundary(ROWS).choice) == len(ROWS)
    mixed = load_boundary([Question("q", "?", ("a", "b"), frozenset({0})), JudgingQuestion("j", "s", "True")])
    assert (len(mixed.choice), len(mixed.judging)) == (1, 1)


# --- spreadsheets ----------------------------------------------------------------------------------------------------


FLAT = [
    {"id": f"q{i}", "question": f"What; is, {i}?", "A": f"{i},5", "B": f'the "{i + 1}" | one', "C": "sky\tblue"}
    | {"answer": "ABC"[i % 3]}
    for i in range(9)
]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_any_separator_under_any_name(tmp_path: Path, separator: str, bom: str) -> None:
    for name in ("set.csv", "set.tsv"):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as out:
            out.write(bom)
            writer = csv.DictWriter(out, list(FLAT[0]), delimiter=separator)
            writer.writeheader()
            writer.writerows(FLAT)
        found = unslant.load_questions(tmp_path / name)
        assert found.questions == unslant.load_questions(FLAT, name="set").questions


def test_what_excel_says_about_its_separator_and_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("sep=;\nquestion;A;B;answer\nWhat?;1,5;2,5;1,0\nWho?;1,5;2,5;0,0\n")
    assert [question.answers for question in unslant.load_questions(path)] == [{1}, {0}]
    assert unslant.load_questions(path)[0].options == ("1,5", "2,5")
    path.write_text("question,A,B,answer\nWhat?,a,b,1.0\nWho?,a,b,0.0\n")
    assert [question.answers for question in unslant.load_questions(path)] == [{1}, {0}]
    path.write_text("question;A;B;answer\nWhat?;1,0;2,0;2,0\n")  # the text of an option, not a number with decimals
    assert unslant.load_questions(path)[0].answers == {1}


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook_is_read_as_its_csv(tmp_path: Path) -> None:
    header = ["question", "A", "B", "C", "answer"]
    rows: list[list[Any]] = [["How much?", 1, 2.5, 3.0, 2], ["Is it?", True, False, None, 1], [None] * 5]
    book = workbook(tmp_path / "set.xlsx", Notes=[["hello"]], Questions=[header, *rows, ["Who?", "x", "y", None, 0]])
    (tmp_path / "set.csv").write_text("question,A,B,C,answer\nHow much?,1,2.5,3,2\nIs it?,TRUE,FALSE,,1\nWho?,x,y,,0\n")
    assert unslant.load_questions(book).questions == unslant.load_questions(tmp_path / "set.csv").questions
    with pytest.raises(InputError, match=r"sheet 'Questions', row 2, field \"answer\": 9 is out of range"):
        unslant.load_questions(workbook(tmp_path / "bad.xlsx", Questions=[header, ["Who?", "x", "y", None, 9]]))
    with pytest.raises(InputError, match="the sheets 'a', 'b' all have questions"):
        unslant.load_questions(workbook(tmp_path / "two.xlsx", a=[header, *rows[:2]], b=[header, *rows[:2]]))
    with pytest.raises(InputError, match="the workbook is empty"):
        unslant.load_questions(workbook(tmp_path / "empty.xlsx", a=[]))


def test_a_date_in_a_workbook_has_no_time(tmp_path: Path) -> None:
    days = [datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 3, 4, 5)]
    book = workbook(tmp_path / "set.xlsx", a=[["question", "A", "B", "answer"], ["When?", *days, "A"]])
    assert unslant.load_questions(book).questions[0].options == ("2020-01-02", "2020-01-03 04:05:00")


def test_cells_merged_over_rows_are_refused(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["passage", "question", "A", "B", "answer"], ["Long.", "Who?", "x", "y", "A"]]
    book = openpyxl.load_workbook(workbook(tmp_path / "set.xlsx", a=[*rows, [None, "When?", "x", "y", "B"]]))
    book["a"].merge_cells("G1:H1")  # over columns: no row misses its text
    book.save(tmp_path / "set.xlsx")
    assert len(unslant.load_questions(tmp_path / "set.xlsx")) == 2
    book["a"].merge_cells("A2:A3")
    book.save(tmp_path / "set.xlsx")
    with pytest.raises(InputError, match="the cells A2:A3 are merged: unmerge them"):
        unslant.load_questions(tmp_path / "set.xlsx")


def test_without_openpyxl_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = workbook(tmp_path / "set.xlsx", a=[["question", "A", "B", "answer"], ["Who?", "x", "y", "A"]])
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'unslant\[excel\]'"):
        unslant.load_questions(book)


def test_parquet_and_arrow_agree(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "set.parquet")
    assert unslant.load_questions(tmp_path / "set.parquet").digest == unslant.load_questions(ROWS, name="set").digest


# --- answers that count from 1 --------------------------------------------------------------------------------------

BASE_1 = [{"id": str(i), "question": f"{i}?", "options": list("wxyz"), "answer": i % 4 + 1} for i in range(8)]


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize("extra", [[], [{"id": "x", "question": "x?", "options": ["a", "b"], "answer": 9}]])
@pytest.mark.parametrize("write", [int, str])
def test_counting_from_1_is_an_error_that_never_offers_to_skip(skip_bad: bool, extra: list[Any], write: Any) -> None:
    rows = [row | {"answer": write(row["answer"])} for row in [*BASE_1, *extra]]
    with pytest.raises(InputError, match=r"item 4.*4 is out of range.*answer_base=1") as e:
        unslant.load_questions(rows, skip_bad=skip_bad)
    assert "skip_bad" not in str(e.value)
    if not extra:
        assert unslant.load_questions(rows, answer_base=1)[3].answers == {3}


def test_counting_from_0_under_answer_base_1_is_an_error_too() -> None:
    rows = [row | {"answer": row["answer"] - 1} for row in BASE_1]
    with pytest.raises(InputError, match=r"0 is out of range.*answer_base=0") as caught:
        unslant.load_questions(rows, answer_base=1, skip_bad=True)
    assert "skip_bad" not in str(caught.value)


def test_a_base_that_was_said_is_kept_and_bad_answers_are_counted() -> None:
    found = unslant.load_questions(BASE_1, answer_base=0, skip_bad=True)
    assert found.report.skipped == {"answer out of range": 2}
    assert found.report.answers == "indices counting from 0"


@pytest.mark.parametrize(
    ("answers", "how"),
    [
        (["A", "B"], "letters"),
        (["x", "w"], "option texts"),
        ([1, 2], "indices counting from 0"),
        (["0", "2"], "indices counting from 0"),
        (["A", 1], "letters and indices counting from 0"),
        (["option 2: x", "option 3: y"], "letters or numbers of options with their texts"),
    ],
)
def test_the_report_tells_how_answers_were_read(answers: list[Any], how: str) -> None:
    rows = [BASE_1[i] | {"answer": answer} for i, answer in enumerate(answers)]
    assert unslant.load_questions(rows).report.answers == how


def test_a_small_file_that_never_says_0_is_noted() -> None:
    rows = [row | {"answer": 1 + row["answer"] % 2} for row in BASE_1 * 2]
    rows = [row | {"id": str(i)} for i, row in enumerate(rows)]
    assert "answer_base=1" in unslant.load_questions(rows).report.doubts[0]
    assert unslant.load_questions(rows, answer_base=0).report.doubts == ()


# --- facts as context ------------------------------------------------------------------------------------------------


def test_facts_are_the_context() -> None:
    row = {"question": "What?", "options": ["a", "b"], "answer": 0}
    assert unslant.load_questions([row | {"facts": ["One.", "Two."]}])[0].context == "One.\nTwo."
    both = [row | {"fact1": "One.", "fact2": "Two.", "id": "q"}, row | {"fact1": "One.", "fact2": None, "id": "r"}]
    found = unslant.load_questions(both, fields={"context": "fact1,fact2"})
    assert [question.context for question in found] == ["One.\nTwo.", "One."]


def test_one_question_as_a_dict_is_answered() -> None:
    with unslant.Debiased("fair", "vote") as model:
        answer = model.answer({"question": "Which is it?", "options": ["a", "b", "c"]})
        assert len(answer.probs) == 3
        question = Question("questions/0", "Which is it?", ("a", "b", "c"), frozenset())
        assert (answer.probs == model.answer(question).probs).all()
        with pytest.raises(InputError, match=r'field "options"'):
            model.answer({"question": "Which is it?"})
        with pytest.raises(InputError, match="holds no questions"):
            model.answers([])
    with pytest.raises(InputError, match="used before"):
        unslant.Debiased("fair", "pride", fit=[ROWS[0] | {"id": "a"}] * 2)


def test_columns_that_cannot_be_read() -> None:
    twice = pd.DataFrame([["What?", "a", "b", 0]] * 2, columns=["question", "option_a", "option_a", "answer"])
    with pytest.raises(InputError, match="DataFrame: two columns have the name 'option_a'"):
        unslant.load_questions(twice)
    given: Any
    for given in (123, True, [1], {1: "x"}, {"question": None}):
        with pytest.raises(InputError, match=r"give a dict of field and column|give a field and the name"):
            unslant.load_questions(ROWS, fields=given)
    assert unslant.load_questions(ROWS, fields="subject=")[0].subject == ""
    columns: Any = {"question": 3}
    with pytest.raises(InputError, match="'question' is 3; give a field and the name"):
        unslant.load_questions(ROWS, fields=columns)


@pytest.mark.parametrize(
    ("right", "wrong"), [("Correct Answer", "Incorrect Answer {}"), ("correct_answer", "distractor{}")]
)
def test_right_and_wrong_answers_in_columns_of_their_own(right: str, wrong: str) -> None:
    # As in GPQA and SciQ. In the order of the columns, a model that always takes A would be right everywhere.
    rows = [
        {"id": f"q{i}", "question": f"{i}?", right: f"{i}\n", "field": "sums"}
        | {wrong.format(k): f"{i + k}" for k in range(1, 3 + i % 2)}
        for i in range(40)
    ]
    questions = unslant.load_questions(rows, fields={"subject": "field"})
    assert [(q.id, q.subject, len(q.options)) for q in questions] == [(f"q{i}", "sums", 3 + i % 2) for i in range(40)]
    assert [q.options[place] for q in questions for place in q.answers] == [f"{i}" for i in range(40)]
    places = [place for q in questions for place in q.answers]
    assert set(places) == {0, 1, 2, 3}
    assert max(map(places.count, places)) < 20
    assert "no order of options" in questions.report.notes[0]
    assert questions.report.doubts == ()
    assert unslant.load_questions(rows[::-1])[0].options == questions[-1].options  # of their texts alone
    assert any("no order of options" in note for note in unslant.audit("fair", rows[:4], orders="reverse").page().notes)
    for listed in ({"A": "w", "B": "r"}, {"answer_choices": ["w", "r"]}, {"option_a": "w", "option_b": "r"}):
        there = {"question": "Which?", right: "B" if "A" in listed else "r", wrong.format(1): "near", **listed}
        assert unslant.load_questions([there])[0].options == ("w", "r")  # the file lists its options
    twice = {"question": "Which?", right: "x", wrong.format(1): "x", wrong.format(2): "y"}
    assert len(unslant.load_questions([twice])[0].answers) == 2  # identical options are right together, as elsewhere
    rows[3][right] = ""
    with pytest.raises(InputError, match="item 4: has no text in the column"):
        unslant.load_questions(rows)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("correct_answer", "incorrect_answers"), ("correct", "incorrect"), ("right_answer", "distractors")],
)
def test_wrong_answers_in_a_list(right: str, wrong: str) -> None:
    """As in the Open Trivia Database, whose texts are HTML."""
    row = {
        "question": "Who wrote &quot;Emma&quot;?",
        right: "Austen",
        wrong: ["Bront&euml;", "Eliot"],
        "category": "books",
    }
    (question,) = questions = unslant.load_questions([row])
    assert (question.stem, question.subject) == ('Who wrote "Emma"?', "books")
    assert {*question.options} == {"Austen", "Brontë", "Eliot"}
    assert [question.options[place] for place in question.answers] == ["Austen"]
    assert questions.report.notes[0].endswith("HTML entities are decoded")
    assert unslant.load_questions([row | {wrong: '["Bront&euml;", "Eliot"]'}]).digest == questions.digest
    with pytest.raises(InputError, match=f"item 1: has no list of options, in JSON, in the column '{wrong}'"):
        unslant.load_questions([row | {wrong: "Brontë; Eliot"}])


def test_marks_at_the_options_leave_no_doubt_where_places_count_from() -> None:
    rows = [
        {"question": f"{i}?", "options": [{"text": f"{k}", "isAnswer": k == 1 + i % 2} for k in range(4)]}
        for i in range(8)
    ]
    questions = unslant.load_questions(rows)
    assert [sorted(q.answers) for q in questions] == [[1 + i % 2] for i in range(8)]
    assert (questions.report.doubts, questions.report.answers) == ((), "marks of the options")


def test_a_premise_is_not_lost() -> None:
    row = {
        "premise": "The pond froze.",
        "question": "cause",
        "choice1": "It was cold.",
        "choice2": "It rained.",
        "label": 0,
    }
    assert unslant.load_questions([row])[0].context == "The pond froze."


def test_belebele() -> None:
    row = {"flores_passage": "Boats need wind.", "link": "x", "question": "What?", "dialect": "eng_Latn"}
    rows = [
        row | {f"mc_answer{k}": f"{i + k}" for k in range(1, 5)} | {"correct_answer_num": f"{1 + i % 4}"}
        for i in range(20)
    ]
    questions = unslant.load_questions(rows)
    assert [sorted(q.answers) for q in questions] == [[i % 4] for i in range(20)]
    assert questions[1].options == ("2", "3", "4", "5")
    assert questions[0].context == "Boats need wind."


def test_numbered_options_in_capitals() -> None:
    rows = [{"question": f"{i}?", "options": ["x", "y", "z"], "answer": f"Option {1 + i % 3}"} for i in range(6)]
    assert [sorted(q.answers) for q in unslant.load_questions(rows)] == [[i % 3] for i in range(6)]


def test_options_that_a_spreadsheet_made_dates_of_are_named_before_every_result(tmp_path: Path) -> None:
    day, month, whole = datetime.date(2026, 1, 2), datetime.date(2015, 3, 1), datetime.date(2020, 1, 2)
    rows = [["How many?", day, "13-14", month, "A"], ["When?", whole, whole.replace(day=3), whole.replace(day=4), "B"]]
    book = openpyxl.load_workbook(workbook(tmp_path / "d.xlsx", a=[["question", "A", "B", "C", "answer"], *rows]))
    book["a"]["B2"].number_format, book["a"]["D2"].number_format = "d\\-mmm", "[$-409]mmm\\-yy;@"
    book.save(tmp_path / "d.xlsx")
    questions = unslant.load_questions(tmp_path / "d.xlsx")
    assert questions[0].options == ("2-Jan", "13-14", "Mar-15"), "as the sheet shows them"
    (caveat,) = questions.report.caveats
    assert "2 options are dates, which a spreadsheet may have made of texts such as 1-2" in caveat
    assert caveat.endswith(": 2-Jan (sheet 'a', row 2), Mar-15 (sheet 'a', row 2).")
    assert not unslant.load_questions([{"question": "When?", "options": ["2020-01-02", "2020-01-03"], "answer": 0}]
                                      ).report.caveats  # fmt: skip
    table = tmp_path / "d.csv"
    table.write_text("question,A,B,answer\nHow many?,2020-01-02,13-14,A\n")
    assert "2020-01-02 (" in unslant.load_questions(table).report.caveats[0]


def test_a_title_above_the_header_is_said_to_be_one(tmp_path: Path) -> None:
    rows = [["Quiz 2024", None, None, None], ["question", "A", "B", "answer"], ["Who?", "x", "y", "A"]]
    with pytest.raises(InputError, match="none of Quiz 2024 is a usual column name; this row looks like a title"):
        unslant.load_questions(workbook(tmp_path / "set.xlsx", a=rows))
