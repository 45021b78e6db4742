"""Scores in the store, and what they share with replies (:mod:`unslant.store.replies`).

One call of ``score`` or ``generate`` is a *pass*. Which prompts are run together decides the last bits of every score,
so a pass is known by its model and its whole list of prompts: going on with it after a crash runs the same batches as
before, and its scores come out bit for bit as if nothing had happened. Prompts that another pass of the same model has
scored are taken over when a pass begins, and belong to it from then on.

Every row carries a checksum, and what is read is checked: a damaged row is an error that names the command to repair it
(:mod:`unslant.store.repair`), never a score.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from unslant.arrays import Bools, Floats, Ints, are_logprobs
from unslant.errors import ModelError
from unslant.store.database import Database, StoreError
from unslant.store.replies import KeptReply
from unslant.store.tables import checksum, columns, is_whole, result_checksum, vouch

KEY_BYTES = 16
_LOOKED_UP = 500  # keys in one query
_PASS_COLUMNS = columns("passes")


@dataclass(frozen=True)
class Kept:
    """The scores of one prompt, which of them are only upper bounds, and the model and system that the reply named."""

    table: ClassVar = "scores"
    column: ClassVar = "logprobs"
    independent: ClassVar = False

    logprobs: Floats
    bounds: tuple[int, ...] = ()
    by: tuple[str, str] = ("", "")

    def to_bytes(self) -> bytes:
        """Eight bytes a score. If there is more to say, JSON follows, and last its length in two bytes."""
        blob = np.ascontiguousarray(self.logprobs, dtype="<f8").tobytes()
        more = ({"bounds": self.bounds} if self.bounds else {}) | ({"by": self.by} if any(self.by) else {})
        if not more:
            return blob
        text = json.dumps(more).encode()
        text += b" " * ((len(text) + 2) % 8 == 0)  # so that the whole is no multiple of 8
        return blob + text + len(text).to_bytes(2, "little")

    @classmethod
    def from_bytes(cls, blob: bytes) -> Kept:
        """What :meth:`to_bytes` wrote."""
        whole = len(blob) - (int.from_bytes(blob[-2:], "little") + 2 if len(blob) % 8 else 0)
        more = json.loads(blob[whole:-2]) if whole < len(blob) else {}
        logprobs = np.frombuffer(blob[:whole], dtype="<f8").copy()
        return cls(logprobs, tuple(more.get("bounds", ())), tuple(more.get("by", ("", ""))))


# Both say what they are kept in (``table``, ``column``); ``independent``: what else the call asked does not matter.
Result = TypeVar("Result", Kept, KeptReply)


def digest(*parts: bytes) -> bytes:
    """A key of ``KEY_BYTES`` bytes; the parts are told apart."""
    found = blake2b(digest_size=KEY_BYTES)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def damaged(database: Database, what: str) -> StoreError:
    """The error for rows whose checksum is wrong."""
    return StoreError(
        f"{database.path}: {what} damaged; drop what is damaged with: unslant runs repair --store "
        f"{shlex.quote(str(database.path))} (the same command then asks for that, and nothing else, again)"
    )


@dataclass
class Pass(Generic[Result]):
    """One call of ``score`` or ``generate``, as far as it has come.

    Attributes:
        kind: what is kept.
        key: digest of ``keys``, by which it is known.
        keys: of its prompts, in order.
        planned: positions that it scores itself, ascending; the others were taken over when it began.
        cost: counts of what it has scored itself, by name, at the moment of the last reading.
        done: results known at that moment, those taken over among them.
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
        """What is known so far, by position. Reads ``cost`` and ``done`` at the same moment.

        Raises:
            StoreError: if any of it is damaged.
        """
        found, wrong, kind = {}, 0, self.kind
        with self.database.snapshot() as connection:
            self._read_progress(connection)
            query = f"SELECT {columns(kind.table)} FROM {kind.table} WHERE pass = ?"
            for row in connection.execute(query, (self.id,)):
                if is_whole(kind.table, row) and self._asked(*row[1:3]):
                    found[row[1]] = kind.from_bytes(row[3])
                else:
                    wrong += 1
        if wrong:
            raise damaged(self.database, f"{wrong:,} of {len(found) + wrong:,} stored {kind.table} are")
        return found

    def _asked(self, position: int, prompt: bytes) -> bool:
        return 0 <= position < len(self.keys) and prompt == self.keys[position]

    def state(self, stretch: str) -> bytes:
        """What was last written of this stretch; empty if nothing was, or it is damaged (which costs time only).

        Reads ``cost`` and ``done`` at the same moment.
        """
        with self.database.snapshot() as connection:
            self._read_progress(connection)
            row = connection.execute(
                f"SELECT {columns('states')} FROM states WHERE pass = ? AND stretch = ?", (self.id, stretch)
            ).fetchone()
        return bytes(row[3]) if row and is_whole("states", row) else b""

    def _read_progress(self, connection: sqlite3.Connection) -> None:
        row = _checked_pass(self.database, connection, "id", self.id)
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
        """Keep ``rows``, and in the same moment how far the pass has come with them.

        Of two processes at work on the same pass, the one that is ahead says how far it is.

        Args:
            done: results known with these rows, those taken over among them.
            states: by stretch: its step, and what the engine needs to go on after it.

        Raises:
            StoreError: if the store cannot be written; then none of it is kept.
            ModelError: if one of the scores is no log-probability.
        """
        with self.database.transaction() as connection:
            before = _checked_pass(self.database, connection, "id", self.id)
            if before.get("key") != self.key:
                raise StoreError(
                    f"{self.database.path}: the run was deleted by another command while it was at work; run it again"
                )
            connection.executemany(
                f"INSERT OR IGNORE INTO {self.kind.table} VALUES (?, ?, ?, ?, ?)",
                (_row(self.id, position, self.keys[position], kept) for position, kept in rows),
            )
            updated = connection.execute(
                "UPDATE passes SET done = ?, cost = ? WHERE id = ? AND done < ?",
                (done, json.dumps(dict(cost)), self.id, done),
            )
            if updated.rowcount:
                vouch(connection, "passes", "id = ?", self.id)
            # A state of a finished pass would stay for ever, where another process finished it.
            for stretch, (step, state) in states.items() if before["done"] < len(self.keys) else ():
                connection.execute(
                    "INSERT INTO states VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET step = excluded.step, state = excluded.state, checksum = excluded.checksum "
                    "WHERE excluded.step > step",
                    (self.id, stretch, step, state, checksum("states", self.id, stretch, step, state)),
                )
            if done == len(self.keys):
                connection.execute("DELETE FROM states WHERE pass = ?", (self.id,))


