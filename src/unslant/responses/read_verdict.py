"""Read the verdict of a reply to a judging question: ``True``, ``False`` or ``Unknown``.

Every phrase that says a verdict becomes one character; what is supposed, asked or only quoted is masked. Then, as for
choices, the first rule that applies reads the reply:

1. ``answer field`` ("Answer: True", ``\\boxed{}``, JSON) and ``cue`` ("the answer is False"); the last one counts;
2. ``last line``: the last line, if it is nothing but a verdict;
3. ``conclusion``: "therefore the statement is false";
4. ``opening``: the verdict a reply opens with, and ``statement``: "the statement is not true", if they agree;
5. ``reason``: what is said of the statement's grounds only ("the text does not say").
"""

from __future__ import annotations

import re

from unslant.questions.question import JudgingQuestion
from unslant.responses import answer_patterns as words
from unslant.responses.extracted import Extracted
from unslant.responses.mentions import BARE, LABEL, WORD, characters, mention, option_of
from unslant.responses.reply_text import before_next_question, clean

TRUE, FALSE, UNKNOWN = range(3)
_I = re.IGNORECASE
_IM = re.IGNORECASE | re.MULTILINE
_NOT = r"(?:not|n't|never|no longer)"
_SAYS = r"(?:provide|give|contain|include|mention|state|say|specify|tell|address|indicate|offer|settle|determine|establish|discuss)"
_DETERMINED = (
    r"(?:determined?|infer(?:red)?|concluded?|known?|decided?|proved?|proven|verif(?:y|ied)|confirm(?:ed)?|deduced?|establish(?:ed)?"
    r"|judged?|evaluated?|reached|said|say|told|tell|derived?|ascertain(?:ed)?|assess(?:ed)?|resolved?|settled?|answered)"
)
_PHRASES: tuple[tuple[str, int | None, int], ...] = (
    # Both at once, and what is none of the three.
    (r"\b(?:may|might|could|can)(?: or (?:may|might|could) not)?(?: well)? be (?:either )?true(?:,? or|/) ?(?:be )?false", UNKNOWN, WORD),
    (r"\b(?:may|might|could) or (?:may|might|could) not be(?: true)?|\bcould (?:go|be) either(?: way)?|\beither (?:could|may|might) be", UNKNOWN, WORD),
    (r"\bneither (?:true|proved|proven|confirmed|supported|provable|verified) nor (?:false|disproved|disproven|refuted|contradicted|disprovable)", UNKNOWN, LABEL),
    (r"\bneither (?:\w+ )?(?:entails?|supports?|confirms?|proves?|says?|states?|implies|imply)[^.\n]{0,60}\bnor\b[^.\n]{0,20}(?:contradicts?|refutes?|rules?|disproves?|den(?:y|ies)|excludes?)(?: it)?(?: out)?", UNKNOWN, WORD),
    (rf"\b(?:cannot|can't|can not|could not|couldn't|can neither|(?:is|it's|it is)? ?(?:not|im)[ ]?possible to|(?:am|are|is)? ?(?:unable|not able) to|no way (?:to|of)|hard to) (?:be )?(?:\w+ly )?{_DETERMINED}\b(?: (?:whether|if)\b[^.\n]{{0,120}})?(?: (?:to be |as )?(?:true|false)(?:,? (?:or|nor) (?:true|false|not))?)?", UNKNOWN, LABEL),
    (r"\b(?:unknown|uncertain|undetermined|undecided|undecidable|unresolved|unanswerable|not answerable|indeterminate|indeterminable|unprovable|inconclusive|unverifiable|cannot tell|can't tell|unbekannt|inconnue?|indéterminée?|desconocid[ao]|indeterminad[ao])\b|未知|无法(?:确定|判断)|不(?:能)?确定", UNKNOWN, LABEL),
    (rf"\b{_NOT} (?:have |provide |give |contain |offer |get )?(?:us )?(?:with )?(?:enough|sufficient|adequate|any)(?: \w+)? (?:information|facts|evidence|data|details?|context|premises)\b(?:[^.\n]{{0,120}}\b(?:whether|if|to)\b[^.\n]{{0,160}})?|\b(?:insufficient|inadequate|lack of|too little)(?: \w+)? (?:information|evidence|facts|data|context)\b(?:[^.\n]{{0,120}}\b(?:whether|if|to)\b[^.\n]{{0,160}})?", UNKNOWN, WORD),
    (rf"\b(?:do|does|did)(?: not|n't) {_SAYS}\b[^.\n]{{0,160}}|\bno (?:\w+ )?(?:information|mention|indication|data|details?|way (?:of|to))\b[^.\n]{{0,160}}|\b(?:is|are|was|were)(?: not|n't) (?:explicitly |directly |clearly |specifically )?(?:mentioned|stated|specified|given(?! enough)|provided|addressed|known|clear|indicated|settled|said|included)\b[^.\n]{{0,160}}", UNKNOWN, WORD),
    (r"\b(?:we|one|you|it) (?:do|does)(?: not|n't) know\b[^.\n]{0,160}|\b(?:do|does)(?: not|n't) know (?:whether|if)\b[^.\n]{0,160}|\b(?:unclear|not clear) (?:whether|if)\b[^.\n]{0,160}|\bleaves?\b[^.\n]{0,40}\b(?:open|undetermined|unanswered|unsettled)\b", UNKNOWN, WORD),
    (r"\bnothing (?:is|was|in|about|on|to|here)\b[^.\n]{0,80}|\b(?:says?|states?|tells? us|mentions?|reveals?) nothing\b[^.\n]{0,80}|\b(?:not sufficient|insufficient|not enough|too little) (?:to|for)\b[^.\n]{0,120}|\b(?:more|further|additional) (?:information|context|facts|data|details)\b[^.\n]{0,20}\b(?:needed|required|necessary)\b|\bneed(?:s|ed)? (?:more|further|additional) (?:information|context|facts|data|details)\b[^.\n]{0,120}|\bdo(?:es)?(?: not|n't) follow\b[^.\n]{0,60}\bnor\b[^.\n]{0,60}\bnegation\b|\bsilent (?:on|about)\b[^.\n]{0,80}|\b(?:is|remains|stays|left|leaves it|question) open\b|\bnot clear\b[^.\n]{0,80}", UNKNOWN, WORD),
    (r"(?:\bnot|n't) (?:the |a |quite )?(?:correct|right) (?:answer|choice|option|one)\b", FALSE, WORD),
    (r"\bwhether\b[^.,;\n]{0,120}", None, 0),
    (r"\btrue,?\s?(?:/|or|,|and|\|)\s?false\b(?:,?\s?(?:/|or|,|and|\||or/)\s?(?:unknown|uncertain))?|\b(?:true|false),? (?:false|true),? or unknown", None, 0),
    (r"\b(?:can|could|may|might)(?: also| well| still)? be (?:true|false|correct|incorrect|right|wrong)\b(?! in\b)", None, 0),
    (r"(?:\b(?:is|are|was|be) ?)?(?:\bnot|n't) (?:necessarily|entirely|completely|always|fully|wholly|quite|strictly|exactly|only|just) (?:true|false|correct|right|accurate|wrong|incorrect)|\b(?:part(?:ial)?ly|mostly|largely|half|sometimes|somewhat) (?:true|false|correct|right|incorrect|accurate)", None, 0),
    (r"\banswer (?:is|would be|can|should)(?:n't| not|not) (?:be )?(?-i:True|False|Unknown)\b(?! but)", None, 0),
    (rf"\b(?:is |are )?(?:{_NOT}|isn't|doesn't|does not|cannot be|can't be) (?:\w+ly )?(?:be )?(?:false|incorrect|wrong|untrue|inaccurate|contradict\w*|refuted?|disproved|disproven|supported|entailed|implied|follow\w*|proven|proved|justified)\b", None, 0),
    (r"\b(?:correct|right|proper|wrong|the (?:true|incorrect|false)) (?:answers?|options?|choices?|conclusions?|sentences?|statements?|verdicts?|version|form)\b", None, 0),
    (r"\b(?:true|false|correct|incorrect|wrong|right|yes|no) (?:that|to say)\b", None, 0),
    # False, then True.
    (rf"(?:\b(?:can|could|does|do|must|would)(?: {_NOT}|n't)|(?:\b|(?=n't)){_NOT}|\bcannot|\bcan't)(?: \w+ly)? (?:be )?(?:a |an |the )?(?:\w+ly )?(?:true|correct|right|accurate|valid)\b", FALSE, LABEL),
    (r"\b(?:untrue|false|incorrect|inaccurate|falsch|unwahr|faux|fausse|fals[ao])\b|错误|假(?!设)|不正确|不对", FALSE, LABEL),
    (r"\b(?:wrong|refuted|disproved|disproven|contradicted|contradicts|contradict|contradictory|does(?: not|n't) hold|fails to hold)\b", FALSE, WORD),
    (r"\b(?:no|nope|nein|non)\b", FALSE, BARE),
    (r"\b(?:true|correct|wahr|richtig|vraie?|verdader[ao]|ciert[ao])\b|正确|真(?!的)|(?<!不)对(?![于])", TRUE, LABEL),
    (r"\b(?:accurate|proved|proven|entailed|right|valid|holds|supported|(?:conclusion|statement|it|claim) follows(?! (?:that|the))|follows (?:logically|directly|from)|logically follows|(?:entails?|proves?|supports?|implies|imply|confirms?|establish(?:es)?) (?:the|this) (?:conclusion|statement|claim|hypothesis|proposition)|is (?:implied|confirmed))\b", TRUE, WORD),
    (r"\b(?:yes|yep|ja|oui|sí)\b", TRUE, BARE),
)
_PHRASE = re.compile("|".join(f"({pattern})" for pattern, _, _ in _PHRASES), _I)

