"""Damaged files read in a process of their own, which may crash, hang or swell without ending the attack."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.reliability import ROOT, Options, Row
from unslant.errors import UnslantError

SECONDS = 20
"""Processor time one file may take."""
MEMORY = 3 << 30
"""Bytes a process may grow to."""


@dataclass(frozen=True)
class Reader:
    """One reader under attack.

    Attributes:
        name: class of the table.
        case: draws a damaged file: name and content.
        read: reads it and uses what it gives; raises AssertionError where that is wrong in silence.
        names_file: whether every error must name the file.
        share: of the cases; what takes long to make is tried less often.
    """

    name: str
    case: Callable[[random.Random], tuple[str, bytes]]
    read: Callable[[Path], object]
    names_file: bool = True
    share: float = 1.0


class Slow(BaseException):
    """A file took longer than it may."""


def attack(part: str, reader: Reader, options: Options) -> Row:
    """Try damaged files on a reader, its share of ``options.cases``, each drawn from the seed and its number."""
    row = Row(part, reader.name, max(1, round(options.cases * reader.share)))
    start, refused, peak, reasons = 0, 0, 0, Counter[str]()
    while start < row.attempts:
        command = [sys.executable, "-m", "benchmarks.reliability.fuzz", part, reader.name, str(options.seed)]
        words = [*command, str(start), str(row.attempts)]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                told = json.loads(line)
                start, peak = told["case"] + 1, max(peak, told["peak"])
                refused += told["outcome"] == "refused"
                if told["outcome"] == "failed":
                    where = told["where"].split(": ")[0]
                    reasons[where] += 1
                    row.failures += 1
                    if reasons[where] == 1 and len(row.examples) < 20:
                        row.examples.append(f"case {told['case']}: {told['where']}")
        if start < row.attempts:  # it died over this one
            row.fail(f"case {start}: the process ended with {child.returncode}")
            start += 1
    row.note = f"{refused:,} refused, {row.attempts - refused - row.failures:,} read, {peak >> 20} MiB at most"
    row.examples += [f"{count} times {where}" for where, count in reasons.most_common(10) if count > 1]
    return row


def one(reader: Reader, seed: int, case: int, folder: Path) -> tuple[str, str]:
    """Outcome (``read``, ``refused`` or ``failed``) of one case, and where it failed."""
    rng = random.Random(f"{seed}/{reader.name}/{case}")
    name, content = reader.case(rng)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    signal.signal(signal.SIGPROF, _slow)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            reader.read(path)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except UnslantError as error:
        told = str(error)
        if not told.strip() or "\n" in told or len(told) > 20_000:
            return "failed", f"unreadable message of more than {len(told) // 10_000}0,000 characters"
        if reader.names_file and path.stem.split(".")[0] not in told:
            return "failed", f"message without place: {told[:200]!r}"
        return "refused", ""
    except (Exception, Slow) as error:
        if "UNSLANT_TRACE" in os.environ:
            traceback.print_exc()
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "unslant" in f.filename] or [None]
        last = frames[-1]
        where = f"{Path(last.filename).name}:{last.lineno} {last.name}" if last else "nowhere"
        return "failed", f"{type(error).__name__} at {where}: {str(error)[:160]!r}"
    finally:
        path.unlink()
    return "read", ""


def _slow(*_: object) -> None:
    raise Slow(f"more than {SECONDS} s")


def main() -> None:
    """Run cases FROM to TO of a reader; a line of JSON a case."""
    import importlib

    part, name, seed, start, end = sys.argv[1:]
    reader = importlib.import_module(f"benchmarks.reliability.{part}").READERS[name]
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in range(int(start), int(end)):
            outcome, where = one(reader, int(seed), case, Path(folder))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(json.dumps({"case": case, "outcome": outcome, "where": where, "peak": peak}), flush=True)


if __name__ == "__main__":
    main()
