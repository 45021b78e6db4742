"""The contract of every debiasing method: from presented questions to probabilities over content.

A method is a frozen dataclass of its settings. ``fit`` learns what it needs (a prior, an adapter, nothing at all) and
gives a debiaser; the debiaser answers questions, each seen as its file lists it, and gives the model back unchanged
when it is closed. To measure a method, answer the same questions listed in other orders: whatever still moves is the
bias that is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from unslant.arrays import Floats
from unslant.debias.asking import Asker
from unslant.metrics.ties import choose
from unslant.models.base import Cost
from unslant.questions.question import Question
from unslant.responses.table import text_ranks


@dataclass(frozen=True, slots=True)
class Outcome:
    """The debiased answer to one question.

    Attributes:
        probs: (n,) probability of each option, by its index in the question; sums to 1 - ``abstain``.
        choice: index of the answer.
        orders: presentations that went into it.
        abstain: probability left on an added option ("I don't know"), where that is kept.
    """

    probs: Floats
    choice: int
    orders: int
    abstain: float = 0.0

    @classmethod
    def by_text(cls, question: Question, probs: Floats, orders: int) -> Outcome:
        """The most probable option; a tie goes to the text that sorts first, whatever the file's order."""
        return cls(probs, int(choose(probs, np.asarray(text_ranks(question.options)))), orders)

    @classmethod
    def by_place(cls, probs: Floats, orders: int, abstain: float = 0.0) -> Outcome:
        """The most probable option; a tie goes to the one listed first, as when a model is asked once."""
        return cls(probs, int(choose(probs, np.arange(len(probs)))), orders, abstain)


class Debiaser(Protocol):
    """A method ready to answer."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answers should know; usually empty."""
        ...

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        """One outcome per question, in order."""
        ...

    def close(self) -> None:
        """Give the model back as it was, bit for bit. Closing twice does nothing."""
        ...


class Method(Protocol):
    """A debiasing method and its settings.

    Attributes:
        name: as in ``--method``.
        needs_labels: the fit looks at which options are right.
        needs_fit: without questions to fit on it cannot work.
        needs_model: it works inside the model, so recorded responses are not enough.
        order_invariant: answers claim to be the same however a file lists the options.
        held_out: must not be fitted on the questions it answers (it is trained, or it saw their right answers).
    """

    @property
    def name(self) -> str: ...
    @property
    def needs_labels(self) -> bool: ...
    @property
    def needs_fit(self) -> bool: ...
    @property
    def needs_model(self) -> bool: ...
    @property
    def order_invariant(self) -> bool: ...
    @property
    def held_out(self) -> bool: ...

    def fit(self, asker: Asker, questions: Sequence[Question]) -> Debiaser:
        """Learn from ``questions``; methods that need no fit do not look at them.

        Raises:
            InputError: if the questions, or the asker, are not enough for it.
        """
        ...


@dataclass(frozen=True)
class Traits:
    """What most methods have in common; override what differs."""

    @property
    def needs_labels(self) -> bool:
        return False

    @property
    def needs_fit(self) -> bool:
        return False

    @property
    def needs_model(self) -> bool:
        return False

    @property
    def order_invariant(self) -> bool:
        return False

    @property
    def held_out(self) -> bool:
        return False


@dataclass
class Unchanged:
    """What debiasers that leave the model alone have in common."""

    notes: tuple[str, ...] = ()

    def close(self) -> None:
        """Nothing to give back."""


@dataclass(frozen=True)
class Answers:
    """Debiased answers to a set of questions, and what they cost.

    Attributes:
        method: name.
        questions, outcomes: aligned.
        needs_labels, order_invariant: as the method states.
        fit_cost, cost: of fitting, and of answering all questions. ``tokens`` are those computed; ``prompts`` are the
            presentations scored, which is what a plain implementation would need in forward passes.
        notes: what a reader should know.
    """

    method: str
    questions: tuple[Question, ...]
    outcomes: tuple[Outcome, ...]
    needs_labels: bool
    order_invariant: bool
    fit_cost: Cost = field(default_factory=Cost)
    cost: Cost = field(default_factory=Cost)
    notes: tuple[str, ...] = ()

    @property
    def forwards_per_question(self) -> float:
        """Presentations scored a question, those for fitting included (PriDe: about 1 + alpha (n - 1))."""
        return (self.fit_cost.prompts + self.cost.prompts) / max(1, len(self.questions))

    def records(self) -> Iterator[dict[str, object]]:
        """One JSON-able record per question: id, probabilities over content, the answer and its text."""
        for question, outcome in zip(self.questions, self.outcomes, strict=True):
            record: dict[str, object] = {
                "id": question.id,
                "method": self.method,
                "answer": outcome.choice,
                "text": question.options[outcome.choice],
                "probabilities": [float(p) for p in outcome.probs],
                "orders": outcome.orders,
            }
            yield record | ({"abstain": outcome.abstain} if outcome.abstain else {})


@contextmanager
def fitted(method: Method, asker: Asker, questions: Sequence[Question] = ()) -> Iterator[Debiaser]:
    """The method's debiaser for the duration of the block; afterwards the model is as before."""
    debiaser = method.fit(asker, questions)
    try:
        yield debiaser
    finally:
        debiaser.close()


def debias(
    method: Method, asker: Asker, questions: Sequence[Question], fit_on: Sequence[Question] | None = None
) -> Answers:
    """Answer ``questions`` by a method fitted on ``fit_on`` (the questions themselves unless given).

    Raises:
        InputError: if the method cannot work with these questions or this asker.
    """
    before = asker.cost.copy()
    with fitted(method, asker, questions if fit_on is None else fit_on) as debiaser:
        between = asker.cost.copy()
        outcomes = debiaser.answer(questions)
        notes = debiaser.notes
    return Answers(
        method.name,
        tuple(questions),
        tuple(outcomes),
        method.needs_labels,
        method.order_invariant,
        between - before,
        asker.cost - between,
        notes,
    )
