"""Reading a table of responses back, and the checks that it passes before anything is computed from it: its file, its
columns, its rows. What was asked in this process needs neither."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unslant.arrays import TIE_TOLERANCE, Ints
from unslant.errors import InputError, first_line
from unslant.files import MAX_BYTES, opened_parquet, parquet_batches, parse_json, read_parquet
from unslant.questions.question import Question, question_of
from unslant.responses import DIGEST_KEY, QUESTIONS_KEY, RUN_KEY, SCHEMA, STATUSES, compressed, digest_of_file
from unslant.responses.run import Run

MOST_POSITIVE = 1e-4
"""Largest log-probability that rounding can explain, of harnesses that sum in single precision."""
_LOWEST_CODE = -3
_MOST_OPTIONS = 1000
_ROWS_AT_ONCE = 1 << 16
_AS_PUBLISHED = ("order", "given", "reverse", "labels-reversed", "both-reversed")


class _Bad(ValueError):
    """An invalid row: its number and column."""

    def __init__(self, row: int, column: str, reason: str) -> None:
        super().__init__(reason)
        self.row, self.column = row, column


def read_table(path: Path, unpacked: dict[bytes, tuple[Question, ...]]) -> tuple[pa.Table, Run, tuple[Question, ...]]:
    """The table, run and questions that :func:`~unslant.responses.write_table` wrote, with unchecked columns.

    ``unpacked`` holds questions by their packed form; those of this table are added.

    Raises:
        InputError: if there is no such file, it is not Parquet, or it is damaged.
    """
    table = read_parquet(path)
    run, packed = _about(table.schema.metadata or {}, table.num_rows, path)
    try:
        if packed not in unpacked:
            unpacked[packed] = unpack(packed)
        return table, run, unpacked[packed]
    except ValueError as error:
        raise InputError.at(path, f"is not a table of responses: {first_line(error)}") from None


def _about(metadata: Mapping[bytes, bytes], rows: int, path: Path) -> tuple[Run, bytes]:
    """The run that a file describes, and its questions, packed."""
    description = metadata.get(RUN_KEY, b"{}")
    packed = metadata.get(QUESTIONS_KEY, b"")
    digest = digest_of_file(description, rows, packed)
    if metadata.get(DIGEST_KEY, digest) != digest:
        raise InputError.at(path, "is damaged: its description does not match its checksum; write it again")
    try:
        parse_json(description.decode())  # refuses repeated keys and deep nesting, which pydantic reads
        run = Run.parse(description)
    except ValueError as error:
        raise InputError.at(path, f"is not a table of responses: {first_line(error)}") from None
    return run, packed


class TableFile:
    """A table of responses in a file, read some rows at a time.

    Attributes:
        rows: how many it has.
        run: how it was made.
        packed: its questions, see :func:`unpack`.

    Raises:
        InputError: as :func:`read_table`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened_parquet(path) as file:
            self.rows = int(file.metadata.num_rows)
            self.run, self.packed = _about(file.schema_arrow.metadata or {}, self.rows, path)

    def batches(self) -> Generator[pa.Table, None, None]:
        """Its rows in order, as :func:`checked_table` gives them.

        Raises:
            InputError: if a row cannot be used.
        """
        before = 0
        for table in parquet_batches(self.path, _ROWS_AT_ONCE):
            yield checked_table(table, self.path, before=before)
            before += table.num_rows


def checked_table(table: pa.Table, path: object, questions: Sequence[Question] = (), before: int = 0) -> pa.Table:
    """The table under :data:`SCHEMA`, after every row is checked; ``before`` rows of the file come before it.

    Raises:
        InputError: naming row, column and the problem.
    """
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise InputError.at(path, f"not a table of responses: column {missing[0]!r} is missing")
    if len(set(table.column_names)) < len(table.column_names):
        raise InputError.at(path, "not a table of responses: two columns have the same name")
    try:
        nullable = pa.schema([pa.field(field.name, field.type) for field in SCHEMA])  # nulls are reported by row below
        table = table.select(SCHEMA.names).cast(nullable).combine_chunks()
    except (pa.ArrowException, ValueError) as error:
        raise InputError.at(path, f"not a table of responses: {first_line(error)}") from None
    try:
        _check_nulls(table)
        _check_rows(table)
        _check_questions(table, questions)
    except _Bad as error:
        place = f"{path}, row {before + error.row + 1}"
        raise InputError.at(place, str(error), field=error.column) from None
    return table.cast(SCHEMA)


def _check_nulls(table: pa.Table) -> None:
    for field in SCHEMA:
        column = table[field.name].combine_chunks()
        if not field.nullable and column.null_count:
            raise _Bad(_first(pc.is_null(column)), field.name, "is missing")
        if pa.types.is_list(field.type) and column.flatten().null_count:
            at = _first(pc.is_null(column.flatten()))
            raise _Bad(int(pc.list_parent_indices(column)[at].as_py()), field.name, "has an empty entry")


def _first(flags: Any) -> int:
    return int(np.flatnonzero(np.asarray(flags))[0])


class _Lists:
    """A column of lists as flat values, each with its row."""

    def __init__(self, table: pa.Table, name: str) -> None:
        column = table[name].combine_chunks()
        self.name = name
        self.there = np.asarray(pc.is_valid(column))
        self.lengths: Ints = np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.int64)
        self.rows: Ints = np.asarray(pc.list_parent_indices(column), np.int64)
        flat = column.flatten()
        self.values = np.asarray(flat.dictionary_encode().indices if pa.types.is_string(flat.type) else flat)

    def require(self, right: NDArray[np.bool_], reason: str) -> None:
        """Refuse the row of the first value that is not ``right``; ``reason`` may have a place for it."""
        if not right.all():
            at = _first(~right)
            raise _Bad(int(self.rows[at]), self.name, reason.format(self.values[at]))

    def distinct(self) -> None:
        """Refuse a row that holds a value twice."""
        order = np.lexsort((self.values, self.rows))
        rows, values = self.rows[order], self.values[order]
        again = (rows[1:] == rows[:-1]) & (values[1:] == values[:-1])
        if again.any():
            raise _Bad(int(rows[1:][again][0]), self.name, "holds the same value twice")


