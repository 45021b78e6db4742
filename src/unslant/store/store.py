"""The store as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from unslant.store import identity as identities
from unslant.store import runs, scores
from unslant.store.database import Database, default_path


class Store:
    """Scores, replies and runs in one file; use it as a context manager.

    :class:`~unslant.models.stored.StoredModel` and :class:`~unslant.models.stored_chat.StoredChat` keep in it.

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
        self.runs = runs.Runs(self._database)

    def open_pass(
        self, kind: type[scores.Result], identity: Mapping[str, str], keys: Sequence[bytes], run: str = ""
    ) -> scores.Pass[scores.Result]:
        """See :func:`unslant.store.scores.open_pass`."""
        return scores.open_pass(self._database, kind, identity, keys, run)

    def known_as(self, identity: Mapping[str, str]) -> Mapping[str, str]:
        """The identity under which the store knows this model; see :mod:`unslant.store.identity`."""
        return identities.known_as(identity, scores.identities(self._database))

    def latest(self, address: Mapping[str, str]) -> Mapping[str, str] | None:
        """The identity, of all that hold these entries, that was last met; None if there is none."""
        found = map(json.loads, scores.identities(self._database))
        return next((identity for identity in found if address.items() <= identity.items()), None)

    def forget(self, identity: Mapping[str, str]) -> None:
        """Drop every score and reply of a model, which has turned out to give others."""
        scores.forget(self._database, identity)

    def drop(self, keys: Sequence[bytes]) -> None:
        """Drop the scores of some prompts, whose keys hold the model's identity; they are asked for again."""
        scores.drop(self._database, keys)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
