"""Prompt polishing: a model rewrites the instruction, and what it writes must still be one."""

from __future__ import annotations

import re

POLISH_REQUEST = (
    "Rewrite the following instruction for a language model so that it is clearer and reads better. "
    "Keep its meaning. Reply with the rewritten instruction only.\n\n"
)
"""What the polishing model is asked; the vanilla instruction follows."""
SHORTEST = 1 / 4
"""Share of the words of the original that a rewritten instruction has at least."""
_ANSWERS = ("none", "true", "false", "unknown")


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
