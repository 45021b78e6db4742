"""The confidence that a reply states: "Confidence: 80%", "I am 80% sure", "confidence: 8/10"."""

from __future__ import annotations

import re

_NUMBER = r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|percent\b|(?:/|out of)\s*(?:100|10)\b)?"
_STATED = (
    re.compile(rf"\b(?:confidence|certainty)\b(?:\s*\([^()\n]*\))?[^\d\n]{{0,30}}?{_NUMBER}", re.IGNORECASE),
    re.compile(rf"{_NUMBER}\s*(?:confident|certain|sure|confidence|certainty)\b", re.IGNORECASE),
)


def stated_confidence(reply: str) -> float | None:
    """The confidence stated last in a reply, 0 to 1; None if it states none, or a number that is no share.

    A number without a unit is a share up to 1, and a percentage beyond.
    """
    found = [match for pattern in _STATED for match in pattern.finditer(reply)]
    if not found:
        return None
    last = max(found, key=lambda match: match.start("number"))
    number, unit = float(last["number"]), (last["unit"] or "").lower()
    if unit:
        number /= 10 if unit.endswith("10") else 100
    elif number > 1:
        number /= 100
    return number if 0 <= number <= 1 else None
