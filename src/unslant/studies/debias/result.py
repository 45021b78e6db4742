"""The result of comparing debiasing methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unslant.arrays import Jsonable
from unslant.metrics import Estimate
from unslant.studies.debias.measure_debiased import MEASURES
from unslant.studies.result import StudyResult


@dataclass(frozen=True)
class Spent:
    """Cost of a method.

    Attributes:
        tokens, forwards: tokens computed and presentations scored per question, including fitting on the questions
            answered (PriDe's estimation), which recurs with every set.
        seconds: per question, without fitting.
        debiasing_tokens, debiasing_forwards, debiasing_seconds: one-time cost of fitting.
    """

    tokens: float
    forwards: float
    seconds: float
    debiasing_tokens: int
    debiasing_forwards: int
    debiasing_seconds: float


@dataclass(frozen=True)
class Entry(Jsonable):
    """One method, fitted on one set and measured on one.

    Attributes:
        fitted_on: name of the set; empty if it needs no fit.
        measures: :data:`MEASURES` and raw ``ckld``.
        change: relative change of :data:`MEASURES` from the undebiased model, on the same questions.
        draws: mean and standard deviation of measures over draws of the estimation questions (PriDe).
    """

    model: str
    questions: str
    method: str
    fitted_on: str
    transferred: bool
    measures: Mapping[str, Estimate]
    change: Mapping[str, Estimate]
    spent: Spent
    draws: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DebiasResult(StudyResult):
    """The result of the study.

    Attributes:
        entries: every method on every model and set, fitted methods also on other sets.
        average: method -> measure -> mean relative change over models and sets, without transfer (P1 table 3).
        transfer_average: the same for methods fitted on another set (P1 table 4).
    """

    study = "debias"

    entries: tuple[Entry, ...]
    average: Mapping[str, Mapping[str, Estimate]]
    transfer_average: Mapping[str, Mapping[str, Estimate]]
    meta: dict[str, Any]

    def entry(self, method: str, model: str | None = None, questions: str | None = None) -> Entry:
        """The entry of a method fitted on the set it is measured on; KeyError if there is none."""
        for entry in self.entries:
            own = entry.method == method and not entry.transferred
            if own and entry.model == (model or entry.model) and entry.questions == (questions or entry.questions):
                return entry
        raise KeyError(method)


def averages(entries: Sequence[Entry]) -> dict[str, dict[str, Estimate]]:
    """Mean relative change of each method over models and sets, with the range from smallest to largest."""
    table: dict[str, dict[str, Estimate]] = {}
    for method in dict.fromkeys(entry.method for entry in entries if entry.change):
        table[method] = {}
        for name in MEASURES:
            values = [e.change[name].value for e in entries if e.method == method and e.change[name].defined]
            table[method][name] = (
                Estimate(float(np.mean(values)), min(values), max(values), len(values), "smallest and largest")
                if values
                else Estimate.undefined("no value to compare")
            )
    return table
