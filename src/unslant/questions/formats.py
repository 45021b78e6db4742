"""The records of a file: JSONL, JSON, CSV with any usual separator, Excel and Parquet, each also gzipped."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from unslant.errors import InputError, shown
from unslant.files import (
    MAX_BYTES,
    MAX_VALUES,
    Model,
    check_parquet,
    checked,
    decoded,
    opened_parquet,
    parse_json,
    read_bytes,
    read_parquet,
)
from unslant.questions.fields import CHOICE_FIELDS, LAST_RESORT, option_columns
from unslant.questions.numbering import strip_numbering
from unslant.questions.records import MAX_RECORDS, Record, class_names, items_of, record_of, row_record, usual_name
from unslant.questions.workbooks import Row, workbook_rows

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
_LISTS = (*CHOICE_FIELDS["options"], *LAST_RESORT["options"])
_OTHERS = {
    **dict.fromkeys((".zip", ".tar", ".tgz", ".zst", ".bz2", ".xz", ".7z", ".lz4"), "unpack it first"),
    **dict.fromkeys((".xls", ".ods"), "save it as .xlsx or .csv, one question per row"),
    **dict.fromkeys((".xml", ".gift"), "export it in Moodle's Aiken format as .txt, or save it as .csv"),
    **dict.fromkeys((".arrow", ".feather", ".sqlite", ".db"), "save it as .parquet or .csv, one question per row"),
    **dict.fromkeys((".yaml", ".yml"), "save it as .json, a list of questions"),
}
_AIKEN = re.compile(r"ANSWER:\s*(.+)", re.IGNORECASE)
_PACKED = {b"PK\x03\x04": "a zip or Excel file", b"\x1f\x8b": "a gzip file", b"PAR1": "a Parquet file"}
"""First bytes of files that often have the wrong suffix."""
SEPARATORS = ",;\t|"
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
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        what = _OTHERS.get(suffix) or f"use one of {', '.join(SUFFIXES)} (also with .gz after it)"
        raise InputError.at(path, f"unknown file type {suffix!r}: {what}")
    return SUFFIXES[suffix]


def suffix_of(path: Path) -> str:
    """The file's suffix in lower case, that before ``.gz`` if it is packed: ``.csv`` for ``arc.CSV.gz``."""
    return _inner(path).suffix.lower()


def stem_of(path: Path) -> str:
    """The file's name without its suffixes: ``arc`` for ``arc.jsonl.gz``."""
    return _inner(path).stem


def iter_records(path: Path, columns: Collection[str] = (), noun: str = "question") -> Iterator[Record]:
    """The records of a file one by one, bad ones included with their problem.

    Lines and rows are read lazily, so that a caller can refuse an early one without reading the others; only JSON that
    is one value is read whole.

    Args:
        columns: column names by which a CSV header is recognised, in addition to the usual ones.
        noun: what a record is, for messages.

    Raises:
        InputError: if the file is missing, empty, not of its type, too large, or not UTF-8 as a whole.
    """
    content = read_bytes(path)
    kind = format_of(path)
    if content.isspace() or not content:
        raise InputError.at(path, f"the file is empty; it should hold one {noun} per line or row")
    packed = next((what for start, what in _PACKED.items() if content.startswith(start)), "")
    if kind == "parquet":
        records = _parquet(content, path)
    elif packed and kind != "xlsx":
        raise InputError.at(path, f"is {packed} with the suffix of another type; rename or unpack it")
    elif kind == "jsonl" and not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        records = _jsonl(content, path)
    elif kind in ("json", "jsonl"):
        records = _json(content, path)
    else:
        unit, separator, rows = _numbered_rows(content, kind, path, columns)
        records = _under_header(rows, f"{shown(path)}, {unit}", columns, separator, noun)
    number = 0
    for number, record in enumerate(records, 1):
        if number > MAX_RECORDS:
            raise InputError.at(path, f"holds more than {MAX_RECORDS:,} records; split it")
        yield record
    if not number:
        raise InputError.at(path, f"holds no {noun}s")


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
    """As :func:`iter_records`, for other records than questions; none may be left out.

    Raises:
        InputError: also at the first record that cannot be read.
    """
    return all_readable(iter_records(path, columns, "record"))


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
    file = shown(path)
    for number, line in enumerate(io.BytesIO(content), 1):
        place = f"{file}, line {number}"
        text = decoded(line, path, number)
        if not text.strip():
            continue
        try:
            yield record_of(place, parse_json(text, check=False))
        except ValueError as error:
            yield Record(place, {}, wrong_json(error))


def wrong_json(error: ValueError) -> str:
    """What is wrong with a text that is not JSON, in which column, and what to do; or with its values."""
    if not isinstance(error, json.JSONDecodeError):
        return f"not usable JSON: {error}"
    at = error.doc[error.pos : error.pos + 1]
    before = error.doc[: error.pos].rstrip()[-1:]
    comma = (at in ("]", "}") and before == ",") or error.msg.startswith("Illegal trailing comma")  # Python 3.13
    hint = "; JSON needs double quotes" if at == "'" else "; remove the comma before the bracket" if comma else ""
    if error.msg == "Extra data":
        hint = "; remove the comma" if at == "," else "; write one record per line: jq -c . FILE > NEW.jsonl"
    elif error.msg.startswith("Unterminated") or not error.doc[error.pos :].strip():
        hint = (
            "; it ends in the middle: was the run that wrote it stopped, or the file cut off? "
            "If it goes on in the next line: jq -c . FILE > NEW.jsonl"
        )
    return f"not valid JSON: {error.msg} (column {error.colno}){hint}"


