"""What an option reaches beyond the run itself, as its declaration says: ``Annotated[str, Reach.MODEL]``.

Three readers need it: commands from files (``unslant rerun``), defaults from a file that nobody named (``unslant.toml``
in the working folder), and everything that writes a command down. All use this module, so that one place says which
options are dangerous and which are secret. The running command is here too, in the form that may be written down.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

WITHHELD = "***"
"""Replaces a secret in a record."""


class Reach(Enum):
    """Kinds of options; an option of type ``Path`` is a :attr:`PLACE` without a declaration."""

    CODE = "code"
    """Runs code that comes with a model or a task."""
    ADDRESS = "address"
    """A URL, or the address of a cluster."""
    MODEL = "model"
    """A model's name: also an address, a provider that is asked with the user's key, or a path."""
    HEADER = "header"
    """``NAME: VALUE`` of a request; the value may be read from the environment."""
    BODY = "body"
    """A JSON object that is sent."""
    SETTING = "setting"
    """``NAME=VALUE`` for inspect."""
    PLACE = "place"
    """A name that may be a path."""
    SECRET = "secret"
    """Never written down."""


_VARIABLE = re.compile(r"\$[A-Za-z_]\w*")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What the name of a header may be."""
_WORDS_OF_INSPECT = frozenset({"reasoning_effort", "effort", "verbosity", "reasoning_summary", "reasoning_history"})
"""Settings of inspect whose values are words from a list."""
_IN_REQUESTS = frozenset({"extra_headers", "extra_body"})
_HERE = frozenset({"auto", "local"})
_LONGEST_NUMBER = 6
_SHORTEST_SECRET = 4


# What must be typed


def reason_to_type(reach: Reach | None, value: str) -> str:
    """Why a value that the user did not type is refused, after the name of the option; empty if it is harmless."""
    match reach:
        case Reach.CODE:
            return "runs code of others"
        case Reach.ADDRESS:
            return "" if value in _HERE else "names an address"
        case Reach.HEADER:
            return "reads your environment" if "$" in value else "is sent to a server"
        case Reach.BODY:
            return "is sent to a server"
        case Reach.SETTING:
            return "is sent to a server" if value.partition("=")[0].strip() in _IN_REQUESTS else ""
        case Reach.MODEL if "://" in value:
            return "names an address"
        case Reach.MODEL if re.search(r"(^|,)\s*inspect:", value):
            return "asks a provider with your key"
        case Reach.MODEL | Reach.PLACE:
            return "names a place outside this folder" if any(map(_outside, _parts(value))) else ""
    return ""


def _parts(value: str) -> Iterator[str]:
    """Possible paths in a value: itself, each of several, and what follows a ``=``."""
    for part in {value, *value.split(","), *value.split(":")}:
        yield from {part.strip(), part.partition("=")[2].strip()}


def _outside(text: str) -> bool:
    """Whether a path leads out of the working folder, directly or by a link."""
    try:
        here, there = os.path.realpath(os.curdir), os.path.realpath(os.path.expanduser(text))
    except (OSError, ValueError):
        return False  # no file can have such a name
    return not Path(there).is_relative_to(here)


# Which hosts get keys

TYPED_HOSTS: ContextVar[frozenset[str] | None] = ContextVar("typed hosts", default=None)
"""Hosts (:func:`host_of`) that the user typed, if the command comes from a file; None if the user typed it all."""


def host_of(url: str) -> str:
    """Scheme, host and port: the receiver of a key."""
    try:
        at = urlsplit(url)
        return f"{at.scheme}://{at.hostname}:{at.port or (443 if at.scheme == 'https' else 80)}".lower()
    except ValueError:
        return ""


def may_have_keys(url: str) -> bool:
    """Whether keys of the environment may be sent to an address: never if only a file names it."""
    typed = TYPED_HOSTS.get()
    return typed is None or host_of(url) in typed


# What may be written down


def recorded(reach: Reach | None, value: str) -> str:
    """A value as it may be written down: with names of headers and settings, but without possible secrets."""
    match reach:
        case Reach.SECRET:
            return WITHHELD
        case Reach.HEADER:
            name, colon, content = (part.strip() for part in value.partition(":"))
            if not colon or not HEADER_NAME.fullmatch(name):
                return WITHHELD
            return f"{name}: {content if _VARIABLE.fullmatch(content) else WITHHELD}"
        case Reach.BODY:
            body = _json(value)
            return json.dumps(_without_texts(body)) if isinstance(body, dict) else WITHHELD
        case Reach.SETTING:
            name, sign, content = value.partition("=")
            if not sign or name in _WORDS_OF_INSPECT:
                return value if sign else WITHHELD
            public = _without_texts(_json(content, content))
            return f"{name}={public if public == WITHHELD else json.dumps(public)}"
    return url_without_secrets(value) if "://" in value else value


