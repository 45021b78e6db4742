"""The records of a file: JSONL, JSON, CSV with any usual separator, Excel and Parquet, each also gzipped."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, time
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line, shown
from unslant.extras import needed
from unslant.files import (
    MAX_BYTES,
    MAX_VALUES,
    Model,
    check_parquet,
    checked,
    decoded,
    most_unpacked,
    opened_parquet,
    parse_json,
    read_bytes,
    read_parquet,
)
from unslant.questions.fields import CHOICE_FIELDS
from unslant.questions.records import MAX_RECORDS, Record, class_names, items_of, record_of, row_record, usual_name

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
_ROWS = 16
_OTHERS = {
    **dict.fromkeys((".zip", ".tar", ".tgz", ".zst", ".bz2", ".xz", ".7z", ".lz4"), "unpack it first"),
    **dict.fromkeys((".xls", ".ods", ".xml", ".gift"), "save it as .xlsx or .csv, one question per row"),
    **dict.fromkeys((".yaml", ".yml"), "save it as .json, a list of questions"),
}
_PACKED = {b"PK\x03\x04": "a zip or Excel file", b"\x1f\x8b": "a gzip file", b"PAR1": "a Parquet file"}
"""First bytes of files that often have the wrong suffix."""
_Row = tuple[int, list[str]]
"""The number of a row (or its first line), and its cells."""
SEPARATORS = ",;\t|"
_ALWAYS_XML = 4 << 20
"""Bytes of XML that any workbook may unpack to; XML takes far more time and memory to read than text."""
_MOST_SHARED = 64 << 20
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s")
_PERCENT = re.compile(r"0(\.0+)?[ \\]?%")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=[\"']([A-Z]+(\d+):[A-Z]+(\d+))")
_MOST_ROWS = 1 << 20
"""Rows that a sheet can have in Excel."""
_MAX_CELL = 2**31 - 1
_HEAD = 1 << 16
"""Characters in which the header must end."""
_NAMES = frozenset(
    "question stem question_stem query prompt answer label cop answerkey id "
    "problem statement conclusion hypothesis options choices".split()
)
_COMPOUND = {name for field in ("question", "options", "answer") for name in CHOICE_FIELDS[field] if "_" in name}
"""Names by which a header is recognised: no option is called so, as it may be called "story" or "label"."""


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


def iter_records(path: Path, columns: Collection[str] = ()) -> Iterator[Record]:
    """The records of a file one by one, bad ones included with their problem.

    Lines and rows are read lazily, so that a caller can refuse an early one without reading the others; only JSON that
    is one value is read whole.

    Args:
        columns: column names by which a CSV header is recognised, in addition to the usual ones.

    Raises:
        InputError: if the file is missing, empty, not of its type, too large, or not UTF-8 as a whole.
    """
    content = read_bytes(path)
    kind = format_of(path)
    if content.isspace() or not content:
        raise InputError.at(path, "the file is empty; it should hold one question per line or row")
    packed = next((what for start, what in _PACKED.items() if content.startswith(start)), "")
    if kind == "parquet":
        records = _parquet(content, path)
    elif packed and kind != "xlsx":
        raise InputError.at(path, f"is {packed} with the suffix of another type; rename or unpack it")
    elif kind == "jsonl":
        records = _jsonl(content, path)
    elif kind == "json":
        records = _json(content, path)
    else:
        unit, separator, rows = _numbered_rows(content, kind, path, columns)
        records = _under_header(rows, f"{shown(path)}, {unit}", columns, separator)
    number = 0
    for number, record in enumerate(records, 1):
        if number > MAX_RECORDS:
            raise InputError.at(path, f"holds more than {MAX_RECORDS:,} records; split it")
        yield record
    if not number:
        raise InputError.at(path, "holds no questions")


def header_of(path: Path) -> list[str]:
    """The cells of the first row of a CSV or Excel file, or the columns of a Parquet file; empty without any.

    Raises:
        InputError: if the file cannot be read.
    """
    content, kind = read_bytes(path), format_of(path)
    if kind == "parquet":
        return [str(name) for name in read_parquet(path).column_names]
    _, _, rows = _numbered_rows(content, kind, path, ())
    return [cell.strip() for cell in next((row for _, row in rows if any(map(str.strip, row))), [])]


def whole_records(path: Path, columns: Collection[str] = ()) -> Iterator[Record]:
    """As :func:`iter_records`, for files in which no record may be left out.

    Raises:
        InputError: also at the first record that cannot be read.
    """
    return all_readable(iter_records(path, columns))


def all_readable(records: Iterable[Record]) -> Iterator[Record]:
    """The records; InputError at the first one that cannot be read."""
    for record in records:
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
    hint = "; JSON needs double quotes" if at == "'" else "; remove the comma before it" if comma else ""
    if error.msg.startswith("Unterminated") or not error.doc[error.pos :].strip():
        hint = "; it ends in the middle: was the run that wrote it stopped, or the file cut off?"
    return f"not valid JSON: {error.msg} (column {error.colno}){hint}"


def _json(content: bytes, path: Path) -> Iterator[Record]:
    try:
        data = parse_json(decoded(content, path), check=False)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object per line under a .json name, as many data sets have it
            yield from _jsonl(content, path)
            return
        other = "; .txt is read as JSON: save questions in another form as .csv, one per row"
        reason = _wrong_json(error) + other * (_inner(path).suffix.lower() == ".txt")
        raise InputError.at(path, reason, line=error.lineno) from None
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

    row = size = 0
    with opened_parquet(path, pa.BufferReader(content)) as file:
        check_parquet(file, len(content))
        classes = class_names(file.schema_arrow)
        for batch in file.iter_batches(_ROWS):
            size += batch.nbytes
            if size > MAX_BYTES:
                raise ValueError("holds more than can be read; split it")
            for i in range(batch.num_rows):
                row += 1
                yield row_record(batch, i, f"{shown(path)}, row {row}", classes)


def _numbered_rows(content: bytes, kind: str, path: Path, columns: Collection[str]) -> tuple[str, str, Iterable[_Row]]:
    """What messages call a row of a CSV or Excel file, its separator, and its rows."""
    if kind == "xlsx":
        title, rows = _workbook_rows(content, path, columns)
        return f"sheet {title!r}, row", "", rows
    text, first = decoded(content, path), 1
    if text.startswith("sep=") and text[5:6] in ("\r", "\n"):  # a line that sets the separator in Excel
        separator, first = text[4], 2
        text = text[4:].partition("\n")[2]
    else:
        separator = _separator(text, "\t" if kind == "tsv" else ",", columns)
    if text.count(separator) > MAX_VALUES:
        raise InputError.at(path, f"holds more than {MAX_VALUES:,} cells; split it")
    return "line", separator, _csv_rows(text, separator, path, first)


def _separator(text: str, usual: str, columns: Collection[str]) -> str:
    """The separator that gives the most column names and columns in the first row; the usual one among equals."""

    def plausibility(separator: str) -> tuple[bool, int, int]:
        row = next((row for _, row in _csv_rows(text[:_HEAD], separator) if any(map(str.strip, row))), [])
        names = len(_column_names(row, columns))
        return bool(names) or _headerless(row) is not None, names, len(row)

    best: str = max((usual, *SEPARATORS.replace(usual, "")), key=plausibility)  # max returns the first of equals
    return best


def _csv_rows(text: str, separator: str, path: Path | None = None, first: int = 1) -> Iterator[_Row]:
    """Rows with the number of their first line; without ``path``, they end where the text is not valid CSV."""
    csv.field_size_limit(_MAX_CELL)  # passages are longer than the module's default of 128 kB
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    start = first
    try:
        for row in reader:
            yield start, row
            start = reader.line_num + first
    except csv.Error as error:
        if path is not None:
            reason = f"not valid CSV: {error}; is a quotation mark left open?"
            raise InputError.at(path, reason, line=start) from None


def _workbook_rows(content: bytes, path: Path, columns: Collection[str]) -> tuple[str, list[_Row]]:
    """The name and the rows of a workbook's only sheet with a recognised header, as in its CSV export."""
    load_workbook = needed("openpyxl", f"{path}, an Excel file,", InputError).load_workbook
    try:
        most = _checked_size(content)
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)  # values, not formulas
        sheets = dict(_sheets(book, most))
    except Exception as error:  # a damaged workbook fails in the library in many ways
        raise InputError.at(path, f"not an Excel workbook that can be read: {first_line(error)}") from None
    full = {title: rows for title, rows in sheets.items() if rows}
    if not full:
        raise InputError.at(path, "the workbook is empty; it should hold one question per row")
    fitting = [title for title, rows in full.items() if _column_names(rows[0][1], columns)]
    if len(fitting) > 1:
        raise InputError.at(path, f"the sheets {', '.join(map(repr, fitting))} all have questions; leave one of them")
    title = fitting[0] if fitting else next(iter(full))
    return title, full[title]


