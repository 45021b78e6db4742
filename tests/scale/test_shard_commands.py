"""``--shard`` and ``unslant merge`` as they are typed, also with machines that are killed."""

from __future__ import annotations

import json
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import unslant
from unslant.responses import Responses
from unslant.store import Store

AUDIT = ["audit", "prefers-a", "embedded", "--limit", "8", "--orders", "cyclic", "-q"]
TOOK = re.compile(
    r"^[\d,]+ prompts(?: \([^)]* from the store\))?(?: in [\d.]+ s)?(?:, (?:about )?[\d.]+ times an ordinary run)?"
    r"| at [\d.]+ times"
)
COSTS = {"cost", "cost_once", "order_costs", "ordinary_runs"}
"""Of prompts that the store recalls, no tokens are known."""
KILLED = """
import os, signal, sys
import unslant.asking
from unslant.cli import main
from unslant.store import Pass

unslant.asking.AT_ONCE = 10  # a portion is scored and stored, the next is not
write = Pass.write

def killed(self, rows, *more):
    write(self, rows, *more)
    os.kill(os.getpid(), signal.SIGKILL)

Pass.write = killed
main()
"""


def shard(path: Path, part: str, *more: object) -> None:
    ran = unslant(*AUDIT, "--shard", part, "--responses", path, "--no-store", *more)
    assert (ran.code, ran.err, ran.out) == (0, "", "")


def nearly(one: Any, other: Any, place: str = "") -> None:
    """Equal, but for the last bits of scores (which prompts are run together decides these) and what it took."""
    if isinstance(one, Mapping):
        assert one.keys() == other.keys(), place
        for key in one.keys() - COSTS:
            nearly(one[key], other[key], f"{place}/{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for i, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            nearly(mine, theirs, f"{place}/{i}")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-4), place
    elif isinstance(one, str):
        assert TOOK.sub("", one) == TOOK.sub("", other), place
    else:
        assert one == other, place


@pytest.mark.thorough
def test_three_shards_merged_are_the_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert unslant(*AUDIT, "--no-store", "--json", "whole.json").code == 0
    for i in (2, 3, 1):
        shard(Path(f"s{i}.parquet"), f"{i}/3", "--plan", "plan.json")
    told = unslant("merge", "m.parquet", "s1.parquet", "s3.parquet")
    assert (told.code, told.out) == (2, "")
    again = "audit prefers-a embedded --limit 8 --orders cyclic --shard 2/3 --responses s2.parquet"
    assert told.err == f"error: 1 of 3 shards missing: 2; score each like this: unslant {again}\n"
    Path("s2.parquet").unlink()
    assert unslant(*again.split(), "--no-store").code == 0
    ran = unslant(
        "merge", "m.parquet", "s3.parquet", "s1.parquet", "s2.parquet", "--json", "m.json", "--html", "m.html"
    )
    assert ran.code == 0, ran.err
    assert "guessing" in ran.out
    assert "m.html" in {path.name for path in tmp_path.iterdir()}
    whole, merged = (json.loads(Path(path).read_text()) for path in ("whole.json", "m.json"))
    nearly(whole, merged)
    assert whole["cost"]["prompts"] == merged["cost"]["prompts"]
    assert unslant("audit", "--log", "m.parquet", "--json", "again.json", "-q").code == 0
    assert Path("again.json").read_text() == Path("m.json").read_text()
    other = unslant(*AUDIT, "--shard", "1/3", "--responses", "o.parquet", "--plan", "plan.json", "--seed", "4")
    assert other.code == 2
    assert "plan.json: is the plan of another run: its settings (seed 0 and 4) differ from what is asked" in other.err
    assert not Path("o.parquet").exists()


def test_what_is_printed_of_a_shard(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    ran = unslant(*AUDIT[:-1], "--shard", "2/2", "--responses", path, "--no-store")
    assert ran.code == 0
    assert re.fullmatch(
        r"shard 2 of 2: \d of 8 questions, \d+ responses in .*s\.parquet\n"
        r"when all shards are there: unslant merge MERGED SHARDS\.\.\.\n",
        ran.out,
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--shard", "0/16"], "--shard '0/16': give I/N with I from 1 to N, such as 3/16"),
        (["--shard", "17/16"], "--shard '17/16': give I/N with I from 1 to N, such as 3/16"),
        (["--shard", "3-16"], "--shard '3-16': give I/N with I from 1 to N, such as 3/16"),
        (["--shard", "3/16"], "--shard 3/16: name the table of the shard with --responses FILE"),
        (["--plan", "p.json"], "--plan applies only to shards: add --shard, such as --shard 1/16, or leave it out"),
        (
            ["--shard", "1/2", "--responses", "s.parquet", "--json", "n.json", "--fail-if", "pbm>1"],
            "--shard writes a table, unslant merge everything else: leave out --json=n.json and --fail-if",
        ),
        (
            ["--shard", "1/2", "--log", "logs.parquet"],
            "--log reads recorded responses: leave out --limit 8 and --orders cyclic",
        ),
        (
            ["--shard", "1/2", "--dry-run"],
            "--dry-run is for whole runs, and --shard asks only part of one: leave one of them out",
        ),
        (["--shard", "1/2", "--responses", "no/s.parquet"], "no/s.parquet: cannot be written"),
        (["--shard", "1/2", "--responses", "s.parquet", "--plan", "no/p.json"], "no/p.json: cannot be written"),
        (["--shard", "1/2", "--responses", "p.json", "--plan", "p.json"], "--responses p.json: is also --plan"),
    ],
)
def test_bad_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.json").write_text("{}") if "p.json" in words and "--responses" in words else None
    ran = unslant(*AUDIT, *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {told}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["leaderboard", "-m", "fair", "--shard", "1/2"], "Unknown option: --shard"),
        (["study", "probe", "fair", "prefers-a", "--shard", "1/2"], "Unknown option: --shard"),
        (["study", "base-rate", "--shard", "1/2", "--log", "logs.csv"], "--log is for whole runs"),
        (["study", "unbiased", "--shard", "1/2", "--log", "logs.parquet"], "--log is for whole runs"),
        (["study", "base-rate", "--shard", "1/2", "--charts", "c.svg"], "--charts is for whole runs"),
        (
            ["study", "unbiased", "-m", "fair", "-m", "prefers-a", "--shard", "1/2", "--responses", "s.parquet"],
            "--shard takes one model: run the command once for each",
        ),
        (["merge"], "merge needs MERGED; unslant merge --help shows what it is"),
        (["merge", "m.parquet"], "no shards: name the table to be written first"),
        (["merge", "no/m.parquet", "s.parquet"], "no/m.parquet: cannot be written"),
        (["merge", "m.parquet", "s.parquet"], "s.parquet: no such file"),
        (["merge", "m.parquet", "p.json"], "p.json: not a Parquet file that can be read"),
        (["merge", "p.json", "p.json"], "MERGED p.json: is also SHARDS and would be overwritten"),
    ],
)
def test_bad_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.json").write_text("{}")
    ran = unslant(*words)
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