def open_pass(
    database: Database, kind: type[Result], identity: Mapping[str, str], keys: Sequence[bytes], run: str = ""
) -> Pass[Result]:
    """The pass of this model over these prompts, begun now or earlier.

    Args:
        kind: what is kept of a prompt.
        keys: of the prompts, in order, made with the model's identity in them.
        run: the run it belongs to.

    Raises:
        StoreError: if the store cannot be written.
    """
    key = digest(*keys)
    found = _find(database, kind, key, keys)
    known = {} if found and not kind.independent else _lookup(database, kind, keys)
    with database.transaction() as connection:
        found = found or _find(database, kind, key, keys)  # another process may have begun it in between
        if found is None:
            planned = np.array([prompt not in known for prompt in keys], dtype=bool)
            bits = planned_bits(planned) if known else None
            known_already = len(keys) - int(planned.sum())
            values = (None, key, kind.table, identity_text(identity), len(keys), known_already, bits, "{}", 0)
            number = connection.execute(f"INSERT INTO passes VALUES ({', '.join('?' * 9)})", values).lastrowid or 0
            vouch(connection, "passes", "id = ?", number)
            found = Pass(database, kind, number, key, keys, np.flatnonzero(planned), {})
        elif not kind.independent:
            known = {}
        connection.executemany(
            f"INSERT OR IGNORE INTO {kind.table} VALUES (?, ?, ?, ?, ?)",
            (
                (found.id, i, prompt, known[prompt], result_checksum(kind.table, found.id, i, prompt, known[prompt]))
                for i, prompt in enumerate(keys)
                if prompt in known
            ),
        )
        if run:
            check = checksum("run_passes", run, found.id, 1)
            connection.execute("INSERT OR REPLACE INTO run_passes VALUES (?, ?, 1, ?)", (run, found.id, check))
    return found


def _find(database: Database, kind: type[Result], key: bytes, keys: Sequence[bytes]) -> Pass[Result] | None:
    with database.reading() as connection:
        row = _checked_pass(database, connection, "key", key)
    if not row:
        return None
    return Pass(
        database, kind, row["id"], key, keys, planned_positions(row["planned"], len(keys)), json.loads(row["cost"])
    )


