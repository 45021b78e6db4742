"""Memory and time of whole audits: a scorer that costs nothing, every output written, scores stored on the way."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.reliability import ROOT, Options, Row

MOST = 2_000_000_000
"""Bytes that an audit may take."""
SIZES = ((5_000, 100_000), ("2", "24"))
_COMMAND = """
import torch, transformers  # what a real model brings along
import unslant.models.hf.loading
from benchmarks.reliability.tables import Guesser
unslant.models.hf.loading.load_model = lambda *_, **__: Guesser()
from unslant.cli import main
main()
"""
_WORDS = "river stone cloud lamp horse table green light early night paper metal window garden copper winter".split()


def rows(options: Options) -> Iterator[Row]:
    """Every size with every number of orders; the least size also says what a question should take."""
    with tempfile.TemporaryDirectory() as name:
        for orders in SIZES[1]:
            seconds = 0.0
            for number in SIZES[0]:
                row = Row("scale", f"{number:,} questions, --orders {orders}", 1)
                if not options.wants("scale", row.name):
                    continue
                peak, taken = _audit(Path(name), number, orders, row)
                before, seconds = seconds, taken / number
                row.note = f"{peak / 1e9:.2f} GB at most, {1000 * seconds:.1f} ms of processor time a question"
                row.note += f", {seconds / before:.2f} times that of the smaller set" if before else ""
                if peak > MOST:
                    row.fail(f"{peak:,} bytes")
                yield row


def _audit(folder: Path, number: int, orders: str, row: Row) -> tuple[int, float]:
    """Peak memory in bytes and seconds of one audit in a process of its own."""
    path = folder / f"{number}.jsonl"
    if not path.exists():
        write_questions(path, number)
    for old in folder.glob("store*"):
        old.unlink()
    outputs = ("numbers.json", "responses.parquet", "report.html")
    command = [sys.executable, "-c", _COMMAND, "audit", "m", str(path), "--orders", orders, "-q", "--store"]
    command += [str(folder / "store.sqlite3"), "--json", outputs[0], "--responses", outputs[1], "--html", outputs[2]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))}
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    if status or not all((folder / output).stat().st_size for output in outputs):
        row.fail(f"the command ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_maxrss * 1024, used.ru_utime + used.ru_stime


def write_questions(path: Path, number: int) -> None:
    """Questions of four options, in six subjects."""
    rng = random.Random(number)

    def words(count: int) -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(count))

    with path.open("w", encoding="utf-8") as file:
        for i in range(number):
            options = [f"{words(4)} {label}" for label in "abcd"]
            record = {"id": f"q{i:06d}", "question": f"{words(12)} {i}?", "options": options}
            file.write(json.dumps(record | {"answer": rng.randrange(4), "subject": rng.choice("abcdef")}) + "\n")
