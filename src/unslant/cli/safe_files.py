"""No output is written over an input, or over another output."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.studies.command_line import OUTPUTS


def check_files(arguments: Mapping[str, Any]) -> None:
    """Refuse a command whose outputs are one of its inputs, or one file; called before any work.

    Args:
        arguments: of the command, by name; options may be grouped in dataclasses.

    Raises:
        InputError: naming the option and the file.
    """
    from unslant.files import exists

    found = list(_named(arguments))
    taken = {
        os.path.realpath(text): f"is {_option(name)} too, and would be lost"
        for name, value in found
        if name not in OUTPUTS
        for text in _texts(value)
        if exists(text)
    }
    for name, value in found:
        if name in OUTPUTS and isinstance(value, Path):
            place = os.path.realpath(value)
            if place in taken:
                raise InputError(f"{_option(name)} {value}: {taken[place]}; give another file name")
            taken[place] = f"is the file of {_option(name)} too"


def _named(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in arguments.items():
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from _named({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
        else:
            yield name, value


def _texts(value: object) -> Iterator[str]:
    """File names that a value may hold: itself, several separated by commas, or each of a list."""
    if isinstance(value, str):
        yield value
        yield from value.split(",")
    elif isinstance(value, Path):
        yield str(value)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _texts(one)


def _option(name: str) -> str:
    positional = {"model", "models", "questions", "file", "runs"}
    return name.upper() if name in positional else f"--{name.replace('_', '-')}"
