"""Answers logged before, as one table of responses a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from unslant.errors import InputError
from unslant.responses import Responses
from unslant.responses.importers import load_logs


def tables_of(
    study: str, logs: str | Path | Sequence[str | Path], fields: Mapping[str, str] | None = None
) -> list[Responses]:
    """The responses of each model, which a study reads.

    Args:
        study: that the answers must be of: those that other harnesses logged are of ``audit`` or ``judge``.
        logs: files of any format that :mod:`unslant.responses.importers` knows. Those of one model are joined.
        fields: field -> column or key, for tables of your own.

    Raises:
        InputError: naming a file that cannot be read or is another study's.
    """
    tables = load_logs([logs] if isinstance(logs, str | Path) else list(logs), fields)
    for table in tables:
        if (held := table.run.study) != study:
            raise InputError(
                f"{listed_files(logs)}: contains responses of the study {held}; this command reads those of {study}"
            )
    return tables


def responses_in(path: str | Path) -> Responses:
    """The responses in one file, of ours or of another harness, which must be of one model.

    Raises:
        InputError: naming a file that cannot be read or holds answers of several models.
    """
    responses, *others = load_logs([path])
    if others:
        raise InputError.at(path, f"holds answers of {1 + len(others)} models; give a file of one")
    return responses


def listed_files(logs: str | Path | Sequence[str | Path]) -> str:
    """The files as an error names them."""
    return str(logs) if isinstance(logs, str | Path) else ", ".join(map(str, logs))
