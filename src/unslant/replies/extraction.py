"""Read the answer to a presentation out of a reply in words, and the confidence that the reply states."""

from __future__ import annotations

import re

from unslant.presentations.presentation import NONE, Presentation
from unslant.replies.choice import extract_labels
from unslant.replies.reading import VERDICTS, Extracted
from unslant.replies.verdict import extract_verdict

_NUMBER = r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|percent\b|(?:/|out of)\s*(?:100|10)\b)?"
_STATED = (
    re.compile(rf"\b(?:confidence|certainty)\b(?:\s*\([^()\n]*\))?[^\d\n]{{0,30}}?{_NUMBER}", re.IGNORECASE),
    re.compile(rf"{_NUMBER}\s*(?:confident|certain|sure|confidence|certainty)\b", re.IGNORECASE),
)


def extract(reply: str, presentation: Presentation) -> Extracted:
    """The answer to ``presentation``; a verdict where its labels are True, False and Unknown."""
    if presentation.labels == VERDICTS:
        return extract_verdict(reply)
    return extract_labels(reply, presentation.labels, [option.text for option in presentation.shown])


def chosen_contents(extracted: Extracted, presentation: Presentation) -> frozenset[int] | None:
    """Content codes answered: ``{NONE}`` for "no option is right"; None if there is no answer."""
    if extracted.status != "ok":
        return None
    return frozenset(presentation.content_of(label) for label in extracted.labels) or frozenset({NONE})


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
