"""Load questions from files, Python objects, the Hub by name, or the embedded set; write them in the canonical form."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unslant.errors import InputError, for_the_caller, one_of, shown
from unslant.files import parse_json, read_text
from unslant.flags import out_of_range, pairs, typed
from unslant.questions.question import AnyQuestion, LoadReport, Question, QuestionSet, canonical_line, question_of
from unslant.reference import embedded_questions_path, reference_names
from unslant.writing import write_atomically

if TYPE_CHECKING:
    from unslant.questions.answers import AnswerReader
    from unslant.questions.fields import Draft
    from unslant.questions.records import Record

EMBEDDED, SKEWED = "embedded", "embedded-skewed"
"""Names of the question sets that ship with unslant."""
_EMBEDDED = {EMBEDDED: "a", SKEWED: "skewed"}
IN_MEMORY = "questions"
"""Name of a set that comes from memory."""
_CANONICAL = {"question" if f.name == "stem" else f.name.replace("answers", "answer") for f in fields_of(Question)}
_CANONICAL -= {"authors"}
"""Keys that :func:`write_questions` writes, except the optional authors; answers in such files count from 0."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Source:
    """Records to load questions from, their origin, and what a recipe says of their columns and answers."""

    name: str
    origin: str
    records: list[Record]
    fields: Mapping[str, str] = field(default_factory=dict)
    answer_base: int | None = None


def load_questions(
    source: Any,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
    seed: int = 0,
    answer_base: int | None = None,
    answer_kind: str = "auto",
    strip_numbering: bool = True,
    detect_pinned: bool = True,
    need_answers: bool = True,
) -> QuestionSet[Question]:
    """Load multiple-choice questions.

    Args:
        source: path of a JSONL, JSON, CSV, TSV, Excel or Parquet file (also ``.gz``), a recipe's name (see
            ``RECIPES``), ``hub:ID[:CONFIG[:SPLIT]]`` for any data set of the Hugging Face Hub, ``embedded`` or
            ``embedded-skewed``; or a list of dicts or of :class:`Question`, a pandas or polars DataFrame, a pyarrow
            Table, a ``Dataset``, or a :class:`QuestionSet`. Ready-made questions are used unchanged.
        name: of the set, used in the ids and sources of questions without any; by default the file's, or
            ``questions``.
        fields: field -> column where the usual names do not fit. Fields: id, question, options, answer, context,
            subject, source, labels, pinned. ``choices.text`` reaches into objects, ``"opa,opb,opc"`` names one column
            per option, ``""`` leaves a field out.
        limit: keep at most ``limit`` questions: a random sample by ``seed``, in the file's order. A question's chance
            depends on its id alone, so a smaller sample is part of a larger one.
        skip_bad: leave bad records out and count them; by default the first one is an error.
        answer_base: 0 or 1, the number of the first option where answers are numbers. By default 0; 1 only where that
            fits every one of at least 20 answers and 0 does not. Where both fit, ``report.doubts`` says so.
        answer_kind: how answers are read: ``index``, ``letter``, ``label``, ``text``, ``marked`` ("B) text"), or
            ``auto`` (the one that fits most of the file; an error if two fit equally well and disagree, unless one is
            the label that the file gives the option).
        strip_numbering: remove numbering from option texts where every option of a question carries it.
        detect_pinned: find options that must keep their place; a ``pinned`` field in the file overrides it.
        need_answers: refuse questions without an answer; if False, none of their options is right.

    Raises:
        InputError: naming file, line, field, reason and what is allowed.

    Examples:
        >>> record = {"question": "2 + 2?", "options": ["3", "4", "5"], "answer": "B"}
        >>> questions = unslant.load_questions([record])
        >>> questions[0].answers
        frozenset({1})
    """
    switches = {"strip_numbering": strip_numbering, "detect_pinned": detect_pinned, "need_answers": need_answers}
    check_arguments(name, limit, seed, answer_base, answer_kind, skip_bad=skip_bad, **switches)
    fields = pairs("fields", fields or {})
    whole = _embedded(source, name) if not fields and (answer_base, answer_kind) == (None, "auto") else None
    if whole is None:
        from unslant.questions.records import settled

        whole = ready_made(source := settled(source), Question, name)
    if whole is None:
        opened = open_source(source, "questions", fields, name)
        whole, _ = read_source(opened, fields, skip_bad, answer_base, answer_kind, **switches)
    return replace(whole, questions=sample(whole.questions, limit, seed))


