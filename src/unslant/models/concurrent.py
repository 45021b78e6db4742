"""Many requests at once, and how many.

They run on one event loop in a thread of its own, so that whoever waits for them can be interrupted, a caller that has
a loop running (a notebook) does not matter, and connections, which belong to a loop, outlive a call.
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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

_Item = TypeVar("_Item")
_Opened = TypeVar("_Opened")
_Found = TypeVar("_Found")
_SLOW = 4.0  # times the usual latency: requests queue up
_JITTER = 0.05  # seconds of latency that say nothing
_SMOOTHING = 0.2


class Limit:
    """How many requests are under way at a time: as many as the server keeps up with.

    Additive increase and multiplicative decrease (Chiu and Jain, 1989) after a slow start (RFC 5681). The first request
    is made alone, so that what all prompts begin with is in the server's prefix cache when the others come. Then there
    is one more for every reply, until the server refuses (429, 503) or takes :data:`_SLOW` times as long as it did;
    that halves the number, and from there it rises by one a round.

    Args:
        most: never more than this.
        adaptive: without, it is always ``most``.

    Attributes:
        size: how many may be under way now.
    """

    def __init__(self, most: int, *, adaptive: bool = True) -> None:
        self.most, self.adaptive = most, adaptive
        self.size = 1.0 if adaptive else float(most)
        self._starting, self._usual, self._lowest, self._cut_at = True, 0.0, math.inf, -math.inf
        self._waiting: list[asyncio.Future[None]] = []

    def answered(self, seconds: float) -> None:
        """A request was answered after so long."""
        self._usual += (seconds - self._usual) * (_SMOOTHING if self._usual else 1.0)
        self._lowest = min(self._lowest, self._usual)
        if self._usual > _SLOW * self._lowest + _JITTER:
            self.overloaded()
        elif self.adaptive:
            self.size = min(float(self.most), self.size + (1.0 if self._starting else 1.0 / self.size))
            self.wake()

    def overloaded(self) -> None:
        """The server has too much to do. What comes of one burst of requests counts once."""
        now = time.monotonic()
        if self.size == 1:  # it is slow by itself, with longer prompts for example: a new yardstick
            self._lowest = self._usual
        if self.adaptive and now - self._cut_at > max(self._usual, _JITTER):
            self.size, self._starting, self._cut_at = max(1.0, self.size / 2), False, now

    async def turn(self, worker: int, workers: Sequence[int]) -> None:
        """Wait until a worker is among the first of those at work, as many as there may be."""
        while workers.index(worker) >= int(self.size):
            changed = asyncio.get_running_loop().create_future()
            self._waiting.append(changed)
            await changed

    def wake(self) -> None:
        """Those who wait for their turn look again."""
        waiting, self._waiting = self._waiting, []
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)


@dataclass(frozen=True)
class _Lost:
    error: Exception


@dataclass(frozen=True)
class Server(Generic[_Opened, _Item, _Found]):
    """One of those that items are put to.

    Attributes:
        ask: puts an item to it.
        limit: items at a time.
        opened: what all of these share, such as a client; opened for the call.
        is_lost: whether it cannot be asked any more, by the error that it gave.
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
    """What ``ask`` finds for each item; see :class:`Server` and :func:`from_several`."""
    return from_several(items, [Server(ask, limit, opened)], runs)


def from_several(
    items: Sequence[_Item],
    servers: Sequence[Server[Any, _Item, _Found]],
    runs: Sequence[Sequence[int]] | None = None,
) -> Iterator[tuple[int, _Found]]:
    """What is found for each item, with its index, as it comes; the first error ends it all.

    A connection takes its next item when the caller is done with what came of the last one, so that a process that is
    killed loses no more answers than it has connections. Of several servers each takes as much as it keeps up with; one
    that is lost is named in a warning, and the others do its part.

    Args:
        runs: indices of items that are asked one after the other of the same server; by default none wait for another.
    """
    found: SimpleQueue[tuple[int, _Found, asyncio.Event] | _Lost | BaseException | None] = SimpleQueue()
    ended, loop = threading.Event(), _loop()

    async def run() -> None:
        left = deque([i] for i in range(len(items))) if runs is None else deque(list(own) for own in runs)
        asked = len(servers)  # of them, those that are not lost
        more = asyncio.Condition()  # a run has come back, or there will be none
        unfinished = len(left)

        def is_due() -> bool:
            return bool(left) or not unfinished

        async def at(server: Server[Any, _Item, _Found]) -> None:
            nonlocal asked, unfinished
            limit, at_work = server.limit, list(range(min(server.limit.most, len(items))))

            async def work(shared: Any, worker: int) -> None:
                nonlocal unfinished
                try:
                    while True:
                        await limit.turn(worker, at_work)
                        while not left:
                            if not unfinished:
                                return
                            at_work.remove(worker)  # the next one's turn
                            limit.wake()
                            async with more:
                                await more.wait_for(is_due)
                            at_work.append(worker)
                            await limit.turn(worker, at_work)
                        own = left.popleft()
                        try:
                            while own:
                                await limit.turn(worker, at_work)
                                answer, done = await server.ask(shared, items[own[0]]), asyncio.Event()
                                found.put((own.pop(0), answer, done))
                                await done.wait()
                        finally:
                            async with more:
                                if own:
                                    left.appendleft(own)
                                else:
                                    unfinished -= 1
                                more.notify_all()
                finally:
                    if worker in at_work:
                        at_work.remove(worker)
                    limit.wake()

            async with server.opened() as shared:
                workers = [asyncio.ensure_future(work(shared, worker)) for worker in tuple(at_work)]
                try:
                    await asyncio.gather(*workers)
                except Exception as error:
                    if not server.is_lost(error) or asked == 1:
                        raise
                    asked -= 1
                    found.put(_Lost(error))
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)

        every = [asyncio.ensure_future(at(server)) for server in servers]
        try:
            await asyncio.gather(*every)
            found.put(None)
        except BaseException as error:  # goes on in the thread that waits
            found.put(error)
        finally:
            for one in every:
                one.cancel()
            await asyncio.gather(*every, return_exceptions=True)
            ended.set()

    running = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        while True:
            try:
                result = found.get(timeout=0.5)  # with a time limit, so that Ctrl-C comes through on every system
            except Empty:
                continue
            if result is None:
                return
            if isinstance(result, BaseException):
                raise result
            if isinstance(result, _Lost):
                warnings.warn(f"{result.error}; the other servers go on without it", stacklevel=2)
                continue
            index, answer, done = result
            yield index, answer
            loop.call_soon_threadsafe(done.set)
    finally:
        running.cancel()
        ended.wait(timeout=2)


@functools.cache
def _loop() -> Any:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="requests", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_loop.cache_clear)
