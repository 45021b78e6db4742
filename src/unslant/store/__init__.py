"""The run store: every score and reply as it arrives, in one crash-safe file that several processes may share.

:class:`Store` opens passes, looks up what others have scored, and recognises models by their fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from unslant.arrays import Floats
from unslant.store import scores
from unslant.store.database import Database, StoreError, default_path
from unslant.store.runs import RecordedRun, Runs
from unslant.store.scores import Kept, KeptReply, Pass, Result, digest
from unslant.store.tables import insert, is_whole, select, signed, vouch

__all__ = ["Kept", "KeptReply", "Pass", "RecordedRun", "Store", "StoreError", "default_path", "digest"]

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
        self.path = Path(path).expanduser() if path is not None else default_path()
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
                bits = scores.planned_bits(planned) if blobs else None
                taken_over = len(keys) - int(planned.sum())
                values = (None, key, kind.table, _text(identity), len(keys), taken_over, bits, "{}", 0)
                number = connection.execute(f"INSERT INTO passes VALUES ({', '.join('?' * 9)})", values).lastrowid or 0
                vouch(connection, "passes", "id = ?", number)
                opened = Pass(self._database, kind, number, key, keys, np.flatnonzero(planned), {})
            elif not kind.independent:
                blobs = {}
            rows = ((i, prompt, blobs[prompt]) for i, prompt in enumerate(keys) if prompt in blobs)
            insert(connection, kind.table, (scores.result_row(kind.table, opened.id, *row) for row in rows))
            if run:
                insert(connection, "run_passes", [signed("run_passes", run, opened.id, 1)], "REPLACE")
        return opened

    def _find(self, kind: type[Result], key: bytes, keys: Sequence[bytes]) -> Pass[Result] | None:
        with self._database.reading() as connection:
            if not (row := scores.pass_row(self._database, connection, "key", key)):
                return None
        planned = scores.planned_positions(row["planned"], len(keys))
        return Pass(self._database, kind, row["id"], key, keys, planned, json.loads(row["cost"]))

    def _lookup(self, kind: type[Result], keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What any pass has stored of these prompts; of several passes, the oldest counts."""
        blobs: dict[bytes, bytes] = {}
        with self._database.reading() as connection:
            if connection.execute(f"SELECT 1 FROM {kind.table} LIMIT 1").fetchone() is None:
                return blobs
            for some in _pieces(keys):
                marks = ",".join("?" * len(some))
                for row in select(connection, kind.table, f"prompt IN ({marks}) ORDER BY pass, position", *some):
                    if not is_whole(kind.table, row):
                        raise scores.damaged(self._database, f"one of the stored {kind.table} is")
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
                    raise scores.damaged(self._database, "the record of a call is")
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


FINGERPRINT = "fingerprint"
"""The entry of an identity that is compared number by number: a few scores of fixed prompts."""


def fingerprint_text(values: Floats, noise: float) -> str:
    """Numbers, and how far apart those of one model may lie."""
    # Their last bits differ between processes (number of threads, processor, a GPU's order of summing). Rounding would
    # not help: scores on either side of a rounding boundary would still differ.
    return f"{noise:g}: " + " ".join(f"{value:.9g}" for value in values)


def known_as(identity: Mapping[str, str], known: Iterable[str]) -> Mapping[str, str]:
    """The first identity of those ``known`` (as JSON) that means the same model; the identity itself if none does."""
    return next((other for other in map(json.loads, known) if same_identity(other, identity)), identity)


def same_identity(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two identities are of one model."""
    same = {**one, FINGERPRINT: ""} == {**other, FINGERPRINT: ""}
    return same and _close(one.get(FINGERPRINT), other.get(FINGERPRINT))


def _close(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one == other
    noise = float(one.partition(": ")[0])
    first, second = (np.array(text.partition(": ")[2].split(), dtype=np.float64) for text in (one, other))
    return len(first) == len(second) and bool((np.abs(first - second) <= noise).all())
