"""Turns mentions that a reply does not assert into masked ones, before any rule reads it.

A mention is denied ("not B", "B cannot be right"), hedged ("maybe B", "A or B"), supposed ("if B were true"), asked
about ("B?"), conceded ("while B may seem right, ...") or reported ("at first I thought B").
"""

from __future__ import annotations

import re

from unslant.responses.answer_patterns import (
    BEGIN,
    EITHER,
    FORCED,
    MARKED_WRONG,
    NONE_STATED,
    SUBJECT,
)
from unslant.responses.label_words import any_of
from unslant.responses.mentions import (
    BARE,
    LABEL,
    MASKED,
    NOT_ANY,
    ONE,
    TEXT,
    WORD,
    WRONG,
    characters,
    mention,
    option_of,
)

_I = re.IGNORECASE
_SAID = f"(?P<said>{EITHER})"
_OPTION = r"(?:options?|choices?|answers?|alternatives?|statements?|ones)"
_ADVERBS = any_of(
    "also all both each clearly definitely probably therefore simply the an? obviously completely entirely partially "
    "just likely either thus so quite too in_fact certainly necessarily factually"
)
_BE = (
    "(?:"
    + any_of(
        "is are was were seems? looks? appears? can could would will must do does did should may might be to_be been "
        "has have ist sind est es son sont"
    )
    + r"\b ?)"
)
_NOT = r"(?:not|n't|cannot|never|nicht|no|ne|pas|(?:ca|is|are|was|does|do|wo|would|could)n't)"

_DENIED_BEFORE = re.compile(
    r"(?:\bnot(?! (?:only|just|merely|simply)\b)|n't|\b(?:cannot|never|nor|neither|rather than|instead of"
    r"|except(?: for)?|excluding|other than|unlike|apart from|eliminat(?:e|es|ed|ing)\b|rul(?:es?|ed|ing) out"
    r"|avoid(?:s|ed|ing)?|reject\w{0,4}|discard\w{0,4}|dismiss\w{0,4}|exclud\w{1,4}|cross\w{0,3} out|without|nicht"
    r"|pas|no es|n'est pas)"
    r"|不是|不选|排除)(?: ?(?:think|believe|choose|pick|select|go with|consider) )?(?: ?"
    + any_of(
        "be being the a an all any of either both options? choices? answers? letter by that it is it's as correct "
        "right true best only : really actually"
    )
    + rf"(?!\w)){{0,5}} ?⟦?{_SAID}",
    _I,
)
"""Options that are said not to be meant: "not B", "rather than A or C"."""
_WRONG_BEFORE = re.compile(
    r"\b(?:incorrect|wrong|false|eliminated|falsch\w{0,2}|incorrect[ao]s?|faux|fausse)(?: "
    rf"{_OPTION} ?(?:(?:is|are|was|were|include|being|would be|like|such as|ist|sind|est|sont|es|son)\b|[:,(])?"
    rf"| ?[:(]| (?=\S)) ?(?:{_ADVERBS} )?{_SAID}"
    rf"|\b(?:other|remaining)s?(?: {_OPTION})? ?(?:(?:is|are|like|such as)\b|[:(])? ?(?P<others>{EITHER})",
    _I,
)
"""Options that are called wrong: "the incorrect options are B, C and D"."""
_WRONG_AFTER = re.compile(
    rf"{_SAID}(?:[\])}}:]{{0,2}}(?:, (?=(?:is|are|was|were|which|that|it|this)\b))? ?(?:[(-] ?)?"
    rf"(?:(?:which|that|it|this) )?(?:{_BE}{{0,3}}(?:{_ADVERBS} ){{0,3}}"
    + any_of(
        "wrong incorrect false untrue invalid inaccurate irrelevant inappropriate unsuitable implausible impossible "
        "mistaken ruled_out excluded eliminated rejected discarded out unrelated misleading no falsch faux fausse "
        "fals[ao]"
    )
    + rf"(?!\w)|{_BE}{{0,2}}{_NOT} (?:be |been |to be |actually |really |quite |necessarily |as |entirely |so )*"
    r"(?:the |an? |our |my )?(?:most |more |best |only |good |likely |correct |right |suitable |appropriate |valid "
    r"|final )*"
    + any_of(
        "correct right true valid accurate answers? options? choices? fit apply match work hold make_sense suitable "
        "likely appropriate applicable best the_best possible relevant plausible supported mentioned stated richtig "
        "korrekt correct[ao]s? bonne "
        "it this_one"
    )
    + r"(?!\w)(?! (?:only|just)\b))| ?\? ?(?:no|nope|wrong|incorrect)\b|\. \(incorrect\)|是?(?:错误|不正确|错的|不对))",
    _I,
)
"""Options that are called wrong: "B is wrong", "C cannot be right", "D: incorrect"."""
_TEXT_DENIED = re.compile(
    rf"{_SAID} ?(?:,? ?(?:which|who|that) )?{_BE}{{1,2}}(?:{_ADVERBS} )?{_NOT}\b"
    rf"|(?P<before>{EITHER})[^.\n{NOT_ANY}]{{0,80}}[;,.] (?:but |and |however,? |so |therefore |thus |hence )?"
    r"(?:that|this|it|which|these|they)(?:'s| is| was| does| are| do)(?: not|n't| wrong| incorrect| false)\b",
    _I,
)
"""Option texts of which something is denied: "Paris is not in Norway"."""

