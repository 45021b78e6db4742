"""The run store: every score and reply as it arrives, in one crash-safe file that several processes may share.

:class:`Store` opens passes, looks up what others have scored, and recognises models by their fingerprints.

One call of ``score`` or ``generate`` is a *pass*. The prompts that run together decide the last bits of every score, so
the key of a pass is its model and its whole list of prompts. A pass that resumes after a crash runs the same batches
as before, and its scores are bit for bit those of a run without the crash. It takes over the scores that other passes
of the model have when it begins, and claims the rest then: scores looked up later would change its batches. A reply
does not depend on other prompts of its call, so a call takes over all replies that there are when it begins or resumes.

Rows are checked against their checksums when read: a damaged row is an error that names the command to repair it
(:mod:`unslant.store.repair`), never a score.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from unslant.arrays import Bools, Floats, Ints, are_logprobs
from unslant.errors import ModelError
from unslant.responses.provenance import known_as
from unslant.store.database import Database, StoreError, damaged, default_path
from unslant.store.runs import RecordedRun, Runs
from unslant.store.tables import TABLES, digest, insert, is_whole, select, signed, vouch

__all__ = ["Kept", "KeptReply", "Pass", "RecordedRun", "Store", "StoreError", "default_path", "digest"]


@dataclass(frozen=True)
class Kept:
    """The scores of one prompt, the places of upper bounds among them, and the model and system the server named."""

    table: ClassVar = "scores"
    independent: ClassVar = False

    logprobs: Floats
    bounds: tuple[int, ...] = ()
    by: tuple[str, str] = ("", "")

    def to_bytes(self) -> bytes:
        """Eight bytes a score; then, for bounds and names, JSON, and its length in two bytes."""
        # A store holds millions of rows, and nearly all have scores alone: no byte is spent on saying so. Padding keeps
        # the length of other rows off multiples of 8, which tells the two apart.
        blob = np.ascontiguousarray(self.logprobs, dtype="<f8").tobytes()
        more = ({"bounds": self.bounds} if self.bounds else {}) | ({"by": self.by} if any(self.by) else {})
        if not more:
            return blob
        text = json.dumps(more).encode()
        text += b" " * ((len(text) + 2) % 8 == 0)
        return blob + text + len(text).to_bytes(2, "little")

    @classmethod
    def from_bytes(cls, blob: bytes) -> Kept:
        """What :meth:`to_bytes` wrote."""
        whole = len(blob) - (int.from_bytes(blob[-2:], "little") + 2 if len(blob) % 8 else 0)
        more = json.loads(blob[whole:-2]) if whole < len(blob) else {}
        logprobs = np.frombuffer(blob[:whole], dtype="<f8").copy()
        return cls(logprobs, tuple(more.get("bounds", ())), tuple(more.get("by", ("", ""))))


@dataclass(frozen=True)
class KeptReply:
    """The reply to one prompt.

    Attributes:
        declined: whether the provider reports that the model declined.
        tokens: of the prompt, of the reply, and of the reasoning in the reply; None where unknown.
        by: the model and the system that the reply named.
        cut: whether the reply reached the token limit.
    """

    table: ClassVar = "replies"
    independent: ClassVar = True

    text: str
    declined: bool = False
    tokens: tuple[int | None, int | None, int | None] = (None, None, None)
    by: tuple[str, str] = ("", "")
    cut: bool = False

    def to_bytes(self) -> bytes:
        """JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, blob: bytes) -> KeptReply:
        """What :meth:`to_bytes` wrote."""
        data = json.loads(blob)
        return cls(data["text"], data["declined"], tuple(data["tokens"]), tuple(data["by"]), data["cut"])


# ``table`` holds them; ``independent``: they do not depend on what else the call asked.
Result = TypeVar("Result", Kept, KeptReply)


