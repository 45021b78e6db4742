"""How answers are put into words: regular expressions over collapsed replies (:mod:`collapse`), in which runs of spaces
are one space. Every repetition is bounded, so that time grows with a reply's length and no faster."""

from __future__ import annotations

import re

from unslant.responses.label_words import any_of
from unslant.responses.mentions import BOTH, LABEL, LABELLED, MASKED, NOT_ANY, ONE, characters
from unslant.responses.reply_text import FIELD

_I = re.IGNORECASE
_IM = re.IGNORECASE | re.MULTILINE
BEGIN = r"(?:^|(?<=[.!?:)] )|(?<=\n))"
"""Where a sentence or clause begins."""
END = r"(?= ?(?:[.!)⟧]|\n|\Z))"

# ----------------------------------------------------------------------------------------------------------- lists

_AND = r"\b(?:and|as well as|together with|along with|plus|und|sowie|et|y|e)\b"
JOINED = (
    rf"(?: ?(?:[,/&+|、]|{_AND}|[和与及]) ?(?:(?:{_AND}|&) )?(?:(?:also|the|an?|options?|choices?|las?|los|les?"
    rf"|die) ){{0,2}}"
    rf"| (?={LABELLED})|(?={LABELLED}))"
)
SUBJECT = rf"{ONE}(?:{JOINED}{ONE}){{0,25}}"
"""One mention, or several joined, before a verb."""
_VERB = " " + any_of(
    "is was has does are were have do seems? appears? says? states? means? refers? describes? would can could may might"
)
_LINE_END = r"(?= ?[.,;:-]{0,3} ?(?:\n|\Z|⟧))"
LISTED = (
    rf"{ONE}(?:(?! ?[,;] ?(?:and )?{SUBJECT}{_VERB}\b)(?:{JOINED}| ?; ?(?:and )?){ONE}(?! (?:is|was|has"
    rf"|does)\b)){{0,25}}"
    rf"(?:[.,;-]{{0,3}} ?\n ?{ONE}{_LINE_END}){{0,25}}"
)
"""The same as an answer: no member is the subject of what follows; further ones may stand on lines of their own."""
EITHER = rf"{ONE}(?:(?:{JOINED}|[ ,]{{0,3}}\b(?:or|nor)\b ){ONE}){{0,25}}"
"""The same where "or" joins as well."""

# ------------------------------------------------------------------------------------------------------ none and all

