"""How the answers of a file are written, decided once for all of them, and which options are right by them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unslant.errors import InputError, for_the_caller
from unslant.questions.answer_forms import FLAGS, LETTER, READERS, RawAnswer, are_flags, as_text, decimal, integer
from unslant.questions.numbering import numbers_on
from unslant.questions.records import BadRecord, is_missing, whole_number

ENOUGH = 20
"""Least number of answers, none of them 0, from which a file is taken to count from 1 where counting from 0 fails."""

WORDS = {
    "index": "indices",
    "letter": "letters",
    "text": "option texts",
    "marked": "letters or numbers of options with their texts",
    "label": "labels",
}
Item = tuple[Any, RawAnswer]
"""A single answer, and the record's answer that it is part of."""


def _short(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 60 else text[:56] + "...'"


def kind_of(texts: Sequence[Item], base: int | None, origin: str) -> tuple[str, str, list[str]]:
    """The reading that fits most of the file's textual answers, the reason in words, and doubts about close rivals.

    Raises:
        InputError: if another reading fits as many answers and gives other options.
    """
    readings = {kind: [read(item, answer, base or 0) for item, answer in texts] for kind, read in READERS.items()}
    if base is None:
        # Counted from 1, the last option's number is one more than 0-based reading allows.
        readings["index"] = [
            places or READERS["index"](item, answer, 1)
            for places, (item, answer) in zip(readings["index"], texts, strict=True)
        ]
    fits = {kind: sum(map(bool, places)) for kind, places in readings.items()}
    best = max(fits, key=lambda kind: fits[kind])
    if not fits[best]:
        return "index", "", []
    first = next(text for text, places in zip(texts, readings[best], strict=True) if places)
    why, doubts = f", as {fits[best]:,} of {len(texts):,} can be (first: {_seen(first)})", []
    for other in readings:
        if best == "label" and other not in ("text", "letter"):
            continue  # the file itself labels its options
        pairs = list(zip(texts, readings[best], readings[other], strict=True))
        clash = next((text for text, one, two in pairs if one and two and one != two), None)
        if fits[other] < fits[best] or other == best or best == "label":
            if clash and 2 * fits[other] >= fits[best]:
                doubts.append(
                    f"answers are read as {WORDS[best]}, which fits {fits[best]:,} of {len(texts):,}; as "
                    f"{WORDS[other]}, {fits[other]:,} would fit, and give other options ({_seen(clash)}): say "
                    f"which it is with --answer-kind={best} or --answer-kind={other}"
                )
            continue
        if clash:
            raise _ambiguous(clash, best, other, origin)
        alone = [next((text for text, *both in pairs if both[i] and not both[1 - i]), None) for i in (0, 1)]
        if alone[0] and alone[1]:
            raise InputError.at(
                origin,
                f"as many answers fit only as {WORDS[best]} ({_seen(alone[0])}) as fit only as {WORDS[other]} "
                f"({_seen(alone[1])}); say which it is: --answer-kind={best} or --answer-kind={other}",
                field="answer",
            )
    return best, why, doubts


def _seen(item: Item) -> str:
    """An answer with its place, for messages."""
    return ", ".join(filter(None, (item[1].place, _short(item[0]))))


def _ambiguous(item: Item, kind: str, other: str, origin: str) -> InputError:
    reason = f"{_short(item[0])} can be read as {kind} and as {other}, which give different options"
    choice = f"say which it is: --answer-kind={kind} or --answer-kind={other}"
    return InputError.at(item[1].place or origin, f"{reason}; {choice}", field="answer")


def numbers_kind(numbers: Sequence[Item], origin: str) -> str:
    """``index`` or ``text``: how to read a file whose answers are all numbers, because option texts may be numbers too.

    Raises:
        InputError: if both fit every answer and give different options.
    """
    as_texts = [as_text(str(item), answer, 0) for item, answer in numbers]
    if not all(as_texts):
        return "index"
    for base in (0, 1):
        indices = [READERS["index"](str(integer(item)), answer, base) for item, answer in numbers]
        if indices == as_texts:
            return "index" if base == 0 else "text"
        clash = next((n for n, one, two in zip(numbers, indices, as_texts, strict=True) if one != two), None)
        if clash and all(indices):
            raise _ambiguous(clash, "index", "text", origin)
    return "text"


def outside(numbers: Sequence[tuple[int, RawAnswer]], base: int) -> int:
    """How many numbers are out of range if the first option has the number ``base``; -1 means no answer."""
    return sum(not 0 <= number - base < len(answer.options) for number, answer in numbers if number >= 0)


def base_of(numbers: Sequence[tuple[int, RawAnswer]]) -> tuple[int, str, str]:
    """The number of the first option, a note, and the doubt if the other number fits as well.

    It is 1 if enough answers fit only that, or if all fit it and the options are labelled or numbered 1, 2, 3, ..., or
    have three or more columns numbered so (of two, as in PIQA and COPA, answers usually count from 0).
    """
    numbers = [(number, answer) for number, answer in numbers if number >= 0]
    if not numbers:
        return 0, "", ""
    wrong = outside(numbers, 0), outside(numbers, 1)
    if len(numbers) >= ENOUGH and wrong[0] and not wrong[1]:
        return 1, "answers count from 1: none is 0, and some equal the number of options", ""
    marks = ((_numbers(answer), len(answer.options)) for _, answer in numbers)
    base = int(not wrong[1] and all(names == [str(i + 1) for i in range(n)] for names, n in marks))
    other = 1 - base
    both = sum(1 <= number < len(answer.options) for number, answer in numbers)
    if wrong[other] != wrong[base] or not both:
        return base, "", ""
    values = sorted({number for number, _ in numbers})
    examples = ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
    doubt = (
        f"answers ({examples}) are read as counting from {base}, but {both:,} of {len(numbers):,} could also count "
        f"from {other}, and would then be other options: add --answer-base={other}, or --answer-base={base} if not"
    )
    return base, "", doubt


def _numbers(answer: RawAnswer) -> list[str]:
    """The labels of the options, or the numbers before them or in the names of their columns."""
    columns = answer.columns.split(",")
    numbers = [re.sub(r"\D", "", column) for column in columns[: len(answer.options)]] if len(columns) > 2 else []
    return list(answer.labels or numbers_on(answer.options) or numbers)


KINDS = ("auto", *READERS)
"""How answers are read (``marked``: "B) text"); ``auto`` decides for the whole file by what fits most answers."""


@dataclass(frozen=True)
class AnswerReader:
    """How the answers of one file are written.

    Attributes:
        base: number of the first option where answers are numbers (0 or 1).
        kinds: how texts are read, one of :data:`KINDS`, and why, in words (the answers that fit it, or the user's
            choice): in records without labels of options, and in those with them.
        note: something the reader of the report should know; may be empty.
        how: in words, how the file's answers are written.
        off_by_one: counting from the other number would leave fewer answers out of range, and the user did not ask for
            counting from 0.
        doubts: in words, readings that fit as well as (or nearly as well as) this one, and how to choose.
    """

    base: int
    kinds: tuple[tuple[str, str], ...]
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
        kinds, doubts, forms = [], [], []
        indices: list[tuple[int, RawAnswer]] = []
        for labelled in (False, True):
            items = [(item, one) for one in answers if bool(one.labels) == labelled for item in one.items]
            texts = [item for item in items if isinstance(item[0], str) and item[0].strip()]
            numbers = [item for item in items if integer(item[0]) is not None]
            reading, why = kind, f", as --answer-kind={kind} says"
            if kind == "auto":
                reading, why, rivals = kind_of(texts, base, origin)
                doubts += rivals
                if not texts:
                    reading = numbers_kind(numbers, origin) if numbers and base is None else "index"
            as_indices = [(int(i), one) for i, one in numbers if not _named(reading, i, one)]
            if reading == "index":
                as_indices += [(number, one) for item, one in texts if (number := decimal(item)) is not None]
            elif texts or len(as_indices) < len(numbers):
                forms.append(WORDS[reading])
            indices += as_indices
            kinds.append((reading, why))
        first, note, doubt = base_of(indices) if base is None else (base, "", "")
        yes = next((one.shown for _, one in indices if one.is_yes_or_no), None)
        if yes and kind == "auto" and base is None and {number for number, _ in indices} <= {0, 1}:
            doubts.append(
                f"answers 0 and 1 are read as places, so that 1 is {yes[1]!r}: add --answer-kind=index if that is so, "
                f"or write the answers in words if 1 means {yes[0]!r}"
            )
        off_by_one = base != 0 and outside(indices, 1 - first) < outside(indices, first)
        forms += [f"indices counting from {first}"] if indices else []
        forms += ["marks of the options"] if any(one.marked for one in answers) else []
        says = tuple(map(for_the_caller, filter(None, [*doubts, doubt])))
        return cls(first, tuple(kinds), note, " and ".join(dict.fromkeys(forms)), off_by_one, says)

    def read(self, answer: RawAnswer) -> frozenset[int]:
        """Indices of the right options.

        Raises:
            BadRecord: if an answer is missing, out of range, or none of the options.
        """
        if answer.marked:
            return frozenset(answer.value)
        if is_missing(answer.value):
            raise BadRecord("answer missing", "is missing; give the right option, or [] when none is right", "answer")
        if are_flags(items := answer.items, len(answer.options)):
            raise BadRecord("answer out of range", FLAGS, "answer")
        return frozenset(i for item in items for i in self._read_one(item, answer))

    def _read_one(self, item: Any, answer: RawAnswer) -> tuple[int, ...]:
        n = len(answer.options)
        if is_missing(item):
            raise BadRecord("answer missing", "has an empty entry", "answer")
        kind, why = self.kinds[bool(answer.labels)]
        number = integer(item)
        if number is None:
            if places := READERS[kind](str(item), answer, self.base):
                return places
            number = decimal(str(item)) if kind == "index" else None
        elif places := _named(kind, item, answer):
            return places
        if number is not None:
            return (self._in_range(number, n),)
        last = chr(ord("A") + min(n, 26) - 1)
        last_index = n - 1 + self.base
        allowed = f"a letter A to {last}, an index {self.base} to {last_index}, an option's text, or several: A,B"
        if answer.labels:
            allowed = f"a label {answer.labels[0]} to {answer.labels[-1]}, " + allowed
        for other in ("label", "text", "letter", "marked"):
            if places := READERS[other](str(item), answer, self.base):
                reason = (
                    f"{_short(item)} is option {places[0] + 1} of {n} read as {WORDS[other]}, but answers of this "
                    f"file are read as {WORDS[kind]}{why}; write it so, or read all as {WORDS[other]}: "
                    f"--answer-kind={other}"
                )
                raise BadRecord(f"answer that fits only as {WORDS[other]}, not {WORDS[kind]}", reason, "answer")
        name = "answer out of range" if LETTER.fullmatch(str(item).strip()) else "answer is none of the options"
        letter = str(item).strip()  # a Cyrillic or Greek one may look like another
        said = f" ({unicodedata.name(letter, 'unknown')})" if len(letter) == 1 and not letter.isascii() else ""
        raise BadRecord(name, f"{_short(item)}{said} is none of the {n} options; allowed are {allowed}", "answer")

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
    """The options that a number names where answers are texts or labels; empty where it is an index."""
    return READERS[kind](str(number), answer, 0) if kind in ("text", "label") else ()


def whole_numbers(answers: Sequence[RawAnswer]) -> list[RawAnswer]:
    """Answers without decimals, if all answers have them ("1.0" or "1,0"), because spreadsheets write numbers so."""
    pairs = [(one, whole_number(one.value) if isinstance(one.value, str) else one.value) for one in answers]
    all_have = all(text != answer.value for answer, text in pairs if not is_missing(answer.value))
    if not all_have or any(answer.value in (*answer.options, *answer.labels) for answer in answers):
        return list(answers)
    return [replace(answer, value=text) for answer, text in pairs]
