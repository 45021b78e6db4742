"""The words by which an answer in words is recognised, as regular expressions over collapsed replies.

Every repetition is bounded, so that no reply takes longer than its length allows.
"""

from __future__ import annotations

import re

from unslant.responses.mentions import AMBIGUOUS, BARE, BOTH, CONFLICT, LABEL, MASKED, TEXT, WORD, WRONG, characters
from unslant.responses.reply_text import END_FIELD, FIELD

_I = re.IGNORECASE
_IM = re.IGNORECASE | re.MULTILINE


def _words(phrases: str) -> str:
    """Alternatives given as words; ``_`` stands for a space within one."""
    return "(?:" + "|".join(phrase.replace("_", r" ") for phrase in phrases.split()) + ")"


# ---------------------------------------------------------------------------------------------- labels and texts

_JOINING = (
    "and or because since as is are seems but only alone plus together along so then rather instead not "
    "und oder ist weil et ou est car y o es porque"
).split()
_VERBS = (
    "was were due given with appears looks remains would must should could can cannot does do has will if too also which "
    "for though although while however therefore fits makes holds applies matches works"
).split()
AFTER_ANY_LABEL = frozenset(
    [*_JOINING, *_VERBS, *"correct incorrect right wrong true false answer option choice".split()]
)
AFTER_LABEL = {
    "A": frozenset([*_JOINING, *_VERBS]),
    **dict.fromkeys(("a", "I", "i"), frozenset(_JOINING)),
}
"""Words that may follow a label that is a word or a number as well; the second for labels that are English words."""

LABEL_KEYWORD = re.compile(
    r"(?<!\w)(?:options?|choices?|letters?|alternatives?|opci[oó]n(?:es)?|optionen|lettre|letra|buchstabe|markers?|marked|label(?:l?ed)?|选项|選項|#|no\.)"
    r" ?[\"'(\[{<]{0,3}\Z",
    _I,
)
"""What says that a label follows."""

ORDINALS = {
    word: i
    for words in ("first second third fourth fifth sixth seventh eighth", "1st 2nd 3rd 4th 5th 6th 7th 8th")
    for i, word in enumerate(words.split())
}
_PLACED = r"(?:(?:listed|given|answer) )?(?:options?|choices?|alternatives?|answer choices?|answers?|ones?)\b(?! (?:is|was) that)"
ORDINAL = re.compile(
    rf"\b(?:(?P<place>{'|'.join(ORDINALS)}|last) {_PLACED}|the (?P<alone>{'|'.join(ORDINALS)}|last)(?=[.,;!]|\n|\Z)"
    rf"|(?P<end>first|last) (?P<many>two|three|four)(?: {_PLACED}|(?= (?:are|is|of)\b|[.,;!]|\n|\Z)))",
    _I,
)
"""Options named by their place: "the second option", "the last two"."""
SKIPPED = frozenset(
    "my your his her its our their it they them is are was were be been some any would will do does did very".split()
)
"""Words that a reply may put into an option's text."""

BEFORE_NO_LABEL = re.compile(
    r"\b(?:steps?|(?:sub)?questions?|parts?|figures?|fig|tables?|equations?|eq|sections?|chapters?|pages?|lines?"
    r"|vitamins?|hepatitis|types?|class|classes|phases?|groups?|grades?|stages?|plans?|points?|cases?|premises?|sent"
    r"|sentences?|paragraphs?|rules?|facts?|lemma|theorem|laws?|articles?|amendments?|world war|level|version|day|year"
    r"|about|approximately|around|at least|at most|than|exactly) ?\Z",
    _I,
)
"""What says that the letter or number that follows is no label."""

NUMBER_GOES_ON = re.compile(r" ?(?:[%^*/×·=+]|\d|[-.,]\d|(?:hundred|thousand|million|billion|percent)\b)", _I)

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

# ------------------------------------------------------------------------------------------------------- mentions

ONE = characters(LABEL, BARE, BOTH, TEXT, WORD, AMBIGUOUS, CONFLICT)
"""A mention that no mask has touched."""
LABELLED = characters(LABEL, BARE, BOTH, AMBIGUOUS, CONFLICT)
BOTH_ONLY = characters(BOTH)
MARKED = characters(LABEL, BOTH, CONFLICT)
ANY = characters(LABEL, BARE, BOTH, TEXT, WORD, AMBIGUOUS, CONFLICT, WRONG, MASKED)

