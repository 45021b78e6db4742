"""A store in odd places: clocks that jump, several host names, what looks like a network, tables of another version."""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

from benchmarks.reliability import Options, Row
from benchmarks.reliability.store import ask
from unslant.store import Kept, Store, StoreError, tables
from unslant.store.repair import repair

PROCESSES, SHARED = 3, 240
"""Processes at once on one store, and scores that all of them ask for."""
JUMPS = (1.0, 59.0, 61.0, 3600.0, 86_400.0, 3e8, 2e9)
"""Seconds, forwards or backwards; the largest lead before 1970 and beyond 2038."""
KINDS = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "lustre", "virtiofs")


def rows(options: Options) -> Iterator[Row]:
    """Every class; its attempts grow with the number of cases."""
    for name, most, run in CLASSES:
        if options.wants("places", name):
            row = Row("places", name)
            for attempt in range(max(2, round(most * options.cases / 10_000))):
                row.attempts += 1
                with tempfile.TemporaryDirectory() as folder:
                    if wrong := run(random.Random(f"{options.seed}/{name}/{attempt}"), Path(folder).resolve()):
                        row.fail(f"attempt {attempt}: {wrong}")
            if name == "taken for a network file system":
                row.note = "a local disk under another name in the list of mounts"
            yield row


def clocks(rng: random.Random, folder: Path) -> str:
    """Several processes whose clocks jump, each by itself, while they ask; one of them is killed and started again."""
    return _together(rng, folder, jumps=JUMPS, hosts=("one",))


def hosts(rng: random.Random, folder: Path) -> str:
    """The same as if on two machines, whose clocks differ a little and whose process numbers mean nothing there."""
    return _together(rng, folder, jumps=(0.0, 0.5, 5.0), hosts=("one", "two"))


def networks(rng: random.Random, folder: Path) -> str:
    """The same on what the machine lists as a network file system: a warning, and no log or shared memory."""
    kind = rng.choice(KINDS)
    mounts = folder / "mounts"
    (disk := folder / "disk").mkdir()
    mounts.write_text(f"1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / {disk} rw - {kind} x rw")
    with patch.object(tables, "MOUNTS", mounts), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        wrong = _together(rng, disk, jumps=(0.0,), hosts=("one", "two"))
    if not wrong and (left := sorted(set(os.listdir(disk)) - {"s.sqlite3"})):
        return f"left {left}"
    told = any("network file system" in str(one.message) for one in said)
    return wrong or ("" if told else "nothing said of the network")


def versions(rng: random.Random, folder: Path) -> str:
    """A store that says it is of another version is refused in one line and left as it is; a repair, which takes that
    for a damaged first page, keeps the old file byte for byte."""
    path = folder / "s.sqlite3"
    with Store(path) as store:
        ask(store, Kept, range(rng.randrange(1, 50)))
    with closing(sqlite3.connect(path)) as connection:
        own = connection.execute("PRAGMA user_version").fetchone()[0]
        other = rng.choice([number for number in (*range(12), 99, 2**31 - 1) if number != own])
        connection.execute(f"PRAGMA user_version = {other}")
    before = path.read_bytes()
    for read_only in (False, True):
        try:
            Store(path, read_only=read_only).close()
        except StoreError as error:
            if "\n" in str(error) or "another version" not in str(error):
                return f"version {other}: {error}"
        else:
            return f"version {other}: opened"
    if path.read_bytes() != before:
        return f"version {other}: the file has changed"
    kept = repair(path).kept
    if kept is None or kept.read_bytes() != before:
        return f"version {other}: the old file is not kept"
    with Store(path) as store:
        ask(store, Kept, range(50))
    return ""


def _together(rng: random.Random, folder: Path, jumps: Sequence[float], hosts: Sequence[str]) -> str:
    """What went wrong with several processes at once on one store; each has a run of its own, and some prompts too."""
    path, seeds = folder / "s.sqlite3", [rng.randrange(1 << 30) for _ in range(PROCESSES)]
    Store(path).close()

    def start(number: int) -> int:
        if child := os.fork():
            return child
        code = 1
        try:
            _work(path, number, random.Random(seeds[number]), jumps, rng.choice(hosts) if number else hosts[0])
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(code)

    children = [start(number) for number in range(PROCESSES)]
    time.sleep(rng.uniform(0, 0.1))
    os.kill(children[-1], signal.SIGKILL)
    os.waitpid(children[-1], 0)
    children[-1] = start(PROCESSES - 1)
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(ended):
        return f"processes ended with {ended}"
    with Store(path) as store:
        asked = sum(ask(store, Kept, _asked(number)) for number in range(PROCESSES))
        runs = {run.command[-1]: run for run in store.runs.all()}
    if asked:
        return f"{asked} asked again"
    if wrong := [f"{name} {run.status} {run.done}/{run.total}" for name, run in runs.items() if not _is_whole(run)]:
        return f"runs: {wrong}"
    if len(runs) != PROCESSES:
        return f"{len(runs)} runs of {PROCESSES}"
    return "damaged" if repair(path).damage else ""


def _is_whole(run: object) -> bool:
    return (run.status, run.done) == ("done", run.total) and run.total > 0  # type: ignore[attr-defined]


def _asked(number: int) -> list[int]:
    """Scores that a process asks for: those of all, and its own."""
    return [*range(SHARED), *range(1000 * (number + 1), 1000 * (number + 1) + 60)]


def _work(path: Path, number: int, rng: random.Random, jumps: Sequence[float], host: str) -> None:
    """A run in this process, whose clock jumps now and then."""
    real, offset = time.time, [0.0]

    def clock() -> float:
        if rng.random() < 0.3:
            offset[0] = rng.choice((-1, 1)) * rng.choice(jumps)
        return max(0.0, real() + offset[0])

    warnings.simplefilter("ignore")
    name = patch.object(socket, "gethostname", lambda: host)
    with patch.object(time, "time", clock), name, Store(path) as store:
        run = store.runs.start(["audit", "m", str(number)], path.parent, "m")
        stop = store.runs.keep_alive(run)
        ask(store, Kept, _asked(number), run, at_once=rng.choice((5, 20, 60)))
        if store.runs.get(run).status not in ("running", "interrupted"):  # interrupted: the clock jumped just now
            raise AssertionError(f"at work, and {store.runs.get(run).status}")
        store.runs.all()
        stop()
        store.runs.end(run, "done")


CLASSES: tuple[tuple[str, int, Callable[[random.Random, Path], str]], ...] = (
    ("clocks that jump", 200, clocks),
    ("two host names on one store", 200, hosts),
    ("taken for a network file system", 100, networks),
    ("tables of another version", 200, versions),
)
"""Each with its attempts for 10,000 cases; a run says what was wrong."""
