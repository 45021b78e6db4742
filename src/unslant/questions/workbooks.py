"""The rows of an Excel workbook, with its cells as the sheet shows them."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from itertools import groupby
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line, needed
from unslant.files import MAX_BYTES, MAX_VALUES, most_unpacked

Row = tuple[int, list[str]]
"""The number of a row (or its first line), and its cells."""
_ALWAYS_XML = 4 << 20
"""Bytes of XML that any workbook may unpack to; XML takes far more time and memory to read than text."""
_MOST_SHARED = 64 << 20
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s")
_IN_FORMAT = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|[_*].|\[[^\]]*\]')
"""Parts of a number's format: text in quotation marks or after a backslash, a currency, and what shows nothing."""
_SIGNED = re.compile(r"([^#0?]*)([#0,]*0)(?:\.(0+))?([^#0?]*)")
# Bounded, or a sheet of a million tags without an end would take hours.
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]{0,300}?ref=[\"']([A-Z]+(\d+):[A-Z]+(\d+))")
_NOT_COMPUTED = re.compile(
    rb"<c r=[\"']([A-Z]+\d+)[\"'](?![^>]{0,300} t=[\"']str)[^>]{0,300}><f[^>]*>[^<]*</f>(?:<v ?/>|<v></v>)?</c>"
)
"""A formula without a value, as libraries write it; one whose value is an empty text has the type ``str``."""
_ALIGNED = {"superscript": "^", "subscript": "_"}
"""What is written before raised and lowered parts of a text: 10 to the power of 23 would otherwise be 1023."""
_MOST_ROWS = 1 << 20
"""Rows that a sheet can have in Excel."""


def workbook_rows(content: bytes, path: Path, is_header: Callable[[list[str]], bool]) -> tuple[str, list[Row]]:
    """The name and the rows of a workbook's only sheet with a recognised header, as in its CSV export.

    Raises:
        InputError: if it cannot be read, is empty, or several sheets have a header.
    """
    load_workbook = needed("openpyxl", f"{path}, an Excel file,", InputError).load_workbook
    try:
        most = _checked_size(content)
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, rich_text=True)
        sheets = dict(_sheets(book, most))
    except Exception as error:  # a damaged workbook fails in the library in many ways
        raise InputError.at(path, f"not an Excel workbook that can be read: {first_line(error)}") from None
    full = {title: rows for title, rows in sheets.items() if rows}
    if not full:
        raise InputError.at(path, "the workbook is empty; it should hold one question per row")
    fitting = [title for title, rows in full.items() if is_header(rows[0][1])]
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
    if cell := next((match[1] for part in parts for match in _NOT_COMPUTED.finditer(part)), b""):
        raise ValueError(
            f"the cell {cell.decode()} has a formula without its value: open the file in Excel and save it"
        )
    sheets = sum(len(_SHEET.findall(part)) for part in parts)
    # Sheets may share one part of the archive, so in the worst case every sheet unpacks the largest part.
    if (sheets - 1) * max(sizes, default=0) > _MOST_SHARED:
        raise ValueError("has too many sheets, or too large ones; keep only the one with the questions")
    return most


def _sheets(book: Any, most: int) -> Iterator[tuple[str, list[Row]]]:
    """The name and the rows of each sheet; ``most`` characters may be in them, as one text may be in many cells."""
    cells = characters = 0
    for sheet in book.worksheets:
        rows: list[Row] = []
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
    if isinstance(value, list):  # a text with parts in other fonts
        aligned = groupby(value, lambda part: _ALIGNED.get(getattr(part, "font", cell.font).vertAlign, ""))
        texts = [(sign, "".join(map(str, parts))) for sign, parts in aligned]
        return "".join(sign * (text.strip() not in ("", "st", "nd", "rd", "th")) + text for sign, text in texts)
    if cell.data_type == "e":
        raise ValueError(
            f"the cell {cell.coordinate} of {cell.parent.title!r} shows the error {value}: correct it, or empty it"
        )
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()  # Excel has dates only as times at midnight
    if isinstance(value, date):
        parts = set(_IN_FORMAT.sub("", cell.number_format.split(";")[0]).lower()) & {*"dmy"}
        if parts == {*"dm"} or parts == {*"my"}:  # as the sheet shows it: 2-Jan may have been typed as 1-2
            return f"{value.day}-{value:%b}" if "d" in parts else f"{value:%b-%y}"
    if isinstance(value, int | float):
        positive = _IN_FORMAT.sub(lambda part: "".join(filter(None, part.groups())), cell.number_format.split(";")[0])
        sign = _SIGNED.fullmatch(positive)
        if sign and (sign[1] + sign[4]).strip():  # as the sheet shows it: 0.1 is 10%, and 5 is $5.00
            number = abs(value * 100 if "%" in sign[4] else value)
            digits = f"{number:{',' * (',' in sign[2])}.{len(sign[3] or '')}f}"
            return f"{'-' * (value < 0)}{sign[1]}{digits}{sign[4]}".strip()
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)
