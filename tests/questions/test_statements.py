"""Open maths questions, and statements to be judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from unslant.errors import InputError
from unslant.questions import JudgingQuestion, MathQuestion, load_judging, load_math, write_questions


def lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_math_answers_are_kept_as_written(tmp_path: Path) -> None:
    rows = [
        {"question": "a?", "answer": "some steps\n#### 1,000"},
        {"question": "b?", "answer": 3.5},
        {"question": "c?", "answer": None, "answer_text": "18"},
        {"problem": "d?", "question": "d?", "answer": "7", "solution": "because"},
    ]
    separate = [load_math(lines(tmp_path / "m.jsonl", [row]))[0] for row in rows]
    assert [question.answer for question in separate] == ["1,000", "3.5", "18", "7"]
    assert separate[0].solution == "some steps\n#### 1,000"
    assert separate[3].solution == "because"


def test_verdicts_by_word_index_and_letter(tmp_path: Path) -> None:
    options = ["A) True", "B) False", "C) Unknown"]
    lead = "Based on the above information, is the following statement true, false, or unknown? Tom purrs."
    rows = [{"id": str(i), "context": "c", "question": lead, "options": options, "answer": i} for i in range(3)]
    by_index = load_judging(lines(tmp_path / "p.jsonl", rows))
    by_letter = load_judging(lines(tmp_path / "q.jsonl", [{**row, "answer": "ABC"[i]} for i, row in enumerate(rows)]))
    by_word = load_judging(
        lines(
            tmp_path / "r.jsonl",
            [{"statement": "Tom purrs.", "label": word} for word in (True, "__DISPROVED__", "Uncertain")],
        )
    )
    for questions in (by_index, by_letter, by_word):
        assert [question.verdict for question in questions] == ["True", "False", "Unknown"]
        assert questions[0].statement == "Tom purrs."


@pytest.mark.parametrize("fields", [5, "question", ["question"], {"question": 1}])
def test_fields_that_are_no_mapping_are_refused_in_one_line(fields: Any) -> None:
    for load in (load_math, load_judging):
        with pytest.raises(InputError, match=r"^fields"):
            load([{"question": "1 + 1?", "answer": "2"}], fields=fields)


def test_bad_records_are_refused_or_counted(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"statement": "Tom purrs.", "label": "True"},
        {"statement": "Tom purrs.", "label": "perhaps"},
        {"statement": "", "label": "True"},
    ]
    path = lines(tmp_path / "j.jsonl", rows)
    with pytest.raises(InputError, match=r'line 2, field "verdict": \'perhaps\' is none of True, False, Unknown'):
        load_judging(path)
    assert load_judging(path, skip_bad=True).report.skipped == {"unknown verdict": 1, "statement missing": 1}
    with pytest.raises(InputError, match=r'field "answer": has no number after ####'):
        load_math(lines(tmp_path / "m.jsonl", [{"question": "a?", "answer": "steps ####"}]))
    with pytest.raises(InputError, match=r'field "question": no column was found'):
        load_math(lines(tmp_path / "m.jsonl", [{"x": 1}]))


def test_written_sets_come_back(tmp_path: Path) -> None:
    maths = [MathQuestion("m1", "How much?", "18", "9 + 9", "sums", "made")]
    judging = [JudgingQuestion("j1", "Tom purrs.", "Unknown", "facts", "cats", "made")]
    write_questions(maths, tmp_path / "m.jsonl")
    write_questions(judging, tmp_path / "j.jsonl.gz")
    assert list(load_math(tmp_path / "m.jsonl")) == maths
    assert list(load_judging(tmp_path / "j.jsonl.gz")) == judging
