"""Where a document of a task keeps its option texts, found by rendering it with other texts in their place.

Tasks keep options in a list (``choices``), inside a dictionary (``choices.text``), in records, or in separate fields
(``opa`` to ``opd``, ``A`` to ``D``), and only their templates know which. So every place that could be it is filled
with texts that occur nowhere else, and the requests tell what the template does with them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from unslant.presentations import ALPHABETS

Path = tuple[str | int, ...]
Request = tuple[str, str]
"""Context and continuation."""

LABELS, TEXTS, CLOZE = "labels", "texts", "cloze"
"""What a task scores: labels of options in the prompt, their texts, or texts that the prompt does not show."""
_COUNTERS = [[name.lower() for name in ALPHABETS[key]] for key in ("A", "1", "0")]
_MARKER = re.compile("qzoption([a-z])qz", re.IGNORECASE)


def markers(n: int) -> list[str]:
    """``n`` texts that occur in no document."""
    return [f"qzoption{chr(ord('a') + i)}qz" for i in range(n)]


def _number(letter: str) -> int:
    """Which marker has that letter; templates may change its case."""
    return ord(letter.lower()) - ord("a")


@dataclass(frozen=True)
class OptionField:
    """Places of a document that hold its options.

    Attributes:
        name: the field, or fields, for people.
        paths: for each option the places of its text; several where fields repeat each other.
        values: what stands there.
    """

    name: str
    paths: tuple[tuple[Path, ...], ...]
    values: tuple[Any, ...]

    def first(self, n: int) -> OptionField:
        """The first ``n`` options; the others are left where they are."""
        return OptionField(self.name, self.paths[:n], self.values[:n])

    def sorted_by(self, places: Sequence[int]) -> OptionField:
        """The options in another sequence."""
        return OptionField(self.name, tuple(self.paths[p] for p in places), tuple(self.values[p] for p in places))

    def filled(self, doc: Mapping[str, Any], values: Sequence[Any]) -> dict[str, Any]:
        """A copy of the document with other values in these places."""
        made = copy.deepcopy(dict(doc))
        for paths, value in zip(self.paths, values, strict=True):
            for *outer, last in paths:
                holder: Any = made
                for key in outer:
                    holder = holder[key]
                holder[last] = value
        return made


def candidates(doc: Mapping[str, Any]) -> list[OptionField]:
    """Every group of two or more texts of a document that may be its options; fields with equal texts are one."""
    found: dict[tuple[Any, ...], list[tuple[str, list[Path]]]] = {}
    for name, paths in _groups(doc, (), ""):
        values = tuple(_at(doc, path) for path in paths)
        found.setdefault(values, []).append((name, paths))
    return [
        OptionField(
            " and ".join(dict.fromkeys(name for name, _ in same)),
            tuple(zip(*(paths for _, paths in same), strict=True)),
            values,
        )
        for values, same in found.items()
    ]


def _at(doc: Any, path: Path) -> Any:
    for key in path:
        doc = doc[key]
    return doc


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _groups(value: Any, path: Path, name: str) -> Iterator[tuple[str, list[Path]]]:
    """Names and places of lists of texts, of texts in lists of records, and of fields that are counted."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _groups(inner, (*path, key), f"{name}.{key}".lstrip("."))
        yield from _counted(value, path, name)
    elif isinstance(value, list) and len(value) > 1:
        if all(map(_is_text, value)):
            yield name, [(*path, i) for i in range(len(value))]
        elif all(isinstance(item, Mapping) for item in value):
            for key in value[0]:
                if all(_is_text(item.get(key)) for item in value):
                    yield f"{name}.{key}", [(*path, i, key) for i in range(len(value))]


def _counted(fields: Mapping[str, Any], path: Path, name: str) -> Iterator[tuple[str, list[Path]]]:
    """Fields whose names differ in a letter or number that counts: A, B, C; opa, opb; option_1, option_2."""
    known: dict[tuple[str, str, int], dict[int, str]] = {}
    for key, value in fields.items():
        if not (isinstance(key, str) and _is_text(value)):
            continue
        for match in re.finditer(r"\d+|[A-Za-z]", key):
            for c, counter in enumerate(_COUNTERS):
                if match[0].lower() in counter:
                    shape = (key[: match.start()], key[match.end() :], c)
                    known.setdefault(shape, {})[counter.index(match[0].lower())] = key
    for members in known.values():
        run = [members[i] for i in range(next((i for i in range(len(members) + 1) if i not in members), 0))]
        if len(run) > 1:
            yield f"{name}.{', '.join(run)}".lstrip("."), [(*path, key) for key in run]


@dataclass(frozen=True)
class Found:
    """What the requests do with a field.

    Attributes:
        kind: :data:`LABELS`, :data:`TEXTS` or :data:`CLOZE`; empty where the field does not hold the options.
        why_not: the reason then, in words.
        places: which of the field's options each continuation stands for.
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
    """For each label the marker behind it, on its line; empty unless every marker stands behind one of its own."""
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
