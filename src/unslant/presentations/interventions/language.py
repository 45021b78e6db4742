"""What a question's wording says about which interventions it can take: by wording alone, and on the safe side."""

from __future__ import annotations

import re
from functools import lru_cache

from unslant.presentations.interventions.equivalence import form

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