_AND = r"\b(?:and|as well as|together with|along with|plus|und|sowie|et|y|e)\b"
_JOINED = (
    rf"(?: ?(?:[,;/&+|、]|{_AND}|[和与及]) ?(?:(?:{_AND}|&) )?(?:(?:also|the|an?|options?|choices?) ){{0,2}}"
    rf"| (?={LABELLED})|(?={LABELLED}))"
)
_ALONE = r"(?= ?[.,;:-]{0,3} ?(?:\n|\Z|⟧))"
_VERB = r" (?:is|was|has|does|are|were|have|do|seems?|appears?|says?|states?|means?|refers?|describes?|would|can|could|may|might)\b"
_MORE = rf"(?:{_JOINED}{ONE}){{0,25}}"
LISTED = (
    rf"{ONE}(?:(?! ?[,;] ?(?:and )?{ONE}{_MORE}{_VERB}){_JOINED}{ONE}(?! (?:is|was|has|does)\b)){{0,25}}"
    rf"(?:[.,;-]{{0,3}} ?\n ?{ONE}{_ALONE}){{0,25}}"
)
"""One mention, or several as one answer."""
SUBJECT = rf"{ONE}{_MORE}"
"""The same before a verb."""
ALTERNATIVES = re.compile(
    rf"(?:\beither )?{SUBJECT}(?:[ ,]{{0,3}}\b(?:or|and/or|oder|ou|o|vs\.?|versus)\b "
    rf"(?:(?:else|maybe|perhaps|possibly|even|rather|either|the|an?|option) ){{0,2}}{SUBJECT}){{1,25}}"
    rf"|{ONE} ?或(?:者)? ?{ONE}|\bbetween (?:options? )?{SUBJECT}",
    _I,
)
"""Options among which no choice is made."""
EITHER = rf"{ONE}(?:(?:{_JOINED}|[ ,]{{0,3}}\b(?:or|nor)\b ){ONE}){{0,25}}"

# ------------------------------------------------------------------------------------------------------ none and all

