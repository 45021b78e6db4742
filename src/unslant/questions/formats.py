"""Read records and their places from JSONL, JSON, CSV, TSV and Parquet files, each also gzipped."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line, shown
from unslant.files import MAX_BYTES, MAX_VALUES, check_parquet, check_plain, decoded, parse_json, read_bytes

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".txt": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
MAX_RECORDS = 2_000_000
_MAX_CELL = 2**31 - 1
_ROWS = 16


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the file has it, or the reason why it could not be read.

    Attributes:
        place: file and line (or item, row), for messages.
        data: the record, see :func:`unslant.files.check_plain`; empty when it could not be read.
        problem: why it could not be read; empty when it could.
    """

    place: str
    data: Mapping[str, Any]
    problem: str = ""


def format_of(path: Path) -> str:
    """``jsonl``, ``json``, ``csv``, ``tsv`` or ``parquet``, by the file's suffix (before ``.gz``).

    Raises:
        InputError: on any other suffix.
    """
    suffix = _inner(path).suffix.lower()
    if suffix not in SUFFIXES:
        allowed = ", ".join(SUFFIXES)
        raise InputError.at(path, f"unknown file type {suffix!r}: use one of {allowed} (also with .gz after it)")
    return SUFFIXES[suffix]


def stem_of(path: Path) -> str:
    """The file's name without its suffixes: ``arc`` for ``arc.jsonl.gz``."""
    return _inner(path).stem


def read_records(path: Path, columns: Collection[str] = ()) -> list[Record]:
    """All records of a file, bad ones included with their problem.

    Args:
        columns: column names to expect, by which a CSV header is known beside the usual ones.

    Raises:
        InputError: if the file is missing, empty, not of its type, too large, or not UTF-8 as a whole.
    """
    content = read_bytes(path)
    kind = format_of(path)
    if not content.strip():
        raise InputError.at(path, "the file is empty; it should hold one question per line or row")
    if kind == "parquet":
        found = _parquet(content, path)
    elif kind == "jsonl":
        found = _jsonl(content, path)
    elif kind == "json":
        found = _json(content, path)
    else:
        found = _csv(decoded(content, path), path, "\t" if kind == "tsv" else ",", columns)
    records = list(islice(found, MAX_RECORDS + 1))
    if len(records) > MAX_RECORDS:
        raise InputError.at(path, f"holds more than {MAX_RECORDS:,} records; split it")
    if not records:
        raise InputError.at(path, "holds no questions")
    return records


def record_of(place: str, data: object) -> Record:
    """A record with plain values, or the reason why it is none."""
    if not isinstance(data, Mapping):
        return Record(place, {}, f"is {_name(data)}, not a JSON object with question, options and answer")
    try:
        check_plain(data)
    except ValueError as error:
        return Record(place, {}, f"not usable: {error}")
    return Record(place, data)


def plain_record(place: str, data: Mapping[str, Any]) -> Record:
    """As :func:`record_of`, for rows of libraries: dates and decimals become texts, pictures ``True``."""
    return record_of(place, _plain(data))


def _plain(value: Any) -> Any:
    if isinstance(value, date | time | Decimal):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, Mapping):
        return True if {"bytes", "path"} == value.keys() else {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


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
            yield Record(place, {}, f"not valid JSON: {error.msg} (column {error.colno})")
        except ValueError as error:
            yield Record(place, {}, f"not usable JSON: {error}")


def _name(value: object) -> str:
    names = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true/false", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _json(content: bytes, path: Path) -> Iterator[Record]:
    try:
        data = parse_json(decoded(content, path), check=False)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object per line under a .json name, as many data sets have it
            yield from _jsonl(content, path)
            return
        reason = f"not valid JSON: {error.msg} (column {error.colno})"
        raise InputError.at(path, reason, line=error.lineno) from None
    except ValueError as error:
        raise InputError.at(path, f"not usable JSON: {error}") from None
    if isinstance(data, dict):
        data = _listed(data)
    if not isinstance(data, list):
        raise InputError.at(path, f"is {_name(data)}; expected a list of questions, or an object that holds one")
    for number, item in enumerate(data, 1):
        yield record_of(f"{shown(path)}, item {number}", item)


def _listed(data: dict[str, Any]) -> object:
    """The questions inside a JSON object: under a key such as "data", or keyed by id; else the object itself."""
    if data and all(isinstance(value, dict) for value in data.values()):
        return [value if "id" in value else {"id": key, **value} for key, value in data.items()]
    lists = [value for value in data.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(lists) == 1 and "question" not in data:
        return lists[0]
    return [data]


def _csv(text: str, path: Path, delimiter: str, columns: Collection[str]) -> Iterator[Record]:
    if text.count(delimiter) > MAX_VALUES:
        raise InputError.at(path, f"holds more than {MAX_VALUES:,} cells; split it")
    csv.field_size_limit(_MAX_CELL)  # passages are longer than the module's default of 128 kB
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    start = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = f"not valid CSV: {error}; is a quotation mark left open?"
            raise InputError.at(path, reason, line=start) from None
        number, start = start, reader.line_num + 1
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = _header(row, columns)
            if header is not None:
                if len(set(header)) < len(header):
                    raise InputError.at(path, "two columns of the header have the same name", line=number)
                continue
            header = _headerless(row, path, number)
        place = f"{shown(path)}, line {number}"
        if len(row) != len(header):
            yield Record(place, {}, f"{len(row)} columns, where the file has {len(header)}")
            continue
        yield Record(place, dict(zip(header, row, strict=True)))


def _header(row: list[str], columns: Collection[str]) -> list[str] | None:
    """The row as column names, or None where it is already a question."""
    names = {cell.strip().lower() for cell in row}
    known = {"question", "stem", "question_stem", "query", "prompt", "answer", "label", "cop", "answerkey", "id"}
    spoken = {"problem", "statement", "conclusion", "hypothesis", "options", "choices"}
    spoken |= {name.strip().lower() for name in columns}
    return [cell.strip() for cell in row] if names & (known | spoken) else None


def _headerless(row: list[str], path: Path, line: int) -> list[str]:
    """Column names for the files that have none: question, options, answer letter (MMLU's own CSV files)."""
    n = len(row) - 2
    last = row[-1].strip().upper()
    if n >= 2 and len(last) == 1 and 0 <= ord(last) - ord("A") < n:
        return ["question", *(chr(ord("A") + i) for i in range(n)), "answer"]
    raise InputError.at(
        path,
        "no header was found, and the columns are not question, options, answer letter; "
        "add a first line with the columns' names, such as question,A,B,C,D,answer",
        line=line,
    )


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
                yield _row(batch, i, f"{shown(path)}, row {row}")
    except Exception as error:  # a damaged file fails in the library in many ways
        place = f"after row {row}: " if row else ""
        raise InputError.at(path, f"not a Parquet file that can be read: {place}{first_line(error)}") from None


def _row(batch: Any, i: int, place: str) -> Record:
    try:
        return plain_record(place, batch.slice(i, 1).to_pylist()[0])
    except Exception as error:  # text that is no UTF-8, dates beyond year 9999, and whatever else a cell may hold
        return Record(place, {}, f"cannot be read: {first_line(error)}")