_LABEL_DENIED = re.compile(
    rf"{_SAID}[\])]? {_BE}{{1,2}}(?:{_ADVERBS} )?{_NOT}\b(?! (?:only|just|merely|simply|necessarily)\b)", _I
)
"""Labels of whose options something is denied: "B is not prime"."""

_HEDGED_BEFORE = re.compile(
    rf"\b(?:perhaps|maybe|possibly|potentially|(?:might|may|could|can)(?: also| well)? be|not (?:\w{{1,12}} )?sure"
    rf"|unsure|consider(?:ing)?|suppos(?:e|ing)|assum(?:e|ing)|let's (?:try|consider|check|look at|examine|test|see)"
    rf"|look(?:ing)? at|compar(?:e|ing)|try(?:ing)?|test(?:ing)?|evaluat(?:e|ing)|analy[sz](?:e|ing)|regarding|as for"
    rf"|such as|vielleicht|peut-être|quizás?|可能是|也许是?)[ ,:]{{1,3}}(?:(?:the|a|an|if|about|that|it|it's|is|whether"
    rf"|options?|choices?|answer|statement|correct|right"
    rf"|only) ){{0,4}}{_SAID}",
    _I,
)
"""Options that are only considered."""
_HEDGED_AFTER = re.compile(
    rf"{_SAID}[ ,]{{0,2}}(?:(?:might|may|could|can)(?: also| well| at first)? (?:be|have been|seem|look|appear)\b"
    rf"|(?:cannot|can't) be (?:ruled out|excluded|eliminated|dismissed)|(?:is|are|seems?|looks?) (?:also |all |both "
    rf"|only )?(?:possible|plausible|tempting|a (?:possibility|common (?:mistake|misconception|error))|partially"
    rf"|partly"
    r"|half)\b)",
    _I,
)
_ALTERNATIVES = re.compile(
    rf"(?:\beither )?{SUBJECT}(?:[ ,]{{0,3}}\b(?:or|and/or|oder|ou|o|vs\.?|versus)\b "
    rf"(?:(?:else|maybe|perhaps|possibly|even|rather|either|the|an?|option) ){{0,2}}{SUBJECT}){{1,25}}"
    rf"|{ONE} ?或(?:者)? ?{ONE}|\bbetween (?:options? )?{SUBJECT}",
    _I,
)
"""Options among which no choice is made."""

_CONDITION = re.compile(
    rf"\bif\b(?!{FORCED})(?:[^.;,\n]{{0,200}}(?:,|\bthen\b) ?(?:then )?{ONE}(?=[.;\n]|\Z)"
    rf"|[^.;,\n]{{0,200}}{ONE}[^.;\n]{{0,200}})|\b(?:if(?!{FORCED})|unless|whether|suppos(?:e|ing)|assuming|provided"
    rf"|in case|wenn|falls|si)\b"
    r"[^.;!?\n]{0,200}?(?:,|\bthen\b|(?=[.;!?\n])|\Z)",
    _I,
)
"""What is supposed and not said; a choice that somebody is forced to make is one."""
QUESTION = re.compile(r"[^.!?\n]{0,400}\?(?! ?(?:yes|yep|correct|right)\b)", _I)
CONCEDED = re.compile(rf"{BEGIN}(?:while|although|though|even though|whereas|despite)\b[^,.\n]{{0,200}},", _I)
"""What is conceded before the point is made."""
REPORTED = re.compile(
    r"\b(?:(?:i |we )?(?:at first|initially|originally|first(?:ly)?),? (?:i |we )?"
    r"(?:thought|said|picked|chose|considered|assumed|believed|guessed)|at first(?: glance| sight)?"
    r"|my (?:first|initial) (?:thought|guess|instinct|answer|choice|reaction)|it is tempting"
    r"|(?:some|many|one|people|students|you|someone)(?: people| students)? (?:may|might|would|could) "
    r"(?:think|say|choose|pick|argue|answer|believe|assume)|(?:some|many|most) (?:people|students|others) "
    r"(?:think|say|choose|pick|argue|answer|believe|assume)|a common (?:mistake|misconception|error) is)\b"
    r"[^.;!?\n]{0,200}?(?=[.;!?\n]|,? but\b|\Z)",
    _I,
)
"""What was thought before, or is thought by others."""

_MASKS = (
    (NONE_STATED, MASKED),
    (MARKED_WRONG, WRONG),
    (_CONDITION, MASKED),
    (QUESTION, MASKED),
    (REPORTED, MASKED),
    (CONCEDED, MASKED),
    (_WRONG_BEFORE, WRONG),
    (_WRONG_AFTER, WRONG),
    (_DENIED_BEFORE, MASKED),
    (_ALTERNATIVES, MASKED),
    (_HEDGED_BEFORE, MASKED),
    (_HEDGED_AFTER, MASKED),
)


def masked(text: str) -> str:
    """A collapsed reply with every mention that is called wrong, or not asserted, turned into one that says so."""
    for pattern, kind in _MASKS:
        text = _mask(text, pattern, kind)
    text = _mask(text, _LABEL_DENIED, MASKED, characters(LABEL, BARE))
    return _mask(text, _TEXT_DENIED, MASKED, characters(TEXT, WORD))


def _mask(text: str, pattern: re.Pattern[str], kind: int, which: str = ONE) -> str:
    """Mask what the pattern's group matches, or all of it."""

    def mask(match: re.Match[str]) -> str:
        start, end = (position - match.start() for position in match.span(match.lastgroup or 0))
        said = re.sub(which, lambda one: mention(option_of(one.group()), kind), match.group()[start:end])
        return match.group()[:start] + said + match.group()[end:]

    return pattern.sub(mask, text)
