"""The file of a store: its tables, with a checksum over all columns in every row, and whether its place is safe."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

VERSION = 6
"""Version of the tables. Every checksum includes it: a row of another version is never read as one of this version."""
APPLICATION = 0x756E736C
"""SQLite's ``application_id`` of a store, which tells it from the database of another program."""
_KEY_BYTES = 16
PAGE = 4096
"""Bytes of a page; not the default of SQLite, which depends on its build: a repair must know it without the header."""

SCHEMA = """
CREATE TABLE passes (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,       -- digest of the model's identity and of every prompt's tokens, in order
    kind TEXT NOT NULL,             -- the table that holds its results
    identity TEXT NOT NULL,         -- the model's identity, as JSON
    total INTEGER NOT NULL,
    done INTEGER NOT NULL,
    planned BLOB,                   -- bits of the positions it scores itself; null: all of them
    cost TEXT NOT NULL,             -- of what it has scored itself, as JSON
    checksum INTEGER NOT NULL
);
CREATE TABLE scores (
    pass INTEGER NOT NULL,
    position INTEGER NOT NULL,
    prompt BLOB NOT NULL,           -- digest of the model's identity and the prompt's tokens
    logprobs BLOB NOT NULL,         -- float64, little-endian
    checksum INTEGER NOT NULL,
    PRIMARY KEY (pass, position)
) WITHOUT ROWID;
CREATE INDEX scores_by_prompt ON scores (prompt);
CREATE TABLE replies (
    pass INTEGER NOT NULL,
    position INTEGER NOT NULL,
    prompt BLOB NOT NULL,           -- digest of the model's identity, the prompt and which of its samples this is
    reply BLOB NOT NULL,            -- JSON
    checksum INTEGER NOT NULL,
    PRIMARY KEY (pass, position)
) WITHOUT ROWID;
CREATE INDEX replies_by_prompt ON replies (prompt);
CREATE TABLE states (
    pass INTEGER NOT NULL,
    stretch TEXT NOT NULL,
    step INTEGER NOT NULL,
    state BLOB NOT NULL,            -- what the engine needs to continue after that step
    checksum INTEGER NOT NULL,
    PRIMARY KEY (pass, stretch)
);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,            -- digest of folder and command
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
    score TEXT NOT NULL,            -- the number that its result begins with
    made_of BLOB,                   -- digest of the questions and the passes behind its responses; null: none are kept
    checksum INTEGER NOT NULL
);
CREATE TABLE responses (            -- apart from runs, whose rows are written every few seconds
    run TEXT PRIMARY KEY,
    parquet BLOB NOT NULL,          -- the finished table
    checksum INTEGER NOT NULL
);
CREATE TABLE run_passes (
    run TEXT NOT NULL,
    pass INTEGER NOT NULL,
    current INTEGER NOT NULL,       -- 1: the run's last start asked for it; 0: an earlier one did
    checksum INTEGER NOT NULL,
    PRIMARY KEY (run, pass)
) WITHOUT ROWID;
"""

TABLES = {
    table: tuple(re.findall(r"^    ([a-z_]+) (?!checksum)", body.partition("checksum")[0], re.M))
    for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", SCHEMA, re.S)
}
"""Table -> columns, without ``checksum``, the last. Keys come first, as in the records that a repair reads."""

RESULTS = ("scores", "replies")
"""Tables with a row for each prompt."""
_SEEDS = {table: zlib.crc32(f"unslant {VERSION} {table}".encode()) for table in TABLES}


def checksum(table: str, *values: Any) -> int:
    """CRC-32 of a row: its table, the version of the tables, and its columns in order."""
    # SQLite checks no content: without a sum of our own, a flipped bit in a score would be read as another score.
    if table in RESULTS:  # in one call: there are millions of them
        return zlib.crc32(b"%a %a %b%b" % values, _SEEDS[table])
    crc = _SEEDS[table]
    for value in values:
        if isinstance(value, int | float):
            value = float(value)  # SQLite stores 2.0 as 2
        data = value if isinstance(value, bytes) else repr(value).encode(errors="surrogatepass")
        # The length goes in first, so that moving a byte from one column to the next changes the sum.
        crc = zlib.crc32(data, zlib.crc32(len(data).to_bytes(8, "little"), crc))
    return crc


def is_whole(table: str, row: tuple[object, ...] | list[object]) -> bool:
    """Whether a row, its checksum last, is as it was written."""
    *values, check = row
    try:
        return checksum(table, *values) == check
    except TypeError:  # damage can make a text or a number of bytes
        return False


