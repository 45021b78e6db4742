"""Check that a host is reachable, before anything large is loaded for it."""

from __future__ import annotations

import os
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlsplit

from unslant.errors import ModelError

_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """While the block runs, no model's server is connected to, nor is the Hub."""
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
    """Called before a server is asked.

    Raises:
        ModelError: inside :func:`offline`.
    """
    if _OFFLINE.get():
        raise ModelError(f"{name}: would have to be asked; leave out --offline")


def refusal(url: str, seconds: float = 5.0) -> str:
    """Why no connection to the host of ``url`` can be made; empty if one can, or nobody is to be asked."""
    at = urlsplit(url)
    if _OFFLINE.get():
        return ""
    if urllib.request.getproxies() and not urllib.request.proxy_bypass(at.hostname or ""):
        return ""
    try:
        port = at.port or (443 if at.scheme == "https" else 80)
        socket.create_connection((at.hostname or "", port), timeout=seconds).close()
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def hub_refusal() -> str:
    """Why the Hugging Face Hub cannot be reached, found out in seconds; its own libraries retry for a minute."""
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
"""Address -> when and why it did not answer, so that a command waits for that once."""
