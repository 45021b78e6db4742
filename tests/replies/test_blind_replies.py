"""Replies of three kinds (languages; reasoning, records and lists; judges and unusual questions), in two rounds,
labelled before the reader was tried on them: next to all answers are read, and none as another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.replies.tables import DATA, read, rows
from unslant.replies import Extracted, extract_preference

ROWS = rows(DATA / "blind_replies.jsonl")
SETS = sorted({row["set"] for row in ROWS})


def readings(name: str) -> list[tuple[str, Any, Extracted]]:
    """Reply, its label (the labels it chooses, "refused", or None where it gives no answer) and what is read, of the
    replies that have one reading."""
    return [
        (reply, expected, extract_preference(reply) if row["kind"] == "preference" else read(row, reply))
        for row in ROWS
        if row["set"] == name
        for reply, expected, *doubtful in row["replies"]
        if not doubtful
    ]


@pytest.mark.parametrize("name", SETS)
def test_no_reply_is_read_as_another_answer(name: str) -> None:
    wrong = [
        (reply, expected, extracted)
        for reply, expected, extracted in readings(name)
        if extracted.status == "ok" and (not isinstance(expected, list) or extracted.labels != set(expected))
    ]
    assert not wrong


@pytest.mark.parametrize("name", SETS)
def test_next_to_all_answers_and_refusals_are_read(name: str) -> None:
    answers = [each for each in readings(name) if each[1] is not None]
    missed = [
        (reply, expected, extracted)
        for reply, expected, extracted in answers
        if extracted.status != ("refused" if expected == "refused" else "ok")
    ]
    assert len(answers) > 50
    assert len(missed) <= 0.16 * len(answers), missed
