"""Scores under the unbiased evaluator (P4): vanilla, ours and the drop, by intervention, and who loses what.

Presentations are of kind ``vanilla``, ``boat`` (a random composition, one for each run) or ``only`` (one intervention
alone, with the hint that answer removal needs). A question with several true/false items is right if every one of them
is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unslant.arrays import Floats, json_fields, jsonable
from unslant.errors import InputError
from unslant.metrics import Estimate, choose
from unslant.metrics.bootstrap import RESAMPLES, Bootstrap
from unslant.presentations import NONE
from unslant.presentations.interventions import BOAT, ONLY, VANILLA
from unslant.responses import Response, Responses


@dataclass(frozen=True)
class Spread:
    """Accuracy of whole runs: ``std`` is the sample standard deviation over them (nan for one run)."""

    runs: tuple[float, ...]
    mean: float
    std: float

    @classmethod
    def over(cls, runs: list[float]) -> Spread:
        defined = [value for value in runs if not math.isnan(value)]
        mean = float(np.mean(defined)) if defined else math.nan
        return cls(tuple(runs), mean, float(np.std(defined, ddof=1)) if len(defined) > 1 else math.nan)


@dataclass(frozen=True)
class Alone:
    """One intervention alone (P4, fig. 6), on the questions that can take it.

    Attributes:
        accuracy: under the intervention.
        vanilla: of the same questions as published.
        change: accuracy minus vanilla, paired by question.
    """

    accuracy: Estimate
    vanilla: Estimate
    change: Estimate


@dataclass(frozen=True)
class Confusion:
    """Right or wrong as published against under BOAT (P4, fig. 4): shares of all pairs of question and run.

    ``lost`` is right as published and wrong under BOAT, ``gained`` the other way round.
    """

    both: Estimate
    lost: Estimate
    gained: Estimate
    neither: Estimate


@dataclass(frozen=True)
class BoatMetrics:
    """Everything measured under the unbiased evaluator.

    Attributes:
        vanilla: accuracy as published.
        ours: accuracy under BOAT: the mean over runs of each question, then over questions.
        drop: vanilla minus ours, paired by question (P4, table 2).
        spread: accuracy of each run, their mean and standard deviation.
        vanilla_chance, ours_chance: accuracy of answering at random among the labels offered.
        none_found: where "none" is right, how often it is answered.
        none_invented: where "none" is offered and wrong, how often it is answered.
        items: accuracy on single true/false items of the binary transformation and question jitter, all runs.
        alone: codes (such as ``OS`` or ``DH+AR``) -> accuracy under that intervention alone.
        confusion: vanilla against ours.
        by_subject: subject -> (vanilla, ours); empty where there is one subject or none.
        failed: presentations without a usable answer; left out, never counted as wrong.
    """

    vanilla: Estimate
    ours: Estimate
    drop: Estimate
    spread: Spread
    vanilla_chance: Estimate
    ours_chance: Estimate
    none_found: Estimate
    none_invented: Estimate
    items: Estimate
    alone: Mapping[str, Alone]
    confusion: Confusion
    by_subject: Mapping[str, tuple[Estimate, Estimate]]
    failed: int

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON: no nan, no infinity."""
        runs = {"runs": self.spread.runs, "run_mean": self.spread.mean, "run_std": self.spread.std}
        subjects = {s: {"vanilla": vanilla, "ours": ours} for s, (vanilla, ours) in self.by_subject.items()}
        return {**json_fields(self, omit=("spread",)), **jsonable({**runs, "by_subject": subjects})}


def correct(row: Response) -> float:
    """1 if the answer of one row is right, 0 if not, nan if there is none.

    Scored labels: the most probable one (the first of equals) must be right. Answers in words: the contents chosen
    must be exactly the right ones, options of the same text counting as one.
    """
    if row.status != "ok":
        return math.nan
    if row.logprobs is not None:
        if np.isnan(row.logprobs).any() or not np.isfinite(row.logprobs.max()):
            return math.nan
        chosen = choose(np.exp(row.logprobs - row.logprobs.max()), np.arange(len(row.logprobs)))
        return float(row.contents[int(chosen)] in row.answers)
    if row.chosen is None:
        return math.nan
    return float(_texts(row, row.chosen) == _texts(row, row.answers))