def _checked_pass(database: Database, connection: sqlite3.Connection, column: str, value: object) -> dict[str, Any]:
    query = f"SELECT {_PASS_COLUMNS} FROM passes WHERE {column} = ?"
    row = connection.execute(query, (value,)).fetchone()
    if row is None:
        return {}
    if not is_whole("passes", row):
        raise damaged(database, "the record of a call is")
    return dict(zip(_PASS_COLUMNS.split(", "), row, strict=True))


def planned_positions(bits: bytes | None, total: int) -> Ints:
    """Positions from the column ``planned``."""
    if bits is None:
        return np.arange(total)
    return np.flatnonzero(np.unpackbits(np.frombuffer(zlib.decompress(bits), dtype=np.uint8), count=total))


def planned_bits(planned: Bools) -> bytes:
    """The column ``planned`` for positions that are true."""
    return zlib.compress(np.packbits(planned).tobytes())


def identity_text(identity: Mapping[str, str]) -> str:
    """An identity as the store holds it."""
    return json.dumps(dict(identity), sort_keys=True)


def identities(database: Database) -> list[str]:
    """Every identity in the store, as JSON, the one last met first."""
    with database.reading() as connection:
        rows = connection.execute(f"SELECT {_PASS_COLUMNS} FROM passes ORDER BY id DESC").fetchall()
    return list(dict.fromkeys(row[3] for row in rows if is_whole("passes", row)))


def forget(database: Database, identity: Mapping[str, str]) -> None:
    """Drop every score and reply of a model; see :meth:`unslant.store.Store.forget`."""
    with database.transaction() as connection:
        query = f"SELECT {_PASS_COLUMNS} FROM passes WHERE identity = ?"
        for row in connection.execute(query, (identity_text(identity),)).fetchall():
            number = row[0]
            if not is_whole("passes", row):
                raise damaged(database, "the record of a call is")
            for table in ("scores", "replies", "states"):
                connection.execute(f"DELETE FROM {table} WHERE pass = ?", (number,))
            connection.execute("UPDATE passes SET done = 0, planned = NULL, cost = '{}' WHERE id = ?", (number,))
            vouch(connection, "passes", "id = ?", number)


def drop(database: Database, keys: Sequence[bytes]) -> None:
    """Drop the scores of some prompts; see :meth:`unslant.store.Store.drop`."""
    with database.transaction() as connection:
        passes: set[int] = set()
        for some in _pieces(sorted(set(keys)), _LOOKED_UP):
            where = f"FROM scores WHERE prompt IN ({','.join('?' * len(some))})"
            passes.update(number for (number,) in connection.execute(f"SELECT DISTINCT pass {where}", some))
            connection.execute(f"DELETE {where}", some)
        for number in passes:
            connection.execute(
                "UPDATE passes SET done = (SELECT count(*) FROM scores WHERE pass = ?) WHERE id = ?", (number, number)
            )
            vouch(connection, "passes", "id = ?", number)


def _lookup(database: Database, kind: type[Kept] | type[KeptReply], keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """What any pass has kept of these prompts; of several, the oldest."""
    found: dict[bytes, bytes] = {}
    with database.reading() as connection:
        if connection.execute(f"SELECT 1 FROM {kind.table} LIMIT 1").fetchone() is None:
            return found
        for some in _pieces(sorted(set(keys)), _LOOKED_UP):
            marks = ",".join("?" * len(some))
            rows = connection.execute(
                f"SELECT {columns(kind.table)} FROM {kind.table} WHERE prompt IN ({marks}) ORDER BY pass, position",
                some,
            )
            for row in rows:
                if not is_whole(kind.table, row):
                    raise damaged(database, f"one of the stored {kind.table} is")
                found.setdefault(row[2], row[3])
    return found


def _pieces(keys: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


def _row(number: int, position: int, prompt: bytes, kept: Kept | KeptReply) -> tuple[int, int, bytes, bytes, int]:
    if isinstance(kept, Kept) and not are_logprobs(kept.logprobs):
        found = kept.logprobs.tolist()
        raise ModelError(f"prompt {position + 1} was given {found}: not log-probabilities, so not stored")
    blob = kept.to_bytes()
    return number, position, prompt, blob, result_checksum(kept.table, number, position, prompt, blob)
