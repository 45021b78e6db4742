"""Deliberate errors, which the command line turns into one line and an exit code; and what to install or to reach.

What may be missing: libraries that only some uses need, packages that add rows to our tables, and the network.
"""

import difflib
import functools
import os
import re
import sys
import time
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

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
    if option[5]:  # --extra-body '{"top_k": 1}', --fields 'question=MY COLUMN'
        key, _, column = option[5].strip("'").partition("=")
        return f"{name}={option[5]}" if "{" in key else f'{name}={{"{key}": "{column}"}}'
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


def one_of(name: object, known: Iterable[str]) -> str:
    """The nearest valid name, and all of them: ``did you mean 'fair'? use one of fair, ...``."""
    known = list(known)
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), by_lower, 1)
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


# What may be missing

_LOCAL = "torch transformers tokenizers safetensors huggingface_hub datasets peft accelerate gguf".split()
EXTRAS = {
    **dict.fromkeys(_LOCAL, "unslant[local]"),
    "vl_convert": "unslant[figures]",
    "inspect_ai": "unslant[inspect]",
    "lm_eval": "unslant[lm-eval]",
    "openai": "unslant[inspect]",
    "openpyxl": "unslant[excel]",
    "pandas": "pandas",
    "ray": "unslant[ray]",
    "bitsandbytes": "bitsandbytes",
}
"""Module -> what installs it."""


def needed(module: str, what: str, kind: type[UnslantError] = ModelError) -> Any:
    """Import a module that may not be installed.

    Args:
        what: the thing that needs it, as the beginning of a sentence: ``a local model``.
        kind: class of the error.

    Raises:
        UnslantError: of that class, naming what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise kind(missing(error, what) or f"{what} needs {module}: {first_line(error)}") from error


def missing(error: ImportError, what: str = "this") -> str:
    """What to install after a failed import, in one line; empty for a module that is not in :data:`EXTRAS`."""
    root = (error.name or "").partition(".")[0]
    if root not in EXTRAS:
        return ""
    broken = "" if isinstance(error, ModuleNotFoundError) else f" ({first_line(error)})"
    return f"{what} needs {root}{broken}: pip install {EXTRAS[root]!r}"


def with_plugins(rows: Mapping[str, str], group: str) -> dict[str, str]:
    """A table of ``name -> module:object`` with the rows that installed packages add as entry points of a group."""
    # Our names win: installing a package must not change a command that worked before.
    return _plugins(group, tuple(sys.path)) | dict(rows)


@functools.cache
def _plugins(group: str, path: tuple[str, ...]) -> dict[str, str]:
    """Entry points of a group, looked up once a search path: it reads the metadata of all installed packages."""
    from importlib.metadata import entry_points  # slow to import, and few commands need it

    return {point.name: point.value for point in entry_points(group=group)}


def load_row(home: str, what: str) -> Any:
    """Import the object that a row of a table names.

    Args:
        what: the row, as the beginning of a sentence: ``the method bnp``.

    Raises:
        ModelError: naming what to install, or the package that cannot be imported.
    """
    module, _, name = home.partition(":")
    try:
        return getattr(needed(module, what), name)
    except AttributeError:
        raise ModelError(f"{what}: there is no {name} in {module}; install a version that has it") from None


_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """While the block runs, connect neither to servers of models nor to the Hub."""
    token, before = _OFFLINE.set(True), dict(os.environ)
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    try:
        yield
    finally:
        _OFFLINE.reset(token)
        for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
            os.environ.pop(name)
            os.environ.update({name: before[name]} if name in before else {})


def check_online(name: str) -> None:
    """Raise ModelError inside :func:`offline`; to be called before a request to a server."""
    if _OFFLINE.get():
        raise ModelError(f"{name}: needs requests to a server; leave out --offline")


def refusal(url: str, seconds: float = 5.0) -> str:
    """Why the host of ``url`` cannot be reached; empty if it can, or must not be tried."""
    import socket  # with urllib.request slow to import, and few commands need them
    import urllib.request

    at = urlsplit(url)
    host = at.hostname or ""
    if _OFFLINE.get() or (urllib.request.getproxies() and not urllib.request.proxy_bypass(host)):
        return ""
    try:
        port = at.port or (443 if at.scheme == "https" else 80)
        socket.create_connection((host, port), timeout=seconds).close()
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def hub_refusal() -> str:
    """Why the Hugging Face Hub cannot be reached, after seconds; its own libraries retry for a minute."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    now = time.monotonic()
    since, reason = _unreachable.get(constants.ENDPOINT, (-_SECONDS_KNOWN, ""))
    if now - since < _SECONDS_KNOWN:
        return reason
    if reason := refusal(constants.ENDPOINT, 3.0):
        _unreachable[constants.ENDPOINT] = now, reason
    return reason


_SECONDS_KNOWN = 60.0
_unreachable: dict[str, tuple[float, str]] = {}
"""Address -> time and reason of a failure, so that a command waits for an unreachable host only once."""
