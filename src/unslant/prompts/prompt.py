"""What a model is given: a text or chat messages, and the continuations to score after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """Score ``continuations`` after ``text``.

    If ``messages`` are given, they are written with the model's chat template and the assistant's turn is opened;
    ``text`` (usually empty) is then the beginning of the assistant's reply.

    If ``state`` is given, the server words the prompt: ``text`` is the question, ``continuations`` are the options from
    top to bottom, and ``state`` is what the question is about.

    Attributes:
        to_end: score each continuation together with what ends it: the end of the assistant's turn in a chat, a line
            end elsewhere.
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
