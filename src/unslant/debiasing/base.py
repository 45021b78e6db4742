"""The contract of every debiasing method: from presented questions to probabilities of their options.

A method is a frozen dataclass of its settings. ``fit`` learns what it needs (a prior, an adapter, nothing) and returns
a debiaser, which answers each question from the listing in its file. To measure a method, answer the same questions
listed in other orders: what still changes is the bias that is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from unslant.arrays import Floats
from unslant.debiasing.asker import Asker, ask_orders
from unslant.errors import InputError, QuestionError, needed
from unslant.metrics import choose
from unslant.models import Cost
from unslant.presentations import Order, given_order
from unslant.presentations.orders import wording
from unslant.questions import Question
from unslant.responses import text_ranks

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The debiased answer to one question.

    Attributes:
        probs: (n,) probability of each option, by its index in the question; sums to 1 - ``abstain``. With replies,
            the share of replies that name it; replies without an answer make up the rest to 1.
        choice: index of the answer; -1 without one.
        orders: number of presentations it rests on.
        abstain: probability of an added option ("I don't know").
        text: of the answer.
        status: ``ok``; ``unparsed``: no reply has an answer; ``unsupported``: the method cannot handle this question;
            ``error``: there are no scores.
        reason: why there is no answer.

    Examples:
        >>> with unslant.Debiased("prefers-a", "vote") as model:
        ...     outcome = model.answer(unslant.load_questions("embedded")[0])
        >>> outcome.orders
        24
    """

    probs: Floats
    choice: int
    orders: int
    abstain: float = 0.0
    text: str = ""
    status: str = "ok"
    reason: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome):
            return NotImplemented
        (probs, *mine), (others_probs, *others) = ([getattr(o, f.name) for f in fields(o)] for o in (self, other))
        return np.array_equal(probs, others_probs, equal_nan=True) and mine == others

    @property
    def confidence(self) -> float:
        """Probability of the answer; with replies, its share of the votes."""
        return float(self.probs[self.choice]) if self.choice >= 0 else 0.0

    def described(self, question: Question) -> Outcome:
        """With the text of the answer, or the reason why there is none."""
        if self.choice >= 0:
            return replace(self, text=question.options[self.choice])
        if self.status == "ok":
            return replace(self, status="unparsed", reason="no reply gives an answer")
        return self

    @classmethod
    def none(cls, question: Question, status: str, reason: str) -> Outcome:
        """No answer, and why."""
        return cls(np.zeros(len(question.options)), -1, 0, status=status, reason=reason)

    @classmethod
    def by_text(cls, question: Question, probs: Floats, orders: int) -> Outcome:
        """The most probable option; a tie goes to the text that sorts first, in every order of the file."""
        return cls(probs, int(choose(probs, np.asarray(text_ranks(question.options)))), orders)

    @classmethod
    def by_place(cls, probs: Floats, orders: int, abstain: float = 0.0) -> Outcome:
        """The most probable option; a tie goes to the option listed first, as when a model is asked once."""
        return cls(probs, int(choose(probs, np.arange(len(probs)))), orders, abstain)


