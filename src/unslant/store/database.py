"""The file behind the run store: SQLite with a write-ahead log, never half written whenever a process is killed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unslant.errors import UnslantError

BUSY_SECONDS = 60.0
"""How long a process waits for another one's write."""

_VERSION = 4
_REPLIES = """
CREATE TABLE replies (
    pass INTEGER NOT NULL,
    position INTEGER NOT NULL,
    prompt BLOB NOT NULL,           -- digest of the model's identity, the prompt and which of its samples this is
    reply BLOB NOT NULL,            -- JSON
    checksum INTEGER NOT NULL,      -- of prompt and reply
    PRIMARY KEY (pass, position)
) WITHOUT ROWID;
CREATE INDEX replies_by_prompt ON replies (prompt);
"""
_SCHEMA = f"""{_REPLIES}
CREATE TABLE passes (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,       -- digest of the model's identity and of every prompt's tokens, in order
    identity TEXT NOT NULL,         -- the model's identity, as JSON
    total INTEGER NOT NULL,
    done INTEGER NOT NULL,
    planned BLOB,                   -- bits of the positions it scores itself; null: all of them
    cost TEXT NOT NULL,             -- of what it has scored itself, as JSON
    checksum INTEGER NOT NULL       -- of key, identity, total, done, planned and cost
);
CREATE TABLE scores (
    pass INTEGER NOT NULL,
    position INTEGER NOT NULL,
    prompt BLOB NOT NULL,           -- digest of the model's identity and the prompt's tokens
    logprobs BLOB NOT NULL,         -- float64, little-endian
    checksum INTEGER NOT NULL,      -- of prompt and logprobs
    PRIMARY KEY (pass, position)
) WITHOUT ROWID;
CREATE INDEX scores_by_prompt ON scores (prompt);
CREATE TABLE states (
    pass INTEGER NOT NULL,
    stretch TEXT NOT NULL,
    step INTEGER NOT NULL,
    state BLOB NOT NULL,            -- what the engine needs to continue after that step
    checksum INTEGER NOT NULL,      -- of state
    PRIMARY KEY (pass, stretch)
);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    command TEXT NOT NULL,          -- arguments, as a JSON list
    folder TEXT NOT NULL,
    model TEXT NOT NULL,
    questions TEXT NOT NULL,
    questions_digest TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    started REAL NOT NULL,          -- seconds since 1970
    updated REAL NOT NULL,
    responses BLOB,                 -- the finished table, as Parquet
    checksum INTEGER,               -- of responses
    made_of BLOB,                   -- digest of the questions and the passes that responses were made of
    score TEXT NOT NULL DEFAULT ''  -- the number that its result begins with
);
CREATE TABLE run_passes (
    run TEXT NOT NULL,
    pass INTEGER NOT NULL,
    current INTEGER NOT NULL,       -- 1: the run's last start asked for it; 0: an earlier one did
    PRIMARY KEY (run, pass)
) WITHOUT ROWID;
"""


_FROM_VERSION_1 = """
ALTER TABLE passes ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE scores ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE states ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN checksum INTEGER;
ALTER TABLE runs ADD COLUMN made_of BLOB;
DELETE FROM scores;
DELETE FROM states;
"""
"""Version 1 knew a model by too little: what it scored is not used again. Finished runs keep their responses."""
_SCORE = "\nALTER TABLE runs ADD COLUMN score TEXT NOT NULL DEFAULT '';\n"
_UPGRADES = {1: _FROM_VERSION_1 + _REPLIES + _SCORE, 2: _REPLIES + _SCORE, 3: _SCORE}

Upgrade = Callable[[sqlite3.Connection], None]


class StoreError(UnslantError):
    """The run store cannot be read or written. Whatever was written before is still there."""


def default_path() -> Path:
    """The user's store: in the folder named by ``UNSLANT_HOME``, else in the platform's folder for user data."""
    home = os.environ.get("UNSLANT_HOME")
    if home:
        return Path(home).expanduser() / "store.sqlite3"
    from platformdirs import user_data_path

    return user_data_path("unslant", appauthor=False) / "store.sqlite3"


