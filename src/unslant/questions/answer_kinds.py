"""Ways in which an answer can be written, and which of them a file follows."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unslant.errors import InputError
from unslant.files import check_plain, parse_json

ENOUGH = 20
"""Answers from which a file that never says 0 is taken to count from 1, if 0-based reading does not fit."""

WORDS = {
    "index": "indices",
    "letter": "letters",
    "text": "option texts",
    "marked": "letters or numbers of options with their texts",
    "label": "labels",
}
_DIGITS = 18
LETTER = re.compile(r"[(\[]?([A-Za-z])[)\].:]?")
_MARKED = re.compile(
    r"(?:(?:option|choice|answer)\s+(?P<number>\d{1,3})|[(\[]?(?P<letter>[A-Z])[)\].:])(?:[:.)\s].*)?", re.S
)
_SEVERAL = re.compile(r"[A-Za-z0-9]{1,2}(?:\s*[,;|]\s*[A-Za-z0-9]{1,2})+")


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as the file gives it, with what is needed to read it.

    Attributes:
        value: what the file says; see :func:`parse_answer`.
        options: option texts as the file has them.
        shown: option texts as the question will have them (numbering removed).
        labels: label of each option where the file names them, else empty.
        place: of the record, for messages.
    """

    value: Any
    options: tuple[str, ...]
    shown: tuple[str, ...]
    labels: tuple[str, ...]
    place: str = ""

    @property
    def items(self) -> list[Any]:
        """The single answers; empty when none is right."""
        value = str(self.value) if isinstance(self.value, bool) else self.value
        if isinstance(value, str) and value not in self.options and value not in self.labels:
            value = parse_answer(value)
        return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def parse_list(text: str) -> list[Any] | None:
    """A list written as text, in JSON or Python form; None if the text is not a list."""
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


