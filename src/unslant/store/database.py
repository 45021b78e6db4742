"""The file behind the run store: SQLite with a write-ahead log, intact whenever a process is killed.

What surrounds SQLite can make it lose data (https://sqlite.org/howtocorrupt.html). ``docs/reliability.md`` has our
answer to each entry of that list; most answers are in this module and in :mod:`unslant.store.tables`.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import sqlite3
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from unslant.errors import UnslantError
from unslant.store import tables
from unslant.store.tables import FileId, file_id, sibling

BUSY_SECONDS = 60.0
"""How long a process waits for another one's write."""
_LOG_BYTES = 4 << 20
"""The log is copied into the file once it has this many bytes."""


class StoreError(UnslantError):
    """The run store cannot be read or written. Everything written before is still there."""


class DamagedError(StoreError):
    """The file no longer holds what was written to it; see :mod:`unslant.store.repair`."""


def default_path() -> Path:
    """The user's store: in the folder that ``UNSLANT_HOME`` names, else in the platform's folder for user data."""
    home = os.environ.get("UNSLANT_HOME")
    if home:
        return Path(os.path.expanduser(home)) / "store.sqlite3"
    from platformdirs import user_data_path

    return user_data_path("unslant", appauthor=False) / "store.sqlite3"


class Database:
    """This process's connection to a store file, which is created if missing; all threads share it.

    Args:
        path: the file. Missing parent folders are made, readable by the user alone.
        read_only: open an existing file without writing to it.

    Raises:
        StoreError: if the file cannot be opened safely, is not a run store, or was written by another version.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path = Path(os.path.realpath(path))  # SQLite keeps the log next to the file, not next to a link
        self._lock, self._closed = threading.RLock(), "it has been closed"
        self._connection: sqlite3.Connection | None = None
        self._file: FileId | None = None
        self._log: FileId | None = None
        self._immutable, self._checkpoint_from = False, _LOG_BYTES
        with self._explained():
            if read_only and not os.path.isfile(path):
                raise StoreError(NOTHING.format(path))
            if not read_only:
                try:
                    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                except OSError as error:
                    raise StoreError(f"{path.parent}: cannot be made ({error.strerror}); {_ELSEWHERE}") from None
            self._network = tables.network(path)
            try:
                self._open(read_only)
                self._check_version(read_only)
            except BaseException:
                self.close()
                raise

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection; StoreError if it is closed, or belongs to the process that forked this one."""
        if self._connection is None:
            raise StoreError(f"{self.path}: {self._closed}")
        return self._connection

    def _open(self, read_only: bool) -> None:
        """Connect, and hold a lock on the file that has the name now."""
        # A repair may replace the file while this process waits for its lock. The lock then belongs to the file that
        # was moved away, and everything written there would be lost: connect again until name and file agree.
        while True:
            with _OPENING:
                if not read_only:  # create a missing file, for its owner alone
                    # O_EXCL: only SQLite may open an existing one. Closing any other descriptor drops our POSIX locks.
                    with suppress(OSError):  # SQLite cannot open it either then, and says why
                        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                if (reason := tables.unfit(self.path)) is not None:
                    raise StoreError(f"{self.path}: {reason}, or {_ELSEWHERE}")
                self._file = file_id(self.path)
                if self._file in _INHERITED:
                    raise StoreError(f"{self.path}: {_FORKED}")
                self._connection = self._connect(read_only)
                _OPEN.add(self)
            for setting in _SETTINGS:
                self._connection.execute(f"PRAGMA {setting}")
            if self._network and not self._immutable:
                # A log is indexed in memory that all its processes share, and machines share none. A connection that
                # has the file to itself needs no such memory, so it can read a file with a log, and take the log away.
                self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            if file_id(self.path) == self._file:
                return
            self._connection.close()

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        uri = self.path.as_uri()
        if not read_only or (self._network and os.access(self.path, os.W_OK)):
            return _connected(f"{uri}?mode=rw")
        connection = _connected(f"{uri}?mode=ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            # SQLite cannot create its log in this folder, so no other process can be writing: read without locks.
            if any(os.path.exists(sibling(self.path, end)) for end in ("-wal", "-journal")):
                raise StoreError(f"{self.path}: {_LOG_UNREAD}") from None
            self._immutable = True
            connection = _connected(f"{uri}?immutable=1")
        return connection

    def _set_journal(self) -> None:
        """Keep a write-ahead log on a local disk, a rollback journal on a network drive."""
        # A new file has no log, and a file that was copied may have the other kind. The change needs the file alone: a
        # local file that another process has open stays as it is, which is safe, since all follow what the file says.
        run = self.connection.execute
        mode = "delete" if self._network else "wal"
        if self._setting("journal_mode") != mode:
            try:
                run(f"PRAGMA journal_mode = {mode}")
            except sqlite3.OperationalError:
                if self._network:
                    raise
        run("PRAGMA locking_mode = NORMAL")
        if self._setting("journal_mode") == "wal":
            # No fsync at each commit, only before the log is copied into the file: a power cut may undo the last
            # moments, which are then scored again, but it never damages the file.
            run("PRAGMA synchronous = NORMAL")
        if self._network:
            _warn_of_network(self.path, self._network)

    def _setting(self, name: str) -> Any:
        return self.connection.execute(f"PRAGMA {name}").fetchone()[0]

    def _is_empty(self) -> bool:
        return bool(self._setting("user_version") == 0 and self._setting("page_count") < 2)

    def _check_version(self, read_only: bool) -> None:
        if self._is_empty() and read_only:
            raise StoreError(NOTHING.format(self.path))
        if not self._is_empty():
            ours, version = self._setting("application_id") == tables.APPLICATION, self._setting("user_version")
            named = {name for _, name, *_ in tables.definitions(self.connection)}
            # Of a store without our application_id the header is damaged.
            if (version != tables.VERSION) if ours else {"passes", "run_passes"} <= named:
                raise DamagedError(f"{self.path}: {_OTHER_VERSION.format(version, tables.VERSION)}, or {_ELSEWHERE}")
            if not ours:
                raise StoreError(f"{self.path}: is the database of another program; {_ELSEWHERE}")
        if not self._immutable and (self._network or not read_only):
            self._set_journal()
        if not read_only:
            with self.transaction() as connection:  # fails now rather than an hour in if nothing can be written
                if self._is_empty():  # asked again under the lock: another process may have been first
                    tables.make(connection)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Keep everything that the block writes, or nothing.

        Raises:
            StoreError: if it cannot be written (disk full, read-only, damaged, replaced, or locked for too long).
        """
        with self._lock, self._explained():
            connection = self.connection
            # A plain BEGIN takes the write lock at the first write only. If another process has written since our first
            # read, that write fails at once instead of waiting, as what we read is out of date.
            connection.execute("BEGIN IMMEDIATE")
            try:
                if self._log is None and self._setting("journal_mode") == "wal":
                    self._log = file_id(sibling(self.path, "-wal"))
                self._check_files()
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection is self._connection and connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._check_files()  # a commit to a file that lost its name in the meantime is lost: report it
            self._shorten_log()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read the store as of one moment, though other processes may write in the meantime."""
        with self._lock, self._explained():
            connection = self.connection
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, with its errors explained."""
        with self._lock, self._explained():
            yield self.connection

    def _check_files(self) -> None:
        """Raise StoreError if other files have taken the names of the file and the log that were opened."""
        # While SQLite's locks hold, nobody deletes or replaces a log in use. A new log therefore also shows that this
        # process lost its locks, as happens when anything else in it opens and closes the file.
        if file_id(self.path) != self._file or (self._log and file_id(sibling(self.path, "-wal")) != self._log):
            raise StoreError(f"{self.path}: {_REPLACED}")

    def _shorten_log(self) -> None:
        """Copy a long log into the file."""
        # SQLite's automatic checkpoints are off: before 3.51.3, one that starts while another process restarts the log
        # can lose pages (https://sqlite.org/wal.html#walresetbug). A truncating checkpoint keeps every writer out.
        with suppress(FileNotFoundError):
            if self._log and sibling(self.path, "-wal").stat().st_size >= self._checkpoint_from:
                busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                # A reader still needs the log, perhaps for long: do not try again after every write.
                self._checkpoint_from = 2 * self._checkpoint_from if busy else _LOG_BYTES

    def close(self) -> None:
        """Close the file; the last process to do so folds the log into it."""
        with self._lock:
            connection, self._connection = self._connection, None
            _OPEN.discard(self)
            if connection is not None:
                connection.close()

    def abandon(self) -> None:
        """In a forked child: neither use nor close the parent's connection."""
        # A child inherits SQLite's note of its locks, but not the POSIX locks themselves. This connection would write
        # without any lock, and so would a new one to the same file. Nor may a child close a connection of its parent.
        self._lock = threading.RLock()
        if self._file is not None:
            _INHERITED.add(self._file)
        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))  # collecting it would close it
            self._connection, self._closed = None, _FORKED

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:  # the latter where damaged text is read
            reason = explanation(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT), str(error))
            kind = StoreError if reason else DamagedError
            raise kind(f"{self.path}: {reason or _DAMAGED.format(error)}") from error


