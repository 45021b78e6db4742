"""Send many requests at once, and find out how many a server can take.

All requests run on one event loop in a thread of its own. So the caller can be interrupted while it waits, a caller
that already runs a loop (a notebook) does not matter, and connections, which belong to a loop, can outlive a call.
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

_Item = TypeVar("_Item")
_Opened = TypeVar("_Opened")
_Found = TypeVar("_Found")
_SLOW = 4.0  # times the usual latency: requests queue up
_JITTER = 0.05  # seconds; smaller differences in latency are noise
_SMOOTHING = 0.2
_POLL_SECONDS = 0.5  # Windows delivers Ctrl-C only between waits that have a time limit
_CLOSING_SECONDS = 2.0  # an interrupted caller does not wait longer for connections to close


class Limit:
    """Number of requests under way at a time: as many as the server keeps up with.

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
        self._waiting: list[anyio.Event] = []

    def answered(self, seconds: float) -> None:
        """Record a request's latency."""
        self._usual += (seconds - self._usual) * (_SMOOTHING if self._usual else 1.0)
        self._lowest = min(self._lowest, self._usual)
        if self._usual > _SLOW * self._lowest + _JITTER:
            self.overloaded()
        elif self.adaptive:
            self.size = min(float(self.most), self.size + (1.0 if self._starting else 1.0 / self.size))
            self.wake()

    def overloaded(self) -> None:
        """Halve the number, because the server has too much to do; refusals of one burst of requests count once."""
        now = time.monotonic()
        if self.size == 1:  # slow without any load, with longer prompts for example: a new yardstick
            self._lowest = self._usual
        if self.adaptive and now - self._cut_at > max(self._usual, _JITTER):
            self.size, self._starting, self._cut_at = max(1.0, self.size / 2), False, now

    async def turn(self, connection: int, at_work: Sequence[int]) -> None:
        """Wait until a connection is among the first ``size`` of those at work.

        The first ones go on rather than all in turn: fewer runs are under way, and each keeps its prefix cache.
        """
        while at_work.index(connection) >= int(self.size):
            self._waiting.append(changed := anyio.Event())
            await changed.wait()

    def wake(self) -> None:
        """Let the connections that wait for their turn check again."""
        _wake(self._waiting)


@dataclass(frozen=True)
class Server(Generic[_Opened, _Item, _Found]):
    """A server that answers items.

    Attributes:
        ask: sends it an item and returns the answer.
        limit: items at a time.
        opened: opens what its connections share during a call, such as a client.
        is_lost: whether an error means that the server cannot be asked any more.
    """

    ask: Callable[[_Opened, _Item], Awaitable[_Found]]
    limit: Limit
    opened: Callable[[], AbstractAsyncContextManager[_Opened]]
    is_lost: Callable[[Exception], bool] = lambda error: False


def as_they_come(
    items: Sequence[_Item],
    ask: Callable[[_Opened, _Item], Awaitable[_Found]],
    limit: Limit,
    opened: Callable[[], AbstractAsyncContextManager[_Opened]],
    runs: Sequence[Sequence[int]] | None = None,
) -> Iterator[tuple[int, _Found]]:
    """Ask one server for all items; see :class:`Server` and :func:`from_several`."""
    return from_several(items, [Server(ask, limit, opened)], runs)


def from_several(
    items: Sequence[_Item],
    servers: Sequence[Server[Any, _Item, _Found]],
    runs: Sequence[Sequence[int]] | None = None,
) -> Iterator[tuple[int, _Found]]:
    """Ask several servers for all items, and yield each answer with its item's index as soon as it arrives.

    The first error aborts the call. Each server takes as much as it keeps up with. When one is lost, a warning names
    it and the others do its part; the loss of the last one is an error. A caller that stops early, because of Ctrl-C
    for example, closes all connections.

    Args:
        items: to be asked.
        servers: which give the same answers.
        runs: indices of items that one server is asked one after the other; by default every item is independent.
    """
    loop, call = _loop(), _Call(items, servers, runs)
    running = asyncio.run_coroutine_threadsafe(call.run(), loop)
    try:
        while (received := _result(call.receive(), loop)) is not None:
            if isinstance(received, Exception):  # warned of here, where the caller's filters and line numbers apply
                warnings.warn(f"{received}; the other servers go on without it", stacklevel=2)
            else:
                yield received.index, received.value
        running.result()
    finally:
        wait([asyncio.run_coroutine_threadsafe(call.stop(), loop)], timeout=_CLOSING_SECONDS)


@dataclass(frozen=True)
class _Answer(Generic[_Found]):
    index: int
    value: _Found
    used: anyio.Event  # set when the caller is done with it


