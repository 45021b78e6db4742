"""Replies in the styles of chat models and people, written for this test, and what a careful reader takes them for.

``data/choice_replies.jsonl``: options, labels, reply, and the labels chosen ([]: none is right; null: left open, to be
read by no rule). ``data/verdict_replies.jsonl``: reply and verdict (null: none).
"""

from __future__ import annotations

import pytest

from tests.replies.tables import DATA, different, rows
from unslant.replies import extract_labels, extract_verdict

CHOICES, VERDICT_ROWS = rows(DATA / "choice_replies.jsonl"), rows(DATA / "verdict_replies.jsonl")
KINDS = {
    "one label": lambda answer: answer is not None and len(answer) == 1,
    "several labels": lambda answer: answer is not None and len(answer) > 1,
    "none": lambda answer: answer == [],
    "left open": lambda answer: answer is None,
}


@pytest.mark.parametrize("kind", KINDS)
def test_choices(kind):
    chosen = [row for row in CHOICES if KINDS[kind](row["expected"])]
    assert len(chosen) >= 40
    assert not different(
        (row["reply"], row["expected"], extract_labels(row["reply"], row["labels"], row["options"])) for row in chosen
    )


@pytest.mark.parametrize("verdict", ["True", "False", "Unknown", None])
def test_verdicts(verdict):
    said = [row["reply"] for row in VERDICT_ROWS if row["expected"] == verdict]
    assert len(said) >= 20
    assert not different((reply, verdict and [verdict], extract_verdict(reply)) for reply in said)


def test_the_table_covers_every_kind_of_answer():
    expected = [row["expected"] for row in CHOICES]
    assert sum(answer is None for answer in expected) >= 75
    assert sum(answer == [] for answer in expected) >= 40
    assert sum(answer is not None and len(answer) > 1 for answer in expected) >= 90
    assert len(expected) >= 650
