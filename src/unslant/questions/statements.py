"""Load open maths questions, and statements to be judged true, false or unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack

from unslant.errors import InputError
from unslant.flags import pairs
from unslant.questions.answer_forms import RawAnswer
from unslant.questions.answers import AnswerReader
from unslant.questions.fields import RecordFields, find_fields
from unslant.questions.loaders import Bad, check_arguments, columns_of, open_source, ready_made, sample
from unslant.questions.numbering import strip_numbering
from unslant.questions.question import AnyQuestion, JudgingQuestion, LoadReport, MathQuestion, QuestionSet
from unslant.questions.records import BadRecord, Record, is_missing, parse_list, settled, text_of

_MATH_FIELDS = {
    "id": ("id", "question_id", "qid", "unique_id"),
    "question": ("question", "problem", "prompt", "stem"),
    "answer": ("answer_text", "answer", "final_answer", "target"),
    "solution": ("solution", "rationale"),
    "subject": ("subject", "category", "type"),
    "source": ("source",),
}
_JUDGING_FIELDS = {
    "id": ("id", "example_id", "qid"),
    "statement": ("statement", "conclusion", "hypothesis", "question"),
    "verdict": ("verdict", "label", "world_assump_label", "proof_label", "answer"),
    "options": ("options", "choices"),
    "context": ("context", "premises", "facts", "theory"),
    "subject": ("subject", "category"),
    "source": ("source",),
}
_VERDICTS = {
    "true": "True",
    "proved": "True",
    "false": "False",
    "disproved": "False",
    "unknown": "Unknown",
    "uncertain": "Unknown",
}
_PREFACE = re.compile(
    r"(?<!\s)\s*based on [^?]{0,80}\bis the following \w+ true, false,? or (?:unknown|uncertain)\?\s*", re.I
)


class Loading(TypedDict, total=False):
    """Keywords of the loaders, as for :func:`load_questions`; each loader lists its ``fields``."""

    name: str | None
    fields: Mapping[str, str] | None
    limit: int | None
    skip_bad: bool
    seed: int


def load_math(source: Any, **options: Unpack[Loading]) -> QuestionSet[MathQuestion]:
    """Load open maths questions, such as ``gsm8k`` or a file in its form ("... #### 18").

    Args:
        source, options: as for :func:`load_questions`; fields are id, question, answer, solution, subject, source.

    Raises:
        InputError: naming file, line, field, reason and what is allowed.
    """
    return _load(source, MathQuestion, _MATH_FIELDS, _maths, **options)


def _maths(row: RecordFields, question_id: str, source: str) -> MathQuestion:
    stem, answer, solution = row.needed("question"), row.needed("answer"), row.text("solution")
    if "####" in answer:
        solution, answer = solution or answer, answer.rpartition("####")[2]
    if is_missing(answer):
        raise BadRecord("answer missing", "has no number after ####", "answer")
    return MathQuestion(question_id, stem, answer.strip(), solution, row.text("subject"), source)


def load_judging(source: Any, **options: Unpack[Loading]) -> QuestionSet[JudgingQuestion]:
    """Load statements to be judged from a context, such as ``folio``, ``fld`` or a file in their form.

    The verdict may be in words (True, False, Unknown, Uncertain, PROVED, DISPROVED), or an index or letter into
    options that say so. A lead such as "Based on the above information, is the following statement true, false, or
    unknown?" is removed from the statement.

    Args:
        source, options: as for :func:`load_questions`; fields are id, statement, verdict, options, context, subject,
            source.

    Raises:
        InputError: naming file, line, field, reason and what is allowed.
    """
    return _load(source, JudgingQuestion, _JUDGING_FIELDS, _judging, **options)


def _judging(row: RecordFields, question_id: str, source: str, reader: AnswerReader) -> JudgingQuestion:
    statement = _PREFACE.sub("", row.needed("statement"), count=1)
    return JudgingQuestion(
        question_id, statement, _verdict(row, reader), row.text("context"), row.text("subject"), source
    )


def _load(
    source: Any,
    kind: type[AnyQuestion],
    usual: Mapping[str, Sequence[str]],
    make: Callable[..., AnyQuestion],
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
    seed: int = 0,
) -> QuestionSet[AnyQuestion]:
    check_arguments(name, limit, seed, skip_bad=skip_bad)
    fields, source = pairs("fields", fields or {}), settled(source)
    if (ready := ready_made(source, kind, name)) is not None:
        return replace(ready, questions=sample(ready.questions, limit, seed))
    judging = kind is JudgingQuestion
    opened = open_source(source, "judging" if judging else "math", fields, name)
    needed = ("statement", "verdict") if judging else ("question", "answer")
    columns = columns_of(opened.records, opened.origin)
    names = find_fields(columns, {**opened.fields, **fields}, opened.origin, usual, needed)
    if judging:
        # Verdicts may be answers to a multiple-choice question.
        rows = [RecordFields(record, names) for record in opened.records if not record.problem]
        reader = AnswerReader.for_file(list(filter(None, map(_choice, rows))), None, "auto", opened.origin)
        if reader.doubts:
            reason = f"{reader.doubts[0].partition(':')[0]}; write the verdicts in words: True, False or Unknown"
            raise InputError.at(opened.origin, reason, field="verdict")
        make = partial(make, reader=reader)
    bad = Bad(skip=skip_bad)

    def read(record: Record, number: int) -> AnyQuestion:
        row = RecordFields(record, names)
        question = make(row, row.text("id").strip() or f"{opened.name}/{number}", row.text("source") or opened.name)
        bad.claim(question.id, record)
        return question

    questions = bad.kept((record, partial(read, record, number)) for number, record in enumerate(opened.records))
    whole = bad.whole(opened.name, questions, opened.records, LoadReport(opened.origin, fields=names))
    return replace(whole, questions=sample(whole.questions, limit, seed))


def _choice(row: RecordFields) -> RawAnswer | None:
    """The verdict as an answer to a multiple-choice question, if the record has options."""
    options = row.value("options")
    if isinstance(options, str):
        options = parse_list(options)
    if not isinstance(options, list | tuple) or len(options) < 2:
        return None
    texts = tuple(text_of(option) for option in options)
    return RawAnswer(row.value("verdict"), texts, strip_numbering(texts), ())


def _verdict(row: RecordFields, reader: AnswerReader) -> str:
    value = row.value("verdict")
    if is_missing(value):
        raise BadRecord("verdict missing", "is missing", "verdict")
    word = str(value).strip(" _.").casefold()
    choice = _choice(row)
    if word not in _VERDICTS and choice is not None:
        right = reader.read(choice)
        word = choice.shown[next(iter(right))].strip(" _.").casefold() if len(right) == 1 else ""
    if word not in _VERDICTS:
        allowed = "True, False, Unknown, Uncertain, PROVED, DISPROVED, UNKNOWN"
        raise BadRecord("unknown verdict", f"{value!r} is none of {allowed}", "verdict")
    return _VERDICTS[word]
