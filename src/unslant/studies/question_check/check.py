"""What was understood of a question file, column by column, and every oddity counted."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unslant.arrays import Jsonable, jsonable
from unslant.experiment.result import StudyResult
from unslant.metrics import Bootstrap, Estimate
from unslant.metrics.accuracy import above_chance
from unslant.metrics.sampling import holm
from unslant.metrics.shortcuts import longest
from unslant.metrics.verdicts import p_of
from unslant.questions import Question, QuestionSet
from unslant.questions.fields import column_names, lookup
from unslant.questions.formats import settled
from unslant.questions.loaders import check_arguments, open_source, read_source, ready_made
from unslant.questions.records import Record

EXAMPLES = 3
LEAST_EXPECTED = 5
"""Right answers expected at each position for the chi-squared test (Cochran 1954)."""
_SPECIAL = re.compile(
    r"<[|｜][^|｜<>]{1,40}[|｜]>|</?s>|<(?:bos|eos|pad|unk|mask|(?:start|end)_of_turn|/?think)>|\[/?INST\]|<</?SYS>>"
    r"|\[(?:CLS|SEP|PAD|MASK|UNK)\]"
)


@dataclass(frozen=True)
class ColumnUse(Jsonable):
    """One column.

    Attributes:
        column: its name.
        field: what it became; empty: nothing.
        examples: its first values, shortened.
    """

    column: str
    field: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Oddity(Jsonable):
    """Something to look at.

    Attributes:
        name: what is odd.
        count: how many questions or records have it.
        first: id or place of the first one.
        meaning: what follows from it.
    """

    name: str
    count: int
    first: str
    meaning: str


@dataclass(frozen=True)
class GoldPositions(Jsonable):
    """Positions of right options, of questions with one right option.

    Attributes:
        counts, expected: by position; expected where every option is right equally often.
        statistic, degrees, p: Pearson's chi-squared test of that, added up over numbers of options; ``p`` is nan where
            no number of options has 5 questions an option.
        tested: questions in the test.
    """

    counts: tuple[int, ...]
    expected: tuple[float, ...]
    statistic: float
    degrees: int
    p: float
    tested: int


@dataclass(frozen=True)
class QuestionCheck(StudyResult):
    """What was understood of a source of questions.

    Attributes:
        questions: the set as it will be asked.
        columns: what became of each column.
        oddities: those that occur.
        positions: of right options.
        longest: how often the longest option is right (several longest share), over questions with right options where
            they differ in length.
        longest_chance, longest_excess: how often a random option is, and the difference.
    """

    study = "questions check"
    unwritten = ("questions",)

    questions: QuestionSet[Question]
    columns: tuple[ColumnUse, ...]
    oddities: tuple[Oddity, ...]
    positions: GoldPositions
    longest: Estimate
    longest_chance: float
    longest_excess: Estimate

    @property
    def tests(self) -> tuple[float, ...]:
        """p-values of skewed positions and of the longest option, corrected for being two (Holm); nan if not tested."""
        return tuple(holm([self.positions.p, p_of(self.longest_excess, 0.0)]))

    def summary(self, width: int = 100, color: bool = False, details: bool = True) -> str:
        """Text for a terminal: every panel, always, but not how it was made, which was typed just now."""
        from unslant.reports import text

        return text(replace(self.page(), settings=()), width, color, True)

    def to_dict(self) -> dict[str, Any]:
        """Every number, and the account of how the set was loaded."""
        found = {"questions": self.questions.name, "questions_digest": self.questions.digest}
        return {**super().to_dict(), **found, "loading": jsonable(self.questions.report)}


def check_questions(
    source: Any,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    answer_base: int | None = None,
    answer_kind: str = "auto",
) -> QuestionCheck:
    """What :func:`unslant.load_questions` makes of a source with bad records left out, and what is odd about it.

    Raises:
        InputError: if no question can be read, or it is open how answers count.
    """
    check_arguments(None, answer_base, answer_kind)
    source = source if isinstance(source, QuestionSet) else settled(source)
    found = ready_made(source, Question, name, None, 0)
    records: list[Record] = []
    if found is None:
        opened = open_source(source, "questions", fields or {}, name)
        found, records = read_source(opened, fields, True, answer_base, answer_kind)
    questions = list(found)
    hits, chance = _longest_is_right(questions)
    bootstrap = Bootstrap(len(questions), [q.subject for q in questions], contexts=[q.context for q in questions])
    note = "" if np.isfinite(hits).any() else "no question whose options differ in length has a right one"
    return QuestionCheck(
        found,
        _columns(records, found.report.fields) if records else _attributes(questions),
        _oddities(found),
        gold_positions(questions),
        bootstrap.mean(hits, note=note),
        float(np.nanmean(chance)) if np.isfinite(chance).any() else float("nan"),
        above_chance(hits, chance, bootstrap).excess,
    )


def _columns(records: Sequence[Record], fields: Mapping[str, str]) -> tuple[ColumnUse, ...]:
    readable = [record for record in records if not record.problem]
    columns = column_names(readable)
    became: dict[str, str] = {}
    for field, named in fields.items():
        for column in [named] if named in columns else [part.strip() for part in named.split(",")]:
            became[column if column in columns else column.split(".")[0]] = field
    return tuple(
        ColumnUse(c, became.get(c, ""), _examples(lookup(record.data, c) for record in readable)) for c in columns
    )


def _attributes(questions: Sequence[Question]) -> tuple[ColumnUse, ...]:
    names = {"id": "id", "stem": "question", "options": "options", "answers": "answer"}
    names |= {name: name for name in ("context", "subject", "source", "pinned")}
    return tuple(ColumnUse(name, f, _examples(getattr(q, name) for q in questions)) for name, f in names.items())


def _examples(values: Iterable[Any]) -> tuple[str, ...]:
    """The first different values that are not empty."""
    found: dict[str, None] = {}
    for value in values:
        if value not in (None, "", [], (), frozenset()) and value == value:
            text = " | ".join(map(str, value)) if isinstance(value, list | tuple | frozenset) else str(value)
            found[" ".join(text.split())[:60]] = None
        if len(found) == EXAMPLES:
            break
    return tuple(found)


def _oddities(found: QuestionSet[Question]) -> tuple[Oddity, ...]:
    questions, report = list(found), found.report
    wordings: defaultdict[object, list[Question]] = defaultdict(list)
    for question in questions:
        options = tuple(sorted(map(_folded, question.options)))
        wordings[_folded(question.context), _folded(question.stem), options].append(question)
    repeated = {q.id for same in wordings.values() for q in same[1:]}
    disputed = {q.id for same in wordings.values() for q in same if len({_right(other) for other in same}) > 1}
    tests: tuple[tuple[str, Callable[[Question], object], str], ...] = (
        ("identical options", lambda q: len(set(q.options)) < len(q.options), "which of them is right cannot be known"),
        ("an empty option", lambda q: not all(o.strip() for o in q.options), "shown as a label with nothing after it"),
        ("no right option", lambda q: not q.answers, "asked, and not scored"),
        ("several right options", lambda q: len(q.answers) > 1, "any of them counts as right"),
        ("pinned options", lambda q: q.pinned, "these keep their place, because they speak of others"),
        ("the wording of an earlier question", lambda q: q.id in repeated, "counted twice"),
        ("another right answer under the same wording", lambda q: q.id in disputed, "one of them is wrong"),
        ("special tokens spelled", _spells, "taken for text where the tokenizer allows it"),
    )
    rows = [Oddity(f"left out: {r}", n, report.first_skipped[r], "not asked") for r, n in report.skipped.items()]
    rows += [Oddity("answers that fit two readings", len(questions), questions[0].id, doubt) for doubt in report.doubts]
    if report.numbering_stripped:
        rows.append(Oddity("numbering in option texts", report.numbering_stripped, "", "removed from the texts"))
    for name, test, meaning in tests:
        having = [question.id for question in questions if test(question)]
        if having:
            rows.append(Oddity(name, len(having), having[0], meaning))
    return tuple(rows)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _right(question: Question) -> frozenset[str]:
    return frozenset(_folded(question.options[i]) for i in question.answers)


def _spells(question: Question) -> bool:
    return any(_SPECIAL.search(text) for text in (question.stem, question.context, *question.options))


def gold_positions(questions: Sequence[Question]) -> GoldPositions:
    """Count the positions of right options and test whether all are equally frequent."""
    by_size: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for question in questions:
        if len(question.answers) == 1:
            by_size[len(question.options)][next(iter(question.answers))] += 1
    size = max(by_size, default=0)
    counts, expected = [0] * size, [0.0] * size
    statistic, degrees, tested = 0.0, 0, 0
    for n, found in by_size.items():
        total = found.total()
        for position in range(n):
            counts[position] += found[position]
            expected[position] += total / n
        if total / n >= LEAST_EXPECTED:
            statistic += sum((found[position] - total / n) ** 2 for position in range(n)) / (total / n)
            degrees, tested = degrees + n - 1, tested + total
    from scipy.special import chdtrc

    p = max(float(chdtrc(degrees, statistic)), sys.float_info.min) if degrees else float("nan")
    return GoldPositions(tuple(counts), tuple(expected), statistic, degrees, p, tested)


def _longest_is_right(questions: Sequence[Question]) -> tuple[Any, Any]:
    """For each question, the share of its longest options that is right, and of all options; nan where undefined."""
    hits, chance = np.full(len(questions), np.nan), np.full(len(questions), np.nan)
    for q, question in enumerate(questions):
        picked = longest(question)
        if picked and question.answers:
            hits[q] = len(picked & question.answers) / len(picked)
            chance[q] = len(question.answers) / len(question.options)
    return hits, chance
