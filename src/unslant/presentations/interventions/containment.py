"""When a part of what is right is itself an option, and would be called wrong."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from unslant.presentations.interventions.equivalence import WORDS_FOR_NUMBERS, form, number

_JOINED = re.compile(
    r"\s*[;&]\s*|(?<=[A-Za-z)]{3})\s+\+\s+(?=[A-Za-z]{3})|\s*/\s*(?!\d)|,\s+(?:and|or)\s+|,\s+|,(?!\d)"
    r"|\s+(?:and/or|and|or|plus|with|as well as|along with|together with|in addition to|followed by|but also)\s+",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(
    r"^(?:both of|both|either|all of|all|any of|not only|a combination of|combined)\s+", re.IGNORECASE
)
_DENIAL = re.compile(
    r"\b(?:not(?! only)|no|never|none|neither|nor|cannot|non|false|incorrect|opposite|except)\b|n[’']t\b", re.IGNORECASE
)
_ALONE = re.compile(r"\b(?:only|alone|just|solely|exclusively|exactly|merely)\b", re.IGNORECASE)
_QUANTITIES = frozenset("all every each most many several some".split())
"""What holds of more of them holds of fewer: all birds, some birds."""
_LEADS = frozenset(("yes", "no", "true", "false", "valid", "invalid"))
_COMPARED = frozenset("than over under nearly almost least most about above below".split())
_FORMULA = re.compile(r"[*^=<>≤≥≠±×÷∈∉∪∩¬∧∨→⊃≡\\{}|$~_]|\d\s*[-+/]\s*\w|\w\s*[+/]\s*\d|\w\+\w|\w\(")
_BRACKETED = re.compile(r"\s*[\[({<].*[\])}>]\s*", re.DOTALL)
_NUMBER = r"[$€£]?-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)[%°]?"
_BETWEEN = re.compile(
    rf"(?:between )({_NUMBER})([^\d]*?)\s*(?:-|–|to|and)\s*({_NUMBER})(.*)"
    rf"|(?:from )?({_NUMBER})([^\d]*?)\s*(?:-|–|—|to|until|through)\s*({_NUMBER})(.*)",
    re.IGNORECASE,
)
_LARGER = "more|greater|higher|larger|longer|older|later|over|above"
_SMALLER = "less|fewer|lower|smaller|shorter|younger|earlier|under|below"
_BOUNDS = [
    (above, strict, re.compile(pattern, re.IGNORECASE))
    for above, strict, pattern in (
        (True, True, rf"(?:(?:{_LARGER}) than|over|above|beyond|exceeding|after|>)\s*({_NUMBER})(.*)"),
        (True, False, rf"(?:at least|no (?:less|fewer) than|a? ?minimum of|[≥]|>=)\s*({_NUMBER})(.*)"),
        (True, False, rf"({_NUMBER})(.*?)\s*(?:\+|(?:or|and) (?:{_LARGER}))"),
        (False, True, rf"(?:(?:{_SMALLER}) than|under|below|within|before|<)\s*({_NUMBER})(.*)"),
        (False, False, rf"(?:at most|no more than|up to|a? ?maximum of|[≤]|<=)\s*({_NUMBER})(.*)"),
        (False, False, rf"({_NUMBER})(.*?)\s*(?:or|and) (?:{_SMALLER})"),
    )
]
_INFINITY = Decimal("Infinity")
_LITTLE = Decimal("1e-12")
Range = tuple[Decimal, Decimal, tuple[str, ...]]
"""Least and most that is allowed, and the unit."""


def partly_right(right: str, wrong: str) -> bool:
    """Whether a wrong option is part of the right one, or the other way round, so that its being wrong is disputable.

    Two lists ("diaphragm", "diaphragm and pleura") or ranges ("over 10", "over 20") where one contains the other,
    and a wrong option that says what the right one says but less of it ("artery", "cerebral artery"; "it rose", "it
    rose because ..."). Not what denies the rest ("X" and "not X") or rules it out ("X only" and "X and Y"). Found by
    wording: that a dog is an animal is not known here.
    """
    one, other = _range(right), _range(wrong)
    if one is not None and other is not None:
        return _holds(one, other) or _holds(other, one)
    listed = _listed_in(right, wrong) and not _denied(right, wrong) and not _BRACKETED.fullmatch(wrong)
    return listed or _said_by(wrong, right)


def _holds(outer: Range, inner: Range) -> bool:
    (least, most, unit), (low, high, other) = outer, inner
    return (low, high) != (least, most) and least <= low and high <= most and not (unit and other and unit != other)


def _denied(part: str, whole: str) -> bool:
    """Whether a text denies the rest of another, or either denies what the other says."""
    leads = [words[0] if (words := _words(text)) else "" for text in (part, whole)]
    return (
        bool(_ALONE.search(part))
        or len(_DENIAL.findall(part)) != len(_DENIAL.findall(whole))
        or (leads[0] != leads[1] and _LEADS.issuperset(leads))
    )


def _said_by(part: str, whole: str) -> bool:
    """Whether ``whole`` says all that ``part`` says, and more."""
    few, many = _words(part), _words(whole)
    if not few or few == many or form(part) == form(whole) or _denied(part, whole) or _BRACKETED.fullmatch(whole):
        return False
    if _listed_in(part, whole):
        return True
    if _FORMULA.search(part) or _FORMULA.search(whole):
        return False  # a term of a formula is not a part of what it says
    if ("between" in many) > ("between" in few):
        return False
    if [w for w in few if w not in _QUANTITIES] == [w for w in many if w not in _QUANTITIES]:
        return bool(_QUANTITIES.intersection(few)) and bool(_QUANTITIES.intersection(many))
    if any(word.isdecimal() for word in few) and _COMPARED & set(many) - set(few):
        return False
    rest = iter(many)
    return all(word in rest for word in few)  # in this order


def _listed_in(part: str, whole: str) -> bool:
    """Whether all that one text lists is listed by another, in any order, and not all that the other lists."""
    if "between" in whole.casefold():
        return False
    few, many = _items(part), _items(whole)
    listed = len(set(many)) == len(many) > 1 and len(set(few)) == len(few) > 0  # else a sequence: "up, up, down"
    return listed and set(few) < set(many)


@lru_cache(maxsize=200_000)
def _items(text: str) -> list[tuple[str, ...]]:
    plain = _INTRODUCED.sub("", text.strip().rstrip("."))
    return [_words(_INTRODUCED.sub("", item)) for item in _JOINED.split(plain) if item.strip()]


@lru_cache(maxsize=200_000)
def _words(text: str) -> tuple[str, ...]:
    """Words and numbers as in :func:`form`, but for possessives and the capital A that is a name ("vitamin A")."""
    named = re.sub(r"(?<=\w )A\b", "A.", text)
    words: list[str] = re.findall(r"A\.(?=\W|$)|[\w.,%°$€£-]*\w[’']s\b|[^\s,;:!?\"“”()\[\]]+", named)
    bare = [word if word == "A." else " ".join(form(word.rstrip("."))) for word in words]
    single = [word.removesuffix("s") if len(word) > 3 else word for word in bare]
    return tuple(word for word in single if word not in ("a", "an", "the", "both", ""))


@lru_cache(maxsize=200_000)
def _range(option: str) -> Range | None:
    """The range of numbers that an option is, if it is one; a number is the smallest."""
    text = " ".join(WORDS_FOR_NUMBERS.get(word.casefold(), word) for word in option.strip().rstrip(".").split())
    text = re.sub(r"\s*per ?cent\b", "%", text.replace("−", "-"), flags=re.IGNORECASE)
    text = re.sub(r"^(?:about|approximately|around|roughly|~)\s*", "", text, flags=re.IGNORECASE)
    text = re.sub(r"^-\s+", "-", text)
    if match := _BETWEEN.fullmatch(text):
        low, unit, high, after = (group or "" for group in (match.groups()[:4] if match[1] else match.groups()[4:]))
        return _bounded(low, high, unit.strip() or after)
    for above, strict, pattern in _BOUNDS:
        if match := pattern.fullmatch(text):
            found = _bounded(match[1], match[1], match[2])
            if found is None:
                return None
            bound, _, unit_ = found
            return (
                (bound + strict * _LITTLE, _INFINITY, unit_) if above else (-_INFINITY, bound - strict * _LITTLE, unit_)
            )
    match = re.fullmatch(rf"({_NUMBER})(.*)", text)
    return _bounded(match[1], match[1], match[2]) if match else None


def _bounded(low: str, high: str, unit: str) -> Range | None:
    low += "%" if high.endswith("%") and not low.endswith("%") else ""
    least, most = number(low.rstrip("°")), number(high.rstrip("°"))
    if least is None or most is None or least > most or len(unit.split()) > 3 or re.search(r"[\d\\$^=:,]", unit):
        return None
    return least, most, tuple(word.removesuffix("s") for word in form(unit)) if unit.strip() else ()
