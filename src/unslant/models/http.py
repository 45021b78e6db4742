"""Requests to a server over HTTP: bounded in time and space, many at once, and without leaking secrets."""

from __future__ import annotations

import asyncio
import errno
import json
import math
import os
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, stop_before_delay

from unslant.errors import InputError, ModelError, check_online, shortened
from unslant.files import RepeatedKey, parse_json
from unslant.models.base import Malformed
from unslant.models.concurrent import Limit, Server, from_several
from unslant.models.options import KEY_VARIABLES
from unslant.reach import WITHHELD, may_have_keys, secrets_in_url, url_without_secrets, without_secrets

TIMEOUT = 60.0
"""Seconds to wait for one whole reply."""
DEADLINE = 300.0
"""Seconds to wait for a usable reply, all tries together."""
CONNECTIONS = 32
"""Most requests at a time; see :class:`~unslant.models.concurrent.Limit`."""
LARGEST_REPLY = 32 << 20
"""Most bytes of a reply that are read; a reply with label scores has a few thousand."""
_LARGEST_PROBLEM = 4096
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_OVERLOADED = frozenset({429, 503})
_LONGEST_WAIT = 60.0
_Reply = TypeVar("_Reply")


class Refused(ModelError):
    """The server refused the request; ``status`` is that of HTTP."""

    def __init__(self, problem: str, status: int = 0) -> None:
        super().__init__(problem)
        self.status = status


class Unusable(ModelError):
    """No usable reply after all retries."""


def is_lost(error: Exception) -> bool:
    """Whether an error comes from the server, so that another one may do better."""
    return isinstance(error, Unusable) or (isinstance(error, Refused) and error.status in _RETRIED)


def placed(error: ModelError, problem: str) -> ModelError:
    """The error as a problem in words, still one of a server that is lost if it was."""
    return (Unusable if is_lost(error) else ModelError)(problem)


class _Transient(Exception):
    """A request that may succeed when repeated, ``after`` as many seconds as the server asked for, if it did."""

    def __init__(self, problem: str, after: float | None = None, status: int = 0) -> None:
        super().__init__(problem)
        self.after, self.status = after, status