def _texts(row: Response, contents: frozenset[int]) -> frozenset[int]:
    return frozenset(row.text_ranks[c] if 0 <= c < len(row.text_ranks) else c for c in contents)


class Condition(NamedTuple):
    """The presentations that make one accuracy: a kind, with its run or its interventions (``DH+AR``)."""

    kind: str
    run: int = 0
    codes: str = ""


AS_PUBLISHED = Condition(VANILLA)


@dataclass
class _Asked:
    """All rows of one question under one presentation: one, or one for each true/false item."""

    right: list[float]
    chance: list[float]

    @property
    def credit(self) -> float:
        return math.nan if any(math.isnan(r) for r in self.right) else float(all(self.right))

    @property
    def guess(self) -> float:
        return math.prod(self.chance)


class Outcomes:
    """Per question and :class:`Condition`: right, wrong or failed.

    Attributes:
        ids: questions in the order of their first row.
        subjects: of each.
    """

    def __init__(self, responses: Responses) -> None:
        """
        Raises:
            InputError: if no row belongs to a vanilla or BOAT presentation.
        """
        self._cells: dict[Condition, dict[str, _Asked]] = {}
        subjects: dict[str, str] = {}
        self.failed = 0
        self.items: dict[str, list[float]] = {}
        self.none_found: dict[str, list[float]] = {}
        self.none_invented: dict[str, list[float]] = {}
        for row in responses.rows():
            if row.kind not in (VANILLA, BOAT, ONLY):
                continue
            subjects.setdefault(row.question_id, row.subject)
            condition = Condition(row.kind, row.run, "+".join(row.interventions) if row.kind == ONLY else "")
            cell = self._cells.setdefault(condition, {}).setdefault(row.question_id, _Asked([], []))
            right = correct(row)
            cell.right.append(right)
            cell.chance.append(sum(c in row.answers for c in row.contents) / len(row.contents) if row.contents else 0.0)
            self.failed += math.isnan(right)
            if row.kind == BOAT:
                self._note(row, right)
        if not self._cells:
            raise InputError("these responses hold no presentation of the unbiased evaluator (vanilla, boat or only)")
        self.ids = list(subjects)
        self.subjects = list(subjects.values())

    def _note(self, row: Response, right: float) -> None:
        if {"BT", "QJ"} & set(row.interventions):
            self.items.setdefault(row.question_id, []).append(right)
        if NONE in row.contents and not math.isnan(right):
            if NONE in row.answers:
                self.none_found.setdefault(row.question_id, []).append(right)
            else:
                self.none_invented.setdefault(row.question_id, []).append(float(_answered_none(row)))

    def conditions(self, kind: str) -> list[Condition]:
        """The conditions of a kind, by run, or the shorter combinations first."""
        return sorted((b for b in self._cells if b.kind == kind), key=lambda b: (b.run, len(b.codes), b.codes))

    def credit(self, condition: Condition) -> Floats:
        """(Q,) 1 right, 0 wrong, nan failed or not asked."""
        cells = self._cells.get(condition, {})
        return np.array([cells[q].credit if q in cells else math.nan for q in self.ids])

    def chance(self, condition: Condition) -> Floats:
        """(Q,) probability that random answers are right; nan where not asked."""
        cells = self._cells.get(condition, {})
        return np.array([cells[q].guess if q in cells else math.nan for q in self.ids])

    def ours(self) -> Floats:
        """(Q,) mean credit of each question over its BOAT runs; nan where it has none."""
        return _over_runs([self.credit(condition) for condition in self.conditions(BOAT)], len(self.ids))

    def mean_of(self, values: Mapping[str, list[float]]) -> Floats:
        """(Q,) each question's mean of the numbers noted for it; nan where there are none."""
        return np.array([_nanmean(values.get(q, [])) for q in self.ids])


