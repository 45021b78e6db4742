"""The confidences of the evaluator probe: who rephrased, who judged, how sure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field

from unslant.arrays import Bools, Floats
from unslant.checked import Cell, TableRow
from unslant.errors import InputError
from unslant.presentations import question_rng
from unslant.questions.formats import table_rows
from unslant.responses import Run
from unslant.responses.checks import write_table
from unslant.studies.unbiased.probe.metrics import HIGHEST, LOWEST

COLUMNS = ("question_id", "subject", "kind", "rephraser", "judge", "score")
MISSING = ("", "nan", "na", "none", "null")


@dataclass(frozen=True)
class ScoreTable:
    """Confidence 1 to 10 of J models, who judge and rephrase, for Q questions; nan where none was given.

    Attributes:
        ids, subjects: of the questions.
        original: (J, Q) for the questions as published; may be all nan if strength 1 alone is of interest.
        rephrased: (J rephrasers, J judges, Q).
        boat: (J, Q) for the questions under interventions; all nan if they were not judged.
    """

    models: tuple[str, ...]
    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    original: Floats
    rephrased: Floats
    boat: Floats

    def changed(self, strength: float, seed: int = 0) -> Bools:
        """(Q,) which questions are changed, each with probability ``strength``; a higher strength only adds some."""
        draws = [question_rng(question_id, seed, "probe/strength").random() for question_id in self.ids]
        return np.array(draws) < strength

    @property
    def has_boat(self) -> bool:
        """Whether the questions were also judged under interventions."""
        return not np.isnan(self.boat).all()

    @property
    def missing(self) -> int:
        """Confidences that were asked for and not given."""
        parts = (self.original, self.rephrased, self.boat)
        return int(sum(np.isnan(part).sum() for part in parts if not np.isnan(part).all()))

    def missing_by_judge(self) -> tuple[list[int], list[int]]:
        """Of each model: confidences asked for and not given, and asked for. A question that nobody judged in some
        model's words was not rephrased by it."""
        as_is = [part for part in (self.original, self.boat) if not np.isnan(part).all()]
        rephrased = [part[:, ~np.isnan(part).all(axis=0)] for part in self.rephrased]
        asked = np.concatenate([*as_is, *rephrased], axis=1)
        return np.isnan(asked).sum(axis=1).tolist(), [asked.shape[1]] * len(self.models)

    def to_parquet(self, path: str | Path, run: Run | None = None) -> None:
        """Write one row a confidence, and how they came to be; :func:`load_scores` reads the rows back."""
        versions = [("original", "", self.original)]
        versions += [("rephrased", name, own) for name, own in zip(self.models, self.rephrased, strict=True)]
        versions += [("boat", "", self.boat)] if self.has_boat else []
        rows = [
            (self.ids[q], self.subjects[q], kind, rephraser, self.models[j], float(found[j, q]))
            for kind, rephraser, found in versions
            for q, j in np.ndindex(found.T.shape)
        ]
        write_table(pa.table(list(map(list, zip(*rows, strict=True))), COLUMNS), run or Run(study="probe"), (), path)


def load_scores(path: str | Path) -> ScoreTable:
    """A table from a CSV, TSV, JSONL or Parquet file with ``question_id``, ``rephraser``, ``judge`` and ``score``.

    ``subject`` and ``kind`` (``original``, ``rephrased``, ``boat``) are optional; without ``kind``, a row without a
    rephraser is about the question as published. An empty score was asked for and not given.

    Raises:
        InputError: naming the line and field.
    """
    cells: dict[tuple[str, str, str, str], float] = {}
    subjects: dict[str, str] = {}
    models: dict[str, None] = {}
    for place, row in table_rows(path, _Score):
        if not row.judge:
            raise InputError.at(place, "is empty", field="judge")
        kind = row.kind or ("rephrased" if row.rephraser else "original")
        if (kind == "rephrased") != bool(row.rephraser):
            raise InputError.at(place, "is given for rephrased questions, and for them alone", field="rephraser")
        key = (row.question_id, kind, row.rephraser, row.judge)
        if key in cells:
            raise InputError.at(place, f"a second score by {row.judge!r} for the same question", field="score")
        cells[key] = math.nan if row.score is None else row.score
        subjects.setdefault(row.question_id, row.subject)
        models.setdefault(row.judge)
        if row.rephraser:
            models.setdefault(row.rephraser)
    if len(models) < 2:
        raise InputError.at(path, "holds one model: consensus needs at least two")
    names, ids = tuple(models), tuple(subjects)
    index, column = ({name: i for i, name in enumerate(known)} for known in (names, ids))
    shape = (len(names), len(ids))
    versions = {"original": np.full(shape, np.nan), "boat": np.full(shape, np.nan)}
    rephrased = np.full((len(names), *shape), np.nan)
    for (question_id, version, rephraser, judge), score in cells.items():
        target = rephrased[index[rephraser]] if rephraser else versions[version]
        target[index[judge], column[question_id]] = score
    return ScoreTable(names, ids, tuple(subjects.values()), rephrased=rephrased, **versions)


class _Score(TableRow):
    question_id: str
    judge: str
    score: Annotated[
        Annotated[float, Field(ge=LOWEST, le=HIGHEST)] | None,
        BeforeValidator(lambda value: None if str(value).strip().lower() in MISSING else value),
        Field(description=f"a number from {LOWEST} to {HIGHEST}"),
    ]
    subject: Cell = ""
    rephraser: Cell = ""
    kind: Annotated[
        Literal["", "original", "rephrased", "boat"] | None, Field(description="one of original, rephrased, boat")
    ] = ""


class _Accuracy(TableRow):
    model: str
    subject: str
    accuracy: float = Field(ge=0, le=1, description="a number from 0 to 1")


def load_accuracy(path: str | Path) -> dict[str, dict[str, float]]:
    """Model -> subject -> accuracy, from a file with ``model``, ``subject`` and ``accuracy`` (0 to 1).

    Raises:
        InputError: naming the line and field.
    """
    found: dict[str, dict[str, float]] = {}
    for _, row in table_rows(path, _Accuracy):
        found.setdefault(row.model, {})[row.subject] = row.accuracy
    return found
