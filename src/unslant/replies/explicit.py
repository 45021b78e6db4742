"""The answers that a reply says to be its answer; the last one counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    options_of,
    pattern,
)
from unslant.replies.reading import CONFLICT, Conflict, Outcome, Reading, Unreadable

_CUED = tuple(
    (rule, pattern(f"{{{cue}}}{{slot}}", BEGIN_OF_LINE))
    for rule, cue in (("answer field", "field_cue"), ("cue", "sentence_cue"), ("choice", "choosing"))
)
_SAID = (
    (
        "called the answer",  # "B is the correct option", "which leaves C"
        pattern(
            r"(?P<said>{subject})[ ,]{0,2}{calling} (?:{calling_adverb} ){0,4}{an_article}?"
            r"(?:{calling_adjective} ){0,3}{called_noun}\b(?!{on_condition})"
            r"|\b{leaves}(?P<left>{listed})|\b{matches}(?P<matched>{marked})"
        ),
    ),
    (
        "conclusion",  # what a sentence comes down to: "so B.", "is (D)."
        pattern(
            r"(?:\b{so}[ ,:]{1,3}|(?:→|->|=>) ?|(?:\b{not_this} )?{masked},? {but_rather})(?:{so_filler}){0,8}"
            r"(?P<said>{listed})(?:{end}|(?=,? {reason}\b))"
            r"|{begin}[^.!?\n{not_any}]{0,300}\b{is_be} (?P<marked>{marked}(?:{joined}{marked}){0,25}){end}"
        ),
    ),
    (
        "correction",  # of an earlier answer: "Actually, B covers all three"
        pattern(
            r"(?:\b{correction}|(?:(?<=[.!?] )|(?<=\n)|^){no_word}(?=[,.;!-]{1,3} ?(?:\w{1,8} ){0,3}{labelled}))"
            r" ?[,:;.!-]{0,3}[ \n]{0,2}(?:{correction_filler}[ ,]{1,2}){0,3}(?P<said>{listed})(?!\?)"
        ),
    ),
)
_LISTING = "options listed"
_NEAR = 40
"""Characters between two answers, or after the last, that hold no reasoning."""

_ALONE = {
    "lead": r"(?:{lead_word}\b[ ,:!.]{0,3}){0,3}",
    "tail": (
        r"(?: ?,? ?{over_another}{any}| ?\([^()\n]{0,40}\)|{tail_word}"
        r"|,? (?:{confidence}|{probability})[ :]{0,3}[\d.]{1,5} ?%?|{only}(?: {one})?)?[ .!;:,)\]}>⟧\"'-]{0,6}$"
    ),
}
BARE_LINE = pattern("^ ?{lead}{slot}{tail}", parts=_ALONE)
"""A line that is nothing but an answer."""
_BARE_SENTENCE = pattern(r"(?:[.!?;-]|\b{sentence_head}:) {lead}{slot}{tail}", parts=_ALONE)
_AFTER_COLON = re.compile(
    rf"(?:\b\w{{1,20}} ){{3}}\w{{1,20}}: (?P<slot>{characters(Kind.LABEL, Kind.BARE, Kind.BOTH)})[ .!]*$"
)
_RULED_OUT = pattern(r"\b{ruled_out}")
_LEADING_UP = pattern("{^leading_up$}")
_NOT_SHOWN = pattern(
    r"(?:{field_cue}|\b{answer_is})[ :]{0,3}\n{0,2}[(\[\"']{0,2}(?:[A-Za-z]|[IVXivx]{1,4})[)\]\"']{0,2}[.⟧]?\s{0,3}"
    r"(?:\n|\Z)",
    BEGIN_OF_LINE,
)
_HOWEVER = pattern(r"\b{however_also}\b[^.\n]{0,20}({any})")
_CONDITIONAL = pattern(r"\W{0,3}{conditional}\b")
_ONE_OF_SEVERAL = pattern(r"\b{one_of_several}")
_RIGHT = pattern("{^right_adjective$}", 0)
_ALSO = pattern("{^also$}")
_BUT = pattern(r"\b(?:{but}|{wait}|{correction})\b")
_SHOWN = pattern("{options_shown}")
_RIGHT_BEFORE = pattern("{right_word} \\Z")
_PAST = pattern("{^past_choice$}")
_ANOTHER_LABEL = pattern(r"[.)]? {labelled}[.)]?(?:\n|\Z)", 0)
_UNKNOWN_LABEL = pattern(r" ?(?:,|{and}\b|&|/) ?(?:{and} )?[(\[]?(?:[A-Z]|\d{1,2}|[ivxIVX]{1,4})(?=[)\].,;:\s]|\Z)", 0)


class _Claim(NamedTuple):
    start: int
    end: int
    rule: str
    said: str


def explicit(reading: Reading) -> Outcome:
    """The last answer that is said to be one, unless others contradict it."""
    # The last claim counts: models state an answer, check it, and correct themselves.
    claims = sorted(_claims(reading))
    claims += _last_line(reading, claims)
    # An answer under a label that nobody showed ("Answer: E" of four options) is a failure, not the one before it.
    unknown = max((match.start() for match in _NOT_SHOWN.finditer(reading.text)), default=-1)
    if unknown > max((claim.start for claim in claims), default=-1):
        raise Unreadable("label that was not shown")
    retracted = reading.retracted()
    standing = [claim for claim in claims if claim.start >= retracted]
    if claims and not standing:
        raise Unreadable("retracted")
    if not standing:
        return None
    last = standing[-1]
    chosen = reading.chosen(last.said, as_label=_stands_alone(last))
    _check(reading, standing, chosen)
    return _with_additions(reading, last, chosen), last.rule


def _claims(reading: Reading) -> list[_Claim]:
    claims = list(_all_claims(reading))
    listings = [claim for claim in claims if claim.rule == _LISTING]
    claims = [claim for claim in claims if claim.rule != _LISTING]
    if listings and not any(claim.start >= listings[-1].end for claim in claims):
        raise Unreadable("options listed")
    return claims


def _all_claims(reading: Reading) -> Iterator[_Claim]:
    cued: set[int] = set()
    for rule, cued_answer in _CUED:
        for match in cued_answer.finditer(reading.text):
            claim = _in_slot(reading, rule, match)
            cued.update(range(claim.start, claim.end))
            yield claim
    for rule, answer in _SAID:
        for match in answer.finditer(reading.text):
            group = match.lastgroup or 0
            if match.start(group) in cued:
                continue
            yield _Claim(match.start(group), match.end(), rule, match[group])


def _in_slot(reading: Reading, rule: str, match: re.Match[str]) -> _Claim:
    """The answer after a cue; where it starts a line, all the lines that open with an option."""
    inline, text = "".join(mentions(match["slot"])), reading.text
    if not inline or "\n" not in text[match.start() + 1 : match.start("slot")]:
        shown = len(options_of(inline)) == reading.n > 2 and _SHOWN.match(match.group())
        if shown and not _RIGHT_BEFORE.search(text[max(0, match.start() - 20) : match.start()]):
            rule = _LISTING
        return _Claim(match.start(), match.end(), rule, match["slot"])
    below, end = "", match.start("slot")
    for line in text[end:].split("\n"):
        opening = reading.opening(line)
        if opening is None and line.strip():
            break
        below += opening or ""
        end += len(line) + 1
    said, end = (below, end) if len(below) > len(inline) else (inline, match.end())
    if len(options_of(said)) == reading.n > 1 and all(kind_of(one) == Kind.BOTH for one in said):
        rule = _LISTING
    return _Claim(match.start(), end, rule, said)


def _last_line(reading: Reading, claims: list[_Claim]) -> Iterator[_Claim]:
    """The last line, or the last sentence in it, if it is nothing but an answer."""
    *above, line = reading.text.rstrip().split("\n")
    start = len(reading.text.rstrip()) - len(line)
    match = BARE_LINE.match(line)
    if match is None:
        match = _BARE_SENTENCE.search(line)
        if match is not None and not any(claim.end > start for claim in claims):
            texts = set(map(kind_of, mentions(match["slot"]))) & {Kind.TEXT, Kind.WORD}
            if reading.goes_through(match["slot"], start + match.start()):
                raise Unreadable("cut off")
            if not texts or len(reading.asserted(Kind.LABEL, Kind.BOTH, Kind.TEXT)) == 1:
                yield _Claim(start + match.start("slot"), len(reading.text), "last line", match["slot"])
            return
        match = _AFTER_COLON.search(line)
        if (
            match is not None
            and not _RULED_OUT.search(line)
            and not any(claim.end > start + match.start() for claim in claims)
        ):
            yield _Claim(start + match.start("slot"), len(reading.text), "last line", match["slot"])
        return
    before = next((line for line in reversed(above) if line.strip()), "")
    texts = set(map(kind_of, mentions(match["slot"]))) & {Kind.BOTH, Kind.TEXT, Kind.WORD}
    opening = reading.opening(above[-1]) if above else None
    goes_on = opening is not None and kind_of(opening) != Kind.BARE
    if before and not BARE_LINE.match(before) and not goes_on and not (texts and len(reading.listed()) > 1):
        yield _Claim(start, len(reading.text), "last line", match["slot"])


def _stands_alone(claim: _Claim) -> bool:
    return claim.rule in ("answer field", "last line")


def _check(reading: Reading, claims: list[_Claim], chosen: frozenset[int]) -> None:
    """Raises:
    Unreadable: if the claims leave open which one is meant, or what the last one names.
    """
    text, last = reading.text, claims[-1]
    cues = [claim for claim in claims if claim.rule in ("cue", "answer field")]
    changed = any(
        options_of(mentions(one.said)) != options_of(mentions(other.said))
        and not _LEADING_UP.search(text, max(one.end, other.start - 60), other.end)
        and (
            other.start - one.end < _NEAR or len(text) - last.end > _NEAR
        )  # else the last follows from what is between
        for one, other in pairwise(cues)
    )
    however = _HOWEVER.search(text, last.end)
    different = {options_of(mentions(c.said)) for c in claims if c.rule in ("answer field", "cue", "choice")}
    marked = {reading.chosen(claim.said) for claim in claims if text[claim.start] == "⟦"}
    if _ONE_OF_SEVERAL.search(text[max(0, last.start - 40) : last.start + 24]):
        raise Unreadable("one of several")
    if (
        len(marked) > 1
        or len(different) > 2
        or (changed and last.rule in ("cue", "answer field") and last.said == cues[-1].said)
        or HEDGED_MORE.match(text, last.end - 1)
        or (however is not None and not options_of(however[1]) <= chosen)
        or (_CONDITIONAL.match(text, last.end) and len({claim.said for claim in claims}) > 1)
        or (last.rule == "choice" and len(different) > 1 and _PAST.search(text, last.start, last.end))
        or _ANOTHER_LABEL.match(text, last.end)
    ):
        raise Unreadable("contradiction", *(reading.chosen(claim.said) for claim in claims))
    if _UNKNOWN_LABEL.match(text, last.end):
        raise Unreadable("label that was not shown")
    if not _stands_alone(last):
        earlier = any(kind_of(one) == Kind.CONFLICT for claim in claims for one in mentions(claim.said))
        by_both = any(kind_of(one) == Kind.BOTH for one in mentions(last.said))
        if (earlier and not by_both) or reading.asserted(Kind.CONFLICT) & chosen:
            raise reading.conflict(reading.asserted(Kind.CONFLICT))
    before = claims[-2] if len(claims) > 1 else last
    named, label = set(map(kind_of, mentions(before.said))), set(map(kind_of, mentions(last.said)))
    by_text, by_label = {Kind.TEXT, Kind.WORD}, {Kind.LABEL, Kind.BARE}
    near = last.rule in ("conclusion", "last line") and last.start - before.end < _NEAR
    apart = options_of(mentions(before.said)).isdisjoint(chosen) and not _BUT.search(text, before.end, last.end)
    if near and apart and named and named <= by_text and label <= by_label:
        raise Conflict(CONFLICT, chosen, options_of(mentions(before.said)))


def _with_additions(reading: Reading, last: _Claim, chosen: frozenset[int]) -> frozenset[int]:
    """The answer with the options that are called correct as well after it."""
    text = reading.text
    if text[last.start] == "⟦":
        return chosen
    for match in CALLED_RIGHT.finditer(text, last.end):
        more = reading.chosen(match["said"])
        if not more <= chosen and _RIGHT.search(match.group()):
            if not _ALSO.search(text[max(0, match.start() - 12) : match.end()]):
                raise Unreadable("contradiction")
            chosen |= more
    return chosen
