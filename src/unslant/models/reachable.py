"""Whether anybody listens at an address, found out before anything large is loaded for it."""

from __future__ import annotations

import socket
import urllib.request
from urllib.parse import urlsplit


def refusal(url: str, seconds: float = 5.0) -> str:
    """Why no connection to the host of ``url`` can be made; empty if one can, or if a proxy would have to be asked."""
    at = urlsplit(url)
    if urllib.request.getproxies() and not urllib.request.proxy_bypass(at.hostname or ""):
        return ""
    try:
        port = at.port or (443 if at.scheme == "https" else 80)
        socket.create_connection((at.hostname or "", port), timeout=seconds).close()
    except (OSError, ValueError) as error:
        return str(error)
    return ""