_OPTION = (
    r"(?:(?:answer |given |listed |provided |above |available |remaining |other |four |five |three )*"
    r"(?:options?|choices?|answers?|alternatives?|statements?|ones|possibilities)\b)"
)
RIGHT = (
    r"(?:(?:entirely |fully |quite |exactly |really |actually |completely )?"
    + any_of(
        "correct right true valid accurate suitable appropriate applicable fits? apply applies match(?:es)? works?"
    )
    + ")"
)
_WRONG = rf"(?:wrong|incorrect|false|not {RIGHT}|ruled out|eliminated|excluded)"
_NAMED = rf"(?: ?\(?(?:{EITHER})\)?)?"
_GIVEN = r"(?: (?:above|listed|given|provided|shown|presented|here))*"
_OF_THEM = (
    rf"(?: of {EITHER}"
    rf"| of (?:the|these|them|those|all)(?: (?!{ONE}|others?\b)\w{{1,20}}\b)?(?: {_OPTION})?{_GIVEN}{_NAMED})"
)
_LISTED_ANYWHERE = (
    r"(?:(?:listed|(?:given|provided|present|included|available|offered|shown) (?:among|in|as|here|above))\b"
    r"|(?:among|amongst|one of|any of|in|within|on|part of) (?:the|these|those|any)\b)"
)
_ALL_WRONG = rf"all (?:of )?(?:the |these )?(?:\w{{1,12}} )?{_OPTION}{_NAMED} are {_WRONG}"
_NO_RIGHT_ONE = rf"no (?:single |one )?(?:{RIGHT} {_OPTION}|{_OPTION} (?:is |are |seems? )?{RIGHT}"
_NONE_ELSEWHERE = (
    r"以上(?:都|皆|均)(?:不对|不是|不正确|错误|非|错)|(?:无|没有)正确(?:答案|选项)|\b(?:keine der|aucune (?:des|de ces)"
    r"|ninguna de (?:las|estas)) \w{1,20}"
)
NONE = (
    rf"(?:(?:that |there (?:is|are) )?(?:(?:no,? )?none(?:{_OF_THEM})?(?: (?:(?:is|are|seems?(?: to be)?) )?{RIGHT})?"
    rf"|{_NO_RIGHT_ONE}|(?:options?|choices?)\b)|nothing|(?:neither|not any)(?:{_OF_THEM})?"
    rf"|not {_LISTED_ANYWHERE}[^.,\n]{{0,60}}|{_ALL_WRONG}|n/a|\{{\s{{0,3}}\}}|\[\s{{0,3}}\]|∅|\\emptyset"
    rf"|empty(?: set)?|null|keine?|aucune?|ninguna?|都不对|{_NONE_ELSEWHERE})(?!\w))"
)
"""Ways of saying "no option is right" where an answer is expected."""
NONE_STATED = re.compile(
    rf"\bnone{_OF_THEM}(?! others?\b)(?! (?:\w+ ){{0,2}}(?:are|is) (?:wrong|incorrect|false))"
    rf"|\bnone (?:is|are) {RIGHT}|\b{_NO_RIGHT_ONE})|\b{_ALL_WRONG}|\ball (?:of )?(?:the|these"
    rf"|them)(?: \w{{1,12}})? are {_WRONG}|\b(?:neither|not one|not any) of (?:the|these) (?:\w{{1,12}} )?{_OPTION}"
    rf"|(?:\bnot|n't) (?:(?:a|any|one) (?:single )?{RIGHT} {_OPTION}|(?:think|believe) (?:that )?any of (?:the|these"
    rf"|them)\b[^.\n]{{0,30}}{RIGHT})|\A(?:no,? )?there (?:isn't|is not|aren't|are not) (?:one|any)\b(?! \w)"
    rf"|\b(?:correct|right) (?:answers?|options?|choices?) (?:is|are|was)(?: not|n't) (?:given|listed|provided"
    rf"|available"
    rf"|present|shown|included)\b(?! (?:by|in the (?:passage|text|question|premises))\b)"
    rf"|{_OPTION}[^.\n]{{0,40}} (?:do|does)(?:n't| not) (?:include|contain|list|have|show) (?:the|a|any) (?:correct"
    rf"|right)|\b(?:answer|(?:correct|right) \w{{2,20}})\b[^.\n]{{0,60}} (?:is|are|was)(?: not"
    rf"|n't) (?:actually )?{_LISTED_ANYWHERE}|{_NONE_ELSEWHERE}",
    _I,
)
"""Statements anywhere in a reply that no option is right."""
ALL = (
    r"(?:(?:all of (?:the above|them|these)(?: are (?:all )?(?:correct|right|true))?"
    rf"|all (?:of )?(?:the |these )?(?:\w{{1,12}} )?{_OPTION}{_NAMED}(?: are (?:correct|right|true)| above)?"
    r"|all are (?:correct|right|true)|every option)(?!\w)(?! (?:are|is) (?:wrong|incorrect|false|not))(?!,? (?:except"
    r"|but)\b))"
)
"""Ways of saying "every option is right"."""
ALL_BUT = re.compile(
    rf"\b(?:all|every ?(?:thing|one)?|any)(?: of)?(?: the| these| them)?(?: \w{{1,12}})?(?: {_OPTION})?"
    rf"(?P<before> (?:is|are) (?:correct|right|true|wrong|incorrect|false))?,?"
    rf" (?:except(?: for)?|but|apart from|other than|besides) (?:for )?(?:option )?(?P<said>{EITHER})"
    rf"(?: (?:is|are|(?:can|could|may) be) (?P<after>{RIGHT}|{_WRONG})|(?P<alone>[ .!]*\Z))",
    _I,
)
"""Every option but these: "all except B are correct", "everything but B is wrong"."""

