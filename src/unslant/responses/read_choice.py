"""Read which labels a reply chooses, or that no option is right.

The reply is cleaned (:mod:`reply_text`), every mention of an option becomes one character (:mod:`collapse`), and the
mentions that are denied, hedged, supposed or asked about are masked (:mod:`masks`). Then the first rule that applies
reads it:

1. An explicit answer; the last one counts (:mod:`explicit_answers`): ``answer field`` ("Answer: A", ``\\boxed{A}``,
   JSON), ``cue`` ("the correct options are A and C"), ``choice`` ("I chose B"), ``called the answer`` ("which makes D
   the answer"), ``conclusion`` ("so B."), ``correction`` ("Actually, B covers all three"), ``last line``.
2. ``all but``: "all except B are correct".
3. ``called right``: options called right, one by one or marked so ("A: correct", "C is right").
   ``one by one``: options of which something is said that is denied of the others.
4. ``line``: lines that are nothing but an answer.
5. ``opening``: the answer a reply opens with ("B. Paris, because ...").
6. ``statement verdicts``: "Statement 1: True ...", where the options are such verdicts.
7. ``none stated``: a sentence that no option is right, or every option called wrong; ``all stated``: all are right.
8. ``conclusion`` again: the one option in a last sentence with "therefore", or before an answer that is cut off.
9. ``option text``: the option whose text the first sentence to name one asserts.
10. ``numbers``: "23 and 29 are prime", "150 minutes".
11. ``part of text``: a short reply that is a part of one option's text, or has the words of one option only.
12. ``both``: "both of them do", where one option begins so.
13. ``only mention``: the only label in a short reply.

What is ambiguous, contradictory, hedged or only lists the options is ``unparsed``, whatever else might be made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from unslant.responses.answer_patterns import (
    ALL_BUT,
    ALL_OF_THEM,
    CALLED_RIGHT,
    COUNTS,
    FITS,
    MARKED_RIGHT,
    NONE_FIRST,
    NONE_STATED,
    NOT_ANY_OF_THEM,
    REFUSAL,
    SUBJECT,
)
from unslant.responses.collapse import collapser
from unslant.responses.explicit_answers import BARE_LINE, HEDGED_MORE, explicit
from unslant.responses.extracted import Extracted
from unslant.responses.implied_answers import (
    SENTENCE_END,
    SHORT,
    Found,
    both,
    numbers,
    only_mention,
    option_text,
    part_of_text,
)
from unslant.responses.mentions import (
    AMBIGUOUS,
    ANY,
    BARE,
    BOTH,
    LABEL,
    LABELLED,
    MASKED,
    ONE,
    TEXT,
    WORD,
    WRONG,
    characters,
    kind_of,
    mentions,
    option_of,
    options_of,
)
from unslant.responses.reading import Reading, Unreadable
from unslant.responses.reply_text import before_next_question, clean

_I = re.IGNORECASE
_OPENING = re.compile(
    rf" ?(?:(?:both|only|just|so|it's|it is|this is|probably|i think|i believe|yes|ok|sure|options?|the"
    rf"|answer)\b[ ,:!.]{{0,3}}){{0,3}}[\"'(\[]{{0,2}}(?P<said>{SUBJECT})(?:(?<={ONE}{ONE}) (?:are|were|have)\b"
    rf"| ?[.:,;()\]!\n-]| ?\Z|(?<={characters(BOTH)}) "
    r"| (?:because|since|as|for|due|given|but|although|though|while)\b)",
    _I,
)
_SAID_OF = re.compile(rf"(?P<said>{SUBJECT})[)]? (?:is|are) (?P<what>(?!wrong|incorrect|false|not)\w{{3,20}})\b", _I)
_HEADING = re.compile(rf" ?[\"'(]{{0,2}}{ONE}[)\"']{{0,2}} ?: ?\Z")
_BEFORE_COLON = re.compile(rf"({LABELLED}) ?:")
_STATEMENT_VERDICT = re.compile(r"\bstatement (?:\d|[iv]{1,3})\W{1,4}(?:is )?(true|false)\b")
_SUPPOSED = re.compile(r"\b(?:if|whether|unless|when|in case)\b[^.;,\n]*\Z", _I)
_CONCLUDES = re.compile(r"(?:so|thus|therefore|hence|consequently|in conclusion|overall|in summary)\b", _I)
_CUT_OFF = re.compile(
    r"\s*(?:(?:so|thus|therefore|hence),? )?(?:the (?:correct |final )?answer is|answer)[ :]{0,2}[(\[*]{0,2}\Z", _I
)
_COMES_TO = re.compile(
    rf"(?:\b(?:is|are|was|be|equals?|to|of|approximately|about|as|at)|=|≈) (?:(?:the|an?|approximately|about|called"
    rf"|only) )*({ONE}) ?(?:\w{{1,12}} ?){{0,2}}[.!]?\Z"
)
_NOT_ANOTHER = re.compile(rf",? (?:and |but )?not (?:\w{{1,12}} ){{0,2}}{ANY}(?=\W*\Z)", _I)
_EQUATION = re.compile(rf"[=≈] ?({characters(TEXT, WORD)}) ?(?:\w{{1,12}} ?){{0,2}}[.!]?\Z")
_ENDS_IN = re.compile(rf"({ONE}) ?(?:\w{{1,12}} ?){{0,2}}[.!]?\Z")


def extract_labels(reply: str, labels: Sequence[str], options: Sequence[str] = ()) -> Extracted:
    """The set of ``labels`` that a reply chooses.

    Args:
        labels: every label that is an answer, as shown; letters may come back in either case.
        options: text under each of the first labels, so that an answer given as an option's text is understood.
    """
    text = clean(reply)
    if not text:
        return Extracted("unparsed", rule="empty")
    answer = re.match(r"A: [(\[]?(\w{1,4})[)\].]*(?:\n|\Z)", text)
    text = f"Answer{text[1:]}" if answer and answer[1] in labels else text
    reading = Reading(collapser(tuple(labels), tuple(options)), before_next_question(text))
    try:
        found = next((found for rule in RULES if (found := rule(reading)) is not None), None)
    except Unreadable as why:
        return Extracted("unparsed", rule=str(why))
    if found is not None:
        chosen, rule = found
        return Extracted("ok", frozenset(labels[option] for option in chosen), rule)
    if REFUSAL.search(text):
        return Extracted("refused", rule="refusal")
    return Extracted("unparsed", rule="no answer found")


def all_but(reading: Reading) -> Found:
    """Every option but some: "all except B are correct", "everything but B is wrong"."""
    match = ALL_BUT.search(reading.plain)
    if match is None or (match["alone"] is not None and match["before"] is None and match.start()):
        return None
    named = options_of(mentions(match["said"], *range(MASKED + 1)))
    wrong = re.search(
        r"\b(?:wrong|incorrect|false|not|ruled|eliminated|excluded)\b", f"{match['before']} {match['after']}", _I
    )
    return named if wrong else frozenset(range(reading.n)) - named, "all but"


def called_right(reading: Reading) -> Found:
    """Options that are called right and nowhere wrong."""
    right: frozenset[int] = frozenset()
    for pattern in (CALLED_RIGHT, FITS, MARKED_RIGHT):
        for match in pattern.finditer(reading.text, reading.retracted()):
            right |= reading.chosen(match[match.lastgroup or 0])
    if right & reading.asserted(WRONG):
        raise Unreadable("contradiction")
    return (right, "called right") if right else None


def one_by_one(reading: Reading) -> Found:
    """Options of which the same is said, where it is denied of others: "B is prime. A and C are not."."""
    said = [
        (options_of(mentions(match["said"])), match["what"].casefold()) for match in _SAID_OF.finditer(reading.text)
    ]
    right = frozenset().union(*(options for options, _ in said))
    every = options_of(re.findall(ANY, reading.text))
    denied = options_of(mentions(reading.text, MASKED))
    if (
        not right
        or not denied
        or mentions(reading.plain, TEXT, WORD)
        or len({what for _, what in said}) > 1
        or right | denied != every
        or right & denied
    ):
        return None
    return (right, "one by one") if len(reading.text) <= SHORT else None


def bare_lines(reading: Reading) -> Found:
    """Lines that are nothing but an answer, where they agree."""
    runs: list[list[tuple[int, str]]] = []
    apart = True
    headings = {number for number, line in enumerate(reading.text.split("\n")) if _HEADING.match(line)}
    headings = headings if len(headings) > 1 else set()
    for number, line in enumerate(reading.text.split("\n")):
        match = None if number in headings else BARE_LINE.match(line)
        if match is not None:
            runs += [[]] if apart else []
            runs[-1].append((number, match["slot"]))
        apart = match is None and (apart or bool(line.strip()))
    if not runs:
        return None
    answers = {frozenset().union(*(reading.chosen(said) for _, said in run)) for run in runs}
    if any(_is_listing(reading, run) for run in runs):
        raise Unreadable("options listed")
    if len(answers) > 1:
        raise Unreadable("contradiction")
    (chosen,) = answers
    if not reading.listed() <= chosen and (sum(map(len, runs)) > 1 or not reading.set_apart(chosen)):
        raise Unreadable("options listed")
    if len(runs) == 1 and reading.breaks_off_at_first(chosen):
        raise Unreadable("cut off")
    return chosen, "line"


def _is_listing(reading: Reading, run: Sequence[tuple[int, str]]) -> bool:
    """Whether lines repeat the options as shown: all of them, or one below the other from the first on."""
    said = [one for _, line in run for one in mentions(line)]
    shown = list(map(option_of, said))
    if len(shown) < 2 or any(kind_of(one) not in (BOTH, TEXT) for one in said):
        return False
    in_order = shown == list(range(shown[0], shown[0] + len(shown))) and (shown[0] == 0 or len(shown) > 2)
    adjacent = len(run) > 1 and run[-1][0] - run[0][0] == len(run) - 1
    return len(set(shown)) == reading.n or (in_order and adjacent)


def opening(reading: Reading) -> Found:
    """The answer a reply opens with."""
    match = _OPENING.match(reading.text)
    named = mentions(match["said"]) if match else []
    kinds = set(map(kind_of, named))
    if match is None or kinds <= {TEXT, WORD}:
        return None
    chosen = reading.chosen(match["said"])
    same_line = reading.text[match.end("said") :].split("\n")[0]
    if (
        not (reading.listed() <= chosen or reading.set_apart(chosen))
        or not options_of(mentions(same_line, LABEL, BOTH)) <= chosen
        or not options_of(_BEFORE_COLON.findall(same_line)) <= chosen
        or HEDGED_MORE.match(reading.text, match.end("said") - 1)
        or (len(chosen) == reading.n > 1 and kinds == {BOTH})
    ):
        raise Unreadable("options listed")
    if reading.breaks_off_at_first(chosen):
        raise Unreadable("cut off")
    if kinds <= {BARE, AMBIGUOUS} and not reading.asserted(LABEL, BOTH, TEXT) <= chosen:
        return None
    return chosen, "opening"


def statement_verdicts(reading: Reading) -> Found:
    """The option that lists the verdicts which a reply gives on numbered statements."""
    said = _STATEMENT_VERDICT.findall(reading.plain.casefold())
    listed = [re.findall("true|false", text.casefold()) for text in reading.options.texts]
    chosen = frozenset(i for i, verdicts in enumerate(listed) if len(verdicts) > 1 and verdicts == said)
    return (chosen, "statement verdicts") if len(chosen) == 1 else None


def none_stated(reading: Reading) -> Found:
    """A sentence that no option is right, or every option called wrong."""
    stated = (match.start() for match in NONE_STATED.finditer(reading.plain))
    if any(not _SUPPOSED.search(reading.plain[max(0, at - 80) : at]) for at in stated):
        return reading.none(), "none stated"
    if len(reading.asserted(WRONG)) == reading.n > 1 and reading.complete():
        return reading.none(), "none stated"
    if len(reading.plain) <= SHORT and not re.search(ANY, reading.plain):
        if NOT_ANY_OF_THEM.match(reading.plain) or NONE_FIRST.match(reading.plain):
            return reading.none(), "none stated"
        every = ALL_OF_THEM.match(reading.plain)
        if every and COUNTS.get((every["n"] or "").casefold(), reading.n) == reading.n:
            return reading.chosen(""), "all stated"
    return None


def concluded(reading: Reading) -> Found:
    """The one option in a last sentence that draws a conclusion, or leads up to an answer that is cut off."""
    cue = _CUT_OFF.search(reading.text)
    sentences = SENTENCE_END.split((reading.text[: cue.start()] if cue else reading.text).rstrip())
    last = _NOT_ANOTHER.sub("", sentences[-1])
    equation = _EQUATION.search(last) if cue is None and len(reading.text) <= SHORT else None
    if equation is not None and not re.search(LABELLED, reading.text):
        return reading.chosen(equation[1]), "conclusion"
    if cue is not None and len(options_of(mentions(reading.text, WORD))) > 1:
        return None
    draws = cue is not None or _CONCLUDES.match(last) is not None
    for kinds in ((LABEL, BOTH), (TEXT,)) if draws else ():
        said = mentions(last, *kinds)
        if len(options_of(said)) == 1:
            return reading.chosen(said[0]), "conclusion"
    single = len(re.findall(ANY, last)) == 1
    ended = re.search(rf"(?:\.|{ONE})\Z", last) is not None
    alone = single and ended and len(sentences) == 1 and len(last) <= SHORT and bool(mentions(last, WORD))
    match = (_ENDS_IN if single else _COMES_TO).search(last) if draws or alone else None
    return (reading.chosen(match[1]), "conclusion") if match else None


RULES: tuple[Callable[[Reading], Found], ...] = (
    explicit,
    all_but,
    called_right,
    one_by_one,
    bare_lines,
    opening,
    statement_verdicts,
    none_stated,
    concluded,
    option_text,
    numbers,
    part_of_text,
    both,
    only_mention,
)
"""In the order in which they are tried."""
