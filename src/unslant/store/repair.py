"""Repair of a damaged store: every intact row goes into a new file, and the damaged file is kept.

All damage is repaired in one way, from a flipped bit in an index to a file without its first half: rows are read off
the pages (:mod:`unslant.store.pages`) without SQLite, which stops at the first page that does not fit. Lost scores are
asked again when a command next needs them.

There is a store of that name at every moment: the old one, until the complete new one takes its name. After a repair
that was killed, the next one starts over.
"""

from __future__ import annotations

import glob
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from unslant.store import pages, planned_bits, tables
from unslant.store.database import DamagedError, Database, StoreError, is_open, opening
from unslant.store.runs import run_id
from unslant.store.tables import RESULTS, TABLES, file_id, insert, select, sibling
from unslant.writing import sync_folder

_AT_ONCE = 10_000
_LOCKED = 0x40000000, 512
"""Start and length of the bytes that SQLite locks: every connection holds one of them."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    Attributes:
        damage: what was damaged; empty if nothing was, and nothing was changed.
        kept: the damaged file, under its new name.
        saved: table -> rows in the new file.
        scores, replies: number of those lost, which are asked again.
        calls: number of calls whose records are lost; their scores and replies are looked up one by one.
        runs: ids of the runs that lost any of this, to be run again.
        forgotten: ids of runs whose record is lost, until their command is typed again.
    """

    damage: str = ""
    kept: Path | None = None
    saved: Counter[str] = field(default_factory=Counter)
    scores: int = 0
    replies: int = 0
    calls: int = 0
    runs: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()


def repair(path: Path) -> Repaired:
    """Check a store; replace a damaged one by a new store with everything intact.

    Raises:
        StoreError: if there is no store, another process uses the damaged one, the new one cannot be written, or
            nothing in the file comes from a store; the file is then unchanged.
    """
    path = Path(os.path.realpath(path))
    with opening():  # this process must not connect while _alone holds a descriptor: closing it drops all its locks
        if is_open(file_id(path)):
            raise StoreError(f"{path}: is open in this process; close it before it is repaired")
        for other in path.parent.glob(f"{glob.escape(path.name)}.damaged-*"):
            if file_id(other) == file_id(path):  # a second name, left by a repair that was killed just before its end
                other.unlink()
        damage = _damage(path)
        if not damage:
            return Repaired()
        try:
            with _alone(path) as file:
                return _replaced(path, file, damage)
        except OSError as error:
            raise StoreError(f"{path}: cannot be repaired ({error.strerror}); it is left as it is") from None


def _damage(path: Path) -> str:
    try:
        with closing(Database(path, read_only=True)):
            pass  # there is one
        with closing(Database(path)) as database, database.snapshot() as connection:
            return next(_problems(connection), "")
    except DamagedError as error:
        return str(error.__cause__ or "its first page")


