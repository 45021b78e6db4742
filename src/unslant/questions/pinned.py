"""Options that speak about other options ("all of the above", "both A and C") and so must keep their place.

Found by wording alone. The patterns are kept narrow: an option that merely contains such words ("vitamins A and D",
"both parents", "I and III only" where the stem lists I to III) is left free to move.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NEITHER = r"(?:neither|nither|nether)"
_QUANTITY = (
    rf"(?:all|none|any|both|{_NEITHER}|either|each|every(?:one)?|some|most|more than one|(?:a )?combinations?"
    r"|(?:any )?(?:one|two|three|four|\d)(?: or combinations?)?)"
)
_ANSWER = r"(?:options?|choices?|answers?|alternatives?|responses?)"
_NOUN = rf"(?:{_ANSWER}|statements?|items?)"
_SHOWN = r"(?:given|listed|provided|mentioned|shown|stated|described|here|offered)"
_TRUE = r"(?:correct|true|right|valid|false|incorrect|wrong|possible|applicable|appropriate)"
_VERDICT = rf"(?:(?:are|is|were|was)(?: \w+)? {_TRUE}|apply|applies|(?:about )?equally)"
_GOES_ON = r"(?: ?[,;:(–-]| (?:are|is|were|was|will|would|can|could|may|do|does|for|except|but|because|produces?)\b)"

_PLACED = re.compile(
    rf"(?:{_QUANTITY} (?:of )?(?:the |these )?(?:\w+ )?(?:above|aforementioned|preceding|foregoing)\b.*"
    rf"|{_QUANTITY} (?:of )?(?:the |these )?{_NOUN} (?:{_SHOWN} )?above\b.*"
    rf"|(?:.* )?all (?:of )?the \w+ {_SHOWN} above"
    rf"|(?:the )?above (?:all|both|two|three|{_NOUN})\b.*)"
)
"""Speaks of what stands *above* it."""
_UNPLACED = re.compile(
    rf"{_QUANTITY} of these{_GOES_ON}.*"
    rf"|(?:all|none) (?:of )?{_ANSWER} (?:{_SHOWN}|(?:{_SHOWN} )?{_VERDICT})"
    rf"|{_QUANTITY} (?:of (?:these|them|those|the (?:other )?{_NOUN})|the (?:other )?{_NOUN}"
    rf"|(?:of )?(?:these|those) {_NOUN}|(?:of )?the others?|of the following)(?: {_SHOWN})?(?: {_VERDICT})?"
)
"""Speaks of the other options wherever they stand."""
_BARE = re.compile(rf"(?:all|none|both|either|{_NEITHER})")
"""Speaks of the other options when it closes the list, unless it is a quantity."""
_QUANTITIES = {"some", "most", "many", "few", "one", "two", "three", "0", "1", "2", "3"}

_LETTER = r"\(?[a-z][.)]?\)?"
_NUMBER = r"\(?\d{1,2}\)?"
_LEAD = rf"(?P<lead>(?:both|either|{_NEITHER}|only|all of|all) (?:of )?(?:the )?)?(?:the )?"
_TAIL = rf"(?:(?: (?P<tail>only|both|together|above|alone|(?:both )?{_VERDICT}))| ?[;:,(].*)?"


def _naming(item: str) -> re.Pattern[str]:
    """A list of two or more items ("a and c", "a, b & d"), each perhaps introduced by a word such as "option"."""
    one = rf"(?:{_NOUN}:? )?{item}"
    return re.compile(rf"{_LEAD}(?P<names>{one}(?: ?(?:, ?and|, ?or|,|&|\+|/|and|or|nor) ?{one})+){_TAIL}")


_NAMES_LETTERS = _naming(_LETTER)
_NAMES_NUMBERS = _naming(_NUMBER)
_ONE_NAME = re.compile(rf"(?:only )?(?:{_NOUN} )?(?:{_LETTER}|{_NUMBER}|\(?[ivx]+\)?)(?: only| alone)?")
"""A bare name ("A only", "II", "3"): such an option names things listed in the stem."""
_EXCEPT = re.compile(r"(?:all|none|any)\b.{0,40}\b(?:except|but)(?: for)? (?:option |choice )?\(?([a-z])\)?")


def find_pinned(options: Sequence[str], stem: str = "") -> tuple[int, ...]:
    """Indices of the options that must keep their place, ascending; empty where no option speaks about another.

    An option that names others by letter or number pins itself and those it names. An option that speaks of what
    stands above it pins itself, and, where options that could move stand below it, all those above it too.

    Args:
        options: option texts without numbering.
        stem: the question; letters and numbers that it itself lists ("(a) ... (b) ...") are not option names.
    """
    texts = [_normal(option) for option in options]
    placed = {i for i, text in enumerate(texts) if _PLACED.fullmatch(text)}
    pinned = placed | {i for i, text in enumerate(texts) if _UNPLACED.fullmatch(text)}
    pinned |= _closing(texts, pinned, stem)
    for i, text in enumerate(texts):
        named = _named(text, i, texts, stem)
        if named:
            pinned |= {i, *named}
    for i in placed:
        if any(j not in pinned for j in range(i + 1, len(texts))):
            pinned |= set(range(i))
    return tuple(sorted(pinned))


def _normal(option: str) -> str:
    text = re.sub(r"\s+", " ", option).strip().lower()
    return text.strip(" .;:!\"'“”").removeprefix("- ")


def _closing(texts: Sequence[str], pinned: set[int], stem: str) -> set[int]:
    """Bare "Both", "None", ... at the end of the list, where only other referring options follow."""
    found: set[int] = set()
    if "how many" in stem.lower() or _QUANTITIES & set(texts):
        return found
    for i in range(len(texts) - 1, 0, -1):
        if _BARE.fullmatch(texts[i]):
            found.add(i)
        elif i not in pinned:
            break
    return found


def _named(text: str, own: int, texts: Sequence[str], stem: str) -> frozenset[int]:
    """Indices of the options that ``text`` names by letter or number; empty if it names none."""
    by_number = False
    if match := _NAMES_LETTERS.fullmatch(text):
        names = re.findall(r"\b[a-z]\b", match["names"])
        indices = [ord(name) - ord("a") for name in names]
    elif match := _EXCEPT.fullmatch(text):
        names = [match[1]]
        indices = [ord(match[1]) - ord("a")]
    elif match := _NAMES_NUMBERS.fullmatch(text):
        by_number = True
        names = re.findall(r"\d+", match["names"])
        indices = [int(name) - 1 for name in names]
        if not (match["lead"] or match["tail"] or re.search(_NOUN, match["names"])):
            return frozenset()
    else:
        return frozenset()
    if own in indices or not all(0 <= i < len(texts) for i in indices):
        return frozenset()
    if any(_is_name(texts[i], by_number) for i in indices) or any(_listed_in(stem, name) for name in names):
        return frozenset()
    return frozenset(indices)


def _is_name(text: str, by_number: bool) -> bool:
    """Whether an option only names things, so that a name used elsewhere cannot mean that option."""
    patterns = (_ONE_NAME, _NAMES_LETTERS, _NAMES_NUMBERS)
    return any(pattern.fullmatch(text) for pattern in patterns) or (by_number and not re.search(r"[a-z]{2}", text))


def _listed_in(stem: str, name: str) -> bool:
    """Whether the stem itself lists something under ``name``: "(a) ...", "b. ...", "Statement 1 | ..."."""
    marked = rf"(?:(?:^|[\s(,;:]){re.escape(name)}\s?[).:\]|]|statement {re.escape(name)}\b)"
    return re.search(marked, stem, re.IGNORECASE) is not None
