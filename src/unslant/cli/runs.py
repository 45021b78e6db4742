"""``unslant runs ...``: manage recorded runs."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

import unslant.experiment as o
from unslant.cli import call
from unslant.cli.commands import HELP_OF, register
from unslant.cli.sources import repeat
from unslant.errors import InputError, one_line, printable
from unslant.files import dump_json
from unslant.reach import Reach, reason_to_type
from unslant.store import RecordedRun, Store, default_path
from unslant.store.tables import JOURNALS, sibling
from unslant.writing import write_atomically

RunId = Annotated[str, Parameter(help="Id of the run or its first characters; see unslant runs list.")]


def list_(
    *,
    json: Annotated[bool, Parameter(name="--json", help="Print everything recorded, as JSON.")] = False,
    store: o.Store = None,
) -> None:
    """List runs, latest first.

    Examples:
      unslant runs list
      unslant runs list --json
    """
    from rich.console import Console
    from rich.text import Text

    with Store(store, read_only=True) as opened:
        runs = opened.runs.all()
    if json:
        now = time.time()
        print(dump_json([asdict(run) | {"age": now - run.updated} for run in runs], ascii=True), end="")
        return
    if not runs:
        print("no runs yet")
        return
    rows = [("run", "status", "prompts", "age", "score", "command")]
    rows += [
        (run.id, run.status, _prompts(run), _age(run.updated), one_line(run.score), one_line(shlex.join(run.command)))
        for run in runs
    ]
    widths = [max(Text(cell).cell_len for cell in column) for column in zip(*rows, strict=True)]
    left = max(2, Console().width - sum(widths[:4]) - 2 * (len(widths) - 1))
    widths[4] = min(widths[4], max(left // 2, left - widths[5]))
    widths[5] = left - widths[4]
    for row in rows:
        cells = [Text(cell) for cell in row]
        for cell, width in zip(cells, widths, strict=True):
            cell.truncate(width, overflow="ellipsis", pad=True)
        print("  ".join(cell.plain for cell in cells).rstrip())


def show(run: RunId, /, *, store: o.Store = None) -> None:
    """Show everything recorded about a run.

    Examples:
      unslant runs show 3f9c
    """
    record = _recorded(run, store)
    rows = [
        ("run", record.id),
        ("status", record.status + (f": {record.message}" if record.message else "")),
        ("prompts", _prompts(record)),
        ("score", record.score),
        ("command", f"unslant {shlex.join(record.command)}"),
        ("folder", record.folder),
        ("model", record.model),
        ("questions", f"{record.questions} ({record.questions_digest})" if record.questions else ""),
        ("started", _when(record.started)),
        ("last active", f"{_when(record.updated)}, {record.where}"),
    ]
    for identity in record.models:
        rows += [(f"model's {key}", value) for key, value in identity.items() if value]
    for name, value in rows:
        print(printable(f"{name:<18} {value}"))


def resume(run: RunId, /, *, store: o.Store = None, trust: o.Trust = False) -> None:
    """Resume a run that was stopped; stored prompts are not scored again.

    A store named with --store may come from someone else, so its commands are checked as unslant rerun checks them.

    Examples:
      unslant runs resume 3f9c
    """
    record = _recorded(run, store)
    if record.status == "running":
        _refuse(record, store)
    _repeat(record, store, trust)


def take_over(run: RunId, /, *, store: o.Store = None, trust: o.Trust = False) -> None:
    """Resume a run that is listed as running but whose process is gone.

    If that process still runs, nothing breaks: both score, and each uses what the other has stored.

    Examples:
      unslant runs take-over 3f9c
    """
    _repeat(_recorded(run, store), store, trust)


def _recorded(run: str, store: Path | None) -> RecordedRun:
    with Store(store, read_only=True) as opened:
        return opened.runs.get(run)


def _refuse(run: RecordedRun, store: Path | None) -> NoReturn:
    ago = max(0.0, time.time() - run.updated)
    place = f" --store {shlex.quote(str(store))}" if store else ""
    raise InputError(
        f"run {run.id} is running ({run.where}, last heartbeat {ago:.0f} s ago); stop it first, or, if that process "
        f"is gone, take it over with: unslant runs take-over {run.id}{place}"
    )


def _repeat(run: RecordedRun, store: Path | None, trust: bool) -> None:
    if trust and store is None:
        raise InputError("--trust applies only to a store named with --store; leave it out")
    if run.status == "damaged":
        raise InputError(f"run {run.id}: its record is damaged; repair that first with: {run.message}")
    if store is not None and not trust and reason_to_type(Reach.PLACE, run.folder):
        raise InputError.at(store, f"run {run.id} was started in {run.folder}: go there, or add --trust")
    try:
        os.chdir(run.folder)
    except OSError as error:
        problem = f"the folder of run {run.id} cannot be entered ({error.strerror})"
        raise InputError.at(run.folder, problem) from None
    if store is None:
        print(printable(f"unslant {shlex.join(run.command)}"), file=sys.stderr)
        call(run.command, defaults=False)
    else:
        repeat(run.command, store, f"unslant {shlex.join(run.command)}", trust, writes=True)


def delete(
    *runs: Annotated[str, Parameter(help="Ids of runs, or their first characters.")],
    older_than: Annotated[str, Parameter(metavar="AGE", help="Runs inactive for longer than this: 12h, 30d, 8w.")] = "",
    everything: Annotated[bool, Parameter(name="--all", help="All runs, and scores stored from Python.")] = False,
    store: o.Store = None,
) -> None:
    """Delete runs, with the scores and replies that no other run uses.

    Naming a running one is an error; --older-than leaves it alone.

    Examples:
      unslant runs delete 3f9c 81aa
      unslant runs delete --older-than 30d
    """
    from unslant.reports.numbers import count

    if (bool(runs), bool(older_than), everything).count(True) != 1:
        raise InputError("name the runs to delete (see unslant runs list), or give either --older-than AGE or --all")
    before = time.time() - _seconds(older_than) if older_than else 0.0
    with Store(store, read_only=True) as opened:  # fails unless there is one
        path = opened.path
    size = _bytes(path)
    with Store(store) as opened:
        # by id: two beginnings of one id would count the run twice
        named = {run.id: run for run in map(opened.runs.get, runs)}
        selection = opened.runs.all() if everything else list(named.values())
        for run in selection:
            if run.status == "running":
                _refuse(run, store)
        if older_than:
            selection = [run for run in opened.runs.all() if run.updated < before and run.status != "running"]
        scores = opened.runs.clear() if everything else sum(map(opened.runs.remove, selection))
        opened.runs.shrink()
    freed = max(0, size - _bytes(path)) / 1e6
    print(f"deleted: {count(len(selection), 'run')}, {scores:,} scores and replies; {freed:,.1f} MB freed")


def _seconds(age: str) -> float:
    parts = re.fullmatch(r"(\d+)([hdw])", age)
    if not parts:
        raise InputError(f"--older-than {age!r}: give hours, days or weeks, such as 12h, 30d or 8w")
    return int(parts[1]) * {"h": 3600.0, "d": 86400.0, "w": 604800.0}[parts[2]]


def _bytes(path: Path) -> int:
    """Size of a store with its log."""
    files = (path, *(sibling(path, end) for end in JOURNALS))
    return sum(file.stat().st_size for file in files if os.path.exists(file))


def export(
    run: RunId,
    /,
    *,
    responses: Annotated[Path, Parameter(help="Write the responses to this Parquet file.")],
    store: o.Store = None,
) -> None:
    """Write the responses of a finished run to a Parquet file.

    Examples:
      unslant runs export 3f9c --responses run.parquet
    """
    from unslant.experiment.outputs import check_file

    check_file(responses)
    with Store(store, read_only=True) as opened:
        write_atomically(responses, opened.runs.responses(opened.runs.get(run)))


def repair(*, store: o.Store = None) -> None:
    """Check the store, and save what is intact if it is damaged.

    Everything intact goes into a new file, and the damaged file is kept. The same command, run again, asks only for
    what was lost.

    Examples:
      unslant runs repair
    """
    from unslant.store.repair import repair as repaired

    path = Path(os.path.expanduser(store or default_path()))
    result = repaired(path)
    if not result.damage:
        print(f"nothing is damaged in {path}")
        return
    print(f"damaged: {one_line(result.damage)}")
    saved = result.saved
    print(f"kept: {saved['scores']:,} scores, {saved['replies']:,} replies, {saved['runs']:,} runs")
    print(f"lost: {result.scores:,} scores, {result.replies:,} replies, {result.calls:,} records of calls")
    print(f"the damaged file is now {result.kept}")
    for run in result.forgotten:
        print(f"run {run} is no longer listed; type its command again")
    for run in result.runs:
        print(f"ask for what was lost with: unslant runs resume {run}")


def _prompts(run: RecordedRun) -> str:
    return f"{run.done:,} of {run.total:,}" if run.done < run.total else f"{run.total:,}"


def _age(seconds: float) -> str:
    ago = max(0.0, time.time() - seconds)
    for unit, most in (("s", 60.0), ("min", 60.0), ("h", 24.0)):
        if ago < most:
            return f"{ago:.0f} {unit}"
        ago /= most
    return f"{ago:.0f} d"


def _when(seconds: float) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"


group = App(name="runs", help_epilogue=HELP_OF.format("runs "))
register(
    group,
    {
        name.rstrip("_").replace("_", "-"): f"unslant.cli.runs:{name}"
        for name in ("list_", "show", "resume", "take_over", "delete", "export", "repair")
    },
)
