"""Replies labelled by reading them: nearly all that a person takes for an answer are read the same, and next to none
of all is read as something else."""

from __future__ import annotations

import pytest

from tests.replies.tables import read, rows

NAMES = ("replies", "formats", "recorded", "adversarial")


@pytest.fixture(scope="module")
def labelled(shared_data):
    return {name: rows(shared_data / "replies" / f"{name}.jsonl") for name in NAMES}


def compared(rows: list[dict]) -> tuple[list[str], list[str]]:
    """Ids of answers that are not read equal (doubtful ones left out), and of replies read as something else."""
    missed, wrong = [], []
    for row in rows:
        extracted, answers = read(row, row["reply"]), row["status"] in ("ok", "none")
        equal = extracted.status == "ok" and answers and extracted.labels == set(row["labels"])
        if extracted.status == "ok" and not equal:
            wrong.append(row["id"])
        if answers and not row["doubtful"] and not equal:
            missed.append(row["id"])
    return missed, wrong


def test_generated_and_recorded_replies(labelled):
    rows = labelled["replies"]
    answers = [row for row in rows if row["status"] in ("ok", "none") and not row["doubtful"]]
    missed, wrong = compared(rows)
    assert len(missed) <= 0.03 * len(answers), missed
    assert len(wrong) <= 0.005 * len(rows), wrong


def test_written_formats(labelled):
    missed, wrong = compared(labelled["formats"])
    assert not missed
    assert not wrong


@pytest.mark.parametrize(("name", "most"), [("recorded", 0.02), ("adversarial", 0.05)])
def test_replies_of_many_models_and_hostile_ones(labelled, name: str, most: float):
    clear = [row for row in labelled[name] if not row["doubtful"]]
    missed, wrong = compared(clear)
    assert len(missed) <= most * len(clear), missed
    assert not wrong
