"""The private characters that stand for mentions of an option in a collapsed reply."""

from __future__ import annotations

_FIRST, _STRIDE = 0xF0000, 0x1000
LABEL, BARE, BOTH, TEXT, WORD, AMBIGUOUS, CONFLICT, WRONG, MASKED = range(9)
"""How an option is mentioned: by a label marked as one; by a letter or number that may be a label; by its label and its
text; by its text; by its text, where that is a common word or a number; by what is one option's label and another's
text; by a label with another option's text. And what masks turn a mention into: called wrong; not asserted."""


def characters(*kinds: int) -> str:
    """A regular expression for any one mention of these kinds."""
    ranges = (f"{chr(_FIRST + k * _STRIDE)}-{chr(_FIRST + (k + 1) * _STRIDE - 1)}" for k in kinds)
    return f"[{''.join(ranges)}]"


def mention(option: int, kind: int) -> str:
    """The character for a mention of an option."""
    return chr(_FIRST + kind * _STRIDE + option)


def option_of(character: str) -> int:
    """Index of the option that a mention is about."""
    return (ord(character) - _FIRST) % _STRIDE


def kind_of(character: str) -> int:
    """How it is mentioned."""
    return (ord(character) - _FIRST) // _STRIDE