_SAID = characters(LABEL, BARE, WORD)
_WORD = characters(LABEL, BARE)
_STRONG = characters(LABEL)
_STATEMENT = (
    r"(?:(?:the|this|that|given|proposed|suggested|original|above|first|second|following)(?: (?:given|proposed|suggested|original|above|user's))* )?"
    r"(?:statement(?: judged)?|claim|conclusion|hypothesis|proposition|(?<!first )(?<!second )sentence|assertion|inference|answer|it|this|aussage|affirmation|afirmación)"
)
_BE = r"(?:is|'s|are|must be|has to be|would be|would have to be|seems|can be (?:judged|considered|said to be|concluded to be)|ist|est|es|:|=)"
_ADVERBS = r"(?:therefore|thus|then|clearly|definitely|also|logically|vacuously|necessarily|indeed|certainly|trivially|hence|so|judged|considered|to be|actually|simply|factually|in fact|proven|most likely|likely|probably|a|an)"
_CONDITION = re.compile(
    r"\b(?:if|unless|when|suppos(?:e|ing)|assum(?:e|ing)|in order for|for (?:the|this) (?:statement|claim|conclusion|it) to be|would (?:only )?be|needs? to be|wenn|falls)\b[^.;!?\n]{0,240}?(?:,|\bthen\b|(?=[.;!?\n])|\Z)",
    _I,
)
_QUOTED_PART = re.compile(r"\b(?:premises?|statement|sentence|fact|antecedent|consequent|step|part|option|clause|condition)s? ?(?:\(?(?:\d{1,2}|[a-zA-Z])\)?)?,? (?:is|are|:)(?: \w+ly)? " + _SAID, _I)
_NUMBERED = re.compile(rf"\b(?:statement|sentence|premise|fact|step|claim) ?\(?(?:\d{{1,2}}|(?-i:[A-Z]))\b\)?[^.\n]{{0,3}}(?: (?:is|are))?[^.\n]{{0,20}}{_SAID}|\b(?:premises?|antecedent|consequent|converse|inverse|first part|second part) (?:is|are)(?: \w+ly)? {_SAID}", _I)
_SLOT = rf"[\s:=,\"'(\[{{⟦→*-]{{0,6}}(?:(?:the|a|that|it is|is|statement is|therefore|most likely|probably|definitely|clearly|logically) ){{0,3}}[\"'(\[]{{0,2}}(?P<said>{_SAID})"
_FIELD = re.compile(
    rf"(?:{words.FIELD_CUE.pattern}|(?:^|(?<=\n)|(?<=[.!?] ))[ \t(]{{0,3}}(?:(?:my|the|final|overall) ){{0,2}}(?:verdict|judge?ment|label|truth value|evaluation|status|determination) ?[:=-])" + _SLOT,
    _IM,
)
_CUE = re.compile(
    rf"(?:\b(?:answers?|options?|choices?|verdict|judge?ment|label|result|response|truth value|antwort|réponse|respuesta)(?: (?:to|for|of|here) [^.:;\n{_SAID[1:-1]}]{{0,80}})?,? (?:is|are|would be|must be|should be|ist|lautet|est|es)(?: therefore| thus| clearly)?"
    rf"|\bi(?:'d| would| will|'ll|)(?: therefore| thus)? (?:choose|chose|pick|select|say|answer|judge it|conclude(?: that (?:it|the statement) is)?|go with)|答案(?:是|为)?|判断(?:是|为)?)" + _SLOT,
    _IM,
)
_BARE_LINE = re.compile(
    rf"^[ \t\"'(\[⟦]{{0,4}}(?:(?:so|thus|therefore|hence|the|answer|it|is|statement|claim|conclusion|this|i think|i say|verdict|clearly)[ ,:]{{1,3}}){{0,5}}[\"'(\[]{{0,2}}(?P<said>{_WORD})(?:[ ,]{{0,2}}(?P<twice>{_WORD}))?[ \t.!)\]\"'⟧;:]{{0,5}}$",
    _IM,
)
_CONCLUDED = re.compile(
    rf"\b(?:therefore|thus|hence|so|consequently|accordingly|in conclusion|in summary|we (?:can )?conclude(?: that)?|it follows that|makes?|making|→|daher|donc|por lo tanto)\b,?[^.;\n{_SAID[1:-1]}]{{0,160}}?(?:{_BE}|\b(?:statement|claim|conclusion|it))[ \t\"'(]{{1,3}}(?:{_ADVERBS} ){{0,4}}[\"'(]?(?P<said>{_SAID})"
    rf"|→ ?(?P<arrow>{_SAID})|\b{_STATEMENT} (?:is|must be|has to be) (?:therefore|thus|hence) (?P<then>{_SAID})",
    _I,
)
_OPENING = re.compile(rf"[ \t\"'(\[]{{0,4}}(?:(?:the|statement|it|is|this|answer|well|ok|so|i think|i would say|i believe)[ ,:]{{1,2}}){{0,4}}(?P<said>{_WORD})[\"')\]]{{0,2}}(?= ?(?:[.,;:!\n-]|\Z|\b(?:because|since|as|for|the)\b))", _I)
_STATED = re.compile(rf"\b{_STATEMENT}(?: [^.,;:\n{_SAID[1:-1]}]{{0,60}}?)? ?{_BE}[ \t\"'(]{{0,3}}(?:{_ADVERBS} ){{0,4}}[\"'(]?(?P<said>{_SAID})|\b{_STATEMENT}(?: \w+){{0,3}}? (?P<verb>{characters(WORD)})", _I)
_OPENED_LINES = re.compile(rf"^ ?(?:\d{{1,2}}[.)] )?(?P<said>{_STRONG}) ?[:.]", _M := re.MULTILINE)


