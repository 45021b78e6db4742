"""Read the verdict of a reply to a judging question: ``True``, ``False`` or ``Unknown``.

Every phrase that says a verdict becomes one character (:mod:`verdict_phrases`); what is supposed, asked, reported or
said of a premise is masked. Then, as for choices, the first rule that applies reads the reply:

1. ``answer field`` ("Answer: True", ``\\boxed{}``, JSON) and ``cue`` ("the answer is False"); the last one counts;
2. ``last line``: the last line or sentence, if it is nothing but a verdict;
3. ``conclusion``: "therefore the statement is false";
4. ``opening``: the verdict a reply opens with, and ``statement``: "the statement is not true", if they agree;
5. ``reason``: what is said of the statement's grounds only ("the text does not say").

Several verdicts of which none is final, and talk that is no verdict, are ``unparsed``.
"""

from __future__ import annotations

import re

from unslant.questions.question import JudgingQuestion
from unslant.responses.answer_patterns import BEGIN, FIELD_CUE, REFUSAL, RETRACTED
from unslant.responses.extracted import Extracted
from unslant.responses.label_words import any_of
from unslant.responses.masks import CONCEDED, QUESTION, REPORTED
from unslant.responses.mentions import characters, mention, mentions, option_of, options_of
from unslant.responses.reading import Unreadable
from unslant.responses.reply_text import FIELD, before_next_question, clean
from unslant.responses.verdict_phrases import GROUNDS, SAID, UNKNOWN, YES_NO, collapse_verdicts

_I = re.IGNORECASE
_IM = re.IGNORECASE | re.MULTILINE
_ANY = characters(SAID, YES_NO, GROUNDS)
_NOT_ANY = _ANY[1:-1]
_WORD = characters(SAID, YES_NO)
_STATEMENT = (
    r"(?:(?:the|this|that|given|proposed|suggested|original|above|first|second"
    r"|following)(?: (?:given|proposed|suggested|original|above|user's))* )?(?:statement(?: judged)?|claim|conclusion"
    r"|hypothesis|proposition|(?<!first )(?<!second )sentence|assertion|inference|answer|it|this|aussage|affirmation"
    r"|afirmación)"
)
_BE = (
    r"(?:is|'s|are|must be|has to be|would be|would have to be|seems|ist|est|es|:|="
    r"|can be (?:judged|considered|said to be|concluded to be))"
)
_ADVERBS = (
    "(?:"
    + any_of(
        "therefore thus then clearly definitely also logically vacuously necessarily indeed certainly trivially hence "
        "so judged considered to_be actually simply factually in_fact proven most_likely likely probably an?"
    )
    + " ){0,4}"
)

_CONDITION = re.compile(
    r"\bif\b[^.;!?\n]{0,240}\bthen\b[^.;!?\n]{0,160}|\b(?:if|unless|when|suppos(?:e|ing)|assum(?:e|ing)|in order for"
    r"|for (?:the|this) (?:statement|claim|conclusion|it) to be"
    r"|would (?:only )?be|needs? to be|wenn|falls)\b[^.;!?\n]{0,240}?(?:,|\bthen\b|(?=[.;!?\n])|\Z)",
    _I,
)
_PREMISE = re.compile(
    rf"\b(?:statement|sentence|premise|fact|step|claim) ?\(?(?:\d{{1,2}}|(?-i:[A-Z]))\b\)?[^.\n]{{0,3}}(?: (?:is"
    rf"|are))?[^.\n]{{0,20}}{_ANY}|\b(?:premises?|antecedent|consequent|converse|inverse|first part|second part) (?:is"
    rf"|are)(?: \w+ly)? {_ANY}",
    _I,
)
"""Verdicts on something else than the statement."""