def _answered_none(row: Response) -> bool:
    if row.logprobs is not None:
        return row.contents[int(np.argmax(row.logprobs))] == NONE
    return row.chosen == frozenset({NONE})


def _nanmean(values: list[float] | Floats) -> float:
    kept = [v for v in values if not math.isnan(v)]
    return float(np.mean(kept)) if kept else math.nan


def _over_runs(columns: list[Floats], n: int) -> Floats:
    """(Q,) mean over the runs in which a question has a value."""
    if not columns:
        return np.full(n, math.nan)
    table = np.column_stack(columns)
    return np.array([_nanmean(row) for row in table])


def boat_metrics(responses: Responses | Outcomes, *, resamples: int = RESAMPLES, seed: int = 0) -> BoatMetrics:
    """All numbers of the unbiased evaluator from its responses; subjects are resampled whole where there are ten.

    Raises:
        InputError: if the responses are of something else.
    """
    outcomes = responses if isinstance(responses, Outcomes) else Outcomes(responses)
    n = len(outcomes.ids)
    bootstrap = Bootstrap(n, outcomes.subjects, resamples=resamples, seed=seed)
    vanilla = outcomes.credit(AS_PUBLISHED)
    runs = [outcomes.credit(condition) for condition in outcomes.conditions(BOAT)]
    ours = _over_runs(runs, n)
    alone = {}
    for condition in outcomes.conditions(ONLY):
        credit = outcomes.credit(condition)
        paired = np.where(np.isnan(credit), math.nan, vanilla)
        alone[condition.codes] = Alone(
            bootstrap.mean(credit), bootstrap.mean(paired), bootstrap.mean(credit - paired, share=False)
        )
    return BoatMetrics(
        vanilla=bootstrap.mean(vanilla),
        ours=bootstrap.mean(ours),
        drop=bootstrap.mean(vanilla - ours, share=False),
        spread=Spread.over([_nanmean(run) for run in runs]),
        vanilla_chance=bootstrap.mean(outcomes.chance(AS_PUBLISHED)),
        ours_chance=bootstrap.mean(_over_runs([outcomes.chance(b) for b in outcomes.conditions(BOAT)], n)),
        none_found=bootstrap.mean(outcomes.mean_of(outcomes.none_found)),
        none_invented=bootstrap.mean(outcomes.mean_of(outcomes.none_invented)),
        items=bootstrap.mean(outcomes.mean_of(outcomes.items)),
        alone=alone,
        confusion=_confusion(vanilla, runs, bootstrap),
        by_subject=_by_subject(outcomes, vanilla, ours, resamples, seed),
        failed=outcomes.failed,
    )


def _confusion(vanilla: Floats, runs: list[Floats], bootstrap: Bootstrap) -> Confusion:
    def share(right_before: float, right_after: float) -> Estimate:
        hits = [
            np.where(np.isnan(run) | np.isnan(vanilla), math.nan, (vanilla == right_before) & (run == right_after))
            for run in runs
        ]
        return bootstrap.mean(_over_runs(hits, bootstrap.n_questions))

    return Confusion(both=share(1, 1), lost=share(1, 0), gained=share(0, 1), neither=share(0, 0))


def _by_subject(
    outcomes: Outcomes, vanilla: Floats, ours: Floats, resamples: int, seed: int
) -> dict[str, tuple[Estimate, Estimate]]:
    subjects = np.array(outcomes.subjects)
    names = sorted(set(outcomes.subjects) - {""})
    if len(names) < 2:
        return {}
    result = {}
    for name in names:
        mask = subjects == name
        bootstrap = Bootstrap(int(mask.sum()), resamples=resamples, seed=seed)
        result[name] = (bootstrap.mean(vanilla[mask]), bootstrap.mean(ours[mask]))
    return result