def run_killed(arguments: list[str]) -> None:
    """The command in a process of its own, which is killed behind its first write to the store."""
    ran = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True, timeout=300)
    assert ran.returncode == -signal.SIGKILL, ran.stderr


def kill_and_merge(tmp_path: Path, n: int, kills: int, limit: int, seed: int) -> None:
    """Score ``n`` shards in any order, kill some of them, repeat these as ``merge`` says, and merge."""
    audit = ["audit", "prefers-a", "embedded", "--limit", str(limit), "-q"]
    assert unslant(*audit, "--json", "whole.json", "--no-store").code == 0
    rng = random.Random(seed)
    order = rng.sample(range(1, n + 1), n)
    killed = set(rng.sample(order, kills))
    for i in order:
        words = [*audit, "--shard", f"{i}/{n}", "--plan", "plan.json", "--store", f"{i}.db", "--responses"]
        if i in killed:
            run_killed([*words, f"s{i}.parquet"])
            assert not Path(f"s{i}.parquet").exists()
        else:
            assert unslant(*words, f"s{i}.parquet").code == 0
    for i in sorted(killed):
        there = [str(path) for path in Path().glob("s*.parquet")]
        told = unslant("merge", "m.parquet", *rng.sample(there, len(there)))
        assert told.code == 2
        command = shlex.split(told.err.partition("score each like this: unslant ")[2])
        assert command[-4:] == ["--shard", f"{i}/{n}", "--responses", f"s{i}.parquet"]
        again = unslant(*command, "--store", f"{i}.db")
        assert again.code == 0, again.err
        assert "prompts reused from the store" in again.err
    shards = rng.sample([f"s{i}.parquet" for i in order], n)
    ran = unslant("merge", "m.parquet", *shards, "--json", "m.json", "-q")
    assert (ran.code, ran.err) == (0, "")
    nearly(json.loads(Path("whole.json").read_text()), json.loads(Path("m.json").read_text()))
    for i in killed:
        with Store(f"{i}.db", read_only=True) as store:
            assert sorted(run.status for run in store.runs.all()) in (
                ["done", "interrupted"],
                ["done", "running"],
                ["done"],
            )


@pytest.mark.slow
def test_sixteen_shards_with_two_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kill_and_merge(tmp_path, n=16, kills=2, limit=64, seed=5)


@pytest.mark.thorough
def test_shards_that_end_at_once_are_both_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import unslant.experiment.outputs as outputs
    from unslant.experiment import OutputOptions

    for part in (1, 2):
        shard(tmp_path / f"{part}.parquet", f"{part}/2")
    tables = [Responses.from_parquet(tmp_path / f"{part}.parquet") for part in (1, 2)]
    seen = outputs._other_shard

    def slowly(*given: Any) -> str:
        other = seen(*given)
        time.sleep(0.3)  # the other shard looks, too, before this one writes
        return other

    monkeypatch.setattr(outputs, "_other_shard", slowly)
    options = OutputOptions(responses=tmp_path / "s.parquet", quiet=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda table: outputs.write_shard(table, options), tables))
    kept = [Responses.from_parquet(path).run.shard for path in tmp_path.glob("s*.parquet")]
    assert sorted(one.index for one in kept if one) == [1, 2]


@pytest.mark.thorough
def test_a_shard_is_not_written_over_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import unslant.experiment.outputs as outputs

    table = tmp_path / "s.parquet"
    shard(table, "1/2")
    first = table.read_bytes()
    for part in ("2/2", "1/3"):
        ran = unslant(*AUDIT, "--shard", part, "--responses", table, "--no-store")
        assert ran.code == 2
        assert f"{table}: holds shard 1/2, which unslant merge needs" in ran.err
    monkeypatch.setattr(outputs, "check_shard", lambda *_: None)  # the other shard ends while this one is at work
    ran = unslant(*AUDIT, "--shard", "2/2", "--responses", table, "--no-store")
    assert (ran.code, table.read_bytes()) == (0, first)
    assert "this one is in " in ran.err
    assert unslant("merge", tmp_path / "m.parquet", table, tmp_path / "s-2-of-2.parquet", "-q").code == 0
    shard(table, "1/2")
