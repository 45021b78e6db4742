"""What tests do to a store past the store itself."""

from __future__ import annotations

import sqlite3

from unslant.store.tables import checksum, vouch


def vouch_for_runs(connection: sqlite3.Connection) -> None:
    """Count what the connection has changed in runs as written by the store."""
    connection.create_function("row_checksum", -1, checksum)
    vouch(connection, "runs", "TRUE")
