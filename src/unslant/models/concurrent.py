"""Many requests at once.

They run on one event loop in a thread of its own, so that whoever waits for them can be interrupted, a caller that has
a loop running (a notebook) does not matter, and connections, which belong to a loop, outlive a call.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Opened = TypeVar("_Opened")
_Found = TypeVar("_Found")


def as_they_come(
    items: Sequence[_Item],
    ask: Callable[[_Opened, _Item], Awaitable[_Found]],
    connections: int,
    opened: Callable[[], AbstractAsyncContextManager[_Opened]],
) -> Iterator[tuple[int, _Found]]:
    """What ``ask`` finds for each item, with its index, as it comes; the first error ends it all.

    A connection takes its next item when the caller is done with what came of the last one, so that a process that is
    killed loses no more answers than it has connections.

    Args:
        connections: items at a time.
        opened: what all of them share, such as a client; opened for the call.
    """
    found: SimpleQueue[tuple[int, _Found, asyncio.Event] | BaseException | None] = SimpleQueue()
    ended, loop = threading.Event(), _loop()

    async def run() -> None:
        left = iter(enumerate(items))

        async def work(shared: _Opened) -> None:
            for index, item in left:
                answer, done = await ask(shared, item), asyncio.Event()
                found.put((index, answer, done))
                await done.wait()

        try:
            async with opened() as shared:
                workers = [asyncio.ensure_future(work(shared)) for _ in range(min(connections, len(items)))]
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
