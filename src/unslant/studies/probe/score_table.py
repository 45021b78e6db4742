"""The table of confidences of the evaluator probe: who rephrased, who judged, how sure; live or recorded."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unslant.errors import InputError
from unslant.presentations.seeds import question_rng
from unslant.questions.formats import read_records
from unslant.studies.probe.metrics import HIGHEST, LOWEST

Floats = NDArray[np.float64]
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

    def changed(self, strength: float, seed: int = 0) -> NDArray[np.bool_]:
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

    def to_csv(self, path: str | Path) -> None:
        """Write ``COLUMNS``; :func:`load_scores` reads it back."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([*row[:-1], "" if math.isnan(row[-1]) else f"{row[-1]:g}"] for row in self.rows())


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
    for record in read_records(Path(path), COLUMNS):
        if record.problem:
            raise InputError.at(record.place, record.problem)
        for name in ("question_id", "judge", "score"):
            if name not in record.data:
                raise InputError.at(record.place, f"missing; needed are {', '.join(COLUMNS)}", field=name)
        question_id, judge = str(record.data["question_id"]), str(record.data["judge"])
        rephraser = str(record.data.get("rephraser") or "")
        kind = str(record.data.get("kind") or ("rephrased" if rephraser else "original"))
        if kind not in KINDS:
            raise InputError.at(record.place, f"{kind!r} is not one of {', '.join(KINDS)}", field="kind")
        if (kind == "rephrased") != bool(rephraser):
            raise InputError.at(record.place, "is given for rephrased questions, and for them alone", field="rephraser")
        key = (question_id, kind, rephraser, judge)
        if key in cells:
            raise InputError.at(record.place, f"a second score by {judge!r} for the same question", field="score")
        cells[key] = _score(record.data["score"], record.place)
        subjects.setdefault(question_id, str(record.data.get("subject") or ""))
        models.setdefault(judge)
        if rephraser:
            models.setdefault(rephraser)
    return _arranged(cells, subjects, tuple(models), path)


def _score(value: object, place: str) -> float:
    if value is None or str(value).strip().lower() in MISSING:
        return math.nan
    try:
        score = float(str(value))
    except ValueError:
        score = math.inf
    if not LOWEST <= score <= HIGHEST:
        raise InputError.at(place, f"{value!r} is not a number from {LOWEST} to {HIGHEST}", field="score")
    return score


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
    for record in read_records(Path(path), ("model", "subject", "accuracy")):
        for name in ("model", "subject", "accuracy"):
            if name not in record.data:
                raise InputError.at(
                    record.place, record.problem or "missing; needed are model, subject, accuracy", field=name
                )
        try:
            value = float(str(record.data["accuracy"]))
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1:
            raise InputError.at(record.place, "must be a number from 0 to 1", field="accuracy")
        found.setdefault(str(record.data["model"]), {})[str(record.data["subject"])] = value
    return found
