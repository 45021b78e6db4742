"""Askers, through which methods reach a model's scores, its replies, or recorded scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import softmax

from unslant.arrays import Floats
from unslant.asking import GENERATE, Progress, elicitation_of, generate_all, no_progress, try_all, unscored
from unslant.errors import InputError, MostlyFailedError, QuestionError
from unslant.metrics import read_scores
from unslant.models import ChatModel, Cost, ScoringModel
from unslant.presentations import ALPHABETS, Order, Presentation, present
from unslant.prompts import Elicitation, Prompt, Writer, load_template
from unslant.questions import Question
from unslant.responses import NO_ANSWER, Responses


class Asker(ABC):
    """Returns the probabilities of the labels of presentations, and counts the cost.

    Attributes:
        alphabet: labels under which options are shown.
        model, elicitation: the live model and how it is asked, if there is one.
        in_words: answers are read from replies: probabilities are 1 for the option named, all 0 for no answer.
        notes: what a reader of the answers should know.
        mostly_failed: why most requests for replies failed, if they did.
    """

    alphabet: tuple[str, ...]
    model: ScoringModel | None = None
    elicitation: Elicitation | None = None
    in_words = False
    notes: tuple[str, ...] = ()
    mostly_failed: str = ""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Running total; subtract a copy taken before."""

    @abstractmethod
    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """(n,) probability of every label of each presentation, from top to bottom, over those labels only."""

    def forget(self) -> None:  # noqa: B027  # records do not change
        """Drop all remembered scores: the model's weights are about to change."""


