"""Columns that hold one field twice. Where they differ, only the author of the file can choose, so it is refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from unslant.errors import InputError
from unslant.questions.answer_forms import READERS, RawAnswer, are_flags, as_text, integer
from unslant.questions.fields import (
    CHOICE_FIELDS,
    LAST_RESORT,
    Draft,
    find_columns,
    is_passage,
    lookup,
    option_columns,
    options_in,
)
from unslant.questions.numbering import strip_numbering
from unslant.questions.question import Question
from unslant.questions.records import BadRecord, Record, is_missing, text_of, usual_name

_ANSWERS = {"answer": (*CHOICE_FIELDS["answer"], *LAST_RESORT["answer"], "ans", "key")}
_Read = tuple[Question, Draft]
_MOST_PLACES = 4
_NUMBER = re.compile(r"\s*(?:[-+]?[\d.,]+ ?%?)?\s*")
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d|\d\d?-{_MONTH}|{_MONTH}-\d\d")
"""What a spreadsheet, and a CSV file saved by one, makes of 1/2 or 10-20 (20-Oct in MedMCQA)."""


def passage_note(records: Sequence[Record], columns: Sequence[str], names: Mapping[str, str]) -> str:
    """A note on the column that is read as the passage, where its name often means something else; empty elsewhere.

    Args:
        names: field -> column, of the columns that are read.

    Raises:
        InputError: at the first record with texts in two columns with usual names of passages, unless one text holds
            the other.
    """
    column = names.get("context", "")
    for other in find_columns(columns, {}, CHOICE_FIELDS)["context"]:
        if other in names.values() or not is_passage(records, other, names["question"]):
            continue
        for record in records:
            one, two = (" ".join(text_of(lookup(record.data, name)).split()) for name in (column, other))
            if one not in two and two not in one:
                reason = (
                    f"the columns {column!r} and {other!r} both hold a passage; give both with "
                    f"--fields context={column},{other}, or one with --fields context={column}"
                )
                raise InputError.at(record.place, reason, field="context")
    unsure = usual_name(column) in LAST_RESORT["context"]
    return f"the column {column!r} is read as a passage (--fields context= leaves it out)" if unsure else ""


def agreements(
    columns: Sequence[str], names: Mapping[str, str], given: Mapping[str, str], read: Sequence[_Read]
) -> Iterator[tuple[Record, Callable[[], _Read]]]:
    """The questions, each in a call that raises BadRecord if further columns with usual names contradict its answer.

    Another column of answers is read in the way that fits most of its values, and of those ways in the one that agrees
    most often with the answers. A column is left out if fewer than half of its values can be read, as of difficulties
    or explanations. Another list of the same options may not have them in another order if the answer is a place.

    Args:
        names: field -> column, of the columns that are read.
        given: the same, of those that the user or a recipe chose; there, nothing is compared.
    """
    rights = [question.answers for question, _ in read]
    used = {part for field, name in names.items() if field != "answer" for part in name.split(",")}
    others: list[dict[str, frozenset[int]]] = [{} for _ in read]
    for column in find_columns(columns if "answer" not in given else (), {}, _ANSWERS)["answer"]:
        if column in used or (column == names.get("answer") and not all(draft.answer.marked for _, draft in read)):
            continue
        raw = _answers_in(column, [draft for _, draft in read])
        keys = {str(one.value) for one in raw}
        if usual_name(column) == "key" and len(keys) == len(raw) and all(map(_NUMBER.fullmatch, keys)):
            continue  # it numbers the questions
        ways: list[list[frozenset[int]]] = []
        for kind, base in product(_READERS, (0, 1)):
            ways.append([_options_named(one, kind, base) for one in raw])
            if ways[-1] == rights:
                break
        best = max(ways, key=lambda way: (sum(map(bool, way)), sum(map(frozenset.__eq__, way, rights))))
        if 2 * sum(map(bool, best)) > sum(not is_missing(one.value) for one in raw):
            for other, named in zip(others, best, strict=True):
                other[column] = named
    rest = [column for column in columns if column not in names["options"].split(",") and "options" not in given]
    group = option_columns(rest)
    cells = (text_of(lookup(draft.record.data, column)) for column in group for _, draft in read)
    options = (option for question, _ in read for option in question.options)
    if all(map(_NUMBER.fullmatch, cells)) and not all(map(_NUMBER.fullmatch, options)):
        group = []  # counts or shares, such as how often each option was chosen
    lists = [*find_columns(rest, {}, CHOICE_FIELDS)["options"], *filter(None, [",".join(group)])]
    for (question, draft), other in zip(read, others, strict=True):
        yield draft.record, partial(_agreeing, question, draft, names, other, lists)


def likely_answers(columns: Sequence[str], names: Mapping[str, str], drafts: Sequence[Draft]) -> list[str]:
    """The other columns that name an option in every record, read in one way, as ``key`` or ``Antwort`` may.

    Args:
        names: field -> column, of the columns that are read.
    """
    used = {part for name in names.values() for part in (name, *name.split(","))}
    readings = [*product(READERS, (0, 1))]
    others = [(column, _answers_in(column, drafts)) for column in columns if column not in used]
    return [column for column, raw in others if any(all(_options_named(one, *way) for one in raw) for way in readings)]


def dates_in(options: Sequence[str]) -> list[str]:
    """The options that a spreadsheet may have made of texts: 2-Jan, or a whole date among options of another kind."""
    dates = [option for option in options if _DATE.fullmatch(option)]
    return dates if len(dates) < len(options) else [option for option in dates if not option[:4].isdigit()]


def dates_caveat(origin: str, read: Sequence[_Read]) -> tuple[str, ...]:
    """A sentence on the options that a spreadsheet may have made of texts, with their places; none without any."""
    rows = ((question, draft.record.place.removeprefix(f"{origin}, ")) for question, draft in read)
    places = [f"{option} ({place})" for question, place in rows for option in dates_in(question.options)]
    if not places:
        return ()
    more = len(places) - _MOST_PLACES
    named = ", ".join(places[:_MOST_PLACES]) + f" and {more:,} more" * (more > 0)
    why = "a spreadsheet may have made of texts such as 1-2 or 1/2; format such cells as text, and write them again"
    return (f"{origin}: {len(places):,} options are dates, which {why}: {named}.",)


def _answers_in(column: str, drafts: Sequence[Draft]) -> list[RawAnswer]:
    return [replace(draft.answer, value=lookup(draft.record.data, column), marked=False) for draft in drafts]


def _check_order(question: Question, draft: Draft, column: str, other: str) -> None:
    """BadRecord if other columns list the options in another order, and the answer is a place, or other options."""
    try:
        texts, _, _ = options_in(draft.record.data, other)
    except BadRecord:
        return  # it does not list options
    texts = strip_numbering(texts)
    if sorted(texts) == sorted(question.options):
        by_text = draft.answer.marked or as_text(str(draft.answer.value), draft.answer, 0)
        what, differ = "list the options in different orders", not by_text and texts != question.options
    else:
        what, differ = "list different options", "," in column and "," in other and len(texts) == len(question.options)
    if differ:
        one, two = (f"--fields {shlex.quote(f'options={name}')}" for name in (column, other))
        why = f"the columns {column!r} and {other!r} {what}; choose the one that the answer refers to: {one}, or {two}"
        raise BadRecord(f"columns that {what}", why, "options")


def _as_yes(item: str, answer: RawAnswer, base: int) -> tuple[int, ...]:
    """1 for yes, the first of two options, and 0 for no."""
    return (1 - int(item),) if answer.is_yes_or_no and item in ("0", "1") else ()


_READERS = {**READERS, "yes": _as_yes}


def _options_named(answer: RawAnswer, kind: str, base: int) -> frozenset[int]:
    """The options that an answer names, read in one way; empty if it names none or cannot be read so."""
    items = [] if is_missing(answer.value) or are_flags(answer.items, len(answer.options)) else answer.items
    texts = [str(item if (number := integer(item)) is None else number) for item in items]
    places = [_READERS[kind](text, answer, base) for text in texts]
    return frozenset(i for some in places for i in some) if all(places) else frozenset()


def _agreeing(
    question: Question,
    draft: Draft,
    names: Mapping[str, str],
    others: Mapping[str, frozenset[int]],
    lists: Sequence[str],
) -> _Read:
    for column in lists:
        _check_order(question, draft, names["options"], column)
    for other, named in others.items():
        texts = [{question.options[i] for i in places} for places in (named, question.answers)]
        if named and texts[0] != texts[1]:  # of identical options, a letter names one, and the text both
            said, right = (
                ", ".join(f"option {i + 1} ({question.options[i][:40]!r})" for i in sorted(places)) or "none"
                for places in (named, question.answers)
            )
            one, two = (f"--fields {shlex.quote(f'answer={name}')}" for name in (names["answer"], other))
            reason = (
                f"the marks of the options say {right}; correct one, or leave the column out: --fields answer="
                if draft.answer.marked
                else f"{names['answer']!r} says {right}; choose one: {one}, or {two}"
            )
            reason = f"the column {other!r} says {said}, but {reason}"
            raise BadRecord("columns with different answers", reason, "answer")
    return question, draft
