"""Repair of a damaged store: every whole row goes into a new file, and the damaged one is kept.

There is one way for all damage, from a flipped bit in an index to a file without its first half: rows are read off the
pages (:mod:`unslant.store.pages`), without SQLite, which stops at the first page that does not fit. What is lost is
asked again when it is next asked for.

At every moment there is a store of that name: the old one, until the new one, complete, takes its name. A repair that
is killed is begun again by the next one.
"""

from __future__ import annotations

import glob
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from unslant.store import pages
from unslant.store.database import DamagedError, Database, StoreError, is_open, opening
from unslant.store.place import JOURNALS, file_id, sibling
from unslant.store.runs import run_id
from unslant.store.scores import planned_bits, result_row
from unslant.store.tables import (
    APPLICATION,
    PAGE,
    TABLES,
    definitions,
    expected_definitions,
    insert,
    is_whole,
    select,
    signed,
    vouch,
)
from unslant.writing import sync_folder

_RESULTS = ("scores", "replies")
_AT_ONCE = 10_000
_LOCKED = 0x40000000, 512
"""Where SQLite locks a file, and how many bytes: every connection holds one of them."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    Attributes:
        damage: what was damaged; empty if nothing was, and nothing was changed.
        kept: the damaged file, under its new name.
        saved: rows in the new file, by table.
        scores, replies: that are known to be lost, and are asked for again.
        calls: whose records are lost; their scores and replies are looked up again one by one.
        runs: ids of the runs that lost some of this, to be run again.
        forgotten: ids of runs whose record is lost: they are recorded again when their command is typed again.
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
    """Check a store, and if it is damaged, put a new one of what is whole in its place.

    Raises:
        StoreError: if there is none, another process uses it while it is damaged, the new one cannot be written, or
            nothing in the file is of a store; then it is left as it is.
    """
    path = Path(os.path.realpath(path))
    with opening():  # no thread of this process opens it meanwhile
        if is_open(file_id(path)):
            raise StoreError(f"{path}: is open in this process; close it before it is repaired")
        _forget_interrupted(path)
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
    if definitions(connection) != expected_definitions():
        yield "the definitions of its tables"
    for table in TABLES:
        wrong = sum(not is_whole(table, row) for row in select(connection, table))
        if wrong:
            yield f"{wrong:,} rows of {table} do not fit their checksums"
    known = _counts(connection)
    missing = sum(
        max(0, done - known[number]) for number, done in connection.execute("SELECT id, done FROM passes").fetchall()
    )
    if missing:
        yield f"{missing:,} scores or replies are missing"


def _counts(connection: sqlite3.Connection) -> Counter[int]:
    """Scores and replies by pass."""
    counts: Counter[int] = Counter()
    for table in _RESULTS:
        counts.update(dict(connection.execute(f"SELECT pass, count(*) FROM {table} GROUP BY pass").fetchall()))
    return counts


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The file, opened past SQLite and locked as SQLite locks it, so that no other process has it, or gets it."""
    file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        with suppress(ModuleNotFoundError):  # Windows, where a file in use cannot be replaced anyway
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
    if log.exists():
        pages.fold_log(file, log.read_bytes())
    new = sibling(path, ".repair")
    _remove(new)
    try:
        with closing(Database(new)) as database:
            salvaged = _salvage(database, file)
            if not salvaged["saved"] and not _is_store(file):
                raise StoreError(
                    f"{path}: nothing in it is of a run store; it is left as it is. Move it away, and the next command "
                    "makes a new one, or give another file with --store=PATH"
                )
        kept = _keep(path, file)
    except BaseException:
        _remove(new)
        raise
    for end in JOURNALS:  # of the old file: the new one must not be read together with them
        old = sibling(path, end)
        if end != "-shm" and old.exists() and old.stat().st_size:
            old.rename(sibling(kept, end))
        old.unlink(missing_ok=True)
    os.replace(new, path)
    sync_folder(path.parent)
    return Repaired(damage, kept, **salvaged)


def _is_store(file: int) -> bool:
    head = pages.read_at(file, PAGE, 0)
    return head.startswith(b"SQLite format 3\0") and head[68:72] == APPLICATION.to_bytes(4, "big")


