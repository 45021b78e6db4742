"""Asking a server over HTTP: in bounded time and space, many requests at once, and without telling secrets."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, stop_before_delay

from unslant.errors import InputError, ModelError
from unslant.models.concurrent import Limit, as_they_come
from unslant.models.options import KEY_VARIABLES
from unslant.reach import WITHHELD, may_have_keys, secrets_in_url, url_without_secrets, without_secrets
from unslant.reachable import check_online

TIMEOUT = 60.0
"""Seconds to wait for one whole reply."""
DEADLINE = 300.0
"""Seconds to wait for a usable reply, all tries together."""
CONNECTIONS = 32
"""Requests at a time, at most; see :class:`~unslant.models.concurrent.Limit`."""
LARGEST_REPLY = 32 << 20
"""Bytes of a reply that are read; a reply of label scores has a few thousand."""
_LARGEST_PROBLEM = 4096
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_OVERLOADED = frozenset({429, 503})
_LONGEST_WAIT = 60.0
_Found = TypeVar("_Found")


class Refused(ModelError):
    """The server answered, and not with what was asked for; ``status`` is HTTP's."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem)
        self.status = status


class Malformed(ModelError):
    """The server answered with what can be read in several ways, or in none; asking again would bring the same."""


class Unusable(ModelError):
    """Nobody answers, or in no usable way, however often it was asked."""


def is_lost(error: Exception) -> bool:
    """Whether an error is about the server, so that another one may do better."""
    return isinstance(error, Unusable) or (isinstance(error, Refused) and error.status in _RETRIED)


class _Transient(Exception):
    """A request that may succeed when it is repeated, ``after`` this many seconds if the server said so."""

    def __init__(self, problem: str, after: float | None = None, status: int = 0) -> None:
        super().__init__(problem)
        self.after, self.status = after, status


class Connection(TypedDict, total=False):
    """How a server is reached.

    Attributes:
        key_variable: environment variable that holds the key; none is sent where it is not set, or where the address
            is not one that the user typed (:func:`~unslant.reach.may_have_keys`).
        timeout: seconds for one whole reply, however slowly it comes.
        deadline: seconds for all tries of one request together, waits between them included.
        retries: how often a request is repeated after 429, 5xx, a broken connection or a broken body; not where nobody
            has ever answered.
        wait: seconds before the first repetition; doubled each time, or what ``Retry-After`` says.
        connections: requests at a time, at most.
        headers: more of them; what they hold is shown nowhere.
    """

    key_variable: str
    timeout: float
    deadline: float
    retries: int
    wait: float
    connections: int
    headers: Mapping[str, str]


