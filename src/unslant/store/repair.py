"""Mending a damaged store: what is whole is kept; what is not is dropped, and asked again when next asked for."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np

from unslant.store.database import Database
from unslant.store.replies import KeptReply
from unslant.store.scores import KINDS, PASS_COLUMNS, Kept, checksum, is_whole, planned_bits, vouch_for_passes


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was dropped.

    Attributes:
        scores, replies: these are asked for again.
        calls: records of calls; their scores and replies are kept, and found again.
        runs: ids of the runs that asked for any of these, to be run again.
    """

    scores: int
    replies: int
    calls: int
    runs: tuple[str, ...]


def repair(database: Database) -> Repaired:
    """Drop what is damaged, so that resuming a run asks for that again and for nothing else.

    Raises:
        StoreError: if the file is damaged beyond its rows.
    """
    with database.transaction() as connection:
        connection.execute("REINDEX")
        known = dict(connection.execute("SELECT id, key FROM passes"))
        bad = {number for number, *row, check in _passes(connection) if checksum(*row) != check}
        dropped = {kind.table: _drop_damaged(connection, kind, known) for kind in KINDS}
        lost = {number for passes, _ in dropped.values() for number in passes}
        for number in bad:
            for kind in KINDS:
                query = f"UPDATE OR REPLACE {kind.table} SET pass = ? WHERE pass = ?"
                connection.execute(query, (-1 - number, number))
            connection.execute("DELETE FROM states WHERE pass = ?", (number,))
            connection.execute("DELETE FROM passes WHERE id = ?", (number,))
        for number in lost - bad:
            _plan_what_is_missing(connection, number)
        query = "SELECT run, pass FROM run_passes"
        runs = sorted({run for run, number in connection.execute(query) if number in bad | lost})
        connection.executemany("DELETE FROM run_passes WHERE pass = ?", ((number,) for number in bad))
    scores, replies = (dropped[kind.table][1] for kind in KINDS)
    return Repaired(scores, replies, len(bad), tuple(runs))


def _passes(connection: sqlite3.Connection) -> list[tuple[int, ...]]:
    return connection.execute(f"SELECT id, {PASS_COLUMNS}, checksum FROM passes").fetchall()


def _drop_damaged(
    connection: sqlite3.Connection, kind: type[Kept] | type[KeptReply], known: dict[int, bytes]
) -> tuple[set[int], int]:
    """Write a table anew with the rows that are whole; returns the passes that lost some, and how many."""
    lost: set[int] = set()
    dropped, table = 0, kind.table
    (definition,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.execute(f"ALTER TABLE {table} RENAME TO damaged")
    connection.execute(definition)
    for row in connection.execute(f"SELECT pass, position, prompt, {kind.column}, checksum FROM damaged"):
        number, position, prompt, blob, check = row
        if is_whole(prompt, blob, check) and isinstance(position, int) and isinstance(number, int):
            connection.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?, ?, ?)", row)
        else:
            dropped += 1
            lost |= {number} & known.keys()
    connection.execute("DROP TABLE damaged")
    connection.execute(f"CREATE INDEX {table}_by_prompt ON {table} (prompt)")
    return lost, dropped


def _plan_what_is_missing(connection: sqlite3.Connection, number: int) -> None:
    """Have a pass ask by itself for what it has not."""
    (total,) = connection.execute("SELECT total FROM passes WHERE id = ?", (number,)).fetchone()
    missing = np.ones(total, dtype=bool)
    query = " UNION ".join(f"SELECT position FROM {kind.table} WHERE pass = :pass" for kind in KINDS)
    for (position,) in connection.execute(query, {"pass": number}):
        missing[position] = False
    connection.execute(
        "UPDATE passes SET done = ?, planned = ? WHERE id = ?",
        (total - int(missing.sum()), planned_bits(missing), number),
    )
    connection.execute("DELETE FROM states WHERE pass = ?", (number,))
    vouch_for_passes(connection, number)
