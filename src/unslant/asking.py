"""Where questions, presentations and a model meet: present, ask, collect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from unslant.arrays import Floats, are_logprobs
from unslant.errors import InputError, ModelError
from unslant.metrics import OrderScores
from unslant.models import ChatModel, Cost, Reply, Scored, ScoringModel
from unslant.presentations import ALPHABETS, Asked, Order, Presentation, present
from unslant.prompts import Cloze, Elicitation, Prompt, Writer, load_template
from unslant.questions import Question
from unslant.responses import Response, Responses, chosen_contents, extract

__all__ = [
    "GENERATE", "Asked", "Asker", "ModelAsker", "Progress", "Reader", "RecordedAsker", "ask", "ask_for_replies",
    "ask_orders", "by_content", "generate_all", "no_progress", "read_labels", "reply_row", "score_all",
]  # fmt: skip

Progress = Callable[[str, int, int], None]
"""Progress callback: name of the phase, prompts done, prompts in all."""
Reader = Callable[[str, Question, Presentation], tuple[str, frozenset[int] | None]]
"""From a reply to its status and the content codes it chooses (None where it is no answer)."""
GENERATE = "generate"
"""Elicitation of rows that are generated replies."""


def no_progress(phase: str, done: int, total: int) -> None:
    """The no-op progress callback."""


def ask(
    model: ScoringModel,
    asked: Sequence[Asked],
    elicitations: Sequence[Elicitation],
    *,
    meta: Mapping[str, object] | None = None,
    progress: Progress = no_progress,
) -> Responses:
    """Score every presentation under every elicitation; equal prompts are scored once.

    Returns:
        One row per presentation and elicitation, elicitation by elicitation, presentations in the order given.
    """
    prompts: dict[Prompt, int] = {}
    wanted: list[tuple[Elicitation, Asked, list[int]]] = []
    for elicitation in elicitations:
        for question, presentation in asked:
            indices = [prompts.setdefault(prompt, len(prompts)) for prompt in elicitation.prompts(presentation)]
            wanted.append((elicitation, (question, presentation), indices))
    scored = _try_all(model, list(prompts), progress, "scoring")
    rows = (_scored_row(*asked, elicitation, [scored[i] for i in indices]) for elicitation, asked, indices in wanted)
    return Responses.from_rows(rows, meta)


def score_all(
    model: ScoringModel, prompts: Sequence[Prompt], *, progress: Progress = no_progress, phase: str = "scoring"
) -> list[Floats]:
    """Scores of all prompts, in their order.

    Raises:
        ModelError: if a prompt got none.
    """
    scored = _try_all(model, prompts, progress, phase)
    failed = [result for result in scored if result.logprobs is None]
    if failed:
        raise ModelError(
            f"{model.name}: {len(failed):,} of {len(prompts):,} prompts got no scores; the first, of question "
            f"{prompts[failed[0].index].group!r}: {failed[0].error}"
        )
    return [result.logprobs for result in scored if result.logprobs is not None]


def _try_all(model: ScoringModel, prompts: Sequence[Prompt], progress: Progress, phase: str) -> list[Scored]:
    """What came of every prompt, in their order; what is no log-probability is a failure."""
    scored = [Scored(i, None, "no score came") for i in range(len(prompts))]
    progress(phase, 0, len(prompts))
    for done, result in enumerate(model.score(prompts), start=1):
        if result.logprobs is not None and not are_logprobs(result.logprobs):
            result = Scored(result.index, None, f"not log-probabilities: {result.logprobs.tolist()}")
        scored[result.index] = result
        progress(phase, done, len(prompts))
    return scored


def _scored_row(
    question: Question, presentation: Presentation, elicitation: Elicitation, scored: Sequence[Scored]
) -> Response:
    """The row of one presentation: the log-probability of every label, or the status ``error``."""
    failed = [result.error for result in scored if result.logprobs is None]
    if failed:
        return Response.of(question, presentation, elicitation.name, status="error", raw=failed[0])
    logprobs = [result.logprobs for result in scored if result.logprobs is not None]
    return Response.scored(question, presentation, elicitation.name, elicitation.read(presentation, logprobs))


def ask_for_replies(
    model: ChatModel,
    asked: Sequence[Asked],
    writer: Writer,
    *,
    read: Reader | None = None,
    meta: Mapping[str, object] | None = None,
    progress: Progress = no_progress,
) -> Responses:
    """Get a reply to every presentation and read the answer in it; equal prompts are asked once.

    Args:
        read: how replies are read; by default :func:`read_labels`.

    Returns:
        One row per presentation, in their order, with the reply in full.
    """
    prompts: dict[Prompt, int] = {}
    indices = []
    for _, presentation in asked:
        prompt = writer.prompt(presentation, writer.template.render("cloze.cue"), ())
        indices.append(prompts.setdefault(prompt, len(prompts)))
    replies = generate_all(model, list(prompts), progress=progress)
    rows = (
        reply_row(question, presentation, replies[index], read)
        for (question, presentation), index in zip(asked, indices, strict=True)
    )
    return Responses.from_rows(rows, meta)


def generate_all(
    model: ChatModel, prompts: Sequence[Prompt], *, progress: Progress = no_progress, phase: str = "asking"
) -> list[Reply]:
    """Replies to all prompts, in their order."""
    replies = [Reply(i, None, "no reply came") for i in range(len(prompts))]
    progress(phase, 0, len(prompts))
    for done, reply in enumerate(model.generate(prompts), start=1):
        replies[reply.index] = reply
        progress(phase, done, len(prompts))
    return replies


def read_labels(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """The labels that a reply chooses, as contents."""
    extracted = extract(reply, presentation)
    return extracted.status, chosen_contents(extracted, presentation)


def reply_row(question: Question, presentation: Presentation, reply: Reply, read: Reader | None = None) -> Response:
    """The row of one reply: its status, and what it chooses if it is an answer."""
    if reply.text is None:
        return Response.of(question, presentation, GENERATE, status="error", raw=reply.error)
    status, chosen = (read or read_labels)(reply.text, question, presentation)
    return Response.of(question, presentation, GENERATE, status=status, chosen=chosen, raw=reply.text)


class Asker(ABC):
    """Asks presentations for the probabilities of their labels, and counts what that costs.

    Attributes:
        alphabet: the label set questions are shown with.
        model, elicitation: the live model, and how it is asked, if there is one.
    """

    alphabet: tuple[str, ...]
    model: ScoringModel | None = None
    elicitation: Elicitation | None = None
    spent: Cost

    @property
    def cost(self) -> Cost:
        """Running total, the model's own if there is one; subtract a copy taken before."""
        return self.spent if self.model is None else self.model.cost

    @abstractmethod
    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """(n,) probability of every label of each presentation, from top to bottom, over those labels only."""

    def forget(self) -> None:  # noqa: B027  # records do not change
        """Drop everything remembered: the model's weights are about to give other scores."""


