"""Build the mixed question set of P3: one, none or several options right; True, False or Unknown; and ten options.

Every source may be a Hub data set or a local file. Two layouts:

- ``level`` (default): a question's form is not betrayed by its layout. Every multiple-choice question has four
  options, without numbering, in an order of its own; sentence numbers ("Sent 3:") are taken out of passages.
  That only questions with several right options have a passage remains: without it they cannot be answered. The
  report of the build says so in numbers (:meth:`BoundarySet.layout_shares`).
- ``published``: as the authors' file has it. Options of all but the several-right form carry their numbers from 0, and
  keep the order of the source.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from unslant.errors import InputError, one_of
from unslant.questions import JudgingQuestion, Question, load_judging
from unslant.questions.fields import column_names, find_fields
from unslant.questions.formats import MADE, object_records, read_records, settled
from unslant.questions.loaders import EMBEDDED, load_questions, sample
from unslant.questions.question_set import canonical_line, question_of
from unslant.questions.records import Record
from unslant.questions.reshape import without_options
from unslant.writing import write_atomically

SEED = 42
LAYOUTS = ("level", "published")
N_OPTIONS = 4
PARTS = ("choice", "judging", "disturbing")


@dataclass(frozen=True)
class BoundarySource:
    """One of the eight sources (P3, table 2).

    Attributes:
        name: what ``--source NAME=PATH`` calls it.
        part: ``choice``, ``judging`` or ``disturbing``.
        n: questions taken from it at full size.
        form: ``single``, ``none``, ``several``; empty for judging questions, where a quarter each are true and
            false and half unknown.
        recipe: where it is loaded from unless a path is given.
    """

    name: str
    part: str
    n: int
    form: str
    recipe: str


SOURCES: Mapping[str, BoundarySource] = {
    source.name: source
    for source in (
        BoundarySource("fld", "judging", 600, "", "fld"),
        BoundarySource("folio", "judging", 640, "", "hub:yale-nlp/FOLIO::train"),
        BoundarySource("scienceqa", "choice", 300, "single", "scienceqa"),
        BoundarySource("mmlu", "choice", 300, "single", "mmlu"),
        BoundarySource("truthfulqa", "choice", 300, "single", "truthfulqa-mc1"),
        BoundarySource("commonsenseqa", "choice", 900, "none", "commonsenseqa"),
        BoundarySource("multirc", "choice", 900, "several", "hub:aps/super_glue:multirc:train"),
        BoundarySource("mmlu-pro", "disturbing", 900, "single", "mmlu-pro"),
    )
}


@dataclass(frozen=True)
class BoundarySet:
    """The three parts of the question set.

    Attributes:
        choice: one, none or several of (usually four) options right.
        judging: statements that are true, false or unknown.
        disturbing: questions with one right option among ten, from which wrong ones are taken away.
        notes: what a reader should know of the build or the file, in words.
    """

    choice: tuple[Question, ...] = ()
    judging: tuple[JudgingQuestion, ...] = ()
    disturbing: tuple[Question, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.choice) + len(self.judging) + len(self.disturbing)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over all questions in order."""
        return hashlib.sha256("\n".join(self._lines()).encode()).hexdigest()

    def balanced(self, n: int | None = None, seed: int = SEED) -> BoundarySet:
        """Half dense, half sparse in each kind of question, none and several alike; at most ``n`` of each kind.

        Drawn by each question's id, so a smaller draw is part of a larger one of the same balance.
        """
        singles, severals, nones = ([q for q in self.choice if min(len(q.answers), 2) == count] for count in (1, 2, 0))
        true, false, unknown = (
            [q for q in self.judging if q.verdict == verdict] for verdict in JudgingQuestion.VERDICTS
        )
        choice = _balance(singles, (severals, nones), n, seed)
        judging = _balance(unknown, (true, false), n, seed)
        return replace(
            self,
            choice=_in_order(self.choice, choice),
            judging=_in_order(self.judging, judging),
            disturbing=sample(self.disturbing, n, seed),
        )

    def layout_shares(self) -> dict[str, dict[str, float]]:
        """Form of multiple-choice question -> share of its questions with a trait by which it might be guessed."""
        shares = {}
        for form, wanted in (("single", 1), ("none", 0), ("several", 2)):
            group = [q for q in self.choice if min(len(q.answers), 2) == wanted]
            if group:
                shares[form] = {
                    "passage": sum(bool(q.context) for q in group) / len(group),
                    "sentence numbers": sum("Sent 1:" in q.context for q in group) / len(group),
                    "numbered options": sum(q.options[0].startswith("0. ") for q in group) / len(group),
                    f"{N_OPTIONS} options": sum(len(q.options) == N_OPTIONS for q in group) / len(group),
                    "first option right": sum(0 in q.answers for q in group) / len(group),
                }
        return shares

    def lines(self) -> list[str]:
        """What the set holds, in words, one fact a line."""
        forms = Counter("single" if len(q.answers) == 1 else "several" if q.answers else "none" for q in self.choice)
        verdicts = Counter(q.verdict for q in self.judging)
        facts = [
            f"{len(self.choice):,} multiple-choice questions ({_counts(forms)})",
            f"{len(self.judging):,} judging questions ({_counts(verdicts)})",
            f"{len(self.disturbing):,} questions for the disturbing options",
        ]
        for form, shares in self.layout_shares().items():
            facts.append(f"{form}: " + ", ".join(f"{trait} {share:.0%}" for trait, share in shares.items()))
        return [*facts, *self.notes]

    def write(self, path: str | Path) -> None:
        """Write one JSON line a question (gzipped if the path ends in ``.gz``); :func:`load_boundary` reads it back."""
        content = "".join(line + "\n" for line in self._lines()).encode()
        write_atomically(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)

    def _lines(self) -> list[str]:
        return [
            json.dumps({"part": part, **json.loads(canonical_line(question))}, ensure_ascii=False)
            for part in PARTS
            for question in getattr(self, part)
        ]


