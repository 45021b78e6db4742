"""Rows of spreadsheets under a header: CSV with any usual separator, and Excel workbooks."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line, shown
from unslant.extras import needed
from unslant.files import MAX_BYTES, MAX_VALUES, most_unpacked
from unslant.questions.records import Record

SEPARATORS = ",;\t|"
_ALWAYS_XML = 4 << 20
"""Bytes of XML that any workbook may unpack to; reading them takes far more time and memory than text."""
_MOST_SHARED = 64 << 20
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s")
_MOST_ROWS = 1 << 20
"""Rows that a sheet can have in Excel."""
_MAX_CELL = 2**31 - 1
_HEAD = 1 << 16
"""Characters in which the header must end."""
_NAMES = frozenset(
    "question stem question_stem query prompt answer label cop answerkey id "
    "problem statement conclusion hypothesis options choices".split()
)
"""Names by which a header is known."""


def delimited_records(text: str, path: Path, usual: str, columns: Collection[str]) -> Iterator[Record]:
    """The rows of a CSV file.

    Args:
        usual: the separator its name implies, taken unless another one gives more of the names that are known.
        columns: further names by which a header is known.

    Raises:
        InputError: if it has no header, or a quotation mark is left open.
    """
    first = 1
    if text.startswith("sep=") and text[5:6] in ("\r", "\n"):  # how Excel learns the separator
        separator, first = text[4], 2
        text = text[4:].partition("\n")[2]
    else:
        separator = _separator(text, usual, columns)
    if text.count(separator) > MAX_VALUES:
        raise InputError.at(path, f"holds more than {MAX_VALUES:,} cells; split it")
    rows = _csv_rows(text, separator, path, first)
    return _under_header(rows, lambda number: f"{shown(path)}, line {number}", columns, separator)


def _separator(text: str, usual: str, columns: Collection[str]) -> str:
    def known(separator: str) -> tuple[bool, int, int]:
        row = next((row for _, row in _csv_rows(text[:_HEAD], separator) if any(map(str.strip, row))), [])
        names = len(_known(row, columns))
        return bool(names) or _headerless(row) is not None, names, len(row)

    found: str = max((usual, *SEPARATORS.replace(usual, "")), key=known)  # the first of equals: the usual one
    return found


def _csv_rows(text: str, separator: str, path: Path | None = None, first: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their first line; without ``path`` they end where the text is not CSV."""
    csv.field_size_limit(_MAX_CELL)  # passages are longer than the module's default of 128 kB
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    start = first
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if path is None:
                return
            reason = f"not valid CSV: {error}; is a quotation mark left open?"
            raise InputError.at(path, reason, line=start) from None
        yield start, row
        start = reader.line_num + first


def workbook_records(content: bytes, path: Path, columns: Collection[str]) -> Iterator[Record]:
    """The rows of a workbook's only sheet with a known header, as its CSV export has them.

    Raises:
        InputError: if it cannot be read, unpacks to too much, or has several such sheets, or openpyxl is missing.
    """
    load_workbook = needed("openpyxl", f"{path}, an Excel file,", InputError).load_workbook
    try:
        most = _checked_size(content)
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)  # values, not formulas
        left = _Left(MAX_VALUES, most)
        sheets = {sheet.title: _sheet_rows(sheet, left) for sheet in book.worksheets}
    except Exception as error:  # a damaged workbook fails in the library in many ways
        raise InputError.at(path, f"not an Excel workbook that can be read: {first_line(error)}") from None
    full = {title: rows for title, rows in sheets.items() if rows}
    if not full:
        raise InputError.at(path, "the workbook is empty; it should hold one question per row")
    fitting = [title for title, rows in full.items() if _known(rows[0][1], columns)]
    if len(fitting) > 1:
        raise InputError.at(path, f"the sheets {', '.join(map(repr, fitting))} all have questions; leave one of them")
    title = fitting[0] if fitting else next(iter(full))
    return _under_header(full[title], lambda number: f"{shown(path)}, sheet {title!r}, row {number}", columns, "")


def _checked_size(content: bytes) -> int:
    """Bytes that the workbook may unpack to.

    Raises:
        ValueError: if it unpacks to more, or would when every sheet were its largest part (sheets may share one).
    """
    most = most_unpacked(len(content), MAX_BYTES, _ALWAYS_XML)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = [entry.file_size for entry in archive.infolist()]
        if sum(sizes) > most:
            raise ValueError("unpacks to more than can be read; split it")
        sheets = sum(len(_SHEET.findall(archive.read(entry))) for entry in archive.infolist())
    if (sheets - 1) * max(sizes, default=0) > _MOST_SHARED:
        raise ValueError("has too many sheets, or too large ones; leave only that with the questions")
    return most


@dataclass
class _Left:
    """What a workbook may still hold: cells, and characters in them (one text may be in many cells)."""

    cells: int
    characters: int


def _sheet_rows(sheet: Any, left: _Left) -> list[tuple[int, list[str]]]:
    rows: list[tuple[int, list[str]]] = []
    sheet.reset_dimensions()  # some programs write wrong ones, by which rows would be cut
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        if number > _MOST_ROWS:
            raise ValueError(f"has a row {number:,}; a sheet has {_MOST_ROWS:,} at most")
        texts = [_cell(value) for value in row]
        left.cells -= len(row)
        left.characters -= sum(map(len, texts))
        if left.cells < 0 or left.characters < 0:
            raise ValueError("its cells hold more than can be read; split it")
        if any(map(str.strip, texts)):
            rows.append((number, texts))
    width = max((max(i for i, text in enumerate(texts) if text.strip()) + 1 for _, texts in rows), default=0)
    return [(number, (texts + [""] * width)[:width]) for number, texts in rows]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _under_header(
    rows: Iterable[tuple[int, list[str]]], place: Callable[[int], str], columns: Collection[str], separator: str
) -> Iterator[Record]:
    header: list[str] | None = None
    for number, row in rows:
        if not any(map(str.strip, row)):
            continue
        if header is None:
            if _known(row, columns):
                header = [cell.strip() for cell in row]
                twice = next((name for i, name in enumerate(header) if name in header[:i]), None)
                if twice is not None:
                    raise InputError.at(place(number), f"two columns of the header have the same name, {twice!r}")
                continue
            header = _headerless(row)
            if header is None:
                raise InputError.at(place(number), _NO_HEADER.format(", ".join(cell.strip()[:30] for cell in row[:12])))
        if len(row) != len(header):
            reason = f"{len(row)} columns, where the file has {len(header)}"
            if separator and len(row) > len(header):
                reason += f'; a text with {separator!r} in it must stand in straight quotation marks (")'
            yield Record(place(number), {}, reason)
            continue
        yield Record(place(number), dict(zip(header, row, strict=True)))


_NO_HEADER = (
    "no header was found: none of {} is a usual column name, and the columns are not question, options, answer letter; "
    "name them (--fields question=COLUMN --fields options=COLUMN,COLUMN --fields answer=COLUMN), or add a first "
    "line such as question,A,B,C,D,answer"
)


def _known(row: list[str], columns: Collection[str]) -> set[str]:
    return {cell.strip().lower() for cell in row} & (_NAMES | {name.strip().lower() for name in columns})


def _headerless(row: list[str]) -> list[str] | None:
    """Column names for the files that have none: question, options, answer letter (MMLU's own CSV files)."""
    n = len(row) - 2
    last = row[-1].strip().upper() if row else ""
    if n >= 2 and len(last) == 1 and 0 <= ord(last) - ord("A") < n:
        return ["question", *(chr(ord("A") + i) for i in range(n)), "answer"]
    return None