_UNREADABLE = sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ
_NO_LOCKS = (
    sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK, sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_PROTOCOL,
)  # fmt: skip
"""Errors of a file system without locks, such as a network drive whose lock service is down."""

_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: set[FileId] = set()  # files that were open when this process was forked
_OPENING = threading.RLock()
_HELD: list[threading.RLock] = []


def opening() -> threading.RLock:
    """The lock that keeps other threads of this process from opening a store, and the process from forking."""
    return _OPENING


def is_open(file: FileId | None) -> bool:
    """Whether this process has a connection to the file."""
    return file is not None and any(database._file == file for database in _OPEN)


def _before_fork() -> None:
    """Wait until no thread is inside SQLite: a child inherits locked mutexes, but not the thread that unlocks them."""
    global _HELD
    _HELD = [_OPENING, *(database._lock for database in _OPEN)]
    for lock in _HELD:
        lock.acquire()


def _after_fork() -> None:
    for lock in _HELD:
        lock.release()


def _after_fork_in_child() -> None:
    global _OPENING
    _OPENING = threading.RLock()
    for database in list(_OPEN):
        database.abandon()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)

_SETTINGS = (
    f"page_size = {tables.PAGE}",
    "mmap_size = 0",  # a stray pointer would write into the file
    "trusted_schema = OFF",  # the file may be someone else's: its schema must not call functions
    "cell_size_check = ON",  # a malformed page is an error, not a wrong row
    "secure_delete = ON",  # zeroes deleted rows: a repair counts every intact row that it meets
    "wal_autocheckpoint = 0",  # see Database._shorten_log
    "checkpoint_fullfsync = ON",  # macOS: an ordinary fsync does not reach the disk
    "cache_size = -65536",
)


