"""Build the mixed question set of P3: one, none or several options right; True, False or Unknown; and ten options.

Every source may be a Hub data set or a local file. Two layouts:

- ``level`` (default): the layout of a question does not give its form away. Every multiple-choice question has four
  options, without numbering, in an order of its own; sentence numbers ("Sent 3:") are taken out of passages.
  Still only questions with several right options have a passage, since they cannot be answered without it; the
  report of the build gives the numbers (:meth:`BoundarySet.layout_shares`).
- ``published``: as the authors' file has it. Options of all but the several-right form carry their numbers from 0, and
  keep the order of the source.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from unslant.errors import InputError, one_of
from unslant.questions import JudgingQuestion, Question, QuestionSet, load_judging
from unslant.questions.fields import column_names, find_fields
from unslant.questions.formats import iter_records
from unslant.questions.loaders import EMBEDDED, load_questions, sample
from unslant.questions.question import canonical_line, question_of
from unslant.questions.records import MADE, Record, object_records, settled
from unslant.questions.reshape import without_options
from unslant.studies.instruction_boundary.instruction_settings import SEED, form_of
from unslant.writing import write_atomically

LAYOUTS = ("level", "published")
N_OPTIONS = 4
PARTS = ("choice", "judging", "disturbing")
Q = TypeVar("Q", Question, JudgingQuestion)


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
        right: right options of a question that fits.
        options: least and greatest number of its options.
    """

    name: str
    part: str
    n: int
    form: str
    recipe: str
    right: int = 1
    options: tuple[int, float] = (N_OPTIONS, math.inf)

    def fits(self, question: Question) -> bool:
        """Whether a multiple-choice question can be used."""
        least, most = self.options
        return not question.pinned and len(question.answers) == self.right and least <= len(question.options) <= most


SOURCES: Mapping[str, BoundarySource] = {
    source.name: source
    for source in (
        BoundarySource("fld", "judging", 600, "", "fld"),
        BoundarySource("folio", "judging", 640, "", "hub:yale-nlp/FOLIO::train"),
        BoundarySource("scienceqa", "choice", 300, "single", "scienceqa"),
        BoundarySource("mmlu", "choice", 300, "single", "mmlu"),
        BoundarySource("truthfulqa", "choice", 300, "single", "truthfulqa-mc1"),
        BoundarySource("commonsenseqa", "choice", 900, "none", "commonsenseqa", options=(5, 5)),
        BoundarySource(
            "multirc", "choice", 900, "several", "hub:aps/super_glue:multirc:train", 2, (N_OPTIONS, N_OPTIONS)
        ),
        BoundarySource("mmlu-pro", "disturbing", 900, "single", "mmlu-pro", options=(10, 10)),
    )
}


