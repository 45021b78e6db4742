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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

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


def as_they_come(
    items: Sequence[_Item],
    ask: Callable[[_Opened, _Item], Awaitable[_Found]],
    limit: Limit,
    opened: Callable[[], AbstractAsyncContextManager[_Opened]],
    runs: Sequence[Sequence[int]] | None = None,
) -> Iterator[tuple[int, _Found]]:
    """What ``ask`` finds for each item, with its index, as it comes; the first error ends it all.

    A connection takes its next item when the caller is done with what came of the last one, so that a process that is
    killed loses no more answers than it has connections.

    Args:
        limit: items at a time.
        opened: what all of them share, such as a client; opened for the call.
        runs: indices of items that are asked one after the other; by default none wait for one another.
    """
    found: SimpleQueue[tuple[int, _Found, asyncio.Event] | BaseException | None] = SimpleQueue()
    ended, loop = threading.Event(), _loop()

    async def run() -> None:
        left = iter([[i] for i in range(len(items))] if runs is None else runs)
        at_work = list(range(min(limit.most, len(items))))

        async def work(shared: _Opened, worker: int) -> None:
            try:
                while True:
                    await limit.turn(worker, at_work)
                    if (own := next(left, None)) is None:
                        return
                    for index in own:
                        await limit.turn(worker, at_work)
                        answer, done = await ask(shared, items[index]), asyncio.Event()
                        found.put((index, answer, done))
                        await done.wait()
            finally:
                at_work.remove(worker)
                limit.wake()

        try:
            async with opened() as shared:
                workers = [asyncio.ensure_future(work(shared, worker)) for worker in tuple(at_work)]
                try:
                    await asyncio.gather(*workers)
                finally:
                    for worker in workers:
                        worker.cancel()
            found.put(None)
        except BaseException as error:  # goes on in the thread that waits
            found.put(error)
        finally:
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