class ModelAsker(Asker):
    """Asks a live model.

    Args:
        elicitation: cloze with the ``plain`` template unless given.
        remember: keep every score, so that no prompt is scored twice (until :meth:`forget`).
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
        self.elicitation: Elicitation = elicitation or Cloze(Writer(load_template("plain")))
        self.alphabet = alphabet
        self._known: dict[Prompt, Floats] | None = {} if remember else None
        self._written: dict[tuple[Presentation, tuple[tuple[str, str], ...]], list[Prompt]] = {}
        self._progress = progress

    def forget(self) -> None:
        if self._known is not None:
            self._known.clear()

    def _prompts(self, presentation: Presentation) -> list[Prompt]:
        """The prompts; one page is written once, whichever listing of its question it comes from."""
        if self._known is None:
            return self.elicitation.prompts(presentation)
        shown = tuple((option.label, option.text) for option in presentation.shown)
        key = (replace(presentation, shown=(), answers=frozenset(), kind="", run=0, item=""), shown)
        if key not in self._written:
            self._written[key] = self.elicitation.prompts(presentation)
        return self._written[key]

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`. Equal prompts are scored once.

        Raises:
            ModelError: if the model cannot take a prompt.
        """
        wanted = [self._prompts(presentation) for presentation in presentations]
        known = {} if self._known is None else self._known
        new = list(dict.fromkeys(prompt for prompts in wanted for prompt in prompts if prompt not in known))
        if new:
            known.update(zip(new, score_all(self.model, new, progress=self._progress), strict=True))
        return [
            softmax(self.elicitation.read(presentation, [known[prompt] for prompt in prompts]))
            for presentation, prompts in zip(presentations, wanted, strict=True)
        ]


class RecordedAsker(Asker):
    """Answers from recorded scores; costs count presentations (``prompts``) only."""

    def __init__(self, scores: OrderScores) -> None:
        self.alphabet = scores.labels
        self.spent = Cost()
        self._known: dict[tuple[str, tuple[int, ...]], Floats] = {}
        for block in scores.blocks:
            for name, contents, probs in zip(block.ids, block.contents, block.by_position(block.probs), strict=True):
                self._known |= {(name, tuple(c)): p for c, p in zip(contents.tolist(), probs, strict=True)}

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`.

        Raises:
            InputError: if a presentation was not recorded.
        """
        for presentation in presentations:
            if (presentation.question_id, presentation.contents) not in self._known:
                raise InputError(
                    f"question {presentation.question_id!r}: options in order {presentation.contents} were not "
                    "recorded; record more orders (unslant audit --orders ... --responses FILE), or use a live model"
                )
        keys = [(presentation.question_id, presentation.contents) for presentation in presentations]
        self.spent.prompts += len(set(keys))
        return [self._known[key] for key in keys]


def by_content(presentation: Presentation, probs: Floats, n: int) -> Floats:
    """(n,) probability of each of the question's own options; what other options hold is left out."""
    own = np.zeros(n)
    for content, p in zip(presentation.contents, probs, strict=True):
        if content >= 0:
            own[content] = p
    return own


def ask_orders(asker: Asker, questions: Sequence[Question], orders: Sequence[Sequence[Order]]) -> list[Floats]:
    """For each question, (K, n) probabilities of its options under each of its K orders; all asked in one go."""
    shown = [
        [present(question, order, asker.alphabet) for order in own]
        for question, own in zip(questions, orders, strict=True)
    ]
    answers = iter(asker.ask([presentation for own in shown for presentation in own]))
    return [
        np.stack([by_content(presentation, next(answers), len(question.options)) for presentation in own])
        for question, own in zip(questions, shown, strict=True)
    ]