class Connection(TypedDict, total=False):
    """How a server is reached.

    Attributes:
        key_variable: environment variable that holds the key; no key is sent if it is not set, or if the user did not
            type the address (:func:`~unslant.reach.may_have_keys`).
        timeout: seconds for one whole reply, however slowly it arrives.
        deadline: seconds for all tries of one request together, including waits between them; at least ``timeout``
            unless given.
        retries: how often a request is repeated after 429, 5xx, a broken connection or a broken body; never if the
            server has not answered before.
        wait: seconds before the first repetition; doubled each time, unless ``Retry-After`` says otherwise.
        connections: most requests at a time.
        headers: more headers; their values are never shown.
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
        base_url: may hold a user, a password and a query, whose values are sent but never shown.
        secrets: other texts that no message may show.
        how: see :class:`Connection`.

    Attributes:
        limit: on the number of concurrent requests.
        base_url: without user, password and the values of its query.
        waiting: what a request that failed for the time being waits for; empty otherwise.
    """

    def __init__(self, base_url: str, *, secrets: Collection[str] = (), **how: Unpack[Connection]) -> None:
        self._url = base_url.rstrip("/")
        self.base_url = url_without_secrets(self._url)
        if WITHHELD in self._url:
            raise InputError(f"{self.base_url}: a part of the address was not recorded; type the whole address again")
        self.key_variable, self._gets_key = how.get("key_variable", KEY_VARIABLES[-1]), may_have_keys(self._url)
        self.timeout = how.get("timeout", TIMEOUT)
        self.deadline = how.get("deadline", max(DEADLINE, self.timeout))
        self.retries, self.wait = how.get("retries", 5), how.get("wait", 0.5)
        self.limit, self._headers = Limit(how.get("connections", CONNECTIONS)), dict(how.get("headers", {}))
        self._secrets = {*secrets, *self._headers.values(), *secrets_in_url(self._url)}
        self._reached = False  # requests are not repeated to a server that never answered
        self.waiting = ""

    def client(self) -> httpx.AsyncClient:
        """A client for this server, which reaches loopback addresses without a proxy."""
        key = self._key()
        if not (key.isascii() and key.isprintable()):
            raise ModelError(f"the key in {self.key_variable} contains characters that a header cannot contain")
        return httpx.AsyncClient(
            timeout=self.timeout,
            limits=httpx.Limits(max_connections=self.limit.most),
            trust_env=not is_loopback(urlsplit(self._url).hostname or ""),
            headers={
                "Accept-Encoding": "identity",  # a small compressed reply could unpack to gigabytes
                **({"Authorization": f"Bearer {key}"} if key else {}),
                **self._headers,
            },
        )

    def _key(self) -> str:
        return os.environ.get(self.key_variable, "").strip() if self._gets_key else ""

    def redacted(self, text: str) -> str:
        """A message without the key or any other secret."""
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
            timed: count the latency as a sign of how busy the server is.
            retries: at most this many.

        Raises:
            ModelError: if there is no usable reply; :class:`Refused` if the server refused it.
        """
        at = urlsplit(self._url)
        root = at.path.rstrip("/").removesuffix("/v1") if route.startswith("//") else at.path.rstrip("/")
        url = urlunsplit(at._replace(path=f"{root}/{route.lstrip('/')}"))
        tries = AsyncRetrying(
            retry=retry_if_exception_type(_Transient),
            stop=stop_after_attempt(min(self.retries, self.retries if retries is None else retries) + 1)
            | stop_before_delay(self.deadline),
            wait=self._pause,
            reraise=True,
        )
        try:
            async with asyncio.timeout(self.deadline):
                return await tries(self._once, client, url, body, timed)
        except _Transient as last:
            count = tries.statistics["attempt_number"]
            problem = self.redacted(
                f"no usable reply after {count} {'tries' if count > 1 else 'try'}; the last one: {last}"
            )
            raise (Refused(problem, last.status) if last.status else Unusable(problem)) from None
        except TimeoutError:
            last_problem = f"; the last try: {tries.statistics['last']}" if "last" in tries.statistics else ""
            raise Unusable(self.redacted(f"no usable reply within {self.deadline:g} s{last_problem}")) from None
        finally:
            self.waiting = ""

    def _pause(self, state: RetryCallState) -> float:
        """Seconds before the next try: as many as the server asked for, or twice as many each time; and say so."""
        problem = state.outcome.exception() if state.outcome else None
        seconds = min(_LONGEST_WAIT, self.wait * 2.0 ** (state.attempt_number - 1))
        if isinstance(problem, _Transient) and problem.after is not None:
            seconds = problem.after
        state.retry_object.statistics["last"] = problem  # the deadline may end the wait for the next try
        self.waiting = self.redacted(f"{self.base_url}: {problem}; next try in {seconds:.0f} s")
        return seconds

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
        except httpx.RequestError as error:  # also a body that cannot be unpacked
            problem, number = _described(error)
            if number in (errno.EMFILE, errno.ENFILE):  # each request holds a file open
                self.limit.overloaded()
            if self._reached or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                raise _Transient(problem) from None
            raise Unusable(self.redacted(f"no connection ({problem})")) from None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise ModelError(self.redacted(f"{type(error).__name__}: {error}")) from None
        self._reached = True
        if response.is_success:
            if len(data) > LARGEST_REPLY:
                raise Refused(f"the reply is larger than {LARGEST_REPLY >> 20} MiB", response.status_code)
            if timed:
                self.limit.answered(time.monotonic() - started)
            try:
                reply = parse_json(data.decode(json.detect_encoding(data)), check=False)
            except RepeatedKey as error:
                raise Malformed(self.redacted(f"the reply {error}")) from None
            except ValueError as error:
                if body is None:
                    raise Refused("the answer is not JSON", response.status_code) from None
                what = "a web page" if data.lstrip().startswith(b"<") else f"not usable JSON: {error}"
                what = "a stream, although none was requested" if data.startswith(b"data:") else what
                raise _Transient(f"the reply is {what}") from None
            problem, status = error_in(reply)
            if not problem:
                return reply
            status = status or response.status_code
        else:
            text, status = data[:300].decode("utf-8", "replace").strip(), response.status_code
            problem = redirected(response) or f"HTTP {status} {response.reason_phrase}{f': {text}' if text else ''}"
            if status in (401, 403):
                problem = f"the key in {self.key_variable} is missing or not accepted ({problem})"
        if status in _OVERLOADED:
            self.limit.overloaded()
        if status in _RETRIED:
            raise _Transient(problem, _retry_after(response), status)
        raise Refused(self.redacted(problem), status)

    def all(
        self, items: Sequence[Any], ask: Callable[[httpx.AsyncClient, Any], Awaitable[_Reply]]
    ) -> Iterator[tuple[int, _Reply]]:
        """The result of ``ask`` for each item, as it arrives; see :func:`~unslant.models.concurrent.from_several`."""
        check_online(self.base_url)
        return from_several(items, [Server(ask, self.limit, self.client)])


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was raised from; repeated requests hide theirs in the last attempt."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        last = getattr(following, "last_attempt", None)
        if last is None:
            yield following
        group = getattr(following, "exceptions", ())  # one for each address of a host
        beneath = group[0] if group else following.__cause__ or following.__context__
        following = last.exception() if last is not None else beneath


def _described(error: httpx.RequestError) -> tuple[str, int]:
    """An error in words, and the number that the operating system gave it, whose words are then the plainer ones."""
    system = (one for one in causes(error) if isinstance(one, OSError) and not isinstance(one, ssl.SSLError))
    numbers = [number for one in system if (number := one.errno or 0) > 0]  # negative for a name that is not known
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    return (os.strerror(numbers[-1]), numbers[-1]) if numbers else (words, 0)


def error_in(reply: Any) -> tuple[str, int]:
    """The error that proxies write into a reply with status 200, and the HTTP status that it means; 0 if unknown."""
    reply = reply[0] if isinstance(reply, list) and reply else reply  # Gemini's errors are lists of one
    if not isinstance(reply, Mapping):
        return "", 0
    error = reply.get("error") or reply.get("detail") or (reply if reply.get("object") == "error" else None)
    choices = reply.get("choices")
    for choice in choices if isinstance(choices, list) else ():  # OpenRouter's provider broke off
        error = error or (choice.get("error") if isinstance(choice, Mapping) else None)
    if not error:
        return "", 0
    entries: Mapping[str, Any] = {**reply, **(error if isinstance(error, Mapping) else {})}
    message = entries.get("message", error) if isinstance(error, Mapping) else error
    text = message if isinstance(message, str) else json.dumps(message)
    codes = [str(entries.get(key)) for key in ("code", "status", "type")]
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 0)
    if not status and re.search("overload|rate_limit|server_error|unavailable|timeout", " ".join(codes)):
        status = 503
    return f"the server replied: {shortened(text, 300)}", status


def redirected(response: Any) -> str:
    """Where a reply redirects to, which is not followed, since the key may go nowhere else; empty if it does not."""
    if not getattr(response, "has_redirect_location", False):  # it may be of another library than httpx
        return ""
    target = url_without_secrets(str(response.url.join(response.headers["Location"])))
    return f"HTTP {response.status_code}: it redirects to {target} (give the address of that server)"


def hint_of(url: str) -> str:
    """A hint for addresses without the ``/v1`` of most servers; else empty."""
    at = urlsplit(url)
    return "" if at.path.strip("/") else f" (most servers are at {urlunsplit(at._replace(path='/v1'))})"


async def _read(response: httpx.Response, limit: int) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > limit:
            break
    return bytes(data)


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds to wait, which a server gives as a number or as a date; None without either, or if the date is past."""
    text = response.headers.get("Retry-After", "")
    try:
        seconds = parsedate_to_datetime(text).timestamp() - time.time() if "," in text else float(text)
    except (ValueError, OverflowError):
        return None
    past = "," in text and seconds <= 0  # the server's clock may be another
    return None if past or math.isnan(seconds) else min(_LONGEST_WAIT, max(0.0, seconds))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
