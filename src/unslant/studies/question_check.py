"""How a question file was understood, column by column, and every oddity counted."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unslant.arrays import Jsonable, grouped, jsonable
from unslant.experiment.result import StudyResult
from unslant.metrics import Bootstrap, Estimate
from unslant.metrics.accuracy import LEVEL, above_chance
from unslant.metrics.estimate import by_design, p_of
from unslant.metrics.sampling import holm
from unslant.metrics.shortcuts import credit_of, longest
from unslant.presentations import ALPHABETS
from unslant.questions import Question, QuestionSet
from unslant.questions.agreement import dates_in
from unslant.questions.fields import column_names, lookup
from unslant.questions.loaders import check_arguments, open_source, read_source, ready_made
from unslant.questions.question import folded, with_shared_start
from unslant.questions.records import Record, settled
from unslant.reports import Column, Figure, Page, Panel, Plot, charts
from unslant.reports.numbers import count, listed, p_words, percent, with_interval

EXAMPLES = 3
LEAST_EXPECTED = 5
"""Right answers expected at each position for the chi-squared test (Cochran 1954)."""
_SPECIAL = re.compile(
    r"<[|｜][^|｜<>]{1,40}[|｜]>|</?s>|<(?:bos|eos|pad|unk|mask|(?:start|end)_of_turn|/?think)>|\[/?INST\]|<</?SYS>>"
    r"|\[(?:CLS|SEP|PAD|MASK|UNK)\]"
)
_HTML = re.compile(
    r"(?i)&(?:[a-z]{2,8}\d?|#\d{1,6}|#x[0-9a-f]{1,5});|<br ?/?>|</(?:p|div|span|[biu]|em|strong|su[bp])>"
)
_PICTURE = re.compile(r"<img\b|[\w)\]/-]\.(?:png|jpe?g|gif|svg|webp|bmp)\b", re.IGNORECASE)
_DAMAGED = re.compile("\N{REPLACEMENT CHARACTER}|â€|[ÃÂ][\x80-\xbf]")
"""What text in UTF-8 becomes when it is read as Latin-1 or Windows-1252: an apostrophe begins with â€, é is Ã©."""


@dataclass(frozen=True)
class ColumnUse(Jsonable):
    """One column.

    Attributes:
        column: its name.
        field: the field it was read as, or several with commas between them; empty if it was not used.
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
    """How a source of questions was understood.

    Attributes:
        questions: the set as it will be asked.
        columns: how each column was used.
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

    def described(self) -> Page:
        """What was understood, what is odd, and the positions of right options."""
        report = self.questions.report
        sizes = [f"{count(n, 'question')} with {size} options" for size, n in report.option_counts.items()]
        understood, read = count(len(self.questions), "question"), count(report.n_read, "record")
        return Page(
            about=f"{report.origin}: {understood} understood of {read}",
            headline=_headline(self),
            lines=_lines(self),
            panels=(_columns_panel(self), _oddities_panel(self), _positions_panel(self)),
            notes=(*_first(self), f"{listed(sizes)}.", *report.sentences),
            name=self.questions.name,
            caveats=report.caveats,
        )

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
        names = {"questions": self.questions.name, "questions_digest": self.questions.digest}
        return {**super().to_dict(), **names, "loading": jsonable(self.questions.report)}


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

    Examples:
        >>> record = {"question": "2 + 2?", "options": ["3", "4", "4"], "answer": "B"}
        >>> check = unslant.check_questions([record])
        >>> [oddity.name for oddity in check.oddities]
        ['identical options']
    """
    check_arguments(name, answer_base=answer_base, answer_kind=answer_kind)
    source = settled(source)
    question_set = ready_made(source, Question, name)
    records: list[Record] = []
    if question_set is None:
        opened = open_source(source, "questions", fields or {}, name)
        question_set, records = read_source(opened, fields, True, answer_base, answer_kind)
    questions = list(question_set)
    hits, chance = credit_of(questions, [longest(question) for question in questions]).T
    bootstrap = Bootstrap(len(questions), [q.subject for q in questions], contexts=[q.context for q in questions])
    return QuestionCheck(
        question_set,
        _columns(records, question_set.report.fields) if records else _attributes(questions),
        _oddities(question_set),
        gold_positions(questions),
        bootstrap.mean(hits, note="no question whose options differ in length has a right one"),
        by_design(chance).value,
        above_chance(hits, chance, bootstrap).excess,
    )


