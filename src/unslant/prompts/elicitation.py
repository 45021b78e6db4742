"""Elicitations: from a presentation to prompts, and from scored prompts back to one log-probability per label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError
from unslant.presentations import Presentation
from unslant.prompts.prompt import Message, Prompt
from unslant.prompts.templates import PromptTemplate


class Elicitation(Protocol):
    """A way to get a log-probability for every label of a presentation."""

    @property
    def name(self) -> str: ...

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        """The prompts to score, in the order :meth:`read` expects."""
        ...

    def read(self, presentation: Presentation, scores: Sequence[Floats]) -> Floats:
        """Natural-log probability of each of ``presentation.labels`` from the scores of :meth:`prompts`."""
        ...


@dataclass(frozen=True)
class Writer:
    """Writes presentations with one template, as plain text or as a chat; worked examples always as cloze.

    Attributes:
        to_end: the cloze scores labels together with what ends them. Without it, a label whose tokens begin those of
            another one can never be less probable than that, and such label sets are refused.
    """

    template: PromptTemplate
    chat: bool = False
    to_end: bool = False

    def prompt(
        self, presentation: Presentation, cue: str, continuations: tuple[str, ...], *, opens_reply: bool = False
    ) -> Prompt:
        """The whole prompt up to ``cue``, worked examples first.

        Args:
            opens_reply: in a chat, the cue begins the assistant's reply instead of ending the user's message.
        """
        instruction = self.template.render_instruction(presentation)
        question = self.template.render_question(presentation)
        examples = [_example(self.template, shot) for shot in presentation.shots]
        if not self.chat:
            parts = [instruction] if instruction else []
            parts += [asked + answer for asked, answer in examples]
            text = self.template.shot_separator.join([*parts, question + cue])
            return Prompt(text, continuations, group=presentation.question_id)
        messages = [Message("system", instruction)] if instruction else []
        for asked, answer in examples:
            messages += [Message("user", asked), Message("assistant", answer.strip())]
        if opens_reply:
            messages.append(Message("user", question.rstrip()))
            return Prompt(cue.lstrip(), continuations, tuple(messages), group=presentation.question_id)
        messages.append(Message("user", question + cue))
        bare = tuple(continuation.lstrip() for continuation in continuations)
        return Prompt("", bare, tuple(messages), group=presentation.question_id)


@lru_cache(maxsize=4096)
def _example(template: PromptTemplate, shot: Presentation) -> tuple[str, str]:
    """A worked example: the question up to its answer, and the answer."""
    if not shot.right_labels:
        raise InputError(f"question {shot.question_id!r} cannot be a worked example: no shown option is right")
    answer = template.render("cloze.continuation", label=shot.right_labels[0]) + template.cloze.close
    return template.render_question(shot) + template.render("cloze.cue"), answer


@lru_cache(maxsize=4096)
def _continuations(template: PromptTemplate, labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(template.render("cloze.continuation", label=label) for label in labels)


@lru_cache(maxsize=64)
def _cue(template: PromptTemplate) -> str:
    return template.render("cloze.cue")


@dataclass(frozen=True)
class Cloze:
    """The labels are scored where the answer would stand (P5, table 2, "cloze"); one prompt per presentation."""

    writer: Writer
    name: str = "cloze"

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        template = self.writer.template
        continuations = _continuations(template, presentation.labels)
        prompt = self.writer.prompt(presentation, _cue(template), continuations)
        return [replace(prompt, to_end=True) if self.writer.to_end else prompt]

    def read(self, presentation: Presentation, scores: Sequence[Floats]) -> Floats:
        return np.asarray(scores[0], dtype=np.float64)


@dataclass(frozen=True)
class Counterfactual:
    """The label is part of the context, and one canary text is scored after it (P5, table 2, "CF").

    All labels are judged by the same canary, so none gains from its own frequency. In a chat, the assistant names the
    label.

    Args:
        canary: one or more words.

    Raises:
        InputError: if the canary is empty.
    """

    writer: Writer
    canary: str = "best"
    name: str = "counterfactual"

    def __post_init__(self) -> None:
        if not self.canary.strip():
            raise InputError('the canary is empty: give a word to be scored after every label, such as "best"')

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        template = self.writer.template
        canary = template.render("counterfactual.continuation", canary=self.canary)
        return [
            self.writer.prompt(
                presentation, template.render("counterfactual.cue", label=label), (canary,), opens_reply=True
            )
            for label in presentation.labels
        ]

    def read(self, presentation: Presentation, scores: Sequence[Floats]) -> Floats:
        return np.asarray([score[0] for score in scores], dtype=np.float64)
