"""Which options are right: from an index, a letter, a label, the option's text, or a list of those."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unslant.questions.answer_kinds import (
    LETTER,
    READERS,
    WORDS,
    RawAnswer,
    base_of,
    decimal,
    integer,
    is_missing,
    kind_of,
    numbers_kind,
    outside,
    short,
)

KINDS = ("auto", *READERS)
"""How answers are read (``marked``: "B) text"); ``auto`` decides for the whole file by what fits most answers."""
_WHOLE = re.compile(r"\s*(-?\d{1,17})[.,]0+\s*")


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


@dataclass(frozen=True)
class AnswerReader:
    """How the answers of one file are written.

    Attributes:
        base: number of the first option where answers are numbers (0 or 1).
        kinds: how texts are read, one of :data:`KINDS`, in records without labels of options, and in those with them.
        whys: by which answers each kind was chosen, or that the user chose it.
        note: what the reader of the report should know; may be empty.
        how: in words, how the file's answers are written.
        off_by_one: counting from the other number would leave fewer answers out of range, and nobody said from 0.
        doubts: in words, readings that fit as well as (or nearly as well as) the one taken, and how to choose.
    """

    base: int
    kinds: tuple[str, str]
    whys: tuple[str, str]
    note: str = ""
    how: str = ""
    off_by_one: bool = False
    doubts: tuple[str, ...] = ()

    @classmethod
    def for_file(cls, answers: Sequence[RawAnswer], base: int | None, kind: str, origin: str) -> AnswerReader:
        """Decide once for all answers of a file.

        Raises:
            InputError: if texts fit two ways of reading equally well and these disagree.
        """
        kinds, whys, doubts, found = [], [], [], []
        indices: list[tuple[int, RawAnswer]] = []
        for labelled in (False, True):
            items = [(item, one) for one in answers if bool(one.labels) == labelled for item in one.items]
            texts = [item for item in items if isinstance(item[0], str) and item[0].strip()]
            numbers = [item for item in items if integer(item[0]) is not None]
            own, why = kind, f", as --answer-kind={kind} says"
            if kind == "auto":
                own, why, doubted = kind_of(texts, base, origin)
                doubts += doubted
                if not texts:
                    own = numbers_kind(numbers, origin) if numbers and base is None else "index"
            as_indices = [(int(i), one) for i, one in numbers if not _named(own, i, one)]
            if own == "index":
                as_indices += [(number, one) for item, one in texts if (number := decimal(item)) is not None]
            indices += as_indices
            found += [WORDS[own]] if own != "index" and (texts or len(as_indices) < len(numbers)) else []
            kinds.append(own)
            whys.append(why)
        taken, note, doubt = base_of(indices) if base is None else (base, "", "")
        off_by_one = base != 0 and outside(indices, 1 - taken) < outside(indices, taken)
        found += [f"indices counting from {taken}"] if indices else []
        doubts += [doubt] if doubt else []
        how = " and ".join(dict.fromkeys(found))
        return cls(taken, (kinds[0], kinds[1]), (whys[0], whys[1]), note, how, off_by_one, tuple(doubts))

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
        kind, why = self.kinds[bool(answer.labels)], self.whys[bool(answer.labels)]
        number = integer(item)
        if number is None:
            if found := READERS[kind](str(item), answer, self.base):
                return found
            number = decimal(str(item)) if kind == "index" else None
        elif found := _named(kind, item, answer):
            return found
        if number is not None:
            return (self._in_range(number, n),)
        allowed = (
            f"a letter A to {chr(ord('A') + n - 1)}, an index {self.base} to {n - 1 + self.base}, or an option's text"
        )
        if answer.labels:
            allowed = f"a label {answer.labels[0]} to {answer.labels[-1]}, " + allowed
        for other in ("label", "text", "letter", "marked"):
            if places := READERS[other](str(item), answer, self.base):
                reason = (
                    f"{short(item)} is option {places[0] + 1} of {n} read as {WORDS[other]}, but answers of this "
                    f"file are read as {WORDS[kind]}{why}; write it so, or read all as {WORDS[other]}: "
                    f"--answer-kind={other}"
                )
                raise BadRecord(f"answer that fits only as {WORDS[other]}, not {WORDS[kind]}", reason, "answer")
        name = "answer out of range" if LETTER.fullmatch(str(item).strip()) else "answer is none of the options"
        raise BadRecord(name, f"{short(item)} is none of the {n} options; allowed are {allowed}", "answer")

    def _in_range(self, number: int, n: int) -> int:
        index, other = number - self.base, 1 - self.base
        if 0 <= index < n:
            return index
        reason = f"{number} is out of range: {n} options, allowed are {self.base} to {n - 1 + self.base}"
        explained = self.off_by_one and 0 <= number - other < n
        if explained:
            reason += f"; if the file counts from {other}, say so: --answer-base={other}"
        elif number == -1:
            reason += " (-1 marks answers that are not public; take another split)"
        raise BadRecord("answer out of range", reason, "answer", explained)


def _named(kind: str, number: object, answer: RawAnswer) -> tuple[int, ...]:
    """The options that a number names as a text or label, where answers are such; else it is an index."""
    return READERS[kind](str(number), answer, 0) if kind in ("text", "label") else ()


def whole_numbers(answers: Sequence[RawAnswer]) -> list[RawAnswer]:
    """Answers without decimals, where every one of them has some ("1.0", or "1,0"), as spreadsheets leave numbers."""
    found = [_WHOLE.fullmatch(answer.value) if isinstance(answer.value, str) else None for answer in answers]
    known = [match for match, answer in zip(found, answers, strict=True) if not is_missing(answer.value)]
    in_use = any(answer.value in (*answer.options, *answer.labels) for answer in answers)
    if not known or None in known or in_use:
        return list(answers)
    return [replace(a, value=match[1]) if match else a for a, match in zip(answers, found, strict=True)]
