"""Replies that ended at the limit of tokens: what they were about to say is never an answer."""

from __future__ import annotations

import json

import pytest

from unslant.presentations import present
from unslant.questions import Question
from unslant.replies import extract, read_replies
from unslant.replies.text import without_fragment

QUESTION = Question("q", "Largest?", ("Mars", "Jupiter", "Venus", "Saturn"), frozenset({1}))
PAGE = present(QUESTION)


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("It is a giant with a red spot. The answer is D", None),
        ("Mars is small.\nD", None),
        ("The answer is D", None),
        ("So it is \\boxed{D", None),
        ("The answer is B. Saturn has rings, but it is sm", {"B"}),
        ("Answer: B\nBecause Jup", {"B"}),
        ("B", {"B"}),
        ("B. Jupiter is", {"B"}),
        ("A. Mars\nB. Jupiter\nC. Venus\nD. Saturn", None),
        ("B > A > C > D", None),
        ("答案是B。因为", {"B"}),
    ],
)
def test_the_last_fragment_of_a_cut_reply_is_not_read(reply: str, read: set[str] | None) -> None:
    found = extract(reply, PAGE, cut=True)
    assert (found.status, found.labels) == (("cut", frozenset()) if read is None else ("ok", frozenset(read)))


def test_a_whole_reply_is_read_to_its_end():
    assert extract("The answer is D", PAGE).labels == {"D"}
    assert without_fragment("One. Two") == "One."


def test_recorded_replies_say_why_they_ended(tmp_path):
    line = {"id": "1", "options": list(QUESTION.options), "reply": "Mars is small. The answer is D"}
    path = tmp_path / "replies.jsonl"
    lines = [line, {**line, "id": "2", "finish_reason": "length"}, {**line, "id": "3", "finish_reason": "stop"}]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert [one.read.status for one in read_replies(path)] == ["ok", "cut", "ok"]