def _keep(path: Path, file: int) -> Path:
    """Give the damaged file a second name that no file has: the first free number."""
    number = 0
    while True:
        number += 1
        kept = sibling(path, f".damaged-{number}")
        try:
            try:
                os.link(path, kept)
            except FileExistsError:
                raise
            except OSError:  # a file system without links
                copy = os.open(kept, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
                try:
                    for at in range(0, os.fstat(file).st_size, 1 << 20):
                        os.write(copy, pages.read_at(file, 1 << 20, at))  # not through a second one: see _alone
                    os.fsync(copy)
                finally:
                    os.close(copy)
        except FileExistsError:
            continue
        return kept


def _forget_interrupted(path: Path) -> None:
    """A repair that was killed just before its end left the file with the name it was to have after it, too."""
    for other in path.parent.glob(f"{glob.escape(path.name)}.damaged-*"):
        if file_id(other) == file_id(path):
            other.unlink()


def _remove(path: Path) -> None:
    for name in (path, *(sibling(path, end) for end in JOURNALS)):
        name.unlink(missing_ok=True)


def _salvage(database: Database, file: int) -> dict[str, Any]:
    """Fill a new store with every whole row; returns what :class:`Repaired` says of it."""
    rows = filter(None, map(_acceptable, pages.rows(file)))
    while some := list(islice(rows, _AT_ONCE)):
        with database.transaction() as connection:
            for table, group in groupby(some, itemgetter(0)):
                insert(connection, table, map(itemgetter(1), group))
    with database.transaction() as connection:
        lost = _settle_passes(connection)
        touched, forgotten = _settle_runs(connection, lost["passes"])
        saved = Counter({table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES})
    del lost["passes"]
    return lost | {"saved": +saved, "runs": touched, "forgotten": forgotten}


def _acceptable(read: tuple[str, tuple[Any, ...]]) -> tuple[str, tuple[Any, ...]] | None:
    """The row itself; of a damaged run what its id vouches for, which is enough to run it again."""
    table, values = read
    if table != "runs" or is_whole(table, values):
        return read
    name, command, folder = values[:3]
    if not (isinstance(command, str) and isinstance(folder, str) and run_id(folder, command) == name):
        return None
    row = (name, command, folder, "", "", "", "failed", "its record was damaged", "", 0, 0.0, 0.0, "", None)
    return table, signed(table, *row)


def _settle_passes(connection: sqlite3.Connection) -> dict[str, Any]:
    """Have every call ask again for what it has lost; returns how much that is, and the calls' numbers (``passes``)."""
    counts = _counts(connection)
    known = {number: some for number, *some in connection.execute("SELECT id, kind, done FROM passes")}
    lost: dict[str, Any] = {"scores": 0, "replies": 0, "passes": set(), "calls": 0}
    for number, (kind, done) in known.items():
        if (missing := done - counts[number]) > 0:
            lost[kind] += missing
            lost["passes"].add(number)
            _plan_what_is_missing(connection, number)
    named = {number for (number,) in connection.execute("SELECT pass FROM run_passes")}
    gone = {number for number in named | counts.keys() if number >= 0} - known.keys()
    for number in gone:
        for table in _RESULTS:
            _set_apart(connection, table, number)
        connection.execute("DELETE FROM states WHERE pass = ?", (number,))
    lost["calls"] = len(gone)
    lost["passes"] |= gone
    return lost


def _set_apart(connection: sqlite3.Connection, table: str, number: int) -> None:
    """Keep what belonged to a call without a record under a number that no other call gets."""
    rows = select(connection, table, "pass = ?", number).fetchall()
    insert(connection, table, (result_row(table, -1 - number, *row[1:4]) for row in rows))
    connection.execute(f"DELETE FROM {table} WHERE pass = ?", (number,))


def _plan_what_is_missing(connection: sqlite3.Connection, number: int) -> None:
    """Have a pass ask by itself for what it has not."""
    total, kind = connection.execute("SELECT total, kind FROM passes WHERE id = ?", (number,)).fetchone()
    missing = np.ones(total, dtype=bool)
    for (position,) in connection.execute(f"SELECT position FROM {kind} WHERE pass = ?", (number,)):
        missing[position] = False
    connection.execute(
        "UPDATE passes SET done = ?, planned = ? WHERE id = ?",
        (total - int(missing.sum()), planned_bits(missing), number),
    )
    connection.execute("DELETE FROM states WHERE pass = ?", (number,))
    vouch(connection, "passes", "id = ?", number)


def _settle_runs(connection: sqlite3.Connection, lost: set[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The runs that lost something, and those whose own record is lost."""
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
