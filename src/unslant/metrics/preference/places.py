"""The places a habit can be about, and habits in words: ``falls back on A``, ``avoids the last position``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from unslant.arrays import Floats

Kind = Literal["label", "position"]
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
UNKNOWN = "cannot be distinguished"
_VERBS = ("falls back ", "avoids ")


@dataclass(frozen=True, order=True)
class Place:
    """A position and the label that usually stands there.

    Attributes:
        origin: whether ``rank`` counts from the first or the last; ``middle`` is the middle one, or the middle two.
        rank: 0 = the first of all.
    """

    origin: Literal["start", "end", "middle"] = "start"
    rank: int = 0

    def among(self, n: int) -> Floats:
        """(n,) 1 where this is, of n places; zeros where there is no such one."""
        at = np.arange(n)
        if self.origin == "middle":
            return np.asarray((at == (n - 1) // 2) | (at == n // 2), np.float64)
        return np.asarray(at == (self.rank if self.origin == "start" else n - 1 - self.rank), np.float64)

    def name(self, kind: Kind, labels: Sequence[str], sizes: Iterable[int]) -> str:
        """A label as it is written, or a position: ``A``, ``the last label``, ``the second position``.

        Args:
            labels: the standard sequence.
            sizes: numbers of options there are.
        """
        sizes = set(sizes)
        if kind == "label" and (self.origin == "start" or len(sizes) == 1):
            return " or ".join(labels[i] for i in np.flatnonzero(self.among(max(sizes))).tolist())
        if self.origin == "middle":
            return f"{'the' if kind == 'label' or all(n % 2 for n in sizes) else 'a'} middle {kind}"
        if self.origin == "end":
            return f"the {'second to last' if self.rank else 'last'} {kind}"
        return f"the {ordinal(self.rank)} {kind}"


def ordinal(place: int) -> str:
    """``first`` for 0."""
    return ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th"


def places_of(sizes: Sequence[int]) -> list[Place]:
    """Every place that questions of these numbers of options can have, each once, by its best name."""
    known: dict[tuple[float, ...], Place] = {}
    for place in (
        Place(),
        Place("end"),
        Place("middle"),
        *(Place("start", r) for r in range(1, max(sizes))),
        Place("end", 1),
    ):
        pulls = np.concatenate([place.among(n) - place.among(n).mean() for n in sizes])
        if pulls.any():
            known.setdefault(tuple(pulls), place)
    return list(known.values())


class Named(NamedTuple):
    """One place of a habit: its label or its position (``None``: cannot be known), taken or avoided."""

    place: Place
    kind: Kind | None
    taken: bool


Meaning = tuple[Named, ...]


def names(meaning: Meaning, labels: Sequence[str], sizes: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of what is taken, and of what is avoided, from the first to the last; a label where the kind is unknown."""
    ranked = sorted(meaning, key=lambda one: (one.kind == "position", int(one.place.among(max(sizes)).argmax())))
    taken, avoided = (
        tuple(one.place.name(one.kind or "label", labels, sizes) for one in ranked if one.taken == way)
        for way in (True, False)
    )
    return taken, avoided


def positions_instead(meaning: Meaning, labels: Sequence[str], sizes: Sequence[int]) -> str:
    """The positions that the labels named may be: ``the first or last position``; empty if every kind is known."""
    unknown = sorted(
        (int(one.place.among(max(sizes)).argmax()), one.place.name("position", labels, sizes))
        for one in meaning
        if one.kind is None
    )
    return listed([name for _, name in unknown], "or") if unknown else ""


def listed(items: Sequence[str], word: str) -> str:
    """``A``, ``A or C``, ``A, B or C``; of positions alone: ``the first or last position``."""
    ending = " position"
    if len(items) > 1 and all(item.startswith("the ") and item.endswith(ending) for item in items):
        ranks = [item.removeprefix("the ").removesuffix(ending) for item in items]
        return f"the {listed(ranks, word)}{ending}{'s' if word == 'and' else ''}"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"


def in_words(taken: Sequence[str], avoided: Sequence[str], slight: bool = False) -> str:
    """What is taken and what is avoided, without the ``when unsure``; empty for neither."""
    toward, away = (listed(items, "or") if items else "" for items in (taken, avoided))
    if slight:
        parts = [f"towards {toward}"] * bool(taken) + [f"away from {away}"] * bool(avoided)
        return f"leans slightly {', '.join(parts)}"
    if taken:
        return f"falls back on {toward}" + (f", away from {away}" if avoided else "")
    return f"avoids {listed(avoided, 'and')}" if avoided else ""


def when_unsure(words: str) -> str:
    """``falls back on A when unsure``; ``falls back on A, away from B, when unsure``."""
    return f"{words}{',' * (', away from' in words)} when unsure"


def by_part(parts: Sequence[tuple[str, str]]) -> str:
    """What is said of one part and another: ``falls back on A with 4 options, on the last position with 5``.

    Args:
        parts: (what is said, empty for no preference; of which part).
    """
    sentence, before = [], ""
    for words, where in parts:
        verb = next((verb for verb in _VERBS if words.startswith(verb)), "")
        said = words.removeprefix(verb) if verb == before else words
        sentence.append(f"{said or 'shows no preference'} {where}")
        before = verb
    return ", ".join(sentence)
