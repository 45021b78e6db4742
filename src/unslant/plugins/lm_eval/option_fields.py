"""Where a document of a task keeps its option texts, and what the task writes of them into its requests."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unslant.presentations import ALPHABETS
from unslant.questions.records import parse_list

Path = tuple[Any, ...]
"""Keys and indices from the document inwards; the last may be a slice of a text. :data:`WRITTEN_LIST` leads into a list
that is written as a text."""
WRITTEN_LIST = "a list written as a text"
_LONGEST_LIST = 1 << 17
"""Most characters of a text that is read as a list."""
_COUNTERS = [[name.lower() for name in ALPHABETS[key]] for key in ("A", "1", "0")]
_LABELS = [ALPHABETS[key] for key in ("A", "a", "1")]
_WRITTEN = (r"\({}\)", r"(?<!\w){}\s?[.):]")
"""How labels are written before options within a text."""


@dataclass(frozen=True)
class OptionField:
    """Places of a document that hold its options.

    Attributes:
        name: the field or fields, for messages.
        paths: for each option the places of its text; several where fields repeat each other.
        values: the value at these places.
    """

    name: str
    paths: tuple[tuple[Path, ...], ...]
    values: tuple[Any, ...]

    def at(self, places: Sequence[int]) -> OptionField:
        """Some of the options, in this sequence; the others stay where they are."""
        return OptionField(self.name, tuple(self.paths[p] for p in places), tuple(self.values[p] for p in places))

    def filled(self, doc: Mapping[str, Any], values: Sequence[Any]) -> dict[str, Any]:
        """A copy of the document with other values in these places."""
        filled = copy.deepcopy(dict(doc))
        parts: dict[Path, list[tuple[slice, Any]]] = {}
        for paths, value in zip(self.paths, values, strict=True):
            for *outer, last in paths:
                if isinstance(last, slice):
                    parts.setdefault(tuple(outer), []).append((last, value))
                else:
                    filled = _with(filled, (*outer, last), value)
        for path, replacements in parts.items():
            text = _at(doc, path)
            for part, value in sorted(replacements, key=lambda one: -one[0].start):  # from the end: slices stay valid
                text = text[: part.start] + str(value) + text[part.stop :]
            filled = _with(filled, path, text)
        return filled


def candidates(doc: Mapping[str, Any], choices: Sequence[str]) -> list[OptionField]:
    """Every group of two or more texts of a document that may be its options, the most likely first.

    Fields with equal texts are one.

    Args:
        choices: the texts that the task scores.
    """
    n = len(choices)
    groups: dict[tuple[Any, ...], list[tuple[str, list[Path]]]] = {}
    for name, paths in _groups(doc, (), "", n):
        groups.setdefault(tuple(_at(doc, path) for path in paths), []).append((name, paths))
    fields = []
    for values, group in groups.items():
        names, paths_of_each = zip(*group, strict=True)
        fields.append(OptionField(" and ".join(dict.fromkeys(names)), tuple(zip(*paths_of_each, strict=True)), values))
    fields.sort(key=lambda one: (len(one.values) != n, len(one.values) < n))
    texts = {value.strip(): key for key, value in reversed([*doc.items()]) if isinstance(value, str)}
    keys = [texts.get(choice.strip(), "") for choice in choices]
    if all(keys) and len(set(keys)) == n > 1:
        places = tuple(((key,),) for key in keys)
        fields.append(OptionField(", ".join(map(str, keys)), places, tuple(doc[key] for key in keys)))
    return fields


def _at(doc: Any, path: Sequence[Any]) -> Any:
    for key in path:
        doc = _list_in(doc) if key is WRITTEN_LIST else doc[key]
    return doc


def _with(doc: Any, path: Sequence[Any], value: Any) -> Any:
    """The document with another value at a path; mappings and lists are changed in place."""
    if not path:
        return value
    key, *inner = path
    if key is not WRITTEN_LIST:
        doc[key] = _with(doc[key], inner, value)
        return doc
    items = _with(_list_in(doc), inner, value)
    try:
        json.loads(doc)
    except ValueError:
        return repr(items)
    return json.dumps(items, ensure_ascii=False)


def _list_in(text: str) -> list[Any] | None:
    """The list that a text spells, in Python or JSON; None if it is not a list."""
    return parse_list(text) if text.lstrip().startswith("[") and len(text) <= _LONGEST_LIST else None


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _groups(value: Any, path: Path, name: str, n: int) -> Iterator[tuple[str, list[Path]]]:
    """Names and places of lists of texts, texts in lists of records, fields with counters in their names, and parts."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _groups(inner, (*path, key), f"{name}.{key}".lstrip("."), n)
        yield from _counted(value, path, name)
    elif isinstance(value, list) and len(value) > 1:
        if all(map(_is_text, value)):
            yield name, [(*path, i) for i in range(len(value))]
            yield from _labelled_items(value, path, name)
        elif all(isinstance(item, Mapping) for item in value):
            for key in value[0]:
                if all(_is_text(item.get(key)) for item in value):
                    yield f"{name}.{key}", [(*path, i, key) for i in range(len(value))]
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for i in reversed(range(len(value))):  # where a passage has several problems, the last is asked
            yield from _groups(value[i], (*path, i), f"{name}[{i}]", n)
    if isinstance(value, str) and n > 1:
        if listed := _list_in(value):
            yield from _groups(listed, (*path, WRITTEN_LIST), name, n)
        for parts in _enumerated(value, n):
            yield f"{name} (a part of)", [(*path, part) for part in parts]


