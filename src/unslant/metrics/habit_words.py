"""A habit in words: ``takes A when unsure``, ``avoids D when unsure``, ``takes the last position when unsure``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unslant.metrics.habits import Meaning, Slot
from unslant.metrics.slot_tables import ordinal


def slot_name(slot: Slot, labels: Sequence[str], sizes: Iterable[int]) -> str:
    """A label as it is written, or a place: ``A``, ``the last label``, ``the second position``.

    Args:
        labels: the standard sequence.
        sizes: numbers of options there are.
    """
    if slot.kind == "label":
        if slot.origin == "start":
            return labels[slot.place]
        evens = {n for n in sizes if n % 2 == 0}
        if slot.origin == "middle" and len(set(sizes)) == len(evens) == 1:
            n = evens.pop()
            return f"{labels[n // 2 - 1]} or {labels[n // 2]}"
        return "the last label" if slot.origin == "end" else "the middle label"
    if slot.origin == "middle":
        return "the middle position" if all(n % 2 for n in sizes) else "a middle position"
    if slot.origin == "end":
        return "the last position" if slot.place == 0 else "the second to last position"
    return f"the {ordinal(slot.place)} position"


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
        if said and own == verb:
            words.append(f"{rest} {where}")
        else:
            words.append(f"{said or nothing} {where}")
        verb = own or verb
    return ", ".join(words)


def names_of(meaning: Meaning, labels: Sequence[str], sizes: Iterable[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the slots taken, and of those avoided, in standard sequence."""
    most = max(sizes)
    ranked = sorted(meaning, key=lambda item: (item[0].kind, int(item[0].among(most).argmax())))
    found: Mapping[bool, list[str]] = {True: [], False: []}
    for slot, taken in ranked:
        found[taken].append(slot_name(slot, labels, list(sizes)))
    return tuple(found[True]), tuple(found[False])