class Endpoint:
    """A server that speaks JSON.

    Args:
        base_url: may hold a user, a password and a query, whose values are sent and nowhere shown.
        secrets: what else no message may show.
        how: see :class:`Connection`.

    Attributes:
        limit: how many requests are under way at a time.
        base_url: without user, password and the values of its query.
        waiting: what is being waited for, where a request failed for the time being; empty otherwise.
    """

    def __init__(self, base_url: str, *, secrets: Collection[str] = (), **how: Unpack[Connection]) -> None:
        self._url = base_url.rstrip("/")
        self.base_url = url_without_secrets(self._url)
        if WITHHELD in self._url:
            raise InputError(f"{self.base_url}: a part of the address was not recorded; type the whole address again")
        self.key_variable, self._gets_key = how.get("key_variable", KEY_VARIABLES[-1]), may_have_keys(self._url)
        self.timeout, self.deadline = how.get("timeout", TIMEOUT), how.get("deadline", DEADLINE)
        self.retries, self.wait = how.get("retries", 5), how.get("wait", 0.5)
        self.limit, self._headers = Limit(how.get("connections", CONNECTIONS)), dict(how.get("headers", {}))
        self._secrets = {*secrets, *self._headers.values(), *secrets_in_url(self._url)}
        self._reached = False  # a server that never answered is not waited for
        self.waiting = ""

    def client(self) -> httpx.AsyncClient:
        """A client for this server; loopback addresses are never asked through a proxy."""
        key = self._key()
        if not key.isascii():
            raise ModelError(f"the key in {self.key_variable} holds characters that no header can carry")
        return httpx.AsyncClient(
            timeout=self.timeout,
            limits=httpx.Limits(max_connections=self.limit.most),
            trust_env=not _is_loopback(urlsplit(self._url).hostname or ""),
            headers={
                "Accept-Encoding": "identity",
                **({"Authorization": f"Bearer {key}"} if key else {}),
                **self._headers,
            },
        )

    def _key(self) -> str:
        return os.environ.get(self.key_variable, "").strip() if self._gets_key else ""

    def redacted(self, text: str) -> str:
        """A message without the key and anything else that is secret."""
        user, _, password = urlsplit(self._url).netloc.rpartition("@")[0].partition(":")
        plain = f"{unquote(user)}:{unquote(password)}".encode()
        return without_secrets(text, {*self._secrets, self._key(), b64encode(plain).decode()})

    async def send(
        self,
        client: httpx.AsyncClient,
        route: str,
        body: Mapping[str, Any] | None = None,
        *,
        timed: bool = False,
        retries: int | None = None,
    ) -> Any:
        """The decoded reply to a POST of ``body``, or to a GET, repeating what may be transient.

        Args:
            route: below the base URL; with two slashes, below the server's root (the base URL without ``/v1``).
            timed: how long it takes says how busy the server is.
            retries: at most this many.

        Raises:
            ModelError: if there is no usable reply; :class:`Refused` if the server said so itself.
        """
        at = urlsplit(self._url)
        root = at.path.rstrip("/").removesuffix("/v1") if route.startswith("//") else at.path.rstrip("/")
        url = urlunsplit(at._replace(path=f"{root}/{route.lstrip('/')}"))
        tries = AsyncRetrying(
            retry=retry_if_exception_type(_Transient),
            stop=stop_after_attempt(min(self.retries, self.retries if retries is None else retries) + 1)
            | stop_before_delay(self.deadline),
            wait=self._pause,
            before_sleep=self._say_what_is_awaited,
            reraise=True,
        )
        try:
            async with asyncio.timeout(self.deadline):
                return await tries(self._once, client, url, body, timed)
        except _Transient as last:
            count = tries.statistics["attempt_number"]
            problem = self.redacted(f"no usable reply after {count} tries; the last one: {last}")
            raise (Refused(problem, last.status) if last.status else Unusable(problem)) from None
        except TimeoutError:
            last_problem = f"; the last try: {tries.statistics['last']}" if "last" in tries.statistics else ""
            raise Unusable(self.redacted(f"no usable reply within {self.deadline:g} s{last_problem}")) from None
        except Refused as problem:
            raise Refused(self.redacted(str(problem)), problem.status) from None
        except Malformed as problem:
            raise Malformed(self.redacted(str(problem))) from None
        finally:
            self.waiting = ""

    def _pause(self, state: RetryCallState) -> float:
        """Seconds before the next try: what the server asked for, or twice as long each time."""
        problem = state.outcome.exception() if state.outcome else None
        if isinstance(problem, _Transient) and problem.after is not None:
            return problem.after
        return min(_LONGEST_WAIT, self.wait * 2.0 ** (state.attempt_number - 1))

    def _say_what_is_awaited(self, state: RetryCallState) -> None:
        problem = state.outcome.exception() if state.outcome else None
        state.retry_object.statistics["last"] = problem  # the deadline may end the wait for the next try
        self.waiting = self.redacted(f"{self.base_url}: {problem}; next try in {state.upcoming_sleep:.0f} s")

    async def _once(self, client: httpx.AsyncClient, url: str, body: Mapping[str, Any] | None, timed: bool) -> Any:
        started = time.monotonic()
        try:
            async with (
                asyncio.timeout(self.timeout),
                client.stream("GET" if body is None else "POST", url, json=body) as response,
            ):
                data = await _read(response, LARGEST_REPLY if response.is_success else _LARGEST_PROBLEM)
        except TimeoutError:
            self.limit.overloaded()
            raise _Transient(f"no whole reply within {self.timeout:g} s") from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            problem = f"{type(error).__name__}: {error}".rstrip(": ")
            if self._reached:
                raise _Transient(problem) from None
            raise Unusable(self.redacted(f"no connection ({problem})")) from None
        except httpx.TransportError as error:
            raise _Transient(f"{type(error).__name__}: {error}".rstrip(": ")) from None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise ModelError(self.redacted(f"{type(error).__name__}: {error}")) from None
        self._reached = True
        if response.is_success:
            if len(data) > LARGEST_REPLY:
                raise Refused(f"the reply is larger than {LARGEST_REPLY >> 20} MiB", response.status_code)
            if timed:
                self.limit.answered(time.monotonic() - started)
            try:
                return json.loads(data, object_pairs_hook=_each_key_once)
            except (ValueError, RecursionError) as error:
                if body is None:
                    raise Refused("the answer is no JSON", response.status_code) from None
                raise _Transient(f"{type(error).__name__}: {error}") from None
        said = data[:300].decode("utf-8", "replace").strip()
        problem = f"HTTP {response.status_code} {response.reason_phrase}{f': {said}' if said else ''}"
        if response.status_code in _OVERLOADED:
            self.limit.overloaded()
        if response.status_code in _RETRIED:
            raise _Transient(problem, _retry_after(response), response.status_code)
        raise Refused(problem, response.status_code)

    def all(
        self,
        items: Sequence[Any],
        ask: Callable[[httpx.AsyncClient, Any], Awaitable[_Found]],
        runs: Sequence[Sequence[int]] | None = None,
    ) -> Iterator[tuple[int, _Found]]:
        """What ``ask`` finds for each item, as it comes; see :func:`~unslant.models.concurrent.as_they_come`."""
        check_online(self.base_url)
        return as_they_come(items, ask, self.limit, self.client, runs)


def hint_of(url: str) -> str:
    """What to try where an address without the ``/v1`` of most servers has no such route; else empty."""
    at = urlsplit(url)
    return "" if at.path.strip("/") else f" (most servers are at {urlunsplit(at._replace(path='/v1'))})"


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of two values under one key none is better than the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise Malformed(f"the reply gives {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return found


async def _read(response: httpx.Response, limit: int) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > limit:
            break
    return bytes(data)


def _retry_after(response: httpx.Response) -> float | None:
    try:
        seconds = float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return None if math.isnan(seconds) else min(_LONGEST_WAIT, max(0.0, seconds))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
