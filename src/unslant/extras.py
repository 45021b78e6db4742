"""What may be missing: libraries that only some uses need, packages that add rows to our tables, and the network."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from unslant.errors import ModelError, UnslantError, first_line

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
        raise ModelError(
            f"{what}: there is no {name} in {module}; install a version of its package that has it"
        ) from None


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
