"""Rows straight from the pages of a store file, for a repair: every intact page gives its rows.

The format is https://sqlite.org/fileformat2.html. This module relies only on what SQLite never changes: pages of 4096
bytes, the cells of b-tree pages, and frames of the write-ahead log. It ignores how pages are linked (schema, roots,
inner pages, free list), since the links may be what is damaged. A row counts if its checksum is right; deleted rows do
not come back, because SQLite zeroes them in the file (``secure_delete``).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from unslant.store.tables import PAGE, TABLES, is_whole

_MAGIC = b"SQLite format 3\0"
_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE = 2, 10, 13
_LOG_HEADER, _FRAME_HEADER = 32, 24
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Type of an integer in a record -> its bytes."""


def read_at(file: int, size: int, at: int) -> bytes:
    """Bytes of an open file."""
    os.lseek(file, at, os.SEEK_SET)  # Windows has no pread
    return os.read(file, size)


def rows(file: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every intact row in an open file, with its table and its checksum last; rows of ``runs`` even if damaged."""
    pages = _Pages(file)
    for number in range(1, pages.count + 1):
        for values in pages.records(number):
            for table, columns in TABLES.items():
                if len(values) == len(columns) + 1 and (table == "runs" or is_whole(table, values)):
                    yield table, tuple(values)
                    break


class _Pages:
    def __init__(self, file: int) -> None:
        self.file = file
        self.count = -(-os.fstat(file).st_size // PAGE)
        head = self.page(1)
        # Byte 20: bytes at the end of every page that some builds of SQLite reserve for extensions.
        self.usable = PAGE - (head[20] if head.startswith(_MAGIC) and head[20] <= 64 else 0)

    def page(self, number: int) -> bytes:
        """A page; zeros where the file is too short or the disk cannot be read."""
        with suppress(OSError):
            return read_at(self.file, PAGE, (number - 1) * PAGE).ljust(PAGE, b"\0")
        return bytes(PAGE)

    def records(self, number: int) -> Iterator[list[Any]]:
        """The cells of a page that can be decoded."""
        page = self.page(number)
        start = 100 if page.startswith(_MAGIC) or number == 1 else 0
        kind = page[start]
        if kind not in (_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE):
            return
        (cells,) = struct.unpack_from(">H", page, start + 3)
        first = start + (12 if kind == _INNER_INDEX else 8)
        for at in range(first, min(first + 2 * cells, PAGE - 1), 2):
            with suppress(IndexError, ValueError, struct.error):
                yield self._record(page, struct.unpack_from(">H", page, at)[0], kind)

    def _record(self, page: bytes, at: int, kind: int) -> list[Any]:
        size, at = _varint(page, at + (4 if kind == _INNER_INDEX else 0))
        rowid = None
        if kind == _LEAF_TABLE:
            rowid, at = _varint(page, at)
        values = list(_values(self._payload(page, at, size, kind)))
        # SQLite writes null for an INTEGER PRIMARY KEY: the number of the row holds it.
        return values if values[0] is not None else [rowid, *values[1:]]

    def _payload(self, page: bytes, at: int, size: int, kind: int) -> bytes:
        """The bytes of a record, which begins in its cell and may continue in a chain of overflow pages."""
        most = self.usable - 35 if kind == _LEAF_TABLE else (self.usable - 12) * 64 // 255 - 23
        if size <= most:
            return page[at : at + size]
        if size > self.count * PAGE:
            raise ValueError("longer than the file")
        # How much of a long record its cell holds: the formulas for K and M of the format's section 1.6.
        least = (self.usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (self.usable - 4)
        here = here if here <= most else least
        parts = [page[at : at + here]]
        (follows,) = struct.unpack_from(">I", page, at + here)
        left = size - here
        while left > 0 and 0 < follows <= self.count:
            more = self.page(follows)
            parts.append(more[4 : min(self.usable, 4 + left)])
            (follows,) = struct.unpack_from(">I", more)
            left -= self.usable - 4
        return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to nine bytes, and the place after it."""
    number = 0
    for i in range(at, at + 8):
        number = number << 7 | data[i] & 0x7F
        if data[i] < 0x80:
            return number, i + 1
    return number << 8 | data[at + 8], at + 9


def _values(record: bytes) -> Iterator[Any]:
    """The columns of a record; if it is not one, an error or values that fit no checksum."""
    header, at = _varint(record, 0)
    body = header
    while at < header:
        kind, at = _varint(record, at)
        if kind == 0:
            yield None
        elif kind in (8, 9):
            yield kind - 8
        elif kind == 7:
            yield struct.unpack_from(">d", record, body)[0]
            body += 8
        else:
            size = _INTEGERS[kind] if kind in _INTEGERS else (kind - 12) // 2
            data = record[body : body + size]
            body += size
            if kind in _INTEGERS:
                yield int.from_bytes(data, "big", signed=True)
            else:
                yield data.decode() if kind % 2 else data


def fold_log(file: int, log: bytes) -> None:
    """Write the pages of a write-ahead log into the file, up to its last complete transaction, as SQLite would.

    Nothing happens if it is not the log of a store. A repair that is killed here can do it again: the log stays.
    """
    magic, _, size, _, *rest = struct.unpack_from(">8I", log.ljust(_LOG_HEADER, b"\0"))
    order = ">" if magic & 1 else "<"
    salt, check = rest[:2], _sum(log[:24], order, (0, 0))
    if magic & ~1 != 0x377F0682 or size != PAGE or list(check) != rest[2:]:
        return
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    pages = 0
    for at in range(_LOG_HEADER, len(log) - PAGE - _FRAME_HEADER + 1, PAGE + _FRAME_HEADER):
        number, pages_after, *rest = struct.unpack_from(">6I", log, at)
        start = at + _FRAME_HEADER
        check = _sum(log[start : start + PAGE], order, _sum(log[at : at + 8], order, check))
        if rest != [*salt, *check]:  # a frame of an earlier round of the log, or torn by the crash
            break
        pending[number] = start
        if pages_after:  # only the last frame of a transaction says how long the file is after it
            committed |= pending
            pending, pages = {}, pages_after
    for number, start in committed.items():
        os.lseek(file, (number - 1) * PAGE, os.SEEK_SET)
        os.write(file, log[start : start + PAGE])
    if pages:
        os.ftruncate(file, pages * PAGE)
    os.fsync(file)


def _sum(data: bytes, order: str, before: tuple[int, int]) -> tuple[int, int]:
    one, two = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data[: len(data) // 4 * 4])
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
