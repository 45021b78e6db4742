"""The table of confidences of the evaluator probe: who rephrased, who judged, how sure; live or recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BeforeValidator, Field

from unslant.arrays import Bools, Floats
from unslant.checked import Cell, TableRow
from unslant.errors import InputError
from unslant.presentations import question_rng
from unslant.questions.tables import read_table
from unslant.studies.probe.metrics import HIGHEST, LOWEST

COLUMNS = ("question_id", "subject", "kind", "rephraser", "judge", "score")
KINDS = ("original", "rephrased", "boat")
MISSING = ("", "nan", "na", "none", "null")


@dataclass(frozen=True)
class ScoreTable:
    """Confidence 1 to 10 of J judges (who are also the rephrasers) for Q questions; nan where none was given.

    Attributes:
        models: the J models.
        ids, subjects: of the Q questions.
        original: (J, Q) for the questions as published; may be all nan where only strength 1 is looked at.
        rephrased: (J rephrasers, J judges, Q).
        boat: (J, Q) for the questions under interventions; all nan where that was not asked.
    """

    models: tuple[str, ...]
    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    original: Floats
    rephrased: Floats
    boat: Floats

    def changed(self, strength: float, seed: int = 0) -> Bools:
        """(Q,) which questions are rephrased at this strength; those of a lower one are among those of a higher."""
        draws = [question_rng(question_id, seed, "probe/strength").random() for question_id in self.ids]
        return np.array(draws) < strength

    def at(self, strength: float, rephraser: int, seed: int = 0) -> Floats:
        """(J, Q) confidences when model ``rephraser`` has rephrased each question with probability ``strength``."""
        return np.where(self.changed(strength, seed), self.rephrased[rephraser], self.original)

    def boat_at(self, strength: float, seed: int = 0) -> Floats:
        """(J, Q) confidences when each question is under interventions with probability ``strength``."""
        return np.where(self.changed(strength, seed), self.boat, self.original)

    @property
    def has_boat(self) -> bool:
        """Whether the questions were judged under interventions too."""
        return not np.isnan(self.boat).all()

    @property
    def missing(self) -> int:
        """Confidences that were asked for and not given."""
        parts = (self.original, self.rephrased, self.boat)
        return int(sum(np.isnan(part).sum() for part in parts if not np.isnan(part).all()))

    def rows(self) -> Iterator[tuple[str, str, str, str, str, float]]:
        """One row a confidence, in ``COLUMNS``; missing ones as nan."""
        for q, (question_id, subject) in enumerate(zip(self.ids, self.subjects, strict=True)):
            for j, judge in enumerate(self.models):
                yield question_id, subject, "original", "", judge, float(self.original[j, q])
                for i, rephraser in enumerate(self.models):
                    yield question_id, subject, "rephrased", rephraser, judge, float(self.rephrased[i, j, q])
                if self.has_boat:
                    yield question_id, subject, "boat", "", judge, float(self.boat[j, q])

    def to_parquet(self, path: str | Path) -> None:
        """Write ``COLUMNS``; :func:`load_scores` reads it back."""
        pq.write_table(pa.table(list(map(list, zip(*self.rows(), strict=True))), COLUMNS), path)


def load_scores(path: str | Path) -> ScoreTable:
    """A recorded table: CSV, TSV, JSONL or Parquet with ``question_id``, ``rephraser``, ``judge``, ``score``.

    ``subject`` and ``kind`` (``original``, ``rephrased``, ``boat``) are optional: without ``kind``, a row without a
    rephraser is of the question as published. An empty score was asked for and not given.

    Raises:
        InputError: naming the line and field.
    """
    cells: dict[tuple[str, str, str, str], float] = {}
    subjects: dict[str, str] = {}
    models: dict[str, None] = {}
    for place, row in read_table(path, _Score):
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
    return _arranged(cells, subjects, tuple(models), path)


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
        Literal["", "original", "rephrased", "boat"] | None, Field(description=f"one of {', '.join(KINDS)}")
    ] = ""


class _Accuracy(TableRow):
    model: str
    subject: str
    accuracy: float = Field(ge=0, le=1, description="a number from 0 to 1")


def _arranged(
    cells: Mapping[tuple[str, str, str, str], float], subjects: Mapping[str, str], models: Sequence[str], path: object
) -> ScoreTable:
    if len(models) < 2:
        raise InputError.at(path, "holds one model: consensus needs at least two")
    place = {name: i for i, name in enumerate(models)}
    column = {question_id: q for q, question_id in enumerate(subjects)}
    shape = (len(models), len(column))
    original, boat = np.full(shape, np.nan), np.full(shape, np.nan)
    rephrased = np.full((len(models), *shape), np.nan)
    for (question_id, kind, rephraser, judge), score in cells.items():
        j, q = place[judge], column[question_id]
        if kind == "original":
            original[j, q] = score
        elif kind == "boat":
            boat[j, q] = score
        else:
            rephrased[place[rephraser], j, q] = score
    return ScoreTable(tuple(models), tuple(column), tuple(subjects.values()), original, rephrased, boat)


def load_accuracy(path: str | Path) -> dict[str, dict[str, float]]:
    """Model -> subject -> accuracy, from a file with ``model``, ``subject`` and ``accuracy`` (0 to 1).

    Raises:
        InputError: naming the line and field.
    """
    found: dict[str, dict[str, float]] = {}
    for _, row in read_table(path, _Accuracy):
        found.setdefault(row.model, {})[row.subject] = row.accuracy
    return found
