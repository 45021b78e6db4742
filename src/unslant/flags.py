"""Options: how each is written on the command line, and the checks that command line and Python share.

``Annotated[str, Flag("--settings")]`` says the first where an option is declared.

Settings are plain dataclasses, which Python users import too: only :mod:`unslant.cli` knows the library that parses a
command line, and makes its parameters of these.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    SupportsFloat,
    SupportsIndex,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from unslant.errors import InputError, one_of
from unslant.reach import COMMAND

T = TypeVar("T")
LARGEST = 1_000_000_000
"""Of a whole number that an option can have, but for seeds."""


class Flag:
    """How an option is written, as far as its name, type and docstring do not say.

    Attributes:
        names: as typed, such as ``("--model", "-m")``; by default ``--`` and the name of the field.
        help: by default the docstring below the field.
        metavar: the placeholder of the value in help.
        commas: whether one word may hold several values, as in ``A,B,C``.
        many: whether every word up to the next option is a value.
    """

    def __init__(
        self, *names: str, help: str = "", metavar: str = "", commas: bool = False, many: bool = False
    ) -> None:
        self.names, self.help, self.metavar, self.commas, self.many = names, help, metavar, commas, many


class Without:
    """Fields of a group of options that a command does not have, because they would have no effect."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)


@dataclass(frozen=True)
class Heading:
    """The heading in help of a group of options; ``place`` orders the groups."""

    title: str
    place: int