class _Unreadable(Exception):
    """A reply that gives several verdicts."""


def extract_verdict(reply: str) -> Extracted:
    """The verdict of a reply to a judging question, as one of ``True``, ``False``, ``Unknown``."""
    text = clean(reply)
    if not text:
        return Extracted("unparsed", rule="empty")
    try:
        found = _verdict(_masked(_PHRASE.sub(_collapsed, before_next_question(text))))
    except _Unreadable as why:
        return Extracted("unparsed", rule=str(why))
    if found is not None:
        verdict, rule = found
        return Extracted("ok", frozenset({JudgingQuestion.VERDICTS[verdict]}), rule)
    if words.REFUSAL.search(text):
        return Extracted("refused", rule="refusal")
    return Extracted("unparsed", rule="no answer found")


def _collapsed(match: re.Match[str]) -> str:
    assert match.lastindex is not None
    _, verdict, kind = _PHRASES[match.lastindex - 1]
    return " … " if verdict is None else mention(verdict, kind)


def _masked(text: str) -> str:
    for pattern in (_CONDITION, words.QUESTION, words.REPORTED, _NUMBERED):
        text = pattern.sub(lambda m: re.sub(_SAID, "…", m.group()), text)
    return text


def _verdict(text: str) -> tuple[int, str] | None:
    for rule in (_explicit, _last_line, _conclusion, _stated, _reason):
        found = rule(text)
        if found is not None:
            return found
    return None


