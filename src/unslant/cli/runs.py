"""``unslant runs ...``: manage recorded runs."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

from unslant.errors import InputError
from unslant.store import Run, Store
from unslant.studies import options as o
from unslant.studies.commands import register

RunId = Annotated[str, Parameter(help="Id of the run or its first characters; see unslant runs list.")]


def list_(*, store: o.Store = None) -> None:
    """List runs, latest first.

    Examples:
      unslant runs list
    """
    from rich.console import Console
    from rich.table import Table

    with Store(store, read_only=True) as opened:
        runs = opened.runs.all()
    if not runs:
        print("no runs yet")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "status", "prompts", "model", "questions", "last active", "command"):
        table.add_column(column, no_wrap=column != "command", justify="right" if column == "prompts" else "left")
    for run in runs:
        cells = (run.id, run.status, _prompts(run), run.model, run.questions, _when(run.updated))
        table.add_row(*cells, shlex.join(run.command))
    console = Console()
    console.print(table) if console.is_terminal else Console(width=250).print(table)


def show(run: RunId, /, *, store: o.Store = None) -> None:
    """Show everything recorded about a run.

    Examples:
      unslant runs show 3f9c
    """

    with Store(store, read_only=True) as opened:
        found = opened.runs.get(run)
    rows = [
        ("run", found.id),
        ("status", found.status + (f": {found.message}" if found.message else "")),
        ("prompts", _prompts(found)),
        ("command", f"unslant {shlex.join(found.command)}"),
        ("folder", found.folder),
        ("model", found.model),
        ("questions", f"{found.questions} ({found.questions_digest})" if found.questions else ""),
        ("started", _when(found.started)),
        ("last active", f"{_when(found.updated)}, {found.where}"),
    ]
    for identity in found.models:
        rows += [(f"model's {key}", value) for key, value in identity.items() if value]
    for name, value in rows:
        print(f"{name:<18} {value}")


def resume(run: RunId, /, *, store: o.Store = None) -> None:
    """Repeat a recorded command in its folder, without scoring stored prompts again.

    Examples:
      unslant runs resume 3f9c
    """
    found = _found(run, store)
    if found.status == "running":
        _refuse(found)
    _repeat(found)


def take_over(run: RunId, /, *, store: o.Store = None) -> None:
    """Resume a run that is listed as running, when its process is gone or out of reach.

    If that process still runs, nothing breaks: both score, and each uses what the other has stored.

    Examples:
      unslant runs take-over 3f9c
    """
    _repeat(_found(run, store))


def _found(run: str, store: Path | None) -> Run:
    with Store(store, read_only=True) as opened:
        return opened.runs.get(run)


def _refuse(run: Run) -> NoReturn:
    ago = max(0.0, time.time() - run.updated)
    raise InputError(
        f"run {run.id} is running ({run.where}, last heard of {ago:.0f} s ago); stop it first, or, if that process is "
        f"gone, take it over with: unslant runs take-over {run.id}"
    )


def _repeat(run: Run) -> None:
    if run.status == "damaged":
        raise InputError(f"run {run.id}: its record is damaged; mend that first with: {run.message}")
    try:
        os.chdir(run.folder)
    except OSError as error:
        problem = f"the folder of run {run.id} cannot be entered ({error.strerror})"
        raise InputError.at(run.folder, problem) from None
    from unslant.cli import repeat

    repeat(run.command)


def remove(
    *runs: Annotated[str, Parameter(help="Ids of runs, or their first characters.")],
    everything: Annotated[bool, Parameter(name="--all", help="All runs, and scores stored from Python.")] = False,
    store: o.Store = None,
) -> None:
    """Remove runs, and every score that no other run uses.

    Examples:
      unslant runs remove 3f9c 81aa
      unslant runs remove --all
    """

    if bool(runs) == everything:
        raise InputError("name the runs to remove (see unslant runs list), or give --all")
    with Store(store, read_only=True):
        pass  # fails unless the store exists
    with Store(store) as opened:
        found = {run.id: run for run in map(opened.runs.get, runs)}
        for run in opened.runs.all() if everything else found.values():
            if run.status == "running":
                _refuse(run)
        if everything:
            opened.runs.clear()
        for run in found.values():
            opened.runs.remove(run)
        opened.runs.shrink()


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
    from unslant.files import write_atomically
    from unslant.studies.outputs import check_file

    check_file(responses)
    with Store(store, read_only=True) as opened:
        found = opened.runs.responses(opened.runs.get(run))
    write_atomically(responses, found)


def repair(*, store: o.Store = None) -> None:
    """Drop what is damaged in the store, and keep the rest.

    Running a command again then asks for what was dropped, and nothing else.

    Examples:
      unslant runs repair
    """
    from unslant.store import Store

    with Store(store, read_only=True):
        pass  # there is one
    with Store(store) as opened:
        found = opened.repair()
    print(f"dropped as damaged: {found.scores:,} scores, {found.replies:,} replies, {found.calls:,} records of calls")
    for run in found.runs:
        print(f"ask for them again with: unslant runs resume {run}")


def _prompts(run: Run) -> str:
    return f"{run.done:,} of {run.total:,}"


def _when(seconds: float) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"


group = App(name="runs", help="List, show, resume, take over, remove, export or repair recorded runs.")
register(
    group,
    {
        name.rstrip("_").replace("_", "-"): f"unslant.cli.runs:{name}"
        for name in ("list_", "show", "resume", "take_over", "remove", "export", "repair")
    },
)