_OPTION = (
    r"(?:(?:answer |given |listed |provided |above |available |remaining |other |four |five |three )*"
    r"(?:options?|choices?|answers?|alternatives?|statements?|ones|possibilities)\b)"
)
_RIGHT = (
    r"(?:(?:entirely |fully |quite |exactly |really |actually |completely )?(?:correct|right|true|valid|accurate|suitable|appropriate|applicable"
    r"|fits?|apply|applies|match(?:es)?|works?|supported|satisfactory))"
)
_NAMED = rf"(?: ?\(?(?:{EITHER})\)?)?"
_GIVEN = r"(?:\s{1,2}(?:above|listed|given|provided|shown|presented|here))*"
_OF_THEM = rf"(?: of {EITHER}| of (?:the|these|them|those|all)(?: (?!{ONE}|others?\b)\w{{1,20}}\b)?(?: {_OPTION})?{_GIVEN}{_NAMED})"
_LISTED = r"(?:(?:listed|(?:given|provided|present|included|available|offered|shown) (?:among|in|as|here|above))\b|(?:among|amongst|one of|any of|in|within|on|part of) (?:the|these|those|any)\b)"
NONE = (
    r"(?:(?:that |there (?:is|are) )?(?:"
    rf"(?:no,? )?none(?:{_OF_THEM})?(?: (?:is|are|seems?(?: to be)?) {_RIGHT}| {_RIGHT})?"
    rf"|no (?:single |one )?(?:{_RIGHT} {_OPTION}|{_OPTION}(?: (?:is|are) {_RIGHT}| {_RIGHT})?)"
    rf"|nothing|neither(?:{_OF_THEM})?|not any(?:{_OF_THEM})?|not {_LISTED}[^.,\n]{{0,60}}"
    rf"|all (?:of )?(?:the |these )?(?:\w{{1,12}} )?{_OPTION}{_NAMED} are (?:wrong|incorrect|false|not {_RIGHT})"
    r"|n/a|\{\s{0,3}\}|\[\s{0,3}\]|∅|\\emptyset|empty(?: set)?|null"
    r"|keine?(?: (?:der|von) \w{1,20})?(?: \w{1,20})?|aucune?(?: (?:de|des) \w{1,20})?|ninguna?(?: de \w{1,20}(?: \w{1,20})?)?|以上(?:都|皆|均)(?:不对|不是|不正确|错误|非|错)|都不对|无正确(?:答案|选项)|没有正确(?:答案|选项)"
    r")(?!\w))"
)
"""Ways of saying "no option is right" where an answer is expected."""
NONE_STATED = re.compile(
    rf"\bnone{_OF_THEM}(?! others?\b)(?! (?:\w+ ){{0,2}}(?:are|is) (?:wrong|incorrect|false))|\bnone (?:is|are) {_RIGHT}"
    rf"|\bno (?:single |one )?(?:{_RIGHT} {_OPTION}|{_OPTION} (?:is|are|seems?) {_RIGHT}|{_OPTION} {_RIGHT})"
    rf"|\ball (?:of )?(?:the |these )?(?:\w{{1,12}} )?{_OPTION}{_NAMED} are (?:wrong|incorrect|false|not {_RIGHT})"
    rf"|\b(?:neither|not one|not any) of (?:the|these) (?:\w{{1,12}} )?{_OPTION}"
    rf"|(?:\bnot|n't) (?:a|any|one) (?:single )?{_RIGHT} {_OPTION}|(?:not|n't) (?:think|believe) (?:that )?any of (?:the|these|them)\b[^.\n]{{0,30}}{_RIGHT}"
    rf"|\A(?:no,? )?there (?:isn't|is not|aren't|are not) (?:one|any)\b(?! \w)"
    rf"|\ball (?:of )?(?:the|these|them)(?: \w{{1,12}})? are (?:wrong|incorrect|false|not {_RIGHT})|{_OPTION}[^.\n]{{0,40}} (?:do|does)(?:n't| not) (?:include|contain|list|have|show) (?:the|a|any) (?:correct|right)"
    rf"|\banswer\b[^.\n]{{0,60}} (?:is|are|was)(?: not|n't) (?:actually )?{_LISTED}"
    rf"|\b(?:keine der|aucune (?:des|de ces)|ninguna de (?:las|estas)) \w{{1,20}}|以上(?:都|皆|均)(?:不对|不是|不正确|错误)|没有正确(?:答案|选项)",
    _I,
)
"""Statements anywhere in a reply that no option is right."""
_EXCEPT = (
    rf"\b(?:all|every ?(?:thing|one)?|any)(?: of)?(?: the| these| them)?(?: \w{{1,12}})?(?: {_OPTION})?(?P<before> (?:is|are) (?:correct|right|true|wrong|incorrect|false))?,?"
    rf" (?:except(?: for)?|but|apart from|other than|besides) (?:for )?(?:option )?(?P<said>{EITHER})"
)
ALL_BUT = re.compile(
    rf"{_EXCEPT}(?: (?:is|are) (?P<after>{_RIGHT}|wrong|incorrect|false|not \w{{1,10}})|(?P<alone>[ .!]*\Z))",
    _I,
)
"""Every option but these."""
ALL = (
    rf"(?:(?:all of (?:the above|them|these)(?: are (?:all )?(?:correct|right|true))?|all (?:of )?(?:the |these )?(?:\w{{1,12}} )?{_OPTION}{_NAMED}(?: are (?:correct|right|true)| above)?"
    rf"|all are (?:correct|right|true)|every option)(?!\w)(?! (?:are|is) (?:wrong|incorrect|false|not))(?!,? (?:except|but)\b))"
)
"""Ways of saying "every option is right"."""
NO_OPTION_AHEAD = re.compile(r"(?:no|not|all|any) (?:single |one |other )?(?:options?|choices?|answers?|correct|right|true|of)\b", _I)
NONE_TEXT = re.compile(r"(?:none|neither)(?: (?:of )?(?:the|these|those|them)?(?: (?:above|options?|choices?|answers?))*)?(?: (?:is|are) (?:correct|right|true))?", _I)
NONE_GOES_ON = re.compile(r"(?: of (?:the|these|those|them)\b(?: (?:above|options?|choices?|answers?|given|listed)\b)*)?(?: (?:is|are) (?:correct|right|true)\b)?", _I)
ALL_TEXT = re.compile(r"all (?:of )?(?:the )?(?:above|these|them|options)(?: options)?(?: are (?:correct|right|true))?", _I)
BOTH_TEXT = re.compile(r"(?:both|all|neither|none|either)\b", _I)

# ---------------------------------------------------------------------------------------------------------- masks

