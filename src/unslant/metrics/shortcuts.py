"""Answers without knowledge: test-taking shortcuts (P5, "future work"), and scores that follow an option's length."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Ints, json_fields
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate, by_design, verdict
from unslant.metrics.pairs import p_of_pairs
from unslant.metrics.registry import Numbers, metric
from unslant.metrics.scores import Places
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
    numbers = [_NUMBER.findall(option) for option in question.options]
    if len(numbers) < 3 or any(len(of_option) != 1 for of_option in numbers):
        return set()
    values = [float(number.replace(",", "").replace("\u00a0", "").replace("−", "-")) for (number,) in numbers]
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
    best = {i for i, value in enumerate(values) if value == max(values)}
    return best if len(best) < len(values) else set()


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
_NUMBER_OF = len(TEXT_SHORTCUTS) + 1
"""Shortcuts that are always looked at, for which claims are corrected."""


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
        return verdict(self.score, null=self.guess, looked_at=_NUMBER_OF).kind == "above"

    @property
    def followed(self) -> bool:
        return verdict(self.excess, looked_at=_NUMBER_OF).kind == "above"

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


def credit_of(questions: Sequence[Question], picks: Sequence[set[int]]) -> Floats:
    """(Q, 2) share of each question's picks that is right, and of its options; nan without a pick or a right option."""
    shares = np.full((len(questions), 2), np.nan)
    for q, (question, pick) in enumerate(zip(questions, picks, strict=True)):
        if pick and question.answers:
            shares[q] = len(pick & question.answers) / len(pick), len(question.answers) / len(question.options)
    return shares


@metric("shortcuts.score", "scores alone", "accuracy of the shortcut, where it applies", unit="share")
@metric("shortcuts.guess", "guessing", "accuracy of guessing on the same questions", unit="share", plain=True)
@metric("follow", "followed when wrong", "the model's answer is the shortcut's, both being wrong", unit="share")
@metric("follow_chance", "by chance", "the same for wrong answers picked at random", unit="share", plain=True)
@metric("shortcuts.excess", "more than by chance", "followed when wrong minus by chance", unit="difference")
@metric("applies", "applies", "questions for which the shortcut picks an option", unit="share")
def shortcuts(
    questions: Sequence[Question],
    chosen: Sequence[int | None] | Ints,
    *,
    bootstrap: Bootstrap | None = None,
    rows: Sequence[int] | None = None,
) -> tuple[Shortcut, ...]:
    """Measure every shortcut.

    Args:
        questions: in file order (answer runs depend on it); those without a right option are ignored.
        chosen: index of the option chosen on each question as given; ``None`` or negative if unknown.
        bootstrap: of these questions, in which they are at ``rows``.
    """
    if bootstrap is None:
        subjects, contexts = ([getattr(question, name) for question in questions] for name in ("subject", "context"))
        bootstrap = Bootstrap(len(questions), subjects, contexts=contexts)
    places = np.arange(len(questions)) if rows is None else np.asarray(rows, np.intp)
    measured = []
    for name, picks in shortcut_picks(questions).items():
        score, guess, follow, chance, applies = np.full((5, len(questions)), np.nan)
        score[places], guess[places] = credit_of(questions, picks).T
        for q, question, pick, answer in zip(places, questions, picks, chosen, strict=True):
            if not question.answers:
                continue
            applies[q] = bool(pick)
            wrong = answer is not None and answer >= 0 and answer not in question.answers
            if pick and wrong and not pick & question.answers:
                follow[q] = answer in pick
                chance[q] = len(pick) / (len(question.options) - len(question.answers))
        measured.append(
            Shortcut(
                name,
                bootstrap.mean(score, note="it applies to no question"),
                by_design(guess).value,
                bootstrap.mean(follow, note="no question on which model and shortcut are both wrong"),
                by_design(chance).value,
                bootstrap.mean(follow - chance, share=False, swings=True),
                bootstrap.mean(applies),
            )
        )
    return tuple(measured)


_EXCESS = "share of answers that are the {} option minus share of right ones"


@metric("length_bias.accuracy", "accuracy, sum", "the option of the highest sum of log-probabilities", unit="share")
@metric("length_bias.normalised", "accuracy, per character", "the option of the highest sum per character (acc_norm)",
        unit="share", source="lm-eval")  # fmt: skip
@metric("length_bias.change", "change", "per character minus sum, same questions", unit="difference")
@metric("length_bias.p", "p", "McNemar test that sum and per character are right equally often", unit="p")
@metric("length_bias.shortest_excess", "shortest, sum", _EXCESS.format("shortest"), unit="difference")
@metric("length_bias.longest_excess", "longest, sum", _EXCESS.format("longest"), unit="difference")
@metric("length_bias.normalised_shortest_excess", "shortest, per character", _EXCESS.format("shortest"),
        unit="difference")  # fmt: skip
@metric("length_bias.normalised_longest_excess", "longest, per character", _EXCESS.format("longest"), unit="difference")
def length_bias(logprobs: Floats, lengths: Floats, answers: Bools, bootstrap: Bootstrap) -> Numbers | None:
    """The answer by the sum of an option's log-probabilities against that by the sum over its number of characters.

    A sum falls with every token, so the sum favours short options, and the mean those whose later tokens can be
    guessed. Per character is what lm-eval calls ``acc_norm``; a log has no number of tokens. The excess of the shortest
    (longest) option is on the questions whose options differ in length; above 0, length decides.

    Args:
        logprobs: (Q, N) sum for each option, natural log; nan in the padding.
        lengths: (Q, N) characters of each option; nan likewise.
        answers: (Q, N) which options are right; questions without a right one are left out.

    Returns:
        None if no question has a score and a length for each option.
    """
    exists = np.isfinite(lengths)
    usable = (exists == np.isfinite(logprobs)).all(axis=1) & ((lengths > 0) | ~exists).all(axis=1) & answers.any(axis=1)
    if not usable.any():
        return None
    logprobs, lengths, answers = logprobs[usable], lengths[usable], answers[usable]

    def of_all(values: Floats) -> Floats:
        """(Q,) values of the usable questions, nan for the others."""
        padded = np.full(len(usable), np.nan)
        padded[usable] = values
        return padded

    rows = np.arange(len(lengths))
    by_sum, by_mean = (np.nanargmax(values, axis=1) for values in (logprobs, logprobs / lengths))
    plain, normalised = (answers[rows, pick].astype(np.float64) for pick in (by_sum, by_mean))
    ends = [function(lengths, axis=1, keepdims=True) for function in (np.nanmin, np.nanmax)]
    differ = (ends[0] < ends[1])[:, 0]

    def excess(pick: Places, end: Floats) -> Estimate:
        of_right = (answers & (lengths == end)).sum(axis=1) / answers.sum(axis=1)
        share = (lengths == end)[rows, pick] - of_right
        return bootstrap.mean(of_all(np.where(differ, share, np.nan)), share=False, note="options of one length only")

    names = ("shortest_excess", "longest_excess", "normalised_shortest_excess", "normalised_longest_excess")
    values = [excess(pick, end) for pick in (by_sum, by_mean) for end in ends]
    return Numbers(
        {
            "length_bias.accuracy": bootstrap.mean(of_all(plain)),
            "length_bias.normalised": bootstrap.mean(of_all(normalised)),
            "length_bias.change": bootstrap.mean(of_all(normalised - plain), share=False),
            "length_bias.p": p_of_pairs(bootstrap, of_all(normalised), of_all(plain)),
            **{f"length_bias.{name}": value for name, value in zip(names, values, strict=True)},
        }
    )
