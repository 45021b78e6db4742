"""The store as a whole: passes begun, looked up and dropped, and the runs that asked for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from unslant.store import identity as identities
from unslant.store.database import Database, default_path
from unslant.store.runs import Runs
from unslant.store.scores import Pass, Result, damaged, digest, pass_row, planned_bits, planned_positions, result_row
from unslant.store.tables import insert, is_whole, select, signed, vouch

_LOOKED_UP = 500
"""Keys in one query: SQLite takes 999 variables in its oldest builds."""


class Store:
    """Scores, replies and runs in one file; use it as a context manager.

    :class:`~unslant.models.stored.StoredModel` and :class:`~unslant.models.stored_chat.StoredChat` keep in it.

    Several processes may use one file at once. A process killed at any moment, or a power cut, leaves it whole.

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
            kind: what is kept of a prompt.
            keys: of the prompts, in order, made with the model's identity in them.
            run: the run it belongs to.

        Raises:
            StoreError: if the store cannot be written.
        """
        key = digest(*keys)
        opened = self._find(kind, key, keys)
        # Looked up before the transaction, which keeps every other writer waiting.
        known = {} if opened and not kind.independent else self._lookup(kind, keys)
        with self._database.transaction() as connection:
            opened = opened or self._find(kind, key, keys)  # another process may have begun it in between
            if opened is None:
                planned = np.array([prompt not in known for prompt in keys], dtype=bool)
                bits = planned_bits(planned) if known else None
                taken_over = len(keys) - int(planned.sum())
                values = (None, key, kind.table, _text(identity), len(keys), taken_over, bits, "{}", 0)
                number = connection.execute(f"INSERT INTO passes VALUES ({', '.join('?' * 9)})", values).lastrowid or 0
                vouch(connection, "passes", "id = ?", number)
                opened = Pass(self._database, kind, number, key, keys, np.flatnonzero(planned), {})
            elif not kind.independent:
                known = {}
            rows = ((i, prompt, known[prompt]) for i, prompt in enumerate(keys) if prompt in known)
            insert(connection, kind.table, (result_row(kind.table, opened.id, *row) for row in rows))
            if run:
                insert(connection, "run_passes", [signed("run_passes", run, opened.id, 1)], "REPLACE")
        return opened

    def _find(self, kind: type[Result], key: bytes, keys: Sequence[bytes]) -> Pass[Result] | None:
        with self._database.reading() as connection:
            row = pass_row(self._database, connection, "key", key)
        if not row:
            return None
        planned = planned_positions(row["planned"], len(keys))
        return Pass(self._database, kind, row["id"], key, keys, planned, json.loads(row["cost"]))

    def _lookup(self, kind: type[Result], keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What any pass has kept of these prompts; of several, the oldest."""
        blobs: dict[bytes, bytes] = {}
        with self._database.reading() as connection:
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
        """Every identity in the store, as JSON, the one last met first."""
        with self._database.reading() as connection:
            rows = select(connection, "passes", "TRUE ORDER BY id DESC").fetchall()
        yield from dict.fromkeys(row[3] for row in rows if is_whole("passes", row))

    def known_as(self, identity: Mapping[str, str]) -> Mapping[str, str]:
        """The identity under which the store knows this model; see :mod:`unslant.store.identity`."""
        return identities.known_as(identity, self._identities())

    def latest(self, address: Mapping[str, str]) -> Mapping[str, str] | None:
        """The identity, of all that hold these entries, that was last met; None if there is none."""
        known = map(json.loads, self._identities())
        return next((identity for identity in known if address.items() <= identity.items()), None)

    def forget(self, identity: Mapping[str, str]) -> None:
        """Drop every score and reply of a model, which has turned out to give others."""
        with self._database.transaction() as connection:
            for row in select(connection, "passes", "identity = ?", _text(identity)).fetchall():
                if not is_whole("passes", row):
                    raise damaged(self._database, "the record of a call is")
                for table in ("scores", "replies", "states"):
                    connection.execute(f"DELETE FROM {table} WHERE pass = ?", row[:1])
                connection.execute("UPDATE passes SET done = 0, planned = NULL, cost = '{}' WHERE id = ?", row[:1])
                vouch(connection, "passes", "id = ?", row[0])

    def drop(self, keys: Sequence[bytes]) -> None:
        """Drop the scores of some prompts, whose keys hold the model's identity; they are asked for again."""
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
    """The distinct keys, sorted, as many at a time as a query takes."""
    distinct = sorted(set(keys))
    for start in range(0, len(distinct), _LOOKED_UP):
        yield distinct[start : start + _LOOKED_UP]
