"""Whole commands at once on one store, each in a process; also the module that the fork server loads beforehand.

The models cost nothing. The long run waits, at every tenth of its prompts, until one more short run has ended, so that
it spans them all however busy the machine is.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

# Loaded once, and then forked.
import pandas  # noqa: F401
import scipy.optimize
import scipy.stats  # noqa: F401
import torch

import unslant.auditing.study
import unslant.experiment.running
import unslant.models.chat
import unslant.models.hf.loading
import unslant.reports.report
import unslant.store.runs
from benchmarks.reliability.scale import write_questions
from benchmarks.reliability.tables import Guesser
from unslant import cli
from unslant.models import stored
from unslant.models.base import Scored
from unslant.prompts import Prompt

SHORT = 10
QUESTIONS = 40
LANES = 2
"""Short runs at the same time."""


class Waiting(Guesser):
    """Counts what it is asked, and waits for so many others on the way."""

    def __init__(self, folder: Path, others: int) -> None:
        super().__init__()
        self.folder, self.others, self.asked = folder, others, 0

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for i, scored in enumerate(super().score(prompts)):
            while self.others and len(list(self.folder.glob("ended-*"))) < i * (self.others + 1) // len(prompts):
                time.sleep(0.01)
            self.asked += 1
            yield scored


def run(words: Sequence[str], folder: Path, waits_for: int, ready: Any) -> None:
    """One command, with a sign of life every second and every score written as it comes."""
    import sys

    torch.set_num_threads(1)
    os.chdir(folder)
    sys.stderr = (folder / f"{os.getpid()}.err").open("w", buffering=1)
    sys.argv = ["unslant", *words]
    model = Waiting(folder, waits_for)
    unslant.models.hf.loading.load_model = lambda *_, **__: model
    unslant.store.runs.HEARTBEAT = 1.0
    stored._SECONDS_BETWEEN_WRITES = stored._MOST_SECONDS_BETWEEN_WRITES = 0.01
    code = 0
    try:
        cli.main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 1
    ready.send((code, model.asked, (folder / f"{os.getpid()}.err").read_text()))


class Started:
    """A command under way."""

    def __init__(self, words: Sequence[str], folder: Path, waits_for: int = 0) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.reliability.at_once"])
        self.ready, theirs = context.Pipe()
        self.process = context.Process(target=run, args=(words, folder, waits_for, theirs))
        self.process.start()
        theirs.close()

    def deleted(self) -> list[str]:
        """Files that it has open and that have no name any more."""
        folder, found = Path(f"/proc/{self.process.pid}/fd"), []
        with suppress(OSError):
            for link in folder.iterdir():
                with suppress(OSError):
                    found.append(os.readlink(link))
        return [name for name in found if ".sqlite3" in name and name.endswith(" (deleted)")]

    def ended(self) -> tuple[int, int, str]:
        """Its exit code, the prompts it asked, and what it said."""
        try:
            said: tuple[int, int, str] = self.ready.recv()
        except EOFError:
            said = -1, 0, "died"
        self.process.join()
        return said


def audit(questions: Path, store: Path, seed: int) -> list[str]:
    return ["audit", "m", str(questions), "--orders", "4", "--seed", str(seed), "--store", str(store), "-q"]


def at_once(folder: Path, store: Path, seed: int, others: int = SHORT) -> str:
    """One long run and many short ones; says what was wrong.

    Nothing has a deleted file open, all end with 0, no row is lost (each run repeated asks nothing), the file is whole.
    """
    folder.mkdir()
    paths = [folder / f"{number}.jsonl" for number in range(others + 1)]
    for number, path in enumerate(paths):
        write_questions(path, QUESTIONS if number == 0 else 3 + number % 3)
    long = Started(audit(paths[0], store, seed), folder, waits_for=others)
    short, left, deleted = list[Started](), list(paths[1:]), set[str]()
    running: dict[int, Started] = {}
    while left or running:
        while left and len(running) < LANES:
            number = len(left)
            short.append(Started(audit(left.pop(), store, seed), folder))
            running[number] = short[-1]
        for number, one in list(running.items()):
            if not one.process.is_alive():
                del running[number]
                (folder / f"ended-{number}").touch()
        deleted |= {name for one in (long, *running.values()) for name in one.deleted()}
        if not long.process.is_alive():
            (folder / "ended-0").touch()
        time.sleep(0.005)
    (folder / "ended-0").touch()
    ended = [one.ended() for one in (long, *short)]
    if deleted:
        return f"open and deleted: {', '.join(sorted(deleted))}"
    if failed := [(code, said) for code, _, said in ended if code]:
        return f"{len(failed)} commands failed: {failed[0]}"
    again = [Started(audit(path, store, seed), folder).ended() for path in (paths[0], paths[1])]
    if lost := [asked for code, asked, _ in again if code or asked]:
        return f"asked again: {lost}, {again}"
    with closing(sqlite3.connect(store)) as connection:
        whole = connection.execute("PRAGMA integrity_check").fetchone()[0]
        rows = connection.execute("SELECT count(*) FROM scores").fetchone()[0]
    return "" if whole == "ok" and rows else f"{rows} rows: {whole}"
