"""Questions that a program holds: lists, data frames, Arrow tables and data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line
from unslant.questions.formats import MAX_RECORDS, row_record
from unslant.questions.question import JudgingQuestion, MathQuestion, Question
from unslant.questions.records import Record, items_of, plain_record

MADE = (Question, JudgingQuestion, MathQuestion)
"""The kinds of questions, which need no reading."""
_GIVE = (
    "give a file, a name, a list of dicts or of Question, a pandas or polars DataFrame, a pyarrow Table, or a Dataset"
)


def settled(source: Any) -> Any:
    """The source; an iterable that may be gone through only once as a list."""
    if isinstance(source, str | Path | Mapping | list | tuple) or not isinstance(source, Iterable):
        return source
    return source if hasattr(source, "cast_column") or hasattr(source, "__arrow_c_stream__") else list(source)


def made_questions(source: object, kind: type[Any]) -> list[Any] | None:
    """Questions that are ready made, alone or in any iterable; None for anything else.

    Raises:
        InputError: if they are mixed with other things, or of another kind.
    """
    if isinstance(source, kind):
        return [source]
    if not isinstance(source, list | tuple) or not any(isinstance(item, MADE) for item in source):
        return None
    for number, item in enumerate(source, 1):
        if not isinstance(item, kind):
            found = type(item).__name__
            raise InputError(f"{type(source).__name__}, item {number}: is {found}, where {kind.__name__} is wanted")
    return list(source)


def object_records(source: Any) -> list[Record]:
    """The records of a list or other iterable of mappings, a mapping (as a JSON object), a data frame, an Arrow table
    (whatever offers Arrow's stream interface) or a data set of the library ``datasets``.

    Raises:
        InputError: if it is none of these, or holds nothing, or more than 2,000,000 records.
    """
    records = list(islice(_records(source), MAX_RECORDS + 1))
    if len(records) > MAX_RECORDS:
        raise InputError(f"{type(source).__name__} holds more than {MAX_RECORDS:,} records; split it")
    if not records:
        raise InputError(f"{type(source).__name__} holds no questions")
    return records


def _records(source: Any) -> Iterator[Record]:
    name = type(source).__name__
    if isinstance(source, Mapping):
        splits = [str(key) for key, value in source.items() if hasattr(value, "cast_column")]
        if splits:
            raise InputError(f"{name} holds the splits {', '.join(splits)}; give one of them: [{splits[0]!r}]")
        try:
            source = items_of(dict(source))
        except ValueError as error:
            raise InputError(f"{name} {error}") from None
    if hasattr(source, "cast_column"):
        yield from dataset_records(source, name)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from _table_records(source, name)
    elif hasattr(source, "collect") and hasattr(source, "lazy"):
        raise InputError(f"{name} is not computed yet; give its .collect()")
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        for number, item in enumerate(source, 1):
            yield plain_record(f"{name}, item {number}", item)
    else:
        raise InputError(f"questions of type {name}: {_GIVE}")


def dataset_records(rows: Any, origin: str) -> Iterator[Record]:
    """The rows of a data set of the library ``datasets``; pictures are not decoded."""
    from datasets import Image

    for name, feature in (rows.features or {}).items():
        if isinstance(feature, Image):
            rows = rows.cast_column(name, Image(decode=False))  # pictures are only tested for presence
    for number, row in enumerate(rows, 1):
        yield plain_record(f"{origin}, row {number}", row)


def _table_records(source: Any, name: str) -> Iterator[Record]:
    import pyarrow as pa

    try:
        table = pa.RecordBatchReader.from_stream(source).read_all()
    except (pa.ArrowException, TypeError) as error:  # columns of values of several types, which pandas allows
        if not (hasattr(source, "to_dict") and hasattr(source, "columns")):
            raise InputError(f"{name}: cannot be read: {first_line(error)}") from None
        for number, row in enumerate(source.to_dict("records"), 1):
            yield plain_record(f"{name}, row {number}", row)
        return
    number = 0
    for batch in table.to_batches(max_chunksize=1024):
        for i in range(batch.num_rows):
            number += 1
            yield row_record(batch, i, f"{name}, row {number}")