_BETWEEN = _words(
    "be being the a an all any of either both options? choices? answers? letter by that it is it's as correct right true best only : "
    "really actually"
)
_ADVERBS = _words(
    "also all both each clearly definitely probably therefore simply the an? obviously completely entirely partially "
    "just likely either just_plain thus so quite too in_fact certainly necessarily factually"
)
DENIED_BEFORE = re.compile(
    r"(?:\bnot(?! (?:only|just|merely|simply)\b)|n't|\bcannot|\bnever|\bnor|\bneither|\brather than|\binstead of|\bexcept(?: for)?"
    r"|\bexcluding|\bother than|\bunlike|\bapart from|\beliminat(?:e|es|ed|ing)\b|\brul(?:es?|ed|ing) out|\breject\w{0,4}|\bdiscard\w{0,4}"
    r"|\bdismiss\w{0,4}|\bexclud\w{1,4}|\bcross\w{0,3} out|\bwithout|\bnicht|\bpas|\bno es|\bn'est pas|不是|不选|排除)"
    rf"(?: ?(?:think|believe|choose|pick|select|go with|consider) )?(?: ?{_BETWEEN}(?!\w)){{0,5}} ?[⟦]?(?P<said>{EITHER})",
    _I,
)
"""Options that are said not to be meant: "not B", "rather than A or C"."""
WRONG_BEFORE = re.compile(
    r"\b(?:incorrect|wrong|false|eliminated|falsch\w{0,2}|incorrect[ao]s?|faux|fausse)"
    rf"(?:(?: {_OPTION}) ?(?:(?:is|are|was|were|include|being|would be|like|such as|ist|sind|est|sont|es|son)\b|[:,(])?| ?[:(]| (?=\S)) ?"
    rf"(?:{_ADVERBS} )?(?P<said>{EITHER})|\b(?:the )?(?:other|remaining)s?(?: {_OPTION})? ?(?:(?:is|are|like|such as)\b|[:(])? ?(?P<others>{EITHER})",
    _I,
)
"""Options that are called wrong: "the incorrect options are B, C and D"."""
_BE = (
    r"(?:(?:is|are|was|were|seems?|looks?|appears?|can|could|would|will|must|do|does|did|should|may|might|be|to be|been|has|have|ist|sind|est|es|son|sont)\b ?)"
)
_NOT = r"(?:not|n't|cannot|can't|never|isn't|aren't|wasn't|doesn't|don't|won't|wouldn't|couldn't|nicht|no|ne|pas)"
_WRONG = _words(
    "wrong incorrect false untrue invalid inaccurate irrelevant inappropriate unsuitable implausible impossible mistaken "
    "ruled_out excluded eliminated rejected discarded out unrelated falsch faux fausse incorrect[ao]s? fals[ao] no misleading"
)
_FIT = _words(
    "correct right true valid accurate answers? options? choices? fit apply match work hold make_sense suitable appropriate "
    "applicable likely best the_best possible relevant plausible richtig korrekt correct[ao]s? bonne it this_one"
)
_UP_TO = r"[\])}:]{0,2}(?:, (?=(?:is|are|was|were|which|that|it|this)\b))? ?(?:[(-] ?|, (?=which|that|it|this))?(?:(?:which|that|it|this) )?"
WRONG_AFTER = re.compile(
    rf"(?P<said>{EITHER}){_UP_TO}(?:{_BE}{{0,3}}(?:{_ADVERBS} ){{0,3}}{_WRONG}(?!\w)"
    rf"| ?\? ?(?:no|nope|wrong|incorrect)\b|{_BE}{{0,2}}{_NOT} (?:be |been |to be |actually |really |quite |necessarily |as |entirely |so )*(?:the |an? |our |my )?"
    rf"(?:most |more |best |only |good |likely |correct |right |suitable |appropriate |valid |final )*{_FIT}(?!\w)(?! (?:only|just)\b)"
    rf"|(?:是)?(?:错误|不正确|错的|不对))",
    _I,
)
"""Options that are called wrong: "B is wrong", "C cannot be right", "D: incorrect"."""
NOT_ASSERTED_AFTER = re.compile(
    rf"(?P<said>{EITHER}) ?(?:,? ?(?:which|who|that) )?{_BE}{{1,2}}(?:{_ADVERBS} )?{_NOT}\b"
    rf"|(?P<anaphoric>{EITHER})[^.\n{ANY[1:-1]}]{{0,80}}[;,.] (?:but |and |however,? |so |therefore |thus |hence )?(?:that|this|it|which|these|they)(?:'s| is| was| does| are| do)(?: not|n't| wrong| incorrect| false)\b",
    _I,
)
"""Option texts of which something is denied."""
_HEDGE = (
    r"(?:perhaps|maybe|possibly|potentially|(?:might|may|could|can)(?: also| well)? be|not (?:\w{1,12} )?sure(?: (?:if|whether|about|that))?|unsure(?: (?:if|whether|about))?"
    r"|consider(?:ing)?|suppos(?:e|ing)|assum(?:e|ing)|let's (?:try|consider|check|look at|examine|test|see)|look(?:ing)? at|compar(?:e|ing)|try(?:ing)?"
    r"|test(?:ing)?|evaluat(?:e|ing)|analy[sz](?:e|ing)|regarding|as for|such as|vielleicht|peut-être|quizás?|可能是|也许是?)"
)
HEDGED_BEFORE = re.compile(
    rf"\b{_HEDGE}[ \t,:]{{1,3}}(?:(?:the|a|an|if|that|it|it's|is|whether|options?|choices?|answer|statement|correct|right|only) ){{0,4}}(?P<said>{EITHER})",
    _I,
)
"""Options that are only considered."""
HEDGED_AFTER = re.compile(
    rf"(?P<said>{EITHER})[ ,]{{0,2}}(?:(?:might|may|could|can|would)(?: also| well| at first)? (?:be|have been|seem|look|appear)\b|cannot be (?:ruled out|excluded|eliminated|dismissed)|can't be (?:ruled out|excluded)"
    rf"|(?:is|are|seems?|looks?) (?:also |all |both |only )?(?:possible|plausible|tempting|a (?:possibility|common (?:mistake|misconception|error))|partially|partly|half)\b)",
    _I,
)
_FORCED = r" (?:(?:i|we|i'm|i am) )?(?:(?:was |were )?(?:forced|pressed|asked|pushed|obliged)|had to|have to|must|need to|were to)\b[^.,;:\n]{0,40}[,:]"
CONDITION = re.compile(
    rf"\bif\b(?!{_FORCED})(?:[^.;,\n]{{0,200}}(?:,|\bthen\b) ?(?:then )?{ONE}(?=[.;\n]|\Z)|[^.;,\n]{{0,200}}{ONE}[^.;\n]{{0,200}})"
    rf"|\b(?:if(?!{_FORCED})|unless|whether|suppos(?:e|ing)|assuming|provided|in case|wenn|falls|si)\b[^.;!?\n]{{0,200}}?(?:,|\bthen\b|(?=[.;!?\n])|\Z)",
    _I,
)
"""What is supposed and not said; a choice somebody is forced to make is one."""
QUESTION = re.compile(r"[^.!?\n]{0,400}\?(?! ?(?:yes|yep|correct|right)\b)", _I)
CONCEDED = re.compile(r"(?:^|(?<=[.!?\n] )|(?<=\n))(?:while|although|though|even though|whereas|despite)\b[^,.\n]{0,200},", _IM)
"""What is conceded before the point is made."""
REPORTED = re.compile(
    r"\b(?:(?:i |we )?(?:at first|initially|originally|first(?:ly)?),? (?:i |we )?(?:thought|said|picked|chose|considered|assumed|believed|guessed)"
    r"|my (?:first|initial) (?:thought|guess|instinct|answer|choice|reaction)|at first(?: glance| sight)?|(?:some|many|one|people|students|you|someone)(?: people| students)? (?:may|might|would|could) "
    r"(?:think|say|choose|pick|argue|answer|believe|assume)|it is tempting|a common (?:mistake|misconception|error) is)\b[^.;!?\n]{0,200}?(?=[.;!?\n]|,? but\b|\Z)",
    _I,
)
"""What was thought before, or is thought by others."""