def _labelled_items(texts: Sequence[Any], path: Path, name: str) -> Iterator[tuple[str, list[Path]]]:
    """The items of a list behind the labels that they begin with: ``(A) ...``, ``(B) ...``."""
    for labels in _LABELS:
        for written in _WRITTEN:
            leads = [
                re.match(rf"\s*{written.format(re.escape(label))}\s*(?=\S)", str(text))
                for label, text in zip(labels, texts, strict=False)
            ]
            if len(leads) == len(texts) and all(leads):
                yield (
                    f"{name} (behind labels)",
                    [(*path, i, slice(lead.end(), len(texts[i].rstrip()))) for i, lead in enumerate(leads) if lead],
                )


def _enumerated(text: str, n: int) -> Iterator[list[slice]]:
    """The last ``n`` options that a text writes behind labels, for each way to write these."""
    for labels in _LABELS:
        if n >= len(labels):
            continue
        for written in _WRITTEN:
            patterns = [re.compile(written.format(re.escape(label))) for label in labels[: n + 1]]
            for first in reversed(list(patterns[0].finditer(text))):
                chain = [first]
                for pattern in patterns[1:n]:
                    following = pattern.search(text, chain[-1].end())
                    if following is None:
                        break
                    chain.append(following)
                if len(chain) < n:
                    continue
                line_end = text.find("\n", chain[-1].end())
                ends = [*(match.start() for match in chain[1:]), line_end if line_end >= 0 else len(text)]
                parts = [_trimmed(text, match.end(), end) for match, end in zip(chain, ends, strict=True)]
                cells = [text[part] for part in parts]
                # The last line must end with its option, not with the cue for the answer or with one more option.
                longer = cells[-1].endswith(":") or patterns[n].search(text, chain[-1].end(), ends[-1])
                if all(cells) and not longer:
                    yield parts
                break


def _trimmed(text: str, start: int, end: int) -> slice:
    """The part without surrounding white space and separators at its end."""
    cell = text[start:end]
    return slice(start + len(cell) - len(cell.lstrip()), start + len(cell.rstrip(" \t\n,;|")))