_SLOT = (
    r"[\s:=,\"'(\[{⟦→*-]{0,6}(?:"
    + any_of("the a that it_is is statement_is therefore most_likely probably definitely clearly logically")
    + rf" ){{0,3}}[\"'(\[]{{0,2}}(?P<said>{_ANY})"
)
_ANSWERS = (
    (
        "answer field",
        re.compile(
            rf"(?:{FIELD_CUE}|{BEGIN}[ (]{{0,3}}(?:(?:my|the|final|overall) ){{0,2}}"
            rf"(?:verdict|judge?ment|label|truth value|evaluation|status|determination) ?[:=-]){_SLOT}",
            _IM,
        ),
    ),
    (
        "cue",
        re.compile(
            rf"(?:\b(?:answers?|options?|choices?|verdict|judge?ment|label|result|response|truth value|antwort|réponse"
            rf"|respuesta)(?: (?:to|for|of|here) [^.:;\n{_NOT_ANY}]{{0,80}})?,? (?:is|are|would be|must be|should be"
            rf"|ist|lautet|est|es)(?: therefore| thus| clearly)?|\bi(?:'d| would| will|'ll)?(?: therefore"
            rf"| thus)? (?:choose|chose|pick|select|say|answer|judge it|conclude(?: that (?:it|the statement) is)?"
            rf"|go with)"
            rf"|(?:答案|判断)(?:是|为)?){_SLOT}",
            _IM,
        ),
    ),
)
_SECOND = re.compile(rf" ?, ?{characters(SAID)}")
_BARE_LINE = re.compile(
    r"^[ \"'(\[⟦]{0,4}(?:"
    + any_of("so thus therefore hence the answer it is statement claim conclusion this i_think i_say verdict clearly")
    + rf"[ ,:]{{1,3}}){{0,5}}[\"'(\[]{{0,2}}(?P<said>{_WORD})(?:[ ,]{{0,2}}(?P<twice>{_WORD}))?[ .!)\]\"'⟧;:]{{0,5}}$",
    _I,
)
_VERDICT_LINE = re.compile(rf"^ ?(?:\d{{1,2}}[.)] )?({characters(SAID)}) ?[:.]", re.MULTILINE)
_CONCLUDED = re.compile(
    rf"\b(?:therefore|thus|hence|so|consequently|accordingly|in conclusion|in summary|we (?:can )?conclude(?: that)?"
    rf"|it follows that|makes?|making|daher|donc|por lo tanto)\b,?[^.;\n{_NOT_ANY}]{{0,160}}?(?:{_BE}"
    rf"|\b(?:statement|claim|conclusion|it))[ \"'(]{{1,3}}{_ADVERBS}[\"'(]?(?P<said>{_ANY})|→ ?(?P<arrow>{_ANY})"
    rf"|\b{_STATEMENT} (?:is|must be|has to be) (?:therefore|thus|hence) (?P<then>{_ANY})",
    _I,
)
_OPENING = re.compile(
    r"[ \"'(\[]{0,4}(?:(?:the|statement|it|is|this|answer|well|ok|so|i think|i would say|i believe)[ ,:]{1,2}){0,4}"
    rf"(?P<said>{_WORD})[\"')\]]{{0,2}}(?= ?(?:[.,;:!\n-]|\Z|\b(?:because|since|as|for|the)\b))",
    _I,
)
_AT_ONCE = re.compile(rf" ?: ?({characters(SAID)})")
_SURE = re.compile(r"[ ,]{1,2}i(?:'m| am) (?:\w+ )?(?:sure|certain|confident|positive)\b", _I)
_STATED = re.compile(
    rf"\b{_STATEMENT}(?: [^.,;:\n{_NOT_ANY}]{{0,60}}?)? ?{_BE}[ \"'(]{{0,3}}{_ADVERBS}[\"'(]?(?P<said>{_ANY})"
    rf"|\b{_STATEMENT}(?: \w+){{0,3}}? (?P<grounds>{characters(GROUNDS)})",
    _I,
)
_FEW, _SHORT, _LONG = 20, 100, 400
"""Characters of a line that can only be a verdict; of a reply read by grounds alone, as true or false, as unknown."""


def extract_verdict(reply: str) -> Extracted:
    """The verdict of a reply to a judging question, as one of ``True``, ``False``, ``Unknown``."""
    text = clean(reply)
    if not text:
        return Extracted("unparsed", rule="empty")
    collapsed = collapse_verdicts(before_next_question(text))
    for mask in (_CONDITION, QUESTION, REPORTED, CONCEDED):
        collapsed = mask.sub(lambda match: re.sub(_ANY, "…", match.group()), collapsed)
    collapsed = _PREMISE.sub(lambda match: re.sub(_WORD, "…", match.group()), collapsed)  # it may say too little
    try:
        found = next((found for rule in RULES if (found := rule(collapsed)) is not None), None)
    except Unreadable as why:
        return Extracted("unparsed", rule=str(why))
    if found is not None:
        verdict, rule = found
        return Extracted("ok", frozenset({JudgingQuestion.VERDICTS[verdict]}), rule)
    if REFUSAL.search(text):
        return Extracted("refused", rule="refusal")
    return Extracted("unparsed", rule="no answer found")


Found = tuple[int, str] | None
"""A verdict and the name of the rule; None if the rule does not apply."""


def explicit(text: str) -> Found:
    """The last verdict that is said to be the answer."""
    claims = sorted((m.start("said"), rule, m) for rule, pattern in _ANSWERS for m in pattern.finditer(text))
    if not claims:
        return None
    marked = options_of(match["said"] for _, _, match in claims if match.group().lstrip().startswith(FIELD))
    _, rule, last = claims[-1]
    if len(marked) > 1 or _SECOND.match(text, last.end()):
        raise Unreadable("contradiction")
    return option_of(last["said"]), rule


def last_line(text: str) -> Found:
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
    return option_of(match["said"]), "last line"


def _before(text: str) -> frozenset[int]:
    """The verdicts that a reply opens with or gives on the statement before the last sentence."""
    opening = _OPENING.match(text)
    stated = (match[match.lastgroup or 0] for match in _STATED.finditer(text))
    return options_of([*stated, *([opening["said"]] if opening else [])])


def conclusion(text: str) -> Found:
    """The last verdict that is drawn as a conclusion."""
    last = max(_CONCLUDED.finditer(text), key=re.Match.start, default=None)
    return (option_of(last[last.lastgroup or 0]), "conclusion") if last else None


def stated(text: str) -> Found:
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
        return (next(iter(verdicts)), "statement") if verdicts and not (by_grounds and len(text) > _LONG) else None
    last = _BARE_LINE.match(re.split(r"[.!?:;\n] ?", text.rstrip(" ."))[-1])
    verdicts |= {option_of(last["said"])} if last else set()
    verdict, by_yes_or_no = option_of(opening["said"]), bool(mentions(opening["said"], YES_NO))
    if _SURE.match(text, opening.end()):
        return None
    at_once = _AT_ONCE.match(text, opening.end())
    verdicts |= {option_of(at_once[1])} if at_once else set()
    open_too = mention(UNKNOWN, SAID) in text or mention(UNKNOWN, GROUNDS) in text
    if verdicts - {verdict, UNKNOWN} or (by_yes_or_no and open_too):
        raise Unreadable("contradiction")
    return verdict, "opening"


def reason(text: str) -> Found:
    """The one verdict that what is said amounts to."""
    verdicts = options_of(mentions(text, SAID, GROUNDS))
    if len(verdicts) != 1 or len(text) > (_LONG if verdicts == {UNKNOWN} else _SHORT):
        return None
    return next(iter(verdicts)), "reason"


RULES = (explicit, last_line, conclusion, stated, reason)
"""In the order in which they are tried."""
