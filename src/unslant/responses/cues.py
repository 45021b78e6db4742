"""The words by which an answer in words is recognised."""

from __future__ import annotations

import re

_I = re.IGNORECASE


def _any(*phrases: str) -> str:
    return "|".join(phrase.replace("_", r"\s+") for line in phrases for phrase in line.split())


_FILLER = (
    r"(?:\s+(?:"
    + _any(
        "therefore thus clearly definitely likely most_likely probably indeed then actually simply both only",
        "either_of just still now as_follows given_by option choice",
    )
    + r")\b)*"
)
_ANSWER = r"(?:answers?|options?|choices?|solutions?|responses?|conclusion|verdict|selections?|ones?)"
CUE = re.compile(
    r"(?:"
    # "the answer is", "correct options are:", "Answer:", "answer = "
    rf"\b{_ANSWER}(?:\s*\((?:s|es)\))?(?:\s+(?:letters?|numbers?|labels?|here|to (?:this|the) question))?"
    rf"(?:\s+(?:is|are|was|were|(?:would|should|must|could|will)\s+be|would\s+then\s+be|seems?\s+to\s+be){_FILLER}\s*[:=]?|\s*(?:[:=]|->|→|=>))"
    # "I choose", "we would go with"
    r"|\b(?:i|we|i'd|i'll|we'd)\b(?:\s+(?:would|will|shall|must|therefore|thus))*\s+"
    r"(?:choose|pick|select|answer(?:\s+with)?|go\s+(?:with|for)|opt\s+for|vote\s+for)\b"
    # "is (D)." after what the question asks for, in brackets only
    r"|\b(?:is|are)(?=\s+\((?-i:[A-Z])\)\s*(?:[.,]|$))"
    r")\s*(?:[:=]\s*)?",
    _I | re.MULTILINE,
)
"""What stands before an answer."""

SUFFIX_CUE = (
    r"[ \t]*(?:\b(?:is|are|seems?|must\s+be|would\s+be)\b)[ \t]*(?:(?:"
    + _any("the both all also most likely probably clearly definitely only indeed therefore thus")
    + r")\b[ \t]*)*(?:(?:"
    + _any("correct right best true valid accurate appropriate proper")
    + r")\b(?![ \t]*(?:/|or)\b)|answers?\b)"
)
"""What stands after an answer: "A and C are correct"."""

DENIED = re.compile(
    r"[\])}:]*[ \t]*(?:(?:"
    + _any("is are was were seems? looks? can could would will must do does may might be")
    + r")\b[ \t]*)*(?:(?:"
    + _any("also all both clearly definitely probably therefore simply the an? obviously")
    + r")[ \t]+)*(?:n't|(?:"
    + _any("not cannot can't isn't aren't doesn't wrong incorrect false untrue invalid")
    + "|"
    + _any("ruled_out excluded eliminated out")
    + r")\b)",
    _I,
)
"""What takes an answer back: "B is wrong", "C cannot be right"."""

_OPTION = r"(?:options?|choices?|answers?|alternatives?|statements?|ones|possibilities)"
_RIGHT = (
    r"(?:correct|right|true|valid|accurate|suitable|appropriate|applicable|fits?|apply|applies|match(?:es)?|works?)"
)
NONE_PHRASE = re.compile(
    r"(?:that\s+|there\s+(?:is|are)\s+)?(?:"
    rf"none(?:\s+of\s+(?:the|these|them|those|all)(?:\s+\w+)?(?:\s+{_OPTION})?(?:\s+(?:above|listed|given|provided|shown|presented))*)?(?:\s+(?:is|are|seems?(?:\s+to\s+be)?)\s+{_RIGHT}|\s+{_RIGHT})?"
    rf"|no\s+(?:single\s+|one\s+)?(?:{_RIGHT}\s+{_OPTION}|{_OPTION}(?:\s+(?:is|are)\s+{_RIGHT}|\s+{_RIGHT})?)"
    r"|nothing|neither(?:\s+of\s+(?:the|these|them)(?:\s+\w+)?)?|not\s+any(?:\s+of\s+(?:the|these|them)(?:\s+\w+)?)?"
    rf"|all\s+(?:of\s+)?(?:the\s+|these\s+)?(?:\w+\s+)?{_OPTION}\s+are\s+(?:wrong|incorrect|false|not\s+{_RIGHT})"
    r"|n/a|\{\s*\}|\[\s*\]|∅|\\emptyset|empty(?:\s+set)?|null"
    r")(?!\w)",
    _I,
)
"""Ways of saying "no option is right" where an answer is expected."""

