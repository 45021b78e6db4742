"""Questions before anyone decides how they are shown, sets of them, and the account of how a set was loaded."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from operator import index
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, overload

from pydantic import TypeAdapter, ValidationError

from unslant.arrays import grouped
from unslant.files import check_text

MIN_OPTIONS = 2
MAX_OPTIONS = 100
ROMAN = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi xxii xxiii xxiv xxv xxvi".split()


@dataclass(frozen=True, slots=True)
class Question:
    """A multiple-choice question.

    Attributes:
        id: unique within a run; seeds of every random choice about the question derive from it.
        stem: the question proper, without options.
        options: 2 to 100 option texts (duplicates and empty texts occur in real files and are allowed).
        answers: indices of the right options, from 0; empty if no option is right, two or more if several are.
        context: passage or facts shown before the stem; may be empty.
        subject: group within the set, used for per-subject tables and cluster bootstrap; may be empty.
        source: data set name; may be empty.
        pinned: indices of options that keep their place ("all of the above"; "both A and C" and the options it names).
        authors: who wrote each option, where options are answers of systems that are compared; empty elsewhere.

    Raises:
        ValueError: naming the field, on an option count, answer or pinned index out of range, or invalid text.

    Examples:
        >>> question = unslant.Question("q1", "Which is prime?", ("4", "6", "7"), frozenset({2}))
        >>> [question.options[i] for i in question.answers]
        ['7']
    """

    id: str
    stem: str
    options: tuple[str, ...]
    answers: frozenset[int]
    context: str = ""
    subject: str = ""
    source: str = ""
    pinned: tuple[int, ...] = field(default=())
    authors: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("id", "stem", "context", "subject", "source"):
            _check(name, getattr(self, name))
        for name in ("options", "authors"):
            if isinstance(texts := getattr(self, name), str) or not isinstance(texts, Iterable):
                raise ValueError(f"{name}: is {texts!r}, where several texts are expected")
            object.__setattr__(self, name, tuple(texts))  # of a list, an array
            _check(name, *getattr(self, name))
        n = len(self.options)
        if not MIN_OPTIONS <= n <= MAX_OPTIONS:
            raise ValueError(f"options: {n} given, {MIN_OPTIONS} to {MAX_OPTIONS} are allowed")
        if len(self.authors) not in (0, n):
            raise ValueError(f"authors: {len(self.authors)} given for {n} options")
        for name, kind in (("answers", frozenset), ("pinned", tuple)):
            try:
                object.__setattr__(self, name, kind(map(index, getattr(self, name))))  # JSON has no numbers of NumPy
            except TypeError:
                raise ValueError(f"{name}: is {getattr(self, name)!r}, where indices are expected, from 0") from None
            if wrong := sorted(i for i in getattr(self, name) if not 0 <= i < n):
                raise ValueError(f"{name}: index {wrong[0]} is out of range, allowed are 0 to {n - 1}")

    @property
    def movable(self) -> tuple[int, ...]:
        """Indices of the options that may change place, ascending."""
        return tuple(i for i in range(len(self.options)) if i not in self.pinned)

    def relisted(self, order: Sequence[int]) -> Question:
        """The question with only these of its options, in this order."""
        return replace(
            self,
            options=tuple(self.options[i] for i in order),
            answers=frozenset(place for place, i in enumerate(order) if i in self.answers),
            pinned=tuple(place for place, i in enumerate(order) if i in self.pinned),
            authors=tuple(self.authors[i] for i in order) if self.authors else (),
        )


def _check(field: str, *texts: str) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{field}: {text!r} is not a text")
        try:
            check_text(text)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None


@dataclass(frozen=True, slots=True)
class JudgingQuestion:
    """A statement to be judged from a context: ``True``, ``False`` or ``Unknown``."""

    id: str
    statement: str
    verdict: str
    context: str = ""
    subject: str = ""
    source: str = ""

    VERDICTS = ("True", "False", "Unknown")
    options: ClassVar = VERDICTS
    pinned: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        if self.verdict not in self.VERDICTS:
            raise ValueError(f"verdict: {self.verdict!r} is not one of {', '.join(self.VERDICTS)}")


@dataclass(frozen=True, slots=True)
class MathQuestion:
    """An open question whose answer is a number, kept as written in the source (``"18"``, ``"3.5"``)."""

    id: str
    stem: str
    answer: str
    solution: str = ""
    subject: str = ""
    source: str = ""


AnyQuestion = TypeVar("AnyQuestion", Question, JudgingQuestion, MathQuestion, covariant=True)


@dataclass(frozen=True)
class LoadReport:
    """An account of how a set was loaded. Counts are of questions unless they say otherwise.

    Attributes:
        origin: the file or Hub data set that was read.
        n_read: records read.
        n_loaded: questions made from them, before ``limit``.
        skipped: reason -> how many records were skipped for it.
        first_skipped: reason -> the message of the first record skipped for it.
        fields: which column each field was read from.
        answers: how answers are written, in words; empty for ready-made questions.
        pinned: with at least one option that keeps its place.
        numbering_stripped: whose option texts carried numbering, now removed.
        identical_options: with two or more identical options.
        empty_options: with an empty option.
        none_right: with no right option.
        several_right: with two or more right options.
        option_counts: number of options -> how many questions have that many.
        notes: things a reader should know, in words.
        doubts: other readings of the file that fit as well, and how to choose.
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
    def sentences(self) -> list[str]:
        """The notes, each as a sentence."""
        return [f"{note[:1].upper()}{note[1:]}." for note in self.notes]

    @property
    def n_skipped(self) -> int:
        """Records that did not become questions."""
        return sum(self.skipped.values())

    def counting(self, questions: Sequence[Any]) -> LoadReport:
        """The report with the counts that the questions themselves give."""
        choices = [question for question in questions if isinstance(question, Question)]
        reasons = "; ".join(f"{n:,} {reason}" for reason, n in sorted(self.skipped.items(), key=lambda one: -one[1]))
        left = f"{self.origin}: {self.n_skipped:,} of {self.n_read:,} records left out ({reasons})."
        return replace(
            self,
            caveats=(*self.caveats, *[left] * bool(self.skipped), *(f"{self.origin}: {one}." for one in self.doubts)),
            n_loaded=len(questions),
            pinned=sum(bool(question.pinned) for question in choices),
            identical_options=sum(len(set(question.options)) < len(question.options) for question in choices),
            empty_options=sum(any(not option.strip() for option in question.options) for question in choices),
            none_right=sum(not question.answers for question in choices),
            several_right=sum(len(question.answers) > 1 for question in choices),
            option_counts=dict(sorted(Counter(len(question.options) for question in choices).items())),
        )

    def lines(self) -> list[str]:
        """The report in words, one fact per line; facts that count zero are left out."""
        counts = (
            (self.pinned, "with options that keep their place because they refer to others"),
            (self.numbering_stripped, "whose option texts carried numbering, now removed"),
            (self.identical_options, "with identical options"),
            (self.empty_options, "with an empty option"),
            (self.none_right, "with no right option"),
            (self.several_right, "with several right options"),
        )
        return [
            f"{self.n_loaded:,} questions from {self.origin}",
            *(
                f"{count:,} skipped: {reason} (first: {self.first_skipped[reason]})"
                for reason, count in sorted(self.skipped.items())
            ),
            *(f"{count:,} {words}" for count, words in counts if count),
            *self.notes,
            *self.doubts,
        ]