@dataclass
class Pass(Generic[Result]):
    """One call of ``score`` or ``generate``, as far as it has come.

    Attributes:
        kind: the class of its results.
        key: digest of ``keys``, which identifies the pass.
        keys: of its prompts, in order.
        planned: positions that it scores itself, ascending; it took over the others when it began.
        cost: counts of what it has scored itself, by name, as of the last reading.
        done: results as of the last reading, including those taken over.
    """

    database: Database
    kind: type[Result]
    id: int
    key: bytes
    keys: Sequence[bytes]
    planned: Ints
    cost: dict[str, Any]
    done: int = 0

    def stored(self) -> dict[int, Result]:
        """Results so far, by position; updates ``cost`` and ``done``; StoreError if a result is damaged."""
        results, wrong, table = {}, 0, self.kind.table
        with self.database.snapshot() as connection:
            self._read_progress(connection)
            for row in select(connection, table, "pass = ?", self.id):
                _, position, prompt, blob, _ = row
                asked = is_whole(table, row) and 0 <= position < len(self.keys) and prompt == self.keys[position]
                if asked:
                    results[position] = self.kind.from_bytes(blob)
                wrong += not asked
        if wrong:
            raise damaged(self.database, f"{wrong:,} of {len(results) + wrong:,} stored {table} are")
        return results

    def state(self, stretch: str) -> bytes:
        """The last state written for this stretch, empty if there is none; updates ``cost`` and ``done``."""
        # In one snapshot: a state and a count of different moments would skip prompts, or ask them twice.
        with self.database.snapshot() as connection:
            self._read_progress(connection)
            row = select(connection, "states", "pass = ? AND stretch = ?", self.id, stretch).fetchone()
        return bytes(row[3]) if row and is_whole("states", row) else b""  # a damaged state costs only time

    def _read_progress(self, connection: sqlite3.Connection) -> None:
        row = pass_row(self.database, connection, "id", self.id)
        if not row:
            raise damaged(self.database, "the record of a call is")
        self.cost, self.done = json.loads(row["cost"]), row["done"]

    def write(
        self,
        rows: Iterable[tuple[int, Result]],
        done: int,
        cost: Mapping[str, float] = MappingProxyType({}),
        states: Mapping[str, tuple[int, bytes]] = MappingProxyType({}),
    ) -> None:
        """Store ``rows``, and in the same transaction how far the pass has come with them.

        Args:
            done: results including these rows and those taken over.
            states: stretch -> its step, and what the engine needs to continue after it.

        Raises:
            StoreError: if the store cannot be written; then nothing of it is stored.
            ModelError: if one of the scores is not a log-probability.
        """
        with self.database.transaction() as connection:
            before = pass_row(self.database, connection, "id", self.id)
            if before.get("key") != self.key:
                raise StoreError(
                    f"{self.database.path}: the run was deleted by another command while it was at work; run it again"
                )
            # INSERT OR IGNORE: another process on the same pass may have written some of them, with equal scores.
            insert(connection, self.kind.table, (self._row(position, result) for position, result in rows))
            # done < ?: of two processes on the same pass, the one behind must not set the other back.
            updated = connection.execute(
                "UPDATE passes SET done = ?, cost = ? WHERE id = ? AND done < ?",
                (done, json.dumps(dict(cost)), self.id, done),
            )
            if updated.rowcount:
                vouch(connection, "passes", "id = ?", self.id)
            # Nobody would delete a state written after another process has finished the pass.
            for stretch, (step, state) in states.items() if before["done"] < len(self.keys) else ():
                connection.execute(
                    "INSERT INTO states VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET step = excluded.step, state = excluded.state, checksum = excluded.checksum "
                    "WHERE excluded.step > step",
                    signed("states", self.id, stretch, step, state),
                )
            if done == len(self.keys):
                connection.execute("DELETE FROM states WHERE pass = ?", (self.id,))

    def _row(self, position: int, result: Kept | KeptReply) -> tuple[object, ...]:
        if isinstance(result, Kept) and not are_logprobs(result.logprobs):
            scores = result.logprobs.tolist()
            raise ModelError(f"prompt {position + 1} got {scores}: not log-probabilities, so not stored")
        return signed(result.table, self.id, position, self.keys[position], result.to_bytes())


def pass_row(database: Database, connection: sqlite3.Connection, column: str, value: object) -> dict[str, Any]:
    """The record of a pass, column -> value; empty if there is none; StoreError if it is damaged."""
    row = select(connection, "passes", f"{column} = ?", value).fetchone()
    if row is not None and not is_whole("passes", row):
        raise damaged(database, "the record of a call is")
    return dict(zip(TABLES["passes"], row, strict=False)) if row else {}


def planned_positions(bits: bytes | None, total: int) -> Ints:
    """Positions from the column ``planned``."""
    if bits is None:
        return np.arange(total)
    return np.flatnonzero(np.unpackbits(np.frombuffer(zlib.decompress(bits), dtype=np.uint8), count=total))


def planned_bits(planned: Bools) -> bytes:
    """The column ``planned`` for positions that are true."""
    return zlib.compress(np.packbits(planned).tobytes())


_LOOKED_UP = 500
"""Keys in one query: SQLite takes 999 variables in its oldest builds."""