class _Call(Generic[_Item, _Found]):
    """One call of :func:`from_several`. All methods run on the loop, :meth:`run` first.

    Attributes:
        left: runs that no connection is working on.
        unfinished: number of runs with unanswered items: those left and those that a connection is working on.
        remaining: number of servers that are not lost.
    """

    def __init__(
        self,
        items: Sequence[_Item],
        servers: Sequence[Server[Any, _Item, _Found]],
        runs: Sequence[Sequence[int]] | None,
    ) -> None:
        self.items, self.servers, self.remaining = items, servers, len(servers)
        self.left = deque([i] for i in range(len(items))) if runs is None else deque(list(run) for run in runs)
        self.unfinished = len(self.left)
        self._idle: list[anyio.Event] = []
        self._current: _Answer[_Found] | None = None
        # Without a limit, so that no answer is lost with its server; each connection has at most one answer in it.
        self._sender, self._receiver = anyio.create_memory_object_stream[_Answer[_Found] | Exception](math.inf)

    async def run(self) -> None:
        """Ask all servers until every item has its answer, or raise the first error."""
        self._scope, self._ended = anyio.CancelScope(), anyio.Event()
        try:
            async with AsyncExitStack() as clients:  # outside the scope, so that its end does not interrupt closing
                opened = [await clients.enter_async_context(server.opened()) for server in self.servers]
                with self._scope:
                    async with anyio.create_task_group() as tasks:
                        for server, client in zip(self.servers, opened, strict=True):
                            tasks.start_soon(self._ask_server, server, client)
            if self.unfinished:  # a task group takes a cancellation from inside for its own end
                raise RuntimeError("a request was cancelled by something other than its caller")
        except ExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            self._sender.close()
            self._ended.set()

    async def receive(self) -> _Answer[_Found] | Exception | None:
        """The next answer, the error of a server that was lost, or None at the end.

        Who calls it is done with the previous answer, and only now its connection takes another item: a process that
        is killed loses no more answers than it has connections.
        """
        if self._current:
            self._current.used.set()
        try:
            received = await self._receiver.receive()
        except anyio.EndOfStream:
            return None
        self._current = received if isinstance(received, _Answer) else None
        return received

    async def stop(self) -> None:
        """End all requests and close all connections; without effect after the end."""
        self._scope.cancel()
        await self._ended.wait()
        self._receiver.close()

    async def _ask_server(self, server: Server[Any, _Item, _Found], opened: Any) -> None:
        at_work = list(range(min(server.limit.most, len(self.items))))
        try:
            async with anyio.create_task_group() as connections:
                for connection in tuple(at_work):
                    connections.start_soon(self._work, server, opened, connection, at_work)
        except ExceptionGroup as errors:
            error = _first(errors)
            if not server.is_lost(error) or self.remaining == 1:
                raise
            self.remaining -= 1
            self._sender.send_nowait(error)

    async def _work(self, server: Server[Any, _Item, _Found], opened: Any, connection: int, at_work: list[int]) -> None:
        """One connection: take runs as long as any are unfinished, since those of a lost server come back."""
        turn = functools.partial(server.limit.turn, connection, at_work)
        try:
            while self.unfinished:
                await turn()
                if self.left:
                    await self._ask_run(self.left.popleft(), functools.partial(server.ask, opened), turn)
                elif self.unfinished:  # make room for those with work until there is some
                    at_work.remove(connection)
                    server.limit.wake()
                    self._idle.append(changed := anyio.Event())
                    await changed.wait()
                    at_work.append(connection)
        finally:
            if connection in at_work:
                at_work.remove(connection)
            server.limit.wake()

    async def _ask_run(
        self, run: list[int], ask: Callable[[_Item], Awaitable[_Found]], turn: Callable[[], Awaitable[None]]
    ) -> None:
        """Ask for the items of a run; what is left of it when the server is lost goes back."""
        try:
            while run:
                await turn()  # before every item, since the limit may have fallen
                value = await ask(self.items[run[0]])
                answer = _Answer(run.pop(0), value, anyio.Event())
                self._sender.send_nowait(answer)
                await answer.used.wait()
        finally:
            if run:
                self.left.appendleft(run)
            else:
                self.unfinished -= 1
            _wake(self._idle)


def _wake(waiting: list[anyio.Event]) -> None:
    while waiting:
        waiting.pop().set()


def _first(error: Exception) -> Exception:
    """The error that cancelled a task group: callers know errors, not groups of them."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _result(coroutine: Coroutine[Any, Any, _Found], loop: asyncio.AbstractEventLoop) -> _Found:
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    while not future.done():
        wait([future], timeout=_POLL_SECONDS)
    return future.result()


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    # Not anyio's portal: its loop ends with the call, and after a fork or at exit its calls would wait forever.
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="requests", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_loop.cache_clear)
