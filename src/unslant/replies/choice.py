"""Read which labels a reply chooses, or that no option is right.

The reply is cleaned (:mod:`text`), every mention of an option becomes one character (:mod:`collapse`), and the
mentions that are denied, hedged, supposed or asked about are masked (:mod:`reading`). Then the first of :data:`RULES`
that applies reads it; each returns its name, by which :attr:`Extracted.rule` records it.

A reply that is ambiguous, contradictory, hedged ("maybe B") or only lists the options is ``unparsed``, however else it
might be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from unslant.replies import every_option
from unslant.replies.collapse import LABEL_WORDS, SIGN_LABELS, collapser
from unslant.replies.explicit import UNKNOWN_LABEL, bare_lines, explicit, unsure
from unslant.replies.grammar import (
    ANY,
    BEGIN_OF_LINE,
    CALLED_RIGHT,
    HEDGED_MORE,
    LABELLED,
    ONE,
    Kind,
    characters,
    kind_of,
    languages,
    mentions,
    option_of,
    options_of,
    pattern,
    words,
)
from unslant.replies.reading import (
    CONCEDED,
    MARKED_LINE,
    NO_ANSWER,
    SHORT,
    Extracted,
    Outcome,
    Reading,
    Unreadable,
    by_first_rule,
)
from unslant.replies.text import before_next_question, clean, plain
from unslant.replies.verdict import true_or_false

_SIGN_LABEL = re.compile(r"(?m)(?<![^\s(\[{\"'*_`:])[$#](?![^\s)\]}\"'*_`.,:;!?])(?!(?<=^#) +\w)")
"""A sign that is set off like a label, and does not open a heading."""
_AROUND = " \n.*_`()[]\"'“”„«»‘’「」"
_SAID_TO_BE = pattern(
    r"\A[*_]{0,3}(?:(?:{the}|{before_field}|{article}) ){0,5}"
    r"(?:(?:{answer_noun} {copula}|{cue}) ?[:：]?|(?:{field}|{answer_noun}) ?[:：])[*_\s]{0,6}"
)
"""What introduces an answer and says no more: "The correct answer is "."""
_LONG = 700
"""Characters up to which an option's text in a sentence is trusted."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_RIGHT = (
    CALLED_RIGHT,
    pattern(r"(?P<said>{subject}) {fits}|\b{only_option}(?P<only>{one})(?= (?!{and_or}\b|{but}\b)\w)"),  # said to fit
    pattern(  # "D isn't the answer; B is."
        r"(?:{masked}|{wrong})[^.!?\n{not_any}]{0,40}[.;,] ?(?:{but} )?(?P<is>{one}) {is_be}(?=[.!]?(?:\n|\Z))"
    ),
    pattern(MARKED_LINE + r"(?:{marked_correct}|[.:;-] (?:{this_is} )?{judged_right})[ .!]*$", BEGIN_OF_LINE),
)
_NEXT_RANK = re.compile(r">|(?<!\S)(\d{1,2})[.)](?= )")
_OPENING = pattern(
    r" ?(?:{opening}\b[ ,:!.]{0,3}){0,3}[\"'(\[]{0,2}(?P<said>{subject})"
    r"(?!{joined}{one}| ?(?:->|→|=>) ?{any})(?:(?<={one}{one}) {are_have}\b"
    r"|{tail_word}? ?[.:,;()\]!\n-]| ?\Z|(?<={by_both}) (?!{be_word} {not}\b)| {opening_reason}\b)"
)
_AT_THE_END = pattern(r"(?:[\]):.,!-] ?|[.!…] (?:(?!\b{aside}{labelled})[^.!?\n]){1,40} )({labelled})[.!]{0,3}\Z")
"""Another label at the end, after a stop: "A. *checks the map*: B.", "A. *checks notes* B."."""
_ANOTHER = pattern(
    r"[,;]? (?:{^and$} )?(?:{no_word}|{but}|{then}|{before_next}) {labelled}{end}|{^also$}[ ,]{1,2}{one}"
    r"|[.;] (?:{^and$} {one}|{one}[ ,]{1,2}{^also$})"
)
"""One more answer, or another: "A. B, too.", "A, no B"."""
_REASON = pattern(r",? ?{^why$}")
"""What follows the answer is why, and may name other options: "B, because A is smaller"."""
_SHARE = pattern(r"({one})[ :=(,-]{1,3}(?:\d{1,3}(?:\.\d{1,3})?(?: ?(?:%|{percent})|(?![\d.]))|[01]?\.\d{1,4}(?!\d))")
"""An option with its probability: "C - 60%", "C (0.6)"."""
_RESTATED = pattern(r"({any}) {copula} ({any})")
"""A label with its own text, which says what the page says and not what is right: "C is Paris"."""
_AFTER_COMMA = pattern(r"^[^?{not_any}]{2,80}, ?({labelled})[.!]{0,2}\Z")
_MARKED_LAST = pattern(r"\w[^?]* ({marked})[.!]\Z")
"""The label at the end of a reply, in brackets or called one: "or answer (A)."."""
_EQUATION = pattern(r"[=≈] ?({by_text}) ?(?:\w{1,12} ?){0,2}[.!]?\Z", 0)
_ENDS_IN = re.compile(rf"({ONE}) ?(?:\w{{1,12}} ?){{0,2}}[.!]?\Z")
_NOT_SURE = r"{^unsure$}|[.!?\n] ?{turning}\b[^.!?\n{not_any}]{0,300}\w\Z"
_UNSURE = pattern(_NOT_SURE)
_UNDECIDED = pattern(_NOT_SURE + r"|{field_cue}[^\w\n]{0,9}\w[^\n{not_any}]{0,200}\Z", BEGIN_OF_LINE)
"""Also a reply that ends in an answer none of the options is: "Answer: there is an error in the question"."""
_REASONING = pattern("{^reasoning$}")
_NEGATED = pattern(r"{^negated$}|{not_ending}\b")
_REJECTED = pattern(r"{^negated$}|{not_ending}\b|{^rejecting$}|{^all$}|\b{relative} {labelled}|:\Z")
"""What a reply that rejects its only option says in any language, or the end of one that was about to discuss it."""
_SAID_OF_LABEL = pattern(
    rf"\W?{characters(Kind.BARE)} (?!{{option_adverb}}\b)(?=[^\W\d_]{{2}})"
    r"(?![^\n]{0,80}(?:{^called_right$}|{^right_word$}|{^option_noun$}|(?!{is_be}){^chooser$}|{field}|{better}|{over_another}))"
)
"""A label, and what is said of it, which is not that it is right: in a language without cues it may be the opposite."""
_WORD_BEFORE = re.compile(rf"\W*(?:\w+ )?([^\W\d_]+) {LABELLED}\W*\Z")
_KNOWN = frozenset(re.findall(r"[^\W\d_]+", " ".join(map(str, languages().values())).casefold()))
"""Every word of every cue, in any language."""
_DENIED_MENTION = pattern(r"(?:{^negated$}|{not_ending}) [^.,;:]{0,60}?{masked}(?!,? {^why$})")
_CONTRAST = pattern(r"(?<={one})(?P<rest>[^\n]*?)[,;]? {contrast}\b.*|^{unlike}\b[^,\n]{0,200},")
_LATER = pattern(
    r"(?:{^but$}|{any}[^.!?{not_any}]{3,200}[.!])[^.,;{not_any}]{1,80}"
    r"\b(?:{be_verb}|{by_agent} )({by_text})(?: \w+)?.?\Z"
)
"""What a reply ends in, after a sentence about another option: "Lyon is larger. The capital is Paris."."""
_TEXT_ALONE = re.compile(rf"(?:[.!?] |\n)({characters(Kind.TEXT)})(?=[.!]{{1,2}}(?:\s|\Z)|\n|\Z)")
_WHY_WRONG = pattern(r"({wrong}[^\n]*?),? {why}\b.*", 0)
_TAKEN_BACK = pattern(r"[.!?] {taken_back}\b|{^second_thoughts$}")
_ASIDE = pattern(r"\b{aside}\Z")
_NUMBERS = pattern(
    r"{numbers_lead}{0,2}(?P<said>{by_word}(?:{joined}{by_word}){0,9})(?: {numbers_are}| \w{1,12}){0,1}[.!]?\Z"
)
_IN_SERIES = pattern(r"(?:\w,? {and_or}|\b{relative}) {one}|{one},? {and_or} (?:\w|{masked})|{^both$}")


