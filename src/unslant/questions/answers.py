"""Which options are right: from an index, a letter, a label, the option's text, or a list of those."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unslant.errors import InputError
from unslant.files import check_plain, parse_json

KINDS = ("auto", "index", "letter", "text")
"""How answers that are texts are read; ``auto`` decides for the whole file by what fits most of its answers."""
ENOUGH = 20
"""Answers from which a file that never says 0 is taken to count from 1, if 0-based reading does not fit."""

_WORDS = {"letter": "letters", "text": "option texts", "marked": "letters or numbers of options with their texts"}
_SURPRISE = 0.1
"""Probability that no answer is 0, were all options equally often right, below which the report says so."""
_DIGITS = 18
_WHOLE = re.compile(r"\s*(-?\d{1,17})[.,]0+\s*")
_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\].:]?")
_MARKED = re.compile(
    r"(?:(?:option|choice|answer)\s+(?P<number>\d{1,3})|[(\[]?(?P<letter>[A-Z])[)\].:])(?:[:.)\s].*)?", re.S
)
_SEVERAL = re.compile(r"[A-Za-z0-9]{1,2}(?:\s*[,;|]\s*[A-Za-z0-9]{1,2})+")


class BadRecord(Exception):
    """A record that cannot become a question.

    Attributes:
        kind: short reason to count by, the same for every record with this trouble.
        field: name of the field at fault; empty if none.
        whole_file: what is wrong is how the file is read, so that leaving this record out would hide it.
    """

    def __init__(self, kind: str, reason: str, field: str = "", whole_file: bool = False) -> None:
        super().__init__(reason)
        self.kind, self.field, self.whole_file = kind, field, whole_file


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as the file gives it, with what is needed to read it.

    Attributes:
        value: what the file says; see :func:`parse_answer`.
        options: option texts as the file has them.
        shown: option texts as the question will have them (numbering removed).
        labels: label of each option where the file names them, else empty.
    """

    value: Any
    options: tuple[str, ...]
    shown: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def items(self) -> list[Any]:
        """The single answers; empty when none is right."""
        value = str(self.value) if isinstance(self.value, bool) else self.value
        if isinstance(value, str) and value not in self.options and value not in self.labels:
            value = parse_answer(value)
        return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def parse_list(text: str) -> list[Any] | None:
    """A list written as text, in JSON or Python form; None if the text is no list."""
    stripped = text.strip()
    if not stripped.startswith(("[", "(")):
        return None
    for parse in (parse_json, ast.literal_eval):
        try:
            value = parse(stripped)
            check_plain(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list | tuple):
            return list(value)
    return None


def parse_answer(text: str) -> Any:
    """``[0, 2]``, ``A,C`` or ``0;2`` written as text as a list; other texts as they are."""
    listed = parse_list(text)
    if listed is not None:
        return listed
    if _SEVERAL.fullmatch(text.strip()):
        return [part.strip() for part in re.split(r"[,;|]", text)]
    return text


