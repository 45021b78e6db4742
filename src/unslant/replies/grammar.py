"""How answers are put into words, in any language: parts of regular expressions over collapsed replies
(:mod:`collapse`), in which runs of spaces are one space. The words come from :mod:`cues`.

Every repetition is bounded: the time a reply takes must grow with its length and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unslant.replies.cues import expand
from unslant.replies.mentions import ANY, LABELLED, NOT_ANY, ONE, Kind, characters

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
    # The same as an answer: no member is the subject of what follows; further ones may stand on lines of their own.
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
    # Explicit answers: what stands where an answer is expected.
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
    "if_forced": r" {forced}\b[^.,;:\n]{0,40}[,:]",
    "choosing": (
        r"(?:\b{chooser}\b(?: {before_choosing}){0,8} {chooses}{that_it_is}\b|{begin}(?:{therefore} )?{choose}\b"
        r"|\b{if}{if_forced}|{^i_choose$})"
    ),
}
"""Parts of rules that stand in more than one."""


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
RETRACTED = pattern(r"{^retracted}|(?:^|[.!?\n-] ?){wait}\b", BEGIN_OF_LINE)
"""Words that take back what was said before."""
REFUSAL = pattern("{^refusal}")
"""Signs that the model declined; looked for only where no answer was found."""
CALLED_RIGHT = pattern(
    r"(?P<said>{subject})[ )]{0,2}(?:(?:[:(-]|->|→) ?{it_is}?|\. (?={says_right}[ .!]{0,3}(?:\n|\Z))"
    r"|\.? ?(?={marked_correct})|\? ?|{called_is}| (?:{called_verb} ){1,2})"
    r"(?:{called_adverb} ?){0,3}{called_right}(?!\w)(?!{called_right_if})"
)
"""Options that are called right, one by one or together."""
HEDGED_MORE = pattern("{any},? {and_possibly}{any}")
"""A further option that is only considered."""