@dataclass(eq=False)
class Debiaser(ABC):
    """A fitted method, ready to answer.

    Attributes:
        fit_notes: what a reader should know of the fit.
        restore: undoes what the fit changed in the model, if anything.
    """

    asker: Asker
    fit_notes: tuple[str, ...] = field(default=(), kw_only=True)
    restore: Callable[[], None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.restore:
            self.asker.forget()  # scores of the model as it was before the fit

    @abstractmethod
    def outcomes(self, questions: Sequence[Question]) -> list[Outcome]:
        """One outcome per question, in order; QuestionError naming all questions that this method cannot handle."""

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        """One outcome per question, in order; where the method cannot handle a question, the outcome says why.

        If one of several listings of a question cannot be handled, none of them has an answer, so that listings are
        always compared over the same questions.
        """
        failed: dict[str, tuple[str, str]] = {}
        outcomes = without_failed(
            lambda: iter(self.outcomes([question for question in questions if question.id not in failed])), failed
        )
        return [
            Outcome.none(question, *failed[question.id])
            if question.id in failed
            else next(outcomes).described(question)
            for question in questions
        ]

    def notes(self, questions: Sequence[Question]) -> tuple[str, ...]:
        """What a reader of the answers to these questions should know."""
        return (*self.fit_notes, *self.asker.notes)

    def close(self) -> None:
        """Restore the model bit for bit. Closing twice does nothing."""
        if self.restore:
            self.restore()
            self.restore = None
            self.asker.forget()


def without_failed(ask: Callable[[], T], failed: dict[str, tuple[str, str]]) -> T:
    """The result of ``ask``, called again without the questions that it refused until it refuses none.

    Whole batches are asked, because questions asked one by one would share nothing. Scores from before a refusal are
    remembered, so that asking again costs little.

    Args:
        failed: id -> status and reason of the questions to leave out; filled here.
    """
    while True:
        try:
            return ask()
        except QuestionError as error:
            if error.reasons.keys() <= failed.keys():
                raise
            failed |= {name: (error.status, reason) for name, reason in error.reasons.items()}


class OrderDebiaser(Debiaser):
    """Answers from some orders of each question; this class itself from the published order alone."""

    def orders(self, question: Question) -> list[Order]:
        """The orders to ask."""
        return [given_order(question)]

    def outcome(self, question: Question, orders: Sequence[Order], probs: Floats) -> Outcome:
        """The answer to one question from the (K, n) probabilities of its options under its K orders."""
        return Outcome.by_place(probs[0], 1)

    def outcomes(self, questions: Sequence[Question]) -> list[Outcome]:
        orders = [self.orders(question) for question in questions]
        return list(map(self.outcome, questions, orders, ask_orders(self.asker, questions, orders)))


class Method(ABC):
    """A debiasing method: a frozen dataclass of its settings that overrides the tags that differ.

    Attributes:
        needs_model: it works inside the model, so a server or recorded responses are not enough.
        needs_scores: it works with probabilities of labels; choices read from replies are not enough.
        held_out: it must not be fitted on the questions it answers (it is trained, or uses their right answers).
    """

    needs_model = False
    needs_scores = True
    held_out = False

    @property
    @abstractmethod
    def name(self) -> str:
        """As in ``--method``."""

    @property
    def needs_fit(self) -> bool:
        """Whether it needs questions to fit on."""
        return False

    @property
    def order_invariant(self) -> bool:
        """Whether it claims the same answers however the file orders the options."""
        return False

    @abstractmethod
    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> Debiaser:
        """Learn from ``questions``; methods that need no fit ignore them.

        Raises:
            InputError: if the questions or the asker do not suffice.
            QuestionError: if some of the questions cannot be asked.
        """

    def fitted(self, asker: Asker, questions: Sequence[Question] = ()) -> Debiaser:
        """:meth:`fit` on those of the questions that can be asked; a note counts the others."""
        failed: dict[str, tuple[str, str]] = {}
        debiaser = without_failed(lambda: self.fit(asker, [q for q in questions if q.id not in failed]), failed)
        if failed:
            why = counted_reasons(Counter(reason for _, reason in failed.values()))
            debiaser.fit_notes += (f"not fitted on {len(failed):,} of {len(questions):,} questions: {why}",)
        return debiaser

    def asks(self, in_words: bool) -> tuple[str, ...]:
        """Abilities that the model must have, for :func:`unslant.models.open.open_model`.

        Args:
            in_words: replies are read, rather than the scores of labels.

        Raises:
            InputError: if replies are read, and the method needs log-probabilities.
        """
        if in_words and self.needs_scores:
            raise InputError(
                f"{self.name} needs log-probabilities of labels, but this run reads replies: use none, vote, "
                "vote-hard or adaptive"
            )
        return ("generate",) if in_words else ("score", "attend") if self.needs_model else ("score",)

    def check_installed(self) -> None:  # noqa: B027  # most need nothing
        """Raise ModelError, saying what to install, where an optional package is missing."""


def check_apart(what: str, fitted: Sequence[Question], measured: Sequence[Question]) -> None:
    """Raise InputError if some of the questions measured are among those fitted on; ``what`` is fitted."""
    asked = set(map(wording, fitted))
    if n := sum(wording(question) in asked for question in measured):
        raise InputError(f"{what} is fitted on {n:,} of the {len(measured):,} measured questions; give it others")


def counted_reasons(reasons: Mapping[str, int]) -> str:
    """``a prompt is too long (3), no label is left (1)``."""
    return ", ".join(f"{reason} ({n:,})" for reason, n in reasons.items())


def left_out(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Why questions have no answer, and how many; replies without an answer are counted by the asker's own note."""
    return dict(Counter(o.reason for o in outcomes if o.status in ("unsupported", "error")).most_common())


def left_out_notes(reasons: Mapping[str, int], n_questions: int) -> tuple[str, ...]:
    """A note on how many questions have no answer, and why; none if all have one."""
    why = counted_reasons(reasons)
    return (f"no answer to {sum(reasons.values()):,} of {n_questions:,} questions: {why}",) * bool(why)


@dataclass(frozen=True)
class Answers:
    """Debiased answers to a set of questions, and their cost.

    Attributes:
        questions, outcomes: aligned.
        fit_cost, cost: of fitting, and of answering all questions. ``prompts`` counts presentations, the forward passes
            that a plain implementation would need.
        notes: what a reader should know.
        mostly_failed: why most requests for replies failed, if they did.

    Examples:
        >>> answers = unslant.debias("prefers-a", "embedded", method="vote", limit=10)
        >>> len(answers.outcomes)
        10
    """

    method: str
    questions: tuple[Question, ...]
    outcomes: tuple[Outcome, ...]
    fit_cost: Cost
    cost: Cost
    notes: tuple[str, ...] = ()
    mostly_failed: str = ""

    def __repr__(self) -> str:
        return f"Answers: {len(self.questions):,} by {self.method}; .records(), .to_pandas()"

    def to_pandas(self) -> DataFrame:
        """:meth:`records` as a pandas DataFrame, one row a question."""
        table: DataFrame = needed("pandas", "to_pandas", InputError).DataFrame(list(self.records()))
        return table

    @property
    def forwards_per_question(self) -> float:
        """Presentations asked per question, with those of the fit (PriDe: about 1 + alpha (n - 1)) and of the store."""
        total = self.fit_cost + self.cost
        return (total.prompts + total.reused) / max(1, len(self.questions))

    def records(self) -> Iterator[dict[str, object]]:
        """One JSON-able record per question: id, probability of each option, the answer and its text."""
        for question, outcome in zip(self.questions, self.outcomes, strict=True):
            record: dict[str, object] = {
                "id": question.id,
                "method": self.method,
                "answer": outcome.choice if outcome.choice >= 0 else None,
                "text": outcome.text or None,
                "confidence": outcome.confidence,
                "probabilities": outcome.probs.tolist(),
                "orders": outcome.orders,
                "status": outcome.status,
            }
            record |= {"reason": outcome.reason} if outcome.reason else {}
            yield record | ({"abstain": outcome.abstain} if outcome.abstain else {})


def debias(
    method: Method, asker: Asker, questions: Sequence[Question], fit_on: Sequence[Question] | None = None
) -> Answers:
    """Answer ``questions`` by a method fitted on ``fit_on`` (by default the questions themselves).

    Raises:
        InputError: if the method cannot work with this asker, or with any of these questions.
        ModelError: if an optional package is missing, or no question got a score.
    """
    method.asks(asker.in_words)
    method.check_installed()
    before = asker.cost.copy()
    with closing(method.fitted(asker, questions if fit_on is None else fit_on)) as debiaser:
        between = asker.cost.copy()
        outcomes = tuple(debiaser.answer(questions))
        cost, notes = asker.cost - between, debiaser.notes(questions)
    unanswered = left_out_notes(left_out(outcomes), len(outcomes))
    if outcomes and all(outcome.status in ("unsupported", "error") for outcome in outcomes):
        raise InputError(f"{method.name}: {unanswered[0]}: use another method or other questions")
    failed, mostly_failed = [one.reason for one in outcomes if one.status == "error"], asker.mostly_failed
    if 2 * len(failed) > len(outcomes) and not mostly_failed:
        mostly_failed = f"{len(failed):,} of {len(outcomes):,} questions got no scores ({failed[-1]})"
    notes = (*notes, *unanswered)
    return Answers(method.name, tuple(questions), outcomes, between - before, cost, notes, mostly_failed)


def each_of(questions: Sequence[Question], made: Callable[[Question], T]) -> list[T]:
    """``made`` of each question; QuestionError naming all that it refuses."""
    results: list[T] = []
    failed: dict[str, str] = {}
    for question in questions:
        try:
            results.append(made(question))
        except QuestionError as error:
            failed |= error.reasons
    if failed:
        raise QuestionError(failed)
    return results
