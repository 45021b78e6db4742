"""Send many requests at once, and find out how many a server can take.

All requests run on one event loop in a thread of its own. So the caller can be interrupted while it waits, may run a
loop itself (as a notebook does), and connections, which belong to a loop, can outlive a call.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import wait
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

_Item = TypeVar("_Item")
_Opened = TypeVar("_Opened")
_Reply = TypeVar("_Reply")
_SLOW = 4.0  # times the usual latency: requests queue up
_JITTER = 0.05  # seconds; smaller differences in latency are noise
_SMOOTHING = 0.2
_POLL_SECONDS = 0.5  # Windows delivers Ctrl-C only between waits that have a time limit
_CLOSING_SECONDS = 2.0  # an interrupted caller does not wait longer for connections to close


class Limit:
    """Number of concurrent requests: as many as the server keeps up with.

    Additive increase and multiplicative decrease (Chiu and Jain, 1989) after a slow start (RFC 5681). The first request
    is sent alone, so that the server has the common beginning of all prompts in its prefix cache when the others
    arrive. Then every reply adds one, until the server refuses (429, 503) or takes :data:`_SLOW` times as long as
    before; that halves the number, and from there it rises by one a round.

    Args:
        most: upper bound.
        adaptive: without it, the number is always ``most``.

    Attributes:
        size: number of requests that may be under way now.
    """

    def __init__(self, most: int, *, adaptive: bool = True) -> None:
        self.most, self.adaptive = most, adaptive
        self.size = 1.0 if adaptive else float(most)
        self._starting, self._usual, self._lowest, self._cut_at = True, 0.0, math.inf, -math.inf

    def answered(self, seconds: float) -> None:
        """Record a request's latency."""
        self._usual += (seconds - self._usual) * (_SMOOTHING if self._usual else 1.0)
        self._lowest = min(self._lowest, self._usual)
        if self._usual > _SLOW * self._lowest + _JITTER:
            self.overloaded()
        elif self.adaptive:
            self.size = min(float(self.most), self.size + (1.0 if self._starting else 1.0 / self.size))

    def overloaded(self) -> None:
        """Halve the number, because the server has too much to do; refusals of one burst of requests count once."""
        now = time.monotonic()
        if self.size == 1:  # slow without any load, because of longer prompts for example: this is the new usual
            self._lowest = self._usual
        if self.adaptive and now - self._cut_at > max(self._usual, _JITTER):
            self.size, self._starting, self._cut_at = max(1.0, self.size / 2), False, now


@dataclass(frozen=True)
class Server(Generic[_Opened, _Item, _Reply]):
    """A server that answers items.

    Attributes:
        ask: sends it an item and returns the answer.
        limit: items at a time.
        opened: opens the client that its connections share during a call.
        is_lost: whether an error means that the server is gone.
    """

    ask: Callable[[_Opened, _Item], Awaitable[_Reply]]
    limit: Limit
    opened: Callable[[], AbstractAsyncContextManager[_Opened]]
    is_lost: Callable[[Exception], bool] = lambda error: False


def from_several(
    items: Sequence[_Item], servers: Sequence[Server[Any, _Item, _Reply]], runs: Sequence[Sequence[int]] | None = None
) -> Iterator[tuple[int, _Reply]]:
    """Ask one server or several for all items, and yield each answer with its item's index as soon as it arrives.

    The first error aborts the call. Each server takes as much as it keeps up with. When one is lost, a warning names
    it and the others take over its work; the loss of the last one is an error. When the caller stops early, on Ctrl-C
    for example, all connections are closed.

    Args:
        items: what to ask.
        servers: they give the same answers.
        runs: indices of items for one server, to be asked one after the other; by default every item is independent.
    """
    loop, call = _loop(), _Call(items, servers, runs)
    try:  # from here on, since Ctrl-C may come before the first answer is waited for
        running = asyncio.run_coroutine_threadsafe(call.run(), loop)
        while (received := _result(call.receive(), loop)) is not None:
            if isinstance(received, Exception):  # a warning from here gets the caller's filters and line number
                warnings.warn(f"{received}; the other servers continue without it", stacklevel=2)
            else:
                yield received.index, received.value
        running.result()
    finally:
        wait([asyncio.run_coroutine_threadsafe(call.stop(), loop)], timeout=_CLOSING_SECONDS)


@dataclass(frozen=True)
class _Arrival(Generic[_Reply]):
    index: int
    value: _Reply
    used: anyio.Event  # set when the caller is done with it


