"""Load questions from files, from the Hub by name, or the embedded set; write them in the canonical form."""

from __future__ import annotations

import gzip
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import NoReturn, TypeVar

from unslant.errors import InputError, shown
from unslant.files import exists, write_atomically
from unslant.questions.answers import KINDS, AnswerReader, BadRecord
from unslant.questions.fields import Draft, column_names, draft, find_fields
from unslant.questions.formats import Record, read_records, stem_of
from unslant.questions.pinned import find_pinned
from unslant.questions.question import JudgingQuestion, MathQuestion, Question
from unslant.questions.question_set import AnyQuestion, LoadReport, QuestionSet, canonical_line
from unslant.questions.recipes import HUB, RECIPES, Recipe, fetch, hub_recipe
from unslant.questions.reshape import reshape

EMBEDDED = "embedded"
"""Name of the question set that ships with unslant."""
_SKIP_HINT = 'mend the file, or leave such lines out with --skip-bad (on_bad="skip")'
Made = TypeVar("Made", Question, JudgingQuestion, MathQuestion)


@dataclass(frozen=True)
class Source:
    """Records to load questions from, and where they came from."""

    name: str
    origin: str
    records: list[Record]
    recipe: Recipe | None = None


def load_questions(
    source: str | Path,
    *,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    on_bad: str = "error",
    seed: int = 0,
    answer_base: int | None = None,
    answer_kind: str = "auto",
    strip_numbering: bool = True,
    detect_pinned: bool = True,
) -> QuestionSet[Question]:
    """Load multiple-choice questions.

    Args:
        source: path of a JSONL, JSON, CSV, TSV or Parquet file (also ``.gz``), a recipe's name (see ``recipes()``),
            ``hub:ID[:CONFIG[:SPLIT]]`` for any data set of the Hugging Face Hub, or ``embedded``.
        fields: field -> column where the usual names do not fit. Fields: id, question, options, answer, context,
            subject, source, labels, pinned. ``choices.text`` reaches into objects, ``"opa,opb,opc"`` names one column
            per option, ``""`` leaves a field out.
        limit: keep at most so many questions: a random sample by ``seed``, in the file's order. A question's chance
            depends on its id alone, so a smaller sample is part of a larger one.
        on_bad: ``error`` refuses the file at its first bad record; ``skip`` leaves bad records out and counts them.
        answer_base: 0 or 1, the number of the first option where answers are numbers. By default 0, unless that does
            not fit and counting from 1 fits every one of at least 20 answers.
        answer_kind: how answers that are texts are read: ``index``, ``letter``, ``text``, or ``auto`` (whichever fits
            most of the file; refused if two fit equally well and disagree).
        strip_numbering: remove numbering from option texts where every option of a question carries it.
        detect_pinned: find options that must keep their place; a ``pinned`` field in the file goes before.

    Raises:
        InputError: naming file, line, field, reason and what is allowed.
    """
    check_arguments(on_bad, limit, answer_base, answer_kind)
    found = open_source(source, "questions", fields or {})
    bad = Bad(skip=on_bad == "skip")
    usable = reshape(found.records)
    recipe = found.recipe
    columns = column_names([record for record in usable if not record.problem])
    if not columns:
        refuse_all(usable, found.origin)
    given = {**(recipe.fields if recipe else {}), **(fields or {})}
    names = find_fields(columns, given, found.origin)

    drafts: list[Draft] = []
    for number, record in enumerate(usable):
        try:
            drafts.append(draft(record, number, names, found.name, strip_numbering))
        except BadRecord as error:
            bad.add(record, error)
    if "answer" not in names and drafts and all(item.answer.value is None for item in drafts):
        raise InputError.at(
            found.origin,
            f"no column was found for it among {', '.join(columns)}; name it (answer=COLUMN)",
            field="answer",
        )
    base = answer_base if answer_base is not None or recipe is None else recipe.answer_base
    reader = AnswerReader.for_file([item.answer for item in drafts], base, answer_kind, found.origin)

    questions: list[Question] = []
    seen: dict[str, str] = {}
    numbered = 0
    for item in drafts:
        try:
            question = _question(item, reader, found.name, detect_pinned)
            check_id(question.id, item.record, seen)
        except BadRecord as error:
            bad.add(item.record, error)
            continue
        questions.append(question)
        numbered += item.numbered
    bad.check_any(questions, found.origin)
    report = LoadReport(
        origin=found.origin,
        n_read=len(usable),
        n_loaded=len(questions),
        skipped=dict(bad.counts),
        first_skipped=bad.first,
        fields=names,
        pinned=sum(bool(question.pinned) for question in questions),
        numbering_stripped=numbered,
        identical_options=sum(len(set(question.options)) < len(question.options) for question in questions),
        empty_options=sum(any(not option.strip() for option in question.options) for question in questions),
        none_right=sum(not question.answers for question in questions),
        several_right=sum(len(question.answers) > 1 for question in questions),
        option_counts=dict(sorted(Counter(len(question.options) for question in questions).items())),
        notes=(reader.note,) if reader.note else (),
    )
    return QuestionSet(found.name, sample(questions, limit, seed), report)