def build(
    paths: Mapping[str, str | Path] | None = None,
    *,
    seed: int = SEED,
    layout: str = "level",
    scale: float = 1.0,
    only: Iterable[str] = SOURCES,
    fields: Mapping[str, Mapping[str, str]] | None = None,
) -> BoundarySet:
    """Draw the set from its sources.

    Args:
        paths: source name -> file or Hub data set to use in place of the usual one.
        seed: of the draw and of the layout of options; each choice depends on the question's id too.
        layout: ``level`` or ``published``.
        scale: share of the full numbers to draw from every source, greater than 0 and at most 1.
        only: names of the sources to use.
        fields: source name -> field -> column, for sources whose columns have other than the usual names.

    Raises:
        InputError: on an unknown name, or a source with too few fitting questions; it says how many there are.
    """
    paths, fields, wanted = paths or {}, fields or {}, list(only)
    for name in (*paths, *fields, *wanted):
        if name not in SOURCES:
            raise InputError(f"unknown source {name!r}: {one_of(name, SOURCES)}")
    if layout not in LAYOUTS:
        raise InputError(f"layout {layout!r}: use level or published")
    if not 0 < scale <= 1:
        raise InputError(f"scale {scale}: give a share of the full numbers, above 0 and at most 1")
    parts: dict[str, list[Any]] = {part: [] for part in PARTS}
    notes = []
    for name in wanted:
        source = SOURCES[name]
        given = paths.get(name, source.recipe)
        n = max(1, round(source.n * scale))
        columns = fields.get(name, {})
        drawn = (
            _judging(source, given, columns, n, seed)
            if source.part == "judging"
            else _choice(source, given, columns, n, seed, layout)
        )
        parts[source.part] += drawn
        if name in paths:
            notes.append(f"{name}: from {Path(given).name}")
    return BoundarySet(**{part: tuple(drawn) for part, drawn in parts.items()}, notes=tuple(notes))


