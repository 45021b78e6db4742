"""Elicitations: from a presentation to prompts, and from scored prompts back to one log-probability per label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unslant.errors import InputError
from unslant.presentations.presentation import Presentation
from unslant.prompts.prompt import Message, Prompt
from unslant.prompts.templates import PromptTemplate


class Elicitation(Protocol):
    """A way to get a log-probability for every label of a presentation."""

    @property
    def name(self) -> str: ...

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        """The prompts to be scored, in an order that :meth:`read` understands."""
        ...

    def read(self, presentation: Presentation, scores: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Natural-log probability of each of ``presentation.labels`` from the scores of :meth:`prompts`."""
        ...


@dataclass(frozen=True)
class Writer:
    """Writes presentations with one template, as plain text or as a chat."""

    template: PromptTemplate
    chat: bool = False

    def prompt(self, presentation: Presentation, cue: str, continuations: tuple[str, ...]) -> Prompt:
        """The whole prompt that leads up to ``cue``, worked examples first."""
        instruction = self.template.render_instruction(presentation)
        if self.chat:
            messages = [Message("system", instruction)] if instruction else []
            for shot in presentation.shots:
                messages.append(Message("user", self._asked(shot)))
                messages.append(Message("assistant", self._solution(shot).strip()))
            messages.append(Message("user", self.template.render_question(presentation) + cue))
            return Prompt("", tuple(c.lstrip() for c in continuations), tuple(messages), group=presentation.question_id)
        parts = [instruction] if instruction else []
        parts += [self._asked(shot) + self._solution(shot) for shot in presentation.shots]
        parts.append(self.template.render_question(presentation) + cue)
        return Prompt(self.template.shot_separator.join(parts), continuations, group=presentation.question_id)

    def _asked(self, shot: Presentation) -> str:
        return self.template.render_question(shot) + self.template.render("cloze.cue")

    def _solution(self, shot: Presentation) -> str:
        if not shot.right_labels:
            raise InputError(f"question {shot.question_id!r} cannot be a worked example: no shown option is right")
        return self.template.render("cloze.continuation", label=shot.right_labels[0]) + self.template.cloze.close


@dataclass(frozen=True)
class Cloze:
    """The labels are scored where the answer would stand (P5, table 2, "cloze"); one prompt a presentation."""

    writer: Writer
    name: str = "cloze"

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        template = self.writer.template
        continuations = tuple(template.render("cloze.continuation", label=label) for label in presentation.labels)
        return [self.writer.prompt(presentation, template.render("cloze.cue"), continuations)]

    def read(self, presentation: Presentation, scores: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.asarray(scores[0], dtype=np.float64)


@dataclass(frozen=True)
class Counterfactual:
    """The label stands in the context and one canary text is scored after each (P5, table 2, "CF").

    Every label is judged by the same canary, so that no label has a head start from its own frequency.
    """

    writer: Writer
    canary: str = "best"
    name: str = "counterfactual"

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        template = self.writer.template
        canary = template.render("counterfactual.continuation", canary=self.canary)
        return [
            self.writer.prompt(presentation, template.render("counterfactual.cue", label=label), (canary,))
            for label in presentation.labels
        ]

    def read(self, presentation: Presentation, scores: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.asarray([score[0] for score in scores], dtype=np.float64)