# ------------------------------------------------------------------------------------------------ explicit answers

_FILLER = (
    r"(?:(?:"
    + any_of(
        "therefore thus clearly definitely likely most_likely probably indeed then actually simply both only either_of "
        "just still now as_follows given_by by far_and_away also all that approximately about roughly around the an? "
        "options? choices? letters? labels? numbers? statements? la le les el los las die der das"
    )
    + r")\b[ ,:]{0,3})*"
)
_OPENING = r"[\s:=,\"'(\[{<>⟦→-]{0,8}"
SLOT = rf"{_OPENING}{_FILLER}{_OPENING}(?P<slot>{NONE}|{ALL}|{LISTED})"
"""What stands where an answer is expected."""

_BEFORE_FIELD = any_of(
    "so thus therefore hence and yes final correct right best short direct selected chosen the my your"
)
FIELD_CUE = (
    rf"(?:{FIELD} ?|{BEGIN}[ (\[]{{0,3}}(?:{_BEFORE_FIELD}[ ,]{{1,2}}){{0,5}}"
    + any_of(
        "answers? options? choices? solutions? responses? conclusion verdict selections? pick prediction result "
        "output ans\\.? final correct right true tl;dr in_short antwort(?:en)? lösung réponses? respuestas? "
        "(?:正确)?答案 回答 选择 解答 答え 正解"
    )
    + r"(?: ?\((?:s|es)\)| (?:letters?|numbers?|labels?|choices?|options?|key))? ?(?:[:=]|->|→|-(?= )|是|为))"
)
"""A field for the answer: "Answer:", ``\\boxed{}``, JSON."""
_NOUN = (
    r"(?:answers?|options?|choices?|conclusion|verdict|selections?|pick|guess|vote|(?:letter|label)(?! of)"
    r"|(?:correct|right|best|only) (?:ones?|statements?|letters?|labels?)|(?:closest|nearest|best|most \w{2,15})"
    r"(?: (?:one|match|option|choice|answer|fit|approximation|candidate|statement))?)"
)
_COPULA = (
    r"(?:is|are|was|were|(?:would|should|must|will|has to|have to)(?: then| therefore| thus)? be"
    r"|seems? to be|appears? to be|remains?)"
)
_GAP = rf"(?:(?:(?!\b(?:but|so|and|while|than|because)\b)[^.,;:\n?!{NOT_ANY}]){{0,80}}?|,[^.;:\n?!{NOT_ANY}]{{0,60}},)"
CUE = (
    rf"(?:\b{_NOUN}(?:\((?:s|es)\))?{_GAP} ?(?:\b{_COPULA}\b|=|->|→)|\b(?:(?:correct|right|best|final) {_NOUN}"
    rf"|{_NOUN}[^.,;:\n{NOT_ANY}]{{0,60}} (?:correct|right|best))[^.,;:\n?!{NOT_ANY}]{{0,60}}:"
    rf"|\bthere (?:is|are) (?:only |exactly )?(?:one|two|three|four|five)(?: of them| such \w{{2,12}})?:"
    rf"|\b(?:the |my |our )(?:correct|right|best|final|true)(?: (?:answers?|options?|choices?))?,?(?= {LABELLED})"
    rf"|\b(?:(?:richtige?n?|korrekte?n?)? ?(?:antwort(?:en)?|lösung|option)|richtig|korrekt) (?:ist|lautet|sind|lauten"
    rf"|wäre)|\b(?:réponses?|options?|choix)(?: (?:correctes?|exactes?|justes?|finales?))? (?:est|sont|serait)"
    rf"|\b(?:es|son|sind|sont) (?:correct[aoe]?s?|richtig|vraie?s?|verdader[ao]s?)(?= (?:las?|les?|el|los"
    rf"|die)? ?{LABELLED})"
    rf"|\b(?:respuestas?|opci[oó]n(?:es)?|soluci[oó]n)(?: (?:correctas?|finales?|adecuadas?))? (?:es|son|sería)"
    rf"|(?:答案|选项|選項|答え|正解|选择|选)(?:应该|应|就)?(?:是|为|選|选|は)?|故选|应选|所以选|而是)"
)
"""What stands before an answer in a sentence: "the correct option is"."""
FORCED = (
    r" (?:(?:i|we|i'm|i am) )?(?:(?:was |were )?(?:forced|pressed|asked|pushed|obliged)|had to|have to|must|need to"
    r"|were to)\b[^.,;:\n]{0,40}[,:]"
)
"""What follows "if" before a choice that somebody has to make."""
_BEFORE_CHOOSING = any_of(
    "would will shall must therefore thus have had am are was to rather still also finally personally simply decided "
    "choosing going leaning say forced"
)
CHOOSING = (
    rf"(?:\b(?:i|we|i'd|i'll|we'd|i've|i'm|we're|let's|you should|you can|is)\b(?: {_BEFORE_CHOOSING})* "
    + any_of(
        "choose chose chosen pick(?:ed)? select(?:ed)? answer(?:ed)?(?:_with)? go(?:ing)?_(?:with|for) went_(?:with"
        "|for) opt(?:ed)?_for vote(?:d)?_for say guess(?:ed)? bet(?:_on)? settled?_(?:on|for) prefer "
        "lean(?:ing)?_(?:towards?|to) stick(?:ing)?_with mark(?:ed)? conclude believe think feel take suggest "
        "recommend identif(?:y|ied)"
    )
    + r"(?: that)?(?: (?:it|this|that)(?: is|'s| must be| has to be| should be| would be| to be))?\b"
    rf"|{BEGIN}(?:so |thus |therefore |hence )?(?:choose|select|pick|go with|mark)\b|\bif{FORCED}"
    r"|\b(?:ich (?:wähle|nehme|würde)|je (?:choisis|prends)|elijo|escojo|me quedo con)\b|我(?:会)?(?:选择|选|认为是))"
)
"""Words of somebody who chooses."""
_CALLING = (
    rf"[ ,]{{0,2}}(?:{_COPULA}|seems?|looks?(?: like)?|appears?|(?:is|are) (?:likely|probably|most likely"
    rf"|clearly) to be|(?:is|are) considered|as|being) (?:"
    + any_of(
        "thus therefore then clearly indeed definitely probably also both all likely now still to_be hence obviously "
        "certainly the our my your two by_far"
    )
    + " ){0,4}"
)
CALLED_ANSWER = re.compile(
    rf"(?P<said>{SUBJECT}){_CALLING}(?:an? (?=(?:more|better|most|best) ))?(?:"
    + any_of(
        "correct right best final appropriate accurate likely suitable valid proper closest nearest chosen only "
        "logical reasonable plausible single most more better fitting probable"
    )
    + r" ){0,3}(?:answers?|options?|choices?|solutions?|ones?|pick|fit|match|candidate|selection)\b(?!,? (?:if|only"
    rf"|when|unless)\b)|\b(?:leav(?:es|ing)|mak(?:es|ing)|giv(?:es|ing)|yield(?:s|ing)) (?:us (?:with )?|only |just "
    rf"|with |the )*(?P<left>{LISTED})|\b(?:matches|corresponds to|points to|indicates|is equivalent to"
    rf"|is the same as) (?:the )?"
    rf"(?P<matched>{characters(LABEL, BOTH)})",
    _I,
)
"""Options that are called the answer: "B is the correct option", "which leaves C"."""
_MARKED = characters(LABEL, BOTH)
CONCLUDED = re.compile(
    rf"(?:\b(?:so|thus|therefore|hence|consequently|in conclusion|ie,?|namely|donc|por lo tanto"
    rf"|(?:it|this|that)(?:'s| is| was| must be| has to be| should be)(?: therefore| thus| clearly)?)[ ,:]{{1,3}}"
    rf"|(?:→|->|=>) ?|\bnot {characters(MASKED)},? but (?:rather )?)(?:(?:it|this)(?:'s| is| must be) |the |option "
    rf"|only |both |clearly )*(?P<said>{LISTED})(?:{END}"
    rf"|(?=,? (?:because|since|as|for|which|given|that (?:is|are))\b))"
    rf"|{BEGIN}[^.!?\n{NOT_ANY}]{{0,300}}\b(?:is|are|be) (?P<marked>{_MARKED}(?:{JOINED}{_MARKED}){{0,25}}){END}",
    _I,
)
"""Options that a sentence comes down to: "so B.", "is (D)."."""
CORRECTED = re.compile(
    rf"(?:\b(?:actually|wait|correction|on second thoughts?|sorry|oops|rather|hmm+|in fact"
    rf"|(?:up)?on (?:reflection|reconsideration))"
    rf"|(?:(?<=[.!?] )|(?<=\n)"
    rf"|^)no(?=[,.;!-]{{1,3}} ?(?:\w{{1,8}} ){{0,3}}{LABELLED})) ?[,:;.!-]{{0,3}}[ \n]{{0,2}}(?:(?:i (?:think|believe"
    rf"|mean|meant)|make (?:that|it)|it(?:'s| is| should be| must be| has to be)|that(?:'s| is)"
    rf"|the answer is|let's go with|go with|no|actually|wait)[ ,]{{1,2}}){{0,3}}(?P<said>{LISTED})(?!\?)",
    _I,
)
"""An answer that corrects another: "Actually, B covers all three"."""
RETRACTED = re.compile(
    r"\b(?:wait|hmm+|no|actually|oops|hold on)\b[^\n.!?]{0,20}(?:(?:that|this|it)(?:'s| is| was) (?:wrong|not right"
    r"|incorrect|a mistake|not correct)|i (?:made|was|got|misread|misunderstood))|\bscratch that\b"
    r"|\bon second thoughts?\b|\bi (?:made|have made|just made) (?:a mistake|an error)\b|\bcorrection\b"
    r"|\blet me (?:re-?(?:consider|think|check|evaluate)|correct (?:myself|that)|revise|start over)"
    r"|\bi take that back\b|(?:^|[.!?\n-] ?)(?:wait|hold on)\b|\b(?:looking|thinking|checking|reading)(?: it"
    r"| this)? (?:again"
    r"|more closely)\b",
    _IM,
)
"""Words that take back what was said before."""

