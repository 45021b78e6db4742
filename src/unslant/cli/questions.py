"""Before a run: ``unslant plan``, and ``unslant questions``, which checks question files and builds sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

import unslant.experiment as o
from unslant.cli.commands import HELP_OF, register
from unslant.errors import InputError
from unslant.flags import Without, pairs
from unslant.reach import Reach
from unslant.studies.plan import PlanSettings


def plan(
    pilot: Annotated[
        Path | None, Parameter(help="Earlier audit, which may be small: its JSON or Parquet file.")
    ] = None,
    /,
    *,
    log: o.Logs = (),
    settings: PlanSettings = PlanSettings(),
    outputs: Annotated[o.Reports, Without("baseline")] = o.ReportOptions(),
) -> None:
    """Plan how many questions and tokens a run needs.

    Give --half-width, --difference or --available; if several, the most demanding decides. Without a pilot or --log,
    the plan assumes the most demanding case: a score of 0.5, and orders that never change an answer.

    Examples:
      unslant plan --half-width 0.03
      unslant plan pilot.json --difference 0.02 --price 0.15
    """
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.experiment.running import reading_logs
    from unslant.studies.plan.planning import plan as run

    check_outputs(outputs)
    read = [pilot] if pilot else log
    with reading_logs(read, outputs.quiet or not read):
        result = run(pilot, log=log, settings=settings)
    write_outputs(result, outputs)


def instruction_boundary(
    *,
    out: Annotated[Path, Parameter(help="JSONL file to write (.gz: compressed).")],
    source: Annotated[
        o.Pairs, Parameter(help="Read a source from your own file, as NAME=PATH; repeatable."), Reach.PLACE
    ] = (),  # type: ignore[assignment]
    only: Annotated[o.Names, Parameter(help="Use only these sources, separated by commas.")] = (),
    fields: Annotated[
        o.Pairs,
        Parameter(
            metavar="SOURCE.FIELD=COLUMN",
            help="Column that holds a field of a source, as in mmlu.question=prompt; repeatable.",
        ),
    ] = (),  # type: ignore[assignment]
    layout: Annotated[
        str, Parameter(help="level: the layout does not reveal the form; published: as in the authors' file.")
    ] = "level",
    scale: Annotated[float, Parameter(help="Share of the full set to draw.")] = 1.0,
    seed: Annotated[int, Parameter(help="Random seed; 42 as in the paper.")] = 42,
    quiet: o.Quiet = False,
) -> None:
    """Build the mixed set of the instruction-boundary study: one, several or no right option; true, false or unknown.

    Sources: fld, folio, scienceqa, mmlu, truthfulqa, commonsenseqa, multirc, mmlu-pro.

    Examples:
      unslant questions build instruction-boundary --out boundary.jsonl
      unslant questions build instruction-boundary --only mmlu --source mmlu=my.jsonl --out boundary.jsonl
    """
    from unslant.experiment.outputs import check_file
    from unslant.studies.instruction_boundary.question_sources import SOURCES, build

    check_file(out)
    columns: dict[str, dict[str, str]] = {}
    for name, column in pairs("--fields", fields).items():
        origin, dot, field = name.partition(".")
        if not dot:
            raise InputError(f"--fields {name}={column}: write it as SOURCE.FIELD=COLUMN, as in mmlu.question=prompt")
        columns.setdefault(origin, {})[field] = column
    paths, names = pairs("--source", source), list(only or SOURCES)
    mixed = build(paths, seed=seed, layout=layout, scale=scale, only=names, fields=columns)
    mixed.write(out)
    if not quiet:
        print(*mixed.lines(), f"written to {out}", sep="\n")


def check(
    questions: o.Questions,
    /,
    *,
    settings: o.FieldOptions = o.FieldOptions(),
    outputs: Annotated[o.Reports, Without("details", "baseline")] = o.ReportOptions(),
) -> None:
    """Show how a question file is read, column by column, and count every oddity.

    Oddities: bad records, empty or identical options, repeated questions, right options skewed over positions, pinned
    options, the longest option right too often, special tokens or HTML in texts, ... Finding some is not an error.

    Examples:
      unslant questions check questions.csv
      unslant questions check questions.xlsx --fields question=Frage --answer-base 1 --json check.json
    """
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.experiment.running import reading_logs
    from unslant.studies.question_check import check_questions

    check_outputs(outputs)
    with reading_logs([questions], outputs.quiet):
        result = check_questions(questions, **settings.reading)
    write_outputs(result, outputs)


group = App(name="questions", help_epilogue=HELP_OF.format("questions "))
register(group, {"check": "unslant.cli.questions:check"})
build = App(name="build", help="Build a question set from its sources.")
group.command(build)
register(build, {"instruction-boundary": "unslant.cli.questions:instruction_boundary"})
