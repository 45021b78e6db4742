"""A habit in words: ``takes A when unsure``, ``avoids D when unsure``, ``takes the last position when unsure``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from unslant.metrics.habits import Place
from unslant.metrics.label_or_position import Kind
from unslant.metrics.slot_tables import ordinal

Meaning = tuple[tuple[Place, Kind, bool], ...]
"""Places, each with whether its label or its position is meant, and whether it is taken (or avoided)."""


def place_name(place: Place, kind: Kind, labels: Sequence[str], sizes: Iterable[int]) -> str:
    """A label as it is written, or a position: ``A``, ``the last label``, ``the second position``.

    Args:
        labels: the standard sequence.
        sizes: numbers of options there are.
    """
    sizes = set(sizes)
    if kind == "label" and (place.origin == "start" or len(sizes) == 1):
        return " or ".join(labels[i] for i in np.flatnonzero(place.among(max(sizes))).tolist())
    if place.origin == "middle":
        single = kind == "label" or all(n % 2 for n in sizes)
        return f"{'the' if single else 'a'} middle {kind}"
    if place.origin == "end":
        return f"the {'second to last' if place.rank else 'last'} {kind}"
    return f"the {ordinal(place.rank)} {kind}"


def names_of(meaning: Meaning, labels: Sequence[str], sizes: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of what is taken, and of what is avoided, from the first to the last."""
    ranked = sorted(meaning, key=lambda item: (item[1], int(item[0].among(max(sizes)).argmax())))
    found: Mapping[bool, list[str]] = {True: [], False: []}
    for place, kind, taken in ranked:
        found[taken].append(place_name(place, kind, labels, sizes))
    return tuple(found[True]), tuple(found[False])


def listed(names: Sequence[str], word: str) -> str:
    """``A``, ``A or C``, ``A, B or C``; of positions alone: ``the first or last position``."""
    ending = " position"
    if len(names) > 1 and all(name.startswith("the ") and name.endswith(ending) for name in names):
        places = [name.removeprefix("the ").removesuffix(ending) for name in names]
        return f"the {listed(places, word)}{ending}{'s' if word == 'and' else ''}"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def tell(taken: Sequence[str], avoided: Sequence[str], slight: bool = False) -> str:
    """What is taken and what is avoided, without the ``when unsure``."""
    parts = []
    if taken:
        parts.append(f"takes {listed(taken, 'or')}" + " slightly more often" * slight)
    if avoided:
        verb = f"takes {listed(avoided, 'or')} slightly less often" if slight else f"avoids {listed(avoided, 'and')}"
        parts.append(verb)
    return " and ".join(parts)


def tell_where(parts: Sequence[tuple[str, str]], nothing: str = "nothing in particular") -> str:
    """What is said of one part and another: ``takes A with 4 options, the last position with 5``.

    Args:
        parts: (what is said, empty for nothing in particular; of which part).
    """
    words, verb = [], ""
    for said, where in parts:
        own, _, rest = said.partition(" ")
        words.append(f"{rest if said and own == verb else said or nothing} {where}")
        verb = own or verb
    return ", ".join(words)
