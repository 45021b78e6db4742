"""Annotation sheets, on which people say whether the expected answers of composed questions are right."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

import unslant.experiment as o
from unslant.asking import Asked
from unslant.errors import InputError
from unslant.experiment.result import StudyResult
from unslant.files import Cell, TableRow
from unslant.flags import Flag, path_in, typed
from unslant.metrics import METRICS, Bootstrap, Estimate
from unslant.metrics.association import beyond_chance
from unslant.metrics.registry import metric
from unslant.presentations.interventions import BOAT
from unslant.prompts import load_template
from unslant.questions.formats import table_rows
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, csv_text, number, with_interval
from unslant.studies.unbiased.study import UnbiasedSettings, key_of, plan
from unslant.writing import write_atomically

Verdicts = Mapping[str, Mapping[str, bool]]
"""Annotator -> item -> whether the expected answer is right."""


@dataclass(frozen=True)
class AnnotationAgreement(StudyResult):
    """Measure how often people confirm the expected answers, and how far they agree with each other.

    Attributes:
        confirmed, by_annotator, by_intervention: share of verdicts that say "right", over items; by combination
            (``DH+AR``).
        agreement: share of pairs of annotators that agree, over items with two or more.
        kappa: Fleiss' kappa generalised to any number of annotators an item (Krippendorff's alpha for two
            categories); nan where all verdicts are the same.
        disputed: items that at least one annotator calls wrong, sorted.
    """

    study = "annotation"

    confirmed: Estimate
    by_annotator: Mapping[str, Estimate]
    by_intervention: Mapping[str, Estimate]
    agreement: Estimate
    kappa: float
    disputed: tuple[str, ...]

    def described(self) -> Page:
        """How often people confirm the expected answers, and which they do not."""
        items = count(self.confirmed.n, "item")
        shares = {"all": self.confirmed}
        shares |= {f"by {name}": share for name, share in self.by_annotator.items()}
        shares |= {f"under {name}": share for name, share in self.by_intervention.items()}
        shares |= {METRICS["agreement"].name: self.agreement} if self.agreement.defined else {}
        confirmed = Figure(
            "annotation",
            "Expected answers confirmed",
            ["verdicts"],
            [Column("share", METRICS["confirmed"])],
            [{"verdicts": name, "share": share} for name, share in shares.items()],
            [Plot(partial(charts.intervals, axis="share of verdicts"), "With 95 % intervals.", ["share"], of="items")],
        )
        disputed = Figure("annotation-disputed", "Called wrong by someone", ["item"], [],
                          [{"item": item} for item in self.disputed])  # fmt: skip
        return Page(
            about=f"{items}, {count(len(self.by_annotator), 'annotator')}",
            headline=f"People confirm {with_interval(self.confirmed, 2)} of the expected answers to {items}",
            lines=(_agreement(self),),
            tiles=Tile.row(("confirmed", self.confirmed), ("agreement", self.agreement)),
            panels=(
                Panel(
                    "annotation",
                    "Do people confirm the expected answers?",
                    "Share of verdicts that call the expected answer right, over items.",
                    figures=(confirmed, disputed),
                    short="Verdicts",
                ),
            ),
            name="annotation",
        )


@metric("confirmed", "expected answers confirmed", "verdicts that call the expected answer right", unit="share",
        source="P4 sec. 6.7")  # fmt: skip
@metric("by_annotator", "confirmed by one person", "the same for one annotator", unit="share")
@metric("by_intervention", "confirmed under one combination", "the same for one combination of interventions",
        unit="share")  # fmt: skip
@metric("agreement", "pairs of people that agree", "over items with two verdicts or more", unit="share")
@metric("kappa", "agreement beyond chance", "Krippendorff's alpha: 1 is perfect, 0 chance")
def agreement_of(
    verdicts: Verdicts, interventions: Mapping[str, str] | None = None, questions: Mapping[str, str] | None = None
) -> AnnotationAgreement:
    """Agreement figures of filled-in sheets.

    Args:
        interventions: item -> combination.
        questions: item -> id of its question. True/false items of one question are drawn, and often wrong, together.

    Raises:
        InputError: if there is no verdict at all.
    """
    items = sorted({item for answers in verdicts.values() for item in answers})
    if not items:
        raise InputError("no verdicts: fill in the column 'right' with yes or no")
    by_item = {item: [answers[item] for answers in verdicts.values() if item in answers] for item in items}
    ratings = [[1.0 + answers[item] if item in answers else 0.0 for item in items] for answers in verdicts.values()]
    codes = {item: interventions[item] for item in items if interventions and item in interventions}
    pairs = {item: [a == b for a, b in itertools.combinations(votes, 2)] for item, votes in by_item.items()}
    mean = partial(_mean_of, questions or {})
    return AnnotationAgreement(
        confirmed=mean(by_item),
        by_annotator={name: mean({item: [v] for item, v in one.items()}) for name, one in verdicts.items() if one},
        by_intervention={
            code: mean({item: by_item[item] for item in codes if codes[item] == code})
            for code in sorted({*codes.values()})
        },
        agreement=mean(pairs),
        kappa=beyond_chance(np.array(ratings), Bootstrap(len(items)), pooled=True).value,
        disputed=tuple(item for item, votes in by_item.items() if not all(votes)),
    )


def _mean_of(questions: Mapping[str, str], votes: Mapping[str, Sequence[bool]]) -> Estimate:
    """Mean over items of the share that is True; items without any do not count."""
    shares = {item: float(np.mean(each)) for item, each in votes.items() if each}
    contexts = [questions.get(item, "") for item in shares]
    values = np.array([*shares.values()], dtype=np.float64)
    return Bootstrap(len(shares), contexts=contexts, part=True).mean(values, note="no item has two verdicts")


COLUMNS = ("item", "question_id", "interventions", "shown", "expected", "right")


def sheet(questions: Any, n: int = 300, *, template: str | Path = "plain", seed: int = 0) -> list[dict[str, str]]:
    """``n`` composed items at random, each with an empty column ``right`` to fill in with yes or no.

    Every question is composed once; each true/false item of a binary transformation counts as an item. The questions
    are anything that :func:`unslant.load_questions` takes, or maths questions.

    Raises:
        InputError: if ``n`` is less than 1, or no question can be composed.

    Examples:
        >>> rows = unslant.study.annotation_sheet("embedded", 3)
        >>> rows[0]["expected"], rows[0]["right"]
        ('A', '')
    """
    if typed("n", n, int) < 1:
        raise InputError(f"{n} items: give 1 or more")
    layout = load_template(template)
    settings = UnbiasedSettings(runs=1, shots=0, no_alone=True, seed=seed)
    items, _ = plan(o.LoadOptions().load(questions), settings)
    composed = [item for item in items if item[1].kind == BOAT]
    # Drawn by a hash of the item, so that a smaller sheet is part of a larger one; listed in the questions' order.
    sample = sorted(range(len(composed)), key=lambda i: _rank(composed[i], seed))[:n]
    rows = []
    for question, presentation in (composed[i] for i in sorted(sample)):
        codes = "+".join(presentation.interventions) or "none"
        text = f"{presentation.instruction}\n\n{layout.render_question(presentation).strip()}"
        row = (key_of(question, presentation), question.id, codes, text, ", ".join(presentation.right_labels), "")
        rows.append(dict(zip(COLUMNS, row, strict=True)))
    return rows


def _rank(item: Asked, seed: int) -> bytes:
    question, presentation = item
    key = key_of(question, presentation).removeprefix(f"{question.id}|")
    return hashlib.sha256(f"{seed}\x1fsheet\x1f{question.id}\x1f{key}".encode()).digest()


def write_sheet(rows: Sequence[dict[str, str]], path: str | Path) -> None:
    """Write the sheet as CSV; an apostrophe keeps spreadsheets from running a cell as a formula."""
    text = csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in rows))
    write_atomically(path, text.encode("utf-8-sig"))


def read_sheets(paths: str | Path | Sequence[str | Path]) -> AnnotationAgreement:
    """Agreement figures of filled-in sheets, one for each annotator (named by its file), without empty verdicts.

    Raises:
        InputError: naming file and line, on a verdict that is neither yes nor no, an item or a sheet given twice, or
            sheets that nobody has filled in.

    Examples:
        >>> for name in ("ann.csv", "ben.csv"):
        ...     with open(name, "w") as file:
        ...         _ = file.write("item,right\\nq1,yes\\nq2,no\\n")
        >>> unslant.study.annotation(["ann.csv", "ben.csv"]).kappa
        1.0
    """
    verdicts: dict[str, dict[str, bool]] = {}
    interventions: dict[str, str] = {}
    questions: dict[str, str] = {}
    seen: set[Path] = set()
    for one in paths if isinstance(paths, list | tuple) else (paths,):
        path = path_in("sheets", one, "the names of filled-in files, in a list")
        if path.resolve() in seen:
            raise InputError.at(path, "is given twice; give one sheet per person")
        seen.add(path.resolve())
        name = path.stem if path.stem not in verdicts else str(path)
        answers = verdicts.setdefault(name, {})
        for place, row in table_rows(path, _Filled):
            if row.right is None:
                continue
            if row.item in answers:
                raise InputError.at(place, f"{row.item!r} is given twice", field="item")
            answers[row.item] = row.right
            # A sheet may come back without the columns that were not to be filled in.
            for column, cell in ((interventions, row.interventions), (questions, row.question_id)):
                if cell:
                    column[row.item] = cell
    return agreement_of(verdicts, interventions, questions)


def _verdict(value: object) -> object:
    text = str("" if value is None else value).strip().lower()
    return {"": None, "right": True, "1.0": True, "wrong": False, "0.0": False}.get(text, text)


class _Filled(TableRow):
    item: str
    right: Annotated[bool | None, BeforeValidator(_verdict), Field(description="yes or no")]
    question_id: Cell = ""
    interventions: Cell = ""
    shown: Cell = ""
    expected: Cell = ""


def _agreement(agreement: AnnotationAgreement) -> str:
    """How far people agree, and how many items are disputed."""
    disputed = f"{count(len(agreement.disputed), 'item')} called wrong by someone."
    if not agreement.agreement.defined:
        return disputed
    share = f"Two people agree on {with_interval(agreement.agreement, 2)} of the items"
    alpha = f" (Krippendorff's alpha {number(agreement.kappa, METRICS['kappa'])})"
    return f"{share}{alpha * (not math.isnan(agreement.kappa))}; {disputed}"


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

    check_file(out)
    sample = settings.sampled(settings.load(questions, maths))
    rows = sheet(sample, items, template=settings.template, seed=settings.seed)
    write_sheet(rows, out)
    if not quiet:
        print(
            f"{count(len(rows), 'item')} written to {out}: fill in the column 'right' with yes or no, one copy a person"
        )


def annotation_agreement(
    *sheets: Annotated[Path, Flag(help="Filled-in sheets, one per person.")], outputs: o.Reports = o.ReportOptions()
) -> None:
    """Measure how often people confirm the expected answers, and how far they agree with each other.

    Examples:
      unslant study annotation-agreement ann.csv bob.csv --json agreement.json
    """
    from unslant.experiment.outputs import check_outputs, write_outputs

    check_outputs(outputs)
    write_outputs(read_sheets(sheets), outputs)