def short(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 60 else text[:56] + "...'"


def integer(item: Any) -> int | None:
    if isinstance(item, bool):
        return None
    if isinstance(item, int):
        return item
    return int(item) if isinstance(item, float) and item.is_integer() else None


def decimal(text: str) -> int | None:
    """A whole number written as text; None for any other text, and for numbers that count no options."""
    text = text.strip()
    return int(text) if len(text) <= _DIGITS and text.removeprefix("-").isdecimal() else None


Item = tuple[Any, RawAnswer]
"""A single answer, and what is needed to read it."""


def as_label(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    """The option that has this label."""
    folded = item.strip().casefold()
    labels = [label.casefold() for label in answer.labels]
    return (labels.index(folded),) if labels.count(folded) == 1 else ()


def _as_index(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    number = decimal(item)
    return () if number is None or not 0 <= number - base < len(answer.options) else (number - base,)


def _as_letter(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    match = LETTER.fullmatch(item.strip())
    index = ord(match[1].upper()) - ord("A") if match else -1
    return (index,) if 0 <= index < len(answer.options) else ()


def as_text(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
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


READERS: dict[str, Callable[[str, RawAnswer, int], tuple[int, ...]]] = {
    "label": as_label,
    "index": _as_index,
    "letter": _as_letter,
    "text": as_text,
    "marked": _as_marked,
}


def kind_of(texts: Sequence[Item], base: int | None, origin: str) -> tuple[str, str, list[str]]:
    """The way of reading that fits most of the file's answers that are texts, why, and which others are near.

    Raises:
        InputError: if another way fits as many, and gives other options.
    """
    found = {kind: [read(item, answer, base or 0) for item, answer in texts] for kind, read in READERS.items()}
    if base is None:
        # Counted from 1, the last option's number is one more than 0-based reading allows.
        found["index"] = [
            result or _as_index(item, answer, 1) for result, (item, answer) in zip(found["index"], texts, strict=True)
        ]
    fits = {kind: sum(map(bool, results)) for kind, results in found.items()}
    best = max(fits, key=lambda kind: fits[kind])
    best, why, doubts = best if fits[best] else "index", "", []
    if fits[best]:
        first = next(text for text, result in zip(texts, found[best], strict=True) if result)
        why = f", as {fits[best]:,} of {len(texts):,} can be (first: {_seen(first)})"
    for other in found:
        pairs = list(zip(texts, found[best], found[other], strict=True))
        clash = next((text for text, one, two in pairs if one and two and one != two), None)
        if best == "label" and other not in ("text", "letter"):
            continue  # the file names what its options are called
        if fits[other] < fits[best] or not fits[best] or other == best or best == "label":
            if clash and 2 * fits[other] >= fits[best]:
                doubts.append(
                    f"answers are read as {WORDS[best]}, which fits {fits[best]:,} of {len(texts):,}; as "
                    f"{WORDS[other]}, {fits[other]:,} would fit, and give other options ({_seen(clash)}): say "
                    f"which it is with --answer-kind={best} or --answer-kind={other}"
                )
            continue
        choose = f"say which it is: --answer-kind={best} or --answer-kind={other}"
        if clash:
            raise InputError.at(
                clash[1].place or origin,
                f"{short(clash[0])} can be read as {best} and as {other}, which give different options; {choose}",
                field="answer",
            )
        alone = [next((text for text, *both in pairs if both[i] and not both[1 - i]), None) for i in (0, 1)]
        if alone[0] and alone[1]:
            raise InputError.at(
                origin,
                f"as many answers fit only as {WORDS[best]} ({_seen(alone[0])}) as fit only as {WORDS[other]} "
                f"({_seen(alone[1])}); {choose}",
                field="answer",
            )
    return best, why, doubts


def _seen(item: Item) -> str:
    """An answer and its place, for messages."""
    return ", ".join(filter(None, (item[1].place, short(item[0]))))


def numbers_kind(numbers: Sequence[Item], origin: str) -> str:
    """Whether a file whose answers are all numbers has indices, or option texts that are numbers.

    Raises:
        InputError: if both fit every answer, and give other options.
    """
    as_texts = [as_text(str(item), answer, 0) for item, answer in numbers]
    if not all(as_texts):
        return "index"
    for base in (0, 1):
        indices = [_as_index(str(integer(item)), answer, base) for item, answer in numbers]
        if indices == as_texts:
            return "index" if base == 0 else "text"
        clash = next((n for n, one, two in zip(numbers, indices, as_texts, strict=True) if one != two), None)
        if clash and all(indices):
            reason = (
                f"{short(clash[0])} can be read as index and as text, which give different options; say which it is: "
                "--answer-kind=index or --answer-kind=text"
            )
            raise InputError.at(clash[1].place or origin, reason, field="answer")
    return "text"


def outside(numbers: Sequence[tuple[int, RawAnswer]], base: int) -> int:
    """How many numbers name no option when the first one has the number ``base``; -1 means no answer."""
    return sum(not 0 <= number - base < len(answer.options) for number, answer in numbers if number >= 0)


def base_of(numbers: Sequence[tuple[int, RawAnswer]]) -> tuple[int, str, str]:
    """The number of the first option, a note, and the doubt where the other number fits as well.

    It is 1 where only that fits and enough answers say so, or where it fits and the options are labelled so.
    """
    known = [(number, answer) for number, answer in numbers if number >= 0]
    if not known:
        return 0, "", ""
    wrong = outside(known, 0), outside(known, 1)
    if len(known) >= ENOUGH and wrong[0] and not wrong[1]:
        return 1, "answers count from 1: none is 0, and some equal the number of options", ""
    labelled = all(list(answer.labels) == [str(i + 1) for i in range(len(answer.options))] for _, answer in known)
    taken = int(labelled and not wrong[1])
    both = sum(1 <= number < len(answer.options) for number, answer in known)
    if wrong[1 - taken] != wrong[taken] or not both:
        return taken, "", ""
    seen = _listed(sorted({number for number, _ in known}))
    doubt = (
        f"answers {seen} are read as counted from {taken}, but {both:,} of {len(known):,} fit counted from {1 - taken} "
        f"too, and would then be other options: if they count from {1 - taken}, add --answer-base {1 - taken}; if from "
        f"{taken}, --answer-base {taken} (answer_base={taken}); an answer 0, or one equal to the number of options, "
        "would distinguish them"
    )
    return taken, "", doubt


def _listed(numbers: Sequence[int], most: int = 6) -> str:
    """``1, 2, 3``, shortened."""
    return ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")