class Database:
    """One connection to a store file, which is made when it is missing.

    Args:
        path: the file. Folders on the way are made (readable by the user alone).
        read_only: open an existing file without writing to it or beside it.
        upgrade: what remains to be done, in the same transaction, once tables of version 1 have the columns of today's.

    Raises:
        StoreError: if the file cannot be opened, is no run store, or was written by a newer version.
    """

    def __init__(self, path: Path, *, read_only: bool = False, upgrade: Upgrade = lambda _: None) -> None:
        self.path = path
        self._upgrade = upgrade
        if read_only and not path.is_file():
            raise StoreError(_NOTHING.format(path))
        if not read_only:
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                raise StoreError(f"{path}: cannot be made ({error.strerror}); {_ELSEWHERE}") from None
        with self._explained():
            self.connection = self._connect(read_only)
        try:
            self._open(read_only)
        except StoreError:
            self.close()
            raise

    def _open(self, read_only: bool) -> None:
        path = self.path
        with self._explained():
            if not read_only:
                self._make()
            elif self._version() in _UPGRADES:
                Database(path, upgrade=self._upgrade).close()
            found = self._version()
            empty = self.connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if empty:
            raise StoreError(_NOTHING.format(path))
        if found != _VERSION:
            raise StoreError(f"{path}: no run store of this version of unslant; give another file with --store")

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        if read_only:
            uri = self.path.absolute().as_uri()
            connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:  # the log beside it cannot be made: nobody can be writing either
                connection.close()
                connection = sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None)
            return connection
        with suppress(OSError):  # what cannot be made, SQLite cannot open either, and says so
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)

    def _version(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    def _make(self) -> None:
        run = self.connection.execute
        if self._version() == 0 and not run("SELECT 1 FROM sqlite_master").fetchone():
            run("PRAGMA journal_mode = WAL")
            with self.transaction():
                if self._version() == 0:  # nobody else was first
                    self._execute(_SCHEMA)
        if self._version() in _UPGRADES:
            with suppress(OSError):
                self.path.chmod(0o600)
            with self.transaction():
                found = self._version()
                if found in _UPGRADES:  # nobody else was first
                    self._execute(_UPGRADES[found])
                if found == 1:
                    self._upgrade(self.connection)
        # A power cut may undo the last moments, which are then scored again, but never damages the file.
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA cache_size = -65536")
        with self.transaction():
            pass  # tells now, and not after an hour, that nothing can be written

    def _execute(self, script: str) -> None:
        for statement in filter(str.strip, script.split(";\n")):
            self.connection.execute(statement)
        self.connection.execute(f"PRAGMA user_version = {_VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing: what the block writes is kept together, or not at all.

        Raises:
            StoreError: if it cannot be written (disk full, read-only, damaged, or locked for too long).
        """
        with self._explained():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """What the block reads is the store at one moment, whatever other processes write meanwhile."""
        with self._explained():
            self.connection.execute("BEGIN")
            try:
                yield self.connection
            finally:
                self.connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, with its errors explained."""
        with self._explained():
            yield self.connection

    def close(self) -> None:
        """Close the file; the last process to do so folds the log into it."""
        self.connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:  # the latter where damaged text is read
            raise StoreError(f"{self.path}: {_explanation(str(error))}") from error


_NOTHING = "{}: there is no run store here; nothing has been recorded yet"
_ELSEWHERE = "give another file with --store PATH, or run without one (--no-store)"
_KEPT = "what was scored so far is kept, and the same command goes on from there"


def _explanation(message: str) -> str:
    if "full" in message or "disk I/O" in message:
        return (
            f"cannot be written, the disk or a quota is full ({message}); {_KEPT} once there is room, or {_ELSEWHERE}"
        )
    if "readonly" in message or "unable to open" in message:
        return f"cannot be written ({message}); {_KEPT} once it can, or {_ELSEWHERE}"
    if "locked" in message or "busy" in message:
        return f"another process has kept it locked for {BUSY_SECONDS:.0f} s; {_KEPT}"
    return (
        f"not a run store, or damaged ({message}); try unslant runs repair, which keeps what is whole, move it away, "
        f"or {_ELSEWHERE}"
    )