def _counted(fields: Mapping[str, Any], path: Path, name: str) -> Iterator[tuple[str, list[Path]]]:
    """Fields whose names differ in a counting letter or number: A, B, C; opa, opb; option_1, option_2."""
    families: dict[tuple[str, str, int], dict[int, str]] = {}
    for key, value in fields.items():
        if not (isinstance(key, str) and _is_text(value)):
            continue
        for match in re.finditer(r"\d+|[A-Za-z]", key):
            for c, counter in enumerate(_COUNTERS):
                if match[0].lower() in counter:
                    shape = (key[: match.start()], key[match.end() :], c)
                    families.setdefault(shape, {})[counter.index(match[0].lower())] = key
    for members in families.values():
        run = [members[i] for i in range(next((i for i in range(len(members) + 1) if i not in members), 0))]
        if len(run) > 1:
            yield f"{name}.{', '.join(run)}".lstrip("."), [(*path, key) for key in run]


Request = tuple[str, str]
"""Context and continuation."""

LABELS, TEXTS, CLOZE = "labels", "texts", "cloze"
"""The scored texts: labels of options in the prompt, their texts, or texts that the prompt does not show."""
_MARKER = re.compile(r"qzoption(\d+)qz", re.IGNORECASE)  # templates may change its case


def markers(n: int) -> list[str]:
    """``n`` texts that occur in no document."""
    return [f"qzoption{i}qz" for i in range(n)]


@dataclass(frozen=True)
class Role:
    """How the requests use a field.

    Attributes:
        kind: :data:`LABELS`, :data:`TEXTS` or :data:`CLOZE`; empty if the field does not hold the options.
        why_not: the reason in that case, in words.
        places: which of the field's options each continuation represents.
    """

    kind: str
    why_not: str = ""
    places: tuple[int, ...] = ()


def examine(requests: Sequence[Request], m: int) -> Role:
    """How a task uses a document whose first ``m`` options are :func:`markers`.

    Args:
        requests: one for each continuation.
    """
    contexts = [context for context, _ in requests]
    in_context = set(map(int, _MARKER.findall(contexts[0])))
    scored = [[*map(int, _MARKER.findall(text))] for _, text in requests]
    if len(set(contexts)) > 1:
        in_each = [set(map(int, _MARKER.findall(context))) for context in contexts]
        apart = in_each == [{i} for i in range(m)]
        return Role(CLOZE) if apart else Role("", "each option has its own context, but does not occur in it")
    if any(scored) and (scored[:m] != [[i] for i in range(m)] or any(scored[m:])):
        return Role("", "in other continuations than their own")
    if in_context and in_context != set(range(m)):
        return Role("", "only some of them in the prompt")
    if any(scored):
        return Role(TEXTS if in_context else CLOZE)
    if not in_context:
        return Role("", "in no prompt")
    places = _labelled(contexts[0], [text.strip() for _, text in requests], m)
    return Role(LABELS, "", places) if places else Role("", "in the prompt, but not behind the scored labels")


def _labelled(context: str, labels: Sequence[str], m: int) -> tuple[int, ...]:
    """For each label the marker behind it on its line; empty unless every marker follows its own label."""
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
            last.setdefault(label, int(match[1]))
    places = tuple(last[i] for i in sorted(last))
    # Only labels after the last option may be without one.
    return places if sorted(places) == sorted(last) == list(range(m)) else ()


@dataclass(frozen=True)
class Frame:
    """Requests with places for options, so that other orders need not be rendered.

    Attributes:
        pieces: for each context and continuation its parts: the words between options, and the number of the option at
            each place.
    """

    pieces: tuple[tuple[str | int, ...], ...]

    @classmethod
    def of(cls, requests: Sequence[Request]) -> Frame:
        """From requests that hold :func:`markers`."""
        texts = (_MARKER.split(text) for request in requests for text in request)
        return cls(tuple(tuple(int(part) if i % 2 else part for i, part in enumerate(parts)) for parts in texts))

    def filled(self, texts: Sequence[str]) -> list[Request]:
        """The requests with these options."""
        filled = ["".join(texts[part] if isinstance(part, int) else part for part in parts) for parts in self.pieces]
        return list(zip(filled[::2], filled[1::2], strict=True))
