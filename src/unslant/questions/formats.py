"""Read records and their places from JSONL, JSON, CSV, TSV and Parquet files, each also gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unslant.errors import InputError

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
_MAX_CELL = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the file has it, or the reason why it could not be read.

    Attributes:
        place: file and line (or item, row), for messages.
        data: the record; empty when it could not be read.
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
        InputError: if the file is missing, empty, not of its type, or not UTF-8 as a whole.
    """
    if path.is_dir():
        raise InputError.at(path, "is a folder; give the question file in it")
    if not path.is_file():
        raise InputError.at(path, "no such file")
    kind = format_of(path)
    content = _bytes(path)
    if not content.strip():
        raise InputError.at(path, "the file is empty; it should hold one question per line or row")
    if kind == "parquet":
        records = list(_parquet(content, path))
    else:
        text = _text(content, path)
        if kind == "jsonl":
            records = list(_jsonl(text, path))
        elif kind == "json":
            records = list(_json(text, path))
        else:
            records = list(_csv(text, path, "\t" if kind == "tsv" else ",", columns))
    if not records:
        raise InputError.at(path, "holds no questions")
    return records


def _inner(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _bytes(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError.at(path, f"not a whole gzip file ({error}); download it again") from None


def _text(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError.at(path, "not UTF-8 text; save the file as UTF-8", line=line) from None


def _jsonl(text: str, path: Path) -> Iterator[Record]:
    # Only \n ends a record: str.splitlines would also cut at U+2028 and its like, which occur inside questions.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            yield Record(place, {}, f"not valid JSON: {error.msg} (column {error.colno})")
            continue
        except RecursionError:
            yield Record(place, {}, "not usable JSON: nested too deeply")
            continue
        yield _checked(place, data)


def _checked(place: str, data: object) -> Record:
    if isinstance(data, dict):
        return Record(place, data)
    return Record(place, {}, f"is {_name(data)}, not a JSON object with question, options and answer")


def _name(value: object) -> str:
    names = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true/false", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _json(text: str, path: Path) -> Iterator[Record]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object per line under a .json name, as many data sets have it
            yield from _jsonl(text, path)
            return
        raise InputError.at(path, f"not valid JSON: {error.msg} (column {error.colno})", line=error.lineno) from None
    if isinstance(data, dict):
        data = _listed(data)
    if not isinstance(data, list):
        raise InputError.at(path, f"is {_name(data)}; expected a list of questions, or an object that holds one")
    for number, item in enumerate(data, 1):
        yield _checked(f"{path}, item {number}", item)


def _listed(data: dict[str, Any]) -> object:
    """The questions inside a JSON object: under a key such as "data", or keyed by id; else the object itself."""
    if data and all(isinstance(value, dict) for value in data.values()):
        return [value if "id" in value else {"id": key, **value} for key, value in data.items()]
    lists = [value for value in data.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(lists) == 1 and "question" not in data:
        return lists[0]
    return [data]


def _csv(text: str, path: Path, delimiter: str, columns: Collection[str]) -> Iterator[Record]:
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
        place = f"{path}, line {number}"
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

    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError.at(path, f"not a Parquet file: {str(error).splitlines()[0]}") from None
    row = 0
    for batch in table.to_batches(max_chunksize=1024):
        for data in batch.to_pylist():
            row += 1
            yield Record(f"{path}, row {row}", data)
