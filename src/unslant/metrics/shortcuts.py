"""Test-taking shortcuts as controls: their own score, and how often wrong answers follow them (P5, "future work")."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, Ints, json_fields
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.registry import metric
from unslant.questions import Question

_NUMBER = re.compile(r"[-+−]?\d+(?:[,\u00a0]\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be but by can did do does for from had has have he her his how if in into is it its "
    "may not of on or she so than that the their them then there these they this those to was were what when where "
    "which while who whom whose why will with would you your".split()
)


def longest(question: Question) -> set[int]:
    """The options with the most characters."""
    return _most([len(option.strip()) for option in question.options])


def numeric_outlier(question: Question) -> set[int]:
    """The number farthest from the median of the others.

    Empty unless there are three or more options with exactly one number each, not all equally far.
    """
    found = [_NUMBER.findall(option) for option in question.options]
    if len(found) < 3 or any(len(numbers) != 1 for numbers in found):
        return set()
    values = [float(numbers[0].replace(",", "").replace("\u00a0", "").replace("−", "-")) for numbers in found]
    return _most([abs(value - statistics.median(values[:i] + values[i + 1 :])) for i, value in enumerate(values)])


def stem_overlap(question: Question) -> set[int]:
    """The options with the largest share of content words from the stem; empty if there are none."""
    stem = _content_words(question.stem)
    parts = []
    for option in question.options:
        words = _content_words(option)
        parts.append(len(words & stem) / len(words) if words else 0.0)
    return _most(parts)


def _most(values: Sequence[float]) -> set[int]:
    """Indices of the greatest value; empty if all are equal."""
    best = max(values)
    found = {i for i, value in enumerate(values) if value == best}
    return found if len(found) < len(values) else set()


def _content_words(text: str) -> set[str]:
    return {word for word in (match.lower() for match in _WORD.findall(text)) if word not in _FUNCTION_WORDS}


TEXT_SHORTCUTS: dict[str, Callable[[Question], set[int]]] = {
    "longest option": longest,
    "numeric outlier": numeric_outlier,
    "stem overlap": stem_overlap,
}
"""Name -> indices of the options picked: several are equally likely; with none, the shortcut does not apply."""
ANSWER_RUN = "answer run"
"""The right label of the previous question, which scores where right labels come in runs."""


@dataclass(frozen=True)
class Shortcut:
    """One shortcut on one set of questions.

    Attributes:
        score: accuracy of the shortcut alone, where it applies.
        guess: accuracy of random guessing on the same questions.
        follow: share of answers equal to the shortcut's where model and shortcut are both wrong.
        follow_chance: expected ``follow`` if wrong answers were random.
        excess: ``follow`` minus ``follow_chance``, paired by question.
        applies: share of questions with a pick.
        earns: whether the shortcut alone scores above guessing.
        followed: whether wrong answers follow it more often than by chance.
    """

    name: str
    score: Estimate
    guess: float
    follow: Estimate
    follow_chance: float
    excess: Estimate
    applies: Estimate

    @property
    def earns(self) -> bool:
        """Whether the shortcut alone scores above guessing."""
        return self.score.low > self.guess

    @property
    def followed(self) -> bool:
        """Whether wrong answers follow it more often than by chance."""
        return self.excess.low > 0

    def to_dict(self) -> dict[str, object]:
        return json_fields(self, also=("earns", "followed"))


def shortcut_picks(questions: Sequence[Question]) -> dict[str, list[set[int]]]:
    """The picks of every shortcut on every question, as option indices in file order."""
    picks = {name: [pick(question) for question in questions] for name, pick in TEXT_SHORTCUTS.items()}
    runs: list[set[int]] = []
    previous: set[int] = set()
    for question in questions:
        runs.append({i for i in previous if i < len(question.options)})
        previous = set(question.answers) if len(question.answers) == 1 else set()
    return {**picks, ANSWER_RUN: runs}


@metric("shortcuts.score", "scores alone", "accuracy of the shortcut, where it applies", unit="share")
@metric("shortcuts.guess", "guessing", "accuracy of guessing on the same questions", unit="share", plain=True)
@metric("follow", "followed when wrong", "the model's answer is the shortcut's, both being wrong", unit="share")
@metric("follow_chance", "by chance", "the same for wrong answers picked at random", unit="share", plain=True)
@metric("shortcuts.excess", "more than by chance", "followed when wrong, less by chance", unit="difference")
@metric("applies", "applies", "questions on which the shortcut says anything", unit="share")
def shortcuts(
    questions: Sequence[Question],
    chosen: Sequence[int | None] | Ints,
    *,
    seed: int = 0,
    bootstrap: Bootstrap | None = None,
    rows: Sequence[int] | None = None,
) -> tuple[Shortcut, ...]:
    """Measure every shortcut.

    Args:
        questions: in file order (answer runs depend on it); those without a right option are ignored.
        chosen: index of the option chosen on each question as given; ``None`` or negative if unknown.
        bootstrap: of these questions, in which they are at ``rows``.
    """
    bootstrap = bootstrap or Bootstrap(len(questions), [question.subject for question in questions], seed=seed)
    answers = [-1 if answer is None else int(answer) for answer in chosen]
    return tuple(
        _measure(name, questions, picks, answers, bootstrap, rows or range(len(questions)))
        for name, picks in shortcut_picks(questions).items()
    )


def _measure(
    name: str,
    questions: Sequence[Question],
    picks: list[set[int]],
    chosen: list[int],
    bootstrap: Bootstrap,
    rows: Sequence[int],
) -> Shortcut:
    score, guess, follow, chance, applies = (np.full(len(questions), np.nan) for _ in range(5))
    for q, question, picked, answer in zip(rows, questions, picks, chosen, strict=True):
        if not question.answers:
            continue
        applies[q] = bool(picked)
        if not picked:
            continue
        score[q] = len(picked & question.answers) / len(picked)
        guess[q] = len(question.answers) / len(question.options)
        wrong = len(question.options) - len(question.answers)
        if answer >= 0 and answer not in question.answers and not picked & question.answers:
            follow[q] = answer in picked
            chance[q] = len(picked) / wrong
    return Shortcut(
        name,
        bootstrap.mean(score, note="it applies to no question" if np.isnan(score).all() else ""),
        _mean(guess),
        bootstrap.mean(
            follow, note="no question on which model and shortcut are both wrong" * bool(np.isnan(follow).all())
        ),
        _mean(chance),
        bootstrap.mean(follow - chance, share=False),
        bootstrap.mean(applies),
    )


def _mean(values: Floats) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
