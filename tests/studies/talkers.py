"""Numbered questions for the audit in words, and rules for talkers that know every second one of them."""

from __future__ import annotations

from unslant import Question

QUESTIONS = [
    Question(f"q{i:02}", f"Which is number {i}?", tuple(f"item {j}" for j in range(n)), frozenset({i % n}))
    for i, n in enumerate([2, 3, 4, 4, 5, 8] * 8)
]
"""Talkers know the even-numbered questions."""


def number(stem: str) -> int:
    return int(stem.split()[-1].rstrip("?"))


def says(labels: list[str], texts: list[str], text: str) -> str:
    return f"Answer: {labels[texts.index(text)]}"


def knows(stem: str, labels: list[str], texts: list[str]) -> str | None:
    """The right answer to even-numbered questions."""
    i = number(stem)
    return None if i % 2 else says(labels, texts, f"item {i % len(texts)}")


def takes_a(stem: str, labels: list[str], texts: list[str]) -> str:
    return knows(stem, labels, texts) or f"Answer: {labels[0]}"