class Store:
    """Scores, replies and runs in one file; use it as a context manager.

    :class:`~unslant.models.stored.StoredModel` and :class:`~unslant.models.chat.StoredChat` write to it.

    Several processes may use one file at once. A process killed at any moment, or a power cut, leaves it intact.

    Args:
        path: the file; by default the user's own (see :func:`default_path`).
        read_only: open it without writing to it.

    Raises:
        StoreError: if it cannot be opened.

    Example::

        with Store(read_only=True) as store:
            print([run.id for run in store.runs.all()])
    """

    def __init__(self, path: str | Path | None = None, *, read_only: bool = False) -> None:
        self.path = Path(os.path.expanduser(path)) if path is not None else default_path()
        self._database = Database(self.path, read_only=read_only)
        self.runs = Runs(self._database)

    def open_pass(
        self, kind: type[Result], identity: Mapping[str, str], keys: Sequence[bytes], run: str = ""
    ) -> Pass[Result]:
        """The pass of this model over these prompts, begun now or earlier.

        Args:
            kind: the class of its results.
            keys: of the prompts, in order; each includes the model's identity.
            run: the run it belongs to.

        Raises:
            StoreError: if the store cannot be written.
        """
        key = digest(*keys)
        opened = self._find(kind, key, keys)
        # Before the transaction, which keeps every other writer waiting. What others write in between is asked again.
        blobs = {} if opened and not kind.independent else self._lookup(kind, keys)
        with self._database.transaction() as connection:
            opened = opened or self._find(kind, key, keys)  # another process may have begun it in between
            if opened is None:
                # The pass claims its prompts for good before it asks any: a resumed pass must not look up again, since
                # other batches would change the last bits of its scores.
                planned = np.array([prompt not in blobs for prompt in keys], dtype=bool)
                bits = planned_bits(planned) if blobs else None
                taken_over = len(keys) - int(planned.sum())
                values = (None, key, kind.table, _text(identity), len(keys), taken_over, bits, "{}", 0)
                number = connection.execute(f"INSERT INTO passes VALUES ({', '.join('?' * 9)})", values).lastrowid or 0
                vouch(connection, "passes", "id = ?", number)
                opened = Pass(self._database, kind, number, key, keys, np.flatnonzero(planned), {})
            elif not kind.independent:
                blobs = {}
            rows = ((i, prompt, blobs[prompt]) for i, prompt in enumerate(keys) if prompt in blobs)
            insert(connection, kind.table, (signed(kind.table, opened.id, *row) for row in rows))
            if run:
                insert(connection, "run_passes", [signed("run_passes", run, opened.id, 1)], "REPLACE")
        return opened

    def _find(self, kind: type[Result], key: bytes, keys: Sequence[bytes]) -> Pass[Result] | None:
        with self._database.reading() as connection:
            if not (row := pass_row(self._database, connection, "key", key)):
                return None
        planned = planned_positions(row["planned"], len(keys))
        return Pass(self._database, kind, row["id"], key, keys, planned, json.loads(row["cost"]))

    def _lookup(self, kind: type[Result], keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What any pass has stored of these prompts; of several passes, the oldest counts."""
        blobs: dict[bytes, bytes] = {}
        with self._database.reading() as connection:
            # looking a million prompts up in an empty table takes seconds
            if connection.execute(f"SELECT 1 FROM {kind.table} LIMIT 1").fetchone() is None:
                return blobs
            for some in _pieces(keys):
                marks = ",".join("?" * len(some))
                for row in select(connection, kind.table, f"prompt IN ({marks}) ORDER BY pass, position", *some):
                    if not is_whole(kind.table, row):
                        raise damaged(self._database, f"one of the stored {kind.table} is")
                    blobs.setdefault(row[2], row[3])
        return blobs

    def _identities(self) -> Iterator[str]:
        """Every identity in the store, as JSON, the latest first."""
        with self._database.reading() as connection:
            rows = select(connection, "passes", "TRUE ORDER BY id DESC").fetchall()
        yield from dict.fromkeys(row[3] for row in rows if is_whole("passes", row))

    def known_as(self, identity: Mapping[str, str]) -> Mapping[str, str]:
        """The identity under which the store knows this model."""
        return known_as(identity, self._identities())

    def latest(self, address: Mapping[str, str]) -> Mapping[str, str] | None:
        """The latest identity that has these entries; None if there is none."""
        identities = map(json.loads, self._identities())
        return next((identity for identity in identities if address.items() <= identity.items()), None)

    def forget(self, identity: Mapping[str, str]) -> None:
        """Drop every score and reply of a model that now gives different ones."""
        with self._database.transaction() as connection:
            for row in select(connection, "passes", "identity = ?", _text(identity)).fetchall():
                if not is_whole("passes", row):
                    raise damaged(self._database, "the record of a call is")
                for table in ("scores", "replies", "states"):
                    connection.execute(f"DELETE FROM {table} WHERE pass = ?", row[:1])
                connection.execute("UPDATE passes SET done = 0, planned = NULL, cost = '{}' WHERE id = ?", row[:1])
                vouch(connection, "passes", "id = ?", row[0])

    def drop(self, keys: Sequence[bytes]) -> None:
        """Drop the scores of some prompts, by their keys; they are then asked again."""
        with self._database.transaction() as connection:
            passes: set[int] = set()
            for some in _pieces(keys):
                where = f"FROM scores WHERE prompt IN ({','.join('?' * len(some))})"
                passes.update(number for (number,) in connection.execute(f"SELECT DISTINCT pass {where}", some))
                connection.execute(f"DELETE {where}", some)
            for number in passes:
                pass_row(self._database, connection, "id", number)  # StoreError if it is damaged
                query = "UPDATE passes SET done = (SELECT count(*) FROM scores WHERE pass = ?) WHERE id = ?"
                connection.execute(query, (number, number))
                vouch(connection, "passes", "id = ?", number)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _text(identity: Mapping[str, str]) -> str:
    """An identity as the store holds it."""
    return json.dumps(dict(identity), sort_keys=True)


def _pieces(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The distinct keys, sorted, in groups that fit into one query."""
    distinct = sorted(set(keys))
    for start in range(0, len(distinct), _LOOKED_UP):
        yield distinct[start : start + _LOOKED_UP]
