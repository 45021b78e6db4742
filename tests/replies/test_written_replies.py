"""Replies in the formats of chat models, written and labelled before the reader was tried on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.replies.tables import DATA, read, rows


def replies() -> Iterator[tuple[dict[str, Any], str, list[str] | None]]:
    """Question, reply and the labels it chooses (None: it gives no answer); not those that can be read in two ways."""
    for row in rows(DATA / "written_replies.jsonl"):
        for reply, expected, *doubtful in row["replies"]:
            if not doubtful:
                yield row, reply, expected


def test_next_to_all_answers_are_read_and_none_as_another():
    missed, wrong, answers = [], [], 0
    for row, reply, expected in replies():
        extracted = read(row, reply)
        answers += expected is not None
        if extracted.status == "ok" and (expected is None or extracted.labels != set(expected)):
            wrong.append((reply, expected, extracted))
        elif expected is not None and extracted.status != "ok":
            missed.append(reply)
    assert answers > 500
    assert not wrong
    assert len(missed) <= 0.03 * answers, missed
