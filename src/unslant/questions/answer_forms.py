"""The ways to read one answer: as an index, a letter, a label, an option's text, or a list of those."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from unslant.questions.numbering import is_scheme, plain_name
from unslant.questions.records import parse_list

_DIGITS = 18
LETTER = re.compile(r"(?:(?:option|choice|opt)[ _]?)?[(\[]?([A-Za-z])[)\].:]?", re.IGNORECASE)
_NUMBER = re.compile(r"[(\[]?(\d{1,3})[)\].:]?")
_MARKED = re.compile(
    r"(?:(?i:option|choice|answer)[\s_]+(?P<number>\d{1,3})|[(\[]?(?P<letter>[A-Z])[)\].:])(?:[:.)\s](?P<text>.*))?",
    re.S,
)
_AND = r"(?:and|or|und|oder|et|ou|y|e)\b"
_OTHER = rf"(?:\W|{_AND})*(?:(?i:option|choice|answer)[\s_]*)?{{other}}"
_ANOTHER = rf"(?:[&/,;|]|{_AND}){_OTHER}\b|(?:{_OTHER}(?:[)\].:]|\Z))+\W*\Z"
"""What follows the first mark in "A) and B)", "(A) (B)" and "option 1 and 3", but not in "D) A and B"."""
_BETWEEN = re.compile(r"\s*(?:[,;|、&]|\band\b)\s*")
_SEVERAL = re.compile(rf"[A-Za-z0-9]{{1,2}}(?:{_BETWEEN.pattern}[A-Za-z0-9]{{1,2}})+")
_TOGETHER = re.compile("(?=[A-Z]{2})A?B?C?D?E?F?G?H?I?J?")


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as written in the file, with the options that are needed to read it.

    Attributes:
        value: the file's value; see :func:`parse_answer`.
        options: option texts as in the file.
        shown: option texts as in the question (without numbering).
        labels: label of each option, if the file has labels; else empty.
        place: of the record, for messages.
        marked: whether the options themselves say which are right; then ``value`` has their indices.
        columns: the column of the options, or with commas between them of each.
    """

    value: Any
    options: tuple[str, ...]
    shown: tuple[str, ...]
    labels: tuple[str, ...]
    place: str = ""
    marked: bool = False
    columns: str = ""

    @property
    def is_yes_or_no(self) -> bool:
        """Whether the first of two options is yes, or true: 0 and 1 may then be places, or 1 yes and 0 no."""
        return len(self.shown) == 2 and self.shown[0].casefold() in _YES

    @property
    def items(self) -> list[Any]:
        """The single answers that are to be read; empty when no option is right, or the options say which are."""
        if self.marked:
            return []
        value = self.value[0] if isinstance(self.value, list) and len(self.value) == 1 else self.value
        labelled = all(map(str.isdecimal, self.labels)) and self.labels and not is_scheme(self.labels)
        number = integer(value) if labelled else None  # as ids of the options are, which say where numbers count from
        value = str(value) if isinstance(value, bool) else value if number is None else str(number)
        if isinstance(value, str) and value not in self.labels and not as_text(value, self, 0):
            value = parse_answer(value)
        return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


_YES = {"yes", "true", "correct", "right", "valid", "是", "对", "正确"}
_UNSEEN = dict.fromkeys([0xAD, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A)])
_QUOTES = str.maketrans("’‘“”", "''\"\"")
FLAGS = "is not a list of places; where it is 0 or 1 for each option, give the places of the right ones"


def are_flags(items: Sequence[Any], n_options: int) -> bool:
    """Whether numbers, also as texts, cannot be places: one occurs twice, as of flags 0 and 1, or they are 1 and 0 for
    two options."""
    read = (decimal(item) if isinstance(item, str) else integer(item) for item in items)
    numbers = [number for number in read if number is not None]
    return len(set(numbers)) < len(numbers) or (numbers == [1, 0] and n_options == 2)


def parse_answer(text: str) -> Any:
    """``[0, 2]``, ``A,C``, ``A and C``, ``AC``, ``A C`` or ``0;2`` written as text as a list; other texts as they are.

    Full-width letters and commas, as in Chinese files, are the usual ones; "(2)", "2." and "②" are 2.
    """
    if (items := parse_list(text)) is not None:
        return items
    plain = _plain(text).strip()
    if _SEVERAL.fullmatch(plain):
        return _BETWEEN.split(plain)
    if _TOGETHER.fullmatch(plain.replace(" ", "")):
        return list(plain.replace(" ", ""))
    number = _NUMBER.fullmatch(plain)
    return number[1] if number else plain if LETTER.fullmatch(plain) else text


def _plain(text: str) -> str:
    """The text with full-width letters and the like as the usual ones, without marks of direction or zero width."""
    return unicodedata.normalize("NFKC", text).translate(_UNSEEN)


def integer(item: Any) -> int | None:
    if isinstance(item, int):
        return None if isinstance(item, bool) else item
    return int(item) if isinstance(item, float) and item.is_integer() else None


def decimal(text: str) -> int | None:
    """A whole number written as text; None for any other text, and for numbers too long to be an index."""
    text = text.strip()
    return int(text) if len(text) <= _DIGITS and text.removeprefix("-").isdecimal() else None


def _as_label(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    name, labels = plain_name(item), [plain_name(label) for label in answer.labels]
    return (labels.index(name),) if labels.count(name) == 1 else ()


def _place(index: int, answer: RawAnswer) -> tuple[int, ...]:
    return (index,) if 0 <= index < len(answer.options) else ()


def _as_index(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    number = decimal(item)
    return () if number is None else _place(number - base, answer)


def _as_letter(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    match = LETTER.fullmatch(item.strip())
    return _place(ord(match[1].upper()) - ord("A"), answer) if match else ()


def as_text(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    """All options with this text: identical options are right together."""
    for texts in (answer.options, answer.shown):
        if exact := tuple(i for i, text in enumerate(texts) if text == item):
            return exact
    folded = _folded(item)
    places = tuple(i for i, text in enumerate(answer.shown) if _folded(text) == folded)
    return places if len({answer.shown[i] for i in places}) == 1 else ()  # "co" is neither CO nor Co


def _folded(text: str) -> str:
    """The text in the form used for comparison, without what editors and spreadsheets change."""
    plain = _plain(unescape(text)).translate(_QUOTES)
    return " ".join(plain.split()).casefold().rstrip(".。 ") or plain


def _as_marked(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    """ "option 2: text" (counted from 1), "B) text", "(B) text" or the name of an option's column; nothing where the
    text is that of other options, or names another."""
    if item in (columns := answer.columns.split(",")) and not item.isdecimal():
        return _place(columns.index(item), answer)
    match = _MARKED.fullmatch(item.strip())
    if not match:
        return ()
    place = _place(int(match["number"]) - 1 if match["number"] else ord(match["letter"]) - ord("A"), answer)
    text = (match["text"] or "").strip()
    others = as_text(text, answer, base) if text else place
    # Only letters of options: "B. E. coli" and "A) I think so" name one.
    letters = rf"(?!{match['letter']})[A-{chr(ord('A') + min(len(answer.options), 26) - 1)}]"
    another = _ANOTHER.format(other=letters if match["letter"] else r"(?<=\s)\d{1,3}")
    return place if {*place} & {*others} or not (others or re.match(another, text)) else ()


READERS: dict[str, Callable[[str, RawAnswer, int], tuple[int, ...]]] = {
    "label": _as_label,
    "index": _as_index,
    "letter": _as_letter,
    "text": as_text,
    "marked": _as_marked,
}
