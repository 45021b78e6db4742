"""``unslant runs ...``: what was asked, how far it came, and going on with it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unslant.cli import options as o

if TYPE_CHECKING:
    from unslant.store import Run

group = typer.Typer(name="runs", help="List, show, resume, remove or export recorded runs.", no_args_is_help=True)

RunId = Annotated[str, typer.Argument(help="The run's id, or how it begins; see unslant runs list.")]


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.add_typer(group)


@group.command("list")
def list_(store: o.StorePath = None) -> None:
    """List the runs, the latest first."""
    from rich.console import Console
    from rich.table import Table

    from unslant.store import Store

    with Store(store, read_only=True) as opened:
        runs = opened.runs.all()
    if not runs:
        typer.echo("no runs yet")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "status", "prompts", "model", "questions", "last active", "command"):
        table.add_column(column, no_wrap=column != "command", justify="right" if column == "prompts" else "left")
    for run in runs:
        prompts = _prompts(run)
        table.add_row(
            run.id, run.status, prompts, run.model, run.questions, _when(run.updated), shlex.join(run.command)
        )
    console = Console()
    console.print(table) if console.is_terminal else Console(width=250).print(table)


@group.command()
def show(run: RunId, store: o.StorePath = None) -> None:
    """Show everything that is recorded of a run."""
    from unslant.store import Store

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
        ("last active", _when(found.updated)),
    ]
    for identity in found.models:
        rows += [(f"model's {key}", value) for key, value in identity.items() if value]
    for name, value in rows:
        typer.echo(f"{name:<18} {value}")


@group.command()
def resume(run: RunId, store: o.StorePath = None) -> None:
    """Run the recorded command again, in its folder; what is scored already is not scored again."""
    from unslant.cli import app
    from unslant.errors import InputError
    from unslant.store import Store

    with Store(store, read_only=True) as opened:
        found = opened.runs.get(run)
    if found.status == "running":
        raise InputError(f"run {found.id} is running")
    try:
        os.chdir(found.folder)
    except OSError as error:
        raise InputError.at(
            found.folder, f"the folder of run {found.id} cannot be entered ({error.strerror})"
        ) from None
    typer.echo(f"unslant {shlex.join(found.command)}", err=True)
    sys.argv = [sys.argv[0], *found.command]
    app(list(found.command), standalone_mode=False)


@group.command()
def remove(
    runs: Annotated[list[str] | None, typer.Argument(help="Ids of runs, or how they begin.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every run, and scores kept from Python without one.")
    ] = False,
    store: o.StorePath = None,
) -> None:
    """Remove runs, with every score that no other run has asked for."""
    from unslant.errors import InputError
    from unslant.store import Store

    if bool(runs) == everything:
        raise InputError("name the runs to remove (see unslant runs list), or give --all")
    with Store(store, read_only=True):
        pass  # there is one: nothing is made only to remove from it
    with Store(store) as opened:
        found = {run.id: run for run in map(opened.runs.get, runs or [])}
        busy = [run.id for run in (opened.runs.all() if everything else found.values()) if run.status == "running"]
        if busy:
            raise InputError(f"run {busy[0]} is running: stop it first")
        if everything:
            opened.runs.clear()
        for run in found.values():
            opened.runs.remove(run)
        opened.runs.shrink()


@group.command()
def export(
    run: RunId,
    responses: Annotated[Path, typer.Option("--responses", help="Write the table of responses to this Parquet file.")],
    store: o.StorePath = None,
) -> None:
    """Write the responses of a finished run to a Parquet file, without the model."""
    from unslant.store import Store

    o.check_writable(responses)
    with Store(store, read_only=True) as opened:
        found = opened.runs.responses(opened.runs.get(run))
    try:
        responses.write_bytes(found)
    except OSError as error:
        from unslant.errors import InputError

        raise InputError.at(responses, f"cannot be written ({error.strerror})") from None


def _prompts(run: Run) -> str:
    return f"{run.done:,} of {run.total:,}"


def _when(seconds: float) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"