def _connected(uri: str) -> sqlite3.Connection:
    # isolation_level: Python must not begin transactions by itself. check_same_thread: our lock keeps threads apart.
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.create_function("row_checksum", -1, tables.checksum, deterministic=True)
    return connection


@cache
def _warn_of_network(path: Path, kind: str) -> None:
    warnings.warn(
        f"{path} is on a network file system ({kind}), whose locks may not reach other machines: use it from one "
        "machine at a time, or give a file on a local disk with --store=PATH",
        stacklevel=2,
    )


NOTHING = "{}: there is no run store here; nothing has been recorded yet"
_ELSEWHERE = "give another file with --store=PATH, or run without one (--no-store)"
_KEPT = "what was scored so far is kept, and the same command resumes from there"
_FORKED = (
    "was open when this process was forked; open it after forking, or start processes by spawn, forkserver or "
    "subprocess"
)
_REPLACED = (
    "the file or its log was moved, deleted or replaced while in use, and what was written last may not be in it; run "
    "the same command again, which asks for what is missing"
)
_LOG_UNREAD = "its log (-wal) cannot be read here; copy the file together with its log to a folder of yours"
_DAMAGED = (
    "not a run store, or damaged ({}); try unslant runs repair, which keeps what is intact, move it away, "
    f"or {_ELSEWHERE}"
)
_OTHER_VERSION = (
    "was written by another version of unslant (tables {}, not {}), or its first page is damaged, in which case "
    "unslant runs repair keeps what is intact; else move it away"
)


def explanation(code: int, message: str) -> str:
    """What an error of SQLite means, and what to do; empty if the content of the file may be damaged."""
    kind = code & 0xFF
    if code in _NO_LOCKS:
        return f"cannot be locked, its file system allows no locks ({message}); {_ELSEWHERE}"
    if kind in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR) and code not in _UNREADABLE:
        return (
            f"cannot be written, the disk or a quota is full ({message}); {_KEPT} once there is room, or {_ELSEWHERE}"
        )
    if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return f"cannot be written ({message}); {_KEPT} once it can, or {_ELSEWHERE}"
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has kept it locked for {BUSY_SECONDS:.0f} s; {_KEPT}"
    return ""


def damaged(database: Database, what: str) -> StoreError:
    """The error for rows whose checksum is wrong."""
    return StoreError(
        f"{database.path}: {what} damaged; drop what is damaged with: unslant runs repair --store "
        f"{shlex.quote(str(database.path))} (the same command then asks only for what was lost)"
    )
