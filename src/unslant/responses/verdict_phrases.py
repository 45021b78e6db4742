"""The phrases that say a verdict, each collapsed to one character, as mentions of options are."""

from __future__ import annotations

import re

from unslant.responses.label_words import any_of
from unslant.responses.mentions import BARE, LABEL, WORD, mention

TRUE, FALSE, UNKNOWN = range(3)
"""As ordered in ``JudgingQuestion.VERDICTS``."""
SAID, YES_NO, GROUNDS = LABEL, BARE, WORD
"""How a verdict is given: by its word; by yes or no; by what the premises do to the statement."""

_NOT = r"(?:not|n't|never|no longer)"
_REST = r"\b[^.\n]{0,160}"
_DO_NOT = r"\b(?:do|does|did)(?: not|n't)"
_DETERMINED = any_of(
    "determined? infer(?:red)? concluded? known? decided? proved? proven verif(?:y|ied) confirm(?:ed)? deduced? "
    "establish(?:ed)? judged? evaluated? reached said say told tell derived? ascertain(?:ed)? assess(?:ed)? resolved? "
    "settled? answered"
)
_SAYS = any_of(
    "provide give contain include mention state say specify tell address indicate offer settle determine establish "
    "discuss"
)
_GIVEN = any_of(
    "mentioned stated specified given(?!_enough) provided addressed known clear indicated settled said included"
)
_INFORMATION = r"(?:information|facts|evidence|data|details?|context|premises)"
_RIGHT = r"(?:true|correct|right|accurate|valid)"
_JUDGED = r"(?:true|false|correct|right|accurate|wrong|incorrect)"

