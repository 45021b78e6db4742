"""No output is written over an input, or over another output."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.experiment.command_line import OUTPUTS


def check_files(arguments: Mapping[str, Any]) -> None:
    """Refuse a command whose outputs are one of its inputs, or one file; called before any work.

    Args:
        arguments: of the command, by name.

    Raises:
        InputError: naming the option and the file.
    """
    _keep_off_the_store(arguments)
    taken = {
        place: f"is {_option(name)} too, and would be lost"
        for name, value in arguments.items()
        if name not in OUTPUTS
        for text in _texts(value)
        if (place := _place(text, False)) is not None
    }
    for name, path in _outputs(arguments):
        place = _place(path, True)
        if place in taken:
            raise InputError(f"{_option(name)} {path}: {taken[place]}; give another file name")
        taken[place] = f"is the file of {_option(name)} too"


def _keep_off_the_store(arguments: Mapping[str, Any]) -> None:
    """Nothing but SQLite opens the run store or its log: closing them drops the locks that this process has on them."""
    if "store" not in arguments:
        return
    from unslant.store import default_path
    from unslant.store.place import JOURNALS, sibling

    path = Path(os.path.realpath(Path(arguments["store"] or default_path()).expanduser()))
    store = {_place(one, True) for one in (path, *(sibling(path, end) for end in JOURNALS))}
    for name, value in arguments.items():
        for text in () if name == "store" else _texts(value):
            if _place(text, True) in store:
                raise InputError(f"{_option(name)} {text}: is the run store; give another file name")


def _outputs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Every path that is written, those in a folder for several files among them."""
    from unslant.experiment.outputs import FILES, STDOUT

    paths = {name: value for name, value in arguments.items() if name in OUTPUTS and isinstance(value, Path)}
    given = {name: path for name, path in paths.items() if path != STDOUT}
    yield from given.items()
    if "out" in given and {"json", "html"} <= arguments.keys():
        yield from (("out", given["out"] / file) for name, file in FILES.items() if name not in given)


def _place(path: str | Path, new: bool) -> Hashable:
    """What is the same for all names of a file or folder; None for no such file, unless it may be ``new``."""
    try:
        path = os.path.expanduser(path)
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path) if new and "\0" not in str(path) else None
    return status.st_dev, status.st_ino


def _texts(value: object) -> Iterator[str]:
    """File names that a value may hold: itself, what follows a ``=``, several between commas, or each of a list."""
    if isinstance(value, str):
        yield from {part for text in (value, *value.split(",")) for part in (text, text.partition("=")[2]) if part}
    elif isinstance(value, Path):
        yield str(value)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _texts(one)


def _option(name: str) -> str:
    positional = {"model", "models", "questions", "file", "runs", "merged", "shards"}
    return name.upper() if name in positional else f"--{name.replace('_', '-')}"
