"""Outputs of every command under attack, and runs of replies that are killed, resumed and recalled."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.reliability import Options, Row
from tests.cli.attacked_outputs import COMMANDS, attacked
from tests.cli.killed_work import KILLED, killed_work
from tests.studies.killed_study import kill_and_resume

ATTEMPTS = 2
"""Kills, and full disks, of each command."""
KILLS = 2
"""Kills of each study of replies, and of each command at any moment of its work."""
SHORT = "--limit 4"
STUDIES = (
    f"audit URL#m embedded --elicit generate {SHORT}",
    f"leaderboard -m URL#a -m URL#b --sets embedded --elicit generate {SHORT}",
    f"study unbiased URL#m embedded --generate {SHORT} --runs 1 --shots 0",
    f"study probe URL#a,URL#b embedded {SHORT} --strengths 1",
    f"study instruction-boundary URL#m --settings vanilla,reasoning-reflection --temperature 0 {SHORT}",
)


def rows(options: Options) -> Iterator[Row]:
    parts: tuple[tuple[str, Callable[[Options], Row]], ...] = (
        ("every output of every command", every_output),
        ("replies killed and resumed, byte for byte", killed_replies),
        ("commands killed at any moment", killed_commands),
    )
    for name, run in parts:
        if options.wants("outputs", name):
            yield run(options)


def every_output(options: Options) -> Row:
    """Each command with all its outputs: killed after so many bytes, on a full disk, with standard output full."""
    row = Row("outputs", "every output of every command")
    with tempfile.TemporaryDirectory() as folder:
        for one in attacked(list(COMMANDS), Path(folder), options.seed, ATTEMPTS):
            row.attempts += one["tried"]
            for wrong in one["wrong"]:
                row.fail(f"{one['command']}: {wrong}")
    row.note = f"{len(COMMANDS)} commands, {ATTEMPTS} kills and {ATTEMPTS} full disks each"
    return row


def killed_replies(options: Options) -> Row:
    """A run killed at a random request ends, when it is repeated, with the bytes of one that was not."""
    row = Row("outputs", "replies killed and resumed, byte for byte")
    rng = random.Random(options.seed)
    for words in STUDIES:
        for _ in range(KILLS):
            row.attempts += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    kill_and_resume(words.split(), Path(folder), kills=1, seed=rng.randrange(1 << 30))
                except AssertionError as error:
                    row.fail(f"{words}: {error}")
    row.note = f"{len(STUDIES)} commands, JSON, HTML and Parquet"
    return row


def killed_commands(options: Options) -> Row:
    """A command killed after a random time leaves old files or new ones, and ends as if nothing had happened."""
    row = Row("outputs", "commands killed at any moment")
    with tempfile.TemporaryDirectory() as folder:
        for one in killed_work(list(KILLED), Path(folder), options.seed, KILLS):
            row.attempts += one["tried"]
            for wrong in one["wrong"]:
                row.fail(f"{one['command']}: {wrong}")
    row.note = f"{', '.join(KILLED)}; then repeated"
    return row