def _problems(connection: sqlite3.Connection) -> Iterator[str]:
    if (said := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        yield " ".join(said.split())
    if tables.definitions(connection) != tables.expected_definitions():
        yield "the definitions of its tables"
    for table in TABLES:
        if wrong := sum(not tables.is_whole(table, row) for row in select(connection, table)):
            yield f"{wrong:,} rows of {table} do not fit their checksums"
    counts, passes = _counts(connection), connection.execute("SELECT id, done FROM passes").fetchall()
    if missing := sum(max(0, done - counts[number]) for number, done in passes):
        yield f"{missing:,} scores or replies are missing"


def _counts(connection: sqlite3.Connection) -> Counter[int]:
    """Scores and replies by pass."""
    counts: Counter[int] = Counter()
    for table in RESULTS:
        counts.update(dict(connection.execute(f"SELECT pass, count(*) FROM {table} GROUP BY pass").fetchall()))
    return counts


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The file, opened without SQLite but locked as SQLite locks it, so that no other process can use it."""
    file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        with suppress(ModuleNotFoundError):  # on Windows a file in use cannot be replaced anyway
            import fcntl

            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKED[1], _LOCKED[0])
            except OSError:
                raise StoreError(
                    f"{path}: is damaged, and another process is using it; stop that one (see unslant runs list), then "
                    "run unslant runs repair again"
                ) from None
        yield file
    finally:
        os.close(file)


def _replaced(path: Path, file: int, damage: str) -> Repaired:
    log = sibling(path, "-wal")
    if os.path.exists(log):
        pages.fold_log(file, log.read_bytes())
    new = sibling(path, ".repair")
    _remove(new)
    try:
        with closing(Database(new)) as database:
            salvaged, head = _salvage(database, file), pages.read_at(file, tables.PAGE, 0)
            is_store = head.startswith(b"SQLite format 3\0") and head[68:72] == tables.APPLICATION.to_bytes(4, "big")
            if not salvaged.saved and not is_store:
                raise StoreError(
                    f"{path}: nothing in it belongs to a run store, so it is unchanged. Move it away, and the next "
                    "command creates a new one, or give another file with --store=PATH"
                )
        kept = _keep(path, file)
    except BaseException:
        _remove(new)
        raise
    for end in tables.JOURNALS:  # the log of the old file must not be read with the new one
        old = sibling(path, end)
        if end != "-shm" and os.path.exists(old) and old.stat().st_size:
            old.rename(sibling(kept, end))
        old.unlink(missing_ok=True)
    os.replace(new, path)
    sync_folder(path.parent)
    return replace(salvaged, damage=damage, kept=kept)


def _keep(path: Path, file: int) -> Path:
    """Give the damaged file a second name, with the first free number."""
    number = 0
    while True:
        number += 1
        kept = sibling(path, f".damaged-{number}")
        with suppress(FileExistsError):
            try:
                os.link(path, kept)  # a rename would leave a moment without a store of this name
            except FileExistsError:
                raise
            except OSError:  # a file system without links
                _copy(file, kept)
            return kept


def _copy(file: int, path: Path) -> None:
    copy = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
    try:
        for at in range(0, os.fstat(file).st_size, 1 << 20):
            # From this descriptor: opening the file again, and closing that, would drop the lock of _alone.
            os.write(copy, pages.read_at(file, 1 << 20, at))
        os.fsync(copy)  # before the old name goes: a power cut must not leave an empty copy as the only one
    finally:
        os.close(copy)


def _remove(path: Path) -> None:
    for name in (path, *(sibling(path, end) for end in tables.JOURNALS)):
        name.unlink(missing_ok=True)


def _salvage(database: Database, file: int) -> Repaired:
    """Fill a new store with every intact row."""
    rows = filter(None, map(_acceptable, pages.rows(file)))
    while some := list(islice(rows, _AT_ONCE)):
        with database.transaction() as connection:
            for table, group in groupby(some, itemgetter(0)):
                insert(connection, table, map(itemgetter(1), group))
    with database.transaction() as connection:
        lost, passes = _settle_passes(connection)
        touched, forgotten = _settle_runs(connection, passes)
        saved = Counter({table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES})
    return replace(lost, saved=+saved, runs=touched, forgotten=forgotten)


def _acceptable(read: tuple[str, tuple[Any, ...]]) -> tuple[str, tuple[Any, ...]] | None:
    """The row itself; of a damaged run its command and folder, which are enough to run it again."""
    table, values = read
    if table != "runs" or tables.is_whole(table, values):
        return read
    # The id of a run is a digest of folder and command, so it vouches for both where the checksum does not.
    name, command, folder = values[:3]
    if not (isinstance(command, str) and isinstance(folder, str) and run_id(folder, command) == name):
        return None
    row = (name, command, folder, "", "", "", "failed", "its record was damaged", "", 0, 0.0, 0.0, "", None)
    return table, tables.signed(table, *row)


def _settle_passes(connection: sqlite3.Connection) -> tuple[Repaired, set[int]]:
    """Have every call ask again for what it lost; returns how much that is, and which calls these are."""
    counts = _counts(connection)
    records = connection.execute("SELECT id, kind, done FROM passes").fetchall()
    lost, passes = Counter[str](), set[int]()
    for number, kind, done in records:
        if (missing := done - counts[number]) > 0:
            lost[kind] += missing
            passes.add(number)
            _plan_what_is_missing(connection, number)
    named = {number for (number,) in connection.execute("SELECT pass FROM run_passes")}
    gone = {number for number in named | counts.keys() if number >= 0} - {number for number, *_ in records}
    for number in gone:
        for table in RESULTS:  # rows without a record get a number that no call has: lookups by prompt find them
            rows = select(connection, table, "pass = ?", number).fetchall()
            insert(connection, table, (tables.signed(table, -1 - number, *row[1:4]) for row in rows))
        for table in (*RESULTS, "states"):
            connection.execute(f"DELETE FROM {table} WHERE pass = ?", (number,))
    return Repaired(scores=lost["scores"], replies=lost["replies"], calls=len(gone)), passes | gone


def _plan_what_is_missing(connection: sqlite3.Connection, number: int) -> None:
    """Plan a pass to score by itself what is missing."""
    total, kind = connection.execute("SELECT total, kind FROM passes WHERE id = ?", (number,)).fetchone()
    missing = np.ones(total, dtype=bool)
    for (position,) in connection.execute(f"SELECT position FROM {kind} WHERE pass = ?", (number,)):
        missing[position] = False
    values = (total - int(missing.sum()), planned_bits(missing), number)
    connection.execute("UPDATE passes SET done = ?, planned = ? WHERE id = ?", values)
    connection.execute("DELETE FROM states WHERE pass = ?", (number,))
    tables.vouch(connection, "passes", "id = ?", number)


def _settle_runs(connection: sqlite3.Connection, lost: set[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The runs that lost something, and those whose record is lost."""
    runs = {run for (run,) in connection.execute("SELECT id FROM runs")}
    passes = connection.execute("SELECT run, pass FROM run_passes").fetchall()
    touched = {run for run, number in passes if number in lost}
    query = "SELECT id FROM runs LEFT JOIN responses ON run = id WHERE made_of IS NOT NULL AND parquet IS NULL"
    touched |= {run for (run,) in connection.execute(query)}
    touched |= {run for (run,) in connection.execute("SELECT id FROM runs WHERE host = '' AND process = 0")}
    named = {run for run, _ in passes} | {run for (run,) in connection.execute("SELECT run FROM responses")}
    connection.execute("DELETE FROM run_passes WHERE pass NOT IN (SELECT id FROM passes)")
    connection.execute("DELETE FROM responses WHERE run NOT IN (SELECT id FROM runs)")
    connection.execute("DELETE FROM states WHERE pass NOT IN (SELECT id FROM passes)")
    return tuple(sorted(touched & runs)), tuple(sorted(named - runs))
