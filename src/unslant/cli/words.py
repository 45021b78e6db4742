"""A command's words, from its parsed arguments: what may be written down, and what only the user may decide."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from cyclopts import App, Token
from cyclopts.argument import Argument, ArgumentCollection

from unslant.errors import InputError, printable, shortened, shown
from unslant.experiment.command_line import NOT_REPEATED, OUTPUTS, Command
from unslant.models.options import KEY_VARIABLES
from unslant.reach import TYPED_HOSTS, WITHHELD, Reach, host_of, reason_to_type, recorded, url_without_secrets

_TYPED = "cli"


def reach_of(argument: Argument) -> Reach | None:
    """What an option reaches: what its declaration says; a path if that is its type."""
    return _declared(argument.field_info.annotation)


def _declared(kind: Any) -> Reach | None:
    if isinstance(kind, Reach):
        return kind
    parts = (*get_args(kind), *getattr(kind, "__metadata__", ()))
    reaches = [reach for part in parts if (reach := _declared(part))]
    return reaches[-1] if reaches else Reach.PLACE if kind is Path else None  # the outermost word counts


def given(arguments: ArgumentCollection) -> Iterator[tuple[Argument, Token]]:
    """Every value with its argument: positional ones, then options as they were typed, and as a file has them."""
    pairs = [(argument, token) for argument in arguments if not argument.children for token in argument.tokens]
    # cyclopts numbers its tokens; without that they keep the order of declaration
    yield from sorted(pairs, key=lambda pair: (not _positional(pair[0]), getattr(pair[1], "_order", 0)))


def _positional(argument: Argument) -> bool:
    return not argument.name.startswith("-")


def words_of(argument: Argument, token: Token, typed: Collection[str] = ()) -> list[str]:
    """A value as it may be written down, with the name of its option, in the form that it was ``typed`` in."""
    name = token.keyword if token.keyword in argument.names else argument.name
    if token.implicit_value is True:
        return [name]
    value = recorded(reach_of(argument), token.value)
    if _positional(argument):
        return [value]
    joined = value.startswith("-") or name != token.keyword or f"{name}={token.value}" in typed
    return [f"{name}={value}"] if joined else [name, value]


class Seen:
    """Notes the command that cyclopts has parsed; the last of its sources of values.

    Args:
        words: as typed.

    Attributes:
        command: what may be written down of it.
        typed: that part of its words which the user typed, and which is repeated.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.command, self._words = Command(), frozenset(words)
        self.typed: tuple[str, ...] = ()

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """See above; InputError if a value is that of a record, from which a secret was left out."""
        words, repeatable, typed = list(commands), list(commands), list[str]()
        for argument, token in given(arguments):
            reach, name = reach_of(argument), argument.field_info.name
            if reach is Reach.SECRET:
                continue
            if reach is not None and WITHHELD in token.value:
                raise InputError(
                    f"{argument.name}: what may be a secret was left out when the command was recorded; type the "
                    "command itself again"
                )
            written = words_of(argument, token, self._words)
            words += written
            repeatable += written if name not in NOT_REPEATED else []
            typed += written if name not in NOT_REPEATED and token.source == _TYPED else []
        self.command, self.typed = Command(tuple(words), tuple(repeatable)), tuple(typed)


class Recorded:
    """The command in a file as a source of values: every option that is not typed again is as it says there.

    Options that run code, name an address, read the environment, or name a place outside the working folder need
    ``trust``; keys go to no host that the user did not type, with or without it.

    Args:
        parse: from words, the command and its arguments.
        words: of the command.
        place: where they come from.
        again: how to type something again, up to the option.
        trust: whether the user trusts whoever made the file.
        writes: take over where the command writes, too, which needs ``trust``.

    Raises:
        InputError: if the words are not a command of ours.
    """

    def __init__(
        self,
        parse: Callable[[Sequence[str]], tuple[tuple[str, ...], ArgumentCollection]],
        words: Sequence[str],
        place: object,
        again: str,
        trust: bool,
        writes: bool = False,
    ) -> None:
        self.commands, arguments = parse(words)
        self.words = words
        self._place, self._again, self._trust, self.writes = place, again, trust, writes
        self._values: dict[tuple[str, ...], list[Token]] = {}
        for argument, token in given(arguments):
            if writes or argument.field_info.name not in NOT_REPEATED:
                self._values.setdefault(argument.names, []).append(token.evolve(source=str(place)))
        self._hosts: frozenset[str] = frozenset()

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Fill in what was not typed; InputError naming what must be typed again, or trusted."""
        self._hosts = frozenset(
            host_of(token.value)
            for argument, token in given(arguments)
            if reach_of(argument) in (Reach.ADDRESS, Reach.MODEL)
        )
        withheld, risky, asked = list[str](), list[str](), list[str]()
        for argument in arguments:
            if argument.tokens:
                continue
            for token in self._values.get(argument.names, ()):
                reach = reach_of(argument)
                why = "writes there" if argument.field_info.name in OUTPUTS else reason_to_type(reach, token.value)
                if reach is not None and WITHHELD in token.value:
                    withheld.append(argument.name)
                elif why:
                    risky.append(f"{shlex.join(words_of(argument, token))} ({why})")
                    asked += [token.value] if "://" in token.value else []
                argument.append(token)
        if withheld:
            self._refuse(
                f"{', '.join(dict.fromkeys(withheld))}: what may be a secret was left out when the command was "
                f"recorded; type it again, as in: {self._again} {withheld[0]} ..."
            )
        if risky and not self._trust:
            self._refuse(
                f"its command holds {shortened('; '.join(risky), 600)}: type that again, as in: {self._again} "
                f"{risky[0].split()[0].partition('=')[0]} ..., or, if you trust whoever made it, add --trust"
            )
        for url in asked:
            if keys := [name for name in KEY_VARIABLES if name in os.environ]:
                print(
                    f"{keys[0]} is not sent to {printable(url_without_secrets(url))}, which you did not type",
                    file=sys.stderr,
                )

    @contextmanager
    def keys_kept(self) -> Iterator[None]:
        """Keys go to no host but those that were typed, while the block runs."""
        before = TYPED_HOSTS.set(self._hosts)
        try:
            yield
        finally:
            TYPED_HOSTS.reset(before)

    def _refuse(self, why: str) -> None:
        raise InputError(f"{shown(self._place)}: {why}")