# --------------------------------------------------------------------------------------------------- the answer itself

_FILLER = (
    r"(?:(?:"
    + _words(
        "therefore thus clearly definitely likely most_likely probably indeed then actually simply both only either_of just "
        "still now as_follows given_by options? choices? letters? the an? by far_and_away also all that approximately about roughly around labels? numbers? statements? la le les el los las die der das number"
    )[3:-1]
    + r")\b[ \t,:]{0,3})*"
)
_OPENING = r"[\s:=,\"'(\[{<>⟦→-]{0,8}"
SLOT = rf"{_OPENING}{_FILLER}{_OPENING}(?P<slot>{NONE}|{ALL}|{LISTED})"
"""What stands where an answer is expected."""

_NOUN = (
    r"(?:answers?|options?|choices?|conclusion|verdict|selections?|pick|guess|vote|(?:letter|label)(?! of)|(?:correct|right|best|only) (?:ones?|statements?|letters?|labels?)"
    r"|(?:closest|nearest|best|most \w{2,15})(?: (?:one|match|option|choice|answer|fit|approximation|candidate|statement))?)"
)
_COPULA = (
    r"(?:is|are|was|were|(?:would|should|must|will|has to|have to)(?: then| therefore| thus)? be|seems? to be|appears? to be|remains?)"
)
FIELD_CUE = re.compile(
    rf"{FIELD}(?P<field>) ?|(?:^|(?<=[.!?:)]\s)|(?<=\n))[ \t(\[]{{0,3}}(?:(?:so|thus|therefore|hence|and|yes|final|correct|right|best|short|direct|selected|chosen|the|my|your|overall|suggested)[ ,]{{1,2}}){{0,5}}"
    r"(?:answers?|options?|choices?|solutions?|responses?|conclusion|verdict|selections?|pick|prediction|result|output|ans\.?|antwort(?:en)?|lösung|réponses?|respuestas?|答案|正确答案|回答|选择|解答|答え|正解)"
    r"(?: ?\((?:s|es)\)| (?:letters?|numbers?|labels?|choices?|options?|key))? ?(?:[:=]|->|→|-(?= )|是|为)",
    _IM,
)
"""A field for the answer: "Answer:", ``\\boxed{}``, JSON."""
CUE = re.compile(
    rf"\b{_NOUN}(?:\((?:s|es)\))?(?:(?:(?!\b(?:but|so|and|while|than|because)\b)[^.,;:\n?!{ANY[1:-1]}]){{0,80}}?|,[^.;:\n?!{ANY[1:-1]}]{{0,60}},)? ?(?:\b{_COPULA}\b|(?:=|->|→))"
    rf"|\b(?:(?:correct|right|best|final) {_NOUN}|{_NOUN}[^.,;:\n{ANY[1:-1]}]{{0,60}} (?:correct|right|best))[^.,;:\n?!{ANY[1:-1]}]{{0,60}}:"
    r"|\b(?:the |my |our )(?:correct|right|best|final|true)(?: (?:answers?|options?|choices?))?,?(?= " + MARKED[:0] + rf"{LABELLED})"
    r"|(?:\b(?:richtige?n?|korrekte?n?)? ?(?:antwort(?:en)?|lösung|option) (?:ist|lautet|sind|lauten|wäre)|\b(?:richtig|korrekt) (?:ist|sind))"
    r"|\b(?:bonnes? |correcte?s? )?(?:réponses?|options?|choix)(?: (?:correctes?|exactes?|justes?|finales?))? (?:est|sont|serait)"
    r"|\b(?:respuestas?|opci[oó]n(?:es)?|soluci[oó]n)(?: (?:correctas?|finales?|adecuadas?))? (?:es|son|sería)"
    r"|(?:答案|选项|選項|答え|正解|选择|选)(?:应该|应|就)?(?:是|为|選|选|は)?|故选|应选|所以选|而是",
    _I,
)
"""What stands before an answer in a sentence: "the correct option is"."""
CHOOSING = re.compile(
    r"\b(?:i|we|i'd|i'll|we'd|i've|i'm|we're|let's|you should|you can|is)\b(?: (?:would|will|shall|must|therefore|thus|have|had|am|are|was|to|rather|still|also|finally|personally|simply|decided|choosing|going|leaning|say|forced))* "
    r"(?:choose|chose|chosen|pick(?:ed)?|select(?:ed)?|answer(?:ed)?(?: with)?|go(?:ing)? (?:with|for)|went (?:with|for)|opt(?:ed)? for|vote(?:d)? for|say|guess(?:ed)?|bet(?: on)?|settled? (?:on|for)|prefer"
    r"|lean(?:ing)? (?:toward|towards|to)|stick(?:ing)? with|mark(?:ed)?|conclude|believe|think|feel|take|suggest|recommend|identif(?:y|ied))"
    r"(?: that)?(?: (?:it|this|that)(?: is|'s| must be| has to be| should be| would be| to be))?\b"
    r"|(?:^|(?<=[.!?:,]\s)|(?<=\n))(?:so |thus |therefore |hence )?(?:choose|select|pick|go with|mark)\b"
    r"|\b(?:ich (?:wähle|nehme|würde)|je (?:choisis|prends)|elijo|escojo|me quedo con)\b|我(?:会)?(?:选择|选|认为是)"
    rf"|\bif{_FORCED}",
    _IM,
)
"""Words of somebody who chooses."""
_AS_ANSWER = r"(?:answers?|options?|choices?|solutions?|ones?|pick|fit|match|candidate|selection)"
_GOOD = _words(
    "correct right best final appropriate accurate likely suitable valid proper closest nearest chosen only logical "
    "reasonable plausible single most more better fitting probable"
)
CALLED_ANSWER = re.compile(
    rf"(?P<said>{SUBJECT})[ ,]{{0,2}}(?:{_COPULA}|seems?|looks?(?: like)?|appears?|(?:is|are) (?:likely|probably|most likely|clearly|definitely) to be|(?:is|are) considered|as|being)"
    rf" (?:(?:thus|therefore|then|clearly|indeed|definitely|probably|also|both|all|likely|now|still|to be|hence|obviously|certainly|the|our|my|your|two|by far) ){{0,4}}(?:(?:a|an) (?=(?:more|better|most|best) ))?(?:{_GOOD} ){{0,3}}{_AS_ANSWER}\b"
    rf"|\b(?:leav(?:es|ing)|mak(?:es|ing)|giv(?:es|ing)|yield(?:s|ing)) (?:us (?:with )?|only |just |with |the )*(?P<left>{LISTED})"
    rf"|\b(?:matches|corresponds to|points to|indicates|is equivalent to|is the same as) (?:the )?(?P<matched>{characters(LABEL, BOTH)})",
    _I,
)
"""Options that are called the answer: "B is the correct option", "which leaves C"."""
CONCLUDED = re.compile(
    rf"(?:\b(?:so|thus|therefore|hence|consequently|in conclusion|ie,?|namely|(?:it|this|that)(?:'s| is| must be| has to be| should be)(?: therefore| thus| clearly)?|donc|por lo tanto)[ \t,:]{{1,3}}|(?:→|->|=>) ?)"
    rf"(?:(?:it|this)(?:'s| is| must be) |the |option |only |both |clearly )*(?P<said>{LISTED})(?= ?(?:[.!)⟧]|\n|\Z|,? (?:because|since|as|for|which|given)\b))"
    rf"|(?:^|(?<=[.!?]\s)|(?<=\n))[^.!?\n{ANY[1:-1]}]{{0,300}}\b(?:is|are|be) (?P<marked>{characters(LABEL, BOTH)}(?:{_JOINED}{characters(LABEL, BOTH)})*)(?= ?(?:[.!⟧]|\n|\Z))",
    _I,
)
"""Options that a sentence comes down to: "so B.", "is (D)."."""
CORRECTION = (
    rf"(?:\bactually|\bwait|(?:(?<=[.!?] )|(?<=\n)|^)no(?=[,.;!-]{{1,3}} ?(?:\w{{1,8}} ){{0,3}}{LABELLED})|\bcorrection|\bon second thoughts?|\bsorry|\boops|\brather|\bhmm+|\bor rather|\bin fact|\bupon (?:reflection|reconsideration)|\bon reflection)"
)
CORRECTED = re.compile(
    rf"{CORRECTION} ?[,:;.!-]{{0,3}}[ \t\n]{{0,2}}(?:(?:i (?:think|believe|mean|meant)|make (?:that|it)|it(?:'s| is| should be| must be| has to be)|that(?:'s| is)|the answer is|let's go with|go with|no|actually|wait)[ ,]{{1,2}}){{0,3}}(?P<said>{LISTED})(?!\?)",
    _I,
)
"""An answer that corrects another: "Actually, B covers all three"."""
RETRACTED = re.compile(
    r"\b(?:wait|hmm+|no|actually|oops|hold on)\b[^\n.!?]{0,20}(?:(?:that|this|it)(?:'s| is| was|) (?:wrong|not right|incorrect|a mistake|not correct)|i (?:made|was|got|misread|misunderstood))"
    r"|\bscratch that\b|\bon second thoughts?\b|\bi (?:made|have made|just made) (?:a mistake|an error)\b|\blet me (?:re-?consider|re-?think|correct (?:myself|that)|revise|re-?check|start over|re-?evaluate)|\bcorrection\b|\bi take that back\b"
    r"|(?:^|[.!?\n-] ?)(?:wait|hold on)\b|\b(?:looking|thinking|checking|reading)(?: it| this)? (?:again|more closely)\b",
    _IM,
)
"""Words that take back what was said before."""
_CALLED = r"(?:correct|right|true|accurate|valid|yes|richtig|korrekt|vrai|correct[ao]s?|verdader[ao]s?|(?:the )?(?:best|closest|nearest|strongest)|acceptable|an? (?:valid|correct|right|acceptable) (?:answer|option|choice)|(?:the )?most (?:likely|appropriate|accurate|suitable|plausible|correct|probable|reasonable|logical|fitting|relevant)|(?:most )?likely|probable|正确|对)"
CALLED_RIGHT = re.compile(
    rf"(?P<said>{SUBJECT})[ \t)]{{0,2}}(?:(?:[:(-]|->|→) ?(?:is |are |this is |it is |it's )?|\. (?=(?:true|correct|yes|right)[ .!]{{0,3}}(?:\n|\Z))| (?:(?:is|are|was|were|seems?|appears?|looks?|must be|would be|holds?|ist|sind|est|sont|es|son) ){{1,2}}| ?(?=\(correct\))|\? ?)"
    rf"(?:(?:the|both|all|also|most likely|probably|clearly|definitely|only|indeed|therefore|thus|likely|each|certainly|in fact|the only|\() ?){{0,3}}{_CALLED}(?!\w)(?! ?(?:/|or|only|if|when|unless)\b)",
    _I,
)
"""Options that are called right, one by one or together."""
MARKED_RIGHT = re.compile(rf"^ ?(?P<said>{ONE})[^\n{ANY[1:-1]}]{{0,300}}(?:\(correct\)|[.:;-] (?:this is )?(?:correct|true|right|yes))[ .!]*$", _IM)
MARKED_WRONG = re.compile(rf"^ ?(?P<said>{ONE})[^\n{ANY[1:-1]}]{{0,300}}(?:\(incorrect\)|[.:;-] (?:this is )?(?:incorrect|false|wrong|not correct|no))[ .!]*$", _IM)
FITS = re.compile(
    rf"(?P<said>{SUBJECT}) (?:best (?:fits?|matches|describes?|answers?|explains?|represents?|completes?|suits?|captures?)|(?:fits?|matches|suits?|works?|applies|apply|holds?)(?: (?:the )?best| perfectly| better)?(?= ?(?:[.,;!]|\n|\Z| the| this| here| because| since))|makes? (?:the most )?sense|(?:comes?|is|seems) (?:the )?(?:closest|nearest)|(?:is|are) the only\b(?! (?:\w+ )?(?:wrong|incorrect|false)))|\bonly (?:option )?(?P<only>{ONE})(?= \w)",
    _I,
)

REFUSAL = re.compile(
    r"\b(?:i|we)(?:\s+am|'m)?\s*(?:sorry|afraid)\b|\bi\s+apologi[sz]e\b"
    r"|\b(?:i|we)\s+(?:can't|cannot|can\s+not|could\s+not|won't|will\s+not|am\s+(?:not\s+able|unable)\s+to|must\s+(?:decline|refuse))\s*"
    r"(?:help|assist|answer|respond|comply|provide|discuss|engage|fulfil|fulfill|complete|see|view|access|choose|with|to\b|this\b|that\b)"
    r"|\bi'm\s+(?:not\s+able|unable)\s+to\b|\bi\s+(?:decline|refuse)\s+to\b|\bi (?:don't|do not) (?:think|believe|feel) i (?:can|should)\b"
    r"|\bas\s+an?\s+(?:ai|language\s+model|artificial)\b|\bagainst\s+my\s+(?:guidelines|policy|programming)\b"
    r"|\b(?:image|picture|figure|diagram|graph|passage)\b[^.\n]{0,40}\b(?:not|isn't|wasn't|missing)\b[^.\n]{0,20}\b(?:included|provided|attached|visible|shown|available)?\b",
    _I,
)
"""Signs that the model declined; looked for only where no answer was found."""