def _json(content: bytes, path: Path) -> Iterator[Record]:
    try:
        data = parse_json(decoded(content, path), check=False)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object per line under a .json name, as many data sets have it
            yield from _jsonl(content, path)
            return
        if suffix_of(path) == ".txt" and error.doc.lstrip()[:1] not in ("{", "["):
            yield from _quiz(error.doc, path)
            return
        raise InputError.at(path, wrong_json(error), line=error.lineno) from None
    except ValueError as error:
        raise InputError.at(path, wrong_json(error)) from None
    try:
        items = items_of(data)
    except ValueError as error:
        raise InputError.at(path, str(error)) from None
    for number, item in enumerate(items, 1):
        yield record_of(f"{shown(path)}, item {number}", item)


def _quiz(text: str, path: Path) -> Iterator[Record]:
    """The questions of a text in Moodle's Aiken form, or in LogiQA's: answer, passage, question and options."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip():
            first = first if block else number
            block.append(line.strip())
        if block and (not line.strip() or _AIKEN.match(block[-1])):
            yield _quiz_record(f"{shown(path)}, line {first}", block)
            block = []


def _quiz_record(place: str, block: list[str]) -> Record:
    rest = block[:-1] if (aiken := _AIKEN.match(block[-1])) else block
    start = next((i for i, line in enumerate(rest) if line.startswith(("A.", "A)"))), len(rest))
    (*about, stem), options = rest[:start] or [""], rest[start:]
    if not options or strip_numbering(options) == tuple(options) or not (aiken or (about and len(about[0]) == 1)):
        reason = "begins a question without options A., B., C. and a line such as ANSWER: B; save other forms as .csv"
        return Record(place, {}, reason)
    if aiken:
        return Record(place, {"question": "\n".join([*about, stem]), "options": options, "answer": aiken[1]})
    return Record(place, {"context": "\n".join(about[1:]), "question": stem, "options": options, "answer": about[0]})


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


def _numbered_rows(content: bytes, kind: str, path: Path, columns: Collection[str]) -> tuple[str, str, Iterable[Row]]:
    """What messages call a row of a CSV or Excel file, its separator, and its rows."""
    if kind == "xlsx":
        title, rows = workbook_rows(content, path, lambda row: bool(_column_names(row, columns)))
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


def _csv_rows(text: str, separator: str, path: Path | None = None, first: int = 1) -> Iterator[Row]:
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


def _under_header(
    rows: Iterable[Row], unit: str, columns: Collection[str], separator: str, noun: str
) -> Iterator[Record]:
    header: list[str] | None = None
    open_end = False
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
                last = next(filter(None, reversed(header)))
                open_end = last in option_columns(header) or usual_name(last) in _LISTS
                continue
            header = _headerless(row)
            if header is None:
                cells = ", ".join(cell.strip()[:30] for cell in row[:12] if cell.strip())
                such = f", such as {', '.join(list(columns)[:6])}" * bool(columns)
                hint = _HEADERLESS if noun == "question" else f"; the first line must name the columns{such}"
                if len(row) > 1 and not any(map(str.strip, row[1:])):
                    hint = "; this row looks like a title: delete it, so that the names of the columns come first"
                raise InputError.at(place, f"no header was found: none of {cells} is a usual column name{hint}")
        if len(row) != len(header):
            reason = f"{len(row)} columns, where the file has {len(header)}"
            if separator and len(row) > len(header):
                reason += f'; a text with {separator!r} in it must be in straight quotation marks (")'
            yield Record(place, {}, reason)
            continue
        # Columns without a name are the index that pandas writes, and at the end empty ones, or remarks. What is short,
        # another cell's text or follows options may be an option or answer.
        at = [i for i, cell in enumerate(row) if cell.strip() and not header[i] and any(header[:i])]
        if unnamed := [row[i] for i in at if open_end or any(header[i:]) or len(row[i]) < 3 or row[i] in row[:i]]:
            reason = f"{unnamed[0][:60]!r} is in a column without a name; write the names of all columns in one row"
            raise InputError.at(place, reason)
        yield Record(place, {name: cell for name, cell in zip(header, row, strict=True) if name})


_HEADERLESS = (
    ", and the columns are not question, options, answer letter; name them (--fields question=COLUMN --fields "
    "options=COLUMN,COLUMN --fields answer=COLUMN), or add a first line such as question,A,B,C,D,answer"
)


def _column_names(row: list[str], columns: Collection[str]) -> set[str]:
    # A, B, C, ... count as one name: they may be the options of a question about points on a map.
    options = ["options"] if len(option_columns(row)) > 2 else []
    return {usual_name(cell) for cell in row} & (_NAMES | _COMPOUND | set(map(usual_name, columns))) | {*options}


def _headerless(row: list[str]) -> list[str] | None:
    """Column names for files without a header: question, options, answer letter (MMLU's own CSV files)."""
    # The number of a question, such as Q1, is not the question, which comes next.
    numbered, n = re.fullmatch(r"(?i)\W*[a-z]{0,2}\W*\d+\W*", "".join(row[:1])), len(row) - 2
    last = row[-1].strip().upper() if row else ""
    if n >= 2 and not numbered and len(last) == 1 and 0 <= ord(last) - ord("A") < n:
        return ["question", *(chr(ord("A") + i) for i in range(n)), "answer"]
    return None