class ModelAsker(Asker):
    """Asks a live model.

    Args:
        elicitation: by default :func:`elicitation_of` the model and the ``plain`` template.
        remember: keep every score until :meth:`forget`, so that no prompt is scored a second time.
        progress: called as scores come in.
    """

    def __init__(
        self,
        model: ScoringModel,
        elicitation: Elicitation | None = None,
        alphabet: tuple[str, ...] = ALPHABETS["A"],
        *,
        remember: bool = True,
        progress: Progress = no_progress,
    ) -> None:
        self.model: ScoringModel = model
        self.elicitation: Elicitation = elicitation or elicitation_of(model, Writer(load_template("plain")))
        self.alphabet, self.remember = alphabet, remember
        self._scores: dict[Prompt, Floats] = {}
        self._written: dict[tuple[Presentation, tuple[tuple[str, str], ...]], list[Prompt]] = {}
        self._progress = progress

    @property
    def cost(self) -> Cost:
        return self.model.cost

    def forget(self) -> None:
        self._scores.clear()

    def _prompts(self, presentation: Presentation) -> list[Prompt]:
        # Answers, kind, run and item do not show in a prompt, so all listings that look the same share their prompts.
        lines = tuple((option.label, option.text) for option in presentation.shown)
        key = (replace(presentation, shown=(), answers=frozenset(), kind="", run=0, item=""), lines)
        prompts = self._written.get(key)
        if prompts is None:
            prompts = self._written[key] = self.elicitation.prompts(presentation)
        return prompts

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`. Equal prompts are scored once.

        Raises:
            QuestionError: naming questions with a prompt that got no score; the scores of the others are remembered.
            ModelError: if no prompt got one.
        """
        batches = [self._prompts(presentation) for presentation in presentations]
        # Looked up once and kept here: another thread that has its answers may forget all scores at any moment.
        prompts = dict.fromkeys(chain.from_iterable(batches))
        scores = {prompt: known for prompt in prompts if (known := self._scores.get(prompt)) is not None}
        new = [prompt for prompt in prompts if prompt not in scores]
        results = try_all(self.model, new, lambda done: self._progress("scoring", done, len(new))) if new else []
        scored = {prompt: one.logprobs for prompt, one in zip(new, results, strict=True) if one.logprobs is not None}
        if new and not scored:
            raise unscored(self.model, new, results)
        scores |= scored
        self._scores |= scored
        if failed := set(new) - scored.keys():
            names = [p.question_id for p, prompts in zip(presentations, batches, strict=True) if failed & {*prompts}]
            reasons = dict.fromkeys(names, "a prompt got no score")
            raise QuestionError(reasons, unscored(self.model, new, results), "error")
        probs: list[Floats] = [
            softmax(self.elicitation.read(presentation, [scores[prompt] for prompt in prompts]))
            for presentation, prompts in zip(presentations, batches, strict=True)
        ]
        if not self.remember:
            self._scores.clear()
            self._written.clear()
        return probs


class ReplyAsker(Asker):
    """Asks a model for replies. One that is missing or has no answer has probability 0 for every label.

    Attributes:
        replies, unanswered, failed: requests made; replies without an answer; requests that got no reply.
        empty: replies without any text, which are among those without an answer, and count as failed.
        last_error: why the last of these failed.
    """

    in_words = True

    def __init__(
        self,
        model: ChatModel,
        writer: Writer,
        alphabet: tuple[str, ...] = ALPHABETS["A"],
        *,
        progress: Progress = no_progress,
    ) -> None:
        self.chat, self.alphabet = model, alphabet
        self.replies = self.unanswered = self.failed = self.empty = 0
        self.last_error = ""
        self._writer, self._progress = writer, progress

    @property
    def cost(self) -> Cost:
        """Requests as prompts, and the tokens of prompts and replies together, as far as they are counted."""
        spent = self.chat.cost
        return Cost(tokens=spent.input_tokens + spent.output_tokens, prompts=spent.requests)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """How many requests have not yielded an answer so far."""
        counts = ((self.unanswered, "replies give no answer"), (self.failed, "requests got no reply"))
        return tuple(f"{n:,} of {self.replies:,} {what}; they have no vote" for n, what in counts if n)

    @property
    def mostly_failed(self) -> str:  # type: ignore[override]
        """See :class:`Asker`."""
        if self.unanswered and self.unanswered + self.failed == self.replies:
            return f"none of {self.replies:,} replies of {self.chat.name} gives an answer"
        failed = self.failed + self.empty
        if 2 * failed <= self.replies:
            return ""
        why = self.last_error or "an empty reply"
        return f"{failed:,} of {self.replies:,} requests to {self.chat.name} failed ({why})"

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`; MostlyFailedError if no request got a reply."""
        from unslant.replies import extract  # compiles many patterns, and scores of labels need none

        cue = self._writer.template.render("cloze.cue")
        prompts = [self._writer.prompt(presentation, cue, ()) for presentation in presentations]
        replies = generate_all(self.chat, prompts, progress=self._progress)
        errors = [reply.error for reply in replies if reply.text is None]
        if errors and len(errors) == len(replies):
            raise MostlyFailedError(f"{self.chat.name}: no request got a reply ({errors[-1]})")
        self.replies, self.failed = self.replies + len(replies), self.failed + len(errors)
        self.last_error = errors[-1] if errors else self.last_error
        rows = []
        for presentation, reply in zip(presentations, replies, strict=True):
            probs = np.zeros(len(presentation.labels))  # a reply without an answer votes for nothing
            if reply.text is not None and not reply.declined:
                labels = extract(reply.text, presentation, cut=reply.cut).labels
                if len(labels) == 1:  # a reply that names several options votes for none of them
                    probs[[label in labels for label in presentation.labels]] = 1.0
            self.unanswered += reply.text is not None and not probs.any()
            self.empty += reply.text is not None and not reply.declined and not reply.text.strip()
            rows.append(probs)
        return rows


def asker_of(
    model: Any,
    writer: Writer,
    alphabet: tuple[str, ...],
    *,
    in_words: bool,
    remember: bool = True,
    progress: Progress = no_progress,
) -> Asker:
    """The asker of a loaded model: for replies, or for the scores of labels."""
    if in_words:
        writer = Writer(writer.template, writer.chat or model.info.remote)
        return ReplyAsker(model, writer, alphabet, progress=progress)
    return ModelAsker(model, elicitation_of(model, writer), alphabet, remember=remember, progress=progress)


class RecordedAsker(Asker):
    """Answers from the scores or replies in a table, also to questions with missing orders; of repeats, from the first.

    Its cost counts presentations (``prompts``) only, each once.

    Args:
        answered: leave out replies without an answer, which otherwise have probability 0 for every label.
    """

    def __init__(self, responses: Responses, *, answered: bool = False) -> None:
        scores = read_scores(responses)
        self.alphabet, self.in_words, self._cost = scores.labels, scores.elicitation == GENERATE, Cost()
        self._probs: dict[str, dict[Order, Floats]] = {}  # by question and order
        self._charged: set[tuple[str, Order]] = set()
        self._in_set: set[tuple[str, Order]] = set()
        kinds, unanswered = ("order", "given", "reverse"), 0
        for row in responses.where(elicitation=scores.elicitation, kind=kinds, status=("ok", *NO_ANSWER)).each_row():
            if row.kind == "order":
                self._in_set.add((row.question_id, row.contents))
            if row.contents in self._probs.get(row.question_id, ()):
                continue
            unanswered += row.choice < 0
            if answered and row.choice < 0:
                continue
            vote = np.array([float(content == row.choice) for content in row.contents])
            probs = vote if row.logprobs is None or row.choice < 0 else softmax(row.logprobs)
            self._probs.setdefault(row.question_id, {})[row.contents] = probs
        if unanswered and not answered:
            self.notes = (f"{unanswered:,} replies give no answer; they have no vote",)

    def has(self, question: Question, orders: Sequence[Order]) -> bool:
        """Whether a question was recorded in all of some orders."""
        return set(orders) <= self._probs.get(question.id, {}).keys()

    def recorded(self, question: Question) -> bool:
        """Whether a question was recorded in any order."""
        return question.id in self._probs

    def orders(self, question: Question) -> list[Order]:
        """The recorded orders of a question's order set, otherwise all that were recorded; InputError without any.

        The published and the reversed order are also asked where the set does not have them: in the vote, they would
        make it depend on the order of the file.
        """
        if question.id not in self._probs:
            raise InputError(f"question {question.id!r}: no orders were recorded")
        orders = list(self._probs[question.id])
        return [order for order in orders if (question.id, order) in self._in_set] or orders

    @property
    def cost(self) -> Cost:
        return self._cost

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`; InputError if a presentation was not recorded."""
        keys = [(presentation.question_id, presentation.contents) for presentation in presentations]
        for name, contents in keys:
            if contents not in self._probs.get(name, ()):
                raise InputError(
                    f"question {name!r}: options in order {contents} were not recorded; record more orders (unslant "
                    "audit --orders ... --responses FILE), or use a live model"
                )
        self._charged.update(keys)  # as with a model that remembers: scores of the fit are free in the answers
        self._cost.prompts = len(self._charged)
        return [self._probs[name][contents] for name, contents in keys]


def by_content(presentation: Presentation, probs: Floats, n: int) -> Floats:
    """(n,) probability of each of the question's options; options added to the presentation are left out."""
    contents = np.asarray(presentation.contents)
    by_option = np.zeros(n)
    by_option[contents[contents >= 0]] = np.asarray(probs)[contents >= 0]
    return by_option


def ask_orders(asker: Asker, questions: Sequence[Question], orders: Sequence[Sequence[Order]]) -> list[Floats]:
    """For each question, (K, n) probabilities of its options under each of its K orders; all in one call."""
    pairs = zip(questions, orders, strict=True)
    presentations = [[present(question, order, asker.alphabet) for order in of_one] for question, of_one in pairs]
    answers = iter(asker.ask(list(chain.from_iterable(presentations))))
    return [
        np.stack([by_content(presentation, next(answers), len(question.options)) for presentation in of_one])
        for question, of_one in zip(questions, presentations, strict=True)
    ]
