"""Whether anybody listens at an address, found out before anything large is loaded for it."""

from __future__ import annotations

import os
import socket
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
