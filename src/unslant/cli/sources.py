"""Values of options that were not typed: those of a recorded command that is repeated, or of a file of settings."""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError, Token
from cyclopts.argument import Argument, ArgumentCollection
from cyclopts.config import Dict

from unslant.cli import FILE, parsed, perform
from unslant.cli.commands import Seen, reach_of, values_of, words_of
from unslant.errors import InputError, first_line, one_of, printable, shortened
from unslant.models.options import KEY_VARIABLES
from unslant.reach import (
    COMMAND,
    NOT_REPEATED,
    OUTPUTS,
    TYPED_HOSTS,
    WITHHELD,
    Reach,
    host_of,
    reason_to_type,
    recorded,
    url_without_secrets,
)


def repeat(
    recorded: Sequence[str], place: Path, again: str, trust: bool, typed: Sequence[str] = (), writes: bool = False
) -> None:
    """Print and run a command from a file (:class:`Recorded`), with some words typed again.

    Raises:
        InputError: if the recorded words are not a command of ours, or must be typed again.
    """
    commands, arguments = _arguments_of(recorded, place)
    seen = Seen([*recorded, *typed])
    command, bound = parsed([*commands, *typed], Recorded(arguments, place, again, trust, writes), seen)
    print(printable(f"unslant {shlex.join(seen.command.words)}"), file=sys.stderr)  # the file may be someone else's
    # The store keeps what the user typed: a run that is resumed from it trusts the file no further than now.
    words = seen.command.words if writes else (*COMMAND.get().words, *seen.typed)
    COMMAND.set(replace(seen.command, words=words))
    perform(command, bound)


class _Arguments(Exception):
    """Ends the parsing of a command before its values are converted."""


