"""What an option reaches beyond the run itself: said once, where it is declared (``Annotated[str, Reach.MODEL]``).

Three readers go by it: a command that a file brings along (``unslant rerun``), defaults that nobody named
(``unslant.toml`` in the working folder), and everything that writes a command down. All three ask this module, so an
option is dangerous, and secret, in one place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

WITHHELD = "***"
"""Replaces a secret in a record."""


class Reach(Enum):
    """Kinds of options; options of type ``Path`` are a :attr:`PLACE` without saying so."""

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
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_WORDS_OF_INSPECT = frozenset({"reasoning_effort", "effort", "verbosity", "reasoning_summary", "reasoning_history"})
"""Settings of inspect whose values are words from a list."""
_IN_REQUESTS = frozenset({"extra_headers", "extra_body"})
_HERE = frozenset({"auto", "local"})
_LONGEST_NUMBER = 6
_SHORTEST_SECRET = 4


# What must be typed


def reason_to_type(reach: Reach | None, value: str) -> str:
    """Why a value that nobody typed is refused, in words that follow the option's name; empty if it is harmless."""
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
    """Texts of a value that may be paths: itself, each of several, and what follows a ``=``."""
    for part in {value, *value.split(","), *value.split(":")}:
        yield from {part.strip(), part.partition("=")[2].strip()}


def _outside(text: str) -> bool:
    """Whether a path leads out of the working folder, by itself or by a link."""
    try:
        here, there = os.path.realpath(os.curdir), os.path.realpath(os.path.expanduser(text))
    except (OSError, ValueError):
        return False  # no file can have such a name
    return not Path(there).is_relative_to(here)


# Which hosts get keys

TYPED_HOSTS: ContextVar[frozenset[str] | None] = ContextVar("typed hosts", default=None)
"""Hosts (:func:`host_of`) that the user typed, where the command itself comes from a file; None where all were."""


def host_of(url: str) -> str:
    """Scheme, host and port, which together say who receives a key."""
    try:
        at = urlsplit(url)
        return f"{at.scheme}://{at.hostname}:{at.port or (443 if at.scheme == 'https' else 80)}".lower()
    except ValueError:
        return ""


def may_have_keys(url: str) -> bool:
    """Whether keys of the environment may be sent to an address: not if only a file names it."""
    typed = TYPED_HOSTS.get()
    return typed is None or host_of(url) in typed


# What may be written down


def recorded(reach: Reach | None, value: str) -> str:
    """A value as it may be written down: names of headers and settings stay, values that may be secrets do not."""
    match reach:
        case Reach.SECRET:
            return WITHHELD
        case Reach.HEADER:
            name, colon, content = (part.strip() for part in value.partition(":"))
            if not colon or not _HEADER_NAME.fullmatch(name):
                return WITHHELD
            return f"{name}: {content if _VARIABLE.fullmatch(content) else WITHHELD}"
        case Reach.BODY:
            body = _json(value)
            return json.dumps(_without_texts(body)) if isinstance(body, dict) else WITHHELD
        case Reach.SETTING:
            name, sign, content = value.partition("=")
            if not sign or name in _WORDS_OF_INSPECT:
                return value if sign else WITHHELD
            kept = _without_texts(_json(content, content))
            return f"{name}={kept if kept == WITHHELD else json.dumps(kept)}"
    return url_without_secrets(value) if "://" in value else value


def recorded_body(body: Any) -> str:
    """An object that is sent, as part of a model's identity: without its texts, but with a digest, by which it differs
    from others. The digest is slow to compute, so that a short secret cannot be guessed from it."""
    text = json.dumps(body, sort_keys=True)
    kept = json.dumps(_without_texts(body), sort_keys=True)
    return kept if kept == text else f"{kept} {_digest(text)}"


def recorded_settings(given: Sequence[str]) -> str:
    """Settings of inspect as part of a model's identity, likewise."""
    kept = " ".join(sorted(recorded(Reach.SETTING, text) for text in given))
    return f"{kept} {_digest(json.dumps(sorted(given)))}" if WITHHELD in kept else kept


@lru_cache(64)
def _digest(text: str) -> str:
    return hashlib.scrypt(text.encode(), salt=b"unslant", n=1 << 14, r=8, p=1, dklen=6).hex()


def _without_texts(value: Any) -> Any:
    """JSON without its texts and long numbers, which may be secrets; keys and switches stay."""
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
    """A URL without user, password and the values of its query.

    A password may hold any character, so everything up to the last ``@`` counts as one; where an ``@`` follows a ``?``
    both readings are possible, and only the scheme is left.
    """
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
    """A message without these secrets, in any way they may be written, and with its URLs safe to be shown."""
    for secret in sorted({form for one in secrets for form in _forms(one)}, key=len, reverse=True):
        text = text.replace(secret, WITHHELD)
    return re.sub(r"\w+://\S+", lambda url: url_without_secrets(url[0]), text)


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
