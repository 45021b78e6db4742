"""The only way in from the file system: bounded reading, Parquet files, strict JSON, and records of a declared form."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from unslant.errors import InputError, first_line

MAX_BYTES = 1 << 30
"""Largest input read, in bytes, unpacked."""
_ALWAYS_UNPACKED = 32 << 20
_POINTER = b"version https://git-lfs.github.com/spec/"
"""What a checkout holds in place of a file that Git LFS has not fetched."""
_MAX_RATIO = 100
"""Text shrinks to about a tenth; a file above this ratio (and the size above) is a bomb rather than data."""
_MAX_DEPTH = 32
_MAX_DIGITS = 40
_TOO_LARGE = 10**_MAX_DIGITS
MAX_VALUES = 20_000_000
"""Most values that become Python objects: of one JSON text, of one file of questions."""
MAX_CELLS = 500_000_000
"""Most cells of a table that stays in Arrow's memory."""


# Reading


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a regular file, unpacked where its name ends in ``.gz``.

    Raises:
        InputError: if it cannot be read, is damaged, or is larger than ``limit``.
    """
    try:
        size_of(path, limit)
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError.at(path, _reason(error)) from None
    return _unpacked(content, path, limit) if path.suffix.lower() == ".gz" else content


def size_of(path: Path, limit: int = sys.maxsize) -> int:
    """Size of a regular file in bytes; InputError if it is not one, is larger than ``limit``, or was not fetched."""
    try:
        status = os.stat(path)
        names = sorted(os.listdir(path)) if stat.S_ISDIR(status.st_mode) else []
        pointer = stat.S_ISREG(status.st_mode) and len(_POINTER) < status.st_size < 1024 and _is_pointer(path)
    except (OSError, ValueError) as error:
        raise InputError.at(path, _reason(error)) from None
    if stat.S_ISDIR(status.st_mode):
        listed = f" ({', '.join(names[:6])}{', ...' * (len(names) > 6)})" if names else ""
        raise InputError.at(path, f"is a folder; give the file in it{listed}")
    if not stat.S_ISREG(status.st_mode):
        raise InputError.at(path, "is not a regular file; copy its content to one first")
    if status.st_size > limit:
        raise InputError.at(path, f"has {_mb(status.st_size)}; at most {_mb(limit)} are read, so split it")
    if pointer:
        raise InputError.at(path, "is a Git LFS pointer, not the file itself; fetch it: git lfs pull")
    return status.st_size


def _is_pointer(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_POINTER)) == _POINTER


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """As :func:`read_bytes`, decoded; InputError also if it is not UTF-8, naming the line."""
    return decoded(read_bytes(path, limit), path)


def decoded(content: bytes, path: object, line: int = 1) -> str:
    """UTF-8 text, with or without a byte order mark; ``line`` is the number of its first line.

    Raises:
        InputError: naming the first line that is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line += content.count(b"\n", 0, error.start)
        kind = "UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        excel = " (CSV UTF-8 in Excel's list of types)" * str(path).lower().endswith(".csv")
        raise InputError.at(path, f"{kind} text; save the file as UTF-8{excel}", line=line) from None


def files_within(folder: Path, most: int = 10_000) -> list[Path]:
    """The files in a folder and the folders within, by name; links to folders are not followed.

    Raises:
        InputError: if a folder cannot be read, or there are more files than ``most``.
    """
    paths: list[Path] = []

    def refuse(error: OSError) -> None:
        raise InputError.at(error.filename or folder, _reason(error))

    for parent, _, names in os.walk(folder, onerror=refuse):
        paths += [Path(parent, name) for name in names]
        if len(paths) > most:
            raise InputError.at(folder, f"holds more than {most:,} files; give the folder of the ones you mean")
    return sorted(filter(os.path.isfile, paths))


def _unpacked(content: bytes, path: Path, limit: int) -> bytes:
    limit = most_unpacked(len(content), limit)
    parts: list[bytes] = []  # one read of the whole limit would allocate all of it
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while sum(map(len, parts)) <= limit and (chunk := stream.read(1 << 20)):
                parts.append(chunk)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError.at(path, f"not a whole gzip file ({error}); download it again") from None
    if len(unpacked := b"".join(parts)) > limit:
        raise InputError.at(path, f"unpacks to more than {_mb(limit)}; unpack it, or split it")
    return unpacked


def most_unpacked(packed: int, limit: int, always: int = _ALWAYS_UNPACKED) -> int:
    """Most bytes that ``packed`` ones may unpack to: ``always``, or the ratio of text, but no more than ``limit``."""
    return min(limit, max(always, _MAX_RATIO * packed))


def _mb(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return f"cannot be read: {error}"


def check_parquet(file: Any, size: int, most: int = MAX_VALUES, most_bytes: int = MAX_BYTES) -> None:
    """Refuse a Parquet file whose few bytes expand to more than fits in memory.

    Args:
        file: pyarrow's ``ParquetFile``.
        size: of the file, in bytes.
        most: values it may hold.
        most_bytes: bytes that these may take.

    Raises:
        ValueError: saying what is too much.
        Exception: any other that pyarrow raises for a damaged file.
    """
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > most_unpacked(size, most_bytes):
        raise ValueError("unpacks to more than can be read; split it")
    file.scan_contents()  # decodes page by page: damage is an error here, but would abort the process in a full read
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    if sum(column.num_values for column in columns) > most:
        raise ValueError(f"holds more than {most:,} values; split it")


def read_parquet(path: Path) -> Any:
    """A whole Parquet file (also ``.gz``) as a table with every value checked.

    Raises:
        InputError: if it is not one, is damaged, or holds too much.
    """
    import pyarrow as pa

    content = read_bytes(path)
    with opened_parquet(path, pa.BufferReader(content)) as file:
        check_parquet(file, len(content), MAX_CELLS)
        table = file.read()
        table.validate(full=True)
    return table


def parquet_batches(path: Path, rows: int) -> Iterator[Any]:
    """A Parquet file of any size in tables of at most ``rows`` rows, checked as by :func:`read_parquet`.

    Raises:
        InputError: if it is not one, or is damaged.
    """
    import pyarrow as pa

    with opened_parquet(path) as file:
        check_parquet(file, size_of(path), sys.maxsize, sys.maxsize)
        for batch in file.iter_batches(rows):
            table = pa.Table.from_batches([batch])
            table.validate(full=True)
            yield table


@contextmanager
def opened_parquet(path: Path, source: Any = None) -> Iterator[Any]:
    """pyarrow's ``ParquetFile``; its errors become an InputError that names the file.

    Args:
        source: the file's content; by default the file itself, which may be larger than memory.
    """
    import pyarrow.parquet as pq

    try:
        size_of(path)
        with pq.ParquetFile(source if source is not None else path, page_checksum_verification=True) as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # the library has many ways to fail on a damaged file
        raise InputError.at(path, f"not a Parquet file that can be read: {first_line(error)}") from None


# JSON


def parse_json(text: str, *, check: bool = True) -> Any:
    """A JSON value, with :func:`check_plain` unless the caller does that part by part.

    Raises:
        json.JSONDecodeError: if it is not JSON, naming line and column.
        RepeatedKey: if an object gives a key twice.
        ValueError: saying what is wrong with the value.
    """
    if sum(map(text.count, "[{,")) > MAX_VALUES:
        raise ValueError(f"holds more than {MAX_VALUES:,} values")
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once)
    except (json.JSONDecodeError, RepeatedKey):
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:  # Python's own limit, which names a setting of the interpreter
        raise ValueError(f"holds a number of more than {sys.get_int_max_str_digits()} digits") from None
    if check:
        check_plain(value)
    return value


class RepeatedKey(ValueError):
    """An object gives a key twice: neither value is more likely the right one."""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKey(f"gives the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return value


def check_plain(value: object) -> None:
    """Refuse values that would break later: deep nesting, huge numbers, text that is not Unicode, other types.

    Raises:
        ValueError: saying what is wrong and, for texts, under which key.
    """
    todo: list[tuple[object, str, int]] = [(value, "", 0)]  # not by recursion, which deep values would exhaust
    while todo:
        item, key, depth = todo.pop()
        if isinstance(item, str):
            check_text(item, key)
        elif isinstance(item, bool) or item is None or isinstance(item, float):
            continue
        elif isinstance(item, int):
            if abs(item) >= _TOO_LARGE:
                raise ValueError(f"{_under(key)}holds a number of more than {_MAX_DIGITS} digits")
        elif depth == _MAX_DEPTH:
            raise ValueError(f"nested more than {_MAX_DEPTH} deep")
        elif isinstance(item, list | tuple):
            todo += [(inner, key, depth + 1) for inner in item if not _is_harmless(inner)]
        elif isinstance(item, Mapping):
            for name in item:
                if not isinstance(name, str):
                    raise ValueError(f"{_under(key)}has a key that is not text: {type(name).__name__}")
                check_text(name, key)
            todo += [(inner, key or name, depth + 1) for name, inner in item.items() if not _is_harmless(inner)]
        else:
            raise ValueError(f"{_under(key)}holds a value of type {type(item).__name__}")


def _is_harmless(value: object) -> bool:
    """Whether :func:`check_plain` needs no further look at a value, as at nearly every one of a large log."""
    if isinstance(value, str):
        return value.isascii()
    return value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < _TOO_LARGE)


def check_text(text: str, key: str = "") -> None:
    """Refuse lone surrogates, halves of a character that no file, tokenizer or terminal can hold.

    Raises:
        ValueError: naming the half, and ``key`` where given.
    """
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise ValueError(f"{_under(key)}not Unicode text: {half} is half of a character") from None


def whole_text(text: str) -> str:
    """The text with U+FFFD in place of what :func:`check_text` refuses."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _under(key: str) -> str:
    return f"{key[:60].encode('utf-8', 'backslashreplace').decode()!r}: " if key else ""


def dump_json(value: object, indent: int | None = 2, *, ascii: bool = False) -> str:
    """JSON, with a line end; numbers that JSON does not have are ``null`` (``nan``), ``"inf"`` and ``"-inf"``.

    Args:
        ascii: write other characters as ``\\u00e9``, which is the same JSON in every encoding.
    """
    from unslant.arrays import jsonable  # NumPy, which the command line does without

    return json.dumps(jsonable(value), indent=indent, ensure_ascii=ascii, allow_nan=False) + "\n"


# Small inputs, such as templates and tables, checked by pydantic; an error is one line

Model = TypeVar("Model", bound="Checked")
Cell = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text that may be missing."""


class Checked(BaseModel):
    """A model without further fields; the description of a field says which values it allows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TableRow(Checked):
    """A row of a table, where texts may be written as numbers."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


def checked(kind: type[Model], data: Mapping[str, Any], place: object) -> Model:
    """``data`` as ``kind``.

    Raises:
        InputError: naming the place and the first field that is wrong, its value, and what is allowed.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problem = min(error.errors(include_url=False), key=lambda problem: problem["type"] != "missing")
        owner: type[BaseModel] = kind
        path: list[str] = []
        for part in problem["loc"]:
            path.append(str(part))
            inner = _model_of(owner, str(part))
            if inner is None:
                break  # an error inside a list is reported for the whole list
            if part != problem["loc"][-1]:
                owner = inner
        raise InputError.at(place, _wrong_field(problem, owner, path[-1]), field=".".join(path)) from None


def _wrong_field(problem: Any, owner: type[BaseModel], name: str) -> str:
    fields = owner.model_fields
    if problem["type"] == "extra_forbidden":
        return f"unknown; allowed are {', '.join(sorted(fields))}"
    if problem["type"] == "missing":
        return f"missing; needed are {', '.join(key for key, field in fields.items() if field.is_required())}"
    if inner := _model_of(owner, name):
        return f"must be a table with {', '.join(inner.model_fields)}"
    return f"must be {fields[name].description or 'a text in quotes'}, not {problem['input']!r}"


def _model_of(owner: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model that is the type of a field; None for any other type, and without such a field."""
    kind = owner.model_fields[name].annotation if name in owner.model_fields else None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
