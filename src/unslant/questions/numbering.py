"""Numbering inside option texts ("A) foo", "(1) bar", "0. baz")."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_PREFIX = re.compile(
    r"\s*(?:(?:option|choice)\s+)?(?:[(\[](?P<inside>[a-z]+|\d+)[)\]][.:]?|(?P<bare>[a-z]+|\d+)(?:\)|[.:](?=\s|$)))\s*",
    re.IGNORECASE,
)
_ROMAN = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split()
_SCHEMES: tuple[Callable[[int], str], ...] = (
    lambda i: str(i),
    lambda i: str(i + 1),
    lambda i: chr(ord("a") + i),
    lambda i: _ROMAN[i] if i < len(_ROMAN) else "",
)


def strip_numbering(options: Sequence[str]) -> tuple[str, ...]:
    """The option texts without their numbering, where every one of them is numbered in one running scheme.

    Schemes: 0, 1, 2 ... / 1, 2, 3 ... / A, B, C ... / I, II, III ..., in either case, as ``A.``, ``A)``, ``A:``,
    ``(A)`` or ``[A]``, alone or after "Option". Numbering given twice ("0. 0. foo") goes twice. Texts such as
    "1.5 hours" or "(ii) and (iv) only" are not numbering and stay.
    """
    texts = tuple(options)
    starts = [0] * len(texts)
    while (further := _past_numbering(texts, starts)) is not None:
        starts = further
    return tuple(text[start:] for text, start in zip(texts, starts, strict=True))


def _past_numbering(texts: tuple[str, ...], starts: Sequence[int]) -> list[int] | None:
    """Where the texts go on behind one numbering from ``starts`` on; None where they carry none."""
    found = [_PREFIX.match(text, start) for text, start in zip(texts, starts, strict=True)]
    matches = [match for match in found if match is not None]
    if len(matches) < len(texts) or len(texts) < 2:
        return None
    names = [(match["inside"] or match["bare"]).lower() for match in matches]
    if not any(names == [scheme(i) for i in range(len(names))] for scheme in _SCHEMES):
        return None
    ends = [match.end() for match in matches]
    return ends if any(end < len(text) for end, text in zip(ends, texts, strict=True)) else None
