"""Read the verdict of a reply to a judging question: ``True``, ``False`` or ``Unknown``.

Every phrase that states a verdict becomes one character, as mentions of options do; verdicts that are supposed, asked
about, reported or about a premise are masked. Then, as for choices, the first rule that applies reads the reply:

1. ``answer field`` ("Answer: True", ``\\boxed{}``, JSON) and ``cue`` ("the answer is False"); the last one counts;
2. ``last line``: the last line or sentence, if it is nothing but a verdict;
3. ``conclusion``: "therefore the statement is false";
4. ``opening``: the verdict a reply opens with, and ``statement``: "the statement is not true", if they agree;
5. ``reason``: only the grounds of the statement are judged ("the text does not say").

Several verdicts without a final one, and text without a verdict, are ``unparsed``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from unslant.replies.grammar import (
    BEGIN_OF_LINE,
    RETRACTED,
    Kind,
    characters,
    mention,
    mentions,
    option_of,
    options_of,
    pattern,
)
from unslant.replies.reading import (
    CONCEDED,
    QUESTION,
    REPORTED,
    VERDICTS,
    Extracted,
    Outcome,
    Unreadable,
    by_first_rule,
    start_of_replacement,
)
from unslant.replies.text import FIELD, before_next_question, clean

TRUE, FALSE, UNKNOWN = range(3)
"""As ordered in :data:`VERDICTS`."""
SAID, YES_NO, GROUNDS = Kind.LABEL, Kind.BARE, Kind.WORD
"""How a verdict is given: by its word; by yes or no; by the relation of the premises to the statement."""
# Longer phrases come before the words in them: "cannot be determined to be true" is Unknown though it ends in "true",
# "not true" is False, and "whether it is true" is not a verdict.
_PHRASES: tuple[tuple[int | None, int, str], ...] = (
    (None, SAID, "{denied_twice}"),
    (FALSE, SAID, "{truth_denied}"),
    (UNKNOWN, GROUNDS, "{unknown_either}"),
    (UNKNOWN, SAID, "{unknown}"),
    (UNKNOWN, GROUNDS, "{unknown_grounds}"),
    (FALSE, GROUNDS, "{not_the_answer}"),
    (None, SAID, "{no_verdict}"),
    (FALSE, SAID, "{false_not}|{^false$}"),
    (FALSE, GROUNDS, "{^false_grounds$}"),
    (FALSE, YES_NO, "{^no$}"),
    (TRUE, SAID, "{^true$}"),
    (TRUE, GROUNDS, "{true_grounds}"),
    (TRUE, YES_NO, "{^yes$}"),
)
"""Verdict, how it is given, and its phrases; no verdict for phrases that leave it open, quote it or are about something
else. At each place, the first that matches counts."""
_PHRASE = pattern("|".join(f"({phrases})" for _, _, phrases in _PHRASES))

_PARTS = {
    "verdict": characters(SAID, YES_NO, GROUNDS),
    "not_verdict": characters(SAID, YES_NO, GROUNDS)[1:-1],
    "word": characters(SAID, YES_NO),
    "said_word": characters(SAID),
    "grounds": characters(GROUNDS),
    "the_statement": r"(?:(?:{this}(?: {statement_adjective}){0,4} )?{statement})",
    "is_said": r"(?:{verdict_be}|:|=)",
    "adverbs": r"(?:{verdict_adverb} ){0,4}",
    "verdict_slot": r"[\s:=,\"'(\[{⟦→*-]{0,6}(?:{slot_filler} ){0,3}[\"'(\[]{0,2}(?P<said>{verdict})",
}
_rule = partial(pattern, parts=_PARTS)
_MASKS = (
    pattern(
        r"\b{if}\b[^.;!?\n]{0,240}\b{then}\b[^.;!?\n]{0,160}"
        r"|{^verdict_condition$}[^.;!?\n]{0,240}?(?:,|\b{then}\b|(?=[.;!?\n])|\Z)"
    ),
    QUESTION,
    REPORTED,
    CONCEDED,
    pattern(r"{^denied_claim}[^.;!?\n]{0,60}"),
)
_ANY, _WORD = re.compile(_PARTS["verdict"]), re.compile(_PARTS["word"])
_PREMISE = _rule(
    r"\b{numbered} ?\(?(?:\d{1,2}|(?-i:[A-Z]))\b\)?[^.\n]{0,3}(?: {is_are})?[^.\n]{0,20}{verdict}|\b{premise}{verdict}"
)
"""Verdicts on something other than the statement."""
_ANSWERS = {
    "answer field": r"(?:{field_cue}|{begin}[ (]{0,3}{verdict_field} ?[:=-]){verdict_slot}",
    "cue": r"(?:\b{verdict_noun}(?:{to_what}[^.:;\n{not_verdict}]{0,80})?,? {verdict_is}{verdict_thus}?"
    r"|{^verdict_cue}){verdict_slot}",
}
_BARE_LINE = _rule(
    r"^[ \"'(\[⟦]{0,4}(?:{verdict_lead}[ ,:]{1,3}){0,5}[\"'(\[]{0,2}(?P<said>{word})(?:[ ,]{0,2}(?P<twice>{word}))?"
    r"[ .!)\]\"'⟧;:]{0,5}$"
)
_VERDICT_LINE = _rule(r"^ ?(?:\d{1,2}[.)] )?({said_word}) ?(?:[:.]|$)", re.MULTILINE)
_CONCLUDED = _rule(
    r"\b{verdict_concluded}\b,?[^.;\n{not_verdict}]{0,160}?(?:{is_said}|\b{concluded_of})[ \"'(]{1,3}{adverbs}[\"'(]?"
    r"(?P<said>{verdict})|→ ?(?P<arrow>{verdict})|\b{the_statement} {is_then} (?P<then>{verdict})"
)
_OPENING = _rule(
    r"[ \"'(\[]{0,4}(?:{verdict_opening}[ ,:]{1,2}){0,4}(?P<said>{word})[\"')\]]{0,2}"
    r"(?= ?(?:[.,;:!\n-]|\Z|\b{because}\b))"
)
_STATED = _rule(
    r"\b{the_statement}(?: [^.,;:\n{not_verdict}]{0,60}?)? ?{is_said}[ \"'(]{0,3}{adverbs}[\"'(]?(?P<said>{verdict})"
    r"|\b{the_statement}(?: \w{1,30}){0,3}? (?P<grounds>{grounds})"
)
_WHOLE = tuple(
    pattern(r"\W{0,9}(?:(?:{field}|{verdict_noun})\W{1,5})?(?:" + said + r")\W{0,9}")
    for said in (
        "(?-i:{true_letter})|{whole_true}",
        "(?-i:{false_letter})|{whole_false}",
        "(?-i:{unknown_letter})|{whole_unknown}",
    )
)
"""Whole replies that are a letter for a verdict, or words that are one only by themselves: "F", "Not necessarily."."""
_FEW, _SHORT, _LONG = 20, 100, 400
"""Most characters of a line that can only be a verdict; of a reply read by grounds alone, as true or false; as
unknown."""


def extract_verdict(reply: str) -> Extracted:
    """The verdict of a reply to a judging question, as one of ``True``, ``False``, ``Unknown``.

    Examples:
        >>> extract_verdict("So the statement cannot be determined.").labels
        frozenset({'Unknown'})
    """
    text = clean(reply)
    if not text:
        return Extracted("unparsed", rule="empty")
    for verdict, whole in zip(VERDICTS, _WHOLE, strict=True):
        if whole.fullmatch(text):
            return Extracted("ok", frozenset({verdict}), "whole reply")
    collapsed = _PHRASE.sub(_collapsed, before_next_question(text))
    for mask in _MASKS:
        collapsed = mask.sub(lambda match: _ANY.sub("…", match.group()), collapsed)
    # Only the words: premises that do not say enough are themselves the grounds for Unknown.
    collapsed = _PREMISE.sub(lambda match: _WORD.sub("…", match.group()), collapsed)
    return by_first_rule(RULES, collapsed[start_of_replacement(collapsed) :], VERDICTS, text)


def true_or_false(reply: str, labels: Sequence[str], options: Sequence[str]) -> Extracted | None:
    """The verdict on a statement where the options are True and False: "The statement is not true."."""
    if {option.title() for option in options} != set(VERDICTS[:2]):
        return None
    verdict = extract_verdict(reply)
    said = frozenset(label for label, option in zip(labels, options, strict=False) if option.title() in verdict.labels)
    return replace(verdict, labels=said) if said else None


def _collapsed(phrase: re.Match[str]) -> str:
    """The character in place of a phrase that states a verdict."""
    verdict, kind, _ = _PHRASES[(phrase.lastindex or 1) - 1]
    return "…" if verdict is None else mention(verdict, kind)


def explicit(text: str) -> Outcome:
    """The last verdict that is said to be the answer."""
    claims = sorted(
        (match.start("said"), rule, match)
        for rule, answer in _ANSWERS.items()
        for match in _rule(answer, BEGIN_OF_LINE).finditer(text)
    )
    if not claims:
        return None
    fields = options_of(match["said"] for _, _, match in claims if match.group().lstrip().startswith(FIELD))
    _, rule, last = claims[-1]
    if len(fields) > 1 or _rule(" ?, ?{said_word}").match(text, last.end()):
        raise Unreadable("contradiction")
    retraction = RETRACTED.search(text, last.end())
    if retraction and options_of(mentions(text[retraction.end() :])) - options_of(last["said"]):
        return None  # taken back
    return options_of(last["said"]), rule


def last_line(text: str) -> Outcome:
    """The last line, or the last sentence in it, if it is nothing but a verdict."""
    if len(options_of(_VERDICT_LINE.findall(text))) > 1:
        raise Unreadable("contradiction")
    line = text.rstrip().split("\n")[-1]
    match = _BARE_LINE.match(line)
    if match is None:
        match = _BARE_LINE.match(re.split(r"[.!?:;] ", line)[-1])
        if match is None or (not RETRACTED.search(text) and _before(text) - {option_of(match["said"])}):
            return None
    if match["twice"] and option_of(match["twice"]) != option_of(match["said"]):
        raise Unreadable("contradiction")
    return options_of(match["said"]), "last line"


def _before(text: str) -> frozenset[int]:
    """The verdicts that a reply opens with or gives on the statement before the last sentence."""
    opening = _OPENING.match(text)
    stated = (match[match.lastgroup or 0] for match in _STATED.finditer(text))
    return options_of([*stated, *([opening["said"]] if opening else [])])


def conclusion(text: str) -> Outcome:
    """The last verdict that is drawn as a conclusion."""
    last = max(_CONCLUDED.finditer(text), key=re.Match.start, default=None)
    return (options_of(last[last.lastgroup or 0]), "conclusion") if last else None


def stated(text: str) -> Outcome:
    """The verdict a reply opens with, or those on the statement, if they agree."""
    first = text.split("\n")[0]
    if len(first) <= _FEW and len(options_of(mentions(first, SAID))) > 1:
        raise Unreadable("contradiction")
    verdicts = options_of(match[match.lastgroup or 0] for match in _STATED.finditer(text))
    opening = _OPENING.match(text)
    if opening is None:
        if len(verdicts) > 1:
            raise Unreadable("contradiction")
        by_grounds = verdicts == {UNKNOWN} and mention(UNKNOWN, SAID) not in text
        return (verdicts, "statement") if verdicts and not (by_grounds and len(text) > _LONG) else None
    last = _BARE_LINE.match(re.split(r"[.!?:;\n] ?", text.rstrip(" ."))[-1])
    verdicts |= {option_of(last["said"])} if last else set()
    verdict, by_yes_or_no = option_of(opening["said"]), bool(mentions(opening["said"], YES_NO))
    if pattern(r"[ ,]{1,2}{maybe}\b").match(text, opening.end()):
        raise Unreadable("unsure")
    if pattern(r"[ ,]{1,2}{i_am_sure}\b").match(text, opening.end()):
        return None
    at_once = _rule(r" ?(?::|,? (?:{this}|{statement}) {is_said}) ?({said_word})").match(text, opening.end())
    verdicts |= {option_of(at_once[1])} if at_once else set()
    open_too = mention(UNKNOWN, SAID) in text or mention(UNKNOWN, GROUNDS) in text
    if verdicts - {verdict, UNKNOWN} or (by_yes_or_no and open_too):
        raise Unreadable("contradiction")
    return frozenset({verdict}), "opening"


def reason(text: str) -> Outcome:
    """The one verdict that all phrases of a short reply agree on."""
    verdicts = options_of(mentions(text, SAID, GROUNDS))
    if len(verdicts) != 1 or len(text) > (_LONG if verdicts == {UNKNOWN} else _SHORT):
        return None
    return verdicts, "reason"


RULES = (explicit, last_line, conclusion, stated, reason)
"""In the order in which they are tried."""
