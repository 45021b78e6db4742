"""The private characters that stand for mentions of an option in a collapsed reply."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum, auto

# A character of Unicode's private plane says both which option is meant and how: a rule's character class then selects
# kinds of mention, and no reply can hold such a character by itself (:func:`unslant.replies.text.plain` removes them).
_FIRST, _STRIDE = 0xF0000, 0x1000


class Kind(IntEnum):
    """How an option is mentioned; the last two are what masks turn a mention into."""

    LABEL = 0  # by a label marked as one
    BARE = auto()  # by a letter or number that may be a label
    BOTH = auto()  # by its label and its text
    TEXT = auto()  # by its text
    WORD = auto()  # by its text, where that is a common word or a number
    AMBIGUOUS = auto()  # by what is one option's label and another's text
    CONFLICT = auto()  # by a label with another option's text
    WRONG = auto()  # called wrong
    MASKED = auto()  # not asserted


def characters(*kinds: int) -> str:
    """A regular expression for any one mention of these kinds."""
    ranges = (f"{chr(_FIRST + k * _STRIDE)}-{chr(_FIRST + (k + 1) * _STRIDE - 1)}" for k in kinds)
    return f"[{''.join(ranges)}]"


ONE = characters(*range(Kind.WRONG))
"""A mention that no mask has touched."""
LABELLED = characters(Kind.LABEL, Kind.BARE, Kind.BOTH, Kind.AMBIGUOUS, Kind.CONFLICT)
"""One of a label."""
ANY = characters(*Kind)
NOT_ANY = ANY[1:-1]
"""For use in a negated class: ``[^.\\n{NOT_ANY}]``."""


def mention(option: int, kind: int) -> str:
    """The character for a mention of an option."""
    return chr(_FIRST + kind * _STRIDE + option)


def kind_of(character: str) -> Kind:
    """How the option is mentioned."""
    return Kind((ord(character) - _FIRST) // _STRIDE)


def option_of(character: str) -> int:
    """Index of the option that a mention is of."""
    return (ord(character) - _FIRST) % _STRIDE


def options_of(characters: Iterable[str]) -> frozenset[int]:
    """The options that mentions are of."""
    return frozenset(map(option_of, characters))


def mentions(text: str, *kinds: int) -> list[str]:
    """The mentions in a collapsed text, of these kinds or (by default) of all that no mask has touched."""
    return re.findall(characters(*kinds) if kinds else ONE, text)
