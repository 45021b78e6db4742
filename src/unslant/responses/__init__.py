"""What came back: a table with one row per question, presentation and elicitation; written and read as Parquet.

The table alone is enough for every metric: neither the model nor the question file is needed to read it back.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unslant.arrays import Bools, Floats, first_best, release_memory
from unslant.presentations import Presentation
from unslant.questions.question import JudgingQuestion, Question, canonical_line
from unslant.responses.run import Run as Run
from unslant.writing import write_atomically

GENERATE = "generate"
"""Elicitation of rows that are generated replies."""
AGAIN = "generate/again"
"""Elicitation of rows that answer a question about a reply in which no answer was found; kept apart from replies."""
DECISION = "decision"
"""Elicitation of rows whose labels are a server's own, so that labels and positions cannot be separated."""
NO_ANSWER = ("unparsed", "conflict", "cut", "refused")
"""Statuses of replies that contain no answer."""
REPLY_STATUSES = ("ok", *NO_ANSWER, "error")
STATUSES = (*REPLY_STATUSES, "censored")
"""``ok``: an answer was read. ``unparsed``: a reply without a readable answer. ``conflict``: a label with the text of
another option. ``cut``: the reply ended at the limit of tokens before an answer. ``refused``: the model declined.
``censored``: the best label may be one that the server did not return. ``error``: no reply. Only ``ok`` rows are
answers."""


def is_censored(logprobs: Floats, bounds: Sequence[int]) -> bool:
    """Whether the best label may be one for which ``logprobs`` has only an upper bound."""
    # Servers return only their most probable tokens: a label that is missing has at most the probability of the last.
    if not bounds:
        return False
    exact = np.delete(logprobs, list(bounds))
    return not (len(exact) > 0 and exact.max() > logprobs[list(bounds)].max())


def is_right(chosen: Collection[int], answers: Collection[int], ranks: Sequence[int], scored: bool) -> bool:
    """Whether the contents answered are right: of a scored row, a right one; of a reply, exactly these.

    In replies, options of the same text (with the same of the ``ranks``) count as one.
    """
    if scored:  # the most probable label names one option, even where several are right
        return set(chosen) <= set(answers)
    named, right = ({ranks[c] if 0 <= c < len(ranks) else c for c in contents} for contents in (chosen, answers))
    return named == right


class Answer(TypedDict, total=False):
    """The fields of :class:`Response` that say what came back."""

    logprobs: Floats | None
    chosen: frozenset[int] | None
    status: str
    raw: str | None
    repeat: int
    bounds: tuple[int, ...]
    conflict: tuple[int, ...]


