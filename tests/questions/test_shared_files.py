"""Every public question file, compared with the raw lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from unslant.questions import load_judging, load_math, load_questions
from unslant.questions.numbering import strip_numbering

# file -> questions, questions with pinned options, questions whose numbering goes
FILES = {
    "ar_lsat_dev.jsonl": (231, 0, 0),
    "arc_challenge_dev.jsonl": (299, 0, 0),
    "arc_challenge_test.jsonl": (972, 0, 0),
    "commonsenseqa_dev.jsonl": (1185, 0, 0),
    "folio_validation.jsonl": (204, 0, 0),
    "instruction_boundary_mcq.jsonl": (1800, 9, 1200),
    "instruction_boundary_tfu.jsonl": (338, 3, 235),
    "logicaldeduction_dev.jsonl": (300, 0, 0),
    "medmcqa_dev_sample.jsonl": (1001, 79, 1),
    "mmlu_dev.jsonl": (260, 5, 0),
    "mmlu_pro_sample.jsonl": (1971, 39, 0),
    "mmlu_test.jsonl.gz": (13164, 671, 1),
    "proofwriter_dev.jsonl": (300, 0, 0),
    "qasc_dev.jsonl": (926, 0, 0),
    "scienceqa_text_sample.jsonl": (891, 0, 0),
    "teleqna_subset.jsonl": (1461, 165, 0),
    "truthfulqa_mc1.jsonl": (693, 0, 0),
    "truthfulqa_mc2.jsonl": (693, 0, 0),
}


def raw(path: Path) -> list[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_no_file_is_forgotten(shared_data: Path) -> None:
    present = {path.name for path in shared_data.glob("*.jsonl*")}
    assert present == {*FILES, "gsm8k_test.jsonl", "gsm8k_train.jsonl"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FILES)
def test_the_questions_are_those_of_the_file(shared_data: Path, name: str) -> None:
    loaded, pinned, numbered = FILES[name]
    rows = {row["id"]: row for row in raw(shared_data / name)}
    questions = load_questions(shared_data / name, skip_bad=True)
    assert len(questions) == loaded
    assert questions.report.n_skipped == len(rows) - loaded
    assert (questions.report.pinned, questions.report.numbering_stripped) == (pinned, numbered)
    for question in questions:
        row = rows[question.id]
        expected = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
        options = row["options"]
        assert question.answers == set(expected)
        assert question.stem == row["question"]
        assert question.options == strip_numbering(options)
        for shown, text in zip(question.options, options, strict=True):
            assert text.endswith(shown)
            assert len(text) - len(shown) <= 6
        assert question.context == row.get("context", "\n".join(row.get("facts", ())))
        assert question.subject == row.get("subject", "")
        assert question.source == row["source"]


def test_only_questions_with_one_option_are_refused(shared_data: Path) -> None:
    questions = load_questions(shared_data / "mmlu_pro_sample.jsonl", skip_bad=True)
    assert questions.report.skipped == {"fewer than 2 options": 5}
    single = {row["id"] for row in raw(shared_data / "mmlu_pro_sample.jsonl") if len(row["options"]) == 1}
    assert not single & {question.id for question in questions}
    assert len(single) == 5


def test_stripped_texts_agree_with_the_right_options_the_file_spells_out(shared_data: Path) -> None:
    rows = {row["id"]: row for row in raw(shared_data / "instruction_boundary_mcq.jsonl")}
    for question in load_questions(shared_data / "instruction_boundary_mcq.jsonl"):
        spelled = rows[question.id]["correct_options"]
        assert len(spelled) == len(question.answers)
        assert all(any(text.endswith(question.options[i]) for text in spelled) for i in question.answers)


def test_teleqna_answers_agree_with_their_own_words(shared_data: Path) -> None:
    rows = raw(shared_data / "teleqna_subset.jsonl")
    agree = 0
    for question, row in zip(load_questions(shared_data / "teleqna_subset.jsonl"), rows, strict=True):
        (right,) = question.answers
        number, _, text = row["answer_raw"].partition(":")
        assert int(number.removeprefix("option ")) == right + 1
        agree += text.strip() == question.options[right].strip()
    assert agree / len(rows) > 0.99


@pytest.mark.parametrize(("name", "n"), [("gsm8k_test.jsonl", 1119), ("gsm8k_train.jsonl", 50)])
def test_gsm8k(shared_data: Path, name: str, n: int) -> None:
    questions = load_math(shared_data / name)
    assert len(questions) == n
    for question, row in zip(questions, raw(shared_data / name), strict=True):
        assert question.answer == row["answer_text"]
        assert question.solution.rpartition("####")[2].strip().replace(",", "") == question.answer.replace(",", "")


@pytest.mark.parametrize(("name", "n"), [("folio_validation.jsonl", 204), ("proofwriter_dev.jsonl", 300)])
def test_statements(shared_data: Path, name: str, n: int) -> None:
    questions = load_judging(shared_data / name)
    assert len(questions) == n
    for question, row in zip(questions, raw(shared_data / name), strict=True):
        assert question.verdict == row["options"][row["answer"]].replace("Uncertain", "Unknown")
        assert row["question"].endswith(question.statement)
        assert "is the following" not in question.statement
        assert question.context == row["context"]
