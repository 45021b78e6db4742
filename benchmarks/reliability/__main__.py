"""Run the attack and print, or write, its table."""

from __future__ import annotations

import argparse
import importlib
import secrets
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import unslant
from benchmarks.reliability import APART, PARTS, Options, Row


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__)
    parser.add_argument("only", nargs="*", help=f"parts, or part/class, to run; parts are {', '.join(PARTS)}")
    parser.add_argument("--cases", type=int, default=10_000, help="damaged files per reader (default 10,000)")
    parser.add_argument("--seed", type=int, default=None, help="default: a new one every time")
    parser.add_argument("--out", type=Path, help="Markdown file whose table, between its two marks, is replaced")
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    options = Options(given.cases, seed, tuple(given.only))
    started = time.monotonic()
    found: list[Row] = []
    wanted = [p for p in PARTS if not options.only or any(name.split("/")[0] == p for name in options.only)]
    with ThreadPoolExecutor() as pool:
        made = {part: pool.submit(_rows, part, options) for part in wanted if part in APART}
        for part in sorted(wanted, key=lambda part: part in APART):
            for row in made[part].result() if part in made else _rows(part, options):
                found.append(row)
                print(line(row), flush=True)
                for example in row.examples:
                    print(f"    {example}", flush=True)
    minutes = (time.monotonic() - started) / 60
    if given.out:
        write(given.out, found, f"unslant {unslant.__version__}, seed {seed}, {minutes:.0f} minutes.")
    return 1 if any(row.failures for row in found) else 0


def _rows(part: str, options: Options) -> list[Row]:
    return list(importlib.import_module(f"benchmarks.reliability.{part}").rows(options))


def line(row: Row) -> str:
    return f"| {row.part} | {row.name} | {row.attempts:,} | {row.failures:,} | {row.note} |"


def write(path: Path, rows: Sequence[Row], about: str) -> None:
    """Put the table between the marks of a document."""
    begin, end = "<!-- reliability: begin -->", "<!-- reliability: end -->"
    table = ["| part | class | attempts | failures | |", "|---|---|---:|---:|---|", *map(line, rows)]
    before, _, rest = path.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{about}\n\n" + "\n".join(table) + f"\n{end}{after}", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
