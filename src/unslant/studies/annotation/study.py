"""An annotation sheet: people say whether the expected answers of composed questions are right (P4, sec. 6.7)."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path

from unslant.asking import Asked
from unslant.errors import InputError
from unslant.prompts import load_template
from unslant.questions.formats import read_records
from unslant.studies.annotation.metrics import AnnotationAgreement, annotation_agreement
from unslant.studies.unbiased.metrics import BOAT
from unslant.studies.unbiased.plan import AnySet, UnbiasedSettings, plan

COLUMNS = ("item", "question_id", "interventions", "shown", "expected", "right")
YES = ("yes", "y", "right", "true", "1", "1.0")
NO = ("no", "n", "wrong", "false", "0", "0.0")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula at the start of a cell."""


def sheet(questions: AnySet, n: int = 300, *, template: str = "plain", seed: int = 0) -> list[dict[str, str]]:
    """``n`` composed items at random, each with an empty column ``right`` to be filled with yes or no.

    Every question is composed once; the true/false items of a binary transformation are items of their own.

    Raises:
        InputError: if ``n`` is less than 1, or no question can be composed.
    """
    if n < 1:
        raise InputError(f"{n} items: give 1 or more")
    layout = load_template(template)
    asked = [
        (question, presentation)
        for question, presentation in plan(questions, UnbiasedSettings(runs=1, shots=0, alone=False, seed=seed)).asked
        if presentation.name.startswith(BOAT)
    ]
    chosen = sorted(range(len(asked)), key=lambda i: _rank(asked[i], seed))[:n]
    rows = []
    for i in sorted(chosen):
        question, presentation = asked[i]
        codes = "+".join(presentation.interventions) or "none"
        shown = f"{presentation.instruction}\n\n{layout.render_question(presentation).strip()}"
        item = f"{question.id}|{presentation.name}"
        rows.append(
            dict(zip(COLUMNS, (item, question.id, codes, shown, ", ".join(presentation.right_labels), ""), strict=True))
        )
    return rows


def _rank(asked: Asked, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\x1fsheet\x1f{asked[0].id}\x1f{asked[1].name}".encode()).digest()


def write_sheet(rows: Sequence[dict[str, str]], path: str | Path) -> None:
    """Write the sheet as CSV; a cell that a spreadsheet would run as a formula gets an apostrophe in front."""
    with Path(path).open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({k: f"'{v}" if v.startswith(_FORMULA) else v for k, v in row.items()} for row in rows)


def read_sheets(paths: Sequence[str | Path]) -> AnnotationAgreement:
    """Agreement figures of filled-in sheets, one for each annotator (named by its file).

    Empty cells of ``right`` are left out.

    Raises:
        InputError: naming file and line, on a verdict that is neither yes nor no, an item given twice, or sheets
            that nobody has filled in.
    """
    verdicts: dict[str, dict[str, bool]] = {}
    interventions: dict[str, str] = {}
    for path in map(Path, paths):
        name = path.stem if path.stem not in verdicts else str(path)
        given = verdicts.setdefault(name, {})
        for record in read_records(path, COLUMNS):
            if record.problem:
                raise InputError.at(record.place, record.problem)
            for column in ("item", "right"):
                if column not in record.data:
                    raise InputError.at(record.place, "missing; this is no annotation sheet", field=column)
            item, said = str(record.data["item"]), str(record.data["right"] or "").strip().lower()
            if not said:
                continue
            if said not in YES + NO:
                raise InputError.at(record.place, f"{said!r} is neither yes nor no", field="right")
            if item in given:
                raise InputError.at(record.place, f"{item!r} is given twice", field="item")
            given[item] = said in YES
            interventions[item] = str(record.data.get("interventions") or "none")
    if not any(verdicts.values()):
        raise InputError("no verdicts: fill in the column 'right' with yes or no")
    return annotation_agreement(verdicts, interventions)
