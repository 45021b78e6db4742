"""Read records and their places: from JSONL, JSON, CSV, TSV, Excel and Parquet files, each also gzipped, and from what
a program holds, lists, data frames, Arrow tables and data sets."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from unslant.checked import Model, checked
from unslant.errors import InputError, first_line, shown
from unslant.files import MAX_BYTES, check_parquet, decoded, parse_json, read_bytes
from unslant.questions.question import JudgingQuestion, MathQuestion, Question
from unslant.questions.records import Record, items_of, plain_record, record_of
from unslant.questions.tabular import delimited_records, workbook_records

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".txt": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".parquet": "parquet",
    ".pq": "parquet",
}
MAX_RECORDS = 2_000_000
_ROWS = 16
_OTHERS = {".zip": "unpack it first", ".xls": "save it as .xlsx or .csv", ".ods": "save it as .xlsx or .csv"}
_PACKED = {b"PK\x03\x04": "a zip or Excel file", b"\x1f\x8b": "a gzip file", b"PAR1": "a Parquet file"}
"""First bytes of files that often have another name."""


def format_of(path: Path) -> str:
    """``jsonl``, ``json``, ``csv``, ``tsv``, ``xlsx`` or ``parquet``, by the file's suffix (before ``.gz``).

    Raises:
        InputError: on any other suffix.
    """
    suffix = _inner(path).suffix.lower()
    if suffix not in SUFFIXES:
        what = _OTHERS.get(suffix) or f"use one of {', '.join(SUFFIXES)} (also with .gz after it)"
        raise InputError.at(path, f"unknown file type {suffix!r}: {what}")
    return SUFFIXES[suffix]


def stem_of(path: Path) -> str:
    """The file's name without its suffixes: ``arc`` for ``arc.jsonl.gz``."""
    return _inner(path).stem


def read_records(path: Path, columns: Collection[str] = ()) -> list[Record]:
    """All records of a file, see :func:`iter_records`."""
    return list(iter_records(path, columns))


def iter_records(path: Path, columns: Collection[str] = ()) -> Iterator[Record]:
    """The records of a file one by one, bad ones included with their problem.

    Lines and rows are read as they are asked for, so that a caller can refuse an early one without reading the others;
    only JSON that is one value is read whole.

    Args:
        columns: column names to expect, by which a CSV header is known, besides the usual ones.

    Raises:
        InputError: if the file is missing, empty, not of its type, too large, or not UTF-8 as a whole.
    """
    content = read_bytes(path)
    kind = format_of(path)
    if content.isspace() or not content:
        raise InputError.at(path, "the file is empty; it should hold one question per line or row")
    packed = next((what for start, what in _PACKED.items() if content.startswith(start)), "")
    if kind == "parquet":
        found = _parquet(content, path)
    elif packed and kind != "xlsx":
        raise InputError.at(path, f"is {packed} under the name of another kind; rename or unpack it")
    elif kind == "jsonl":
        found = _jsonl(content, path)
    elif kind == "json":
        found = _json(content, path)
    elif kind == "xlsx":
        found = workbook_records(content, path, columns)
    else:
        found = delimited_records(decoded(content, path), path, "\t" if kind == "tsv" else ",", columns)
    number = 0
    for number, record in enumerate(found, 1):
        if number > MAX_RECORDS:
            raise InputError.at(path, f"holds more than {MAX_RECORDS:,} records; split it")
        yield record
    if not number:
        raise InputError.at(path, "holds no questions")


def whole_records(path: Path, columns: Collection[str] = ()) -> Iterator[Record]:
    """As :func:`iter_records`, for files in which no record may be left out.

    Raises:
        InputError: also at the first record that cannot be read.
    """
    for record in iter_records(path, columns):
        if record.problem:
            raise InputError.at(record.place, record.problem)
        yield record


def table_rows(path: str | Path, row: type[Model]) -> Iterator[tuple[str, Model]]:
    """Place and row of every line of a small table that comes with questions: scores, rankings, verdicts.

    Raises:
        InputError: naming the file, line and field, the value, and what is allowed.
    """
    for record in whole_records(Path(path), tuple(row.model_fields)):
        yield record.place, checked(row, record.data, record.place)


def _inner(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _jsonl(content: bytes, path: Path) -> Iterator[Record]:
    # Only \n ends a record: str.splitlines would also cut at U+2028 and its like, which occur inside questions.
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        decoded(content, path)
    for number, line in enumerate(io.BytesIO(content), 1):
        place = f"{shown(path)}, line {number}"
        text = decoded(line, path, number)
        if not text.strip():
            continue
        try:
            yield record_of(place, parse_json(text, check=False))
        except json.JSONDecodeError as error:
            yield Record(place, {}, _wrong_json(error))
        except ValueError as error:
            yield Record(place, {}, f"not usable JSON: {error}")


def _wrong_json(error: json.JSONDecodeError) -> str:
    at = error.doc[error.pos : error.pos + 1]
    before = error.doc[: error.pos].rstrip()[-1:]
    comma = at in ("]", "}") and before == ","
    hint = "; JSON wants double quotes" if at == "'" else "; the comma before it is one too many" if comma else ""
    return f"not valid JSON: {error.msg} (column {error.colno}){hint}"


def _json(content: bytes, path: Path) -> Iterator[Record]:
    try:
        data = parse_json(decoded(content, path), check=False)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object per line under a .json name, as many data sets have it
            yield from _jsonl(content, path)
            return
        raise InputError.at(path, _wrong_json(error), line=error.lineno) from None
    except ValueError as error:
        raise InputError.at(path, f"not usable JSON: {error}") from None
    try:
        items = items_of(data)
    except ValueError as error:
        raise InputError.at(path, str(error)) from None
    for number, item in enumerate(items, 1):
        yield record_of(f"{shown(path)}, item {number}", item)


def _parquet(content: bytes, path: Path) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = size = 0
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        check_parquet(file, len(content))
        for batch in file.iter_batches(_ROWS):
            size += batch.nbytes
            if size > MAX_BYTES:
                raise ValueError("holds more than can be read; split it")
            for i in range(batch.num_rows):
                row += 1
                yield row_record(batch, i, f"{shown(path)}, row {row}")
    except Exception as error:  # a damaged file fails in the library in many ways
        place = f"after row {row}: " if row else ""
        raise InputError.at(path, f"not a Parquet file that can be read: {place}{first_line(error)}") from None


def row_record(batch: Any, i: int, place: str) -> Record:
    """Row ``i`` of a pyarrow batch."""
    try:
        return plain_record(place, batch.slice(i, 1).to_pylist()[0])
    except Exception as error:  # text that is not UTF-8, dates beyond year 9999, and anything else in a cell
        return Record(place, {}, f"cannot be read: {first_line(error)}")


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
    (anything with Arrow's stream interface) or a data set of the library ``datasets``.

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
        if len(splits) > 1:
            raise InputError(f"{name} holds the splits {', '.join(splits)}; give one of them: [{splits[0]!r}]")
        try:
            source = source[splits[0]] if splits else items_of(dict(source))
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
