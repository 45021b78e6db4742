"""Judges with planted habits, on pairs of answers of four systems whose strengths are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from unslant.presentations import present
from unslant.questions import Question
from unslant.responses import Response, Responses, Run

STRENGTHS = {"amber": 0.8, "birch": 0.3, "cedar": -0.3, "dune": -0.8}
WORDY = {"amber": -0.5, "birch": 0.0, "cedar": 0.0, "dune": 0.5}
"""Mean log2 of the length of a system's answers: the weakest writes most."""


@dataclass(frozen=True)
class Habit:
    """What a planted judge adds to the log-odds of the answer shown first: a constant for the place, so much for every
    doubling of the length, and a width of ties in the order of the file and in the swapped one."""

    place: float = 0.0
    length: float = 0.0
    tie: float = 0.0
    tie_swapped: float = 0.0


HABITS = {
    "neither": Habit(),
    "place": Habit(place=0.8),
    "length": Habit(length=0.6),
    "both": Habit(place=0.8, length=0.6),
    "ties": Habit(tie=0.2, tie_swapped=0.9),
    "even ties": Habit(tie=0.5, tie_swapped=0.5),
}


def truth(habit: Habit) -> dict[str, float]:
    """Win rate of each system against the three others without a habit: ties as wide as on average in both orders."""
    width = (habit.tie + habit.tie_swapped) / 2

    def rate(one: str) -> float:
        apart = [STRENGTHS[one] - STRENGTHS[other] for other in STRENGTHS if other != one]
        return float(np.mean([(expit(d - width) + expit(d + width)) / 2 for d in apart]))

    return {name: rate(name) for name in STRENGTHS}


def judged(habit: Habit, seed: int, pairs: int = 360, *, weak_first: bool = False, spread: float = 1.0) -> Responses:
    """Verdicts in both orders on ``pairs`` pairs, every two systems equally often.

    Args:
        spread: standard deviation of the log2 of an answer's length.
        weak_first: the file lists the weaker system first in every pair, so that a run in one order favours it.
    """
    rng = np.random.default_rng(seed)
    names = list(STRENGTHS)
    met = [(a, b) for a in names for b in names if STRENGTHS[a] > STRENGTHS[b]]
    questions, rows = [], []
    for k in range(pairs):
        two = met[k % len(met)]
        two = two[::-1] if weak_first or rng.random() < 0.5 else two
        doublings = [8 + WORDY[name] + spread * rng.normal() for name in two]
        texts = tuple("x" * max(1, round(2**one) - 1) for one in doublings)
        question = Question(f"q{k}", f"Question {k}?", texts, frozenset(), authors=two)
        questions.append(question)
        for order in ((0, 1), (1, 0)):
            first, second = order
            apart = STRENGTHS[two[first]] - STRENGTHS[two[second]]
            longer = np.log2(len(texts[first]) + 1) - np.log2(len(texts[second]) + 1)
            lean = apart + habit.place + habit.length * longer + rng.logistic()
            width = habit.tie if first == 0 else habit.tie_swapped
            chosen = {first} if lean > width else {second} if lean < -width else {0, 1}
            rows.append(
                Response.of(question, present(question, order), "generate", chosen=frozenset(chosen), raw="planted")
            )
    return Responses(Responses.from_rows(rows).table, Run(study="judge", model="planted"), tuple(questions))
