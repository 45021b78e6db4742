"""Defaults of options from ``unslant.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cyclopts import App
from cyclopts.argument import Argument, ArgumentCollection
from cyclopts.config import Dict

from unslant.cli.words import reach_of
from unslant.errors import InputError, first_line, one_of
from unslant.reach import reason_to_type, recorded

FILE = Path("unslant.toml")


class Config:
    """The tables of a TOML file, one a command (``[audit]``, ``[study.base-rate]``): option -> default.

    cyclopts calls it with the options of the command line, which win.

    Attributes:
        path: the file; None where there is none.
        used: the options taken from it, as words of a command.
    """

    def __init__(self, path: Path | None = None, named: bool = False) -> None:
        self.path, self._named = path, named
        self.used: tuple[str, ...] = ()
        self._tables: Mapping[str, Any] = {}
        if path is not None:
            try:
                self._tables = tomllib.loads(path.read_text("utf-8"))
            except OSError as error:
                raise InputError.at(path, f"cannot be read: {error.strerror}") from None
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise InputError.at(path, f"is not valid TOML: {first_line(error)}") from None

    @classmethod
    def of(cls, words: Sequence[str]) -> tuple[Config, list[str]]:
        """The file that ``--config`` names, or the one in the working directory, and the words without ``--config``.

        Raises:
            InputError: if the file cannot be read or is not valid TOML, or none is named.
        """
        left, named = [], None
        rest = iter(words)
        for word in rest:
            option, sign, value = word.partition("=")
            if option == "--config":
                named = value if sign else next(rest, "")
                if not named:
                    raise InputError("--config: give the name of a TOML file")
            else:
                left.append(word)
        return cls(Path(named) if named else FILE if FILE.is_file() else None, bool(named)), left

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Give every option that was not typed the value in the command's table.

        Raises:
            InputError: naming file and key, on a table that is not a command's, or an option that the command does not
                have; in a file that was not named, also on one that must be typed
                (:func:`unslant.reach.reason_to_type`).
        """
        if self.path is None:
            return
        root = next(iter(app.app_stack.current_frame), app)
        self._check_commands(root, self._tables, ())
        table: Any = self._tables
        for command in commands:
            table = table.get(command, {})
        known = {name[2:]: argument for argument in arguments for name in argument.names if name.startswith("--")}
        given: dict[str, Any] = {}
        for key, value in table.items():
            name = key.replace("_", "-")
            place = ".".join((*commands, key))
            if name not in known:
                why = f"unslant {' '.join(commands)} has no such option: {one_of(name, sorted(known))}"
                raise InputError.at(self.path, why, field=place)
            if known[name].hint is bool and not isinstance(value, bool):
                raise InputError.at(self.path, "is a switch: give true or false", field=place)
            if isinstance(value, Mapping):
                value = [f"{one}={item}" for one, item in value.items()]
            if value is not False:  # a switch that is not given
                given[name] = value
                self._check_typed(known[name], value, place)
        typed = {name for name, argument in known.items() if argument.tokens}
        taken = {name: value for name, value in given.items() if name not in typed}
        Dict(taken, source=str(self.path), use_commands_as_keys=False)(app, commands, arguments)
        self.used = tuple(
            f"--{name}" if value is True else f"--{name}={recorded(reach_of(known[name]), str(one))}"
            for name, value in taken.items()
            for one in (value if isinstance(value, list) else [value])
        )

    def _check_typed(self, option: Argument, value: Any, place: str) -> None:
        """A file in the folder may have come with a download, so it decides nothing of the kinds in ``Reach``."""
        for one in value if isinstance(value, list) else [value]:
            if not self._named and (why := reason_to_type(reach_of(option), str(one))):
                raise InputError.at(
                    self.path or FILE,
                    f"{why}, which this file may not decide unasked: type {option.name}, or name the file with "
                    f"--config {self.path}",
                    field=place,
                )

    def named_in(self, message: str) -> list[str]:
        """Options taken from the file whose value a message quotes: an error that may be the file's."""
        return [word for word in self.used if (value := word.partition("=")[2]) and value in message]

    def _check_commands(self, app: App, tables: Mapping[str, Any], above: tuple[str, ...]) -> None:
        known = [name for name in app if not name.startswith("-")]
        for key, value in tables.items():
            path = (*above, key)
            if key not in known or not isinstance(value, Mapping):
                why = f"is not a command: {one_of(key, known)}; options go in the table of a command, as in [audit]"
                raise InputError.at(self.path, why, field=".".join(path))
            if app[key].default_command is None:
                self._check_commands(app[key], value, path)