def extract_labels(reply: str, labels: Sequence[str], options: Sequence[str] = ()) -> Extracted:
    """The set of ``labels`` that a reply chooses.

    Args:
        labels: every label that is an answer, as shown; letters may come back in either case.
        options: text under each of the first labels, so that an answer given as an option's text is understood.

    Examples:
        >>> sorted(extract_labels("It is Paris.", "ABCD", ("Lisbon", "Paris", "Oslo", "Rome")).labels)
        ['B']
    """
    if len(echoed := _echoed(reply, labels, options)) == 1:
        return Extracted("ok", frozenset({labels[echoed[0]]}), "line")
    # Markdown and LaTeX give "#" and "$" another meaning, unless they are labels that stand alone.
    text = clean(_SIGN_LABEL.sub(lambda sign: SIGN_LABELS[sign[0]] if sign[0] in labels else sign[0], reply), options)
    if not text:
        return Extracted("unparsed", rule="empty")
    if not any(">" in option for option in options) and _ranked(text, labels):
        above = text.rpartition("\n")[0]
        said = by_first_rule((explicit,), _reading(above, labels, options), labels, above)
        return said if said.status == "ok" else Extracted("unparsed", rule="options ranked")
    short_field = pattern(r"{short_field}: [(\[]?(?P<label>\w{1,4})[)\].]*(?:\n|\Z)", 0).match(text)
    if short_field and short_field["label"] in labels:
        text = text.replace(words("short_field")[0], words("whole_field")[0], 1)
    read = by_first_rule(RULES, _reading(text, labels, options), labels, text)
    return read if read.rule != NO_ANSWER else true_or_false(reply, labels, options) or read


