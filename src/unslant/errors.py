"""Deliberate errors; the command line turns each into one line and an exit code."""

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from unslant.reach import without_secrets

_BREAKS = "\n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Unicode categories: control, format (bidirectional overrides and the like), surrogate, private use."""
_JOINERS = "\u200c\u200d"
_LONGEST_NAME = 4096
_LONGEST_MESSAGE = 10_000
_OPTION = re.compile(r"(?<![\w/'\"-])--([a-z][a-z-]*)(?:=([\w.,/:{}+=-]*\w)| ([a-z_]+)=([\w.,]*\w)?| ('[^']*'))?")
_COMMAND = re.compile(r"(\bunslant (?:--|[a-z])[^;,()]*)")
_flags = False  # not a context variable: worker threads raise errors too


@contextmanager
def naming_flags(flags: bool = True) -> Iterator[None]:
    """Errors raised in the block name options as flags; elsewhere they name arguments of functions."""
    global _flags
    before, _flags = _flags, flags
    try:
        yield
    finally:
        _flags = before


def for_the_caller(message: str) -> str:
    """A message that names options as flags (``--skip-bad``, ``--skip-bad=True``), in the words of the interface used.

    Python users read ``skip_bad`` and ``skip_bad=True``. Commands to run (``unslant runs list --json``) stay.
    """
    name = _flag if _flags else _argument
    parts = _COMMAND.split(message)  # commands are at the odd places
    return "".join(part if place % 2 else _OPTION.sub(name, part) for place, part in enumerate(parts))


def _flag(option: re.Match[str]) -> str:
    return option[0].removesuffix("=True").replace("=", " ", 1) if option[2] else option[0]


def _argument(option: re.Match[str]) -> str:
    name, value, key = option[1].replace("-", "_"), option[2], option[3]
    if option[5]:  # --extra-body '{"top_k": 1}'
        return f"{name}={option[5]}"
    if key:  # --fields question=COLUMN
        return f'{name}={{"{key}": "{option[4] or ""}"}}'
    if value is None:
        return name
    return f"{name}={value}" if re.fullmatch(r"True|nan|-?(inf|[\d.]+(e[+-]?\d+)?)", value) else f'{name}="{value}"'


class UnslantError(Exception):
    """Something the user can fix. The message says what is wrong, where, what is allowed and what to do.

    It is one line that is safe to show, even with names and values from outside: addresses in it lose user, password
    and query. Write options as flags, ``--name`` or ``--name=value``: :func:`for_the_caller` translates them.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(shortened(printable(without_secrets(for_the_caller(str(message)))), _LONGEST_MESSAGE))


class InputError(UnslantError):
    """A question file, template, label set or option value that cannot be used as given."""

    @classmethod
    def at(cls, path: object, reason: str, *, line: int | None = None, field: str | None = None) -> "InputError":
        """An error that names its place: ``FILE, line 17, field "answer": reason``."""
        place = shown(path)
        if line is not None:
            place += f", line {line}"
        if field is not None:
            place += f', field "{field}"'
        return cls(f"{place}: {shortened(reason)}")


class ModelError(UnslantError):
    """A model or tokenizer that cannot be loaded or cannot do what was asked of it."""


class QuestionError(ModelError):
    """Some questions cannot be asked in this way, though others can.

    Attributes:
        reasons: id of the question -> reason, in the same words for every question with the same problem.
        status: ``unsupported``, or ``error`` where asking again may help.
    """

    def __init__(self, reasons: Mapping[str, str], message: object = "", status: str = "unsupported") -> None:
        name, reason = next(iter(reasons.items()))
        super().__init__(message or f"question {name!r}: {reason}")
        self.reasons, self.status = dict(reasons), status

    def __reduce__(self) -> tuple[Any, ...]:  # it may come from another process
        return type(self), (self.reasons, str(self), self.status)


class OutputError(UnslantError):
    """A file that could not be written. An older one is unchanged."""


class MostlyFailedError(ModelError):
    """More than half of the requests to a model failed, or none gave an answer. The measurements are still written."""


class FailedConditionsError(UnslantError):
    """A condition of ``--fail-if`` holds, or its number is undefined. Everything was written.

    Attributes:
        lines: one a condition.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(shortened(printable(line)) for line in lines)
        super().__init__("; ".join(self.lines))


def shown(path: object) -> str:
    """A path for messages and records: Unicode on one line, cut if it is longer than any real path."""
    text = printable(str(path))
    return text if len(text) <= _LONGEST_NAME else text[:200] + "..."


def printable(text: str) -> str:
    """The text on one line: invisible and half characters as Python writes them (``\\n``, ``\\x1b``)."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """Text for one line of a chart, a table or a terminal: no line ends, no control characters, nothing that turns the
    direction of what follows, no halves of characters."""
    if text.isascii() and text.isprintable():
        return text
    kept = (c for c in text if c in _BREAKS + _JOINERS or unicodedata.category(c) not in _UNSHOWN)
    return "".join(" " if c in _BREAKS else c for c in kept)


def one_of(name: str, known: Iterable[str]) -> str:
    """The nearest valid name, and all of them: ``did you mean 'fair'? use one of fair, ...``."""
    known = list(known)
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, 1)
    return (f"did you mean {by_lower[near[0]]!r}? " if near else "") + f"use one of {', '.join(known)}"


def shortened(text: str, longest: int = 1_000) -> str:
    """A text, without its middle if it is too long to read."""
    return text if len(text) <= longest else f"{text[: longest * 3 // 4]} ... {text[-longest // 4 :]}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its kind where it has none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return shortened(lines[0], 300) if lines else type(error).__name__


def without_options(words: Iterable[str], options: Collection[str]) -> list[str]:
    """The words of a command without some ``options`` and their values."""
    others, skips = [], False
    for word in words:
        option, sign, _ = word.partition("=")
        option = option.replace("_", "-")
        if not skips and option not in options:
            others.append(word)
        skips = not skips and option in options and not sign
    return others