def digest(*parts: bytes) -> bytes:
    """A key of 16 bytes; lengths count, so (ab, c) and (a, bc) have different digests."""
    key = blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        key.update(len(part).to_bytes(8, "little"))
        key.update(part)
    return key.digest()


def columns(table: str, prefix: str = "") -> str:
    """The columns of a table with its checksum, for a query."""
    return ", ".join(prefix + column for column in (*TABLES[table], "checksum"))


def select(connection: sqlite3.Connection, table: str, where: str = "TRUE", *values: object) -> sqlite3.Cursor:
    """Rows with their checksums; the caller checks each with :func:`is_whole` before it uses it."""
    return connection.execute(f"SELECT {columns(table)} FROM {table} WHERE {where}", values)


def insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[object]], conflict: str = "IGNORE"
) -> None:
    """Write rows, each with its checksum last; ``conflict`` says what to do with a row whose key exists."""
    marks = ", ".join("?" * (len(TABLES[table]) + 1))
    connection.executemany(f"INSERT OR {conflict} INTO {table} VALUES ({marks})", rows)


def signed(table: str, *values: object) -> tuple[object, ...]:
    """A row with its checksum."""
    return (*values, checksum(table, *values))


def vouch(connection: sqlite3.Connection, table: str, where: str, *values: object) -> None:
    """Renew the checksums of some rows; scores and replies never change, so never need it.

    The caller must have checked the rows before: a new checksum over a damaged row would hide the damage for ever.
    """
    names = ", ".join(TABLES[table])
    connection.execute(f"UPDATE {table} SET checksum = row_checksum('{table}', {names}) WHERE {where}", values)


def definitions(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """Tables and indexes as a file defines them."""
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def expected_definitions() -> set[tuple[str, ...]]:
    """Tables and indexes as they should be defined."""
    with closing(sqlite3.connect(":memory:")) as connection:
        make(connection)
        return definitions(connection)


def make(connection: sqlite3.Connection) -> None:
    """Make the tables, within the caller's transaction."""
    for statement in filter(str.strip, SCHEMA.split(";\n")):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


# Where the file is: whether it has one name only, and whether locks work on its file system

MOUNTS = Path("/proc/self/mountinfo")
"""The list of mounts (Linux)."""
_NETWORK = frozenset(
    "9p acfs afs beegfs ceph cifs coda davfs drvfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs "
    "prl_fs pvfs2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs fuse".split()
)
JOURNALS = ("-wal", "-shm", "-journal")
"""Name endings of the files that SQLite keeps next to a database."""

FileId = tuple[int, int]


def file_id(path: str | Path) -> FileId | None:
    """Device and inode of a file, the same under all its names; None if there is no such file."""
    try:  # not by opening it: closing a descriptor of a store drops this process's locks on it
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def sibling(path: Path, end: str) -> Path:
    """The file next to ``path`` whose name has this ending added."""
    return path.parent / (path.name + end)  # with_name refuses "/"


def unfit(path: Path) -> str | None:
    """Why a file cannot be a store, such as that it has several names; None if it can."""
    # SQLite finds the log by the name of the file: under two names a file has two logs, and loses what is in one of
    # them. Symbolic links are no problem, they are resolved before a store is opened.
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return "is not a file: move it away"
    if 0 < status.st_size < 512:  # the smallest page: SQLite takes it for an empty database, and writes over it
        return "is not a run store: move it away"
    if status.st_nlink > 1:
        same = [name for name in os.listdir(path.parent) if file_id(path.parent / name) == file_id(path)]
        others = "".join(f", one of them {name}" for name in same if name != path.name)
        return f"has {status.st_nlink} names (hard links){others}; remove all but one, or make copies of it"
    if _mount(path)[0] == path:
        return "is mounted as a single file, which has a log of its own in each place; mount its folder"
    return None


def network(path: Path) -> str | None:
    """The type of the network file system that a path is on; None for a local disk."""
    kind = _mount(path)[1]  # anything in user space (FUSE) counts as a network: what is behind it cannot be known
    return kind if kind.partition(".")[0] in _NETWORK else None


def _mount(path: Path) -> tuple[Path, str]:
    """The mount point of a path, and the type of its file system; empty where the system does not list mounts."""
    mount, kind = Path("/"), ""
    with suppress(OSError):  # not Linux
        for line in MOUNTS.read_bytes().splitlines():
            before, _, after = line.partition(b" - ")
            for word in before.split(b" ")[4:5]:
                named = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), word)  # spaces are \040
                point = Path(os.fsdecode(named))
                if path.is_relative_to(point) and len(point.parts) >= len(mount.parts):  # a later one hides an earlier
                    mount, kind = point, os.fsdecode(after.partition(b" ")[0])
    return mount, kind
