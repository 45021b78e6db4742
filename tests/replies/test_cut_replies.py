"""Replies that ended at the limit of tokens: what they were about to say is never an answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import unslant
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
        ("Let us look at each option.\n\nA. Mars: this is", None),
        ("A. Mars is the fourth planet. B. Jupiter is", None),
        ("Option A: Mars is red. Option B: Jupiter is the", None),
        ("B) Jupiter\n\nExplanation: A. Mars", {"B"}),
        ("The correct answer is:\nB. Jupiter is", {"B"}),
        ("### Option A: Mars\n\nThis", None),
        ("| A | Mars | no", None),
        ("- A (Mars) is the", None),
        ("* **A)** Mars is", None),
        ("- B: Jupiter is", {"B"}),
        ("- A. Mars: no\n- B. Jupiter: yes\n- C. Venus: no\n- D. Saturn: no\n\n**B**\n\nJupiter is the lar", {"B"}),
        ("- A. Mars is red.\n\nAnswer: A\n\nThis is because it has bee", {"A"}),
        ("| A | Mars | no |\n| B | Jupiter | yes |\n\nB\n\nBecause Ju", {"B"}),
        ("- The answer is A because it", {"A"}),
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
    reasons = [None, "length", "stop", "content_filter"]
    lines = [{**line, "id": str(i), "finish_reason": reason} for i, reason in enumerate(reasons)]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert [one.read.status for one in read_replies(path)] == ["ok", "cut", "ok", "refused"]


@pytest.mark.parametrize("empty", ["", " ", "<think>too long to end"])
def test_a_reply_in_which_nothing_was_said_is_not_right_and_stays_in_the_score(tmp_path: Path, empty: str) -> None:
    rows = [{"id": i, "options": ["x", "y"], "answer": "A", "reply": "A" if i < 6 else empty} for i in range(10)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    accuracy = unslant.audit(log=tmp_path / "log.jsonl").metrics.means["accuracy"]
    assert (accuracy.value, accuracy.n) == (0.6, 10)
