"""Runs: which command asked for which scores, how far it has come, and its first number."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.reach import url_without_secrets
from unslant.store.database import Database, StoreError, damaged
from unslant.store.tables import TABLES, columns, digest, insert, is_whole, select, signed, vouch

_REPAIR = "unslant runs repair"

HEARTBEAT = 10.0
"""Seconds between two heartbeats of a run."""
LEASE = 60.0
"""Seconds without a heartbeat after which a run counts as interrupted, on any host."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One command that was run; the same command run again in the same folder is the same run.

    Attributes:
        id: eight letters; the first few are enough to name it.
        command: the arguments, without the program's name.
        status: ``running``, ``done``, ``stopped`` (Ctrl-C, SIGTERM), ``failed`` (see ``message``), ``interrupted`` (no
            heartbeat for :data:`LEASE` seconds) or ``damaged`` (its record in the store; ``message`` is the command
            that repairs it).
        where: process and host of its last start.
        done, total: prompts with a score or a reply, and prompts planned so far.
        score: the first number of its result, with its name; empty before it is done.
        started, updated: seconds since 1970; a run at work renews ``updated`` every :data:`HEARTBEAT` seconds.
    """

    id: str
    command: tuple[str, ...]
    folder: str
    model: str
    questions: str
    questions_digest: str
    status: str
    message: str
    where: str
    started: float
    updated: float
    score: str
    done: int
    total: int
    models: tuple[Mapping[str, str], ...]


class Runs:
    """The runs in one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(self, command: Sequence[str], folder: Path, model: str) -> str:
        """Record that a command begins, perhaps again; returns the run's id; StoreError if that cannot be written."""
        place = str(folder).encode(errors="backslashreplace").decode()  # its name may have bytes that are not UTF-8
        words = json.dumps([url_without_secrets(word) for word in command], ensure_ascii=False)
        run = run_id(place, words)
        now = time.time()
        with self._database.transaction() as connection:
            if not _row_is_whole(connection, run):
                connection.execute("DELETE FROM runs WHERE id = ?", (run,))
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, '', '', 'running', '', ?, ?, ?, ?, '', NULL, 0) "
                "ON CONFLICT DO UPDATE "
                "SET status = 'running', message = '', score = '', host = excluded.host, process = excluded.process, "
                "updated = excluded.updated",
                (run, words, place, model, *_me(), now, now),
            )
            vouch(connection, "runs", "id = ?", run)
            # An earlier start of this command may have asked another model or other questions of the same names.
            asked = select(connection, "run_passes", "run = ?", run).fetchall()
            connection.execute("DELETE FROM run_passes WHERE run = ?", (run,))
            earlier = (signed("run_passes", *row[:2], 0) for row in asked if is_whole("run_passes", row))
            insert(connection, "run_passes", earlier)
        return run

    def keep_alive(self, run: str) -> Callable[[], None]:
        """Send heartbeats of a run from a thread, until the returned function is called."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(HEARTBEAT):
                with suppress(StoreError):  # the run itself meets the same error, and raises it
                    self.note(run, {"updated": time.time()}, f"status = 'running' AND {_MINE}", *_me())

        def end() -> None:
            ended.set()
            thread.join()

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        return end

    def end(self, run: str, status: str, message: str = "") -> None:
        """Record how the run ended; unless it is done, only the process that started it last may record that."""
        rest = ("TRUE",) if status == "done" else (_MINE, *_me())
        self.note(run, {"status": status, "message": message, "updated": time.time()}, *rest)

    def note(self, run: str, values: Mapping[str, object], where: str = "TRUE", *rest: object) -> None:
        """Record columns of a run, such as the ``score`` of its result, if ``where`` holds of it."""
        with self._database.transaction() as connection:
            self._change(connection, run, values, where, *rest)

    def _change(
        self, connection: sqlite3.Connection, run: str, values: Mapping[str, object], where: str, *rest: object
    ) -> None:
        if not _row_is_whole(connection, run):
            raise damaged(self._database, f"the record of run {run} is")
        changes = ", ".join(f"{column} = ?" for column in values)
        connection.execute(f"UPDATE runs SET {changes} WHERE id = ? AND {where}", (*values.values(), run, *rest))
        vouch(connection, "runs", "id = ?", run)

    def keep_responses(self, run: str, parquet: bytes) -> None:
        """Store the run's table of responses, as the bytes of a Parquet file, and a digest of what it was made of."""
        with self._database.transaction() as connection:
            insert(connection, "responses", [signed("responses", run, parquet)], "REPLACE")
            self._change(connection, run, {"made_of": _made_of(connection, run)}, "TRUE")

    def responses(self, run: RecordedRun) -> bytes:
        """The table of responses of a finished run, as the bytes of a Parquet file.

        Raises:
            InputError: if the run has not finished, or was started again and asked another model or other questions.
            StoreError: if they are damaged.
        """
        with self._database.reading() as connection:
            row = connection.execute("SELECT made_of FROM runs WHERE id = ?", (run.id,)).fetchone()
            if row is None:  # ``get`` found it in a scan of the table; the index that leads from an id is damaged
                raise damaged(self._database, f"the record of run {run.id} is")
            (made_of,) = row
            same = made_of == _made_of(connection, run.id)
            table = select(connection, "responses", "run = ?", run.id).fetchone()
        so_far = f"({run.status}, {run.done:,} of {run.total:,} prompts scored)"
        finish = f"finish it with: unslant runs resume {run.id}"
        if made_of is None and run.status == "done":
            raise InputError(f"run {run.id} made no single table of responses; repeat its command with --out FOLDER")
        if made_of is None:
            raise InputError(f"run {run.id} has no responses yet {so_far}; {finish}")
        if not same:
            raise InputError(
                f"run {run.id} was started again {so_far}; the stored responses are older, and of "
                f"another model or other questions; {finish}"
            )
        if table is None or not is_whole("responses", table):
            raise StoreError(
                f"{self._database.path}: the responses of run {run.id} are damaged; make them again from its scores "
                f"with: unslant runs resume {run.id}"
            )
        return bytes(table[1])

    def all(self) -> list[RecordedRun]:
        """Every run, latest heartbeat first."""
        with self._database.reading() as connection:
            rows = select(connection, "runs", "TRUE ORDER BY updated DESC, id").fetchall()
            return [self._run(connection, row) for row in rows]

    def get(self, name: str) -> RecordedRun:
        """The run whose id is, or begins with, ``name``; InputError if there is none, or more than one."""
        matches = [run for run in self.all() if run.id.startswith(name)] if name else []
        if len(matches) == 1:
            return matches[0]
        what = f"several runs begin with {name!r}" if matches else f"no run {name!r} in {self._database.path}"
        raise InputError(f"{what}: see unslant runs list")

    def remove(self, run: RecordedRun) -> int:
        """Delete a run, with every score and reply that no other run uses; returns the number of these."""
        deleted = 0
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE id = ?", (run.id,))
            connection.execute("DELETE FROM responses WHERE run = ?", (run.id,))
            passes = set(connection.execute("SELECT pass FROM run_passes WHERE run = ?", (run.id,)))
            connection.execute("DELETE FROM run_passes WHERE run = ?", (run.id,))
            for unused in passes - set(connection.execute("SELECT DISTINCT pass FROM run_passes")):
                for table, column in (("scores", "pass"), ("replies", "pass"), ("states", "pass"), ("passes", "id")):
                    rows = connection.execute(f"DELETE FROM {table} WHERE {column} = ?", unused).rowcount
                    deleted += rows if table in ("scores", "replies") else 0
        return deleted

    def clear(self) -> int:
        """Delete everything, including scores that belong to no run; returns the number of scores and replies."""
        with self._database.transaction() as connection:
            deleted = {table: connection.execute(f"DELETE FROM {table}").rowcount for table in TABLES}
        return deleted["scores"] + deleted["replies"]

    def shrink(self) -> None:
        """Give the space of what was removed back to the disk, unless another process is using the store."""
        with self._database.reading() as connection, suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("VACUUM")

    def _run(self, connection: sqlite3.Connection, row: tuple[Any, ...]) -> RecordedRun:
        values = dict(zip(TABLES["runs"], row, strict=False))
        passes = connection.execute(
            f"SELECT {columns('passes', 'passes.')} FROM passes JOIN run_passes ON pass = id WHERE run = ? AND current "
            "ORDER BY id",
            (values["id"],),
        ).fetchall()
        values["where"] = f"process {values.pop('process')} on {values.pop('host')}"
        del values["made_of"]
        if not is_whole("runs", row) or values["id"] != run_id(values["folder"], values["command"]):
            values |= {"status": "damaged", "message": _REPAIR, "command": "[]", "score": ""}
        elif not all(is_whole("passes", some) for some in passes):
            values |= {"status": "damaged", "message": _REPAIR}
            passes = []
        elif values["status"] == "running" and abs(time.time() - values["updated"]) > LEASE:
            # A process number proves nothing: the process may be on another machine, or another program may have its
            # number. abs: if the clock was set back, a run at work soon gives another sign of life.
            values["status"] = "interrupted"
        values["command"] = tuple(json.loads(values["command"]))
        identities = dict.fromkeys(identity for _, _, _, identity, *_ in passes)
        return RecordedRun(
            **values,
            done=sum(some[5] for some in passes),
            total=sum(some[4] for some in passes),
            models=tuple(json.loads(identity) for identity in identities),
        )


# A run that was taken over belongs to the process that took it: the earlier process must not end it.
_MINE = "host = ? AND process = ?"


def _me() -> tuple[str, int]:
    return socket.gethostname(), os.getpid()


def _row_is_whole(connection: sqlite3.Connection, run: str) -> bool:
    """Whether the record of a run is intact, or missing: a damaged one must not get a new checksum."""
    row = select(connection, "runs", "id = ?", run).fetchone()
    return row is None or is_whole("runs", row)


def run_id(folder: str, words: str) -> str:
    """The id of a command, as JSON, in a folder."""
    return blake2b(f"{folder}\n{words}".encode(errors="surrogateescape"), digest_size=4).hexdigest()


def _made_of(connection: sqlite3.Connection, run: str) -> bytes:
    """A digest of what the run's last start asked: model, prompts and answers."""
    (questions,) = connection.execute("SELECT questions_digest FROM runs WHERE id = ?", (run,)).fetchone()
    passes = connection.execute(
        "SELECT key FROM passes JOIN run_passes ON id = pass WHERE run = ? AND current ORDER BY key", (run,)
    )
    return digest(questions.encode(), *(key for (key,) in passes))
