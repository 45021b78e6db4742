"""Rules for what a reply says outright: its answer (the last one counts), or lines that are nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from unslant.replies.grammar import (
    BEGIN_OF_LINE,
    CALLED_RIGHT,
    HEDGED_MORE,
    Kind,
    characters,
    kind_of,
    mentions,
    option_of,
    options_of,
    pattern,
)
from unslant.replies.reading import CONFLICT, SHORT, Outcome, Reading, Unreadable

_CUED = {"answer field": "{field_cue}{slot}", "cue": "{sentence_cue}{slot}", "choice": "{choosing}{slot}"}
_SAID = {
    # "B is the correct option", "which leaves C"
    "called the answer": r"(?P<said>{subject})[ ,]{0,2}{calling} (?:{calling_adverb} ){0,4}{an_article}?"
    r"(?:{calling_adjective} ){0,3}{called_noun}\b(?!{on_condition})"
    r"|\b{leaves}(?P<left>{one}(?!{joined}{any}))|\b{matches}(?P<matched>{marked})"
    # "between A and B, B is better"
    r"|{^between}{masked}[^.!?\n]{0,40}{masked}[,:]?[^.!?\n{not_any}]{0,40}"
    r"(?:(?P<better>{one}) {better}(?!\w)|{better_first} (?P<best>{one}){end})"
    # "A seems plausible, but B is better"
    r"|{masked}(?! {is_not})[^.!?\n{not_any}]{0,60}{^but$},? ?(?:{article} )?(?P<turned>{one}) ?{better}{end}",
    # what a sentence comes down to: "so B.", "is (D)."
    "conclusion": r"(?:{^so}[ ,:、]{1,3}|(?:→|->|=>|∴) ?|(?:\b{not_this} )?{masked}[,.;]? ?{but_rather}|{masked} ?: "
    r"|{wrong}{wrong_after}[,;] ?{but_rather}?"
    r"|{^but$}(?! {^also$}),? (?:(?:{lead_word$}|{nowadays$})[ ,:]{1,3}){1,3})(?:{so_filler}){0,8}"
    r"(?P<said>{listed})(?:{end}|(?=,? {reason}\b))"
    r"|{begin}[^.!?\n{not_any}]{0,300}\b{is_be} (?P<marked>{marked}(?:{joined}{marked}){0,25}){end}",
    # of an earlier answer: "Actually, B covers all three"
    "correction": r"(?:\b{correction}"
    r"|(?:(?<=[.!?] )|(?<={labelled}, )|(?<=\n)|^){no_word}(?=[,.;!-]{1,3} ?(?:\w{1,8} ){0,3}{labelled})"
    r"|(?:(?<={any}[,、])|(?<={any}, )|(?<={any} [→-] )|(?<={any} -> ))"
    r"(?:{retraction_word}(?= ?[,:!、-]{1,3} ?{labelled})|{instead_word}(?= {labelled}{end}))"
    r"|(?<= {any}, ){no_word}(?= {labelled}{end}))"
    r" ?[\]),:;.!、-]{0,3}[ \n]{0,2}(?:{correction_filler}[ ,]{1,2}){0,3}(?P<said>{listed})(?!\?|\.\.)",
}
"""Rules by which an answer is said to be one: with the answer after a cue, and in a statement."""
_LISTING = "options listed"
_NEAR = 40
"""Characters between two answers, or after the last, that are too few for reasoning."""

_ALONE = {
    "lead": r"(?:{lead_word$}[ ,:!.]{0,3}){0,3}",
    "tail": (
        r"(?: ?,? ?{over_another}{any}| ?\([^()\n]{0,40}\)|{tail_word}"
        r"|,? (?:{confidence}|{probability})[ :]{0,3}[\d.]{1,5} ?%?|{only}(?: {one})?)?[ .!;:,)\]}>⟧\"'-]{0,6}$"
    ),
}
_BARE_LINE = pattern("^ ?{lead}{slot}{tail}", parts=_ALONE)
"""A line that is nothing but an answer."""
_SUBJECT_OF_LINE = pattern(
    r"^[ \"'(*]{0,4}{one}[ )*]{0,4}(?:(?:{subject_verb}|{being_verb}|{be_word})\b|{after_subject})"
)
_BARE_SENTENCE = pattern(r"(?:[.!?;-]|\b{sentence_head}:) {lead}{slot}{tail}", parts=_ALONE)
_AFTER_COLON = re.compile(
    rf"(?:\b\w{{1,20}} ){{3}}\w{{1,20}}: (?P<slot>{characters(Kind.LABEL, Kind.BARE, Kind.BOTH)})[ .!]*$"
)
RULED_OUT = pattern(r"\b{ruled_out}")
_BETTER = pattern(r"(?P<said>{one}) {better}(?!\w)")
_NOT_SHOWN = pattern(
    r"(?:{field_cue}|\b{answer_is})[ :]{0,3}\n{0,2}[(\[\"']{0,2}"
    r"(?:[A-Za-z]|[IVXivx]{1,4}|\d(?: ?/ ?\d){1,9}|{no_value})[)\]\"']{0,2}[.⟧]?\s{0,3}(?:\n|\Z)",
    BEGIN_OF_LINE,
)
_OTHER_FIELD = re.compile(r"⟦ ?(-?\d{1,3}) ?⟧")
"""A number where the answer belongs, such as ``{"choice": 1}``: nobody knows whether it counts from 0."""
_CONDITIONAL = pattern(r"\W{0,3}{conditional}\b")
_JUDGED = pattern("{marked_correct}")
_PAST = pattern("{^past_choice$}")
_UNSURE = pattern(
    r"{signs}{doubt}[,.;:-]{1,3} ?(?:{^but$}[ ,]{0,2})?{lead}(?P<said>{one})(?: ?{tail_word})?"
    r"(?:,? ?{^why$}(?:(?!{^but$})[^.!?\n{not_any}]){0,150})?{signs}",
    parts={
        "signs": r"[^\w{not_any}]{0,9}",
        "doubt": r"[^.!?\n{not_any}]{0,30}{^unsure$}[^,.!?\n{not_any}]{0,30}",
        "lead": r"(?:{lead_word$}[ ,:]{0,3}){0,4}(?:(?:{the} )?{answer_noun} {copula} )?",
    },
)
"""A reply that says no more than one option in spite of doubt: "not sure, but B"."""
UNKNOWN_LABEL = pattern(
    r" ?(?:,|{and}\b|&|/) ?(?:{and} )?[(\[]?(?!I [a-z])(?:[A-Z]|\d{1,2}|[ivxIVX]{1,4})(?=[)\].,;:\s]|\Z)", 0
)


class _Claim(NamedTuple):
    start: int
    end: int
    rule: str
    said: str


def explicit(reading: Reading) -> Outcome:
    """The last answer that is said to be one, unless others contradict it.

    Its rule is ``answer field`` ("Answer: A", ``\\boxed{A}``, JSON), ``cue`` ("the correct options are A and C"),
    ``choice`` ("I chose B"), ``called the answer`` ("which makes D the answer"), ``conclusion`` ("so B."),
    ``correction`` ("Actually, B covers all three") or ``last line``.
    """
    # The last claim counts: models state an answer, check it, and correct themselves.
    claims = sorted(_claims(reading))
    claims += _last_line(reading, claims)
    # An answer under a label that was not shown ("Answer: E" of four options) is a failure, and the claim before it is
    # not read in its place.
    unknown = max((match.start() for match in _NOT_SHOWN.finditer(reading.text)), default=-1)
    if unknown > max((claim.start for claim in claims), default=-1):
        raise Unreadable("no label that was shown")
    retracted = reading.retracted()
    valid = [claim for claim in claims if claim.start >= retracted]
    if claims and not valid:
        raise Unreadable("retracted")
    if not valid:
        if any(abs(int(number)) <= reading.n for number in _OTHER_FIELD.findall(reading.text)):
            raise Unreadable("no label that was shown")
        return None
    last = valid[-1]
    answer = reading.answer(last.said, as_label=_is_alone(last))
    _check(reading, valid, answer)
    return _with_additions(reading, last, answer), last.rule


def _claims(reading: Reading) -> list[_Claim]:
    claims: list[_Claim] = []
    cued: set[int] = set()  # places of cued claims: "the answer is B" is not a "conclusion" as well
    for rule, cue in _CUED.items():
        for match in pattern(cue, BEGIN_OF_LINE).finditer(reading.text):
            claim = _in_slot(reading, rule, match)
            cued.update(range(claim.start, claim.end))
            claims.append(claim)
    # "between A and B, B is better, but C is right"
    praise = [(one.start(), one["said"]) for each in (_BETTER, CALLED_RIGHT) for one in each.finditer(reading.text)]
    praised, said = max(praise, default=(-1, ""))
    last = options_of(mentions(said))
    for rule, statement in _SAID.items():
        for match in pattern(statement).finditer(reading.text):
            group = match.lastgroup or 0
            outdone = group == "better" and match.start(group) < praised and not last <= options_of(match[group])
            if match.start(group) not in cued and not outdone:
                claims.append(_Claim(match.start(group), match.end(), rule, match[group]))
    listings = [claim for claim in claims if claim.rule == _LISTING]
    claims = [claim for claim in claims if claim.rule != _LISTING]
    if listings and not any(claim.start >= listings[-1].end for claim in claims):
        raise Unreadable("options listed")
    return claims


def _in_slot(reading: Reading, rule: str, match: re.Match[str]) -> _Claim:
    """The answer after a cue; if it is on the lines below, all of them that open with an option."""
    inline, text = "".join(mentions(match["slot"])), reading.text
    if not inline or "\n" not in text[match.start() + 1 : match.start("slot")]:
        # "The options are A and C"; a field may be called so ("Options: A, C").
        many = 2 if rule == "cue" else max(3, reading.n)
        repeats_options = len(options_of(inline)) >= many and pattern("{options_shown}").match(match.group())
        if repeats_options and not pattern("{right_word} \\Z").search(text[max(0, match.start() - 20) : match.start()]):
            rule = _LISTING
        # "I believe A, B and D are correct": all of them
        right = CALLED_RIGHT.match(text, match.start("slot")) if rule == "choice" else None
        return _Claim(match.start(), match.end(), rule, (right or match)["said" if right else "slot"])
    below, end, bare = "", match.start("slot"), True
    for line in text[end:].split("\n"):
        opening = reading.opening(line)
        subject = _SUBJECT_OF_LINE.match(line) is not None
        bare = bare if below else not subject
        # an answer alone, and then a sentence about another option: "B. Paris", "A. Lyon is only third."
        if (opening is None and line.strip()) or (below and bare and subject):
            break
        below += opening or ""
        end += len(line) + 1
    said, end = (below, end) if len(below) > len(inline) else (inline, match.end())
    if len(options_of(said)) == reading.n > 1 and all(kind_of(one) == Kind.BOTH for one in said):
        rule = _LISTING
    return _Claim(match.start(), end, rule, said)


def _last_line(reading: Reading, claims: list[_Claim]) -> list[_Claim]:
    """The last line, or the last sentence in it, if it is nothing but an answer."""
    *above, line = reading.text.rstrip().split("\n")
    start = len(reading.text.rstrip()) - len(line)
    if line.endswith(":"):
        return []  # about to be discussed
    match = None if _JUDGED.search(line) else _BARE_LINE.match(line)  # judged one by one: "D (correct)"
    also = pattern("{^also$}").search(line)
    if also and mentions(reading.text[: start + also.start()]):
        return []  # one more answer: "A. Also B."
    if match is not None:
        # Not one more line of a list of answers or options, which other rules read.
        before = next((line for line in reversed(above) if line.strip()), "")
        texts = set(map(kind_of, mentions(match["slot"]))) & {Kind.BOTH, Kind.TEXT, Kind.WORD}
        opening = reading.opening(above[-1]) if above else None
        in_list = opening is not None and kind_of(opening) != Kind.BARE
        apart = before and not _BARE_LINE.match(before) and not in_list and not (texts and len(reading.listed()) > 1)
        return [_Claim(start, len(reading.text), "last line", match["slot"])] if apart else []
    sentence = _BARE_SENTENCE.search(line)
    if sentence is not None and not any(claim.end > max(start, reading.retracted()) for claim in claims):
        match = sentence
        texts = set(map(kind_of, mentions(match["slot"]))) & {Kind.TEXT, Kind.WORD}
        before = line[: match.start()]
        if not re.search(r"\w", before) and options_of(mentions(before)) - options_of(mentions(match["slot"])):
            return []  # two answers: "A. B.", "A. A. B."
        if reading.goes_through(match["slot"], start + match.start()):
            raise Unreadable("cut off")
        if texts and len(reading.asserted(Kind.LABEL, Kind.BOTH, Kind.TEXT)) != 1:
            return []
    else:
        match = _AFTER_COLON.search(line)
        if match is None or RULED_OUT.search(line) or any(claim.end > start + match.start() for claim in claims):
            return []
    return [_Claim(start + match.start("slot"), len(reading.text), "last line", match["slot"])]


def _is_alone(claim: _Claim) -> bool:
    return claim.rule in ("answer field", "last line")


def _by_text(claim: _Claim) -> bool:
    kinds = set(map(kind_of, mentions(claim.said)))
    return bool(kinds) and kinds <= {Kind.TEXT, Kind.WORD}


def _check(reading: Reading, claims: list[_Claim], answer: frozenset[int]) -> None:
    """Raises Unreadable if the claims leave open which of them is meant, or which option the last one names."""
    text, last = reading.text, claims[-1]
    cues = [claim for claim in claims if claim.rule in ("cue", "answer field")]
    changed = any(
        options_of(mentions(one.said)) != options_of(mentions(other.said))
        and not pattern("{^leading_up$}").search(text, max(one.end, other.start - 60), other.end)
        # unless reasoning leads from one to the other, and nothing follows
        and (other.start - one.end < _NEAR or len(text) - last.end > _NEAR)
        for one, other in [*pairwise(cues)][-1 if last.rule == "last line" else 0 :]
    )
    however = pattern(r"\b{however_also}\b[^.\n]{0,20}({any})").search(text, last.end)
    different = {options_of(mentions(c.said)) for c in claims if c.rule in ("answer field", "cue", "choice")}
    fields = {reading.answer(claim.said) for claim in claims if text[claim.start] == "⟦"}
    if pattern(r"\b{one_of_several}").search(text[max(0, last.start - 40) : last.start + 24]):
        raise Unreadable("one of several")
    if (
        len(fields) > 1  # two boxes or records
        or len(different) > 2  # a reply may correct itself once
        or (changed and last.start <= cues[-1].end and last.said == cues[-1].said)
        or options_of(pattern(r"{answer_noun} {is_not} ({masked})").findall(text, last.end)) & answer
        or HEDGED_MORE.match(text, last.end - 1)  # "the answer is A, and possibly B"
        or (however is not None and not options_of(however[1]) <= answer)
        or (_CONDITIONAL.match(text, last.end) and len({claim.said for claim in claims}) > 1)  # "A if ..., B if ..."
        or (last.rule == "choice" and len(different) > 1 and _PAST.search(text, last.start, last.end))
        or pattern(r"(?:[.)]?|,? (?:{then}|{before_next})) {labelled}[.)]?(?:\n|\Z)", 0).match(text, last.end)
        # "A is wrong, because it is Lyon": the text of an option called wrong
        or (last.rule == "conclusion" and _by_text(last) and answer <= reading.asserted(Kind.WRONG))
    ):
        raise Unreadable("contradiction", *(reading.answer(claim.said) for claim in claims))
    opened = pattern(r"\W*({by_word})[.!] ").match(text)
    first = option_of(opened[1]) if opened else None
    if first is not None and pattern("{yes_or_no}").fullmatch(reading.options.texts[first]) and first not in answer:
        raise Unreadable("contradiction", frozenset({first}), answer)  # "No. The answer is B.", where B is "Yes"
    if UNKNOWN_LABEL.match(text, last.end):  # "A and E"
        raise Unreadable("no label that was shown")
    # A label with another option's text is a conflict wherever the reply has it, unless the last claim settles it.
    if not _is_alone(last):
        earlier = any(kind_of(one) == Kind.CONFLICT for claim in claims for one in mentions(claim.said))
        by_both = any(kind_of(one) == Kind.BOTH for one in mentions(last.said))
        if (earlier and not by_both) or reading.asserted(Kind.CONFLICT) & answer:
            raise reading.conflict(reading.asserted(Kind.CONFLICT))
    # So is an option's text that is soon followed by another's label: "Answer: Paris\nTherefore, A."
    before = claims[-2] if len(claims) > 1 else last
    by_text_first = _by_text(before) and set(map(kind_of, mentions(last.said))) <= {Kind.LABEL, Kind.BARE}
    near = last.rule in ("conclusion", "last line") and last.start - before.end < _NEAR
    options_before = options_of(mentions(before.said))
    turns = pattern(r"\b(?:{but}|{wait}|{correction})\b").search(text, before.end, last.end)
    if near and by_text_first and options_before.isdisjoint(answer) and not turns:
        raise Unreadable(CONFLICT, answer, options_before)


def _with_additions(reading: Reading, last: _Claim, answer: frozenset[int]) -> frozenset[int]:
    """The answer with the options that are called correct, too, after it."""
    text = reading.text
    if text[last.start] == "⟦":
        return answer
    for match in CALLED_RIGHT.finditer(text, last.end):
        more = reading.answer(match["said"])
        if not more <= answer and pattern("{^right_adjective$}", 0).search(match.group()):
            if not pattern("{^also$}").search(text[max(0, match.start() - 12) : match.end()]):
                raise Unreadable("contradiction")
            answer |= more
    return answer


def bare_lines(reading: Reading) -> Outcome:
    """Lines that are nothing but an answer, if they agree."""
    runs: list[list[tuple[int, str]]] = []
    apart, repeated = True, False
    for number, line in enumerate(reading.text.split("\n")):
        match = _BARE_LINE.match(line)
        if match is not None:
            runs += [[]] if apart else []
            runs[-1].append((number, match["slot"]))
        apart = match is None and (apart or bool(line.strip()))
    if not runs:
        return None
    for run in runs:
        # The options are repeated as shown, each on a line, before or after the answer: "A. Lyon\nB. Paris\n\nB".
        n = len(reading.options.texts)
        for listing in (slice(n), slice(-n, None)) if len(run) > n > 1 else ():
            if len(run) > n and _is_listing(reading, run[listing]):
                del run[listing]
                repeated = True
    # The others follow the answer, each with its text, to be discussed: "B\n\nExplanation:\nA: Lyon ...\nC: Nice ..."
    others = mentions("".join(said for run in runs[1:] for _, said in run))
    discussed = len(others) > 1 and set(map(kind_of, others)) == {Kind.BOTH}
    if discussed and options_of(others) == frozenset(range(reading.n)) - reading.answer(runs[0][0][1]):
        del runs[1:]
        repeated = True
    if any(1 < len(set(lines := [said for _, said in run])) < len(lines) for run in runs):
        raise Unreadable("options repeated")  # by a model stuck in a loop
    answers = {frozenset().union(*(reading.answer(said) for _, said in run)) for run in runs}
    orders = ([option_of(one) for _, said in run for one in mentions(said)] for run in runs if len(run) > 1)
    ranked = any(len(order) > 2 and order != sorted(order) for order in orders)
    if ranked or any(_is_listing(reading, run) for run in runs):
        raise Unreadable("options listed")
    if len(answers) > 1:
        raise Unreadable("contradiction")
    (answer,) = answers
    if not repeated and not reading.listed() <= answer and (sum(map(len, runs)) > 1 or not reading.set_apart(answer)):
        raise Unreadable("options listed")
    if len(runs) == 1 and reading.breaks_off_at_first(answer):
        raise Unreadable("cut off")
    return answer, "line"


def unsure(reading: Reading) -> Outcome:
    """The one option that a reply names in spite of doubt, and says nothing else: "Not sure, but B"."""
    match = _UNSURE.fullmatch(reading.plain) if len(reading.plain) <= SHORT else None
    if match is None or kind_of(match["said"]) == Kind.WORD:
        return None
    return reading.answer(match["said"]), "unsure"


def _is_listing(reading: Reading, run: Sequence[tuple[int, str]]) -> bool:
    """Whether lines repeat the options as shown, all of them or one below the other from the first on, or rank them."""
    named = [one for _, line in run for one in mentions(line)]
    options = list(map(option_of, named))
    if len(run) == reading.n > 2 and sorted(options) == list(range(reading.n)) != options:
        return True
    # The last may have been cut off after its label: "A. Lyon\nB. Paris\nC."
    whole = named[:-1] if len(named) > 2 and len(run) > 2 else named
    if len(options) < 2 or any(kind_of(one) not in (Kind.BOTH, Kind.TEXT) for one in whole):
        return False
    in_order = options == list(range(options[0], options[0] + len(options))) and (options[0] == 0 or len(options) > 2)
    adjacent = len(run) > 1 and run[-1][0] - run[0][0] == len(run) - 1
    return len(set(options)) == reading.n or (in_order and adjacent)