def _columns(records: Sequence[Record], fields: Mapping[str, str]) -> tuple[ColumnUse, ...]:
    readable = [record for record in records if not record.problem]
    columns = column_names(readable)
    uses: dict[str, str] = {}
    for field, names in fields.items():
        for column in [names] if names in columns else [part.strip() for part in names.split(",")]:
            column = column if column in columns else column.split(".")[0]
            uses[column] = f"{uses[column]}, {field}" if column in uses else field
    return tuple(
        ColumnUse(c, uses.get(c, ""), _examples(lookup(record.data, c) for record in readable)) for c in columns
    )


def _attributes(questions: Sequence[Question]) -> tuple[ColumnUse, ...]:
    names = {"id": "id", "stem": "question", "options": "options", "answers": "answer"}
    names |= {name: name for name in ("context", "subject", "source", "pinned")}
    return tuple(ColumnUse(name, f, _examples(getattr(q, name) for q in questions)) for name, f in names.items())


def _examples(values: Iterable[Any]) -> tuple[str, ...]:
    """The first different values that are not empty."""
    examples: dict[str, None] = {}
    for value in values:
        if value not in (None, "", [], (), frozenset()) and value == value:
            text = " | ".join(map(str, value)) if isinstance(value, list | tuple | frozenset) else str(value)
            examples[" ".join(text.split())[:60]] = None
        if len(examples) == EXAMPLES:
            break
    return tuple(examples)


def _oddities(question_set: QuestionSet[Question]) -> tuple[Oddity, ...]:
    questions, report = list(question_set), question_set.report
    wordings = grouped((folded(question)._replace(right=()), question) for question in questions)
    repeated = {q.id for same in wordings.values() for q in same[1:]}
    disputed = {q.id for same in wordings.values() if len({frozenset(folded(q).right) for q in same}) > 1 for q in same}
    on_passages = {q.id for q in with_shared_start(questions)}

    def within(pattern: re.Pattern[str]) -> Callable[[Question], object]:
        return lambda q: any(map(pattern.search, (q.stem, q.context, *q.options)))

    tests: tuple[tuple[str, Callable[[Question], object], str], ...] = (
        ("identical options", lambda q: len(set(q.options)) < len(q.options), "which of them is right cannot be known"),
        ("an empty option", lambda q: not all(o.strip() for o in q.options), "shown as a label with nothing after it"),
        ("no right option", lambda q: not q.answers, "asked, and not scored"),
        ("several right options", lambda q: len(q.answers) > 1, "any of them counts as right"),
        ("pinned options", lambda q: q.pinned, "these keep their place, because they speak of others"),
        ("the wording of an earlier question", lambda q: q.id in repeated, "counted twice"),
        ("another right answer under the same wording", lambda q: q.id in disputed, "one of them is wrong"),
        ("a long beginning that another has", lambda q: q.id in on_passages, "passages belong in a field context"),
        ("special tokens spelled", within(_SPECIAL), "taken for text where the tokenizer allows it"),
        ("HTML entities or tags", within(_HTML), "asked as they are written, such as &amp; or <br>; decode them first"),
        ("names of pictures", within(_PICTURE), "asked as they are written: the model does not see the pictures"),
        ("damaged characters", within(_DAMAGED), "decoded wrongly before; save the file again from its source"),
        ("a date among other options", lambda q: dates_in(q.options), "a spreadsheet makes such dates of 1/2 or 1-2"),
    )
    rows = [Oddity(f"left out: {r}", n, report.first_skipped[r], "not asked") for r, n in report.skipped.items()]
    rows += [Oddity("answers that fit two readings", len(questions), questions[0].id, doubt) for doubt in report.doubts]
    if report.numbering_stripped:
        rows.append(Oddity("numbering in option texts", report.numbering_stripped, "", "removed from the texts"))
    for name, test, meaning in tests:
        if ids := [question.id for question in questions if test(question)]:
            rows.append(Oddity(name, len(ids), ids[0], meaning))
    return tuple(rows)


def gold_positions(questions: Sequence[Question]) -> GoldPositions:
    """Count the positions of right options and test whether all are equally frequent."""
    by_size = grouped((len(one.options), next(iter(one.answers))) for one in questions if len(one.answers) == 1)
    size = max(by_size, default=0)
    counts, expected = [0] * size, [0.0] * size
    statistic, degrees, tested = 0.0, 0, 0
    for n, places in by_size.items():
        right, even = Counter(places), len(places) / n
        for position in range(n):
            counts[position] += right[position]
            expected[position] += even
        if even >= LEAST_EXPECTED:
            statistic += sum((right[position] - even) ** 2 for position in range(n)) / even
            degrees, tested = degrees + n - 1, tested + len(places)
    from scipy.special import chdtrc

    # the p-value of a file with every right option in one place would underflow to 0
    p = max(float(chdtrc(degrees, statistic)), sys.float_info.min) if degrees else float("nan")
    return GoldPositions(tuple(counts), tuple(expected), statistic, degrees, p, tested)


