"""A rule that likes the first label, and the questions that it knows a little about."""

from __future__ import annotations

from tests.debiasing.conftest import make_questions
from unslant.questions import Question


def right_text(question: Question) -> str:
    return question.options[min(question.answers)]


KNOWN = make_questions([4] * 15 + [3] * 5)

OTHER = make_questions([4] * 12, seed=4)

ANSWERS = {q.stem + "/".join(sorted(q.options)): right_text(q) for q in [*KNOWN, *OTHER]}


def leaning(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    """Knows the answer a little and likes the first label more."""
    gold = ANSWERS[stem + "/".join(sorted(t for t in texts if t != "I don't know"))]
    return [(4.0 if text == gold else 1.0) * (6.0 if i == 0 else 1.0) for i, text in enumerate(texts)]
