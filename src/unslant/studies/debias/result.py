"""The result of comparing debiasing methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unslant.arrays import Jsonable, grouped, json_fields
from unslant.experiment.comparison import mean_over_sets
from unslant.experiment.result import StudyResult
from unslant.metrics import Bootstrap, Estimate
from unslant.metrics.registry import metric
from unslant.metrics.sampling import codes_of
from unslant.responses import Run
from unslant.studies.debias.measure_debiased import (
    MEANS,
    MEASURES,
    SPREAD,
    MeasureChange,
    PairedValues,
    bounds_of_change,
)


@metric("spent.tokens", "tokens", "computed for each question answered", digits=0, unit="tokens")
@metric("spent.forwards", "forwards", "presentations scored for each question answered", digits=2, unit="presentations")
@metric("spent.seconds", "seconds", "for each question answered", digits=4, unit="seconds")
@metric("debiasing_tokens", "tokens to fit", "once", digits=0, unit="tokens")
@metric("debiasing_forwards", "forwards to fit", "once", digits=0, unit="presentations")
@metric("debiasing_seconds", "seconds to fit", "once", digits=1, unit="seconds")
@dataclass(frozen=True)
class Spent:
    """Cost of a method.

    Attributes:
        tokens, forwards, seconds: per question answered. Fitting on the questions that are answered (PriDe's
            estimation) is included: it recurs with every set, and the answers reuse its scores.
        debiasing_tokens, debiasing_forwards, debiasing_seconds: one-time cost of fitting.
    """

    tokens: float
    forwards: float
    seconds: float
    debiasing_tokens: int
    debiasing_forwards: int
    debiasing_seconds: float


@dataclass(frozen=True)
class MethodEntry(Jsonable):
    """One method, fitted on one set and measured on one.

    Attributes:
        fitted_on: name of the set; empty if it needs no fit.
        transferred: whether that is another set than the one measured.
        spent: tokens, presentations and seconds a question, and once for fitting.
        measures: :data:`MEASURES` and raw ``ckld``.
        change: of :data:`MEASURES` from the undebiased model, over the questions that both answered.
        constructed: measures that are 0 by construction: the answer is the same however options are listed.
        chance: share of options that are right, mean over questions.
        asked: number of questions.
        left_out: why the method has no answer to some of these, and to how many; they are in no measure.
        draws: mean and standard deviation of measures over draws of the estimation questions (PriDe).
        paired: the change of each question; not in JSON.
    """

    model: str
    questions: str
    method: str
    fitted_on: str
    transferred: bool
    measures: Mapping[str, Estimate]
    change: Mapping[str, MeasureChange]
    constructed: tuple[str, ...]
    spent: Spent
    chance: float = math.nan
    asked: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    draws: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    paired: PairedValues | None = None

    def to_dict(self) -> dict[str, Any]:
        return json_fields(self, omit=("paired",))


@dataclass(frozen=True)
class MeanChange(Jsonable):
    """Mean change of one measure over models and sets.

    Attributes:
        difference: debiased minus undebiased, each model and set counting the same; its interval is over the questions,
            paired. RStd, CKLD and AccStd are spreads, which have none.
        relative: mean of the relative changes, as in P1 tables 3 and 4; it has no interval.
        smallest, largest: of these relative changes.
    """

    difference: Estimate
    relative: Estimate
    smallest: float
    largest: float


@dataclass(frozen=True)
class Missing(Jsonable):
    """A method without results.

    Attributes:
        questions: name of the set on which measuring or fitting failed; empty for all.
        reason: why, such as a package that is not installed.
    """

    model: str
    method: str
    questions: str
    reason: str

    def __str__(self) -> str:
        where = f" on {self.questions}" if self.questions else ""
        return f"{self.method}: no results{where} ({self.model}): {self.reason}"


@dataclass(frozen=True)
class Transfer(Jsonable):
    """A method fitted on one set: mean changes over the other sets."""

    model: str
    method: str
    fitted_on: str
    change: Mapping[str, MeanChange]


@dataclass(frozen=True)
class DebiasResult(StudyResult):
    """The result of the study.

    Attributes:
        entries: every method on every model and set, fitted methods also on other sets.
        average: method -> measure -> mean change over models and sets, without transfer (P1 table 3).
        measured_on, trained_on: name of each set -> its questions.
        transfer: for each model, method and training set, the mean change over the other sets (P1 table 4).
        missing: methods that could not be fitted or answered nothing, and why.
    """

    study = "debias"

    entries: tuple[MethodEntry, ...]
    average: Mapping[str, Mapping[str, MeanChange]]
    transfer: tuple[Transfer, ...]
    measured_on: Mapping[str, int]
    trained_on: Mapping[str, int]
    run: Run = field()
    missing: tuple[Missing, ...] = ()

    @property
    def answered(self) -> StudyResult:
        return self

    def entry(self, method: str, model: str | None = None, questions: str | None = None) -> MethodEntry:
        """The entry of a method fitted on the set it is measured on; KeyError if there is none."""
        for entry in self.entries:
            right_set = entry.model == (model or entry.model) and entry.questions == (questions or entry.questions)
            if right_set and entry.method == method and not entry.transferred:
                return entry
        raise KeyError(method)


def averages(entries: Sequence[MethodEntry]) -> dict[str, dict[str, MeanChange]]:
    """Mean change of each method over models and sets."""
    methods = dict.fromkeys(entry.method for entry in entries if entry.change)
    return {method: _mean_changes([entry for entry in entries if entry.method == method]) for method in methods}


def transfers(entries: Sequence[MethodEntry]) -> tuple[Transfer, ...]:
    """One for each model, method and training set of these entries."""
    groups = grouped(((entry.model, entry.method, entry.fitted_on), entry) for entry in entries)
    return tuple(Transfer(*names, _mean_changes(group)) for names, group in groups.items())


def _mean_changes(entries: Sequence[MethodEntry]) -> dict[str, MeanChange]:
    means = {}
    for name in MEASURES:
        values = [v for entry in entries if not math.isnan(v := entry.change[name].relative.value)]
        relative, ends = Estimate.undefined("no value to compare"), (math.nan, math.nan)
        if values:
            relative = Estimate.bare(float(np.mean(values)), len(values), "relative: see the difference")
            ends = min(values), max(values)
        means[name] = MeanChange(_mean_difference(entries, name), relative, *ends)
    return means


def _mean_difference(entries: Sequence[MethodEntry], name: str) -> Estimate:
    """Mean over entries of a measure's mean change, with its interval over the questions."""
    entries = [entry for entry in entries if entry.change[name].difference.defined]
    differences = [entry.change[name].difference for entry in entries]
    if not differences:
        return Estimate.undefined("no value to compare")
    if len(differences) == 1:
        return differences[0]
    if name not in MEANS:
        return Estimate.bare(float(np.mean([one.value for one in differences])), len(differences), SPREAD)
    # Entries of one set share its questions, so models are paired by question. Each entry counts the same: a question
    # adds its change, divided by the number of questions, from each entry that has it. Sets and subjects are strata.
    pairs = [(entry.questions, entry.paired) for entry in entries if entry.paired is not None]
    groups: dict[tuple[str, str], tuple[str, str]] = {}  # question of a set -> its stratum and context
    for questions, paired in pairs:
        for id, subject, context in zip(paired.ids, paired.subjects, paired.contexts, strict=True):
            groups[questions, id] = f"{questions}\0{subject}", f"{questions}\0{context}" if context else ""
    place = {key: i for i, key in enumerate(groups)}
    totals, weights, unsure = np.zeros(len(place)), np.zeros(len(place)), np.zeros(len(place), bool)
    for questions, paired in pairs:
        values = paired.values[name]
        at = np.array([place[questions, id] for id in paired.ids])
        unsure[at] |= paired.unsure
        at = at[np.isfinite(values)]
        values = values[np.isfinite(values)]
        totals[at] += values / len(values) / len(pairs)
        weights[at] += 1 / len(values) / len(pairs)
    strata, contexts = zip(*groups.values(), strict=True)
    bootstrap = Bootstrap(len(place), strata, contexts=contexts, unsure=unsure)
    sets = codes_of([questions for questions, _ in groups])
    means = np.divide(totals, weights, out=np.zeros(len(place)), where=weights > 0)
    return mean_over_sets(bootstrap, means, weights, sets, bounds_of_change(name))
