"""Runs: which command asked for which scores, how far it came, and what it found."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from unslant.errors import InputError
from unslant.store.database import Database

_COLUMNS = "id, command, folder, model, questions, questions_digest, status, message, host, process, started, updated"


@dataclass(frozen=True, slots=True)
class Run:
    """One command that was run; the same command run again in the same folder is the same run.

    Attributes:
        id: eight letters; the first few are enough to name it.
        command: the arguments, without the program's name.
        status: ``running``, ``done``, ``stopped`` (Ctrl-C), ``failed`` (see ``message``) or ``killed`` (it is gone
            without having said so).
        done, total: prompts scored, and prompts asked for so far.
        started, updated: seconds since 1970.
    """

    id: str
    command: tuple[str, ...]
    folder: str
    model: str
    questions: str
    questions_digest: str
    status: str
    message: str
    started: float
    updated: float
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
        words = json.dumps(list(command), ensure_ascii=False)
        run = blake2b(f"{folder}\n{words}".encode(errors="surrogateescape"), digest_size=4).hexdigest()
        now = time.time()
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, '', '', 'running', '', ?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE "
                "SET status = 'running', message = '', host = excluded.host, process = excluded.process, "
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

    def end(self, run: str, status: str, message: str = "") -> None:
        """Note how the run ended."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE runs SET status = ?, message = ?, updated = ? WHERE id = ?", (status, message, time.time(), run)
            )

    def keep_responses(self, run: str, parquet: bytes) -> None:
        """Keep the run's table of responses, as the bytes of a Parquet file."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE runs SET responses = ? WHERE id = ?", (parquet, run))

    def responses(self, run: Run) -> bytes:
        """The table of responses of a finished run, as the bytes of a Parquet file.

        Raises:
            InputError: if the run has not finished.
        """
        with self._database.reading() as connection:
            (found,) = connection.execute("SELECT responses FROM runs WHERE id = ?", (run.id,)).fetchone()
        if found is None:
            raise InputError(
                f"run {run.id} has no responses yet ({run.status}, {run.done:,} of {run.total:,} prompts scored); "
                f"finish it with: unslant runs resume {run.id}"
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

    def remove(self, run: Run) -> None:
        """Forget a run, with every score that no other run has asked for."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE id = ?", (run.id,))
            passes = [row[0] for row in connection.execute("SELECT pass FROM run_passes WHERE run = ?", (run.id,))]
            connection.execute("DELETE FROM run_passes WHERE run = ?", (run.id,))
            kept = {row[0] for row in connection.execute("SELECT DISTINCT pass FROM run_passes")}
            for gone in set(passes) - kept:
                for table, column in (("scores", "pass"), ("states", "pass"), ("passes", "id")):
                    connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (gone,))

    def clear(self) -> None:
        """Forget everything, scores of no run included."""
        with self._database.transaction() as connection:
            for table in ("runs", "run_passes", "scores", "states", "passes"):
                connection.execute(f"DELETE FROM {table}")

    def shrink(self) -> None:
        """Give the space of what was removed back to the disk, unless another process is using the store."""
        with self._database.reading() as connection, suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("VACUUM")

    def _run(self, connection: sqlite3.Connection, row: tuple[object, ...]) -> Run:
        values = dict(zip(_COLUMNS.split(", "), row, strict=True))
        passes = connection.execute(
            "SELECT done, total, identity FROM passes JOIN run_passes ON pass = id "
            "WHERE run = ? AND current ORDER BY id",
            (values["id"],),
        ).fetchall()
        identities = dict.fromkeys(identity for _, _, identity in passes)
        host, process = values.pop("host"), values.pop("process")
        if values["status"] == "running" and host == socket.gethostname() and not _alive(int(str(process))):
            values["status"] = "killed"
        return Run(
            **values | {"command": tuple(json.loads(str(values["command"])))},  # type: ignore[arg-type]
            done=sum(done for done, _, _ in passes),
            total=sum(total for _, total, _ in passes),
            models=tuple(json.loads(identity) for identity in identities),
        )


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