def _question(item: Draft, reader: AnswerReader, name: str, detect_pinned: bool) -> Question:
    pinned = item.pinned
    if pinned is None:
        pinned = find_pinned(item.answer.shown, f"{item.context}\n{item.stem}") if detect_pinned else ()
    return Question(
        id=item.id or f"{name}/{item.number}",
        stem=item.stem,
        options=item.answer.shown,
        answers=reader.read(item.answer),
        context=item.context,
        subject=item.subject,
        source=item.source,
        pinned=pinned,
    )


def open_source(source: str | Path, kind: str, columns: Mapping[str, str]) -> Source:
    """Find and read a file, a recipe, a Hub data set or the embedded set.

    Raises:
        InputError: if there is no such thing, or it holds another kind of question.
    """
    text = shown(source)
    path = Path(source)
    if isinstance(source, str) and not exists(path):
        if text == EMBEDDED and kind == "questions":
            with resources.as_file(resources.files("unslant.reference") / "questions.jsonl") as embedded:
                return Source(EMBEDDED, EMBEDDED, read_records(embedded))
        if text in RECIPES or text.startswith(HUB):
            recipe = RECIPES[text] if text in RECIPES else hub_recipe(text, kind)
            if recipe.kind != kind:
                raise InputError(f"{text!r} holds {_KINDS[recipe.kind]}; load it with {_LOADERS[recipe.kind]}")
            return Source(f"{recipe.name}/{recipe.split}", recipe.origin, fetch(recipe), recipe)
        if not path.suffix and path.name == text:
            names = ", ".join(recipe.name for recipe in RECIPES.values() if recipe.kind == kind)
            names = f"{EMBEDDED}, {names}" if kind == "questions" else names
            raise InputError(f"{text!r} is neither a file nor a known question set: give a path, or one of {names}")
    wanted = [part for name in columns.values() for part in name.split(",")]
    return Source(shown(stem_of(path)), text, read_records(path, wanted))


_KINDS = {"questions": "multiple-choice questions", "math": "open maths questions", "judging": "statements to judge"}
_LOADERS = {"questions": "load_questions", "math": "load_math", "judging": "load_judging"}


@dataclass
class Bad:
    """Bad records: the first one raises, or (``skip``) all are counted."""

    skip: bool
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, record: Record, error: BadRecord) -> None:
        at = InputError.at(record.place, str(error), field=error.field or None)
        # A question that needs its picture is no fault of the file.
        if not self.skip and error.kind != "needs an image":
            raise InputError(f"{at}; {_SKIP_HINT}") from None
        self.counts[error.kind] += 1
        self.first.setdefault(error.kind, str(at))

    def check_any(self, questions: Sequence[object], origin: str) -> None:
        if not questions:
            counts = "; ".join(f"{count} {kind}, first: {self.first[kind]}" for kind, count in self.counts.items())
            raise InputError(f"{origin}: no usable question ({counts})")


def refuse_all(records: Sequence[Record], origin: str) -> NoReturn:
    """Raise for records of which none can be read."""
    problem = next((record for record in records if record.problem), None)
    if problem is None:
        raise InputError.at(origin, "holds no questions")
    raise InputError.at(problem.place, problem.problem)


def check_id(question_id: str, record: Record, seen: dict[str, str]) -> None:
    """Refuse an id that an earlier record has, naming both places."""
    if question_id in seen:
        reason = f"{question_id!r} was used before ({seen[question_id]}); give each its own, or map id to nothing (id=)"
        raise BadRecord("id used twice", reason, "id")
    seen[question_id] = record.place


def check_arguments(on_bad: str, limit: int | None, answer_base: int | None = None, answer_kind: str = "auto") -> None:
    if on_bad not in ("error", "skip"):
        raise InputError(f"on_bad={on_bad!r}: use 'error' or 'skip'")
    if limit is not None and limit < 1:
        raise InputError(f"limit {limit}: give 1 or more, or leave it out for all questions")
    if answer_base not in (None, 0, 1):
        raise InputError(f"answer_base {answer_base}: use 0 or 1")
    if answer_kind not in KINDS:
        raise InputError(f"answer_kind {answer_kind!r}: use one of {', '.join(KINDS)}")


def sample(questions: Sequence[Made], limit: int | None, seed: int) -> tuple[Made, ...]:
    """At most ``limit`` questions, chosen by ``seed`` and each question's id, in their order."""
    if limit is None or limit >= len(questions):
        return tuple(questions)
    ranked = sorted(
        range(len(questions)), key=lambda i: hashlib.sha256(f"{seed}\x1f{questions[i].id}".encode()).digest()
    )
    return tuple(questions[i] for i in sorted(ranked[:limit]))


def write_questions(questions: Iterable[AnyQuestion], path: str | Path) -> None:
    """Write questions as canonical JSONL (gzipped if the path ends in ``.gz``); the loaders read it back as they were.

    For multiple-choice questions whose option texts carry numbering on purpose, read back with
    ``strip_numbering=False``.
    """
    content = "".join(canonical_line(question) + "\n" for question in questions).encode()
    write_atomically(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)
