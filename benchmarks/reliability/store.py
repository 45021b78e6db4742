"""Ways to lose what a store holds: commands at once, damaged files, kills while one is repaired, files pulled away."""

from __future__ import annotations

import gc
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability import ROOT, Options, Row
from unslant.errors import UnslantError
from unslant.store import Kept, KeptReply, Store, digest
from unslant.store.repair import repair
from unslant.store.tables import PAGE

SCORES, REPLIES, RUNS = 600, 80, 3
PARQUET = b"PAR1" + random.Random(1).randbytes(3 * PAGE) + b"PAR1"


def rows(options: Options) -> Iterator[Row]:
    """Every class; its attempts grow with the number of cases."""
    scale = options.cases / 10_000
    for name, most, run in CLASSES:
        if options.wants("store", name):
            row = Row("store", name)
            for attempt in range(max(1, round(most * scale))):
                row.attempts += 1
                with tempfile.TemporaryDirectory() as folder:
                    if wrong := run(random.Random(f"{options.seed}/{name}/{attempt}"), Path(folder)):
                        row.fail(f"attempt {attempt}: {wrong}")
            yield row


# What is kept: a function of its number, so that anything wrong shows


def key(kind: type[Any], number: int, model: str = "m") -> bytes:
    return digest(model.encode(), kind.table.encode(), b"%d" % number)


def truth(kind: type[Any], number: int) -> Kept | KeptReply:
    if kind is KeptReply:
        return KeptReply(f"reply {number} " * (1 + number % 200))
    rng = np.random.default_rng(number)
    return Kept(-rng.random(4), (1,) if number % 7 == 0 else ())


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def ask(
    store: Store, kind: type[Any], numbers: Sequence[int], run: str = "", upto: int = 10**9, at_once: int = 100
) -> int:
    """Get the truth of every number, from the store where it knows it; returns how many it did not.

    Raises:
        AssertionError: if the store gives anything else.
    """
    found = store.open_pass(kind, {"model": "m"}, [key(kind, number) for number in numbers], run)
    known = found.stored()
    for position, kept in known.items():
        assert same(kept, truth(kind, numbers[position])), f"{kind.table} {numbers[position]} is {kept}"
    missing = [i for i in range(len(numbers)) if i not in known][:upto]
    done = len(known)
    for start in range(0, len(missing), at_once):
        some = missing[start : start + at_once]
        done += len(some)
        found.write([(i, truth(kind, numbers[i])) for i in some], done, {}, {"tree": (done, bytes(9000))})
    return len(missing)


