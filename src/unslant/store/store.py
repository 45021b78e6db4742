"""The store as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from unslant.store.database import Database, default_path
from unslant.store.runs import Runs
from unslant.store.scores import Pass, open_pass


class Store:
    """Scores and runs in one file; use it with :class:`unslant.models.StoredModel`, and as a context manager.

    Several processes may use one file at once. A process killed at any moment, or a power cut, leaves it whole.

    Args:
        path: the file; by default the user's own (see :func:`default_path`).
        read_only: look only.

    Raises:
        StoreError: if it cannot be opened.
    """

    def __init__(self, path: str | Path | None = None, *, read_only: bool = False) -> None:
        self.path = Path(path).expanduser() if path is not None else default_path()
        self._database = Database(self.path, read_only=read_only)
        self.runs = Runs(self._database)

    def open_pass(self, identity: Mapping[str, str], keys: Sequence[bytes], run: str = "") -> Pass:
        """See :func:`unslant.store.scores.open_pass`."""
        return open_pass(self._database, identity, keys, run)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
