"""Two runs of the benchmark side by side: what became faster or slower against the same contenders.

    make bench-compare                                       a new run against the committed results
    python -m benchmarks.changes OLD.json NEW.json

Compared are ratios (times faster than a contender, which ran interleaved on the same machine), so that two machines can
be compared; tokens must not change by themselves.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import OURS, geometric_mean, speedups

Cell = Mapping[str, Any]


def pairs(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[Cell, Cell]]:
    """The cells of one size, workload and number of questions that both have."""
    known = {_key(cell): cell for cell in old["cells"]}
    return [(known[_key(cell)], cell) for cell in new["cells"] if _key(cell) in known]


def _key(cell: Cell) -> tuple[Any, ...]:
    return cell["size"], cell["workload"], cell["questions"]


def table(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Markdown: a line for each size, workload and contender; bold where the ranges of the repeats do not meet."""
    yield "| size | workload | over | before | now | change |"
    yield "|---|---|---|---|---|---|"
    changes: dict[str, list[float]] = {}
    for before, now in pairs(old, new):
        for name in now["runs"]:
            if name == OURS or name not in before["runs"]:
                continue
            then, today = speedups(before, name, old["clock"]), speedups(now, name, new["clock"])
            change = float(np.median(today) / np.median(then))
            changes.setdefault(name, []).append(change)
            apart = min(today) > max(then) or max(today) < min(then)
            told = f"**{change - 1:+.0%}**" if apart else f"{change - 1:+.0%}"
            yield f"| {now['size']} | {now['workload']} | {name} | {_spread(then)} | {_spread(today)} | {told} |"
    for name, found in changes.items():
        yield f"| all | geometric mean of {len(found)} | {name} | | | {geometric_mean(found) - 1:+.0%} |"


def tokens(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What computes other numbers of tokens than before, a sentence each."""
    found = []
    for before, now in pairs(old, new):
        for name in now["runs"].keys() & before["runs"].keys():
            then, today = (int(np.median([run["tokens"] for run in cell["runs"][name]])) for cell in (before, now))
            if then != today:
                found.append(f"{now['size']}, {now['workload']}: {name} computes {today:,} tokens, not {then:,}.")
    return sorted(found)


def _spread(ratios: Sequence[float]) -> str:
    return f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args(arguments)
    old, new = (json.loads(path.read_text("utf-8")) for path in (given.old, given.new))
    for name, facts in (("before", old), ("now", new)):
        print(f"{name}: {facts['machine']['processor']}, load {facts['machine'].get('load', 'not recorded')}")
    print("\n".join([*table(old, new), "", *tokens(old, new)]))


if __name__ == "__main__":
    main()