@dataclass(frozen=True)
class Response:
    """One row: the answer to one presentation of one question. Its fields are the columns, see :data:`MEANINGS`.

    A scored row is ``censored`` if a label with only an upper bound may be the best; otherwise, without ``chosen``, the
    most probable label's content is chosen (the first of tied ones).
    """

    question_id: str
    kind: str
    elicitation: str
    labels: tuple[str, ...]
    contents: tuple[int, ...]
    answers: frozenset[int]
    n_options: int
    logprobs: Floats | None = None
    chosen: frozenset[int] | None = None
    status: str = "ok"
    raw: str | None = None
    pinned: tuple[int, ...] = ()
    subject: str = ""
    source: str = ""
    interventions: tuple[str, ...] = ()
    repeat: int = 0
    text_ranks: tuple[int, ...] = ()
    run: int = 0
    item: str = ""
    suggested: frozenset[int] | None = None
    bounds: tuple[int, ...] = ()
    conflict: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status: {self.status!r} is not one of {', '.join(STATUSES)}")
        if self.logprobs is not None and len(self.logprobs) != len(self.labels):
            raise ValueError(f"logprobs: {len(self.logprobs)} for {len(self.labels)} labels")
        if self.logprobs is not None and self.status == "ok" and is_censored(self.logprobs, self.bounds):
            object.__setattr__(self, "status", "censored")
        if self.logprobs is not None and self.status == "ok" and self.chosen is None:
            place = first_best(self.logprobs)
            object.__setattr__(self, "chosen", None if place is None else frozenset({self.contents[place]}))

    @property
    def choice(self) -> int:
        """The one option that a reply chooses; -1 where it has no answer, or names none or several."""
        options = sorted(self.chosen or ()) if self.status == "ok" else []
        return options[0] if len(options) == 1 and options[0] >= 0 else -1

    @property
    def is_right(self) -> bool:
        """Whether a scored label is one of the right options, or a reply chooses exactly these, options of the same
        text counting as one."""
        if self.status != "ok" or self.chosen is None:
            return False
        return is_right(self.chosen, self.answers, self.text_ranks, self.logprobs is not None)

    @classmethod
    def of(
        cls,
        question: Question | JudgingQuestion,
        presentation: Presentation,
        elicitation: str,
        **answer: Unpack[Answer],
    ) -> Response:
        """The row of one presentation; ``answer`` are the fields that say what came back, ``logprobs`` aligned with
        ``presentation.labels``."""
        return cls(
            question_id=question.id,
            kind=presentation.kind,
            run=presentation.run,
            item=presentation.item,
            suggested=presentation.suggested,
            elicitation=elicitation,
            labels=presentation.labels,
            contents=presentation.contents,
            answers=presentation.answers,
            n_options=len(question.options),
            pinned=question.pinned,
            subject=question.subject,
            source=question.source,
            interventions=presentation.interventions,
            text_ranks=_ranks(question.options),
            **answer,
        )


_TYPES: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "str": (pa.string(), str),
    "int": (pa.int32(), int),
    "tuple[str, ...]": (pa.list_(pa.string()), tuple),
    "tuple[int, ...]": (pa.list_(pa.int16()), tuple),
    "frozenset[int]": (pa.list_(pa.int16()), frozenset),
    "Floats": (pa.list_(pa.float64()), np.asarray),
}
"""Type of a field of :class:`Response` -> type of its column, and how the column's values are read back."""
_KINDS = {f.name: str(f.type) for f in fields(Response)}
_COLUMNS = {name: _TYPES[kind.removesuffix(" | None")] for name, kind in _KINDS.items()}
SCHEMA = pa.schema(
    [pa.field(name, column, nullable=_KINDS[name].endswith(" | None")) for name, (column, _) in _COLUMNS.items()]
)
"""One column per field of :class:`Response`, of the same name."""
MEANINGS = {
    "question_id": "the question's id",
    "kind": "kind of presentation: `order`, `given`, `reverse`, `labels-reversed`, `vanilla`, `boat`, `control`, ...",
    "elicitation": "how it was asked: `cloze`, `counterfactual`, `decision`, `generate`, or `generate/again` (once "
    "more, about a reply)",
    "labels": "every label that is an answer, from the top",
    "contents": "under each label, the option by its place in the question (from 0); below 0 what is not an option",
    "answers": "the contents that are right here",
    "n_options": "options of the question",
    "logprobs": "natural-log probability of each label; missing where the answer came in words",
    "chosen": "the contents answered: under the most probable label, or named in the reply; none unless status is `ok`",
    "status": "`ok`; `unparsed`, `conflict` (a label with the text of another option), `cut` (ended at the limit of "
    "tokens before an answer), `refused` (replies without an answer); `error` (no reply, no scores); `censored` (the "
    "best label may be one that the server did not return)",
    "raw": "the reply in full, or the error",
    "pinned": "places of the options that never move",
    "subject": "the question's subject",
    "source": "where the question is from",
    "interventions": "what was changed in it",
    "repeat": "sample number, where a reply is sampled more than once",
    "text_ranks": "rank of each option by its text, which breaks ties of the vote",
    "run": "draw, or temperature, by number",
    "item": "part of the presentation: an instruction setting, a label that is never right, ...",
    "suggested": "the contents that the prompt suggests",
    "bounds": "places of labels for which `logprobs` has only an upper bound",
    "conflict": "of status `conflict`: the contents under the label, then those whose text is given with it",
}
"""What each column holds, as in the docs."""


