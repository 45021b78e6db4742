"""Replies in the styles of chat models and people, written for this test, and what a careful reader takes them for.

``data/choice_replies.jsonl``: options, labels, reply, and the labels chosen ([]: none is right; null: left open, to be
read by no rule). ``data/verdict_replies.jsonl``: reply and verdict (null: none).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unslant.responses.extraction import extract_labels, extract_verdict

DATA = Path(__file__).parent / "data"


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def name_of(row: dict) -> str:
    return row["reply"][:60]


@pytest.mark.parametrize("row", rows("choice_replies.jsonl"), ids=name_of)
def test_choices(row):
    extracted = extract_labels(row["reply"], row["labels"], row["options"])
    if row["expected"] is None:
        assert extracted.status in ("unparsed", "refused"), extracted
    else:
        assert (extracted.status, extracted.labels) == ("ok", set(row["expected"])), extracted


@pytest.mark.parametrize("row", rows("verdict_replies.jsonl"), ids=name_of)
def test_verdicts(row):
    extracted = extract_verdict(row["reply"])
    if row["expected"] is None:
        assert extracted.status in ("unparsed", "refused"), extracted
    else:
        assert (extracted.status, extracted.labels) == ("ok", {row["expected"]}), extracted


def test_the_table_covers_every_kind_of_answer():
    expected = [row["expected"] for row in rows("choice_replies.jsonl")]
    assert sum(answer is None for answer in expected) >= 75
    assert sum(answer == [] for answer in expected) >= 40
    assert sum(answer is not None and len(answer) > 1 for answer in expected) >= 90
    assert len(expected) >= 650
