"""Mending a damaged store: what is whole is kept; what is not is dropped, and scored again when next asked for."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np

from unslant.store.database import Database
from unslant.store.scores import PASS_COLUMNS, checksum, is_whole, planned_bits, vouch_for_passes


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was dropped.

    Attributes:
        scores: scores, which are scored again.
        calls: records of calls; their scores are kept, and found again.
        runs: ids of the runs that asked for any of these, to be run again.
    """

    scores: int
    calls: int
    runs: tuple[str, ...]


def repair(database: Database) -> Repaired:
    """Drop what is damaged, so that resuming a run scores that again and nothing else.

    Raises:
        StoreError: if the file is damaged beyond its rows.
    """
    with database.transaction() as connection:
        connection.execute("REINDEX")
        known = dict(connection.execute("SELECT id, key FROM passes"))
        bad = {number for number, *row, check in _passes(connection) if checksum(*row) != check}
        lost, scores = _drop_scores(connection, known)
        for number in bad:
            connection.execute("UPDATE OR REPLACE scores SET pass = ? WHERE pass = ?", (-1 - number, number))
            connection.execute("DELETE FROM states WHERE pass = ?", (number,))
            connection.execute("DELETE FROM passes WHERE id = ?", (number,))
        for number in lost - bad:
            _plan_what_is_missing(connection, number)
        query = "SELECT run, pass FROM run_passes"
        runs = sorted({run for run, number in connection.execute(query) if number in bad | lost})
        connection.executemany("DELETE FROM run_passes WHERE pass = ?", ((number,) for number in bad))
    return Repaired(scores, len(bad), tuple(runs))


def _passes(connection: sqlite3.Connection) -> list[tuple[int, ...]]:
    return connection.execute(f"SELECT id, {PASS_COLUMNS}, checksum FROM passes").fetchall()


def _drop_scores(connection: sqlite3.Connection, known: dict[int, bytes]) -> tuple[set[int], int]:
    """Write the table of scores anew with those that are whole; returns the passes that lost some, and how many."""
    lost: set[int] = set()
    dropped = 0
    (definition,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'scores'").fetchone()
    connection.execute("ALTER TABLE scores RENAME TO damaged")
    connection.execute(definition)
    for row in connection.execute("SELECT pass, position, prompt, logprobs, checksum FROM damaged"):
        number, position, prompt, blob, check = row
        if is_whole(prompt, blob, check) and isinstance(position, int) and isinstance(number, int):
            connection.execute("INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?, ?)", row)
        else:
            dropped += 1
            lost |= {number} & known.keys()
    connection.execute("DROP TABLE damaged")
    connection.execute("CREATE INDEX scores_by_prompt ON scores (prompt)")
    return lost, dropped


def _plan_what_is_missing(connection: sqlite3.Connection, number: int) -> None:
    """Have a pass score what it has no score of, by itself."""
    (total,) = connection.execute("SELECT total FROM passes WHERE id = ?", (number,)).fetchone()
    missing = np.ones(total, dtype=bool)
    for (position,) in connection.execute("SELECT position FROM scores WHERE pass = ?", (number,)):
        missing[position] = False
    connection.execute(
        "UPDATE passes SET done = ?, planned = ? WHERE id = ?",
        (total - int(missing.sum()), planned_bits(missing), number),
    )
    connection.execute("DELETE FROM states WHERE pass = ?", (number,))
    vouch_for_passes(connection, number)
