"""Where methods get their scores from: a live model, or responses recorded before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError
from unslant.metrics.scores import Block, OrderScores, View
from unslant.models.base import Cost, ScoringModel
from unslant.presentations import ALPHABETS, Presentation, present
from unslant.prompts import Cloze, Elicitation, Prompt, Writer, load_template
from unslant.questions.question import Question

Watch = Callable[[str, int, int], None]
"""Called with the phase's name, the prompts done and the prompts in all."""


class Asker(Protocol):
    """Asks presentations and counts what that costs."""

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The label set questions are shown with."""
        ...

    @property
    def cost(self) -> Cost:
        """Running total; subtract a copy taken before."""
        ...

    @property
    def model(self) -> ScoringModel | None:
        """The live model, if there is one."""
        ...

    @property
    def elicitation(self) -> Elicitation | None:
        """How the live model is asked."""
        ...

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """(n,) probability of every label of each presentation, from top to bottom, over those labels only."""
        ...

    def forget(self) -> None:
        """Drop everything remembered: the model's weights are about to give other scores."""
        ...


class ModelAsker:
    """Asks a live model.

    Args:
        elicitation: cloze with the ``plain`` template unless given.
        remember: keep every score, so that no prompt is scored twice (until :meth:`forget`).
        watch: told of progress.
    """

    def __init__(
        self,
        model: ScoringModel,
        elicitation: Elicitation | None = None,
        alphabet: tuple[str, ...] = ALPHABETS["A"],
        *,
        remember: bool = True,
        watch: Watch | None = None,
    ) -> None:
        self.model: ScoringModel = model
        self.elicitation: Elicitation = elicitation or Cloze(Writer(load_template("plain")))
        self.alphabet = alphabet
        self._known: dict[Prompt, Floats] | None = {} if remember else None
        self._written: dict[tuple[Presentation, tuple[tuple[str, str], ...]], list[Prompt]] = {}
        self._watch = watch

    @property
    def cost(self) -> Cost:
        return self.model.cost

    def forget(self) -> None:
        if self._known is not None:
            self._known.clear()

    def _prompts(self, presentation: Presentation) -> list[Prompt]:
        """The prompts; one page is written once, whichever listing of its question it comes from."""
        if self._known is None:
            return self.elicitation.prompts(presentation)
        shown = tuple((option.label, option.text) for option in presentation.shown)
        key = (replace(presentation, shown=(), answers=frozenset(), name=""), shown)
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
        for done, scored in enumerate(self.model.score(new), start=1):
            known[new[scored.index]] = scored.logprobs
            if self._watch:
                self._watch("scoring", done, len(new))
        return [
            normalised(self.elicitation.read(presentation, [known[prompt] for prompt in prompts]))
            for presentation, prompts in zip(presentations, wanted, strict=True)
        ]


class RecordedAsker:
    """Answers from recorded scores; ``questions`` are stand-ins with the recorded ids, answers and pinned options.

    Their option texts are the ranks of the true ones, so that everything decided by text comes out as it would have.
    Costs count presentations (``prompts``) only.
    """

    model = None
    elicitation = None

    def __init__(self, scores: OrderScores) -> None:
        self.alphabet = scores.labels
        self.cost = Cost()
        self._known: dict[tuple[str, tuple[int, ...]], Floats] = {}
        for block in scores.blocks:
            self._add_block(block)
        for view in (scores.given, scores.reversed):
            self._add_view(scores, view)
        self.questions = tuple(
            Question(
                scores.ids[q],
                scores.ids[q],
                tuple(f"{rank:02d}" for rank in scores.text_ranks[q, :n]),
                frozenset(np.flatnonzero(scores.answers[q]).tolist()),
                subject=scores.subjects[q],
                pinned=tuple(np.flatnonzero(scores.pinned[q]).tolist()),
            )
            for q, n in enumerate(scores.n_options.tolist())
        )

    def _add_block(self, block: Block) -> None:
        by_position = block.by_position(block.probs)
        for q, name in enumerate(block.ids):
            for contents, probs in zip(block.contents[q].tolist(), by_position[q], strict=True):
                self._known[name, tuple(contents)] = probs

    def _add_view(self, scores: OrderScores, view: View) -> None:
        for q in np.flatnonzero(view.ok).tolist():
            n = int(scores.n_options[q])
            contents = np.argsort(view.positions[q, :n])
            self._known.setdefault((scores.ids[q], tuple(contents.tolist())), view.probs[q, contents])

    def has(self, question_id: str, order: Sequence[int]) -> bool:
        """Whether the answer to this order of this question was recorded."""
        return (question_id, tuple(order)) in self._known

    def forget(self) -> None:
        """Records do not change."""

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`.

        Raises:
            InputError: if a presentation was not recorded.
        """
        found = {}
        for presentation in presentations:
            key = (presentation.question_id, presentation.contents)
            if key not in self._known:
                raise InputError(
                    f"question {presentation.question_id!r}: options in order {presentation.contents} were not "
                    "recorded; record more orders (unslant audit --orders ... --responses FILE), or use a live model"
                )
            found[key] = self._known[key]
        self.cost.prompts += len(found)
        return [found[p.question_id, p.contents] for p in presentations]


def normalised(logprobs: Floats) -> Floats:
    """Softmax over the labels shown, never over the vocabulary."""
    weights = np.exp(logprobs - logprobs.max())
    probs: Floats = weights / weights.sum()
    return probs


def by_content(presentation: Presentation, probs: Floats, n: int) -> Floats:
    """(n,) probability of each of the question's own options; what other options hold is left out."""
    own = np.zeros(n)
    for content, p in zip(presentation.contents, probs, strict=True):
        if content >= 0:
            own[content] = p
    return own


def ask_orders(
    asker: Asker, questions: Sequence[Question], orders: Sequence[Sequence[Sequence[int]]]
) -> list[list[Floats]]:
    """For each question, (n,) probabilities of its options under each of its orders; all asked in one go."""
    shown = [
        [present(question, order, asker.alphabet) for order in own]
        for question, own in zip(questions, orders, strict=True)
    ]
    answers = iter(asker.ask([presentation for own in shown for presentation in own]))
    return [
        [by_content(presentation, next(answers), len(question.options)) for presentation in own]
        for question, own in zip(questions, shown, strict=True)
    ]