def fill(path: Path) -> None:
    """A store with a past: finished and unfinished runs, a run that was deleted, a model that was forgotten."""
    with Store(path) as store:
        gone = store.runs.start(["gone"], path.parent, "m")
        ask(store, Kept, range(10_000, 10_200), gone)
        for number in range(RUNS):
            run = store.runs.start(["audit", "m", "--seed", str(number)], path.parent, "m")
            store.runs.note(run, {"questions": f"questions {number}", "questions_digest": "digest"})
            ask(store, Kept, range(SCORES * number // RUNS, SCORES * (number + 1) // RUNS), run, at_once=33)
            ask(store, KeptReply, range(REPLIES * number // RUNS, REPLIES * (number + 1) // RUNS), run, at_once=1)
            store.runs.keep_responses(run, PARQUET)
            store.runs.note(run, {"score": f"0.{number}00 accuracy"})
            store.runs.end(run, "done")
        run = store.runs.start(["audit", "half"], path.parent, "m")
        ask(store, Kept, range(SCORES, SCORES + 100), run, upto=50)
        for number in range(20_000, 20_150):
            other = store.open_pass(Kept, {"model": "forgotten"}, [key(Kept, number, "forgotten")])
            other.write([(0, Kept(np.array([-9.0])))], 1)
        store.forget({"model": "forgotten"})
        store.runs.remove(store.runs.get(gone))
        store.runs.end(run, "stopped")


@cache
def filled() -> tuple[bytes, bytes]:
    """Such a store, closed; and one whose process was killed, with the log it left: as file and log."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "s.sqlite3"
        fill(path)
        return path.read_bytes(), b""


@cache
def killed() -> tuple[bytes, bytes]:
    """A store whose process was killed: the file, and the log that holds half of it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "s.sqlite3"
        code = f"""
import os, signal
from pathlib import Path
import unslant.store.database as database
from benchmarks.reliability import store
store.fill(Path({str(path)!r}))
database._LOG_BYTES = 1 << 30
with store.Store(Path({str(path)!r})) as opened:
    opened._database._checkpoint_from = 1 << 30
    store.ask(opened, store.Kept, range(store.SCORES, store.SCORES + 100))
    os.kill(os.getpid(), signal.SIGKILL)
"""
        process(code).wait()
        return path.read_bytes(), path.with_name("s.sqlite3-wal").read_bytes()


def process(code: str, *, stdin: bool = False) -> subprocess.Popen[bytes]:
    """Python code in a process of its own; with ``stdin``, of which it can read."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))}
    source = subprocess.PIPE if stdin else subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-c", code], stdin=source, stdout=subprocess.PIPE, env=environment)


# Damage


def flipped(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 3, 30))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def header(rng: random.Random, data: bytearray) -> None:
    start, size = rng.randrange(100), rng.choice((1, 4, 16, 100))
    data[start : min(100, start + size)] = rng.randbytes(min(100, start + size) - start)


def truncated(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(PAGE, len(data)) :]


def swapped(rng: random.Random, data: bytearray) -> None:
    one, two = (PAGE * rng.randrange(len(data) // PAGE) for _ in range(2))
    data[one : one + PAGE], data[two : two + PAGE] = data[two : two + PAGE], data[one : one + PAGE]


def zeroed(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 5))):
        start = PAGE * rng.randrange(len(data) // PAGE)
        data[start : start + PAGE] = bytes(PAGE)


def garbage(rng: random.Random, data: bytearray) -> None:
    start, size = rng.randrange(len(data)), rng.choice((10, 500, 3 * PAGE))
    data[start : start + size] = rng.randbytes(min(size, len(data) - start))


def index(rng: random.Random, data: bytearray) -> None:
    """A cell pointer or a cell of a leaf of an index, which holds nothing that is not elsewhere."""
    leaves = [page for page in range(1, len(data) // PAGE) if data[PAGE * page] == 10]
    start = PAGE * rng.choice(leaves)
    at = start + rng.choice((rng.randrange(3, 60), rng.randrange(PAGE - 1000, PAGE)))
    data[at] = rng.randrange(256)


DAMAGES: tuple[Callable[[random.Random, bytearray], None], ...] = (
    flipped,
    header,
    truncated,
    swapped,
    zeroed,
    garbage,
    index,
)


def damaged(rng: random.Random, folder: Path, damage: Callable[[random.Random, bytearray], None] | None = None) -> str:
    """A store damaged in the file or in its log: right numbers or an error, and right numbers after a repair."""
    file, log = killed() if rng.random() < 0.3 else filled()
    path = folder / "s.sqlite3"
    data = bytearray(file)
    damage = damage or rng.choice(DAMAGES)
    damage(rng, data)
    path.write_bytes(data)
    if log:
        path.with_name("s.sqlite3-wal").write_bytes(log)
    with suppress(UnslantError):
        look(path)
    wrong = check_repair(path, SCORES + (100 if log else 50))
    return f"{damage.__name__}: {wrong}" if wrong else ""


def look(path: Path) -> set[str]:
    """What commands that only look show: AssertionError if any of it is wrong. Returns the runs."""
    with Store(path, read_only=True) as store:
        runs = store.runs.all()
        for run in runs:
            if run.status == "done":
                expected = "".join(run.command[-1:]) + "00 accuracy"
                assert run.score == f"0.{expected}", f"{run.command} found {run.score}"
                assert run.questions == f"questions {run.command[-1]}"
                with suppress(UnslantError):
                    assert store.runs.responses(run) == PARQUET, "other responses"
    return {run.id for run in runs}


def check_repair(path: Path, total: int = SCORES + 50) -> str:
    """Repair a store, and use it: nothing wrong comes out, what was saved is not asked again, and it is whole.

    Args:
        total: scores that were in it.
    """
    try:
        found = repair(path)
    except UnslantError as error:
        return "" if "left as it is. Move it away" in str(error) and _is_hopeless(path) else f"not repaired: {error}"
    if found.damage and not (found.kept and found.kept.exists()):
        return "the damaged file was not kept"
    runs = look(path)
    if found.damage and not set(found.runs) <= runs:
        return "runs that are not there are to be resumed"
    with Store(path) as store:
        scores, replies = ask(store, Kept, range(total)), ask(store, KeptReply, range(REPLIES))
        if found.damage and scores > total - found.saved["scores"]:
            return f"{scores} scores asked again, and {found.saved['scores']} were saved"
        if found.damage and replies > REPLIES - found.saved["replies"]:
            return f"{replies} replies asked again, and {found.saved['replies']} were saved"
    gone = {key(Kept, n) for n in range(10_000, 10_200)}
    gone |= {key(Kept, n, "forgotten") for n in range(20_000, 20_150)}
    with closing(sqlite3.connect(path)) as connection:
        if gone & {prompt for (prompt,) in connection.execute("SELECT prompt FROM scores")}:
            return "what was deleted came back"
    again = repair(path)
    return f"damaged after its repair: {again.damage}" if again.damage else ""


def _is_hopeless(path: Path) -> bool:
    """Not one page is left as it was."""
    data, pages = path.read_bytes(), set()
    for file, _ in (filled(), killed()):
        pages |= {file[at : at + PAGE] for at in range(PAGE, len(file), PAGE)}
    return not any(data[at : at + PAGE] in pages for at in range(0, len(data), PAGE))


def interrupted(rng: random.Random, folder: Path) -> str:
    """A repair killed at a random moment: the next one saves no less than the first would have."""
    path, other = folder / "s.sqlite3", folder / "other.sqlite3"
    data = bytearray(filled()[0])
    rng.choice((flipped, zeroed, garbage))(rng, data)
    for name in (path, other):
        name.write_bytes(data)
    started = time.monotonic()
    expected = repair(other)
    taken = time.monotonic() - started
    for _ in range(rng.randrange(1, 3)):
        child = os.fork()
        if child == 0:
            try:
                repair(path)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0, 1.2 * taken))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if wrong := check_repair(path):
        return wrong
    kept = list(folder.glob("s.sqlite3.damaged-*"))
    if len(kept) != bool(expected.damage) or any(one.read_bytes() != bytes(data) for one in kept):
        return f"kept {len(kept)} damaged files"
    with Store(path) as store, Store(other) as whole:
        found = [{run.id: (run.status, run.score) for run in one.runs.all()} for one in (store, whole)]
    return "" if found[0] == found[1] else "other runs than without the kill"


def pulled_away(rng: random.Random, folder: Path) -> str:
    """The file or its log deleted, renamed or replaced in use: the next write is an error, in no other store."""
    path, other = folder / "s.sqlite3", folder / "other.sqlite3"
    fill(other)
    what = rng.choice(("file deleted", "file renamed", "file replaced", "log deleted", "log replaced"))
    with Store(path) as store:
        ask(store, Kept, range(rng.randrange(1, 300)))
        taken = path if what.startswith("file") else path.with_name("s.sqlite3-wal")
        if what.endswith("replaced"):
            os.replace(other, taken)
        elif what.endswith("renamed"):
            taken.rename(folder / "renamed")
        else:
            taken.unlink()
        try:
            ask(store, Kept, range(300, 310))
        except UnslantError as error:
            if "moved, deleted or replaced while in use" not in str(error):
                return f"{what}: {error}"
        else:
            return f"{what}: nothing was said"
    if what == "file replaced":
        return check_repair(path)
    return ""


def forked(rng: random.Random, folder: Path) -> str:
    """Processes forked with the store open: each is refused it, and its end changes nothing for the others."""
    path = folder / "s.sqlite3"
    with Store(path) as store:
        ask(store, Kept, range(100))
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    for attempt in (lambda: ask(store, Kept, range(100)), lambda: Store(path)):
                        try:
                            attempt()
                        except UnslantError as error:
                            code = 0 if "when this process was forked" in str(error) else 2
                        else:
                            code = 3
                        if code:
                            break
                    store.close()
                finally:
                    if rng.random() < 0.5:
                        del store
                        gc.collect()
                    os._exit(code)
            children.append(child)
            ask(store, Kept, range(100, 100 + rng.randrange(1, 200)))
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if any(codes):
            return f"children ended with {codes}"
        with closing(sqlite3.connect(path)) as connection:  # it closes as a process that would fold the log
            connection.execute("SELECT count(*) FROM scores").fetchone()
        ask(store, Kept, range(300))
    with Store(path) as store:
        if asked := ask(store, Kept, range(300)):
            return f"{asked} asked again"
    return "damaged" if repair(path).damage else ""


def commands(rng: random.Random, folder: Path) -> str:
    """One long run and ten short ones at once."""
    from benchmarks.reliability.at_once import at_once  # loads torch

    return at_once(folder / "runs", folder / "s.sqlite3", rng.randrange(1000))


CLASSES: tuple[tuple[str, int, Callable[[random.Random, Path], str]], ...] = (
    ("commands at once on one store", 20, commands),
    ("damaged store repaired", 1000, damaged),
    ("killed while being repaired", 200, interrupted),
    ("file or log pulled away", 200, pulled_away),
    ("forked while open", 50, forked),
)
"""Each with its attempts for 10,000 cases; a run says what was wrong."""