def recorded_body(body: Any) -> str:
    """The body of a request as part of a model's identity: without its texts, but with a digest of them."""
    text = json.dumps(body, sort_keys=True)
    public = json.dumps(_without_texts(body), sort_keys=True)
    return public if public == text else f"{public} {_digest(text)}"


def recorded_settings(settings: Sequence[str]) -> str:
    """Settings of inspect as part of a model's identity, likewise."""
    public = " ".join(sorted(recorded(Reach.SETTING, text) for text in settings))
    return f"{public} {_digest(json.dumps(sorted(settings)))}" if WITHHELD in public else public


@lru_cache(64)
def _digest(text: str) -> str:
    # Slow on purpose (scrypt): a short secret must not be guessed from its digest.
    return hashlib.scrypt(text.encode(), salt=b"unslant", n=1 << 14, r=8, p=1, dklen=6).hex()


def _without_texts(value: Any) -> Any:
    """JSON without texts and long numbers, which may be secrets; keys and switches stay."""
    if isinstance(value, dict):
        return {key: _without_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_texts(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    return WITHHELD if isinstance(value, str) or len(str(value)) > _LONGEST_NUMBER else value


def _json(text: str, otherwise: Any = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def url_without_secrets(url: str) -> str:
    """A URL without user, password and the values of its query."""
    # A password may hold any character, so everything up to the last @ counts as one. An @ after a ? may end a password
    # or be part of a query: then only the scheme stays.
    scheme, sign, rest = url.partition("://")
    if not sign:
        return url
    address, mark, query = rest.partition("?")
    if "@" in query:
        return f"{scheme}://{WITHHELD}"
    if "@" in address:
        address = f"{WITHHELD}@{address.rpartition('@')[2]}"
    query, sharp, fragment = query.partition("#")
    pairs = [(name, equals) for name, equals, _ in (pair.partition("=") for pair in query.split("&"))]
    values = "&".join(f"{name}={WITHHELD}" if equals else WITHHELD for name, equals in pairs)
    return f"{scheme}://{address}{mark}{values if query else ''}{sharp}{fragment}"


def without_secrets(text: str, secrets: Collection[str] = ()) -> str:
    """A message without these secrets, in any form that they may take, and with URLs that are safe to show."""
    for secret in sorted({form for one in secrets for form in _forms(one)}, key=len, reverse=True):
        text = text.replace(secret, WITHHELD)
    # The look behind keeps a word of a million letters from being tried from each of them on.
    return re.sub(r"(?<!\w)\w+://\S+", lambda url: url_without_secrets(url[0]), text)


def _forms(secret: str) -> Iterator[str]:
    for form in (secret, unquote(secret), *secret.split()[-1:]):
        if len(form) >= _SHORTEST_SECRET:
            yield form
            yield json.dumps(form)[1:-1]


def secrets_in_url(url: str) -> set[str]:
    """User, password and values of the query."""
    try:
        at = urlsplit(url)
        user, _, password = at.netloc.rpartition("@")[0].partition(":")
        return {password or user, *(value for _, value in parse_qsl(at.query))} - {""}
    except ValueError:
        return set()


def texts_in(value: Any) -> set[str]:
    """All texts in an object that is sent."""
    if isinstance(value, dict | list):
        return set().union(*map(texts_in, value.values() if isinstance(value, dict) else value))
    return {value} if isinstance(value, str) else set()


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it may be written down: the words after ``unslant``, without secrets; empty from Python.

    Attributes:
        words: all words, for the run store.
        repeatable: for provenance, the words without those that say where to write, what to store and what to show.
        typed: names of the options that the user typed, not a file.
    """

    words: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ()
    typed: frozenset[str] = frozenset()


ON_INTERRUPT: list[Callable[[], None]] = []
"""Functions that another thread calls after Ctrl-C while native code keeps the main thread busy."""
_FROM_PYTHON = Command()
COMMAND: ContextVar[Command] = ContextVar("command", default=_FROM_PYTHON)
OUTPUTS = frozenset(
    {"json", "html", "responses", "out", "figures", "tables", "charts", "samples", "save_model", "merged"}
)
"""Names of options that say where to write."""
NOT_REPEATED = OUTPUTS | {"plan", "store", "fail_if", "baseline", "quiet", "details", "no_store"}
"""Names of options that make no difference to the questions asked."""
