"""How an option is written on the command line, said where it is declared: ``Annotated[str, Flag("--settings")]``.

Settings are plain dataclasses, which Python users import too: only :mod:`unslant.cli` knows the library that parses a
command line, and makes its parameters of these.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, init=False)
class Flag:
    """What does not follow from an option's name, type and docstring.

    Attributes:
        names: as typed, such as ``("--model", "-m")``; by default ``--`` and the name of the field.
        help: by default the docstring below the field.
        metavar: the placeholder of the value in help.
        commas: whether one word may hold several values, as in ``A,B,C``.
        many: whether every word up to the next option is a value.
    """

    names: tuple[str, ...]
    help: str
    metavar: str
    commas: bool
    many: bool

    def __init__(
        self, *names: str, help: str = "", metavar: str = "", commas: bool = False, many: bool = False
    ) -> None:
        for name, value in (("names", names), ("help", help), ("metavar", metavar), ("commas", commas), ("many", many)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, init=False)
class Without:
    """Fields of a group of options that cannot matter to a command, which therefore does not have them."""

    names: frozenset[str]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", frozenset(names))


@dataclass(frozen=True)
class Heading:
    """The heading in help of a group of options; ``place`` orders the groups."""

    title: str
    place: int