def _embedded(source: Any, name: str | None) -> QuestionSet[Question] | None:
    """A set that ships, in the canonical form, where nothing has to be found out; None for any other source."""
    if not isinstance(source, str) or source not in _EMBEDDED or os.path.isfile(source):
        return None
    records = [*map(parse_json, read_text(embedded_questions_path(_EMBEDDED[source])).splitlines())]
    questions = tuple(question_of(record) for record in records)
    names = dict(zip(records[0], records[0], strict=True))
    report = LoadReport(source, len(records), fields=names, answers="indices counting from 0")
    return QuestionSet(name or source, questions, report.counting(questions))


def holds_questions(name: str) -> bool:
    """Whether this is a known question set, or a file of a type that is read as questions."""
    from unslant.questions.formats import SUFFIXES, suffix_of
    from unslant.questions.recipes import RECIPES

    return name in (*_EMBEDDED, *RECIPES) or (os.path.isfile(name) and suffix_of(Path(name)) in SUFFIXES)


def read_source(
    source: Source,
    fields: Mapping[str, str] | None,
    skip: bool,
    answer_base: int | None = None,
    answer_kind: str = "auto",
    strip_numbering: bool = True,
    detect_pinned: bool = True,
    need_answers: bool = True,
) -> tuple[QuestionSet[Question], list[Record]]:
    """All questions of a source, and the records they were made of; see :func:`load_questions`."""
    from unslant.questions.agreement import agreements, dates_caveat, likely_answers, passage_note
    from unslant.questions.answers import AnswerReader, whole_numbers
    from unslant.questions.fields import CHOICE_FIELDS, draft, find_columns, find_fields
    from unslant.questions.records import is_missing
    from unslant.questions.reshape import answers_apart, pairs_of, reshape, yes_or_no

    bad = Bad(skip)
    pairs = None if fields else pairs_of(source.records)
    apart = None if {"options", "answer"} & set(fields or ()) else answers_apart(source.records)
    records, note = pairs or apart or (reshape(source.records), "")
    columns = columns_of(records, source.origin)
    given = {**source.fields, **(fields or {})}
    names = find_fields(columns, given, source.origin, needed=("question",), records=records)
    if "options" not in names:
        records, note = yes_or_no(records, names) or (records, note)
        names = find_fields(columns_of(records, source.origin), given, source.origin, records=records)

    notes = [note] if "context" in given else [note, passage_note(records, columns, names)]
    usual = next(iter(find_columns(columns, given, CHOICE_FIELDS)["answer"]), "")
    if usual and usual != names["answer"]:
        notes.append(f"the column {usual!r} is empty, and {names['answer']!r} has the answers")
    written = set(columns) - {"authors"} == _CANONICAL  # by unslant
    strip_numbering = strip_numbering and not written  # what is left there is no numbering of options
    # Answers are read last, because how they are written can only be decided for the whole file.
    drafts = bad.kept(
        (record, partial(draft, record, number, names, source.name, strip_numbering, detect_pinned))
        for number, record in enumerate(records)
    )
    if cut := sum(item.cut for item in drafts):
        notes.append(f"options are cut from the questions' texts: {cut:,}")
    if padded := sum(item.padded for item in drafts):
        notes.append(f"'N/A' in the place of missing options is left out: {padded:,}")
    if not need_answers:
        drafts = [
            replace(item, answer=replace(item.answer, value=[])) if is_missing(item.answer.value) else item
            for item in drafts
        ]
    elif "answer" not in names and drafts and all(item.answer.value is None for item in drafts):
        likely = likely_answers(columns, names, drafts)
        raise InputError.at(
            source.origin,
            f"no column was found for it among {', '.join(columns)}; name it: --fields "
            f"answer={likely[0] if len(likely) == 1 else 'COLUMN'}, or give every record an empty list if no right "
            "options are known (what needs none is then measured)",
            field="answer",
        )
    answers = whole_numbers([item.answer for item in drafts])
    drafts = [replace(item, answer=answer) for item, answer in zip(drafts, answers, strict=True)]
    base = source.answer_base if answer_base is None else answer_base
    base = 0 if base is None and written else base
    reader = AnswerReader.for_file(answers, base, answer_kind, source.origin)

    read = bad.kept((item.record, partial(_question, item, reader, bad)) for item in drafts)
    if need_answers:
        read = bad.kept(agreements(columns, names, given, read))
    report = LoadReport(
        origin=source.origin,
        fields=names,
        answers=reader.how,
        numbering_stripped=sum(item.numbered for _, item in read),
        notes=tuple(map(for_the_caller, filter(None, [*notes, reader.note]))),
        doubts=reader.doubts,
        caveats=dates_caveat(source.origin, read),
    )
    return bad.whole(source.name, [question for question, _ in read], records, report), records