def _said(match: re.Match[str]) -> int:
    return option_of(next(m for m in match.groups()[::-1] if m))


def _explicit(text: str) -> tuple[int, str] | None:
    claims = sorted((m.start("said"), rule, m) for rule, p in (("answer field", _FIELD), ("cue", _CUE)) for m in p.finditer(text))
    if not claims:
        return None
    marked = {option_of(m["said"]) for _, _, m in claims if m.group().lstrip().startswith("⟦")}
    if len(marked) > 1:
        raise _Unreadable("contradiction")
    start, rule, match = claims[-1]
    verdict = option_of(match["said"])
    if re.match(rf" ?, ?{_STRONG}", text[match.end() :]):
        raise _Unreadable("contradiction")
    return verdict, rule


def _last_line(text: str) -> tuple[int, str] | None:
    if len({option_of(m["said"]) for m in _OPENED_LINES.finditer(text)}) > 1:
        raise _Unreadable("contradiction")
    lines = text.rstrip().split("\n")
    match = _BARE_LINE.match(lines[-1]) or _BARE_LINE.match(re.split(r"[.!?:;] ", lines[-1].rstrip())[-1])
    if match is None:
        return None
    if match["twice"] and option_of(match["twice"]) != option_of(match["said"]):
        raise _Unreadable("contradiction")
    return option_of(match["said"]), "last line"


