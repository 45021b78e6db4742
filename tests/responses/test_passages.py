"""Logs of questions on passages: questions that share one count together, whatever harness wrote the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unslant
from unslant.responses.importers import load_logs
from unslant.responses.importers.page_text import PageText

OPTIONS = ("a lake", "a hill", "a mill")
PASSAGES, SIZE = 12, 4
Row = Callable[[int, str, str, bool], dict[str, Any]]


def prompt(passage: str, question: str, name: str = "Passage", asks: str = "Question") -> str:
    options = "".join(f"{label}. {text}\n" for label, text in zip("ABC", OPTIONS, strict=True))
    return f"{name}: {passage}\n{asks}: {question}\n{options}Answer:"


def lm_eval(key: str) -> Row:
    def row(i: int, passage: str, question: str, right: bool) -> dict[str, Any]:
        doc = {key: passage, "question": question} if key else {"question": question}
        doc |= {"choices": list(OPTIONS)}
        page = prompt(passage, question)
        return {
            "doc_id": i,
            "doc": doc,
            "target": "0" if right else "1",
            "arguments": {f"gen_args_{k}": {"arg_0": page, "arg_1": f" {label}"} for k, label in enumerate("ABC")},
            "resps": [[[str(score), "False"]] for score in (-0.1, -3.0, -4.0)],
            "filter": "none",
        }

    return row


def table(key: str) -> Row:
    def row(i: int, passage: str, question: str, right: bool) -> dict[str, Any]:
        answer = "A" if right else "B"
        return {"id": i, key: passage, "question": question, "options": list(OPTIONS), "answer": answer, "chosen": "A"}

    return row


def logged(path: Path, row_of: Row) -> Path:
    rows = [
        row_of(i, f"Town {i // SIZE} has much water.", f"What does it have, in part {i}?", i // SIZE % 2 == 0)
        for i in range(PASSAGES * SIZE)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("name", "row_of"),
    [
        *((f"samples_{key or 'prompt'}.jsonl", lm_eval(key)) for key in ("passage", "flores_passage", "narrative", "")),
        *((f"{key}.jsonl", table(key)) for key in ("passage", "context", "Article")),
    ],
)
def test_questions_on_one_passage_count_together(tmp_path: Path, name: str, row_of: Row) -> None:
    accuracy = unslant.audit(log=logged(tmp_path / name, row_of)).metrics.means["accuracy"]
    assert accuracy.value == 0.5
    assert "over contexts" in accuracy.method
    alone = unslant.audit(log=logged(tmp_path / name, lambda *about: row_of(about[0], f"Town {about[0]}.", *about[2:])))
    narrow = alone.metrics.means["accuracy"]
    assert accuracy.high - accuracy.low > 1.7 * (narrow.high - narrow.low)  # 12 observations, not 48


def test_rows_without_ids_are_one_question_only_on_one_passage(tmp_path: Path) -> None:
    rows = [
        {
            "passage": f"Town {i}.",
            "question": "What is it about?",
            "options": list(OPTIONS),
            "answer": "A",
            "chosen": "A",
        }
        for i in range(6)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (responses,) = load_logs([path])
    assert len(set(responses.table["question_id"].to_pylist())) == 6


@pytest.mark.parametrize(
    ("text", "passage"),
    [
        (prompt("Two towns.\n\nOne has a mill.", "Which?"), "Two towns.\n\nOne has a mill."),
        (prompt("One town.", "Which?", name="ARTICLE", asks="Q"), "One town."),
        (prompt("The first.", "Which?") + " A\n\n" + prompt("The second.", "Which?"), "The second."),
        ("Read the article.\n\nArticle:\nA town.\n\nQ: Which?\n\nA. a lake\nB. a hill", "A town."),
        ("Question: Which?\nA. a lake\nB. a hill\nAnswer:", ""),
        ("In this context: say which.\nQuestion: Which?", ""),
        ("Passage: nothing is asked here.", ""),
        ("Passage: One.\nText: nothing is asked of two either.", ""),
        (prompt("Of an example.", "Which?") + " A\n\nQuestion: Which?\nA. a lake\nB. a hill", ""),
        ("", ""),
    ],
)
def test_the_passage_in_the_text_of_a_prompt(text: str, passage: str) -> None:
    assert PageText(text).passage == passage


def test_passages_may_be_numbered_from_0(tmp_path: Path) -> None:
    def by_number(i: int, passage: str, question: str, right: bool) -> dict[str, Any]:
        return table("passage")(i, passage, question, right) | {"passage": i // SIZE}

    numbered, named = (
        unslant.audit(log=logged(tmp_path / name, row)).metrics.means["accuracy"]
        for name, row in (("numbered.jsonl", by_number), ("named.jsonl", table("passage")))
    )
    assert numbered == named
