"""Prompts (a text or chat messages, and the continuations to score after it) and elicitations, which turn a
presentation into prompts, and scored prompts into one log-probability per label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from unslant.arrays import Floats, grouped
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, Presentation
from unslant.prompts.templates import PromptTemplate, load_template, template_names, usual_template

__all__ = [
    "Cloze", "Counterfactual", "Decision", "Elicitation", "Message", "Prompt", "PromptTemplate", "Writer",
    "load_template", "template_names", "usual_template",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


FOLDED = "The chat template takes no system message: an instruction begins the user's first message."


def folded(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same turns without a system message: its text begins the user's first one, as Gemma 3's template writes it.

    lm-evaluation-harness leaves the system message out there; then the model would not be asked what others are.
    """
    if len(messages) < 2 or messages[0].role != "system":
        return tuple(messages)
    return Message("user", f"{messages[0].content}\n\n{messages[1].content}"), *messages[2:]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Score ``continuations`` after ``text``.

    With ``messages``, these are written with the model's chat template and the assistant's turn is opened; ``text``
    (usually empty) is then the beginning of the assistant's reply.

    With ``state``, the server words the prompt: ``text`` is the question, ``continuations`` are the options from top to
    bottom, and ``state`` is the passage that the question is about.

    Attributes:
        to_end: score each continuation together with its end: the end of the assistant's turn in a chat, else a line
            end.
        group: question whose prompts are expected to share a beginning; used for cost accounting and errors only.
    """

    text: str
    continuations: tuple[str, ...]
    messages: tuple[Message, ...] = ()
    group: str = ""
    to_end: bool = False
    state: str | None = None

    def as_text(self) -> str:
        """The prompt for a person to read: each message under its role, then the text."""
        if self.state is not None:
            return "\n".join([f"[state]\n{self.state}\n\n[question]\n{self.text}\n\n[options]", *self.continuations])
        turns = [f"[{message.role}]\n{message.content}" for message in self.messages]
        return "\n\n".join([*turns, *([self.text] if self.text else [])])


def by_question(prompts: Sequence[Prompt], members: Iterable[int]) -> list[list[int]]:
    """Positions of the prompts of each group; a prompt without a group is one of its own."""
    return list(grouped((prompts[i].group or i, i) for i in members).values())


class Elicitation(Protocol):
    """A way to get a log-probability for every label of a presentation."""

    @property
    def name(self) -> str: ...

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        """The prompts to score, in the order :meth:`read` expects."""
        ...

    def read(self, presentation: Presentation, scores: Sequence[Floats]) -> Floats:
        """Natural-log probability of each of ``presentation.labels`` from the scores of :meth:`prompts`, by default of
        one prompt with all of them."""
        return np.asarray(scores[0], dtype=np.float64)


@dataclass(frozen=True)
class Writer:
    """Writes presentations with one template, as plain text or as a chat; worked examples always as cloze.

    Attributes:
        to_end: score labels together with their end (cloze). Without it, a label whose tokens begin those of another
            can never be less probable than that one, and such label sets are refused.
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
            parts += [stem + answer for stem, answer in examples]
            text = self.template.shot_separator.join([*parts, question + cue])
            return Prompt(text, continuations, group=presentation.question_id)
        messages = [Message("system", instruction)] if instruction else []
        for stem, answer in examples:
            messages += [Message("user", stem), Message("assistant", answer.strip())]
        if opens_reply:
            messages.append(Message("user", question.rstrip()))
            return Prompt(cue.lstrip(), continuations, tuple(messages), group=presentation.question_id)
        messages.append(Message("user", question + cue))
        # The space before a label separates it from the cue; at the beginning of an assistant's turn there is none.
        bare = tuple(continuation.lstrip() for continuation in continuations)
        return Prompt("", bare, tuple(messages), group=presentation.question_id)


@lru_cache(maxsize=4096)
def _example(template: PromptTemplate, shot: Presentation) -> tuple[str, str]:
    """A worked example: the question up to its answer, and the answer."""
    right = shot.right_labels[0] if shot.right_labels else shot.open_answer
    if not right:
        raise InputError(f"question {shot.question_id!r} cannot be a worked example: no shown option is right")
    answer = template.render("cloze.continuation", label=right) + template.cloze.close
    return template.render_question(shot) + template.render("cloze.cue"), answer


@lru_cache(maxsize=4096)
def _cloze(template: PromptTemplate, labels: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The cue, and what is scored after it for each label."""
    return template.render("cloze.cue"), tuple(template.render("cloze.continuation", label=label) for label in labels)


@dataclass(frozen=True)
class Cloze(Elicitation):
    """Score the labels in the place of the answer (P5, table 2, "cloze"); one prompt per presentation."""

    writer: Writer
    name: str = "cloze"

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        prompt = self.writer.prompt(presentation, *_cloze(self.writer.template, presentation.labels))
        return [replace(prompt, to_end=True) if self.writer.to_end else prompt]


@dataclass(frozen=True)
class Counterfactual:
    """Put the label into the context, and score one canary text after it (P5, table 2, "CF").

    All labels are scored by the same canary, so none gains from its own frequency. In a chat, the assistant names the
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
        cues = [template.render("counterfactual.cue", label=label) for label in presentation.labels]
        return [self.writer.prompt(presentation, cue, (canary,), opens_reply=True) for cue in cues]

    def read(self, presentation: Presentation, scores: Sequence[Floats]) -> Floats:
        return np.asarray([score[0] for score in scores], dtype=np.float64)


# Decision endpoints: servers that word the question, label its options and answer by option

STATE = "Answer the question."
"""The state sent for a question without a passage, because the formats require a text."""
_UNSHOWN = ("instruction", "hint", "distractor", "none_label")


@dataclass(frozen=True)
class Decision(Elicitation):
    """Send the question, its passage and its options in order; the server adds their labels and all other words."""

    name: str = "decision"

    @classmethod
    def of(cls, writer: Writer) -> Decision:
        """The elicitation that replaces ``writer``; InputError if ``writer`` words prompts in any but the default way,
        which no server would show."""
        settings = {"--template": writer.template.name != "plain", "--chat": writer.chat, "--to-end": writer.to_end}
        if useless := [flag for flag, differs in settings.items() if differs]:
            raise InputError(
                f"a decision endpoint words the prompt itself: leave out {' and '.join(useless)}, which has no effect "
                "here"
            )
        return cls()

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        """One request; InputError if the presentation has anything that the request cannot show."""
        place = f"question {presentation.question_id!r}"
        if presentation.shots:
            raise InputError("a decision endpoint takes no worked examples: leave out --shots")
        n = len(presentation.shown)
        if tuple(option.label for option in presentation.shown) != ALPHABETS["A"][:n]:
            raise InputError(f"{place}: a decision endpoint labels the options itself: leave out --labels")
        if unshown := [name for name in _UNSHOWN if getattr(presentation, name)]:
            raise InputError(f"{place}: a decision endpoint cannot show its {unshown[0].replace('_', ' ')}")
        options = tuple(option.text for option in presentation.shown)
        state = presentation.context or STATE
        return [Prompt(presentation.stem, options, group=presentation.question_id, state=state)]
