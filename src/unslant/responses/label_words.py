"""The words around labels and inside option texts by which a mention of an option is told from other text."""

from __future__ import annotations

import re

_I = re.IGNORECASE


def any_of(phrases: str) -> str:
    """A pattern for any of the space-separated ``phrases``; ``_`` stands for a space within one."""
    return "(?:" + "|".join(phrase.replace("_", " ") for phrase in phrases.split()) + ")"


_JOINING = (
    "and or because since as is are seems but only alone plus together along so then rather instead not "
    "nor it isn aren wasn weren doesn und oder ist weil et ou est car y o es porque"
).split()
_VERBS = (
    "was were due given with appears looks remains would must should could can cannot does do has will if too also "
    "which for though although while however therefore fits makes holds applies matches works"
).split()
AFTER_ANY_LABEL = frozenset(
    [*_JOINING, *_VERBS, *"correct incorrect right wrong true false answer option choice".split()]
)
AFTER_LABEL = {"A": frozenset([*_JOINING, *_VERBS]), **dict.fromkeys(("a", "I", "i"), frozenset(_JOINING))}
"""Words that may follow a label that is a word or number as well: one that is an English word, and any other."""

LABEL_KEYWORD = re.compile(
    r"(?<!\w)(?:options?|choices?|letters?|alternatives?|markers?|marked|label(?:l?ed)?|#|no\."
    r"|opci[oó]n(?:es)?|optionen|lettre|letra|buchstabe|选项|選項) ?[\"'(\[{<]{0,3}\Z",
    _I,
)
"""What says that a label follows."""
BEFORE_NO_LABEL = re.compile(
    r"\b(?:steps?|(?:sub)?questions?|parts?|figures?|fig|tables?|equations?|eq|sections?|chapters?|pages?|lines?"
    r"|vitamins?|hepatitis|types?|class|classes|phases?|groups?|grades?|stages?|plans?|points?|cases?|premises?|sent"
    r"|sentences?|paragraphs?|rules?|facts?|lemma|theorem|laws?|articles?|amendments?|world war|level|version|day|year"
    r"|about|approximately|around|at least|at most|than|exactly) ?\Z",
    _I,
)
"""What says that the letter or number that follows is no label."""

ORDINALS = {
    word: i
    for words in ("first second third fourth fifth sixth seventh eighth", "1st 2nd 3rd 4th 5th 6th 7th 8th")
    for i, word in enumerate(words.split())
}
_PLACE = f"{'|'.join(ORDINALS)}|last"
_PLACED = r"(?:(?:listed|given|answer) )?(?:options?|choices?|alternatives?|answers?|ones?)\b(?! (?:is|was) that)"
ORDINAL = re.compile(
    rf"\b(?:(?P<place>{_PLACE}) {_PLACED}|the (?P<alone>{_PLACE})(?=[.,;!]|\n|\Z)"
    rf"|(?P<end>first|last) (?P<many>two|three|four)(?: {_PLACED}|(?= (?:are|is|of)\b|[.,;!]|\n|\Z)))",
    _I,
)
"""Options named by their place: "the second option", "the last two"."""

COMMON_WORDS = frozenset(
    "true false correct incorrect right wrong yes no none neither both all any some each every other others another "
    "unknown uncertain answer answers option options choice choices question questions statement statements "
    "above below following given these those this that them they it its their there here what which who when where "
    "with from into onto over under about than then also only just not never always very more most less least many "
    "much such same different one two three four five six seven eight nine ten first second third last step steps "
    "reason because since therefore thus hence however is are was were be been being have has had do does did can "
    "could will would should may might must shall and or but if of in on at to for by as so up out off".split()
)
"""Words that say nothing of an option when met outside an answer."""
SKIPPED = frozenset(
    "my your his her its our their it they them is are was were be been some any would will do does did very".split()
)
"""Words that a reply may put into an option's text."""
NUMBER_GOES_ON = re.compile(r" ?(?:[%^*/×·=+]|\d|[-.,]\d|(?:hundred|thousand|million|billion|percent)\b)", _I)
ENDS = re.compile(r"[\"')\]]{0,2}(?:[.,;!?⟧\n]|\Z)")
"""What follows a common word that is meant as an option's text."""
NO_OPTION_AHEAD = re.compile(
    r"(?:no|not|all|any) (?:single |one |other )?(?:options?|choices?|answers?|correct|right|true|of)\b", _I
)
""" "No option", where "No" is one."""

_IS_RIGHT = r"(?: (?:is|are) (?:correct|right|true)\b)?"
_OF_THEM = r"(?: (?:of )?(?:the|these|those|them)\b(?: (?:above|options?|choices?|answers?|given|listed)\b)*)?"
NONE_TEXT = re.compile(rf"(?:none|neither){_OF_THEM}{_IS_RIGHT}", _I)
"""An option that says that no other is right."""
NONE_GOES_ON = re.compile(_OF_THEM + _IS_RIGHT, _I)
ALL_TEXT = re.compile(rf"all (?:of )?(?:the )?(?:above|these|them|options)(?: options)?{_IS_RIGHT}", _I)
"""An option that says that every other is right."""
BOTH_TEXT = re.compile(r"(?:both|all|neither|none|either)\b", _I)
"""How an option begins that speaks of others."""