def _headline(check: QuestionCheck) -> str:
    skewed, long = (p < LEVEL for p in check.tests)
    left_out = {f"left out: {reason}" for reason in check.questions.report.skipped}  # a caveat above has them
    named = dict.fromkeys(f"{one.name} ({one.count:,})" for one in check.oddities if one.name not in left_out)
    names = [*named, *["right answers favour a position"] * skewed]
    names += [f"the longest option is right {_than_chance(check)}"] * long
    if names:
        return f"To check: {listed(names, 4)}"
    return "No irregularities found" if check.positions.tested else "Too few questions to test for skewed answers"


def _than_chance(check: QuestionCheck) -> str:
    return f"{'more' if check.longest_excess.value > 0 else 'less'} often than by chance"


def _lines(check: QuestionCheck) -> tuple[str, ...]:
    """What positions and lengths of right options give away, or that there are too few questions to say."""
    at, (where, long) = check.positions, check.tests
    if not at.tested:
        placed = "Too few questions to test whether right answers favour a position."
    elif where < LEVEL:
        most = max(range(len(at.counts)), key=lambda i: at.counts[i] - at.expected[i])
        placed = f"Position {most + 1} is right {at.counts[most]:,} times; chance would give {at.expected[most]:,.0f}."
    else:
        placed = f"No skew of right answers over positions is shown on {count(at.tested, 'question')}."
    if not check.longest.defined:
        return (placed,)
    differ = f"{count(check.longest.n, 'question')} whose options differ in length"
    share = f"The longest option is right in {percent(check.longest.value)} of {differ}"
    chance = f"a random one in {percent(check.longest_chance)}"
    return placed, f"{share}, {chance}{f': {_than_chance(check)}' * (long < LEVEL)}."


def _columns_panel(check: QuestionCheck) -> Panel:
    rows = [
        {"column": use.column, "became": use.field or "not used", "first values": "; ".join(use.examples)}
        for use in check.columns
    ]
    columns = Figure("columns", "Columns", ["column"], [Column("became"), Column("first values")], rows)
    about = "Map a field to another column with --fields FIELD=COLUMN."
    return columns.panel("What was understood", about)


def _oddities_panel(check: QuestionCheck) -> Panel:
    columns = [Column("count"), Column("first"), Column("meaning")]
    rows = [vars(oddity) for oddity in check.oddities]
    oddities = Figure("oddities", "Questions and records that are odd", [Column("with", key="name")], columns, rows)
    about = "Common irregularities; none is fatal, but each changes what a score means."
    return oddities.panel("Oddities", about)


def _positions_panel(check: QuestionCheck) -> Panel:
    at = check.positions
    rows = [
        {"position": ALPHABETS["A"][i], "right": n, "expected": expected}
        for i, (n, expected) in enumerate(zip(at.counts, at.expected, strict=True))
    ]
    plot = Plot(charts.counts, "Number of questions whose right option is in each position of the file.", ["right"])
    columns = [Column("right"), Column("if equally often", 1, key="expected")]
    figure = Figure("positions", "Right options by position", ["position"], columns, rows, [plot])
    notes = []
    if at.tested:
        notes.append(
            f"All positions equally often right: {p_words(at.p)} (chi-squared {at.statistic:.1f}, {at.degrees} degrees "
            f"of freedom, {count(at.tested, 'question')})."
        )
    elif rows:
        notes.append("Too few questions to test whether all positions are equally often right.")
    if check.longest.defined:
        notes.append(
            f"The longest option is right in {with_interval(check.longest)} of {count(check.longest.n, 'question')}, a "
            f"random one in {check.longest_chance:.3f}: a difference of {with_interval(check.longest_excess)}."
        )
    about = "A model that prefers a position, or the longest option, scores by it where right options have that trait."
    return figure.panel("Positions of right options", about, short="Positions", notes=tuple(notes))


def _first(check: QuestionCheck) -> tuple[str, ...]:
    question = check.questions[0]
    options = " ".join(f"{ALPHABETS['A'][i]}. {text}" for i, text in enumerate(question.options))
    right = listed([ALPHABETS["A"][i] for i in sorted(question.answers)]) or "none"
    how = check.questions.report.answers
    reading = (f"Answers were read as {how}.",) if how else ()
    return (*reading, f"First question as understood: {question.stem[:200]} {options[:400]} Right: {right}.")