def load_boundary(
    path: Any,
    layout: str = "level",
    fields: Mapping[str, str] | None = None,
    *,
    answer_base: int | None = None,
    answer_kind: str = "auto",
    skip_bad: bool = False,
    limit: int | None = None,
) -> BoundarySet:
    """Read a set that :meth:`BoundarySet.write` wrote, or a file of multiple-choice questions or of statements.

    The authors' files (``MCQs_2700.json``, ``choice_tfu_format_dataset.json``) are read as published, or made into
    lines. In the second of them the passage holds the options as well; they are removed from it.

    Args:
        path: the file, ``embedded`` for the passages about the reference world that ship with unslant, or an object
            that :func:`unslant.load_questions` takes.
        layout: how to lay out multiple-choice questions; what ``write`` wrote is left as it is. Pinned options keep
            their place in both layouts.
        fields: field -> column where the usual names do not fit, as for ``load_questions`` (``load_judging`` where the
            file has no options).
        answer_base, answer_kind, skip_bad, limit: of multiple-choice questions, as for ``load_questions``.

    Raises:
        InputError: naming file and line; on a field mapping for a set that ``write`` wrote.
    """
    if layout not in LAYOUTS:
        raise InputError(f"layout {layout!r}: use level or published")
    records: list[Record] = []
    if str(path) == EMBEDDED:
        with resources.as_file(resources.files("unslant.reference") / "boundary.jsonl") as embedded:
            records = read_records(embedded)
    elif not isinstance(path, str | Path):
        path = settled(path)
        if isinstance(path, list | tuple) and any(isinstance(item, MADE) for item in path):
            judging = [item for item in path if isinstance(item, JudgingQuestion)]
            choice = [item for item in path if not isinstance(item, JudgingQuestion)]
            return BoundarySet(
                load_questions(choice).questions if choice else (), load_judging(judging).questions if judging else ()
            )
        records = object_records(path)
    else:
        records = read_records(Path(path), [part for name in (fields or {}).values() for part in name.split(",")])
    if any("part" in record.data for record in records[:1]):
        if fields:
            raise InputError(f"{path}: is a set that unslant wrote; its fields have their names, so map none")
        return _read_back(records)
    readable = [record for record in records if not record.problem]
    if readable and _only_statements(column_names(readable), fields or {}):
        judged = load_judging(path, fields=fields)
        return BoundarySet(judging=judged.questions, notes=tuple(judged.report.lines()))
    loaded = load_questions(
        path,
        fields=fields,
        strip_numbering=layout == "level",
        answer_base=answer_base,
        answer_kind=answer_kind,
        skip_bad=skip_bad,
        limit=limit,
    )
    questions = [replace(q, context=without_options(q.context)) for q in loaded]
    if layout == "level":
        questions = [_levelled(question, SEED) for question in questions]
    return BoundarySet(choice=tuple(questions), notes=tuple(loaded.report.lines()))


def _only_statements(columns: Sequence[str], fields: Mapping[str, str]) -> bool:
    """Whether a file has verdicts but no options, so that it can only hold statements to be judged."""
    if {"statement", "verdict"} & fields.keys():
        return True
    usual = {column.strip().casefold() for column in columns}
    found = find_fields(columns, {}, "", needed=())
    return "options" not in fields and "options" not in found and bool(usual & {"verdict", "proof_label", "label"})


def _read_back(records: Iterable[Any]) -> BoundarySet:
    parts: dict[str, list[Any]] = {part: [] for part in PARTS}
    for record in records:
        data = dict(record.data)
        part = data.pop("part", "")
        if record.problem:
            raise InputError.at(record.place, record.problem)
        if part not in PARTS:
            raise InputError.at(record.place, f"{part!r} is not one of {', '.join(PARTS)}", field="part")
        try:
            parts[part].append(question_of(data, JudgingQuestion) if part == "judging" else question_of(data))
        except ValueError as error:
            raise InputError.at(record.place, str(error)) from None
    return BoundarySet(**{part: tuple(questions) for part, questions in parts.items()})


def _choice(
    source: BoundarySource, given: str | Path, fields: Mapping[str, str], n: int, seed: int, layout: str
) -> list[Question]:
    loaded = load_questions(given, fields=fields, seed=seed, skip_bad=True)
    pool = [q for q in loaded if not q.pinned and _FITS[source.name](q)]
    drawn = sample(_enough(source, pool, n, given), n, seed)
    made = [replace(q, id=f"{source.name}/{q.id}", source=source.name) for q in drawn]
    if source.form == "none":
        made = [_without_right(q) for q in made]
    if source.part == "disturbing":
        return made
    made = [_four(q, seed) for q in made]
    if layout == "level":
        return [_levelled(q, seed) for q in made]
    return made if source.form == "several" else [_numbered(q) for q in made]