@dataclass
class _Asking(Generic[_Opened, _Item, _Reply]):
    """A server during a call: its client, and the connections that are at work."""

    server: Server[_Opened, _Item, _Reply]
    opened: _Opened
    tasks: TaskGroup
    connections: int = 0

    @property
    def has_one_too_many(self) -> bool:
        """Whether the limit has fallen below the number of connections."""
        return self.connections > self.server.limit.size


@dataclass
class _Call(Generic[_Item, _Reply]):
    """One call of :func:`from_several`. All methods run on the loop, :meth:`run` first.

    Attributes:
        left: runs that no connection is working on.
        remaining: the servers that are not lost, each with its client.
    """

    items: Sequence[_Item]
    servers: Sequence[Server[Any, _Item, _Reply]]
    runs: Sequence[Sequence[int]] | None
    _current: _Arrival[_Reply] | None = None

    def __post_init__(self) -> None:
        self.left = deque(list(run) for run in self.runs or ([i] for i in range(len(self.items))))
        # Without a limit, so that no answer is lost with its server; each connection has at most one answer in it.
        self._sender, self._receiver = anyio.create_memory_object_stream[_Arrival[_Reply] | Exception](math.inf)

    async def run(self) -> None:
        """Ask all servers until every item has its answer, or raise the first error."""
        self._scope, self._ended = anyio.CancelScope(), anyio.Event()
        try:
            async with AsyncExitStack() as clients:  # outside the scope, so that its end does not interrupt closing
                opened = [await clients.enter_async_context(server.opened()) for server in self.servers]
                self.remaining = list(zip(self.servers, opened, strict=True))
                with self._scope:
                    while self.left:  # again where a server was lost after the others had finished
                        count = len(self.remaining)
                        async with anyio.create_task_group() as tasks:
                            for server, client in tuple(self.remaining):
                                tasks.start_soon(self._ask_server, server, client)
                        if self.left and len(self.remaining) == count:
                            # A task group ends quietly when a request inside it is cancelled.
                            raise RuntimeError("a request was cancelled by something other than its caller")
        except ExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            self._sender.close()
            self._ended.set()

    async def receive(self) -> _Arrival[_Reply] | Exception | None:
        """The next answer, the error of a server that was lost, or None at the end."""
        # The caller is done with the previous answer, and only now its connection takes another item: a process that is
        # killed loses no more answers than it has connections.
        if self._current:
            self._current.used.set()
        try:
            received = await self._receiver.receive()
        except anyio.EndOfStream:
            return None
        self._current = received if isinstance(received, _Arrival) else None
        return received

    async def stop(self) -> None:
        """End all requests and close all connections; without effect after the end."""
        self._scope.cancel()
        await self._ended.wait()
        self._receiver.close()

    async def _ask_server(self, server: Server[Any, _Item, _Reply], opened: Any) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                self._add_connections(_Asking(server, opened, tasks))
        except ExceptionGroup as errors:
            error = _first(errors)
            if not server.is_lost(error) or len(self.remaining) == 1:
                raise
            self.remaining.remove((server, opened))
            self._sender.send_nowait(error)

    def _add_connections(self, asking: _Asking[Any, _Item, _Reply]) -> None:
        """Start as many as the limit allows, if there is work for them."""
        for _ in range(min(int(asking.server.limit.size) - asking.connections, len(self.left))):
            asking.connections += 1
            asking.tasks.start_soon(self._work, asking)

    async def _work(self, asking: _Asking[Any, _Item, _Reply]) -> None:
        """One connection: take runs while there are any."""
        try:
            while self.left and not asking.has_one_too_many:
                await self._ask_run(self.left.popleft(), asking)
        finally:
            asking.connections -= 1

    async def _ask_run(self, run: list[int], asking: _Asking[Any, _Item, _Reply]) -> None:
        """Ask for the items of a run; the rest of it goes back when the server is lost, or takes fewer requests."""
        try:
            while run and not asking.has_one_too_many:
                value = await asking.server.ask(asking.opened, self.items[run[0]])
                answer = _Arrival(run.pop(0), value, anyio.Event())
                self._sender.send_nowait(answer)
                self._add_connections(asking)
                await answer.used.wait()
        finally:
            if run:  # to the front: its beginning is in a prefix cache
                self.left.appendleft(run)


def _first(error: Exception) -> Exception:
    """The error that cancelled a task group; callers do not handle groups of errors."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _result(coroutine: Coroutine[Any, Any, _Reply], loop: asyncio.AbstractEventLoop) -> _Reply:
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    while not future.done():
        wait([future], timeout=_POLL_SECONDS)
    return future.result()


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    # Not anyio's portal: its loop ends with the call, and after a fork or at exit its calls would wait for ever.
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="requests", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_loop.cache_clear)
