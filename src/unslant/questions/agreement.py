"""Columns that hold one field twice. Where they differ, only the author of the file can choose, so it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from unslant.errors import InputError
from unslant.questions.answer_forms import READERS, RawAnswer, integer
from unslant.questions.fields import CHOICE_FIELDS, LAST_RESORT, Draft, find_columns, is_passage, lookup
from unslant.questions.question import Question
from unslant.questions.records import BadRecord, Record, is_missing, text_of, usual_name

_ANSWERS = {"answer": (*CHOICE_FIELDS["answer"], *LAST_RESORT["answer"])}
_Read = tuple[Question, Draft]


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
    columns: Sequence[str], names: Mapping[str, str], read: Sequence[_Read]
) -> Iterator[tuple[Record, Callable[[], _Read]]]:
    """The questions, each in a call that raises BadRecord if further columns with usual names of answers name others.

    Such a column is read in the way that fits most of its values, and of those ways in the one that agrees most often
    with the answers. A column of which less than half can be read, as of difficulties or explanations, is left out.

    Args:
        names: field -> column, of the columns that are read.
    """
    rights = [question.answers for question, _ in read]
    used = {part for field, name in names.items() if field != "answer" for part in name.split(",")}
    others: list[dict[str, frozenset[int]]] = [{} for _ in read]
    for column in find_columns(columns, {}, _ANSWERS)["answer"]:
        if column in used or (column == names.get("answer") and not all(draft.answer.marked for _, draft in read)):
            continue
        raw = [replace(draft.answer, value=lookup(draft.record.data, column), marked=False) for _, draft in read]
        ways = [[_options_named(one, kind, base) for one in raw] for kind in READERS for base in (0, 1)]
        best = max(ways, key=lambda way: (sum(map(bool, way)), sum(map(frozenset.__eq__, way, rights))))
        if 2 * sum(map(bool, best)) > sum(not is_missing(one.value) for one in raw):
            for other, named in zip(others, best, strict=True):
                other[column] = named
    for (question, draft), other in zip(read, others, strict=True):
        yield draft.record, partial(_agreeing, question, draft, names.get("answer", ""), other)


def _options_named(answer: RawAnswer, kind: str, base: int) -> frozenset[int]:
    """The options that an answer names, read in one way; empty if it names none or cannot be read so."""
    items = [] if is_missing(answer.value) else answer.items
    texts = [str(item if (number := integer(item)) is None else number) for item in items]
    places = [READERS[kind](text, answer, base) for text in texts]
    return frozenset(i for some in places for i in some) if all(places) else frozenset()


def _agreeing(question: Question, draft: Draft, column: str, others: Mapping[str, frozenset[int]]) -> _Read:
    for other, named in others.items():
        if named and named != question.answers:
            said, right = (
                ", ".join(f"option {i + 1} ({question.options[i][:40]!r})" for i in sorted(places)) or "none"
                for places in (named, question.answers)
            )
            reason = (
                f"the marks of the options say {right}; correct one, or leave the column out: --fields answer="
                if draft.answer.marked
                else f"{column!r} says {right}; choose one: --fields answer={column}, or --fields answer={other}"
            )
            raise BadRecord(
                "columns with different answers", f"the column {other!r} says {said}, but {reason}", "answer"
            )
    return question, draft