def path_in(name: str, value: object, give: str = "the name of a file") -> Path:
    """The path in an argument of a function; InputError, naming the argument, on anything else."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} of type {type(value).__name__}: give {give}")
    return Path(value)


def pairs(name: str, value: Mapping[str, Any] | Sequence[str], kind: Callable[[str], Any] = str) -> dict[str, Any]:
    """A mapping, or ``NAME=VALUE`` texts converted to one; InputError, naming the option ``name``, on anything else."""
    if isinstance(value, Mapping):
        for key, content in value.items():
            if kind is str and not (isinstance(content, str) and isinstance(key, str)):
                raise InputError(f"{name}: {key!r} is {content!r}; give a field and the name of its column, as texts")
        return dict(value)
    values: dict[str, Any] = {}
    if not isinstance(value, list | tuple | str) or not all(isinstance(text, str) for text in value):
        like = "of field and column, such as {'answer': 'gold'}" if kind is str else "such as {'OS': 0.3}"
        raise InputError(f"{name} {value!r}: give a dict {like}")
    for text in [value] if isinstance(value, str) else value:
        key, sign, content = text.partition("=")
        try:
            values[key] = kind(content)
        except ValueError:
            sign = ""
        if not sign or not key:
            example = "question=prompt" if kind is str else "OS=0.3"
            raise InputError(f"{name} {text!r}: write it as NAME=VALUE, for example {example}")
    return values


@dataclass(frozen=True, kw_only=True)
class CheckedOptions:
    """Options with values of their types (:func:`typed`) and numbers of ``LEAST`` or more; InputError otherwise."""

    LEAST: ClassVar[Mapping[str, float]] = {}

    def __post_init__(self) -> None:
        # Field.type is a text in a module with postponed annotations, and would check nothing.
        hints = get_type_hints(type(self), include_extras=True)
        for f in dataclasses.fields(self):
            object.__setattr__(self, f.name, typed(f.name, getattr(self, f.name), hints[f.name]))
        for kind in type(self).__mro__:
            check_least(self, vars(kind).get("LEAST", {}))


def typed(name: str, value: Any, kind: Any) -> Any:
    """A value from Python as the command line would have read it; for a text also a number or a list.

    Raises:
        InputError: naming the option, if it is of another type.
    """
    notes: list[Any] = []
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if value is None and NoneType in kinds:
        return None
    kind = kinds[0]
    if get_origin(kind) is tuple:
        if isinstance(value, str):
            parts = value.split(",") if any(isinstance(one, Flag) and one.commas for one in notes) else [value]
            return tuple(part.strip() for part in parts if part.strip())
        if isinstance(value, int | float) and str not in get_args(kind):
            return (value,)
        if not isinstance(value, Iterable):
            raise InputError(f"{name} {value!r}: give a list")
        return value
    if get_origin(kind) is Literal and value not in get_args(kind):
        raise InputError(f"{name} {value!r}: {one_of(str(value), filter(None, get_args(kind)))}")
    if kind is str and {*kinds} <= {str, NoneType} and not isinstance(value, str):
        if isinstance(value, Iterable) and not isinstance(value, Mapping | Set | bytes):
            parts = [str(part) for part in value]
            if split := [part for part in parts if "," in part]:
                raise InputError(f"{name}: {split[0]!r} has a comma, which separates the values")
            return ",".join(parts)
        if isinstance(value, bool) or not isinstance(value, SupportsFloat | Path):
            raise InputError(f"{name} {value!r}: give a text")
        return str(value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is int and not (isinstance(value, SupportsIndex) and not isinstance(value, bool)):
        raise InputError(f"{name} {value!r}: give a whole number")
    if kind is int and name != "seed" and value > LARGEST:
        raise out_of_range(name, value, f"{LARGEST:,} or less")
    if kind is float and (isinstance(value, bool) or not isinstance(value, SupportsFloat)):
        raise InputError(f"{name} {value!r}: give a number")
    if kind in (int, float) and not isinstance(value, int | float):
        return kind(value)  # of NumPy: JSON has no such numbers
    if kind is bool and not isinstance(value, bool):
        raise InputError(f"{name} {value!r}: give True or False")
    return value


def part_of(settings: object, kind: Callable[..., T]) -> T:
    """A ``kind`` made of the fields it shares with ``settings``."""
    names = [f.name for f in dataclasses.fields(cast(Any, kind)) if hasattr(settings, f.name)]
    return kind(**{name: getattr(settings, name) for name in names})


def check_unused(why: str, *groups: Any, but: Collection[str] = (), only: Collection[str] | None = None) -> None:
    """Refuse options that would have no effect.

    Args:
        why: the beginning of the message: ``--log reads recorded responses``.
        groups: dataclasses of options; a value that is not the default counts as typed.
        but: fields that do have an effect.
        only: fields to check; by default all.

    Raises:
        InputError: naming every such option and its value.
    """
    typed = COMMAND.get().typed  # also with the value that is the default
    useless = [
        _flag(f) + _written(value)
        for group in groups
        for f in dataclasses.fields(group)
        if f.name not in but and (only is None or f.name in only)
        if ((value := getattr(group, f.name)) != f.default and (value or f.default != ())) or _flag(f) in typed
    ]
    if useless:
        raise without_effect(why, useless)


def without_effect(why: str, options: Collection[str]) -> InputError:
    """The error on options that would have no effect, as typed; ``why`` begins the message."""
    verb = "has" if len(options) == 1 else "have"
    return InputError(f"{why}: leave out {' and '.join(options)}, which {verb} no effect here")


def check_least(options: Any, least_of: Mapping[str, float]) -> None:
    """Raise InputError for a number below the least that its field allows; None is allowed."""
    for name, least in least_of.items():
        if (value := getattr(options, name)) is not None and not value >= least:
            raise out_of_range(name, value, f"{least:g} or more")


def out_of_range(name: str, value: float, allowed: str) -> InputError:
    """The error on a number that an option cannot have: ``--price -1: give 0 or more``."""
    return InputError(f"{long_flag(name)}={value:g}: give {allowed}")


def _flag(f: dataclasses.Field[Any]) -> str:
    names = [name for one in get_args(f.type)[1:] if isinstance(one, Flag) for name in one.names]
    return names[0] if names else long_flag(f.name)


def long_flag(name: str) -> str:
    """An option as typed on the command line."""
    return f"--{name.replace('_', '-')}"


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "".join(f" {key}={one}" for key, one in value.items())
    return "" if value is True else f"={','.join(map(str, value)) if isinstance(value, tuple | list) else value}"


class UnknownOptionError(InputError, TypeError):
    """An unknown keyword option."""


BY_PLACE = {
    "model": "give the model first, without a keyword",
    "models": "give the models first, as a list",
    "questions": "give the questions after the model, without a keyword",
    "tokenizer": "open the model with it first: unslant.open_model(model, tokenizer=tokenizer)",
}
"""Likely keywords of functions of a model and questions that are no options -> what to do instead."""


def in_place_of(*outputs: Any) -> dict[str, str]:
    """:data:`BY_PLACE`, and the fields of options that say what a command prints, writes and stores."""
    results = "their result has summary, to_json, to_html, to_parquet, save_figures and save_tables"
    names = [f.name for kind in outputs for f in dataclasses.fields(kind)]
    return dict.fromkeys(names, f"functions print, write and store nothing; {results}") | BY_PLACE


def by_kind(
    kinds: Mapping[str, Any], options: Mapping[str, Any], instead: Mapping[str, str] = BY_PLACE
) -> dict[str, dict[str, Any]]:
    """Keywords by the first dataclass that has such a field; UnknownOptionError lists all fields, or says what to do
    ``instead``."""
    places = {f.name: name for name in reversed([*kinds]) for f in dataclasses.fields(kinds[name])}
    parts: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    for name, value in options.items():
        if name not in places:
            raise UnknownOptionError(f"no option {name!r}: {instead.get(name) or one_of(name, sorted(places))}")
        parts[places[name]][name] = value
    return parts


def with_options(kind: Callable[..., T], settings: T | None, options: Mapping[str, Any]) -> T:
    """The settings of a Python call, from an object, keywords, or both; UnknownOptionError lists the valid ones."""
    start: Any = settings if settings is not None else kind()
    if not isinstance(start, cast(Any, kind)):
        names = sorted(f.name for f in dataclasses.fields(cast(Any, kind)))
        raise UnknownOptionError(f"settings={settings!r}: give options by name: {', '.join(names)}")
    return cast(T, replace(start, **by_kind({"": kind}, options, {})[""]))