def _checked_size(content: bytes) -> int:
    """Bytes that the workbook may unpack to; ValueError if it unpacks to more, or has cells merged over rows."""
    most = most_unpacked(len(content), MAX_BYTES, _ALWAYS_XML)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = [entry.file_size for entry in archive.infolist()]
        if sum(sizes) > most:
            raise ValueError("unpacks to more than can be read; split it")
        parts = [archive.read(entry) for entry in archive.infolist()]
    # A passage or subject in such cells would be that of the first row alone, and missing in silence from the others.
    if area := next((area for part in parts for area, top, end in _MERGED.findall(part) if top != end), b""):
        raise ValueError(f"the cells {area.decode()} are merged: unmerge them, and write the text into every row")
    sheets = sum(len(_SHEET.findall(part)) for part in parts)
    # Sheets may share one part of the archive, so in the worst case every sheet unpacks the largest part.
    if (sheets - 1) * max(sizes, default=0) > _MOST_SHARED:
        raise ValueError("has too many sheets, or too large ones; keep only the one with the questions")
    return most


def _sheets(book: Any, most: int) -> Iterator[tuple[str, list[_Row]]]:
    """The name and the rows of each sheet; ``most`` characters may be in them, as one text may be in many cells."""
    cells = characters = 0
    for sheet in book.worksheets:
        rows: list[_Row] = []
        sheet.reset_dimensions()  # some programs write wrong dimensions, which would cut off rows
        for number, row in enumerate(sheet.iter_rows(), 1):
            if number > _MOST_ROWS:
                raise ValueError(f"has a row {number:,}; a sheet has {_MOST_ROWS:,} at most")
            texts = [_cell(cell) for cell in row]
            cells, characters = cells + len(row), characters + sum(map(len, texts))
            if cells > MAX_VALUES or characters > most:
                raise ValueError("its cells hold more than can be read; split it")
            if any(map(str.strip, texts)):
                rows.append((number, texts))
        width = max((max(i for i, text in enumerate(texts) if text.strip()) + 1 for _, texts in rows), default=0)
        yield sheet.title, [(number, (texts + [""] * width)[:width]) for number, texts in rows]