def _conclusion(text: str) -> tuple[int, str] | None:
    matches = list(_CONCLUDED.finditer(text))
    if not matches:
        return None
    last = matches[-1]
    return option_of(last[last.lastgroup or 0]), "conclusion"


def _stated(text: str) -> tuple[int, str] | None:
    """The verdict a reply opens with, or those on the statement, if they agree."""
    opening = _OPENING.match(text)
    stated = {option_of(m[m.lastgroup or 0]) for m in _STATED.finditer(text)}
    if opening is not None:
        verdict = option_of(opening["said"])
        if re.match(r"[ ,]{1,2}i(?:'m| am) (?:\w+ )?(?:sure|certain|confident|positive)\b", text[opening.end() :], _I):
            return None
        unknown = mention(UNKNOWN, LABEL) in text or mention(UNKNOWN, WORD) in text
        if stated - {verdict, UNKNOWN} or (unknown and re.match(characters(BARE), opening["said"])):
            raise _Unreadable("contradiction")
        return verdict, "opening"
    if len(stated) > 1:
        raise _Unreadable("contradiction")
    return (stated.pop(), "statement") if stated else None


def _reason(text: str) -> tuple[int, str] | None:
    said = {option_of(m) for m in re.findall(characters(LABEL, WORD), text)}
    if len(said) == 1 and said == {UNKNOWN}:
        return UNKNOWN, "reason"
    return (said.pop(), "reason") if len(said) == 1 and len(text) <= 100 else None
