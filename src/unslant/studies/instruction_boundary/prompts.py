"""Presentations as chats, for generated answers; and instructions that a model rewrites."""

from __future__ import annotations

import re

from unslant.presentations import Presentation
from unslant.prompts import Message
from unslant.questions import JudgingQuestion

POLISH_REQUEST = (
    "Rewrite the following instruction for a language model so that it is clearer and reads better. "
    "Keep its meaning. Reply with the rewritten instruction only.\n\n"
)
"""What the polishing model is asked; the vanilla instruction follows."""
SHORTEST = 1 / 4
"""Share of the words of the original that a rewritten instruction has at least."""
_ANSWERS = ("none", "true", "false", "unknown")


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


def is_instruction(text: str, original: str) -> bool:
    """Whether a rewritten instruction can take the place of the original.

    Models reply with an answer ("A", "none"), a refusal or nothing. An instruction has at least :data:`SHORTEST` of the
    words of the original, and names each answer in words that the original asks for (none; True, False, Unknown):
    without it another setting would be measured, that of missing choices.
    """
    words, own = _words(text), _words(original)
    return len(words) >= SHORTEST * len(own) and {*_ANSWERS} & {*own} <= {*words}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
