"""Questions about colours, and base-rate results of models that know a third of them."""

from __future__ import annotations

import random
from functools import cache

from tests.studies.guessers import RuleModel, always, knows, taste
from unslant.questions import Question, QuestionSet
from unslant.studies.base_rate.study import BaseRateResult, base_rate

WORDS = "red green blue white black brown grey pink gold teal".split()


def colour_questions(count: int, sizes: tuple[int, ...] = (4,)) -> QuestionSet[Question]:
    made = []
    for i in range(count):
        rng = random.Random(i)
        n = sizes[i % len(sizes)]
        options = tuple(rng.sample(WORDS, n))
        answer = frozenset({i // len(sizes) % n})
        made.append(Question(f"q{i}", f"Which colour has thing {i}?", options, answer, subject=f"s{rng.randrange(12)}"))
    return QuestionSet.of(made, "things")


QUESTIONS = colour_questions(480)

RIGHT = {question.stem: question.options[min(question.answers)] for question in QUESTIONS}


def a_third(stem: str) -> bool:
    return int(stem.split()[-1].rstrip("?")) % 3 == 0


@cache
def prefers_a() -> BaseRateResult:
    """Knows a third and answers A to the rest by cloze; by counterfactual it guesses the rest without preference."""
    model = RuleModel(knows(a_third, RIGHT, always("A")), "prefers-a", counterfactual=knows(a_third, RIGHT, taste))
    return base_rate(model, QUESTIONS)


@cache
def fair() -> BaseRateResult:
    return base_rate(RuleModel(knows(a_third, RIGHT, taste), "fair"), QUESTIONS)
