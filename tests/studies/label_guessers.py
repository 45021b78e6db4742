"""Numbered questions, and models that know every second one of them and choose by label among the others."""

from __future__ import annotations

from tests.fakes import RuleModel
from unslant import Question

QUESTIONS = [
    Question(
        f"q{i}", f"Which is number {i}?", tuple(f"item {j}" for j in range(n)), frozenset({i % n}), subject=f"s{i % 3}"
    )
    for i, n in enumerate([2, 3, 4, 4, 5, 6] * 8)
]
"""Right options are spread over positions; the rule models know the even-numbered questions."""


def knows(stem: str) -> bool:
    number = stem.split()[-1].rstrip("?")
    return number.isdecimal() and int(number) % 2 == 0  # the control question has no number


def gold(stem: str, texts: list[str]) -> str:
    return f"item {int(stem.split()[-1].rstrip('?')) % len(texts)}"


def when_unsure(weight_of: dict[str, float]) -> RuleModel:
    """Answers what it knows, else by label: ``weight_of`` a label, or of ``last`` for the last position."""

    def rule(stem: str, labels: list[str], texts: list[str]) -> list[float]:
        if knows(stem):
            return [8.0 if text == gold(stem, texts) else 1.0 for text in texts]
        last = [1.0 + (weight_of.get("last", 0.0) if i == len(labels) - 1 else 0.0) for i in range(len(labels))]
        return [weight_of.get(label, w) for label, w in zip(labels, last, strict=True)]

    return RuleModel(rule)