def _echoed(reply: str, labels: Sequence[str], options: Sequence[str]) -> list[int]:
    """Options whose text is all that a reply says, letter by letter, perhaps after "the answer is", in quotation marks,
    in bold or with a stop; none if that text is a label."""
    said = _SAID_TO_BE.sub("", reply.strip())
    bare = said.strip(_AROUND)
    fraction = bare[:1].isdigit() and f".{bare}" in said  # ".5 mol" is not "5 mol"
    if fraction or bare.casefold() in {"", *(label.strip(_AROUND).casefold() for label in labels)}:
        return []
    shown = list(enumerate(options[: len(labels)]))
    exact = [option for option, text in shown if text.strip() == said]
    return exact or [option for option, text in shown if text.strip(_AROUND) == bare]


def _ranked(text: str, labels: Sequence[str]) -> bool:
    """Whether the last line only ranks labels, best or worst first: "C > A > B > D", "1. C 2. A"."""
    parts = _NEXT_RANK.split(text.rpartition("\n")[2].split(": ")[-1])
    numbers = [int(number) for number in parts[1::2] if number]
    named = [rank for part in parts[::2] if (rank := part.strip(" ,;.()[]\"'"))]
    counted = numbers == list(range(1, len(numbers) + 1))  # or they belong to the options: "(3) 2. 4"
    return counted and len(named) > 1 and set(named) <= {plain(label).strip() for label in labels}


def _reading(text: str, labels: Sequence[str], options: Sequence[str]) -> Reading:
    return Reading(collapser(tuple(labels), tuple(options)), before_next_question(text, labels))


def called_right(reading: Reading) -> Outcome:
    """Options that are called right and nowhere wrong, one by one or in a list: "A: correct", "C is right"."""
    statements = (match for rule in _RIGHT for match in rule.finditer(reading.text, reading.retracted()))
    right = frozenset[int]().union(*(reading.answer(match[match.lastgroup or 0]) for match in statements))
    if right & reading.asserted(Kind.WRONG):
        raise Unreadable("contradiction")
    also = pattern(r"({one}) \w{1,12} {^also$}").findall(reading.text) if right else ()
    if not options_of(also) <= right:
        raise Unreadable("another")  # "B is right. A works too."
    every = reading.saying("{all_text}")
    others = frozenset(range(reading.n)) - every
    if right >= others and every & reading.asserted(Kind.BOTH, *([Kind.LABEL] if right == others else ())):
        right = every  # "D) All of the above: A is true, B is true, C is true."
    return (right, "called right") if right else None


