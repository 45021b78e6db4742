"""How answers are put into words, in any language: the characters that replace mentions of an option in a collapsed
reply (:mod:`collapse`), and parts of regular expressions over such replies, in which runs of spaces are one space. The
words come from :mod:`cues`.

Every repetition is bounded: the time a reply takes must grow with its length and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum, auto

from unslant.replies.cues import expand

# A character of Unicode's private plane says both which option is meant and how: a rule's character class then selects
# kinds of mention, and no reply can hold such a character by itself (:func:`~unslant.replies.text.plain` removes them).
_FIRST, _STRIDE = 0xF0000, 0x1000


class Kind(IntEnum):
    """How an option is mentioned; the last two are what masks turn a mention into."""

    LABEL = 0  # by a label marked as one
    BARE = auto()  # by a letter or number that may be a label
    BOTH = auto()  # by its label and its text
    TEXT = auto()  # by its text
    WORD = auto()  # by its text, where that is a common word or a number
    AMBIGUOUS = auto()  # by what is one option's label and another's text
    CONFLICT = auto()  # by a label with another option's text
    WRONG = auto()  # called wrong
    MASKED = auto()  # not asserted


def characters(*kinds: int) -> str:
    """A regular expression for any one mention of these kinds."""
    ranges = (f"{chr(_FIRST + k * _STRIDE)}-{chr(_FIRST + (k + 1) * _STRIDE - 1)}" for k in kinds)
    return f"[{''.join(ranges)}]"


ONE = characters(*range(Kind.WRONG))
"""A mention that no mask has touched."""
LABELLED = characters(Kind.LABEL, Kind.BARE, Kind.BOTH, Kind.AMBIGUOUS, Kind.CONFLICT)
"""One of a label."""
ANY = characters(*Kind)
NOT_ANY = ANY[1:-1]
"""For use in a negated class: ``[^.\\n{NOT_ANY}]``."""


def mention(option: int, kind: int) -> str:
    """The character for a mention of an option."""
    return chr(_FIRST + kind * _STRIDE + option)


def kind_of(character: str) -> Kind:
    """How the option is mentioned."""
    return Kind((ord(character) - _FIRST) // _STRIDE)


def option_of(character: str) -> int:
    """Index of the option that a mention is of."""
    return (ord(character) - _FIRST) % _STRIDE


def options_of(characters: Iterable[str]) -> frozenset[int]:
    """The options that mentions are of."""
    return frozenset(map(option_of, characters))


def mentions(text: str, *kinds: int) -> list[str]:
    """The mentions in a collapsed text, of these kinds or (by default) of all that no mask has touched."""
    return re.findall(characters(*kinds) if kinds else ONE, text)


PARTS = {
    "one": ONE,
    "labelled": LABELLED,
    "any": ANY,
    "not_any": NOT_ANY,
    "by_text": characters(Kind.TEXT, Kind.WORD),
    "by_word": characters(Kind.WORD),
    "by_both": characters(Kind.BOTH),
    "marked": characters(Kind.LABEL, Kind.BOTH),
    "wrong": characters(Kind.WRONG),
    "masked": characters(Kind.MASKED),
    # Where a sentence or clause begins, and where it ends.
    "begin": r"(?:^|(?<=[.!?:)] )|(?<=\n))",
    "end": r"(?= ?(?:[.!)⟧]|\n|\Z))",
    # Lists. A subject is one mention, or several joined, before a verb.
    "joined": (r"(?: ?(?:[,/&+|、]|{^and$}) ?(?:(?:{^and$}|&) )?(?:{list_word} ){0,2}| (?={labelled})|(?={labelled}))"),
    "subject": r"{one}(?:{joined}{one}){0,25}",
    # The same as an answer: no member is the subject of what follows; further ones may be on lines of their own.
    "listed": (
        r"{one}(?:(?! ?[,;] ?(?:{plain_and} )?{subject} {subject_verb}\b)(?:{joined}| ?; ?(?:{plain_and} )?)"
        r"{one}(?! {being_verb}\b)){0,25}(?:[.,;-]{0,3} ?\n ?{one}(?= ?[.,;:-]{0,3} ?(?:\n|\Z|⟧))){0,25}"
    ),
    # The same where "or" joins as well.
    "either": r"{one}(?:(?:{joined}|[ ,]{0,3}{^or_nor$} ){one}){0,25}",
    "said": r"(?P<said>{either})",
    # None and all.
    "option": r"(?:(?:{option_adjective} ){0,4}{option_noun}\b)",
    "right": r"(?:(?:{right_adverb} )?{right_word})",
    "named": r"(?: ?\(?(?:{either})\)?)?",
    "is_none": r"(?:(?:{none}|\{\s{0,3}\}|\[\s{0,3}\]|∅|\\emptyset|{none_of_them})(?!\w))",
    "is_all": r"(?:{all}(?!\w)(?!{all_goes_on}))",
    # Explicit answers: an answer in the place where one is expected.
    "bracket": r"[\s:=,\"'(\[{<>⟦→-]{0,8}",
    "slot": (r"{bracket}(?:{filler}\b[ ,:]{0,3}){0,12}{bracket}(?P<slot>{is_none}|{is_all}|{listed})"),
    "field_cue": (
        r"(?:⟦ ?|{begin}[ (\[]{0,3}(?:{before_field}[ ,]{1,2}){0,5}{field}(?: ?\({plural}\)|{field_part})?"
        r" ?(?:[:=]|->|→|-(?= )|{field_is}))"
    ),
    "gap": (r"(?:(?:(?!\b{clause_start}\b)[^.,;:\n?!{not_any}]){0,80}?|,[^.;:\n?!{not_any}]{0,60},)"),
    "sentence_cue": (
        r"(?:\b{answer_noun}(?:\({plural}\))?{gap} ?(?:\b{copula}\b|=|->|→)"
        r"|\b(?:{best_word} {answer_noun}|{answer_noun}[^.,;:\n{not_any}]{0,60} {right_or_best})"
        r"[^.,;:\n?!{not_any}]{0,60}:"
        r"|\b{there_is}:|\b{the_correct}(?= {labelled})|{^is_correct}(?= {article}? ?{labelled})|{^cue})"
    ),
    "if_forced": r" {forced}\b[^.,;:\n]{0,40}(?:[,:]|(?= {chooser}\b))",
    "choosing": (
        r"(?:\b{chooser}\b(?: {before_choosing}){0,8} {chooses}{that_it_is}\b|(?:{begin}|, )(?:{therefore} )?{choose}\b"
        r"|\b{if}{if_forced}|{^i_choose$})"
    ),
}
"""Parts of rules that several rules share."""


def pattern(template: str, flags: int = re.IGNORECASE, parts: Mapping[str, str] | None = None) -> re.Pattern[str]:
    """A rule's regular expression, with its cues and parts written out; see :mod:`unslant.replies.cues`.

    Args:
        parts: further parts, of one module.

    Example:
        >>> pattern("{^therefore$} (?P<option>{one})").search("so it is") is None
        True
    """
    return re.compile(expand(template, {**PARTS, **(parts or {})}), flags)


BEGIN_OF_LINE = re.IGNORECASE | re.MULTILINE
REPLACED = pattern(
    r"(?:{^replaced}|(?:\A|(?<=[.!…;。！；\n(])|(?<=[.!…;] )){retraction_word}(?=[,:!、-]| -)"
    r"|\b{changing} (?:{changed}|{changed_from}[ \"'(]{0,3}{any}[\"')]{0,2})[^.!?\n{not_any}]{0,30}? {changed_into}\b)"
    r"(?:[^.?\n{not_any}]{0,60}[.!…。]{1,3} ?)?[^.?!\n{not_any}]{0,60}"
    r"(?=[ \"'(\[⟦]{0,3}{one}(?![^.\n{not_any}]{0,12}\b{also}\b))",
)
"""Words that put the answer that follows in the place of the one before: "no, B", "scratch that: B", "I meant B"."""
RETRACTED = pattern(r"{^retracted}|(?:^|[.!?\n-] ?){wait}\b", BEGIN_OF_LINE)
"""Words that take back what was said before."""
REFUSAL = pattern("{^refusal}")
"""Signs that the model declined; looked for only where no answer was found."""
CALLED_RIGHT = pattern(
    r"(?P<said>{subject})[ )]{0,2}(?:(?:[:(-]|->|→) ?{it_is}?|\. (?={says_right}[ .!]{0,3}(?:\n|\Z))"
    r"| (?={judged_right}(?:[,;.!]|\n|\Z))|\.? ?(?={marked_correct})|\? ?|{called_is}| (?:{called_verb} ){1,2})"
    r"(?:{called_adverb} ?){0,3}{called_right}(?!\w)(?!{called_right_if})"
)
"""Options that are called right, one by one or together."""
HEDGED_MORE = pattern("{any},? {and_possibly}{any}")
"""A further option that is only considered."""
