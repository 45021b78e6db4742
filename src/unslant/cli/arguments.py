"""The arguments of a command: what may be recorded, what a file may decide, and that no output overwrites an input."""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from cyclopts import App, Token
from cyclopts.argument import Argument, ArgumentCollection
from cyclopts.config import Dict

from unslant.errors import InputError, first_line, one_of, printable, shortened
from unslant.models.options import KEY_VARIABLES
from unslant.reach import (
    NOT_REPEATED,
    OUTPUTS,
    TYPED_HOSTS,
    WITHHELD,
    Command,
    Reach,
    host_of,
    reason_to_type,
    recorded,
    url_without_secrets,
)

_TYPED = "cli"


def reach_of(argument: Argument) -> Reach | None:
    """What an option reaches: as its declaration says, or :attr:`Reach.PLACE` if it is a path."""
    return _declared(argument.field_info.annotation)


def _declared(kind: Any) -> Reach | None:
    if isinstance(kind, Reach):
        return kind
    parts = (*get_args(kind), *getattr(kind, "__metadata__", ()))
    reaches = [reach for part in parts if (reach := _declared(part))]
    return reaches[-1] if reaches else Reach.PLACE if kind is Path else None  # the outermost annotation counts


def _values(arguments: ArgumentCollection) -> Iterator[tuple[Argument, Token]]:
    """Every value with its argument: positional ones, then options in the order typed, or of the file."""
    pairs = [(argument, token) for argument in arguments if not argument.children for token in argument.tokens]
    # cyclopts numbers its tokens; tokens without a number keep the order of declaration
    yield from sorted(pairs, key=lambda pair: (pair[0].name.startswith("-"), getattr(pair[1], "_order", 0)))


def words_of(argument: Argument, token: Token, typed: Collection[str] = ()) -> list[str]:
    """A value as it may be recorded, without secrets, with its option by the first of its names, so that ``-m X`` and
    ``--model X`` are one command; joined to it by ``=`` if it was ``typed`` so."""
    name = argument.name
    if token.implicit_value is True:
        return [name]
    value = recorded(reach_of(argument), token.value)
    if not argument.name.startswith("-"):
        # A file whose name begins with a dash was typed after --; repeated without that, it would be an option.
        return [f"./{value}" if value.startswith("-") else value]
    alone = token.keyword in argument.names and f"{token.keyword}={token.value}" not in typed
    joined = value.startswith("-") or not alone
    return [f"{name}={value}"] if joined else [name, value]


class Seen:
    """The last of cyclopts' sources of values: it adds none, but notes the command as parsed.

    Args:
        words: as typed.

    Attributes:
        command: as it may be recorded, without secrets.
        typed: its repeatable words that the user typed.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.command, self._words = Command(), frozenset(words)
        self.typed: tuple[str, ...] = ()

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Note the command; InputError on an empty value, as of an unset variable, and on a withheld secret."""
        words, repeatable, typed = list(commands), list(commands), list[str]()
        for argument, token in _values(arguments):
            reach, name = reach_of(argument), argument.field_info.name
            empty = token.source == _TYPED and not token.value and token.implicit_value is not True
            if empty and argument.name.startswith("-"):
                raise InputError(f"{argument.name} is empty: give a value, or leave it out")
            if reach is Reach.SECRET:
                continue
            if any("\ud800" <= character <= "\udfff" for character in token.value):  # no record of ours has them
                raise InputError(f"{argument.name} {token.value}: {_undecoded(token.value)}")
            if reach is not None and WITHHELD in token.value:
                raise InputError(
                    f"{argument.name}: possible secrets were left out when the command was recorded; type the "
                    "whole command again"
                )
            value = words_of(argument, token, self._words)
            words += value
            if name not in NOT_REPEATED:
                repeatable += value
                typed += value if token.source == _TYPED else []
        self.command, self.typed = Command(tuple(words), tuple(repeatable)), tuple(typed)