def _question(item: Draft, reader: AnswerReader, bad: Bad) -> tuple[Question, Draft]:
    question = Question(answers=reader.read(item.answer), **item.fields)
    bad.claim(question.id, item.record)
    return question, item


def ready_made(source: Any, kind: type[AnyQuestion], name: str | None = None) -> QuestionSet[AnyQuestion] | None:
    """A set, or questions that need no reading, checked; None for anything else.

    Raises:
        InputError: if there are none, two have the same id, or they are of another kind.
    """
    from unslant.questions.records import MADE

    whole = source if isinstance(source, QuestionSet) else None
    items = [source] if isinstance(source, kind) else source if whole is None else whole.questions
    if whole is None and not (isinstance(items, list | tuple) and any(isinstance(item, MADE) for item in items)):
        return None
    title = name or IN_MEMORY if whole is None else whole.name
    seen: dict[str, int] = {}
    for number, question in enumerate(items, 1):
        if not isinstance(question, kind):
            where = f"{type(items).__name__}, item {number}"
            raise InputError(f"{where}: is {type(question).__name__}, where {kind.__name__} is expected")
        if question.id in seen:
            reason = f"{question.id!r} was used before (item {seen[question.id]}); give each question its own"
            raise InputError.at(f"{title}, item {number}", reason, field="id")
        seen[question.id] = number
    if not seen:
        raise InputError.at(title, "holds no questions")
    return QuestionSet.of(items, title) if whole is None else whole


def open_source(source: Any, kind: str, columns: Mapping[str, str], name: str | None = None) -> Source:
    """Read the records of a file, a recipe, a Hub data set, the embedded set, or a Python object.

    Raises:
        InputError: if the source does not exist, or holds another kind of question.
    """
    from unslant.questions.formats import iter_records, stem_of
    from unslant.questions.records import object_records

    if not isinstance(source, str | Path):
        return Source(name or IN_MEMORY, type(source).__name__, object_records(source))
    text, path = shown(source), Path(source)
    if isinstance(source, str) and not os.path.isfile(path):
        if text in _EMBEDDED and kind == "questions":
            return Source(name or text, text, list(iter_records(embedded_questions_path(_EMBEDDED[text]))))
        from unslant.questions.recipes import HUB, RECIPES, fetch, hub_recipe

        if text in RECIPES or text.startswith(HUB):
            recipe = RECIPES[text] if text in RECIPES else hub_recipe(text, kind)
            if recipe.kind != kind:
                holds, loader = _LOADERS[recipe.kind]
                raise InputError(f"{text!r} holds {holds}, where {_LOADERS[kind][0]} are needed: it is for {loader}")
            name = name or f"{recipe.name}/{recipe.split}"
            return Source(name, recipe.origin, fetch(recipe), recipe.fields, recipe.answer_base)
        if not path.suffix and path.name == text and not os.path.isdir(path):
            names = [recipe.name for recipe in RECIPES.values() if recipe.kind == kind]
            if text in reference_names():
                raise InputError(f"{text}: a model, not questions; give it first, or more with --model={text} (-m)")
            allowed = one_of(text, [*_EMBEDDED, *names] if kind == "questions" else names)
            raise InputError(f"{text!r} is neither a file nor a known question set: {allowed}, or give a path")
        if "://" in text:
            raise InputError(f"{text}: download it, and give the file; question sets of the Hub are named hub:ORG/NAME")
    expected = [part for name in columns.values() for part in name.split(",")]
    return Source(name or shown(stem_of(path)), text, list(iter_records(path, expected)))


_LOADERS = {
    "questions": ("multiple-choice questions", "the other studies (load_questions)"),
    "math": ("open maths questions", "study unbiased --maths (load_math)"),
    "judging": ("statements to judge", "study instruction-boundary (load_judging)"),
}