def _check_rows(table: pa.Table) -> None:
    n = np.asarray(table["n_options"], np.int64)
    _require("n_options", (n >= 0) & (n <= _MOST_OPTIONS), f"is out of range: 0 to {_MOST_OPTIONS} are possible")
    _require("repeat", np.asarray(table["repeat"], np.int64) >= 0, "is below 0")
    status = table["status"]
    valid = np.asarray(pc.is_in(status, value_set=pa.array(STATUSES)))
    _require("status", valid, f"is not one of {', '.join(STATUSES)}")
    labels, logprobs = _Lists(table, "labels"), _Lists(table, "logprobs")
    labels.distinct()
    blank = table["labels"].combine_chunks().flatten()
    labels.require(np.asarray(pc.not_equal(blank, "")), "holds an empty label")
    one_each = ~logprobs.there | (logprobs.lengths == labels.lengths)
    _require("logprobs", one_each, "does not hold one number for each label")
    right = logprobs.values <= MOST_POSITIVE  # false for nan
    logprobs.require(right, "holds a value that is not a natural-log probability: {:g}")
    bounds = _Lists(table, "bounds")
    inside = (bounds.values >= 0) & (bounds.values < logprobs.lengths[bounds.rows])
    bounds.require(inside, "holds {:g}, which is not the place of a score")
    bounds.distinct()
    for name in ("contents", "chosen", "answers", "pinned", "text_ranks", "suggested", "conflict"):
        codes = _Lists(table, name)
        lowest = 0 if name in ("pinned", "text_ranks") else _LOWEST_CODE
        inside = (codes.values >= lowest) & (codes.values < n[codes.rows])
        codes.require(inside, "holds {:g}, which is not one of the question's options")
        if name in ("chosen", "answers", "pinned"):
            codes.distinct()
        if name == "contents":
            _require(name, codes.lengths == labels.lengths, "does not hold one option for each label")
        if name == "text_ranks":
            _require(name, (codes.lengths == 0) | (codes.lengths == n), "does not hold one rank for each option")
    _check_chosen(table, logprobs)
    answered = logprobs.there | np.asarray(pc.is_valid(table["chosen"]))
    _require("status", answered | ~np.asarray(pc.equal(status, "ok")), "is ok, but there is no answer")


def _check_chosen(table: pa.Table, logprobs: _Lists) -> None:
    """A scored row must have chosen its most probable label."""
    choices, contents = _Lists(table, "chosen"), _Lists(table, "contents")
    choice = np.full(table.num_rows, _LOWEST_CODE - 1)  # a code that no label has
    choice[choices.rows] = choices.values
    best = np.full(table.num_rows, -np.inf)
    np.maximum.at(best, logprobs.rows, logprobs.values)
    is_choice = contents.values[logprobs.there[contents.rows]] == choice[logprobs.rows]
    right = ~(logprobs.there & choices.there)
    right[logprobs.rows[is_choice & (logprobs.values >= best[logprobs.rows] - TIE_TOLERANCE)]] = True
    _require("chosen", right, "is not the most probable label")


def _require(column: str, right: NDArray[np.bool_], reason: str) -> None:
    if not right.all():
        raise _Bad(_first(~right), column, reason)


def _check_questions(table: pa.Table, questions: Sequence[Question]) -> None:
    """A table's questions must have as many options as its rows, where they are shown as published."""
    if not questions:
        return
    sizes = {question.id: len(question.options) for question in questions}
    ids = table["question_id"].combine_chunks().dictionary_encode()
    expected = np.array([sizes.get(question_id, -1) for question_id in ids.dictionary.to_pylist()])[ids.indices]
    published = np.asarray(pc.is_in(table["kind"], value_set=pa.array(_AS_PUBLISHED)))
    wrong = published & (expected >= 0) & (expected != np.asarray(table["n_options"]))
    if wrong.any():
        row = _first(wrong)
        n, question_id = table["n_options"][row], table["question_id"][row]
        raise _Bad(row, "n_options", f"is {n}, but question {str(question_id)!r} has {expected[row]} options")


# The texts of the questions, packed for the metadata of a table


def joined(packed: Iterable[bytes]) -> bytes:
    """Several sets of packed questions as one, the same bytes as :func:`~unslant.responses.pack` makes of all of them.

    Raises:
        ValueError: see :func:`unpack`.
    """
    lines = "\n".join(filter(None, map(_unpacked, packed)))
    return compressed(lines) if lines else b""


def unpack(packed: bytes) -> tuple[Question, ...]:
    """The inverse of :func:`~unslant.responses.pack`.

    Raises:
        ValueError: if that did not make ``packed``.
    """
    return tuple(question_of(parse_json(line)) for line in _unpacked(packed).split("\n") if line)


def _unpacked(packed: bytes) -> str:
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(packed, validate=True), MAX_BYTES) if packed else b""
    except zlib.error as error:
        raise ValueError(f"its questions cannot be unpacked: {error}") from None
    if packed and not stream.eof:
        raise ValueError("its questions cannot be unpacked: they are cut short, or too long")
    return content.decode()