_PHRASES: tuple[tuple[int | None, int, tuple[str, ...]], ...] = (
    (
        UNKNOWN,
        GROUNDS,
        (
            r"\b(?:may|might|could|can)(?: well)? be (?:either )?true(?:,? or|/) ?(?:be )?false",
            r"\b(?:may|might|could) or (?:may|might|could) not be(?: true)?|\bcould (?:go|be) either(?: way)?",
            r"\bneither (?:\w+ )?(?:entails?|supports?|confirms?|proves?|says?|states?|implies"
            r"|imply)[^.\n]{0,60}\bnor\b[^.\n]{0,20}"
            r"(?:contradicts?|refutes?|rules?|disproves?|den(?:y|ies)|excludes?)(?: it)?(?: out)?",
        ),
    ),
    (
        UNKNOWN,
        SAID,
        (
            r"\bneither (?:true|proved|proven|confirmed|supported|provable|verified) nor "
            r"(?:false|disproved|disproven|refuted|contradicted|disprovable)",
            rf"\b(?:can(?:not|'t| not| neither)|could(?: not|n't)|(?:not |im)possible to|(?:unable|not able) to"
            rf"|no way (?:to|of)|hard to) (?:be )?(?:\w+ly )?{_DETERMINED}\b(?: (?:whether|if)\b[^.\n]{{0,120}})?"
            r"(?: (?:to be |as )?(?:true|false)(?:,? (?:or|nor) (?:true|false|not))?)?",
            r"\b"
            + any_of(
                "unknown uncertain undetermined undecided undecidable unresolved (?:not_|un)answerable indeterminate "
                "indeterminable unprovable inconclusive unverifiable unbekannt inconnue? indéterminée? desconocid[ao] "
                "indeterminad[ao]"
            )
            + r"\b|未知|无法(?:确定|判断)|不(?:能)?确定",
        ),
    ),
    (
        UNKNOWN,
        GROUNDS,
        (
            rf"\b{_NOT} (?:(?:have|provide|give|contain|offer|get) )?(?:us )?(?:with )?(?:enough|sufficient|adequate"
            rf"|any)(?: \w+)? "
            rf"{_INFORMATION}\b(?:[^.\n]{{0,120}}\b(?:whether|if|to){_REST})?",
            rf"\b(?:insufficient|inadequate|lack(?:s|ing)?(?: of| the)?"
            rf"|too little)(?: \w+)? {_INFORMATION}\b(?:[^.\n]{{0,120}}\b(?:whether|if|to){_REST})?",
            rf"{_DO_NOT} {_SAYS}{_REST}|\bno (?:\w+ )?(?:information|mention|indication|data|details?|way (?:of"
            rf"|to)){_REST}",
            rf"\b(?:is|are|was|were)(?: not|n't) (?:explicitly |directly |clearly |specifically )?{_GIVEN}{_REST}",
            rf"\b(?:we|one|you|it) (?:do|does)(?: not|n't) know{_REST}|{_DO_NOT} know (?:whether|if){_REST}",
            rf"\b(?:unclear (?:whether|if)|not clear){_REST}|\bleaves?\b[^.\n]{{0,40}}\b(?:open|undetermined"
            rf"|unanswered|unsettled)\b",
            r"\bno conclusions? (?:can|could)\b[^.\n]{0,80}|\bnothing (?:is|was|in|about|on|to|here)\b[^.\n]{0,80}"
            r"|\b(?:says?|states?|tells? us|mentions?"
            r"|reveals?) nothing\b[^.\n]{0,80}",
            r"\b(?:not sufficient|insufficient|not enough|too little) (?:to|for)\b[^.\n]{0,120}|\bsilent (?:on"
            r"|about)\b[^.\n]{0,80}",
            rf"\b(?:more|further|additional) {_INFORMATION}\b[^.\n]{{0,20}}\b(?:needed|required|necessary)\b",
            rf"\bneed(?:s|ed)? (?:more|further|additional) {_INFORMATION}\b[^.\n]{{0,120}}",
            rf"{_DO_NOT} follow\b[^.\n]{{0,60}}\bnor\b[^.\n]{{0,60}}\bnegation\b|\b(?:is|remains|stays|left|leaves it"
            rf"|question) open\b",
        ),
    ),
    (FALSE, GROUNDS, (r"(?:\bnot|n't) (?:the |a |quite )?(?:correct|right) (?:answer|choice|option|one)\b",)),
    (
        None,
        SAID,
        (
            r"\bwhether\b[^.,;\n]{0,120}",
            r"\bi(?:'m| am)? (?:can't|cannot|can not|unable to|not able to) (?:judge|assess|evaluate|verify) (?:that"
            r"|this)\b",
            r"\b(?:not )?true,?\s?(?:/|or|,|and|\|)\s?false\b(?:,?\s?(?:(?:/|or|,|and|\|)\s?){1,2}(?:un\w+|neither))?",
            r"\b(?:true|false),? (?:false|true),? or un\w+",
            r"\b(?:can|could|may|might)(?: also| well| still)? be (?:true|false|correct|incorrect|right"
            r"|wrong)\b(?! in\b)",
            r"(?:\b(?:is|are|was|be) ?)?(?:\bnot|n't) "
            + any_of("necessarily entirely completely always fully wholly quite strictly exactly only just")
            + rf" {_JUDGED}|\b(?:part(?:ial)?ly|mostly|largely|half|sometimes|somewhat) {_JUDGED}",
            r"\banswer (?:is|would be|can|should)(?:n't| not|not) (?:be )?(?-i:True|False|Unknown)\b(?! but)",
            rf"\b(?:is |are )?(?:{_NOT}|isn't|doesn't|does not|cannot be|can't be) (?:\w+ly )?(?:be )?"
            + any_of(
                "false incorrect wrong untrue inaccurate contradict\\w* refuted? disproved disproven supported "
                "entailed implied follow\\w* proven proved justified"
            )
            + r"\b",
            r"\b(?:correct|right|proper|wrong|the (?:true|incorrect|false)) "
            r"(?:answers?|options?|choices?|conclusions?|sentences?|statements?|verdicts?|version|form)\b",
            r"\b(?:true|false|correct|incorrect|wrong|right|yes|no) (?:that|to say)\b",
        ),
    ),
    (
        FALSE,
        SAID,
        (
            r"\bnicht (?:wahr|richtig|korrekt)\b|\b(?:n'est )?pas (?:vraie?|correcte?|exacte?)\b|\bno es (?:verdader"
            r"|ciert|correct)[ao]\b"
            r"|(?:\bnot|n't) the case that\b|\bimpossible (?:that|for)\b[^.,\n]{0,80}\b(?:true|correct)\b",
            rf"(?:\b(?:can|could|does|do|must|would)(?: {_NOT}|n't)|(?:\b|(?=n't)){_NOT}|\bcannot|\bcan't)"
            rf"(?: \w+ly)? (?:be )?(?:an? |the )?(?:\w+ly )?{_RIGHT}\b",
            r"\b(?:untrue|false|incorrect|inaccurate|falsch|unwahr|faux|fausse|fals[ao])\b|错误|假(?!设)|不正确|不对",
        ),
    ),
    (
        FALSE,
        GROUNDS,
        (r"\b(?:wrong|refuted|disproved|disproven|contradict(?:s|ed|ory)?|does(?: not|n't) hold|fails to hold)\b",),
    ),
    (FALSE, YES_NO, (r"\b(?:no|nope|nein|non)\b",)),
    (TRUE, SAID, (r"\b(?:true|correct|wahr|richtig|vraie?|verdader[ao]|ciert[ao])\b|正确|真(?!的)|(?<!不)对(?!于)",)),
    (
        TRUE,
        GROUNDS,
        (
            r"\b(?:accurate|proved|proven|entailed|right|valid|holds|supported|is (?:implied|confirmed))\b",
            r"\b(?:(?:conclusion|statement|it|claim) follows(?! (?:that|the))|follows (?:logically|directly|from)"
            r"|does (?:indeed |logically |in fact )?follow\b"
            r"|logically follows)\b",
            r"\b(?:entails?|proves?|supports?|implies|imply|confirms?|establish(?:es)?) (?:the|this) "
            r"(?:conclusion|statement|claim|hypothesis|proposition)\b",
        ),
    ),
    (TRUE, YES_NO, (r"\b(?:yes|yep|ja|oui|sí)\b",)),
)
"""Verdict, how it is given, and its phrases; no verdict for phrases that leave it open, quote it or are about another
thing. The first phrase in this order that matches at a place is the one meant there."""
_PHRASE = re.compile("|".join(f"({'|'.join(phrases)})" for _, _, phrases in _PHRASES), re.IGNORECASE)


def collapse_verdicts(text: str) -> str:
    """``text`` with one character in place of every phrase that says a verdict."""

    def collapsed(match: re.Match[str]) -> str:
        verdict, kind, _ = _PHRASES[(match.lastindex or 1) - 1]
        return "…" if verdict is None else mention(verdict, kind)

    return _PHRASE.sub(collapsed, text)