@dataclass(frozen=True)
class QuestionSet(Generic[AnyQuestion]):
    """A named, ordered set of questions and the account of how it was loaded.

    Examples:
        >>> questions = unslant.load_questions("embedded", limit=3)
        >>> questions.name, len(questions)
        ('embedded', 3)
    """

    name: str
    questions: tuple[AnyQuestion, ...]
    report: LoadReport

    @classmethod
    def of(cls, questions: Iterable[AnyQuestion], name: str = "questions") -> QuestionSet[AnyQuestion]:
        """Questions made by a program, as a set."""
        ready = tuple(questions)
        return cls(name, ready, LoadReport(name, n_read=len(ready)).counting(ready))

    def __repr__(self) -> str:
        return f"QuestionSet: {self.name}, {len(self):,} question{'s' * (len(self) != 1)}; .questions, .report"

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[AnyQuestion]:
        return iter(self.questions)

    @overload
    def __getitem__(self, index: int) -> AnyQuestion: ...

    @overload
    def __getitem__(self, index: slice) -> QuestionSet[AnyQuestion]: ...

    def __getitem__(self, index: int | slice) -> AnyQuestion | QuestionSet[AnyQuestion]:
        return replace(self, questions=self.questions[index]) if isinstance(index, slice) else self.questions[index]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the questions in order: two sets with the same digest ask the same."""
        digest = hashlib.sha256()
        for question in self.questions:  # one by one: all lines together are as long as the file
            digest.update(f"{canonical_line(question)}\n".encode())
        return digest.hexdigest()


SHARED_START = 200
"""Characters that passages written into the questions have in common at least; questions by themselves seldom do."""


def with_shared_start(questions: Iterable[Question]) -> list[Question]:
    """Questions without a context of their own whose stem begins with the same 200 characters as another's.

    Empty if all of these begin alike, as with an instruction.
    """
    by_start = grouped((" ".join(one.stem.split())[:SHARED_START], one) for one in questions if not one.context)
    shared = [group for start, group in by_start.items() if len(start) == SHARED_START and len(group) > 1]
    return [question for group in shared for question in group] if len(shared) > 1 else []


class Texts(NamedTuple):
    """The texts of a question, in one form of writing; sorted where there are several."""

    stem: str
    options: tuple[str, ...]
    right: tuple[str, ...]
    context: str


def same_questions(a: Mapping[str, Question | int], b: Mapping[str, Question | int]) -> list[tuple[str, str]]:
    """Ids, in ``a`` and in ``b``, of the questions that both have.

    Questions of one id are the same unless their texts, or numbers of options, say otherwise: harnesses number their
    documents, and number 3 of two data sets is not one question. The others are the same where they have the same stem
    and the same options in any order, if no other question of either has these. On other passages, or with other right
    options, they differ.

    Args:
        a, b: question by id; its number of options where its text was not recorded.
    """
    texts_a, texts_b = (
        {name: one if isinstance(one, int) else folded(one) for name, one in questions.items()} for questions in (a, b)
    )
    by_id = [name for name in texts_a if name in texts_b and _agree(texts_a[name], texts_b[name])]
    for name in by_id:
        del texts_a[name], texts_b[name]
    rest_a, rest_b = _unique(texts_a), _unique(texts_b)
    by_text = [(rest_a[one], rest_b[one]) for one in rest_a if one in rest_b]
    return [(name, name) for name in by_id] + [(one, two) for one, two in by_text if _agree(texts_a[one], texts_b[two])]


def texts_known(*sets: Mapping[str, Question | int]) -> bool:
    """Whether the texts of all are, so that :func:`same_questions` finds every one that is the same."""
    return all(not isinstance(one, int) and one.stem for questions in sets for one in questions.values())


@lru_cache(maxsize=1 << 16)  # a leaderboard compares each set with others, and models were asked the same questions
def folded(question: Question) -> Texts:
    """Its texts without regard to case and white space."""
    texts = (question.stem, question.context, *question.options)
    stem, context, *options = (" ".join(text.split()).casefold() for text in texts)
    right = tuple(sorted(options[place] for place in question.answers))
    return Texts(stem.removeprefix("question:").strip(), tuple(sorted(options)), right, context)


def _agree(a: Texts | int, b: Texts | int) -> bool:
    """Whether two texts can be of one question; one harness may show a stem with more around it than another."""
    if isinstance(a, int) or isinstance(b, int):
        return len({one if isinstance(one, int) else len(one.options) for one in (a, b)}) == 1
    pairs = (a.stem, b.stem), (a.context, b.context)
    return a[1:3] == b[1:3] and all(one in other or other in one for one, other in pairs)


def _unique(texts: Mapping[str, Texts | int]) -> dict[tuple[object, ...], str]:
    """Id by stem and options, of those that only one question has."""
    pairs = {name: one[:2] for name, one in texts.items() if not isinstance(one, int)}
    often = Counter(pairs.values())
    return {pair: name for name, pair in pairs.items() if often[pair] == 1}


def canonical_line(question: Question | JudgingQuestion | MathQuestion) -> str:
    """One question as a line of the canonical JSONL form, without the line's end.

    Keys of a multiple-choice question: ``id``, ``question``, ``options``, ``answer`` (index from 0, or a list of them;
    ``[]`` when none is right), ``context``, ``subject``, ``source``, ``pinned`` (list of indices), and ``authors`` if
    there are any. The other types keep the names of their attributes, with ``question`` for the stem of a maths
    question.
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
    if unknown := values.keys() - {item.name for item in fields(kind)}:
        raise ValueError(f"not a question: {min(unknown)!r} is not one of its fields")
    try:
        question: AnyQuestion = _readers()[kind].validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        problem: Any = error.errors(include_url=False)[0]
        parts = [*map(str, problem["loc"]), problem["msg"].removeprefix("Value error, ")]
        raise ValueError(f"not a question: {': '.join(parts)}") from None
    return question


@cache  # built where questions are first read back: it takes milliseconds
def _readers() -> dict[type, TypeAdapter[Any]]:
    return {kind: TypeAdapter(kind) for kind in (Question, JudgingQuestion, MathQuestion)}
