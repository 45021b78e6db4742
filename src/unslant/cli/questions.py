"""``unslant questions build ...``: make question sets out of others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unslant.cli.options import Quiet, Seed, check_writable

group = typer.Typer(name="questions", help="Make question sets.", no_args_is_help=True)
_build = typer.Typer(name="build", help="Build a question set out of its sources.", no_args_is_help=True)
group.add_typer(_build)


def register(app: typer.Typer) -> None:
    """Add ``questions`` to the command line."""
    app.add_typer(group)


@_build.command("instruction-boundary")
def instruction_boundary(
    out: Annotated[Path, typer.Option(help="File to write, JSON lines (.gz: compressed).")],
    source: Annotated[
        list[str] | None,
        typer.Option(help="Take one of the sources from your own file, as NAME=PATH; may be given several times."),
    ] = None,
    only: Annotated[str | None, typer.Option(help="Use only these sources, separated by commas.")] = None,
    layout: Annotated[
        str, typer.Option(help="level: the layout does not betray the form; published: as the authors' file has it.")
    ] = "level",
    scale: Annotated[float, typer.Option(help="Share of the full numbers to draw.")] = 1.0,
    seed: Seed = 42,
    quiet: Quiet = False,
) -> None:
    """The mixed set of the instruction-boundary study: one, several or no option right; true, false or unknown.

    Sources: fld, folio, scienceqa, mmlu, truthfulqa, commonsenseqa, multirc, mmlu-pro.
    """
    from unslant.cli.options import parse_fields
    from unslant.studies.instruction_boundary.question_sources import SOURCES, build

    check_writable(out)
    names = [name.strip() for name in only.split(",")] if only else list(SOURCES)
    made = build(parse_fields(source), seed=seed, layout=layout, scale=scale, only=names)
    made.write(out)
    if not quiet:
        for line in made.lines():
            typer.echo(line)
        typer.echo(f"written to {out}")