def is_missing(value: Any) -> bool:
    """Null, NaN or blank text."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


@dataclass(frozen=True)
class AnswerReader:
    """How the answers of one file are written.

    Attributes:
        base: number of the first option where answers are numbers (0 or 1).
        kind: how texts are read: ``index``, ``letter``, ``text`` or ``marked`` ("option 2: ...", "B) ...").
        note: what the reader of the report should know; may be empty.
        how: in words, how the file's answers are written.
        off_by_one: counting from the other number would leave fewer answers out of range, and nobody said from 0.
    """

    base: int
    kind: str
    note: str = ""
    how: str = ""
    off_by_one: bool = False

    @classmethod
    def for_file(cls, answers: Sequence[RawAnswer], base: int | None, kind: str, origin: str) -> AnswerReader:
        """Decide once for all answers of a file.

        Raises:
            InputError: if texts fit two ways of reading equally well and these disagree.
        """
        numbers: list[tuple[int, int]] = []
        texts: list[tuple[str, RawAnswer]] = []
        for answer in answers:
            for item in answer.items:
                if isinstance(item, str) and _label_index(item, answer) is None and item.strip():
                    texts.append((item, answer))
                elif (number := _integer(item)) is not None:
                    numbers.append((number, len(answer.options)))
        if kind == "auto":
            kind = _kind_of(texts, base or 0, origin)
        if kind == "index":
            read = ((_decimal(item), len(answer.options)) for item, answer in texts)
            numbers += [(number, n) for number, n in read if number is not None]
        taken, note = _base_of(numbers) if base is None else (base, "")
        doubted = base != 0 and _outside(numbers, 1 - taken) < _outside(numbers, taken)
        found = [_WORDS[kind]] if texts and kind != "index" else []
        found += [f"indices counting from {taken}"] if numbers else []
        return cls(taken, kind, note, " and ".join(found) or "labels", doubted)

    def read(self, answer: RawAnswer) -> frozenset[int]:
        """Indices of the right options.

        Raises:
            BadRecord: if an answer is missing, out of range, or none of the options.
        """
        if is_missing(answer.value):
            raise BadRecord("answer missing", "is missing; give the right option, or [] when none is right", "answer")
        return frozenset(i for item in answer.items for i in self._read_one(item, answer))

    def _read_one(self, item: Any, answer: RawAnswer) -> tuple[int, ...]:
        n = len(answer.options)
        if is_missing(item):
            raise BadRecord("answer missing", "has an empty entry", "answer")
        label = _label_index(item, answer)
        if label is not None:
            return (label,)
        number = _integer(item)
        if number is not None:
            return (self._in_range(number, n),)
        found = _READERS[self.kind](str(item), answer, self.base)
        if found:
            return found
        number = _decimal(str(item))
        if self.kind == "index" and number is not None:
            return (self._in_range(number, n),)
        allowed = (
            f"a letter A to {chr(ord('A') + n - 1)}, an index {self.base} to {n - 1 + self.base}, or an option's text"
        )
        if answer.labels:
            allowed = f"a label {answer.labels[0]} to {answer.labels[-1]}, " + allowed
        kind = "answer out of range" if _LETTER.fullmatch(str(item).strip()) else "answer is none of the options"
        raise BadRecord(kind, f"{_short(item)} is none of the {n} options; allowed are {allowed}", "answer")

    def _in_range(self, number: int, n: int) -> int:
        index, other = number - self.base, 1 - self.base
        if 0 <= index < n:
            return index
        reason = f"{number} is out of range: {n} options, allowed are {self.base} to {n - 1 + self.base}"
        explained = self.off_by_one and 0 <= number - other < n
        if explained:
            reason += f"; if the file counts from {other}, say so: --answer-base {other} (answer_base={other})"
        elif number == -1:
            reason += " (-1 marks answers that are not public; take another split)"
        raise BadRecord("answer out of range", reason, "answer", explained)


def whole_numbers(answers: Sequence[RawAnswer]) -> list[RawAnswer]:
    """Answers without decimals, where every one of them has some ("1.0", or "1,0"), as spreadsheets leave numbers."""
    found = [_WHOLE.fullmatch(answer.value) if isinstance(answer.value, str) else None for answer in answers]
    known = [match for match, answer in zip(found, answers, strict=True) if not is_missing(answer.value)]
    in_use = any(answer.value in (*answer.options, *answer.labels) for answer in answers)
    if not known or None in known or in_use:
        return list(answers)
    return [replace(a, value=match[1]) if match else a for a, match in zip(answers, found, strict=True)]


def _short(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 60 else text[:56] + "...'"


def _integer(item: Any) -> int | None:
    if isinstance(item, bool):
        return None
    if isinstance(item, int):
        return item
    return int(item) if isinstance(item, float) and item.is_integer() else None


def _decimal(text: str) -> int | None:
    """A whole number written as text; None for any other text, and for numbers that count no options."""
    text = text.strip()
    return int(text) if len(text) <= _DIGITS and text.removeprefix("-").isdecimal() else None


def _label_index(item: Any, answer: RawAnswer) -> int | None:
    """Index of the option whose label the answer is; None for a number, which is an index."""
    if not isinstance(item, str):
        return None
    folded = item.strip().casefold()
    labels = [label.casefold() for label in answer.labels]
    return labels.index(folded) if labels.count(folded) == 1 else None


def _as_index(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    number = _decimal(item)
    return () if number is None or not 0 <= number - base < len(answer.options) else (number - base,)


def _as_letter(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    match = _LETTER.fullmatch(item.strip())
    index = ord(match[1].upper()) - ord("A") if match else -1
    return (index,) if 0 <= index < len(answer.options) else ()


def _as_text(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    """Every option of that text: options of the same text are right together."""
    for texts in (answer.options, answer.shown):
        exact = tuple(i for i, text in enumerate(texts) if text == item)
        if exact:
            return exact
    folded = _folded(item)
    return tuple(i for i, text in enumerate(answer.shown) if _folded(text) == folded)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _as_marked(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    """ "option 2: text" (counted from 1), "B) text" or "(B) text"."""
    match = _MARKED.fullmatch(item.strip())
    if not match:
        return ()
    index = int(match["number"]) - 1 if match["number"] else ord(match["letter"]) - ord("A")
    return (index,) if 0 <= index < len(answer.options) else ()


_READERS = {"index": _as_index, "letter": _as_letter, "text": _as_text, "marked": _as_marked}


def _kind_of(texts: Sequence[tuple[str, RawAnswer]], base: int, origin: str) -> str:
    """The way of reading that fits most of the file's answers that are texts."""
    found = {kind: [read(item, answer, base) for item, answer in texts] for kind, read in _READERS.items()}
    found["index"] = [
        # Counted from 1, the last option's number is one more than 0-based reading allows.
        result or _as_index(item, answer, 1)
        for result, (item, answer) in zip(found["index"], texts, strict=True)
    ]
    fits = {kind: sum(map(bool, results)) for kind, results in found.items()}
    best = max(fits, key=lambda kind: fits[kind])
    for other in ("letter", "text"):
        if other == best or not texts or fits[other] < fits[best]:
            continue
        clash = next(
            (i for i, pair in enumerate(zip(found[best], found[other], strict=True)) if pair[0] != pair[1]), None
        )
        if clash is not None:
            raise InputError.at(
                origin,
                f"{_short(texts[clash][0])} can be read as {best} and as {other}, which give different options; "
                f'say which it is: --answer-kind {best} or {other} (answer_kind="{best}")',
                field="answer",
            )
    return best


def _outside(numbers: Sequence[tuple[int, int]], base: int) -> int:
    """How many numbers name no option when the first one has the number ``base``."""
    return sum(not 0 <= number - base < n for number, n in numbers)


def _base_of(numbers: Sequence[tuple[int, int]]) -> tuple[int, str]:
    """The number of the first option, and a note: 1 where only that fits, and enough answers say so."""
    if not numbers or min(number for number, _ in numbers) <= 0:
        return 0, ""
    if len(numbers) >= ENOUGH and not _outside(numbers, 1) and _outside(numbers, 0):
        return 1, "answers count from 1: none is 0, and some equal the number of options"
    if math.prod(1 - 1 / max(n, 2) for _, n in numbers) < _SURPRISE:
        return 0, "no answer is 0: if the file counts from 1, say so: --answer-base 1 (answer_base=1)"
    return 0, ""
