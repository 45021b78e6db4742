"""What wording alone shows: when two option texts say the same, or one a part of the other, and what a stem can take.

Of two texts, case, punctuation and the way numbers are written are set aside. What is not sure is decided on the safe
side: a question is left without an intervention rather than given one that changes its right answer.
"""

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
    """Whether another text lists all that one text lists, in any order, and more."""
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
            if (single := _bounded(match[1], match[1], match[2])) is None:
                return None
            bound, _, words = single
            return (
                (bound + strict * _LITTLE, _INFINITY, words) if above else (-_INFINITY, bound - strict * _LITTLE, words)
            )
    match = re.fullmatch(rf"({_NUMBER})(.*)", text)
    return _bounded(match[1], match[1], match[2]) if match else None


def _bounded(low: str, high: str, unit: str) -> Range | None:
    low += "%" if high.endswith("%") and not low.endswith("%") else ""
    least, most = number(low.rstrip("°")), number(high.rstrip("°"))
    if least is None or most is None or least > most or len(unit.split()) > 3 or re.search(r"[\d\\$^=:,]", unit):
        return None
    return least, most, tuple(word.removesuffix("s") for word in form(unit)) if unit.strip() else ()


_LIST = re.compile(
    r"\b(?:which|whichever|following|follows|below|above|these|those|listed|options?|choices?|select|choose|pick|except)\b"
    r"|\?.*\?",
    re.IGNORECASE | re.DOTALL,
)
"""A stem that speaks of its options, or asks twice, cannot be put with one option alone."""
_EXCEPTION = re.compile(
    r"\b(?:not|never|no|none|neither|nor|without|cannot|except(?:ions?)?|excluding|excludes?|but|least|false|untrue|"
    r"incorrect(?:ly)?|wrong|unlikely|inconsistent|unrelated|irrelevant|different|differs?|odd|other than|opposite|"
    r"contraindicat\w*|fails?|lacks?|inappropriate|unacceptable|impossible|invalid|omit(?:s|ted)?|avoid(?:s|ed)?|"
    r"excluded|unable|rejected|denied|oppose[sd]?|disagree(?:s|d)?)\b|n[’']t\b",
    re.IGNORECASE,
)
"""An unrelated option may be right where an exception is asked for ("which is NOT a mammal?")."""
_COMPARING = frozenset(
    "best better worse worst most more less least fewer fewest greater first last next primary primarily main mainly "
    "chief chiefly major maximum minimum larger smaller higher lower longer shorter faster slower older younger "
    "stronger weaker optimal preferred ideal".split()
)
_NOT_SUPERLATIVE = frozenset(
    "test rest west forest interest request suggest nest chest harvest invest guest contest protest honest modest "
    "digest arrest latest manifest quest crest unrest midwest conquest ingest infest jest pest vest zest northwest "
    "southwest budapest everest ernest retest bequest dishonest tempest ballest attest divest molest".split()
)
_NO_COMPARISON = re.compile(
    r"\b(?:(?:most|more) (?:likely|probabl[ye]|often|commonly|people|of)|(?:more|less) than"
    r"|at (?:least|most|first|last)|last (?:year|week|month|night)"
    r"|best (?:describes?|described|explains?|explained|defin\w+|represents?|characteri[sz]\w+|known|completes?|matches"
    r"|illustrates?|friends?))\b",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"(?:none|neither|nil|nothing|there (?:is|are) no"
    r"|no (?:one|answer|option|choice|correct|right|such|error|change|effect)s?)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_GENERIC_OPTIONS = frozenset(
    form(text)
    for text in (
        "yes", "no", "true", "false", "unknown", "uncertain", "maybe", "sometimes", "always", "never", "often",
        "correct", "incorrect", "right", "wrong", "it depends", "depends", "both", "all", "none", "neither", "any",
        "other", "not enough information", "cannot be determined", "cannot be concluded", "don't know", "I don't know",
        "I have no comment", "no comment", "same", "no change", "nothing", "everything", "anything", "everyone",
        "nobody", "somewhere", "everywhere", "anywhere", "not sure", "no effect", "increase", "decrease", "increases",
        "decreases", "more", "less", "high", "low",
    )
)  # fmt: skip
_GENERIC_START = re.compile(
    r"(?:all|none|both|neither|either|any|some|each|only|it|they|he|she|this|that|these|those|i|ii|iii|iv|v|one|two|three)\b"
    r"|.*\b(?:above|below|following|options?|answers?|choices?|statements?)\b"
    r"|(?:it|there) (?:is|are)\b|cannot\b|not\b|no\b|yes\b|true\b|false\b",
    re.IGNORECASE | re.DOTALL,
)
_EMPTY_WORDS = frozenset(
    "which what who whom whose when where why how of following these those is are was were be been being do does "
    "did can could may might will would shall should must has have had to in on at by for from with about as and "
    "or if that this it its there their they one ones statement statements sentence sentences true false correct "
    "incorrect right wrong not except best most least likely answer answers option options choice choices choose "
    "select pick above below given conclude concluded conclusion infer inferred concerning regarding according "
    "passage text question questions item items example examples some any all each every also then than so such "
    "you your we our i he she valid complete blank blanks fill describe describes mean means".split()
)


@lru_cache(maxsize=100_000)
def content_words(text: str) -> frozenset[str]:
    """The words of a text that carry its subject, plurals as singulars."""
    return frozenset(
        token.removesuffix("s") if len(token) > 3 else token
        for token in form(text)
        if token not in _EMPTY_WORDS and (len(token) > 1 or token.isdigit())
    )


@lru_cache(maxsize=100_000)
def generic(stem: str) -> bool:
    """Whether a stem says so little that it would fit any options ("Which of the following is true?")."""
    return len(content_words(stem)) < 2


def _asking(stem: str) -> str:
    """The part of a stem that asks: its last two sentences, without the story before them."""
    return " ".join(re.split(r"(?<=[.?!])\s+", stem.strip())[-2:])


def speaks_of_options(stem: str) -> bool:
    """Whether a stem cannot be understood with one option alone (P4, 5.1: "which", "following")."""
    return bool(_LIST.search(stem))


def asks_for_exception(stem: str) -> bool:
    """Whether an unrelated option might be right because the stem asks for what does *not* fit."""
    return bool(_EXCEPTION.search(_asking(stem)))


def compares(stem: str) -> bool:
    """Whether the right option is the best of those shown, so that without it the next best would be right."""
    words = re.findall(r"[a-z]+", _NO_COMPARISON.sub(" ", _asking(stem)).casefold())
    return any(
        word in _COMPARING or (word.endswith("est") and len(word) > 4 and word not in _NOT_SUPERLATIVE)
        for word in words
    )


def says_none(option: str) -> bool:
    """Whether an option itself says that no option is right, or could be read so."""
    return bool(_NONE.fullmatch(option.strip()))


@lru_cache(maxsize=200_000)
def stands_alone(option: str) -> bool:
    """Whether an option names something by itself, so that it can be shown with another question."""
    text = option.strip()
    return bool(text) and form(text) not in _GENERIC_OPTIONS and not _GENERIC_START.match(text)