def _undecoded(word: str) -> str:
    """Why Python could not read all bytes of a word as text, and what to do."""
    try:
        os.fsencode(word).decode()
    except UnicodeError:
        return "is not UTF-8 text; rename the file"
    return f"Python reads the command line as {sys.getfilesystemencoding()} here; set PYTHONUTF8=1"


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
        named = [(reach_of(argument), token.value) for argument, token in _values(arguments)]
        TYPED_HOSTS.set(frozenset(host_of(value) for reach, value in named if reach in (Reach.ADDRESS, Reach.MODEL)))
        values: dict[tuple[str, ...], list[Token]] = {}
        for argument, token in _values(self.arguments):
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


FILE = Path("unslant.toml")


class Config:
    """Defaults of options from a TOML file with a table for each command (``[audit]``, ``[study.base-rate]``).

    A source of values for cyclopts; options on the command line win.

    Attributes:
        path: the file; None if there is none.
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
        return cls(Path(named) if named else FILE if os.path.isfile(FILE) else None, bool(named)), others

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Give every option that was not typed the value in the command's table.

        Raises:
            InputError: naming file and key, for a table that is not a command's, an option that the command does not
                have, or, in a file that was not named, one that must be typed (:func:`unslant.reach.reason_to_type`).
        """
        if self.path is None:
            return
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
                    self.path or FILE,
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


def check_files(arguments: Mapping[str, Any]) -> None:
    """Refuse a command that would overwrite one of its inputs, or write twice to one file; called before any work.

    Args:
        arguments: of the command, by name.

    Raises:
        InputError: naming the option and the file.
    """
    _keep_off_the_store(arguments)
    reasons = {
        place: f"is also {_option(name)} and would be overwritten"
        for name, value in arguments.items()
        if name not in OUTPUTS
        for text in _texts(value)
        if (place := _place(text, False)) is not None
    }
    for name, path in _outputs(arguments):
        place = _place(path, True)
        if place in reasons:
            raise InputError(f"{_option(name)} {path}: {reasons[place]}; give another name")
        reasons[place] = f"is also where {_option(name)} is written"


def _keep_off_the_store(arguments: Mapping[str, Any]) -> None:
    """Refuse the run store and its log as input or output."""
    # Only SQLite may open them: closing any other descriptor drops the locks that this process holds on them.
    if "store" not in arguments:
        return
    from unslant.store import default_path
    from unslant.store.tables import JOURNALS, sibling

    path = Path(os.path.realpath(os.path.expanduser(arguments["store"] or default_path())))
    store = {_place(one, True) for one in (path, *(sibling(path, end) for end in JOURNALS))}
    for name, value in arguments.items():
        for text in () if name == "store" else _texts(value):
            if _place(text, True) in store:
                raise InputError(f"{_option(name)} {text}: is the run store; give another file name")


def _outputs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Every path that is written, including the files in the folder of ``--out``."""
    from unslant.experiment.outputs import FILES, STDOUT

    paths = {name: value for name, value in arguments.items() if name in OUTPUTS and isinstance(value, Path)}
    files = {name: path for name, path in paths.items() if path != STDOUT}
    yield from files.items()
    if "out" in files and {"json", "html"} <= arguments.keys():
        yield from (("out", files["out"] / file) for name, file in FILES.items() if name not in files)


def _place(path: str | Path, new: bool) -> Hashable:
    """A key that all names of a file or folder share; None for a missing file, unless it may be ``new``."""
    try:
        path = os.path.expanduser(path)
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path) if new and "\0" not in str(path) else None
    return status.st_dev, status.st_ino


def _texts(value: object) -> Iterator[str]:
    """Possible file names in a value: the whole, parts between commas, what follows a ``=``, or each item of a list."""
    if isinstance(value, str):
        yield from {part for text in (value, *value.split(",")) for part in (text, text.partition("=")[2]) if part}
    elif isinstance(value, Path):
        yield str(value)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _texts(one)


def _option(name: str) -> str:
    positional = {"model", "models", "questions", "file", "run", "runs", "merged", "shards"}
    return name.upper() if name in positional else f"--{name.replace('_', '-')}"
