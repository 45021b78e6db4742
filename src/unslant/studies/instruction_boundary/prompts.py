"""Presentations as chats, for generated answers."""

from __future__ import annotations

from unslant.presentations import Presentation
from unslant.prompts import Message
from unslant.questions import JudgingQuestion


def chat(presentation: Presentation) -> tuple[Message, ...]:
    """The instruction as system message, worked examples as turns, then the question."""
    messages = [Message("system", presentation.instruction)] if presentation.instruction else []
    for shot in presentation.shots:
        messages.append(Message("user", body(shot)))
        messages.append(Message("assistant", right_answer(shot)))
    messages.append(Message("user", body(presentation)))
    return tuple(messages)


def body(presentation: Presentation) -> str:
    """Context, question or statement, options and hint; the same layout for every form."""
    lines = [presentation.context, ""] if presentation.context else []
    if is_judging(presentation):
        lines.append(f"Statement: {presentation.stem}")
    else:
        lines.append(f"Question: {presentation.stem}")
        lines += [f"{option.label}. {option.text}" for option in presentation.shown]
    if presentation.hint:
        lines.append(presentation.hint)
    return "\n".join(lines)


def is_judging(presentation: Presentation) -> bool:
    """Whether a statement is judged, rather than an option chosen."""
    return presentation.labels == JudgingQuestion.VERDICTS


def right_answer(presentation: Presentation) -> str:
    """The right answer in the requested format: ``A, C``, or ``none``."""
    return ", ".join(presentation.right_labels) or "none"