@dataclass(frozen=True)
class BoundarySet:
    """The three parts of the question set.

    Attributes:
        choice: one, none or several of (usually four) options right.
        judging: statements that are true, false or unknown.
        disturbing: questions with one right option among ten, from which wrong ones are taken away.
        notes: what a reader should know about the build or the file, in words.
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
        return replace(
            self,
            choice=_balance(self.choice, "single", ("several", "none"), n, seed),
            judging=_balance(self.judging, "Unknown", ("True", "False"), n, seed),
            disturbing=sample(self.disturbing, n, seed),
        )

    def layout_shares(self) -> dict[str, dict[str, float]]:
        """Form of multiple-choice question -> share of its questions with a trait by which it might be guessed."""
        shares = {}
        for form in ("single", "none", "several"):
            if group := [q for q in self.choice if form_of(q) == form]:
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
        facts = [
            f"{len(self.choice):,} multiple-choice questions ({counts_of(self.choice)})",
            f"{len(self.judging):,} judging questions ({counts_of(self.judging)})",
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
    paths, fields, names = paths or {}, fields or {}, list(only)
    for name in (*paths, *fields, *names):
        if name not in SOURCES:
            raise InputError(f"unknown source {name!r}: {one_of(name, SOURCES)}")
    if layout not in LAYOUTS:
        raise InputError(f"--layout {layout!r}: use level or published")
    if not 0 < scale <= 1:
        raise InputError(f"--scale={scale}: give a share of the full numbers, above 0 and at most 1")
    parts: dict[str, list[Any]] = {part: [] for part in PARTS}
    for source in (SOURCES[name] for name in names):
        drawn = source, paths.get(source.name, source.recipe), fields.get(source.name, {})
        n = max(1, round(source.n * scale))
        judging = source.part == "judging"
        parts[source.part] += _judging(*drawn, n, seed) if judging else _choice(*drawn, n, seed, layout)
    notes = [f"{name}: from {Path(paths[name]).name}" for name in names if name in paths]
    return BoundarySet(**{part: tuple(questions) for part, questions in parts.items()}, notes=tuple(notes))


def load_boundary(
    path: Any, fields: Mapping[str, str] | None = None, *, answer_base: int | None = None, answer_kind: str = "auto"
) -> BoundarySet:
    """Read a set that :meth:`BoundarySet.write` wrote, or a file of multiple-choice questions or of statements.

    Multiple-choice questions get the layout ``level``; what ``write`` wrote is left as it is. The authors' files
    (``MCQs_2700.json``, ``choice_tfu_format_dataset.json``) can be read as published, or made into lines. In the second
    of them the passage holds the options as well; they are removed from it.

    Args:
        path: the file, ``embedded`` for the passages about the reference world that ship with unslant, or an object
            that :func:`unslant.load_questions` takes.
        fields: field -> column where the usual names do not fit, as for ``load_questions`` (``load_judging`` where the
            file has no options).
        answer_base, answer_kind: of multiple-choice questions, as for ``load_questions``.

    Raises:
        InputError: naming file and line; on a field mapping for a set that ``write`` wrote.
    """
    records: list[Record]
    if str(path) == EMBEDDED:
        with resources.as_file(resources.files("unslant.reference") / "boundary.jsonl") as embedded:
            records = list(iter_records(embedded))
    elif not isinstance(path, str | Path):
        path = settled(path)
        if isinstance(path, list | tuple | QuestionSet) and any(isinstance(item, MADE) for item in path):
            judging = [item for item in path if isinstance(item, JudgingQuestion)]
            choice = [item for item in path if not isinstance(item, JudgingQuestion)]
            return BoundarySet(
                load_questions(choice).questions if choice else (), load_judging(judging).questions if judging else ()
            )
        records = object_records(path)
    else:
        columns = [part for name in (fields or {}).values() for part in name.split(",")]
        records = list(iter_records(Path(path), columns))
    if any("part" in record.data for record in records[:1]):
        if fields:
            raise InputError(f"{path}: is a set written by unslant, with its own field names; leave out the mapping")
        return _read_back(records)
    readable = [record for record in records if not record.problem]
    if readable and _only_statements(column_names(readable), fields or {}):
        judged = load_judging(path, fields=fields)
        return BoundarySet(judging=judged.questions, notes=tuple(judged.report.lines()))
    loaded = load_questions(path, fields=fields, answer_base=answer_base, answer_kind=answer_kind)
    questions = tuple(_levelled(replace(q, context=without_options(q.context)), SEED) for q in loaded)
    return BoundarySet(choice=questions, notes=tuple(loaded.report.lines()))


def _only_statements(columns: Sequence[str], fields: Mapping[str, str]) -> bool:
    """Whether a file has verdicts but no options, so that it can only hold statements to be judged."""
    if {"statement", "verdict"} & fields.keys():
        return True
    usual = {column.strip().casefold() for column in columns}
    if "options" in fields or "options" in find_fields(columns, {}, "", needed=()):
        return False
    return not usual.isdisjoint({"verdict", "proof_label", "label"})


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
    source: BoundarySource, origin: str | Path, fields: Mapping[str, str], n: int, seed: int, layout: str
) -> list[Question]:
    loaded = load_questions(origin, fields=fields, seed=seed, skip_bad=True)
    drawn = sample(_enough(source, list(filter(source.fits, loaded)), n, origin), n, seed)
    questions = [replace(q, id=f"{source.name}/{q.id}", source=source.name) for q in drawn]
    if source.part == "disturbing":
        return questions
    if source.form == "none":
        questions = [q.relisted(_wrong(q)) for q in questions]
    questions = [_four(q, seed) for q in questions]
    if layout == "level":
        return [_levelled(q, seed) for q in questions]
    if source.form == "several":
        return questions
    return [replace(q, options=tuple(f"{i}. {text}" for i, text in enumerate(q.options))) for q in questions]


def _judging(
    source: BoundarySource, origin: str | Path, fields: Mapping[str, str], n: int, seed: int
) -> list[JudgingQuestion]:
    loaded = load_judging(origin, fields=fields, seed=seed, skip_bad=True)
    questions: list[JudgingQuestion] = []
    for verdict, share in (("True", n // 4), ("False", n // 2 - n // 4), ("Unknown", n - n // 2)):
        pool = [q for q in loaded if q.verdict == verdict]
        questions += sample(_enough(source, pool, share, origin, f" that are {verdict}"), share, seed) if share else ()
    return [replace(q, id=f"{source.name}/{q.id}", source=source.name) for q in questions]


def _enough(source: BoundarySource, pool: list[Any], n: int, origin: object, which: str = "") -> list[Any]:
    if len(pool) >= n:
        return pool
    share = len(pool) / n
    raise InputError(
        f"{source.name} ({origin}): {n} fitting questions{which} are wanted, {len(pool)} were found; give a larger "
        f"file with --source {source.name}=PATH, or draw less with --scale (at most {share:.2f} of this size fits)"
    )


def _rng(question: Question, seed: int, purpose: str) -> random.Random:
    return random.Random(f"{seed}/{purpose}/{question.id}")


def _wrong(question: Question) -> list[int]:
    return [i for i in range(len(question.options)) if i not in question.answers]


def _four(question: Question, seed: int) -> Question:
    """The question with wrong options left out until four are left."""
    surplus = max(0, len(question.options) - N_OPTIONS)
    gone = _rng(question, seed, "drop").sample(_wrong(question), surplus)
    return question.relisted([i for i in range(len(question.options)) if i not in gone])


_SENTENCE_NUMBER = re.compile(r"\s*\bSent\s+\d+:\s*")


def _levelled(question: Question, seed: int) -> Question:
    movable = list(question.movable)
    _rng(question, seed, "order").shuffle(movable)
    rest = iter(movable)
    order = [i if i in question.pinned else next(rest) for i in range(len(question.options))]
    return replace(question.relisted(order), context=_SENTENCE_NUMBER.sub(" ", question.context).strip())


def _balance(questions: tuple[Q, ...], whole: str, halves: tuple[str, str], n: int | None, seed: int) -> tuple[Q, ...]:
    """As many of the form ``whole`` as of both ``halves`` together, and of these equally many each; in their order."""
    groups = {form: [question for question in questions if form_of(question) == form] for form in (whole, *halves)}
    most = len(questions) if n is None else n // 4
    each = min(most, len(groups[whole]) // 2, *(len(groups[form]) for form in halves))
    sizes = {whole: 2 * each, **dict.fromkeys(halves, each)} if each else {}
    ids = {question.id for form, size in sizes.items() for question in sample(groups[form], size, seed)}
    return tuple(question for question in questions if question.id in ids)


def counts_of(questions: Iterable[Any]) -> str:
    """The number of questions of each form, in words."""
    return ", ".join(f"{form} {n:,}" for form, n in Counter(map(form_of, questions)).items()) or "none"
