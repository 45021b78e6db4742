"""What loading found: the set of questions, and an account of everything skipped, changed or pinned."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

from unslant.questions.question import JudgingQuestion, MathQuestion, Question

AnyQuestion = TypeVar("AnyQuestion", Question, JudgingQuestion, MathQuestion, covariant=True)


@dataclass(frozen=True)
class LoadReport:
    """Counts of what loading a set met. Every count is of questions.

    Attributes:
        origin: the file or Hub data set that was read.
        n_read: records read.
        n_loaded: questions made of them, before ``limit``.
        skipped: reason -> how many records were skipped for it.
        first_skipped: reason -> the message of the first record skipped for it.
        fields: which column each field was read from.
        answers: how answers are written, in words; empty for questions that needed no reading.
        pinned: with at least one option that keeps its place.
        numbering_stripped: whose option texts carried numbering, now removed.
        identical_options: with two or more options of the same text.
        empty_options: with an option of no text.
        none_right: with no right option.
        several_right: with two or more right options.
        option_counts: number of options -> how many questions have that many.
        notes: things a reader should know, in words.
        doubts: readings of the file that fit as well as the one taken, and how to choose.
        caveats: sentences that every result begins with: records left out, by reason, and readings in doubt.
    """

    origin: str
    n_read: int = 0
    n_loaded: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    first_skipped: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    answers: str = ""
    pinned: int = 0
    numbering_stripped: int = 0
    identical_options: int = 0
    empty_options: int = 0
    none_right: int = 0
    several_right: int = 0
    option_counts: Mapping[int, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def n_skipped(self) -> int:
        """Records that did not become questions."""
        return sum(self.skipped.values())

    def counting(self, questions: Sequence[Any]) -> LoadReport:
        """The report with the counts that the questions themselves give."""
        found = [question for question in questions if isinstance(question, Question)]
        reasons = "; ".join(f"{n:,} {reason}" for reason, n in sorted(self.skipped.items(), key=lambda one: -one[1]))
        left = f"{self.origin}: {self.n_skipped:,} of {self.n_read:,} records left out ({reasons})."
        return replace(
            self,
            caveats=(*([left] if self.skipped else []), *(f"{self.origin}: {doubt}." for doubt in self.doubts)),
            n_loaded=len(questions),
            pinned=sum(bool(question.pinned) for question in found),
            identical_options=sum(len(set(question.options)) < len(question.options) for question in found),
            empty_options=sum(any(not option.strip() for option in question.options) for question in found),
            none_right=sum(not question.answers for question in found),
            several_right=sum(len(question.answers) > 1 for question in found),
            option_counts=dict(sorted(Counter(len(question.options) for question in found).items())),
        )

    def lines(self) -> list[str]:
        """The report in words, one fact per line; facts that count zero are left out."""
        found = [f"{self.n_loaded:,} questions from {self.origin}"]
        found += [
            f"{count:,} skipped: {reason} (first: {self.first_skipped[reason]})"
            for reason, count in sorted(self.skipped.items())
        ]
        counted = (
            (self.pinned, "with options that keep their place because they refer to others"),
            (self.numbering_stripped, "whose option texts carried numbering, now removed"),
            (self.identical_options, "with identical options"),
            (self.empty_options, "with an empty option"),
            (self.none_right, "with no right option"),
            (self.several_right, "with several right options"),
        )
        return [*found, *(f"{count:,} {words}" for count, words in counted if count), *self.notes, *self.doubts]


@dataclass(frozen=True)
class QuestionSet(Generic[AnyQuestion]):
    """A named, ordered set of questions and the account of how it was loaded."""

    name: str
    questions: tuple[AnyQuestion, ...]
    report: LoadReport

    @classmethod
    def of(cls, questions: Iterable[AnyQuestion], name: str = "questions") -> QuestionSet[AnyQuestion]:
        """Questions made by a program, as a set."""
        made = tuple(questions)
        return cls(name, made, LoadReport(name, n_read=len(made)).counting(made))

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[AnyQuestion]:
        return iter(self.questions)

    def __getitem__(self, index: int) -> AnyQuestion:
        return self.questions[index]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the questions in order: two sets with the same digest ask the same."""
        sha = hashlib.sha256()
        for question in self.questions:
            sha.update(canonical_line(question).encode() + b"\n")
        return sha.hexdigest()


def canonical_line(question: Question | JudgingQuestion | MathQuestion) -> str:
    """One question as a line of the canonical JSONL form, without the line's end.

    Keys of a multiple-choice question: ``id``, ``question``, ``options``, ``answer`` (index from 0, or a list of them;
    ``[]`` when none is right), ``context``, ``subject``, ``source``, ``pinned`` (list of indices), and ``authors``
    where there are any.
    The other types keep the names of their attributes, with ``question`` for the stem of a maths question.
    """
    record: dict[str, object] = {}
    for item in fields(question):
        value = getattr(question, item.name)
        if item.name == "stem":
            record["question"] = value
        elif item.name == "answers":
            record["answer"] = next(iter(value)) if len(value) == 1 else sorted(value)
        elif value or item.name != "authors":
            record[item.name] = list(value) if isinstance(value, tuple) else value
    return json.dumps(record, ensure_ascii=False)


def question_of(record: Mapping[str, object], kind: type[AnyQuestion] = Question) -> AnyQuestion:  # type: ignore[assignment]
    """The inverse of :func:`canonical_line`, from the line's JSON.

    Raises:
        ValueError: naming the field that is missing, unknown or of another type.
    """
    if not isinstance(record, Mapping):
        raise ValueError("not a question: not a JSON object")
    values = dict(record)
    if kind is not JudgingQuestion and "question" in values:
        values["stem"] = values.pop("question")
    if kind is Question:
        answer = values.pop("answer", None)
        values["answers"] = answer if isinstance(answer, list) else [answer]
    made: dict[str, object] = {}
    for item in fields(kind):
        if item.name not in values:
            if item.default is MISSING:
                raise ValueError(f"not a question: {item.name} is missing")
            continue
        value = values.pop(item.name)
        inner = {"options": str, "answers": int, "pinned": int, "authors": str}.get(item.name)
        if inner is None and not isinstance(value, str):
            raise ValueError(f"not a question: {item.name} is not a text")
        if inner is not None:
            if not isinstance(value, list | tuple) or any(type(entry) is not inner for entry in value):
                raise ValueError(f"not a question: {item.name} is not a list of {inner.__name__}")
            value = frozenset(value) if item.name == "answers" else tuple(value)
        made[item.name] = value
    if values:
        raise ValueError(f"not a question: {next(iter(values))!r} is not one of its fields")
    return kind(**made)  # type: ignore[arg-type]