@dataclass
class Bad:
    """Bad records: the first one raises an error, or with ``skip`` all are counted."""

    skip: bool
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    def kept(self, attempts: Iterable[tuple[Record, Callable[[], Result]]]) -> list[Result]:
        """The results of the attempts on good records."""
        from unslant.questions.records import BadRecord

        results = []
        for record, make in attempts:
            try:
                results.append(make())
            except BadRecord as error:
                at = InputError.at(record.place, str(error), field=error.field or None)
                if error.whole_file:
                    raise at from None
                # A question that needs its picture is not a defect of the file, so it is skipped even without skip_bad.
                if not self.skip and error.kind != "needs an image":
                    raise InputError(f"{at}; fix it, or skip bad records with --skip-bad=True") from None
                self.counts[error.kind] += 1
                self.first.setdefault(error.kind, str(at))
        return results

    def claim(self, question_id: str, record: Record) -> None:
        """Refuse an id that an earlier record already has, naming both places."""
        from unslant.questions.records import BadRecord

        if question_id in self._ids:
            own = "give each its own, or number them by row: --fields id="
            reason = f"{question_id!r} was used before ({self._ids[question_id]}); {own}"
            raise BadRecord("id used twice", reason, "id")
        self._ids[question_id] = record.place

    def whole(
        self, name: str, questions: Sequence[AnyQuestion], records: Sequence[Record], report: LoadReport
    ) -> QuestionSet[AnyQuestion]:
        """The questions as a set; InputError if there are none."""
        if not questions:
            counts = "; ".join(f"{count} {kind}, first: {self.first[kind]}" for kind, count in self.counts.items())
            raise InputError(f"{report.origin}: no usable question ({counts})")
        report = replace(report, n_read=len(records), skipped=dict(self.counts), first_skipped=self.first)
        return QuestionSet(name, tuple(questions), report.counting(questions))


def columns_of(records: Sequence[Record], origin: str) -> list[str]:
    """The columns of the readable records; InputError if there are none, with the first problem."""
    from unslant.questions.fields import column_names

    if columns := column_names([record for record in records if not record.problem]):
        return columns
    bad = next((record for record in records if record.problem), None)
    raise InputError.at(bad.place, bad.problem) if bad else InputError.at(origin, "holds no questions")


def check_arguments(
    name: str | None,
    limit: int | None = None,
    seed: int = 0,
    answer_base: int | None = None,
    answer_kind: str = "auto",
    **switches: bool,
) -> None:
    if not isinstance(name, str | None):
        raise InputError(f"name {name!r}: give a text")
    typed("limit", limit, int | None)
    typed("seed", seed, int)
    typed("answer_base", answer_base, int | None)
    for switch, value in switches.items():
        typed(switch, value, bool)
    if limit is not None and limit < 1:
        raise out_of_range("limit", limit, "1 or more, or leave it out for all questions")
    if seed < 0:
        raise out_of_range("seed", seed, "0 or more")
    if answer_base not in (None, 0, 1):
        raise InputError(f"--answer-base={answer_base}: use 0 or 1")
    if answer_kind != "auto":
        from unslant.questions.answers import KINDS

        if answer_kind not in KINDS:
            raise InputError(f"--answer-kind {answer_kind!r}: {one_of(str(answer_kind), KINDS)}")


def sample(questions: Sequence[AnyQuestion], limit: int | None, seed: int) -> tuple[AnyQuestion, ...]:
    """At most ``limit`` questions, drawn by ``seed`` and each question's id, in their original order."""
    if limit is None or limit >= len(questions):
        return tuple(questions)
    order = ranked(questions, seed)
    # Subjects are drawn in proportion, so that differences between them add nothing to the error of a mean: each
    # subject's questions are spread evenly from a random start, and the first of all are drawn (Cochran 1977, sec. 5.6
    # and 8.3).
    sizes = Counter(question.subject for question in questions)
    starts = {subject: int.from_bytes(_digest(seed, subject)[:6], "big") / 2**48 for subject in sizes}
    drawn: defaultdict[str, Iterator[int]] = defaultdict(count)
    places = {i: (next(drawn[subject := questions[i].subject]) + starts[subject]) / sizes[subject] for i in order}
    return tuple(questions[i] for i in sorted(sorted(order, key=places.__getitem__)[:limit]))


def ranked(questions: Sequence[AnyQuestion], seed: int) -> list[int]:
    """Places of the questions in random order, by ``seed`` and each question's id."""
    return sorted(range(len(questions)), key=lambda i: _digest(seed, questions[i].id))


def _digest(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\x1f{name}".encode()).digest()


def write_questions(questions: Iterable[AnyQuestion], path: str | Path) -> None:
    """Write canonical JSONL (gzipped if the path ends in ``.gz``), which the loaders read back unchanged."""
    content = "".join(canonical_line(question) + "\n" for question in questions).encode()
    write_atomically(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)
