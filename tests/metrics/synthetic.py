"""Responses of made-up answerers whose biases are known exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from unslant.presentations import ALPHABETS, labels_for, orders_for, present, reversed_order
from unslant.questions import Question
from unslant.responses import Response, Responses

Answerer = Callable[[Question, tuple[int, ...], tuple[str, ...], np.random.Generator], Sequence[float]]
"""From a question, its contents and labels from top to bottom, to a log-probability per label."""


def ask(
    questions: Iterable[Question],
    answerer: Answerer,
    *,
    orders: str = "auto",
    seed: int = 0,
    relabelled: bool = True,
    rng: np.random.Generator | None = None,
) -> Responses:
    """Present questions as an audit does: the order set, given and reversed where it lacks them, and new labels."""
    rng = rng or np.random.default_rng(seed)
    rows: list[Response] = []
    for question in questions:
        n = len(question.options)
        labels = labels_for(ALPHABETS["A"], n)
        given, back = tuple(range(n)), reversed_order(question)
        chosen = orders_for(question, orders, seed)
        shown = [("order", order, labels) for order in chosen]
        shown += [("given", given, labels)] * (given not in chosen)
        shown += [("reverse", back, labels)] * (back not in chosen)
        if relabelled:
            shown += [("labels-reversed", given, labels[::-1]), ("both-reversed", back, labels[::-1])]
            shown += [("labels-shifted", given, (*labels[1:], labels[0]))] * (n > 2)
        for name, order, sequence in shown:
            presentation = present(question, order, kind=name, labels=sequence)
            logprobs = np.asarray(answerer(question, tuple(order), sequence, rng), dtype=np.float64)
            rows.append(Response.of(question, presentation, "cloze", logprobs=logprobs))
    return Responses.from_rows(rows)


def make_questions(
    count: int,
    sizes: Sequence[int] = (4,),
    *,
    subjects: int = 0,
    pinned: Callable[[int, int], tuple[int, ...]] = lambda q, n: (),
    rng: np.random.Generator | None = None,
) -> list[Question]:
    """Questions with random right options; question q has ``sizes[q % len(sizes)]`` options."""
    rng = rng or np.random.default_rng(7)
    questions = []
    for q in range(count):
        n = sizes[q % len(sizes)]
        texts = tuple(f"w{q}-{t}" for t in rng.permutation(n))
        gold = frozenset({int(rng.integers(n))})
        subject = f"s{q % subjects:02d}" if subjects else ""
        questions.append(Question(f"q{q:04d}", "?", texts, gold, subject=subject, pinned=pinned(q, n)))
    return questions


def one_hot(n: int, at: int, certainty: float = 1.0) -> list[float]:
    """Log-probabilities with ``certainty`` at one place and the rest spread evenly."""
    rest = (1 - certainty) / (n - 1)
    with np.errstate(divide="ignore"):
        return [float(np.log(certainty if i == at else rest)) for i in range(n)]


def always(place: Callable[[tuple[int, ...], tuple[str, ...]], int]) -> Answerer:
    """Answers one place of the page whatever is asked."""
    return lambda question, contents, labels, rng: one_hot(len(labels), place(contents, labels))


def label_a(contents: tuple[int, ...], labels: tuple[str, ...]) -> int:
    return labels.index("A")


def first(contents: tuple[int, ...], labels: tuple[str, ...]) -> int:
    return 0


def last(contents: tuple[int, ...], labels: tuple[str, ...]) -> int:
    return len(labels) - 1


def last_label(contents: tuple[int, ...], labels: tuple[str, ...]) -> int:
    return labels.index(max(labels))


def knows(share: float, otherwise: Answerer) -> Answerer:
    """Knows a share of the questions for certain (by the number in their id) and answers the others ``otherwise``."""

    def answer(
        question: Question, contents: tuple[int, ...], labels: tuple[str, ...], rng: np.random.Generator
    ) -> Sequence[float]:
        if int(question.id[1:]) * 0.618034 % 1 < share and question.answers:
            return one_hot(len(labels), contents.index(min(question.answers)), 0.97)
        return otherwise(question, contents, labels, rng)

    return answer


def leaning(place: Callable[[tuple[int, ...], tuple[str, ...]], int], share: float) -> Answerer:
    """Puts ``share`` of the probability on one place, the rest evenly, with noise that decides between the others."""

    def answer(
        question: Question, contents: tuple[int, ...], labels: tuple[str, ...], rng: np.random.Generator
    ) -> Sequence[float]:
        return list(np.asarray(one_hot(len(labels), place(contents, labels), share)) + rng.normal(0, 0.01, len(labels)))

    return answer


def guesses(noise: float = 0.5) -> Answerer:
    """Guesses evenly: log-probabilities are noise."""
    return lambda question, contents, labels, rng: list(rng.normal(0, noise, len(labels)))
