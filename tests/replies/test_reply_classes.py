"""Replies of every class that a rule is for, written before the rule was tried on them, and hostile ones written before
the rules were looked at: nearly all answers are read, and none as another."""

from __future__ import annotations

import pytest

from tests.replies.tables import DATA, read, rows

ROWS = rows(DATA / "class_replies.jsonl")
CLASSES = sorted({row["class"] for row in ROWS})


def replies(name: str) -> list[tuple[dict, str, list[str] | str | None]]:
    """Row, reply, and what a person reads in it: labels, perhaps none; "conflict"; None where it has no answer."""
    return [(row, reply, expected) for row in ROWS if row["class"] == name for reply, expected in row["replies"]]


def test_there_are_five_replies_of_every_class():
    assert len(CLASSES) > 20
    assert all(len(replies(name)) >= 5 for name in CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_no_reply_is_read_as_another_answer(name: str) -> None:
    missed, wrong = [], []
    for row, reply, expected in replies(name):
        found = read(row, reply)
        if found.status == "ok" and (not isinstance(expected, list) or found.labels != set(expected)):
            wrong.append((reply, expected, found))
        elif isinstance(expected, list) and found.status != "ok":
            missed.append((reply, expected, found))
        elif expected == "conflict":
            assert found.status == "conflict", (reply, found)
            assert len(found.readings) == 2
    assert not wrong
    assert len(missed) <= max(1, 0.02 * len(replies(name))), missed


def test_both_readings_of_a_contradiction_are_named():
    row = {"kind": "choice", "labels": list("ABCD"), "options": ["silver", "iron", "gold", "copper"]}
    found = read(row, "Answer: A\nThe correct answer is B.")
    assert (found.status, set(found.readings)) == ("unparsed", {frozenset("A"), frozenset("B")})
    assert read(row, "C. copper").readings == (frozenset("C"), frozenset("D"))