# --------------------------------------------------------------------------------------------------- judged one by one

_CALLED = any_of(
    "correct right true accurate valid acceptable yes likely probable richtig korrekt vraie?s? correct[aoe]?s? "
    "exacte?s? justes? "
    "verdader[ao]s? (?:the_)?(?:best|closest|nearest|strongest) an?_(?:valid|correct|right|acceptable)_(?:answer"
    "|option|choice) 正确 对 "
    "(?:the_)?most_(?:likely|appropriate|accurate|suitable|plausible|correct|probable|reasonable"
    "|logical|fitting|relevant)"
)
CALLED_RIGHT = re.compile(
    rf"(?P<said>{SUBJECT})[ )]{{0,2}}(?:(?:[:(-]|->|→) ?(?:(?:this |it )?(?:is|are) |it's )?"
    r"|\. (?=(?:true|correct|yes|right)[ .!]{0,3}(?:\n|\Z))|\.? ?(?=\(correct\))|\? ?|[都均]?是?(?=正确|对的)"
    r"| (?:(?:is|are|was|were|seems?|appears?|looks?|must be|would be|holds?|ist|sind|est|sont|es|son) ){1,2})"
    r"(?:(?:the|both|all|also|most likely|probably|clearly|definitely|only|indeed|therefore|thus|likely|each|certainly"
    rf"|in fact|the only|\() ?){{0,3}}{_CALLED}(?!\w)(?! ?(?:/|or|only|if|when|unless)\b)",
    _I,
)
"""Options that are called right, one by one or together."""
FITS = re.compile(
    rf"(?P<said>{SUBJECT}) (?:best (?:fits?|matches|describes?|answers?|explains?|represents?|completes?|suits?"
    rf"|captures?)|(?:fits?|matches|suits?|works?|applies|apply|holds?)(?: (?:the )?best| perfectly"
    rf"| better)?(?= ?(?:[.,;!]|\n|\Z| the| this| here| because| since))|makes? (?:the most )?sense"
    rf"|(?:comes?|is|seems) (?:the )?(?:closest|nearest)|(?:is|are) the only\b(?! (?:\w+ )?(?:wrong|incorrect|false)))"
    rf"|\bonly (?:option )?(?P<only>{ONE})(?= (?!and\b|or\b)\w)",
    _I,
)
"""Options that are said to fit."""
_MARKED_LINE = rf"^ ?(?P<said>{ONE})[^\n{NOT_ANY}]{{0,300}}"
MARKED_RIGHT = re.compile(rf"{_MARKED_LINE}(?:\(correct\)|[.:;-] (?:this is )?(?:correct|true|right|yes))[ .!]*$", _IM)
MARKED_WRONG = re.compile(
    rf"{_MARKED_LINE}(?:\(incorrect\)|[.:;-] (?:this is )?(?:incorrect|false|wrong|not correct|no))[ .!]*$", _IM
)
"""Lines about an option that end in a judgement of it."""

