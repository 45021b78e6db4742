"""Load open maths questions, and statements to be judged true, false or unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unslant.errors import InputError
from unslant.questions.answer_kinds import RawAnswer, is_missing, parse_list
from unslant.questions.answers import AnswerReader, BadRecord
from unslant.questions.fields import column_names, find_fields, lookup, text_of
from unslant.questions.loaders import Bad, Made, check_arguments, check_id, open_source, ready_made, refuse_all, sample
from unslant.questions.numbering import strip_numbering
from unslant.questions.objects import settled
from unslant.questions.question import JudgingQuestion, MathQuestion
from unslant.questions.question_set import LoadReport, QuestionSet
from unslant.questions.records import Record

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
_PREFACE = re.compile(r"\s*based on [^?]{0,80}\bis the following \w+ true, false,? or (?:unknown|uncertain)\?\s*", re.I)
_MADE: Mapping[str, type[Any]] = {"math": MathQuestion, "judging": JudgingQuestion}
_Make = Callable[[Record, str, str], Made]


def load_math(
    source: Any,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    on_bad: str = "error",
    seed: int = 0,
) -> QuestionSet[MathQuestion]:
    """Load open maths questions, such as ``gsm8k`` or a file in its form ("... #### 18").

    Args:
        source, name: as for :func:`load_questions`.
        fields: field -> column; fields are id, question, answer, solution, subject, source.
        limit, on_bad, seed: as for :func:`load_questions`.

    Raises:
        InputError: naming file, line, field, reason and what is allowed.
    """

    def plan(records: Sequence[Record], names: Mapping[str, str], origin: str) -> _Make[MathQuestion]:
        def make(record: Record, own_id: str, name: str) -> MathQuestion:
            stem = _needed(record, names, "question")
            answer, solution = _needed(record, names, "answer"), _text(record, names, "solution")
            if "####" in answer:
                solution, answer = solution or answer, answer.rpartition("####")[2]
            if is_missing(answer):
                raise BadRecord("answer missing", "has no number after ####", "answer")
            return MathQuestion(
                own_id, stem, answer.strip(), solution, _text(record, names, "subject"), _source(record, names, name)
            )

        return make

    return _load(source, "math", _MATH_FIELDS, ("question", "answer"), plan, fields or {}, limit, on_bad, seed, name)


def load_judging(
    source: Any,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    on_bad: str = "error",
    seed: int = 0,
) -> QuestionSet[JudgingQuestion]:
    """Load statements to be judged from a context, such as ``folio``, ``fld`` or a file in their form.

    The verdict may be in words (True, False, Unknown, Uncertain, PROVED, DISPROVED), or an index or letter into
    options that say so. A lead such as "Based on the above information, is the following statement true, false, or
    unknown?" is taken off the statement.

    Args:
        source, name: as for :func:`load_questions`.
        fields: field -> column; fields are id, statement, verdict, options, context, subject, source.
        limit, on_bad, seed: as for :func:`load_questions`.

    Raises:
        InputError: naming file, line, field, reason and what is allowed.
    """

    def plan(records: Sequence[Record], names: Mapping[str, str], origin: str) -> _Make[JudgingQuestion]:
        choices = [choice for record in records if (choice := _choice(record, names)) is not None]
        reader = AnswerReader.for_file(choices, None, "auto", origin)
        if reader.doubts:
            reason = f"{reader.doubts[0].partition(':')[0]}; write the verdicts in words: True, False or Unknown"
            raise InputError.at(origin, reason, field="verdict")

        def make(record: Record, own_id: str, name: str) -> JudgingQuestion:
            statement = _PREFACE.sub("", _needed(record, names, "statement"), count=1)
            context, subject = _text(record, names, "context"), _text(record, names, "subject")
            verdict = _verdict(record, names, reader)
            return JudgingQuestion(own_id, statement, verdict, context, subject, _source(record, names, name))

        return make

    needed = ("statement", "verdict")
    return _load(source, "judging", _JUDGING_FIELDS, needed, plan, fields or {}, limit, on_bad, seed, name)


def _load(
    source: Any,
    kind: str,
    usual: Mapping[str, Sequence[str]],
    needed: Sequence[str],
    plan: Callable[[Sequence[Record], Mapping[str, str], str], _Make[Made]],
    fields: Mapping[str, str],
    limit: int | None,
    on_bad: str,
    seed: int,
    name: str | None,
) -> QuestionSet[Made]:
    check_arguments(on_bad, limit)
    source = source if isinstance(source, QuestionSet) else settled(source)
    ready: QuestionSet[Any] | None = ready_made(source, _MADE[kind], name, limit, seed)
    if ready is not None:
        return ready
    found = open_source(source, kind, fields, name)
    readable = [record for record in found.records if not record.problem]
    if not readable:
        refuse_all(found.records, found.origin)
    given = {**(found.recipe.fields if found.recipe else {}), **fields}
    names = find_fields(column_names(readable), given, found.origin, usual, needed)
    make = plan(readable, names, found.origin)
    bad = Bad(skip=on_bad == "skip")
    questions: list[Made] = []
    seen: dict[str, str] = {}
    for number, record in enumerate(found.records):
        try:
            if record.problem:
                raise BadRecord("not a record", record.problem)
            own_id = _text(record, names, "id").strip() or f"{found.name}/{number}"
            question = make(record, own_id, found.name)
            check_id(own_id, record, seen)
        except BadRecord as error:
            bad.add(record, error)
            continue
        questions.append(question)
    bad.check_any(questions, found.origin)
    report = LoadReport(
        origin=found.origin,
        n_read=len(found.records),
        skipped=dict(bad.counts),
        first_skipped=bad.first,
        fields=names,
    )
    return QuestionSet(found.name, sample(questions, limit, seed), report.counting(questions))


def _value(record: Record, names: Mapping[str, str], field: str) -> Any:
    return lookup(record.data, names[field]) if field in names else None


def _text(record: Record, names: Mapping[str, str], field: str) -> str:
    return text_of(_value(record, names, field))


def _source(record: Record, names: Mapping[str, str], name: str) -> str:
    return _text(record, names, "source") or name


def _needed(record: Record, names: Mapping[str, str], field: str) -> str:
    text = _text(record, names, field)
    if not text.strip():
        raise BadRecord(f"{field} missing", "is missing or empty", field)
    return text


def _choice(record: Record, names: Mapping[str, str]) -> RawAnswer | None:
    """The verdict as an answer to a multiple-choice question, where the record has options."""
    options = _value(record, names, "options")
    if isinstance(options, str):
        options = parse_list(options)
    if not isinstance(options, list | tuple) or len(options) < 2:
        return None
    texts = tuple(text_of(option) for option in options)
    return RawAnswer(_value(record, names, "verdict"), texts, strip_numbering(texts), ())


def _verdict(record: Record, names: Mapping[str, str], reader: AnswerReader) -> str:
    value = _value(record, names, "verdict")
    if is_missing(value):
        raise BadRecord("verdict missing", "is missing", "verdict")
    said = str(value).strip(" _.").casefold()
    choice = _choice(record, names)
    if said not in _VERDICTS and choice is not None:
        right = reader.read(choice)
        said = choice.shown[next(iter(right))].strip(" _.").casefold() if len(right) == 1 else ""
    if said not in _VERDICTS:
        allowed = "True, False, Unknown, Uncertain, PROVED, DISPROVED, UNKNOWN"
        raise BadRecord("unknown verdict", f"{value!r} is none of {allowed}", "verdict")
    return _VERDICTS[said]
