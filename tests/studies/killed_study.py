"""A command in a process of its own, to be killed; also the module that the fork server loads beforehand."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import inspect_ai.model  # noqa: F401  (loaded once, and then forked)
import openai  # noqa: F401

from tests.command_line import Ran, unslant
from tests.serving import Fault, FaultServer, completion
from unslant.studies.unbiased import study as _unbiased  # noqa: F401
from unslant.studies.unbiased.probe import study as _probe  # noqa: F401
from unslant.studies.unbiased.probe.study import CONFIDENCE_CUE, REPHRASE

CONNECTIONS = 4
DELAY = 0.03


def reply_to(request: dict[str, Any]) -> str:
    """A reply that depends on nothing but the model and the messages."""
    text = "\n".join(str(message["content"]) for message in request["messages"])
    number = int.from_bytes(blake2b(f"{request['model']}\n{text}".encode(), digest_size=4).digest(), "little")
    if REPHRASE in text:
        return f"Put otherwise ({number % 97}), what is meant?"
    return str(1 + number % 10) if CONFIDENCE_CUE in text else f"Answer: {'ABCD'[number % 4]}"


class Watched:
    """A server that answers by :func:`reply_to`, and kills a process at a request of its choice."""

    def __init__(self) -> None:
        self.sent: dict[str, float] = {}
        self.asked: Counter[str] = Counter()
        self.killed_at = 0.0
        self._victim: tuple[int, int, float] | None = None

    def kill(self, process: int, request: int, after: float) -> None:
        self._victim = process, request, after

    def answer(self, request: dict[str, Any]) -> Fault:
        key = json.dumps([request["model"], request["messages"]])
        self.asked[key] += 1
        if self._victim and self.asked.total() == self._victim[1]:
            time.sleep(self._victim[2])
            os.kill(self._victim[0], signal.SIGKILL)
            self.killed_at = time.monotonic()
        time.sleep(DELAY)
        self.sent.setdefault(key, time.monotonic())
        return Fault(body=completion(reply_to(request)))


def command(arguments: Sequence[str], store: Path, out: Path) -> list[str]:
    own = ["--store", str(store), "--out", str(out), "--connections", str(CONNECTIONS), "--quiet"]
    return [*arguments, *own]


def _run(arguments: Sequence[str], ready: Any) -> None:
    ready.send("go")
    ran: Ran = unslant(*arguments)
    ready.send((ran.code, ran.err))


def start(arguments: Sequence[str]) -> tuple[Any, Any]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.studies.killed_study"])
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(arguments, theirs))
    process.start()
    return process, ours


def finished(arguments: Sequence[str], out: Path) -> dict[str, bytes]:
    """The files of a command that is left to end."""
    process, ready = start(arguments)
    assert ready.recv() == "go"
    assert ready.recv() == (0, "")
    process.join()
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def kept(store: Path) -> int:
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'replies'").fetchone():
            return 0
        # Participants may rephrase a question alike: the pass of the second takes the reply over from the first's.
        return int(connection.execute("SELECT count(DISTINCT prompt) FROM replies").fetchone()[0])


def kill_and_resume(words: Sequence[str], work: Path, kills: int, seed: int) -> list[float]:
    """Kill so many runs, each at a random request, and resume each; all must leave the same bytes as an unbroken one.

    Args:
        words: the command; ``URL`` in it stands for the server.

    Returns:
        The share of the replies that was kept at each kill.
    """
    with FaultServer((whole := Watched()).answer).running() as server:
        arguments = [word.replace("URL", server.url) for word in words]
        whole_files = finished(command(arguments, work / "whole.db", work / "whole"), work / "whole")
    total = whole.asked.total()
    assert kept(work / "whole.db") == total
    rng, shares = random.Random(seed), []
    for attempt in range(kills):
        store, out, watched = work / f"{attempt}.db", work / f"{attempt}", Watched()
        with FaultServer(watched.answer).running(server.port):
            process, ready = start(command(arguments, store, out))
            watched.kill(process.pid, rng.randint(1, total), rng.uniform(0, 2 * DELAY))
            assert ready.recv() == "go"
            process.join()
            assert process.exitcode == -signal.SIGKILL
            before, first = kept(store), watched.asked.copy()
            shares.append(before / total)
            assert finished(command(arguments, store, out), out) == whole_files
        assert watched.asked.total() == first.total() + total - before, "what was kept was asked for again"
        repeated = watched.asked - whole.asked  # what was on its way when it was killed
        assert repeated.total() <= CONNECTIONS
        late = [key for key in repeated if watched.sent[key] < watched.killed_at - 1]
        assert not late, "a reply that had come a second before was asked for again"
    return shares