NOT_ANY_OF_THEM = re.compile(
    r"(?:(?!\b(?:i|we|if)\b)[^.,;\n]){0,80}(?:n't|\bnot) (?:\w+ ){0,3}any of (?:these|those|them|the (?:options"
    r"|choices|answers))"
    r"\b[^,;\n]*\Z",
    _I,
)
NONE_FIRST = re.compile(r"\W*none(?: of (?:them|these|those|the (?:above|options|answers)))?[,;:-] ?\w", _I)
COUNTS = {"two": 2, "both": 2, "three": 3, "four": 4, "five": 5, "six": 6}
ALL_OF_THEM = re.compile(
    r"\W*(?:yes,? )?all (?:of (?:them|these|those|the options|the answers)|(?P<n>two|three|four|five"
    r"|six)(?: of (?:them|these))?"
    r"(?: options| answers)?) (?:are|apply|fit)\b(?! (?:not|wrong|incorrect|false|un|in|the same"
    r"|possible))[^,;\n]{0,40}\Z",
    _I,
)
"""Replies that name no option and say that none is right, or all; and the numbers that "all four" may hold."""

REFUSAL = re.compile(
    r"\b(?:i|we)(?: am|'m)? ?(?:sorry|afraid)\b|\bi apologi[sz]e\b|\b(?:i|we) (?:can't|can ?not|could not|won't"
    r"|will not|am (?:not able|unable) to|must (?:decline|refuse)) ?(?:help|assist|answer|respond|comply|provide"
    r"|discuss|engage|fulfill?|complete|see|view|access|choose|with|to\b|this\b|that\b)|\bi'm (?:not able|unable) to\b"
    r"|\bi (?:decline|refuse) to\b|\bi (?:don't|do not) (?:think|believe|feel) i (?:can|should)\b"
    r"|\bas an? (?:ai|language model|artificial)\b|\bagainst my (?:guidelines|policy|programming)\b"
    r"|\b(?:image|picture|figure|diagram|graph|passage)\b[^.\n]{0,40}\b(?:not|isn't|wasn't|missing)\b",
    _I,
)
"""Signs that the model declined; looked for only where no answer was found."""
