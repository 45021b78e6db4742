"""What a task's templates do with the options of a document, found by rendering it with other texts in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Request = tuple[str, str]
"""Context and continuation."""

LABELS, TEXTS, CLOZE = "labels", "texts", "cloze"
"""What a task scores: labels of options in the prompt, their texts, or texts that the prompt does not show."""
_MARKER = re.compile("qzoption([a-z])qz", re.IGNORECASE)


def markers(n: int) -> list[str]:
    """``n`` texts that occur in no document."""
    return [f"qzoption{chr(ord('a') + i)}qz" for i in range(n)]


def _number(letter: str) -> int:
    """Which marker has that letter; templates may change its case."""
    return ord(letter.lower()) - ord("a")


@dataclass(frozen=True)
class Found:
    """What the requests do with a field.

    Attributes:
        kind: :data:`LABELS`, :data:`TEXTS` or :data:`CLOZE`; empty where the field does not hold the options.
        why_not: the reason then, in words.
        places: which of the field's options each continuation represents.
    """

    kind: str
    why_not: str = ""
    places: tuple[int, ...] = ()


def examine(requests: Sequence[Request], m: int) -> Found:
    """What a task makes of a document whose first ``m`` options are :func:`markers`.

    Args:
        requests: one for each continuation.
    """
    contexts = [context for context, _ in requests]
    in_context = {_number(letter) for letter in _MARKER.findall(contexts[0])}
    scored = [[_number(letter) for letter in _MARKER.findall(text)] for _, text in requests]
    if len(set(contexts)) > 1:
        own = [{_number(letter) for letter in _MARKER.findall(context)} for context in contexts]
        each = m == len(own) and own == [{i} for i in range(m)]
        return Found(CLOZE) if each else Found("", "in a context of each option, but not of its own")
    if any(scored):
        if scored[:m] != [[i] for i in range(m)] or any(scored[m:]):
            return Found("", "in other continuations than their own")
        shown = in_context == set(range(m))
        partly = in_context and not shown
        return Found("", "only some of them in the prompt") if partly else Found(TEXTS if shown else CLOZE)
    if not in_context:
        return Found("", "in no prompt")
    if in_context != set(range(m)):
        return Found("", "only some of them in the prompt")
    places = _labelled(contexts[0], [text.strip() for _, text in requests], m)
    return (
        Found(LABELS, "", places) if places else Found("", "in the prompt, but not behind the labels that are scored")
    )


def _labelled(context: str, labels: Sequence[str], m: int) -> tuple[int, ...]:
    """For each label the marker behind it, on its line; empty unless every marker follows one of its own."""
    bare = [label.strip("()[]{}<>.:*\"' ") for label in labels]
    if "" in bare or len(set(bare)) < len(bare):
        return ()
    last: dict[int, int] = {}
    before = 0
    for match in _MARKER.finditer(context):
        lead = context[max(before, context.rfind("\n", 0, match.start()) + 1) : match.start()]
        before = match.end()
        label = next((i for i, b in enumerate(bare) if re.search(rf"(?<!\w){re.escape(b)}\W*$", lead)), None)
        if label is not None:
            last.setdefault(label, _number(match[1]))
    places = tuple(last[i] for i in range(len(bare)) if i in last)
    # labels without an option are those behind the last one
    return places if sorted(places) == list(range(m)) and sorted(last) == list(range(m)) else ()


@dataclass(frozen=True)
class Frame:
    """Texts with places for options, so that other orders need no rendering.

    Attributes:
        pieces: for each text its parts: words between the options, and the number of the option at each place.
    """

    pieces: tuple[tuple[str | int, ...], ...]

    @classmethod
    def of(cls, marked: Sequence[str]) -> Frame:
        """From texts that hold :func:`markers`."""
        return cls(
            tuple(
                tuple(part if i % 2 == 0 else _number(part) for i, part in enumerate(_MARKER.split(text)))
                for text in marked
            )
        )

    def filled(self, texts: Sequence[str]) -> list[str]:
        """The texts with these options."""
        return ["".join(texts[part] if isinstance(part, int) else part for part in parts) for parts in self.pieces]


def flat(requests: Sequence[Request]) -> list[str]:
    """Contexts and continuations in turn."""
    return [text for request in requests for text in request]


def unflat(texts: Sequence[str]) -> list[Request]:
    """The inverse of :func:`flat`."""
    return [(context, continuation) for i, (context, continuation) in enumerate(pairwise(texts)) if i % 2 == 0]
