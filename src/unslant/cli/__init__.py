"""The command line: parse, call a study, print, write."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

import unslant
from unslant.cli import debias, questions, report, runs, train
from unslant.errors import UnslantError
from unslant.studies import commands as study
from unslant.studies.audit import command as audit

app = typer.Typer(
    name="unslant",
    help="How much of a multiple-choice score is option order, label preference or luck.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
audit.register(app)
app.add_typer(study.group)
questions.register(app)
runs.register(app)
report.register(app)
debias.register(app)
train.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unslant {unslant.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: errors the user can mend become one line and exit code 2."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    try:
        app()
    except UnslantError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)