def text_ranks(options: Sequence[str]) -> tuple[int, ...]:
    """Rank of each option among the sorted option texts; identical texts share a rank."""
    # Tied votes are broken by these ranks, so that no number depends on the order in which a file lists the options.
    ordered = sorted(set(options))
    return tuple(ordered.index(option) for option in options)


_ROWS_AT_ONCE = 10_000  # as objects, rows need far more memory than as columns
_ranks = lru_cache(maxsize=64)(text_ranks)


@dataclass(frozen=True)
class Responses:
    """A table of responses (``table`` follows ``SCHEMA``), how it was made (``run``), and its questions, where they are
    available (reports show them; no metric needs them).

    Examples:
        >>> responses = unslant.audit("fair", "embedded", limit=20).responses
        >>> responses.run.model, len(responses.questions)
        ('fair', 20)
    """

    table: pa.Table
    run: Run = field(default_factory=Run)
    questions: tuple[Question, ...] = ()

    @classmethod
    def from_rows(cls, rows: Iterable[Response], run: Run | None = None) -> Responses:
        """A table of the rows, which may be an iterator."""
        rows, parts = iter(rows), [SCHEMA.empty_table()]
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            columns = {
                name: [sorted(v) if isinstance(v := getattr(row, name), frozenset) else v for row in batch]
                for name in SCHEMA.names
            }
            parts.append(pa.table(columns, schema=SCHEMA))
        return cls(pa.concat_tables(parts).combine_chunks(), run or Run())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        about = f"{self.run.model or 'responses'} on {self.run.question_set}"
        return f"Responses: {about}, {len(self):,} rows; .rows(), .table, .to_parquet(FILE)"

    def rows(self) -> list[Response]:
        """The table as :class:`Response` objects, in row order."""
        return list(self.each_row())

    def each_row(self) -> Iterator[Response]:
        """As :meth:`rows`, but only some of them are in memory at once."""
        for batch in self.table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from map(_from_record, batch.to_pylist())

    def by_id(self, ids: Iterable[str]) -> dict[str, Question | int]:
        """The questions of these ids; where the text was not recorded, their numbers of options."""
        known: dict[str, Question | int] = {question.id: question for question in self.questions}
        if not known.keys() >= (names := dict.fromkeys(ids)).keys():
            sizes = self.table.group_by("question_id").aggregate([("n_options", "max")])
            known = (
                dict(zip(*(sizes[name].to_pylist() for name in ("question_id", "n_options_max")), strict=True)) | known
            )
        return {name: known[name] for name in names}

    def passages_of(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The passage that each question is about; empty where it has none, or the table has no questions."""
        passages = {question.id: question.context for question in self.questions}
        return tuple(passages.get(name, "") for name in ids)

    def where(self, **equal: str | int | Sequence[str]) -> Responses:
        """Rows whose columns equal a value (or are one of several), for example ``where(elicitation="cloze")``."""
        import pyarrow.compute as pc

        table = self.table
        for name, value in equal.items():
            allowed = [value] if isinstance(value, str | int) else list(value)
            table = table.filter(pc.is_in(table[name], value_set=pa.array(allowed, table.schema.field(name).type)))
        return Responses(table, self.run, self.questions)

    def to_parquet(self, path: str | Path | IO[bytes]) -> None:
        """Write the table, its run and the questions to one Parquet file (zstd); the same run gives the same bytes."""
        write_table(self.table, self.run, self.questions, path)

    @classmethod
    def from_parquet(cls, path: str | Path, unpacked: dict[bytes, tuple[Question, ...]] | None = None) -> Responses:
        """Read a table that :meth:`to_parquet` wrote.

        Args:
            unpacked: for tables of the same questions: those of tables read before, to which those of this one are
                added.

        Raises:
            InputError: if the file does not exist, is not Parquet, or is damaged in any way; naming row and column.
        """
        from unslant.responses.checks import checked_table, read_table  # few audits read a table

        table, run, questions = read_table(Path(path), {} if unpacked is None else unpacked)
        return cls(checked_table(table, path, questions), run, questions)


def _from_record(record: Mapping[str, Any]) -> Response:
    values: dict[str, Any] = {n: v if v is None else _COLUMNS[n][1](v) for n, v in record.items()}
    return Response(**values)


_ROUNDED = 0.01
"""How far a probability may be off that was written with few decimals."""


def above_one(table: pa.Table) -> Floats:
    """The sums of the probabilities of all labels of those rows where it is more than 1, by more than rounding; of
    labels that a server did not return, only upper bounds are known, and rows with any are left out."""
    import pyarrow.compute as pc

    scores = table["logprobs"].combine_chunks()
    n_labels, n_bounds = (
        np.asarray(pc.fill_null(pc.list_value_length(table[name]), 0)) for name in ("logprobs", "bounds")
    )
    sums = np.zeros(len(table))
    np.add.at(sums, np.asarray(pc.list_parent_indices(scores)), np.exp(np.asarray(scores.flatten())))
    above: Bools = (sums > 1 + _ROUNDED * n_labels) & (n_bounds == 0)
    return sums[above]


# The file of a table

RUN_KEY, QUESTIONS_KEY, DIGEST_KEY = b"unslant", b"unslant.questions", b"unslant.digest"
"""Where the metadata of the file holds the run, the questions and their checksum."""


def write_table(table: pa.Table, run: Run, questions: Sequence[Question], path: str | Path | IO[bytes]) -> None:
    """Write a table, its run and its questions; :func:`~unslant.responses.checks.read_table` detects any damage.

    Raises:
        OutputError: if the file cannot be written.
    """
    write_batches([table], table.num_rows, run, pack(questions) if questions else b"", table.schema, path)


def write_batches(
    batches: Iterable[pa.Table], rows: int, run: Run, packed: bytes, schema: pa.Schema, path: str | Path | IO[bytes]
) -> None:
    """As :func:`write_table`, from tables of ``schema`` that arrive one by one, ``rows`` in all, each a row group.

    Args:
        packed: the questions, as :func:`pack` returns them; may be empty.
    """

    def write(file: IO[bytes]) -> None:
        release_memory()
        with pq.ParquetWriter(file, schema_with_run, compression="zstd", write_page_checksum=True) as writer:
            for batch in batches:
                writer.write_table(batch)
                del batch  # before the next one is made: two of them would be in memory
                release_memory()

    description = run.dump()
    # Pages have checksums; the digest covers what Parquet does not: the metadata, and the number of rows.
    metadata = {RUN_KEY: description, DIGEST_KEY: digest_of_file(description, rows, packed)}
    schema_with_run = schema.with_metadata(metadata | ({QUESTIONS_KEY: packed} if packed else {}))

    if isinstance(path, str | Path):
        write_atomically(path, write)
    else:
        write(path)


def digest_of_file(description: bytes, rows: int, packed: bytes) -> bytes:
    """The checksum over run, number of rows and packed questions."""
    return hashlib.sha256(b"%d\n%s\n%s" % (rows, description, packed)).hexdigest().encode()


def pack(questions: Iterable[Question]) -> bytes:
    """Questions as compressed JSON lines; the same questions give the same bytes."""
    return compressed("\n".join(canonical_line(question) for question in questions))


def compressed(lines: str) -> bytes:
    """Lines as the metadata holds them: as ASCII, since readers in other languages refuse metadata that is not text."""
    return base64.b64encode(zlib.compress(lines.encode(), 9))
