"""What the store keeps of a prompt, and of the calls that ask for prompts.

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
import shlex
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from unslant.arrays import Bools, Floats, Ints, are_logprobs
from unslant.errors import ModelError
from unslant.store.database import Database, StoreError
from unslant.store.tables import TABLES, insert, is_whole, result_checksum, select, signed, vouch

_KEY_BYTES = 16


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
        declined: the provider says that the model declined.
        tokens: of the prompt, of the reply, and of the reasoning in the reply; None where unknown.
        by: the model and the system that the reply named.
        cut: the reply reached the longest length allowed.
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


def digest(*parts: bytes) -> bytes:
    """A key of 16 bytes; lengths count, so (ab, c) and (a, bc) have different digests."""
    key = blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        key.update(len(part).to_bytes(8, "little"))
        key.update(part)
    return key.digest()


def damaged(database: Database, what: str) -> StoreError:
    """The error for rows whose checksum is wrong."""
    return StoreError(
        f"{database.path}: {what} damaged; drop what is damaged with: unslant runs repair --store "
        f"{shlex.quote(str(database.path))} (the same command then asks only for what was lost)"
    )


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
        """The last state written of this stretch, empty if there is none; updates ``cost`` and ``done``."""
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

    def _row(self, position: int, result: Kept | KeptReply) -> tuple[int, int, bytes, bytes, int]:
        if isinstance(result, Kept) and not are_logprobs(result.logprobs):
            scores = result.logprobs.tolist()
            raise ModelError(f"prompt {position + 1} was given {scores}: not log-probabilities, so not stored")
        return result_row(result.table, self.id, position, self.keys[position], result.to_bytes())


def result_row(
    table: str, number: int, position: int, prompt: bytes, blob: bytes
) -> tuple[int, int, bytes, bytes, int]:
    """A row of ``scores`` or ``replies``, with its checksum."""
    return number, position, prompt, blob, result_checksum(table, number, position, prompt, blob)


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
