"""Outputs under attack: killed while writing, no room on the disk, names that are no files."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.reliability import Options, Row
from unslant.errors import UnslantError

KILLS = 60
MOMENTS = 10_000
"""How often to look whether a file is being written before a process is killed all the same."""
SCRATCH = ".unslant-*"
FILES = ("numbers.json", "report.html", "responses.parquet", "questions.jsonl", "tables/by.csv")


def rows(options: Options) -> Iterator[Row]:
    parts: tuple[tuple[str, Callable[[Options], Row]], ...] = (
        ("kills while writing", kills), ("full disk", full_disk), ("names that are no files", odd_names),
    )  # fmt: skip
    for name, run in parts:
        if options.wants("writers", name):
            yield run(options)


def _whole(folder: Path, name: str) -> bool:
    """Whether a file ends as its kind does."""
    content = (folder / name).read_bytes()
    ends = {".json": b"}\n", ".html": b"</html>", ".parquet": b"PAR1", ".jsonl": b"}\n", ".csv": b"\n"}
    return content.rstrip(b"\n").endswith(ends[Path(name).suffix].rstrip(b"\n")) and len(content) > 100


def kills(options: Options) -> Row:
    """A process that writes five kinds of output over and over, killed while one of them is written."""
    row = Row("writers", "kills while writing", KILLS * len(FILES))
    rng, hits = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write = _outputs(folder)
        write()
        before = {file: (folder / file).stat().st_size for file in FILES}
        for kill in range(KILLS):
            child = os.fork()
            if child == 0:
                while True:
                    write()
            time.sleep(rng.uniform(0.01, 0.3))
            for _ in range(MOMENTS):  # until a file is being written
                if any(folder.rglob(SCRATCH)):
                    break
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            hits += any(folder.rglob(SCRATCH))  # the next process deletes it
            for file, size in before.items():
                if not _whole(folder, file) or (folder / file).stat().st_size != size:
                    row.fail(f"kill {kill}: {file}")
        if 2 * hits < KILLS:
            row.fail(f"{hits} of {KILLS} kills hit a file being written: too few to say anything")
        row.note = f"{KILLS} kills, {len(FILES)} files each; {hits} of them hit a file being written"
    return row


def _outputs(folder: Path) -> Callable[[], None]:
    """Writes one of everything to the folder."""
    from benchmarks.reliability.tables import Guesser, questions
    from unslant import audit
    from unslant.questions import write_questions
    from unslant.reports import Column, Table
    from unslant.reports.export import save_tables
    from unslant.writing import write_atomically

    asked = questions()
    result = audit(Guesser(), asked, orders="cyclic")
    result.to_html(folder / "report.html")
    page = (folder / "report.html").read_text("utf-8")
    table = Table("by", "Rows", (Column("x"),), (("y",),) * 2000)

    def write() -> None:
        result.to_json(folder / "numbers.json")
        write_atomically(folder / "report.html", page)
        result.to_parquet(folder / "responses.parquet")
        write_questions(asked * 500, folder / "questions.jsonl")
        save_tables([table], folder / "tables")

    return write


def full_disk(options: Options) -> Row:
    """Every size of file at which a disk may be full; what stood there must stay, and the error be one line."""
    row = Row("writers", "full disk", 30)
    code = "import sys; from unslant.writing import write_atomically; write_atomically(sys.argv[1], b'new' * 10_000)"
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "out.json")
        path.write_text("old")
        for attempt in range(row.attempts):
            limit = attempt * 1000

            def small(limit: int = limit) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

            found = subprocess.run(
                [sys.executable, "-c", code, str(path)], preexec_fn=small, capture_output=True, text=True, check=False
            )
            told = "OutputError" in found.stderr and str(path) in found.stderr.splitlines()[-1]
            if path.read_text() != "old" or not told or os.listdir(name) != ["out.json"]:
                row.fail(f"limit {limit}: {found.stderr[-200:]!r}")
    return row


def odd_names(options: Options) -> Row:
    """Devices, folders, pipes, dangling links, names that no file can have."""
    from unslant.writing import write_atomically

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.mkfifo(folder / "pipe")
        (folder / "dangling").symlink_to(folder / "nothing")
        (folder / "loop").symlink_to(folder / "loop")
        (folder / "folder").mkdir()
        odd = [folder / "pipe", folder / "dangling", folder / "loop", folder / "folder", folder / ("x" * 300)]
        odd += [folder / "a\0b", folder / "none" / "x", folder / "dangling" / "x", Path("/dev/full"), Path("/dev/null")]
        odd += [Path("/proc/self/status"), Path("/proc/x"), Path("/sys/x"), Path(), Path("/"), Path("y" * 9000)]
        row = Row("writers", "names that are no files", len(odd))
        for path in odd:
            try:
                write_atomically(path, "x")
                row.fail(f"{path}: written")
            except UnslantError as error:
                if "\n" in str(error):
                    row.fail(f"{path}: {error}")
            except Exception as error:
                row.fail(f"{path}: {type(error).__name__}")
        if not (folder / "pipe").is_fifo() or not (folder / "dangling").is_symlink():
            row.fail("a name was replaced")
    return row
