"""``unslant study annotation-sheet`` and ``annotation-agreement``: people check composed questions (P4)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unslant.experiment import options as o
from unslant.flags import Flag


def annotation_sheet(
    questions: o.Questions = o.EMBEDDED,
    /,
    *,
    out: Annotated[Path, Flag(help="CSV file to write.")] = Path("annotation.csv"),
    items: Annotated[int, Flag(help="Number of items.")] = 300,
    maths: Annotated[bool, Flag(help="Questions are open maths questions with numbers as answers.")] = False,
    settings: o.TemplateOptions = o.TemplateOptions(),
    quiet: o.Quiet = False,
) -> None:
    """Write composed questions and their expected answers to a sheet for people to check.

    Examples:
      unslant study annotation-sheet questions.jsonl --items 300 --out sheet.csv
    """
    from unslant.experiment.outputs import check_file
    from unslant.reports.numbers import count
    from unslant.studies.unbiased.annotation.study import sheet, write_sheet

    check_file(out)
    found = settings.sampled(settings.load(questions, maths))
    rows = sheet(found, items, template=settings.template, seed=settings.seed)
    write_sheet(rows, out)
    if not quiet:
        print(
            f"{count(len(rows), 'item')} written to {out}: fill in the column 'right' with yes or no, one copy a person"
        )


def annotation_agreement(
    *sheets: Annotated[Path, Flag(help="Filled-in sheets, one a person.")],
    outputs: o.Reports = o.ReportOptions(),
) -> None:
    """How often people confirm the expected answers, and how far they agree with each other.

    Examples:
      unslant study annotation-agreement ann.csv bob.csv --json agreement.json
    """
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.studies.unbiased.annotation.study import read_sheets

    check_outputs(outputs)
    write_outputs(read_sheets(sheets), outputs)
