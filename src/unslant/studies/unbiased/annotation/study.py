"""Annotation sheets, on which people say whether the expected answers of composed questions are right."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from unslant.asking import Asked
from unslant.checked import Cell, TableRow
from unslant.errors import InputError
from unslant.experiment.options import LoadOptions
from unslant.presentations.interventions import BOAT
from unslant.prompts import load_template
from unslant.questions.formats import table_rows
from unslant.reports.escape import csv_text
from unslant.studies.unbiased.annotation.metrics import AnnotationAgreement, annotation_agreement
from unslant.studies.unbiased.plan import key_of, plan
from unslant.studies.unbiased.settings import UnbiasedSettings
from unslant.writing import write_atomically

COLUMNS = ("item", "question_id", "interventions", "shown", "expected", "right")


def sheet(questions: Any, n: int = 300, *, template: str = "plain", seed: int = 0) -> list[dict[str, str]]:
    """``n`` composed items at random, each with an empty column ``right`` to fill in with yes or no.

    Every question is composed once; each true/false item of a binary transformation counts as an item. The questions
    are anything that :func:`unslant.load_questions` takes, or maths questions.

    Raises:
        InputError: if ``n`` is less than 1, or no question can be composed.
    """
    if n < 1:
        raise InputError(f"{n} items: give 1 or more")
    layout = load_template(template)
    planned = plan(LoadOptions().load(questions), UnbiasedSettings(runs=1, shots=0, no_alone=True, seed=seed))
    asked = [(question, presentation) for question, presentation in planned.asked if presentation.kind == BOAT]
    chosen = sorted(range(len(asked)), key=lambda i: _rank(asked[i], seed))[:n]
    rows = []
    for question, presentation in (asked[i] for i in sorted(chosen)):
        codes = "+".join(presentation.interventions) or "none"
        shown = f"{presentation.instruction}\n\n{layout.render_question(presentation).strip()}"
        row = (key_of(question, presentation), question.id, codes, shown, ", ".join(presentation.right_labels), "")
        rows.append(dict(zip(COLUMNS, row, strict=True)))
    return rows


def _rank(asked: Asked, seed: int) -> bytes:
    question, presentation = asked
    key = key_of(question, presentation).removeprefix(f"{question.id}|")
    return hashlib.sha256(f"{seed}\x1fsheet\x1f{question.id}\x1f{key}".encode()).digest()


def write_sheet(rows: Sequence[dict[str, str]], path: str | Path) -> None:
    """Write the sheet as CSV; an apostrophe keeps spreadsheets from running a cell as a formula."""
    text = csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in rows))
    write_atomically(path, text.encode("utf-8-sig"))


def read_sheets(paths: Sequence[str | Path]) -> AnnotationAgreement:
    """Agreement figures of filled-in sheets, one for each annotator (named by its file), without empty verdicts.

    Raises:
        InputError: naming file and line, on a verdict that is neither yes nor no, an item given twice, or sheets
            that nobody has filled in.
    """
    verdicts: dict[str, dict[str, bool]] = {}
    interventions: dict[str, str] = {}
    for path in map(Path, paths):
        name = path.stem if path.stem not in verdicts else str(path)
        given = verdicts.setdefault(name, {})
        for place, row in table_rows(path, _Filled):
            if row.right is None:
                continue
            if row.item in given:
                raise InputError.at(place, f"{row.item!r} is given twice", field="item")
            given[row.item] = row.right
            interventions[row.item] = row.interventions or "none"
    if not any(verdicts.values()):
        raise InputError("no verdicts: fill in the column 'right' with yes or no")
    return annotation_agreement(verdicts, interventions)


def _verdict(value: object) -> object:
    said = str("" if value is None else value).strip().lower()
    return {"": None, "right": True, "1.0": True, "wrong": False, "0.0": False}.get(said, said)


class _Filled(TableRow):
    item: str
    right: Annotated[bool | None, BeforeValidator(_verdict), Field(description="yes or no")]
    question_id: Cell = ""
    interventions: Cell = ""
    shown: Cell = ""
    expected: Cell = ""
