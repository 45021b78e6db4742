"""What stands around a reply, or how it was typed, does not change what is read in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from tests.replies.tables import DATA, rows
from unslant.replies import extract_labels, extract_preference, extract_verdict

CHOICES, VERDICTS = rows(DATA / "choice_replies.jsonl"), rows(DATA / "verdict_replies.jsonl")
CHANGES: dict[str, Callable[[str], str]] = {
    "agrees first": lambda reply: f"Sure! {reply}",
    "agrees first, with a stop": lambda reply: f"Okay. {reply}",
    "agrees first, on a line": lambda reply: f"Certainly!\n\n{reply}",
    "praises the question": lambda reply: f"Great question! {reply}",
    "agrees in Chinese": lambda reply: f"好的。{reply}",
    "names the speaker": lambda reply: f"Assistant: {reply}",
    "offers help": lambda reply: f"{reply.rstrip()}\n\nLet me know if you have any other questions!",
    "hopes to have helped": lambda reply: f"{reply.rstrip()}\n\nI hope this helps! Feel free to ask for more.",
    "offers more": lambda reply: f"{reply.rstrip()}\nWould you like me to explain the other options?",
    "smiles": lambda reply: f"{reply.rstrip()} 😊",
    "smiles first": lambda reply: f"🤔 {reply.lstrip()}",
    "byte order mark": lambda reply: f"\ufeff{reply}",
    "space without width": lambda reply: reply.replace(" ", " \u200b"),
    "other spaces": lambda reply: reply.replace(" ", "\u00a0"),
    "two spaces": lambda reply: reply.replace(" ", "  "),
    "tabs": lambda reply: reply.replace(" ", "\t"),
    "Windows": lambda reply: reply.replace("\n", "\r\n"),
    "space around": lambda reply: f"  \n{reply}  \n\n",
    "fenced": lambda reply: f"```\n{reply}\n```",
    "typographic quotes": lambda reply: reply.replace("'", "\u2019").replace('"', "\u201d"),
    "thinks first": lambda reply: f"<think>\nMaybe A, or B.\n</think>\n\n{reply}",
    "ends its turn": lambda reply: f"{reply}<|im_end|>",
}


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.thorough), 12], ids=["all", "some"])
@pytest.mark.parametrize("change", CHANGES)
def test_choices_are_read_alike(change: str, step: int) -> None:
    changed = []
    for row in CHOICES[::step]:
        read, again = (
            extract_labels(reply, row["labels"], row["options"])
            for reply in (row["reply"], CHANGES[change](row["reply"]))
        )
        if (read.status, read.labels) != (again.status, again.labels):
            changed.append((row["reply"], read, again))
    assert changed == []


LABELS = {
    "other letters": "PQRS",
    "lower case": "abcd",
    "numbers": "1234",
    "Roman": ("I", "II", "III", "IV"),
    "Greek": "αβγδ",
    "Chinese": "甲乙丙丁",
    "circled": "①②③④",
    "in brackets": ("(a)", "(b)", "(c)", "(d)"),
}
_LETTER = re.compile(r"(?<![A-Za-z'’])([A-D])(?![A-Za-z'’])")
_NOT_RENAMED = re.compile(r"(?<![A-Za-z])[abcd](?![A-Za-z'])|A (?!and|or|is|,)|\b[A-D]'s|[0-9]|[Ss]tatement")
"""Replies where a letter is also a word, or where numbers stand beside the labels."""


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.thorough), 6], ids=["all", "some"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_other_labels_are_read_alike(labels: Sequence[str], step: int) -> None:
    """Never as another answer, and nearly always as the same one: a single lower-case letter is more often a word."""
    renamed = [row for row in CHOICES if row["labels"] == list("ABCD") and not _NOT_RENAMED.search(row["reply"])]
    another, lost = [], 0
    for row in renamed[::step]:
        reply = _LETTER.sub(lambda match: labels["ABCD".index(match[1])], row["reply"])
        read = extract_labels(row["reply"], "ABCD", row["options"])
        again = extract_labels(reply, labels, row["options"])
        if again.status == "ok" and again.labels != {labels["ABCD".index(label)] for label in read.labels}:
            another.append((reply, read, again))
        lost += read.status == "ok" != again.status
    assert another == []
    assert lost <= 0.05 * len(renamed[::step])


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
def test_verdicts_are_read_alike(change: str) -> None:
    changed = []
    for row in VERDICTS:
        read, again = (extract_verdict(reply) for reply in (row["reply"], CHANGES[change](row["reply"])))
        if read.labels != again.labels:
            changed.append((row["reply"], read, again))
    assert changed == []


@pytest.mark.parametrize("change", CHANGES)
def test_preferences_are_read_alike(change: str) -> None:
    replies = (
        "[[A]]",
        "A",
        "Assistant A is better.",
        "Both are equally good.",
        "Winner: B",
        "A: 7\nB: 9",
        "I prefer B.",
    )
    assert [extract_preference(CHANGES[change](reply)).labels for reply in replies] == [
        extract_preference(reply).labels for reply in replies
    ]


CONVERSATION = ("Thank you! That helps.", "Sorry! That hurts.", "Good luck!", "Of course.")
SMILEYS = ("😀", "😢", "😡", "😴")


@pytest.mark.parametrize(
    ("options", "reply", "expected"),
    [
        (CONVERSATION, "Thank you! That helps.", "A"),
        (CONVERSATION, "Of course.", "D"),
        (CONVERSATION, "C. Good luck!", "C"),
        (CONVERSATION, "B. Good luck!", None),
        (SMILEYS, "😀", "A"),
        (SMILEYS, "The answer is 😢", "B"),
        (SMILEYS, "B 😀", None),
    ],
)
def test_courtesies_that_are_options_are_read(options: Sequence[str], reply: str, expected: str | None) -> None:
    read = extract_labels(reply, "ABCD", options)
    assert read.labels == ({expected} if expected else set())
    assert read.status == ("ok" if expected else "conflict")


def test_a_reply_of_courtesies_alone_stays() -> None:
    assert extract_labels("Sure!", "AB", ("Sure", "No")).labels == {"A"}
    assert extract_labels("Okay.", "AB", ("Okay", "Not okay")).labels == {"A"}
    assert extract_labels("Thank you", "AB", ("Thank you", "Please")).labels == {"A"}