def reasoned(reading: Reading) -> Outcome:
    """The label a reply opens with, before its reason, which may call others right: "D, since A and B are true"."""
    match = _OPENING.match(reading.text)
    return opening(reading) if match and _REASON.match(reading.text, match.end("said")) else None


def opening(reading: Reading) -> Outcome:
    """The answer a reply opens with: "B. Paris, because ..."."""
    match = _OPENING.match(reading.text)
    named = mentions(match["said"]) if match else []
    kinds = set(map(kind_of, named))
    if match is None or kinds <= {Kind.TEXT, Kind.WORD}:
        return None
    answer = reading.answer(match["said"])
    reason = _REASON.match(reading.text, match.end("said"))
    same_line = "" if reason else reading.text[match.end("said") :].split("\n")[0]
    if (
        not (reading.listed() <= answer or reading.set_apart(answer))
        or not options_of(mentions(same_line, Kind.LABEL, Kind.BOTH)) <= answer
        or not options_of(re.findall(rf"({LABELLED}) ?:", same_line)) <= answer
        or HEDGED_MORE.match(reading.text, match.end("said") - 1)
        or _ANOTHER.search(reading.text, match.end("said"))
        or not options_of(_AT_THE_END.findall(reading.text, match.end("said"))) <= answer
        or UNKNOWN_LABEL.match(reading.text, match.end("said"))
        or len(options_of(_SHARE.findall(reading.text))) > 1
        or (len(answer) == reading.n > 1 and (kinds == {Kind.BOTH} or mentions(same_line)))
    ):
        raise Unreadable("options listed")
    if reading.breaks_off_at_first(answer):
        raise Unreadable("cut off")
    others = not reading.asserted(Kind.LABEL, Kind.BOTH, Kind.TEXT) <= answer
    if kinds <= {Kind.BARE, Kind.AMBIGUOUS} and others and not reason:
        return None
    return answer, "opening"


def concluded(reading: Reading) -> Outcome:
    """The one option in a last sentence that draws a conclusion ("therefore ..."), or before an answer that is cut
    off."""
    cue = pattern(r"\s{0,3}{cut_off}[ :]{0,2}[(\[*]{0,2}\Z").search(reading.text)
    sentences = _SENTENCE_END.split((reading.text[: cue.start()] if cue else reading.text).rstrip())
    last = pattern(r"{not_another}{any}(?=\W*\Z)").sub("", sentences[-1])
    equation = _EQUATION.search(last) if cue is None and len(reading.text) <= SHORT else None
    if equation is not None and not re.search(LABELLED, reading.text):
        return reading.answer(equation[1]), "conclusion"
    if cue is not None and len(options_of(mentions(reading.text, Kind.WORD))) > 1:
        return None  # options that are common words occur everywhere in a long reasoning
    after_comma, label = _AFTER_COMMA.search(last), _MARKED_LAST.search(last)
    kinds = (Kind.LABEL, Kind.BOTH, Kind.TEXT, Kind.CONFLICT, *((Kind.BARE, Kind.AMBIGUOUS) if after_comma else ()))
    if (lone := after_comma or label) and reading.asserted(*kinds) == options_of(lone[1]):
        return reading.answer(lone[1]), "conclusion"
    draws = cue is not None or pattern(r"{concludes}\b").match(last) is not None
    for kinds in ((Kind.LABEL, Kind.BOTH), (Kind.TEXT,)) if draws else ():
        said = mentions(last, *kinds)
        if len(options_of(said)) == 1:
            return reading.answer(said[0]), "conclusion"
    single = len(re.findall(ANY, last)) == 1
    ended = re.search(rf"(?:\.|{ONE})\Z", last) is not None
    alone = single and ended and len(sentences) == 1 and len(last) <= SHORT and bool(mentions(last, Kind.WORD))
    alone = alone and not _IN_SERIES.search(last) and not _NEGATED.search(re.split(f"[,;:]|{ONE}", last)[-2])
    match = _ENDS_IN.search(last) if single and (draws or alone) else None
    return (reading.answer(match[1]), "conclusion") if match else None


