"""The private characters that stand for mentions of an option in a collapsed reply."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FIRST, _STRIDE = 0xF0000, 0x1000
LABEL, BARE, BOTH, TEXT, WORD, AMBIGUOUS, CONFLICT, WRONG, MASKED = range(9)
"""How an option is mentioned: by a label marked as one; by a letter or number that may be a label; by its label and its
text; by its text; by its text, where that is a common word or a number; by what is one option's label and another's
text; by a label with another option's text. And what masks turn a mention into: called wrong; not asserted."""


def characters(*kinds: int) -> str:
    """A regular expression for any one mention of these kinds."""
    ranges = (f"{chr(_FIRST + k * _STRIDE)}-{chr(_FIRST + (k + 1) * _STRIDE - 1)}" for k in kinds)
    return f"[{''.join(ranges)}]"


ONE = characters(LABEL, BARE, BOTH, TEXT, WORD, AMBIGUOUS, CONFLICT)
"""A mention that no mask has touched."""
LABELLED = characters(LABEL, BARE, BOTH, AMBIGUOUS, CONFLICT)
"""One of a label."""
ANY = characters(LABEL, BARE, BOTH, TEXT, WORD, AMBIGUOUS, CONFLICT, WRONG, MASKED)
NOT_ANY = ANY[1:-1]
"""For use in a negated class: ``[^.\\n{NOT_ANY}]``."""


def mention(option: int, kind: int) -> str:
    """The character for a mention of an option."""
    return chr(_FIRST + kind * _STRIDE + option)


def kind_of(character: str) -> int:
    """How the option is mentioned."""
    return (ord(character) - _FIRST) // _STRIDE


def options_of(characters: Iterable[str]) -> frozenset[int]:
    """The options that mentions are of."""
    return frozenset((ord(character) - _FIRST) % _STRIDE for character in characters)


def option_of(character: str) -> int:
    """Index of the option that a mention is of."""
    return (ord(character) - _FIRST) % _STRIDE


def mentions(text: str, *kinds: int) -> list[str]:
    """The mentions in a collapsed text, of these kinds or (by default) of all that no mask has touched."""
    return re.findall(characters(*kinds) if kinds else ONE, text)
