"""Where a document of a task may keep its option texts.

Tasks keep options in a list (``choices``), inside a dictionary (``choices.text``), in records, in separate fields
(``opa`` to ``opd``, ``A`` to ``D``), written behind labels within a text (``(A) ... (B) ...``), or as a list of Python
or JSON within a text (MuSR, RACE).
"""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unslant.presentations import ALPHABETS

Path = tuple[Any, ...]
"""Keys and indices from the document inwards; the last may be a slice of a text. :data:`WRITTEN_LIST` leads into the
list that a text holds."""
WRITTEN_LIST = "a list written as a text"
_LONGEST_LIST = 1 << 17
"""Characters of a text that is read as a list."""
_COUNTERS = [[name.lower() for name in ALPHABETS[key]] for key in ("A", "1", "0")]
_LABELS = [ALPHABETS[key] for key in ("A", "a", "1")]
_WRITTEN = (r"\({}\)", r"(?<!\w){}\s?[.):]")
"""How labels are written before options within a text."""


@dataclass(frozen=True)
class OptionField:
    """Places of a document that hold its options.

    Attributes:
        name: the field, or fields, for people.
        paths: for each option the places of its text; several where fields repeat each other.
        values: what is there.
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
        parts: dict[Path, list[tuple[slice, Any]]] = {}
        for paths, value in zip(self.paths, values, strict=True):
            for *outer, last in paths:
                if isinstance(last, slice):
                    parts.setdefault(tuple(outer), []).append((last, value))
                else:
                    made = _with(made, (*outer, last), value)
        for path, replaced in parts.items():
            text = _at(doc, path)
            for part, value in sorted(replaced, key=lambda one: -one[0].start):
                text = text[: part.start] + str(value) + text[part.stop :]
            made = _with(made, path, text)
        return made


def candidates(doc: Mapping[str, Any], choices: Sequence[str]) -> list[OptionField]:
    """Every group of two or more texts of a document that may be its options, most likely ones first.

    Fields with equal texts are one.

    Args:
        choices: what the task scores.
    """
    n = len(choices)
    found: dict[tuple[Any, ...], list[tuple[str, list[Path]]]] = {}
    for name, paths in _groups(doc, (), "", n):
        found.setdefault(tuple(_at(doc, path) for path in paths), []).append((name, paths))
    made = [
        OptionField(
            " and ".join(dict.fromkeys(name for name, _ in same)),
            tuple(zip(*(paths for _, paths in same), strict=True)),
            values,
        )
        for values, same in found.items()
    ]
    made.sort(key=lambda one: (len(one.values) != n, len(one.values) < n))
    holding = {choice: next((key for key, value in doc.items() if _same(value, choice)), "") for choice in choices}
    keys = [holding[choice] for choice in choices]
    if all(keys) and len(set(keys)) == n > 1:
        named = OptionField(", ".join(map(str, keys)), tuple(((key,),) for key in keys), tuple(doc[k] for k in keys))
        made.append(named)
    return made


def _same(value: object, choice: str) -> bool:
    return isinstance(value, str) and value.strip() == choice.strip()


def _at(doc: Any, path: Sequence[Any]) -> Any:
    for key in path:
        doc = _list_in(doc) if key is WRITTEN_LIST else doc[key]
    return doc


def _with(doc: Any, path: Sequence[Any], value: Any) -> Any:
    """A document, changed in place but for texts, with another value at a path."""
    if not path:
        return value
    key, *inner = path
    if key is not WRITTEN_LIST:
        doc[key] = _with(doc[key], inner, value)
        return doc
    changed = _with(_list_in(doc), inner, value)
    try:
        json.loads(doc)
    except ValueError:
        return repr(changed)
    return json.dumps(changed, ensure_ascii=False)


def _list_in(text: str) -> list[Any] | None:
    """The list that a text spells, in Python or JSON; None where it spells none."""
    if not (text.lstrip().startswith("[") and text.rstrip().endswith("]") and len(text) <= _LONGEST_LIST):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, list):
            return found
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _groups(value: Any, path: Path, name: str, n: int) -> Iterator[tuple[str, list[Path]]]:
    """Names and places of lists of texts, of texts in lists of records, of fields that are counted, and of parts."""
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
        for i in reversed(range(len(value))):  # of several problems on one passage, the last is asked
            yield from _groups(value[i], (*path, i), f"{name}[{i}]", n)
    if isinstance(value, str) and n > 1:
        if listed := _list_in(value):
            yield from _groups(listed, (*path, WRITTEN_LIST), name, n)
        for parts in _enumerated(value, n):
            yield f"{name} (a part of)", [(*path, part) for part in parts]


def _labelled_items(texts: Sequence[Any], path: Path, name: str) -> Iterator[tuple[str, list[Path]]]:
    """The items of a list that begin with labels, without these: ``(A) ...``, ``(B) ...``."""
    for labels in _LABELS:
        for written in _WRITTEN:
            found = [
                re.match(rf"\s*{written.format(re.escape(label))}\s*(?=\S)", str(text))
                for label, text in zip(labels, texts, strict=False)
            ]
            if len(found) == len(texts) and all(found):
                yield (
                    f"{name} (behind labels)",
                    [(*path, i, slice(match.end(), len(texts[i].rstrip()))) for i, match in enumerate(found) if match],
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
                goes_on = cells[-1].endswith(":") or patterns[n].search(text, chain[-1].end(), ends[-1])
                if all(cells) and not goes_on:  # with the cue for the answer, or another option
                    yield parts
                break


def _trimmed(text: str, start: int, end: int) -> slice:
    """A part without white space around it and separators behind it."""
    cell = text[start:end]
    return slice(start + len(cell) - len(cell.lstrip()), start + len(cell.rstrip(" \t\n,;|")))


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