def _judging(
    source: BoundarySource, given: str | Path, fields: Mapping[str, str], n: int, seed: int
) -> list[JudgingQuestion]:
    loaded = load_judging(given, fields=fields, seed=seed, skip_bad=True)
    drawn: list[JudgingQuestion] = []
    for verdict, share in (("True", n // 4), ("False", n // 2 - n // 4), ("Unknown", n - n // 2)):
        pool = [q for q in loaded if q.verdict == verdict]
        drawn += sample(_enough(source, pool, share, given, f" that are {verdict}"), share, seed) if share else ()
    return [replace(q, id=f"{source.name}/{q.id}", source=source.name) for q in drawn]


def _enough(source: BoundarySource, pool: list[Any], n: int, given: object, which: str = "") -> list[Any]:
    if len(pool) >= n:
        return pool
    share = len(pool) / n
    raise InputError(
        f"{source.name} ({given}): {n} fitting questions{which} are wanted, {len(pool)} were found; give a larger file "
        f"with --source {source.name}=PATH, or draw less with --scale (at most {share:.2f} of this size fits)"
    )


_FITS: Mapping[str, Callable[[Question], bool]] = {
    "scienceqa": lambda q: len(q.answers) == 1 and len(q.options) >= N_OPTIONS,
    "mmlu": lambda q: len(q.answers) == 1 and len(q.options) >= N_OPTIONS,
    "truthfulqa": lambda q: len(q.answers) == 1 and len(q.options) >= N_OPTIONS,
    "commonsenseqa": lambda q: len(q.answers) == 1 and len(q.options) == N_OPTIONS + 1,
    "multirc": lambda q: len(q.answers) == 2 and len(q.options) == N_OPTIONS,
    "mmlu-pro": lambda q: len(q.answers) == 1 and len(q.options) == 10,
}


def _rng(question: Question, seed: int, purpose: str) -> random.Random:
    return random.Random(f"{seed}/{purpose}/{question.id}")


def _reordered(question: Question, order: list[int]) -> Question:
    """The question with only these options, in this order."""
    answers = frozenset(place for place, i in enumerate(order) if i in question.answers)
    return replace(question, options=tuple(question.options[i] for i in order), answers=answers, pinned=())


def _without_right(question: Question) -> Question:
    kept = [i for i in range(len(question.options)) if i not in question.answers]
    return replace(_reordered(question, kept), answers=frozenset())


def _four(question: Question, seed: int) -> Question:
    """The question with wrong options left out until four are left."""
    wrong = [i for i in range(len(question.options)) if i not in question.answers]
    surplus = len(question.options) - N_OPTIONS
    gone = set(_rng(question, seed, "drop").sample(wrong, surplus)) if surplus > 0 else set()
    return _reordered(question, [i for i in range(len(question.options)) if i not in gone])


_SENTENCE_NUMBER = re.compile(r"\s*\bSent\s+\d+:\s*")


def _levelled(question: Question, seed: int) -> Question:
    movable = list(question.movable)
    _rng(question, seed, "order").shuffle(movable)
    context = _SENTENCE_NUMBER.sub(" ", question.context).strip()
    rest = iter(movable)
    order = [i if i in question.pinned else next(rest) for i in range(len(question.options))]
    return replace(_reordered(question, order), context=context, pinned=question.pinned)


def _numbered(question: Question) -> Question:
    return replace(question, options=tuple(f"{i}. {text}" for i, text in enumerate(question.options)))


def _balance(whole: list[Any], halves: tuple[list[Any], list[Any]], n: int | None, seed: int) -> list[Any]:
    """As many of ``whole`` as of the two ``halves`` together, and of these equally many each."""
    each = min(len(whole) // 2, *map(len, halves), len(whole) if n is None else n // 4)
    drawn = list(sample(whole, 2 * each, seed)) if each else []
    for half in halves:
        drawn += sample(half, each, seed) if each else ()
    return drawn


def _in_order(questions: tuple[Any, ...], drawn: list[Any]) -> tuple[Any, ...]:
    ids = {question.id for question in drawn}
    return tuple(question for question in questions if question.id in ids)


def _counts(counter: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counter.items()) or "none"
