"""Runs: which command asked for which scores, how far it came, and what it found."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unslant.errors import InputError, UnslantError
from unslant.reach import url_without_secrets
from unslant.store.database import Database, StoreError
from unslant.store.scores import PASS_COLUMNS, checksum, damaged, digest

_COLUMNS = (
    "id, command, folder, model, questions, questions_digest, status, message, host, process, started, updated, score"
)


HEARTBEAT = 10.0
"""Seconds between two signs of life of a run."""
LEASE = 60.0
"""Seconds without one after which a run counts as interrupted, on whatever host it was."""


@dataclass(frozen=True, slots=True)
class Run:
    """One command that was run; the same command run again in the same folder is the same run.

    Attributes:
        id: eight letters; the first few are enough to name it.
        command: the arguments, without the program's name.
        status: ``running``, ``done``, ``stopped`` (Ctrl-C), ``failed`` (see ``message``), ``interrupted`` (no sign of
            life for :data:`LEASE` seconds) or ``damaged`` (its record in the store; ``message`` is the command to mend
            it).
        where: process and host of its last start.
        done, total: prompts with a score or a reply, and prompts asked for so far.
        score: the number that its result begins with, with its name; empty before it is done.
        started, updated: seconds since 1970; while a run is at work, ``updated`` is renewed every :data:`HEARTBEAT`
            seconds.
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
        """Note that a command has begun (again); returns the run's id.

        Raises:
            StoreError: if the store cannot be written.
        """
        words = json.dumps([url_without_secrets(word) for word in command], ensure_ascii=False)
        run = _id(str(folder), words)
        now = time.time()
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, '', '', 'running', '', ?, ?, ?, ?, NULL, NULL, NULL, '') "
                "ON CONFLICT DO UPDATE "
                "SET status = 'running', message = '', score = '', host = excluded.host, process = excluded.process, "
                "updated = excluded.updated",
                (run, words, str(folder), model, socket.gethostname(), os.getpid(), now, now),
            )
            # What an earlier start of this command asked for may no longer be what it asks for.
            connection.execute("UPDATE run_passes SET current = 0 WHERE run = ?", (run,))
        return run

    def note_questions(self, run: str, name: str, digest: str) -> None:
        """Say what the run is asked."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE runs SET questions = ?, questions_digest = ? WHERE id = ?", (name, digest, run))

    def keep_alive(self, run: str) -> Callable[[], None]:
        """Give signs of life of a run, from a thread, until the function returned is called."""
        ended = threading.Event()

        def beat() -> None:
            with suppress(UnslantError), closing(Database(self._database.path)) as database:
                while not ended.wait(HEARTBEAT):
                    with suppress(StoreError), database.transaction() as connection:
                        connection.execute(
                            "UPDATE runs SET updated = ? WHERE id = ? AND status = 'running'", (time.time(), run)
                        )

        threading.Thread(target=beat, daemon=True).start()
        return ended.set

    def end(self, run: str, status: str, message: str = "") -> None:
        """Note how the run ended."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE runs SET status = ?, message = ?, updated = ? WHERE id = ?", (status, message, time.time(), run)
            )

    def note_score(self, run: str, score: str) -> None:
        """Say what the run has found."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE runs SET score = ? WHERE id = ?", (score, run))

    def keep_responses(self, run: str, parquet: bytes) -> None:
        """Keep the run's table of responses, as the bytes of a Parquet file, and what it was made of."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE runs SET responses = ?, checksum = ?, made_of = ? WHERE id = ?",
                (parquet, checksum(parquet), _made_of(connection, run), run),
            )

    def responses(self, run: Run) -> bytes:
        """The table of responses of a finished run, as the bytes of a Parquet file.

        Raises:
            InputError: if the run has not finished, or was started again and asked another model or other questions.
            StoreError: if they are damaged.
        """
        with self._database.reading() as connection:
            query = "SELECT responses, checksum, made_of FROM runs WHERE id = ?"
            row = connection.execute(query, (run.id,)).fetchone()
            if row is None:  # it was found by looking at every run, and not by its id
                raise damaged(self._database, f"the record of run {run.id} is")
            found, check, made_of = row
            same = made_of == _made_of(connection, run.id)
        finish = f"finish it with: unslant runs resume {run.id}"
        if found is None and run.status == "done":
            raise InputError(f"run {run.id} made no single table of responses; repeat its command with --out FOLDER")
        if found is None:
            raise InputError(
                f"run {run.id} has no responses yet ({run.status}, {run.done:,} of {run.total:,} prompts scored); "
                f"{finish}"
            )
        if not same:
            raise InputError(
                f"run {run.id} was started again ({run.status}, {run.done:,} of {run.total:,} prompts scored); the "
                f"responses that are kept were made before, by another model or of other questions; {finish}"
            )
        if checksum(found) != check:
            raise StoreError(
                f"{self._database.path}: the responses of run {run.id} are damaged; make them again from its scores "
                f"with: unslant runs resume {run.id}"
            )
        return bytes(found)

    def all(self) -> list[Run]:
        """Every run, the one last heard of first."""
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY updated DESC, id").fetchall()
            return [self._run(connection, row) for row in rows]

    def get(self, name: str) -> Run:
        """The run whose id is, or begins with, ``name``.

        Raises:
            InputError: if there is none, or more than one.
        """
        found = [run for run in self.all() if run.id.startswith(name)] if name else []
        if len(found) == 1:
            return found[0]
        what = f"several runs begin with {name!r}" if found else f"no run {name!r} in {self._database.path}"
        raise InputError(f"{what}: see unslant runs list")

    def remove(self, run: Run) -> int:
        """Forget a run, with every score and reply that no other run has asked for; returns how many of these."""
        deleted = 0
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE id = ?", (run.id,))
            passes = [row[0] for row in connection.execute("SELECT pass FROM run_passes WHERE run = ?", (run.id,))]
            connection.execute("DELETE FROM run_passes WHERE run = ?", (run.id,))
            kept = {row[0] for row in connection.execute("SELECT DISTINCT pass FROM run_passes")}
            for gone in set(passes) - kept:
                for table, column in (("scores", "pass"), ("replies", "pass"), ("states", "pass"), ("passes", "id")):
                    rows = connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (gone,)).rowcount
                    deleted += rows if table in ("scores", "replies") else 0
        return deleted

    def clear(self) -> int:
        """Forget everything, also what belongs to no run; returns how many scores and replies."""
        tables = ("scores", "replies", "runs", "run_passes", "states", "passes")
        with self._database.transaction() as connection:
            return sum([connection.execute(f"DELETE FROM {table}").rowcount for table in tables][:2])

    def shrink(self) -> None:
        """Give the space of what was removed back to the disk, unless another process is using the store."""
        with self._database.reading() as connection, suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("VACUUM")

    def _run(self, connection: sqlite3.Connection, row: tuple[Any, ...]) -> Run:
        values = dict(zip(_COLUMNS.split(", "), row, strict=True))
        passes = connection.execute(
            f"SELECT {PASS_COLUMNS}, checksum FROM passes JOIN run_passes ON pass = id WHERE run = ? AND current "
            "ORDER BY id",
            (values["id"],),
        ).fetchall()
        values["where"] = f"process {values.pop('process')} on {values.pop('host')}"
        if values["id"] != _id(values["folder"], values["command"]):
            values |= {"status": "damaged", "message": f"unslant runs delete {values['id']}", "command": "[]"}
        elif any(checksum(*some) != check for *some, check in passes):
            values |= {"status": "damaged", "message": "unslant runs repair"}
            passes = []
        elif values["status"] == "running" and time.time() - values["updated"] > LEASE:
            values["status"] = "interrupted"
        values["command"] = tuple(json.loads(values["command"]))
        identities = dict.fromkeys(identity for _, identity, *_ in passes)
        return Run(
            **values,
            done=sum(done for _, _, _, done, *_ in passes),
            total=sum(total for _, _, total, *_ in passes),
            models=tuple(json.loads(identity) for identity in identities),
        )


def _id(folder: str, words: str) -> str:
    return blake2b(f"{folder}\n{words}".encode(errors="surrogateescape"), digest_size=4).hexdigest()


def _made_of(connection: sqlite3.Connection, run: str) -> bytes:
    """A digest of what the run's last start asked: of which model which prompts, and with which answers."""
    (questions,) = connection.execute("SELECT questions_digest FROM runs WHERE id = ?", (run,)).fetchone()
    passes = connection.execute(
        "SELECT key FROM passes JOIN run_passes ON id = pass WHERE run = ? AND current ORDER BY key", (run,)
    )
    return digest(questions.encode(), *(key for (key,) in passes))


def vouch_for_responses(connection: sqlite3.Connection) -> None:
    """Of runs recorded before responses carried it: note what those of finished runs were made of."""
    query = "SELECT id, responses FROM runs WHERE status = 'done' AND responses IS NOT NULL"
    for run, responses in connection.execute(query).fetchall():
        connection.execute(
            "UPDATE runs SET checksum = ?, made_of = ? WHERE id = ?",
            (checksum(responses), _made_of(connection, run), run),
        )
