"""The contract of every debiasing method: from presented questions to probabilities over content.

A method is a frozen dataclass of its settings. ``fit`` learns what it needs (a prior, an adapter, nothing at all) and
gives a debiaser; the debiaser answers questions, each seen as its file lists it, and gives the model back unchanged
when it is closed. To measure a method, answer the same questions listed in other orders: whatever still moves is the
bias that is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from unslant.arrays import Floats
from unslant.asking import Asker, ask_orders
from unslant.metrics import choose
from unslant.models import Cost
from unslant.presentations import Order, given_order
from unslant.questions import Question
from unslant.responses import text_ranks


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


@dataclass(frozen=True)
class OutcomeList:
    """The answers to a list of questions, in its order, and what a reader of them should know (usually nothing)."""

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __getitem__(self, index: int) -> Outcome:
        return self.outcomes[index]

    def __len__(self) -> int:
        return len(self.outcomes)


class Debiaser(ABC):
    """A method ready to answer; ``notes`` tell what the fit found and come with all answers."""

    def __init__(self, asker: Asker, notes: tuple[str, ...] = ()) -> None:
        self.asker, self.notes = asker, notes

    @abstractmethod
    def answer(self, questions: Sequence[Question]) -> OutcomeList:
        """One outcome per question, in order."""

    def close(self) -> None:  # noqa: B027  # most methods leave the model alone
        """Give the model back as it was, bit for bit. Closing twice does nothing."""


class OrderDebiaser(Debiaser):
    """Answers from a few orders of each question; as it is, from the given one alone."""

    def orders(self, question: Question) -> list[Order]:
        """The orders to ask."""
        return [given_order(question)]

    def outcome(self, question: Question, orders: Sequence[Order], probs: Floats) -> Outcome:
        """The answer to one question from the (K, n) probabilities of its options under each of its K orders."""
        return Outcome.by_place(probs[0], 1)

    def remarks(self, questions: Sequence[Question]) -> tuple[str, ...]:
        """Notes on answers to these questions."""
        return ()

    def answer(self, questions: Sequence[Question]) -> OutcomeList:
        orders = [self.orders(question) for question in questions]
        probs = ask_orders(self.asker, questions, orders)
        outcomes = tuple(map(self.outcome, questions, orders, probs))
        return OutcomeList(outcomes, (*self.notes, *self.remarks(questions)))


class Method(ABC):
    """A debiasing method; subclasses are frozen dataclasses of its settings, and override the tags that differ.

    Attributes:
        needs_labels: the fit looks at which options are right.
        needs_model: it works inside the model, so a server or recorded responses are not enough.
        held_out: must not be fitted on the questions it answers (it is trained, or it saw their right answers).
    """

    needs_labels = False
    needs_model = False
    held_out = False

    @property
    @abstractmethod
    def name(self) -> str:
        """As in ``--method``."""

    @property
    def needs_fit(self) -> bool:
        """Without questions to fit on it cannot work."""
        return False

    @property
    def order_invariant(self) -> bool:
        """Answers claim to be the same however a file lists the options."""
        return False

    @abstractmethod
    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> Debiaser:
        """Learn from ``questions``; methods that need no fit do not look at them.

        Raises:
            InputError: if the questions, or the asker, are not enough for it.
        """


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


def debias(
    method: Method, asker: Asker, questions: Sequence[Question], fit_on: Sequence[Question] | None = None
) -> Answers:
    """Answer ``questions`` by a method fitted on ``fit_on`` (the questions themselves unless given).

    Raises:
        InputError: if the method cannot work with these questions or this asker.
    """
    before = asker.cost.copy()
    with closing(method.fit(asker, questions if fit_on is None else fit_on)) as debiaser:
        between = asker.cost.copy()
        found = debiaser.answer(questions)
    return Answers(
        method.name,
        tuple(questions),
        found.outcomes,
        method.needs_labels,
        method.order_invariant,
        between - before,
        asker.cost - between,
        found.notes,
    )
