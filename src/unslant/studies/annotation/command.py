"""``unslant study unbiased-compare`` and the two annotation commands: around the unbiased evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unslant.cli import options as o


def register(group: typer.Typer) -> None:
    """Add the commands to ``group``."""
    group.command("unbiased-compare")(compare)
    group.command("annotation-sheet")(annotation_sheet)
    group.command("annotation-agreement")(annotation_agreement)


def compare(
    responses: Annotated[
        list[Path], typer.Argument(help="Files that `study unbiased --responses` wrote, one a model.")
    ],
    ranking: Annotated[
        Path | None, typer.Option("--ranking", help="A file of model and score, to see which score agrees with it.")
    ] = None,
    json: o.JsonOut = None,
    html: o.HtmlOut = None,
    quiet: o.Quiet = False,
) -> None:
    """Set the models of several runs side by side: vanilla, ours, drop, and agreement with another ranking."""
    from unslant.studies.unbiased.comparison import compare_models, load_ranking
    from unslant.studies.unbiased.result import UnbiasedResult

    o.check_writable(json, html)
    external = load_ranking(ranking) if ranking else None
    result = compare_models([UnbiasedResult.from_parquet(path) for path in responses], external)
    if json:
        result.to_json(json)
    if html:
        result.to_html(html)
    if not quiet:
        o.show(result.summary)


def annotation_sheet(
    questions: o.Questions = o.DEFAULT_QUESTIONS,
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV file to write.")] = Path("annotation.csv"),
    n: Annotated[int, typer.Option("--n", min=1, help="Items.")] = 300,
    maths: Annotated[bool, typer.Option("--maths", help="The questions are open, their answers numbers.")] = False,
    template: o.Template = "plain",
    seed: o.Seed = 0,
    field: o.Fields = None,
    skip_bad: o.SkipBad = False,
) -> None:
    """Write composed questions with their expected answers to a sheet, for people to say whether these are right."""
    from unslant.questions import load_math, load_questions
    from unslant.studies.annotation.study import sheet, write_sheet

    o.check_writable(out)
    load = load_math if maths else load_questions
    found = load(questions, fields=o.parse_fields(field), on_bad="skip" if skip_bad else "error")
    rows = sheet(found, n, template=template, seed=seed)
    write_sheet(rows, out)
    typer.echo(f"{len(rows):,} items written to {out}: fill in the column 'right' with yes or no, one copy a person")


def annotation_agreement(
    sheets: Annotated[list[Path], typer.Argument(help="Filled-in sheets, one a person.")],
    json: o.JsonOut = None,
) -> None:
    """How often people confirm the expected answers, and how far they agree with each other."""
    import json as writer

    from unslant.studies.annotation.panels import summary, to_dict
    from unslant.studies.annotation.study import read_sheets

    o.check_writable(json)
    found = read_sheets(sheets)
    if json:
        json.write_text(writer.dumps(to_dict(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    typer.echo(summary(found))
