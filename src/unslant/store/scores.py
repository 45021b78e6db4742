"""Scores in the store.

One call of ``score`` is a *pass*. Which prompts are run together decides the last bits of every score, so a pass is
known by its model and its whole list of prompts: going on with it after a crash runs the same batches as before, and
its scores come out bit for bit as if nothing had happened. Prompts that another pass of the same model has scored are
taken over when a pass begins, and belong to it from then on.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from unslant.arrays import Floats, Ints
from unslant.store.database import Database

KEY_BYTES = 16
_LOOKED_UP = 500  # keys in one query

Row = tuple[int, bytes, Floats]
"""Position in the pass, key of the prompt, and its scores."""


def digest(*parts: bytes) -> bytes:
    """A key of ``KEY_BYTES`` bytes; the parts are told apart."""
    found = blake2b(digest_size=KEY_BYTES)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


@dataclass
class Pass:
    """One call of ``score``, as far as it has come.

    Attributes:
        keys: of its prompts, in order.
        planned: positions that it scores itself, ascending; the others were taken over when it began.
        cost: counts of what it has scored itself, by name, at the moment of the last reading.
    """

    database: Database
    id: int
    keys: Sequence[bytes]
    planned: Ints
    cost: dict[str, Any]

    def stored(self) -> dict[int, Floats]:
        """What is known so far: log-probabilities by position. Reads ``cost`` at the same moment."""
        with self.database.snapshot() as connection:
            self._read_cost(connection)
            rows = connection.execute("SELECT position, logprobs FROM scores WHERE pass = ?", (self.id,))
            return {position: np.frombuffer(blob, dtype="<f8").copy() for position, blob in rows}

    def state(self, stretch: str) -> bytes:
        """What was last written of this stretch; empty if nothing was. Reads ``cost`` at the same moment."""
        with self.database.snapshot() as connection:
            self._read_cost(connection)
            row = connection.execute(
                "SELECT state FROM states WHERE pass = ? AND stretch = ?", (self.id, stretch)
            ).fetchone()
        return row[0] if row else b""

    def _read_cost(self, connection: sqlite3.Connection) -> None:
        (cost,) = connection.execute("SELECT cost FROM passes WHERE id = ?", (self.id,)).fetchone()
        self.cost = json.loads(cost)

    def write(
        self,
        rows: Iterable[tuple[int, Floats]],
        done: int,
        cost: Mapping[str, float],
        states: Mapping[str, tuple[int, bytes]],
    ) -> None:
        """Keep ``rows``, and in the same moment how far the pass has come with them.

        Of two processes at work on the same pass, the one that is ahead says how far it is.

        Args:
            done: scores known with these rows, those taken over among them.
            states: by stretch: its step, and what the engine needs to go on after it.

        Raises:
            StoreError: if the store cannot be written; then none of it is kept.
        """
        with self.database.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?)",
                ((self.id, position, self.keys[position], _blob(scores)) for position, scores in rows),
            )
            connection.execute(
                "UPDATE passes SET done = ?, cost = ? WHERE id = ? AND done < ?",
                (done, json.dumps(cost), self.id, done),
            )
            for stretch, (step, state) in states.items():
                connection.execute(
                    "INSERT INTO states VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET step = excluded.step, state = excluded.state WHERE excluded.step > step",
                    (self.id, stretch, step, state),
                )
            if done == len(self.keys):
                connection.execute("DELETE FROM states WHERE pass = ?", (self.id,))


def open_pass(database: Database, identity: Mapping[str, str], keys: Sequence[bytes], run: str = "") -> Pass:
    """The pass of this model over these prompts, begun now or earlier.

    Args:
        keys: of the prompts, in order, made with the model's identity in them.
        run: the run it belongs to.

    Raises:
        StoreError: if the store cannot be written.
    """
    key = digest(*keys)
    found = _find(database, key, keys)
    known = {} if found else _lookup(database, keys)
    with database.transaction() as connection:
        found = found or _find(database, key, keys)  # another process may have begun it in between
        if found is None:
            planned = np.array([prompt not in known for prompt in keys], dtype=bool)
            bits = zlib.compress(np.packbits(planned).tobytes()) if known else None
            cursor = connection.execute(
                "INSERT INTO passes (key, identity, total, done, planned, cost) VALUES (?, ?, ?, ?, ?, '{}')",
                (key, json.dumps(dict(identity), sort_keys=True), len(keys), len(keys) - int(planned.sum()), bits),
            )
            found = Pass(database, int(cursor.lastrowid or 0), keys, np.flatnonzero(planned), {})
            connection.executemany(
                "INSERT INTO scores VALUES (?, ?, ?, ?)",
                ((found.id, i, prompt, known[prompt]) for i, prompt in enumerate(keys) if prompt in known),
            )
        if run:
            connection.execute("INSERT OR REPLACE INTO run_passes VALUES (?, ?, 1)", (run, found.id))
    return found


def _find(database: Database, key: bytes, keys: Sequence[bytes]) -> Pass | None:
    with database.reading() as connection:
        row = connection.execute("SELECT id, planned, cost FROM passes WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    if row[1] is None:
        planned = np.arange(len(keys))
    else:
        bits = np.frombuffer(zlib.decompress(row[1]), dtype=np.uint8)
        planned = np.flatnonzero(np.unpackbits(bits, count=len(keys)))
    return Pass(database, row[0], keys, planned, json.loads(row[2]))


def _lookup(database: Database, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """Scores of those of the prompts that any pass has scored; of several, the oldest."""
    found: dict[bytes, bytes] = {}
    with database.reading() as connection:
        if connection.execute("SELECT 1 FROM scores LIMIT 1").fetchone() is None:
            return found
        for some in _pieces(sorted(set(keys)), _LOOKED_UP):
            marks = ",".join("?" * len(some))
            rows = connection.execute(
                f"SELECT prompt, logprobs FROM scores WHERE prompt IN ({marks}) ORDER BY pass, position", some
            )
            for prompt, blob in rows:
                found.setdefault(prompt, blob)
    return found


def _pieces(keys: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


def _blob(scores: Floats) -> bytes:
    return np.ascontiguousarray(scores, dtype="<f8").tobytes()
