"""What a model is given: a text (or chat messages) and the continuations to be scored after it."""

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

    Every log-probability elicitation comes down to this. Where ``messages`` are given, the model writes them with its
    chat template, opens the assistant's turn, and ``text`` (usually empty) is what the assistant has already said.

    Attributes:
        to_end: score each continuation together with what ends it: the end of the assistant's turn in a chat, a line
            end elsewhere.
        group: prompts of one group (one question) are expected to share a beginning; used for cost accounting only.
    """

    text: str
    continuations: tuple[str, ...]
    messages: tuple[Message, ...] = ()
    group: str = ""
    to_end: bool = False

    def as_text(self) -> str:
        """The prompt for a person to read: each message under its role, then the text."""
        turns = [f"[{message.role}]\n{message.content}" for message in self.messages]
        return "\n\n".join([*turns, *([self.text] if self.text else [])])
