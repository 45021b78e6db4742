"""Replies labelled by reading them: nearly all that a person takes for an answer are read the same, and next to none
of all is read as something else."""

from __future__ import annotations

import json

import pytest

from unslant.responses.extraction import VERDICTS, Extracted, extract_labels, extract_verdict


@pytest.fixture(scope="module")
def labelled(shared_data):
    def rows(name: str) -> list[dict]:
        text = (shared_data / "replies" / f"{name}.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    return {name: rows(name) for name in ("replies", "formats")}


def read(row: dict) -> Extracted:
    if row["kind"] == "judging" and tuple(row["labels_shown"]) == VERDICTS:
        return extract_verdict(row["reply"])
    return extract_labels(row["reply"], row["labels_shown"], row["options"])


def compared(rows: list[dict]) -> tuple[list[str], list[str]]:
    """Ids of answers that are not read equal (doubtful ones left out), and of replies read as something else."""
    missed, wrong = [], []
    for row in rows:
        extracted, answers = read(row), row["status"] in ("ok", "none")
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