NONE_STATEMENT = re.compile(
    rf"\bnone\s+(?:of\s+(?:the|these|them|those|all)\b(?:\s+\w+)?(?:\s+{_OPTION})?(?:\s+(?:above|listed|given|provided|shown|presented))*)"
    rf"|\bnone\s+(?:is|are)\s+{_RIGHT}"
    rf"|\bno\s+(?:single\s+|one\s+)?(?:{_RIGHT}\s+{_OPTION}|{_OPTION}\s+(?:is|are|seems?)\s+{_RIGHT}|{_OPTION}\s+{_RIGHT})"
    rf"|\ball\s+(?:of\s+)?(?:the\s+|these\s+)?(?:\w+\s+)?{_OPTION}\s+are\s+(?:wrong|incorrect|false|not\s+{_RIGHT})"
    rf"|\b(?:neither|not\s+one|not\s+any)\s+of\s+(?:the|these)\s+(?:\w+\s+)?{_OPTION}\b",
    _I,
)
"""Statements anywhere in a reply that no option is right."""

ALL_PHRASE = re.compile(
    rf"(?:all\s+of\s+(?:the\s+above|them|these)|all\s+(?:of\s+)?(?:the\s+|these\s+)?(?:\w+\s+)?{_OPTION}(?:\s+are\s+(?:correct|right|true)|\s+above)?|all\s+are\s+(?:correct|right|true)|every\s+option)"
    rf"(?!\w)(?!\s+(?:are|is)\s+(?:wrong|incorrect|false|not))(?!\s+(?:except|but)\b)",
    _I,
)
"""Ways of saying "every option is right"."""

REFUSAL = re.compile(
    r"\b(?:i|we)(?:\s+am|'m)?\s*(?:sorry|afraid)\b|\bi\s+apologi[sz]e\b"
    r"|\b(?:i|we)\s+(?:can't|cannot|can\s+not|could\s+not|won't|will\s+not|am\s+(?:not\s+able|unable)\s+to|must\s+(?:decline|refuse))\s*"
    r"(?:help|assist|answer|respond|comply|provide|discuss|engage|fulfil|fulfill|complete|with|to\b|this\b|that\b)"
    r"|\bi'm\s+(?:not\s+able|unable)\s+to\b|\bi\s+(?:decline|refuse)\s+to\b"
    r"|\bas\s+an?\s+(?:ai|language\s+model|artificial)\b|\bagainst\s+my\s+(?:guidelines|policy|programming)\b",
    _I,
)
"""Signs that the model declined; looked for only where no answer was found."""

_UNKNOWN = (
    r"(?:unknown|uncertain|undetermined|undecidable|indeterminate|inconclusive|unclear|unprovable"
    r"|(?:can(?:not|'t|\s+not)|could\s+not|can\s+neither)\s+be\s+(?:determined|inferred|concluded|known|decided|proved|proven|established|verified|confirmed)"
    r"(?:\s+(?:to\s+be\s+)?(?:as\s+)?(?:true|false)(?:\s+(?:or|nor)\s+(?:true|false))?)?"
    r"|(?:cannot|can't)\s+(?:determine|tell|conclude|say|know|infer)"
    r"|not\s+(?:enough|sufficient)\s+(?:information|facts|evidence)|insufficient\s+(?:information|evidence|facts|data)"
    r"|neither\s+(?:true|proved|proven)\s+nor\s+(?:false|disproved|disproven)|not\s+(?:known|determined|stated|given|mentioned))"
)
VERDICT_PHRASES = (
    ("Unknown", re.compile(rf"\b{_UNKNOWN}\b", _I)),
    (
        "False",
        re.compile(
            r"\b(?:(?:is\s+)?not\s+(?:true|correct|right)|isn't\s+(?:true|correct)|untrue|disproved|disproven|refuted|incorrect|false|contradicted|no)\b",
            _I,
        ),
    ),
    ("True", re.compile(r"\b(?:true|proved|proven|correct|yes|entailed)\b", _I)),
)
"""Verdict and its phrases, to be looked for in this order, each taken out before the next."""

VERDICT_CUE = re.compile(
    r"(?:\b(?:answers?|options?|choices?|verdict|conclusion|label|judge?ment|result|response)\b\s*"
    r"(?:is|are|would\s+be|must\s+be|[:=])|\bi(?:\s+would|'d)?\s+(?:choose|pick|select|say)\b"
    r"|\b(?:statement|claim|hypothesis|proposition)\s+(?:is|must\s+be|would\s+be|[:=])"
    r"|\b(?:therefore|thus|hence|so),?\s+(?:it|this|that)\s+is|\bit\s+is\s+therefore)\s*[:=]?\s*[\[({]?(?P<answer>[^.;\n]{1,80})",
    _I,
)
"""What stands before a verdict, and the words after it."""