def _cell(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()  # Excel has dates only as times at midnight
    if isinstance(value, int | float) and (percent := _PERCENT.search(cell.number_format)):
        return f"{value:.{len(percent[1] or '.') - 1}%}"  # as the sheet shows it: 0.1 is 10%
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _under_header(rows: Iterable[_Row], unit: str, columns: Collection[str], separator: str) -> Iterator[Record]:
    header: list[str] | None = None
    for number, row in rows:
        place = f"{unit} {number}"
        if not any(map(str.strip, row)):
            continue
        if header is None:
            # One usual name may be an option of the first question: "id" among "ego" and "superego".
            if len(_column_names(row, columns)) > (_headerless(row) is not None):
                header = [cell.strip() for cell in row]
                twice = next((name for i, name in enumerate(header) if name and name in header[:i]), None)
                if twice is not None:
                    raise InputError.at(place, f"two columns of the header have the same name, {twice!r}")
                continue
            header = _headerless(row)
            if header is None:
                raise InputError.at(place, _NO_HEADER.format(", ".join(cell.strip()[:30] for cell in row[:12])))
        if len(row) != len(header):
            reason = f"{len(row)} columns, where the file has {len(header)}"
            if separator and len(row) > len(header):
                reason += f'; a text with {separator!r} in it must be in straight quotation marks (")'
            yield Record(place, {}, reason)
            continue
        # Columns without a name are the index that pandas writes, and the empty ones at the end that Excel does.
        yield Record(place, {name: cell for name, cell in zip(header, row, strict=True) if name})


_NO_HEADER = (
    "no header was found: none of {} is a usual column name, and the columns are not question, options, answer letter; "
    "name them (--fields question=COLUMN --fields options=COLUMN,COLUMN --fields answer=COLUMN), or add a first "
    "line such as question,A,B,C,D,answer"
)


def _column_names(row: list[str], columns: Collection[str]) -> set[str]:
    return {usual_name(cell) for cell in row} & (_NAMES | _COMPOUND | set(map(usual_name, columns)))


def _headerless(row: list[str]) -> list[str] | None:
    """Column names for files without a header: question, options, answer letter (MMLU's own CSV files)."""
    n = len(row) - 2
    last = row[-1].strip().upper() if row else ""
    if n >= 2 and len(last) == 1 and 0 <= ord(last) - ord("A") < n:
        return ["question", *(chr(ord("A") + i) for i in range(n)), "answer"]
    return None