def _arguments_of(words: Sequence[str], place: Path) -> tuple[tuple[str, ...], ArgumentCollection]:
    """The command that the words in a file name, and its arguments; nothing is checked, opened or read."""

    def stop(_: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        raise _Arguments(commands, arguments)

    try:
        parsed(words, stop)
    except _Arguments as stopped:
        commands, arguments = stopped.args
        # The parser would leave out what it does not know, and the command would run without it.
        known = {name for argument in arguments for name in argument.names}
        options = [word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")]
        if unknown := [option for option in options if option not in known and option != "--"]:
            problem = f"its command has {unknown[0]}, which this version of unslant does not know"
            raise InputError.at(place, problem) from None
        return commands, arguments
    except CycloptsError as error:
        raise InputError.at(place, f"its command cannot be read: {first_line(error)}") from None
    raise InputError.at(place, "its command only shows help")


@dataclass(frozen=True)
class Recorded:
    """A command from a file as a source of values for all options that are not typed again.

    Options that run code, name an address, read the environment, or name a place outside the working folder need
    ``trust``. Even with it, keys go only to hosts that the user typed.

    Attributes:
        arguments: of the command.
        place: the file they come from.
        again: the beginning of a command line that repeats it with another option.
        trust: whether the user trusts the author of the file.
        writes: also repeat where the command writes, which needs ``trust``.
    """

    arguments: ArgumentCollection
    place: Path
    again: str
    trust: bool
    writes: bool

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Fill in what was not typed; InputError naming what must be typed again, or trusted."""
        named = [(reach_of(argument), token.value) for argument, token in values_of(arguments)]
        TYPED_HOSTS.set(frozenset(host_of(value) for reach, value in named if reach in (Reach.ADDRESS, Reach.MODEL)))
        values: dict[tuple[str, ...], list[Token]] = {}
        for argument, token in values_of(self.arguments):
            if self.writes or argument.field_info.name not in NOT_REPEATED:
                values.setdefault(argument.names, []).append(token.evolve(source=str(self.place)))
        withheld, risky, urls = list[str](), list[str](), list[str]()
        for argument in arguments:
            for token in () if argument.tokens else values.get(argument.names, ()):
                reach = reach_of(argument)
                why = "writes there" if argument.field_info.name in OUTPUTS else reason_to_type(reach, token.value)
                if reach is not None and WITHHELD in token.value:
                    withheld.append(argument.name)
                elif why:
                    risky.append(f"{shlex.join(words_of(argument, token))} ({why})")
                    urls += [token.value] if "://" in token.value else []
                argument.append(token)
        if withheld:
            raise InputError.at(
                self.place,
                f"{', '.join(dict.fromkeys(withheld))}: what may be a secret was left out when the command was "
                f"recorded; type it again, as in: {self.again} {withheld[0]} ...",
            )
        if risky and not self.trust:
            raise InputError.at(
                self.place,
                f"its command has {shortened('; '.join(risky), 600)}: type that again, as in: {self.again} "
                f"{risky[0].split()[0].partition('=')[0]} ..., or, if you trust whoever made it, add --trust",
            )
        for url in urls:
            if keys := [name for name in KEY_VARIABLES if name in os.environ]:
                print(
                    f"{keys[0]} is not sent to {printable(url_without_secrets(url))}, which you did not type",
                    file=sys.stderr,
                )


class Config:
    """Defaults of options from a TOML file with a table for each command (``[audit]``, ``[study.base-rate]``).

    A source of values for cyclopts; options on the command line win.

    Attributes:
        path: the file.
        used: the options taken from it, as words of a command.
    """

    def __init__(self, path: Path, named: bool) -> None:
        self.path, self._named = path, named
        self.used: tuple[str, ...] = ()
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
        others, named = [], None
        rest = iter(words)
        for word in rest:
            option, sign, value = word.partition("=")
            if option == "--config":
                named = value if sign else next(rest, "")
                if not named:
                    raise InputError("--config: give the name of a TOML file")
            else:
                others.append(word)
        return cls(Path(named) if named else FILE, bool(named)), others

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Give every option that was not typed the value in the command's table.

        Raises:
            InputError: naming file and key, for a table that is not a command's, an option that the command does not
                have, or, in a file that was not named, one that must be typed (:func:`unslant.reach.reason_to_type`).
        """
        root = next(iter(app.app_stack.current_frame), app)
        self._check_commands(root, self._tables, ())
        table: Any = self._tables
        for command in commands:
            table = table.get(command, {})
        options = {name[2:]: argument for argument in arguments for name in argument.names if name.startswith("--")}
        defaults: dict[str, Any] = {}
        for key, value in table.items():
            name = key.replace("_", "-")
            place = ".".join((*commands, key))
            if name not in options:
                why = f"unslant {' '.join(commands)} has no such option: {one_of(name, sorted(options))}"
                raise InputError.at(self.path, why, field=place)
            if options[name].hint is bool and not isinstance(value, bool):
                raise InputError.at(self.path, "is a switch: give true or false", field=place)
            if isinstance(value, Mapping):
                value = [f"{field}={item}" for field, item in value.items()]
            if value is not False:  # a switch that is off
                self._check_typed(options[name], value, place)
                if not options[name].tokens:
                    defaults[name] = value
        Dict(defaults, source=str(self.path), use_commands_as_keys=False)(app, commands, arguments)
        self.used = tuple(
            f"--{name}" if value is True else f"--{name}={recorded(reach_of(options[name]), str(one))}"
            for name, value in defaults.items()
            for one in (value if isinstance(value, list) else [value])
        )

    def _check_typed(self, option: Argument, value: Any, place: str) -> None:
        """Refuse options of the kinds in ``Reach`` in a file that was not named: it may have come with a download."""
        for one in value if isinstance(value, list) else [value]:
            if not self._named and (why := reason_to_type(reach_of(option), str(one))):
                raise InputError.at(
                    self.path,
                    f"{why}, which this file may not decide unasked: type {option.name}, or name the file with "
                    f"--config {self.path}",
                    field=place,
                )

    def named_in(self, message: str) -> list[str]:
        """Options from the file whose value a message quotes, since the error may be in the file."""
        return [word for word in self.used if (value := word.partition("=")[2]) and value in message]

    def _check_commands(self, app: App, tables: Mapping[str, Any], above: tuple[str, ...]) -> None:
        names = [name for name in app if not name.startswith("-")]
        for key, value in tables.items():
            path = (*above, key)
            if key not in names or not isinstance(value, Mapping):
                why = f"is not a command: {one_of(key, names)}; options go in the table of a command, as in [audit]"
                raise InputError.at(self.path, why, field=".".join(path))
            if app[key].default_command is None:
                self._check_commands(app[key], value, path)
