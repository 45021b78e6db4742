"""When two option texts say the same: case, punctuation and the way numbers are written set aside."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation
from functools import lru_cache

WORDS_FOR_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
}
_SIGNS = str.maketrans({"−": "-", "–": "-", "⁄": "/"})
_ARTICLES = {"a", "an", "the"}
_TOKEN = re.compile(r"(?<![\w.])-?(?:\d[\d,]*\.?\d*|\.\d+)(?:/\d+)?%?|\w+|[-+*/^=<>≤≥≠±×÷∈∉∪∩¬∧∨→]")


@lru_cache(maxsize=200_000)
def form(text: str) -> tuple[str, ...]:
    """What is left of a text when case, punctuation, articles and number format are set aside, as tokens.

    ``"$1,000.00"``, ``"1000"`` and ``"The 1000."`` have one form, and so have ``"1/2"``, ``"0.5"`` and ``"50%"``.
    A text of nothing else ("?", "A") is its own form.
    """
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS).casefold()
    tokens = [_token(token) for token in _TOKEN.findall(plain)]
    return tuple(token for token in tokens if token not in _ARTICLES) or (plain.strip(),)


def _token(token: str) -> str:
    if not any(character.isdecimal() for character in token):
        return WORDS_FOR_NUMBERS.get(token, token)
    value = number(token)
    return token if value is None else str(value)


def number(text: str) -> Decimal | None:
    """The number a text is, if it is nothing else: ``"1,080"``, ``"$3.50"``, ``"-2"``, ``"1/2"``, ``"50%"``."""
    bare = unicodedata.normalize("NFKC", text).translate(_SIGNS).replace(",", "").strip().strip("$€£").strip()
    percent = bare.endswith("%")
    above, _, below = bare.rstrip("%").rstrip(".").partition("/")
    try:
        value = Decimal(above)
        if below:
            value = value / Decimal(below)
    except (InvalidOperation, ZeroDivisionError):
        return None
    if not value.is_finite():
        return None
    value = (value / 100 if percent else value).normalize()
    # normalize() writes 1000 as 1E+3
    return value.quantize(Decimal(1)) if value == value.to_integral_value() and value.adjusted() < 25 else value


def equivalent(a: str, b: str) -> bool:
    """Whether two texts differ at most in case, punctuation, articles and number format."""
    return form(a) == form(b)


def overlapping(a: str, b: str) -> bool:
    """Whether all words of one text occur in the other ("Paris" and "Paris, France")."""
    first, second = set(form(a)), set(form(b))
    return first <= second or second <= first


def identical(a: str, b: str) -> bool:
    """Whether two texts are the same to the eye: equal but for the white space around them."""
    return a.strip() == b.strip()