def option_text(reading: Reading) -> Outcome:
    """The option (or the options joined by "and") whose text the first sentence to name one asserts."""
    if len(reading.text) > _LONG or _UNDECIDED.search(reading.text) or len(reading.listed()) > 1:
        return None
    if reading.asserted(Kind.CONFLICT) or reading.options.fuller(reading.asserted(Kind.TEXT), reading.text):
        return None
    if not reading.ended() and len(reading.asserted(Kind.LABEL, Kind.BOTH)) > 1:
        return None  # broken off while it went through the options
    late, predicate = False, _LATER.search(reading.text)
    if reading.asserted(Kind.TEXT, Kind.BOTH) and _TAKEN_BACK.search(reading.text):
        raise Unreadable("retracted")
    for whole in _SENTENCE_END.split(reading.text):
        sentence = _CONTRAST.sub(lambda match: match["rest"] or "", _WHY_WRONG.sub(r"\1", whole))
        for name in mentions(sentence, Kind.WORD):  # "nice" where "Nice" is another option
            sentence = sentence.replace(name, "…") if reading.options.telling[option_of(name)] else sentence
        said = mentions(sentence, Kind.TEXT, Kind.BOTH, Kind.LABEL)
        if predicate and said and option_of(predicate[1]) != option_of(said[0]):
            return None  # "many live in Lyon, but the capital is Paris"
        if said and {kind_of(one) for one in said} != {Kind.LABEL}:
            answer = options_of(said)
            if (again := options_of(mentions(whole)[len(answer) :]) & answer) and again != answer:
                return None  # "Rome and Oslo are large, but Oslo is colder"
            restated = options_of(
                one for one, other in _RESTATED.findall(reading.text) if option_of(one) == option_of(other)
            )
            others = options_of(re.findall(ANY, reading.text)) - reading.asserted(Kind.WRONG) - answer
            if len(restated) > 1 or (others and answer <= restated):
                return None  # "A is Lyon. B is Marseille.": goes through the options
            elsewhere = reading.asserted(Kind.TEXT, Kind.BOTH, Kind.LABEL) != answer or _REASONING.search(reading.text)
            if (late and elsewhere) or len(answer) == reading.n > 1 or not _asserts(reading, sentence, said):
                return None
            if not options_of(_TEXT_ALONE.findall(reading.text)) <= answer or reading.goes_through(
                said[0], reading.text.index(said[0])
            ):
                raise Unreadable("options listed")
            return reading.options.together(answer), "option text"
        late = late or not re.search(ANY, sentence)
    return None


def _asserts(reading: Reading, sentence: str, said: Sequence[str]) -> bool:
    """Whether a sentence asserts the options it names: one, or several joined ones; not some of a longer series."""
    before = pattern(",? {but} |[;:] ", 0).split(_DENIED_MENTION.sub("", sentence[: sentence.index(said[0])]))[-1]
    options = options_of(said)
    if _NEGATED.search(before) or options & reading.asserted(Kind.WRONG):  # "A) Incorrect - Lyon is only third."
        return False
    if len(options) > 1:
        together = pattern("{subject}", 0).search(sentence)
        joined = together is not None and options_of(mentions(together.group())) == options
        return (joined and not _ASIDE.search(before)) or pattern(r"{^too$}\W*\Z").search(sentence) is not None
    (option,) = options
    others = reading.options.containing(reading.options.texts[option]) - options
    # an option that refers to others: "both of them"
    part_of_other = any(not pattern(r"{both_text}\b").match(reading.options.texts[other]) for other in others)
    predicate = sentence.rstrip(" .!").endswith(said[-1])
    return (predicate or not part_of_other) and not _IN_SERIES.search(sentence)


