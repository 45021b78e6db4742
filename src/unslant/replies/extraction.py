"""Read the answer to a presentation from a reply in words, the confidence that the reply states, and recorded replies
in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from unslant.errors import InputError
from unslant.files import TableRow, checked
from unslant.presentations import ALPHABETS, NONE, Presentation, labels_for
from unslant.presentations.interventions.language import number
from unslant.questions.formats import whole_records
from unslant.replies.choice import extract_labels
from unslant.replies.grammar import REFUSAL, pattern, words
from unslant.replies.reading import VERDICTS, Extracted
from unslant.replies.text import FIELD, plain, shortened, without_fragment, without_thinking
from unslant.replies.verdict import extract_verdict

_ASIDE = re.compile(r"(?<=\d)\s?\([^()\n]{0,200}\)")
_SPACED = re.compile(r"(?<=\d)[ ](?=\d{3}(?!\d))(?<![\d.,]{4} )")
"""Spaces within a number: "42 000"."""
_IN_REPLY = pattern(
    r"(?P<whole>\d{1,9} (?=\d{1,9}/\d))?"
    r"(?P<number>-?[$€£]?(?:\d[\d,]*(?:\.\d+)?|(?<![\d\w])\.\d+)(?:e[+-]?\d{1,2}(?!\w))?(?:/\d+)?)"
    r"(?P<percent> ?%)?(?: (?P<scale>{scale})\b)?"
)
_WRITTEN = {
    re.compile(r"(?<=\d)\s?[×*]\s?10\s?\^\s?\{?([+-]?\d{1,2})\}?"): r"e\1",
    re.compile(r"(?<![\d.,])10\s?\^\s?\{?([+-]?\d{1,2})\}?"): r"1e\1",
    re.compile(r"(?<![\d.,])(\d{1,9}),(\d{1,2}|\d{4,9})(?![\d,])"): r"\1.\2",
    re.compile(r"(?<=\d)(?<![\d.]{4})\.(?=\d{3}(?:\.\d{3})+(?![\d.]))|(?<=\.\d{3})\.(?=\d{3}(?![\d]))"): "",
}
"""Numbers as written elsewhere, and as read here: "2 × 10^3", "3,5" with a decimal comma, "1.234.567"."""
_SCALES = dict(zip(words("scale"), (10**3, 10**6, 10**9), strict=True))
CUT = ("length", "max_tokens", "model_length")
"""Names of the limit of tokens in servers and logs, as the reason why a reply ended."""
WITHHELD = "content_filter"
"""The reason of a reply that the filter of a provider ended or withheld, which is a refusal."""
_IMPLIED = ("option text", "numbers", "part of text", "both", "only mention", "unsure", "reason", "statement")
"""Rules that read an answer which is not said to be one: a reply that was cut off could have gone on to deny it."""
_BY_PLACE = ("opening", "line", "last line")
"""Rules that read an answer from where it is: one in a review of all options may be anywhere."""
_LONGEST_NUMBER = 100
"""Most characters of a number that is an answer; decimals of a million digits overflow."""
_NUMBER = {
    "number": r"(?P<number>(?<![\d.,])(?:0?[.,]\d{1,9}|\d{1,9}(?!\d)(?:\.\d{1,9})?)(?!\d))\s{0,3}"
    r"(?P<unit>%|{percent}\b|(?:/|{out_of})\s{0,3}(?:100|10)\b)?"
}
_STATED = (
    pattern(r"{^confidence$}(?:\s{0,3}[(\[][^()\[\]\n]{0,80}[)\]])?[^\d\n]{0,30}?{number}", parts=_NUMBER),
    pattern(r"{number}\s{0,3}{confident}\b", parts=_NUMBER),
)


def extract(reply: str, presentation: Presentation, *, cut: bool = False) -> Extracted:
    """The answer to ``presentation``; a verdict if its labels are True, False and Unknown.

    Args:
        cut: the reply was ended at the limit of tokens; its last fragment is not read.
    """
    return extract_answer(reply, presentation.labels, [option.text for option in presentation.shown], cut=cut)


def extract_answer(reply: str, labels: tuple[str, ...], options: Sequence[str] = (), *, cut: bool = False) -> Extracted:
    """As :func:`extract`, for options shown under these labels."""
    kept = without_fragment(reply) if cut else reply
    read = extract_verdict(kept) if labels == VERDICTS else extract_labels(kept, labels, options)
    if not cut:
        return read
    in_review = read.rule in _BY_PLACE and _breaks_off_in_review(kept, reply[len(kept) :], labels)
    in_review |= read.rule in _BY_PLACE[:2] and _opens_list(reply, labels[0])
    if read.status == "unparsed" or read.rule in _IMPLIED or in_review:
        return Extracted("cut", rule="cut off", readings=read.readings)
    return read


def _breaks_off_in_review(kept: str, fragment: str, labels: Sequence[str]) -> bool:
    """Whether a reply ends within a list of options: at the first one after some words, or at a further one.

    Examples:
        >>> _breaks_off_in_review("Let us see.\\n\\nA.", " Lyon is", ("A", "B"))
        True
        >>> _breaks_off_in_review("A.", " Ly", ("A", "B"))
        False
    """
    label = "|".join(map(re.escape, labels))
    item = rf"(?:\A|[.!?:\n])[\s*_#>|(\[-]{{0,9}}(?:{{option_noun}} )?[(\[]?({label})[.:)\]]"
    items = [match[1].casefold() for match in pattern(item).finditer(kept + fragment)]
    here = pattern(rf"{item}\Z").search(kept.rstrip()) or pattern(rf"\s?{item}").match(f"\n{fragment}")
    opens = pattern(rf"\s{{0,9}}{item}").match(kept) is not None
    in_order = items[:1] == [labels[0].casefold()]  # an answer that is then explained is another one, as a rule
    return here is not None and in_order and (len(set(items)) > 1 or not opens)


def _opens_list(reply: str, label: str) -> bool:
    """Whether a reply begins with the label as the first item of a list, a heading or a row of a table."""
    opening = r"\s{0,9}(?:#{1,6}|[|•*+-])[ \t]{1,3}\*{0,2}(?:{option_noun} )?[(\[]?" + re.escape(label)
    return pattern(rf"{opening}[)\]]?\*{{0,2}} ?[.:)|(–-]").match(reply) is not None


def chosen_contents(extracted: Extracted, presentation: Presentation) -> frozenset[int] | None:
    """Content codes of the answer: ``{NONE}`` for "no option is right"; None if there is no answer."""
    if extracted.status != "ok":
        return None
    return frozenset(presentation.content_of(label) for label in extracted.labels) or frozenset({NONE})


def conflicting_labels(extracted: Extracted) -> tuple[str, ...]:
    """The label of a conflict, then those of the options whose text comes with it; empty if it has several labels."""
    if extracted.status != "conflict" or len(extracted.readings) != 2 or len(extracted.readings[0]) != 1:
        return ()
    return tuple(label for reading in extracted.readings for label in sorted(reading))


def conflicting_contents(extracted: Extracted, presentation: Presentation) -> tuple[int, ...]:
    """As :func:`conflicting_labels`, the contents under these labels."""
    return tuple(dict.fromkeys(map(presentation.content_of, conflicting_labels(extracted))))


def read_open(reply: str, answer: str) -> tuple[str, frozenset[int] | None]:
    """Status of a reply to an open maths question, and ``{0}`` if its number is the right one, ``{1}`` if not.

    The number after the last "Answer:" (or "answer is", or in a box) counts, else the last number of the reply. A reply
    that declines and states no answer is ``refused``.

    Examples:
        >>> read_open("25 * 6 = 150. Answer: 150 kilos", "150")
        ('ok', frozenset({0}))
    """
    # The last number: worked solutions are full of numbers, and end in the answer.
    text = _SPACED.sub("", plain(shortened(without_thinking(reply))))
    for form, written in _WRITTEN.items():
        text = form.sub(written, text)
    cues = [*pattern(rf"{{number_cue}}\s{{0,9}}:?\*{{0,2}}|{FIELD}|####|(?P<again>{{^replaced}})").finditer(text)]
    after = [*_IN_REPLY.finditer(text, cues[-1].end())] if cues else []
    stated = after[-1 if cues[-1]["again"] else 0] if after else None
    if stated is None and REFUSAL.search(text):
        return "refused", None
    # What is in brackets after a number explains it: "126 (42 per hour for 3 hours)".
    numbers = [*_IN_REPLY.finditer(_ASIDE.sub(" ", text))] or [*_IN_REPLY.finditer(text)]
    readings = _readings(stated or numbers[-1]) if stated or numbers else frozenset()
    if not readings:
        return "refused" if REFUSAL.search(text) else "unparsed", None
    return "ok", frozenset({0 if number(answer) in readings else 1})


def _readings(match: re.Match[str]) -> frozenset[Decimal]:
    """What a number says: "5 million" to "how many millions?" is 5, and "60%" to "what percentage?" is 60."""
    value = number(match["number"].rstrip(".,")) if len(match[0]) <= _LONGEST_NUMBER else None
    if value is None:
        return frozenset()
    value += int(match["whole"] or 0)
    more = [value / 100] * bool(match["percent"]) + [value * _SCALES[word.lower()] for word in [match["scale"]] if word]
    return frozenset((value, *more))


def stated_confidence(reply: str) -> float | None:
    """The confidence stated last in a reply, 0 to 1; None if it states none, or a number that is not a share.

    A number without a unit is a share up to 1, and a percentage beyond.

    Examples:
        >>> stated_confidence("B. I am 80% sure.")
        0.8
    """
    reply = plain(shortened(reply))
    statements = [match for form in _STATED for match in form.finditer(reply)]
    if not statements:
        return None
    last = max(statements, key=lambda match: match.start("number"))
    number, unit = float(last["number"].replace(",", ".")), (last["unit"] or "").lower()
    if unit:
        number /= 10 if unit.endswith("10") else 100
    elif number > 1:
        number /= 100
    return number if 0 <= number <= 1 else None


def _distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    if not all(labels) or len(set(labels)) < len(labels):
        raise ValueError("empty or repeated")
    return labels


class _ReplyLine(TableRow, extra="ignore"):
    id: str
    question: str = Field("", description="a text")
    options: tuple[str, ...] = Field((), description="a list of texts")
    labels: Annotated[tuple[str, ...], AfterValidator(_distinct)] = Field((), description="a list of different texts")
    kind: Literal["choice", "judging"] = Field("choice", description="choice or judging")
    reply: str | None = Field(description="a text, or null where none came")
    finish_reason: str | None = Field(None, description="why the reply ended, as a server says")


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """One line of the file.

    Attributes:
        data: the line as written.
        reply: the reply; None if there was none.
        labels: every label that is an answer, as shown; the verdicts for judging.
        options: the text under each of the first labels.
        read: the answer that the rules read; of status ``error`` if there was no reply.
    """

    data: dict[str, Any]
    reply: str | None
    labels: tuple[str, ...]
    options: tuple[str, ...]
    read: Extracted


def read_replies(path: str | Path) -> Iterator[RecordedReply]:
    """Read the answers in recorded replies.

    Args:
        path: JSON lines (or any table that question files may be). A line has ``id``, ``reply``, ``question``,
            ``options``, ``labels`` (A, B, ... by default; ``labels_shown`` takes precedence), ``kind`` (``choice`` by
            default, or ``judging``) and ``finish_reason`` (``length`` if the reply was cut, ``content_filter`` if the
            provider withheld it); others are ignored.

    Raises:
        InputError: naming file, line and field.
    """
    for record in whole_records(Path(path)):
        data, name = dict(record.data), "labels_shown" if "labels_shown" in record.data else "labels"
        line = checked(_ReplyLine, {**data, "labels": data.get(name, ())}, record.place)
        labels = line.labels or (VERDICTS if line.kind == "judging" else labels_for(ALPHABETS["A"], len(line.options)))
        if line.kind == "judging" and set(labels) != set(VERDICTS):
            raise InputError.at(record.place, f"judging replies answer with {', '.join(VERDICTS)}", field=name)
        if not labels:
            raise InputError.at(record.place, "is empty; give the options, or the labels", field="options")
        if len(labels) < len(line.options):
            reason = f"holds {len(labels)} for {len(line.options)} options; give one for each"
            raise InputError.at(record.place, reason, field=name)
        if line.reply is None:
            read = Extracted("error", rule="no reply")
        elif line.finish_reason == WITHHELD:
            read = Extracted("refused", rule="content filter")
        else:
            labels = VERDICTS if line.kind == "judging" else labels
            read = extract_answer(line.reply, labels, line.options, cut=line.finish_reason in CUT)
        yield RecordedReply(data, line.reply, labels, line.options, read)
