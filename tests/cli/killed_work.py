"""Commands killed at any moment of their work, not only while they write, and then repeated.

``python -m tests.cli.killed_work WORK SEED KILLS COMMAND ...`` prints one JSON line a command: ``tried``, ``within``
(kills that came before the end) and ``wrong``. Each run is a fork of one process that has loaded everything.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.cli.attacked_outputs import commands, contents, earlier, in_own_process, is_new, prepare, restore, words_of

SAMPLED = "audit fair embedded --elicit generate --temperature 1 --max-tokens 6 --limit 3 --connections 2 --quiet"
SAMPLED += " --orders reverse"
REPLIES = "replies of a local model"
"""Every byte of these must be the same, since they are sampled: what was drawn once must not be drawn again."""
KILLED = ("merge", "rerun", "leaderboard", REPLIES)
STORE = Path("home/store.sqlite3")


def run(words: list[str]) -> int:
    """Start a command in a process of its own; its exit code and what it says on an error are in ``said``."""
    if child := os.fork():
        return child
    from tests.command_line import unslant

    ran = unslant(*words)
    Path("said").write_text(ran.err)
    os._exit(ran.code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kept() -> int:
    """Replies in the store."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{STORE}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM replies").fetchone()[0])
    return 0


def kill(child: int, moment: float, replies: int) -> int:
    """Kill a process after so many seconds, or once so many replies are stored; returns how it ended."""
    deadline = time.monotonic() + (120 if replies else moment)
    while time.monotonic() < deadline and not (replies and kept() >= replies):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return ended(child)


def killed(name: str, words: list[str], rng: random.Random, kills: int) -> dict[str, Any]:
    wrong: list[str] = []
    within = 0
    restore({})
    began = time.monotonic()
    if code := ended(run(words)):
        return {"command": name, "tried": 0, "within": 0, "wrong": [f"exit {code}: {Path('said').read_text()}"]}
    lasts, new, replies = time.monotonic() - began, contents(), kept() if name == REPLIES else 0
    old = earlier(new)
    if name == "merge":  # which keeps a folder whose table of responses is of another run
        old = {path: content for path, content in old.items() if Path(path).name != "responses.parquet"}
    for attempt in range(kills):
        shutil.rmtree("home", ignore_errors=True)
        restore(old)
        moment, most = rng.uniform(0, lasts), rng.randrange(1, replies) if replies else 0
        within += kill(run(words), moment, most) == -signal.SIGKILL
        what = f"kill {attempt} after {most or f'{moment:.2f} of {lasts:.2f} s'}"
        for path, content in contents().items():
            whole = content == old.get(path) or (path in new and content and is_new(path, content, new))
            if "/.unslant-" not in path and not whole:
                wrong.append(f"{what}: {path} is neither the old nor the new one")
        if code := ended(run(words)):
            wrong.append(f"{what}, repeated: exit {code}, {Path('said').read_text()[-400:]!r}")
        found = contents()
        for path in found.keys() | new:
            same = path in new and path in found
            same = same and (found[path] == new[path] if replies else is_new(path, found[path], new))
            if not same:
                wrong.append(f"{what}, repeated: {path} is not that of a run that was not killed")
        if STORE.exists():
            with closing(sqlite3.connect(STORE)) as connection:
                if (state := connection.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
                    wrong.append(f"{what}: the store is damaged: {state}")
    return {"command": name, "tried": kills, "within": within, "wrong": wrong}


def killed_work(names: list[str], work: Path, seed: int, kills: int) -> list[dict[str, Any]]:
    """Kill some commands, in a process of its own; a line a command."""
    return in_own_process("tests.cli.killed_work", names, work, seed, kills)


def main(work: str, seed: str, kills: str, *names: str) -> None:
    os.chdir(work)
    prepare(*(name for name in names if name != REPLIES))
    if REPLIES in names:  # loads what is then forked
        from tests.command_line import unslant

        assert unslant(*SAMPLED.replace("--limit 3", "--limit 1").split(), "--no-store").code == 0
    known: dict[str, Any] = dict(commands())
    for name in names:
        words = [*SAMPLED.split(), "--out", "out"] if name == REPLIES else words_of(name, known[name])
        words = [word for word in words if word != "--no-store"]
        shutil.rmtree("home", ignore_errors=True)
        Path("out").mkdir(exist_ok=True)
        print(json.dumps(killed(name, words, random.Random(f"{seed} {name}"), int(kills))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