def yes_or_no(reading: Reading) -> Outcome:
    """The option "yes" or "no" that a short reply opens with, if it names no other: "Yes, definitely."."""
    match = pattern(r"[^\w{not_any}]*(?:({by_word})|{^yes_said$}|{^no_said$})(?=[,.!]|\Z)").match(reading.plain)
    wrong = reading.asserted(Kind.WRONG)
    others = options_of(re.findall(ANY, reading.plain[match.end() :])) - wrong if match else ()
    if match is None or others or len(reading.plain) > SHORT or pattern("{^maybe$}|{^unsure$}").search(reading.plain):
        return None
    said = reading.options.texts[option_of(match[1])] if match[1] else match[0].strip(" \"'(")
    meant = next((word for word in map(pattern, ("{yes_said}", "{no_said}")) if word.fullmatch(said)), None)
    owners = frozenset(option for option, text in enumerate(reading.options.texts) if meant and meant.fullmatch(text))
    return (owners, "yes or no") if len(owners) == 1 and not owners & wrong else None


def part_of_text(reading: Reading) -> Outcome:
    """The one option of whose text a short reply is a part, or that begins with the yes or no that the reply is."""
    text, options = reading.text, reading.options
    if mentions(text, *range(Kind.MASKED)) or len(text) > SHORT or "\n" in text or _UNSURE.search(text):
        return None
    owners = options.containing(re.sub(r"\A\W*\w{1,3}[.)] ", "", text))
    word = pattern(r"\W*({yes_or_no})(?=[,.;:!]|\W*\Z)").match(text)  # not the Spanish "No lo sé"
    owners = owners or (options.beginning(word[1]) if word else frozenset())
    owners = owners or options.reordered(text)
    owners = owners or frozenset().union(*map(options.containing, re.split("[,;.] ", text.rstrip("."))))
    if not owners and not pattern(r"{^negated$}|{not_ending}\b|{^if$}|{^supposing$}|\?\Z").search(text):
        owners = options.distinguished(CONCEDED.sub("", text))
    owners -= reading.saying("{all_text}|{none_text}")  # "two of the above"
    return (owners, "part of text") if len(owners) == 1 else None


def numbers(reading: Reading) -> Outcome:
    """Numbers that are options, if a reply is only these, perhaps with a unit or a predicate: "23 and 29 are prime"."""
    match = _NUMBERS.match(reading.text)
    answer = options_of(mentions(match["said"])) if match else frozenset()
    others = options_of(re.findall(ANY, reading.text)) - answer
    if len(answer) in (0, reading.n) or others or _NEGATED.search(reading.text):
        return None
    return (answer, "numbers") if all(reading.options.texts[o][:1].isdigit() for o in answer) else None


def only_mention(reading: Reading) -> Outcome:
    """The only label in a short reply."""
    if len(reading.text) > SHORT or _UNDECIDED.search(reading.text) or reading.asserted(Kind.CONFLICT, Kind.AMBIGUOUS):
        return None
    capitals = (
        i for i in reading.asserted(Kind.BARE) if reading.labels[i].isupper() and reading.labels[i] not in LABEL_WORDS
    )
    named = reading.asserted(Kind.LABEL, Kind.BOTH) or frozenset(capitals)
    every = options_of(one for one in re.findall(ANY, reading.text) if kind_of(one) != Kind.WORD)
    if reading.breaks_off_at_first(named) or not len(named) == 1 == len(every) or _REJECTED.search(reading.text):
        return None
    before = _WORD_BEFORE.match(reading.text)
    if before and before[1].casefold() not in _KNOWN:
        return None  # "Nije B.": in a language without cues it may be a denial
    if _SAID_OF_LABEL.match(reading.text) or (_REASONING.search(reading.text) and not reading.complete()):
        return None  # or broken off where it began to go through the options
    return named, "only mention"


# From statements that are said to be the answer to mentions that may only be meant as one: a looser rule never
# overrules a stricter one. A rule that finds a contradiction ends the reading, since a looser one would pick a side at
# random.
RULES: tuple[Callable[[Reading], Outcome], ...] = (
    explicit, every_option.most_probable, reasoned, every_option.all_but, called_right, every_option.one_by_one,
    bare_lines, opening, every_option.statement_verdicts, every_option.none_stated, every_option.left_over, concluded,
    option_text, numbers, yes_or_no, part_of_text, every_option.both, only_mention, unsure,
)  # fmt: skip
"""In the order in which they are tried."""
