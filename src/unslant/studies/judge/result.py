"""The result of the study of judges: one judge, and several side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from unslant.arrays import Floats, Jsonable
from unslant.experiment.result import RecordedResult, StudyResult, write_tables
from unslant.metrics import METRICS, Bootstrap, Estimate, Measured, Numbers, Verdict, metric, verdicts
from unslant.reports.escape import file_name
from unslant.responses import Responses
from unslant.studies.judge.corrections import Abstention, Way, abstention, ways
from unslant.studies.judge.measures import (
    by_subject,
    changes,
    kappa,
    length_numbers,
    place_numbers,
    readings,
    right_numbers,
)
from unslant.studies.judge.strengths import LENGTH, PLACE, Fit, Match, Ranked, fitted, ranking
from unslant.studies.judge.verdicts import Verdicts

NONE_WITHIN = 0.05
"""A place that moves verdicts by less than this counts as none, and so does a difference in ties."""
NONE_IN_ODDS = 0.1
"""So does this much in log-odds for a doubling of the length."""
ERROR = 0.1
"""Error at which abstention is shown unless another is given."""


@dataclass(frozen=True)
class Habit(Jsonable):
    """A preference that has nothing to do with the answers' quality.

    Attributes:
        name: place, length, or ties (by order).
        shown: above or below zero; equal, to within a bound; or unclear.
    """

    name: str
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """What is shown; the estimate itself is among the places and the odds, under its own name."""
        return {"name": self.name, "shown": self.verdict.kind, "p": self.verdict.p}


@metric("place_odds", "first place, in log-odds", "what standing first adds", unit="nats", signed=True)
@metric("length_odds", "length, in log-odds", "what twice the length adds, given which answer is right, or who "
        "wrote them: an association", unit="nats", signed=True)  # fmt: skip
def odds_numbers(fit: Fit | None) -> Numbers:
    """The two coefficients, where they are known."""
    known = {"place_odds": PLACE, "length_odds": LENGTH}
    return Numbers({key: fit.estimate(name) for key, name in known.items() if fit and fit.has(name)})


@dataclass(frozen=True)
class JudgeResult(RecordedResult):
    """One judge.

    Attributes:
        places: how verdicts depend on the order of the answers.
        rights: agreement with the labels.
        lengths: how often the longest answer is preferred.
        odds: place and length at once, in log-odds.
        subjects: lengths by subject.
        habits: place, length and ties by order; their differences are corrected for their number (Holm).
        changes: what becomes of the verdict when the order changes -> pairs.
        undecided: rule of our reader -> logged pages without a decision.
        misread: rule of our reader -> logged pages that it reads otherwise.
        corrected_verdicts: each way to a verdict against the labels; empty without labels or both orders.
        abstention: verdicts only where the margin is large; None without labels.
        systems: by corrected win rate, best first; empty where no systems are known.
        matches: every two systems.
        verdicts: as arrays, from which every number is computed.
    """

    study = "judge"
    unwritten = ("responses", "verdicts")
    compared_numbers = (("places", "consistency"), ("places", "moved"), ("rights", "right_both"))

    responses: Responses
    places: Numbers
    rights: Numbers
    lengths: Numbers
    odds: Numbers
    subjects: Mapping[str, Numbers]
    habits: tuple[Habit, ...]
    changes: Mapping[str, int]
    undecided: Mapping[str, int]
    misread: Mapping[str, int]
    corrected_verdicts: tuple[Way, ...]
    abstention: Abstention | None
    systems: tuple[Ranked, ...]
    matches: tuple[Match, ...]
    verdicts: Verdicts = field(repr=False)

    @classmethod
    def of(cls, responses: Responses, error: float | None = None) -> JudgeResult:
        """The result, with abstention at this ``error``, by default that of the run's settings."""
        v = Verdicts.of(responses)
        read = readings(responses)
        places, odds = place_numbers(v, read), odds_numbers(fitted(v, systems=not v.labelled.any()))
        systems, matches = ranking(v)
        return cls(
            responses,
            places,
            right_numbers(v),
            length_numbers(v),
            odds,
            by_subject(v),
            _habits(places, odds),
            changes(v),
            Counter(one.rule for one in read if not one.decided),
            Counter(one.rule for one in read if one.decided and not one.same),
            ways(v),
            abstention(v, error or float(responses.run.settings.get("error") or ERROR)),
            systems,
            matches,
            v,
        )


def _habits(places: Numbers, odds: Numbers) -> tuple[Habit, ...]:
    found = {
        "place": (places["moved"], NONE_WITHIN),
        "length": (
            odds[METRICS["length_odds"]] if METRICS["length_odds"] in odds else Estimate.undefined("not known"),
            NONE_IN_ODDS,
        ),
        "ties": (places["tie_orders"], NONE_WITHIN),
    }
    measured = {name: one for name, one in found.items() if one[0].defined}
    corrected = verdicts([estimate for estimate, _ in measured.values()])
    bounded = [verdicts([estimate], bound=bound)[0] for estimate, bound in measured.values()]
    return tuple(
        Habit(name, own if own.differs else replace(within, p=own.p) if within.kind == "equal" else own)
        for name, own, within in zip(measured, corrected, bounded, strict=True)
    )


@dataclass(frozen=True)
class Agreed(Measured):
    """Two judges on the pairs that both decide.

    Attributes:
        one, other: their names.
    """

    one: str
    other: str
    numbers: Numbers


@dataclass(frozen=True)
class JudgeComparison(StudyResult):
    """Several judges.

    Attributes:
        results: of each judge.
        agreement: of every two judges.
        alpha: of all, over the pairs that two or more decide.
    """

    study = "judge"
    unwritten = ("run",)

    results: tuple[JudgeResult, ...]
    agreement: tuple[Agreed, ...]
    alpha: Numbers

    @classmethod
    def of(cls, results: Sequence[JudgeResult]) -> JudgeComparison:
        codes = [dict(_voted(one.verdicts)) for one in results]
        stems = {name: stem for one in results for name, stem in zip(one.verdicts.ids, one.verdicts.stems, strict=True)}
        return cls(tuple(results), tuple(_agreed(results, codes)), alpha(codes, stems))

    @property
    def parts(self) -> Sequence[JudgeResult]:
        return self.results

    def to_parquet(self, path: str | Path) -> None:
        """Write the responses of each judge to a file of its own, ``NAME-JUDGE``."""
        write_tables({file_name(one.run.name): one for one in self.results}, path)


def _voted(v: Verdicts) -> Iterator[tuple[str, float]]:
    """Pair -> a number for the answers voted for; pairs without a decision are left out."""
    values = v.voted @ (2.0 ** np.arange(v.voted.shape[1]))
    yield from ((name, float(value)) for name, value in zip(v.ids, values, strict=True) if value)


@metric("agreement.share", "same verdict", "pairs on which two judges agree, voted over orders", unit="share")
@metric("agreement.kappa", "kappa", "agreement of two judges beyond chance", source="Cohen 1960")
def _agreed(results: Sequence[JudgeResult], codes: Sequence[Mapping[str, float]]) -> Iterator[Agreed]:
    for a, b in combinations(range(len(results)), 2):
        v = results[a].verdicts
        one, other = (np.array([found.get(name, 0.0) for name in v.ids]) for found in (codes[a], codes[b]))
        kept = (one > 0) & (other > 0)
        note = "" if kept.any() else "no pair in common"
        share = v.bootstrap.mean(np.where(kept, one == other, np.nan).astype(float), note=note)
        numbers = Numbers({"agreement.share": share, "agreement.kappa": kappa(one, other, kept, v)})
        yield Agreed(results[a].run.name, results[b].run.name, numbers)


@metric("alpha", "agreement of all judges", "Krippendorff's alpha of verdicts voted over orders: 1 is perfect, 0 "
        "chance", source="Krippendorff 2011", short="alpha")  # fmt: skip
def alpha(codes: Sequence[Mapping[str, float]], stems: Mapping[str, str]) -> Numbers:
    """Over the pairs with a verdict of two judges or more, with its bootstrap interval.

    Args:
        codes: of each judge: pair -> number of its verdict; stems: pair -> question, which is drawn as a whole.
    """
    ids = [name for name in stems if sum(name in found for found in codes) > 1]
    kinds = sorted({value for found in codes for value in found.values()})
    if len(ids) < 2 or len(kinds) < 2:
        return Numbers({"alpha": Estimate.undefined("needs pairs that two judges decide", len(ids))})
    counts = np.array([[sum(found.get(name) == kind for found in codes) for kind in kinds] for name in ids], float)
    sizes = counts.sum(axis=1)
    observed = (sizes**2 - (counts**2).sum(axis=1)) / (sizes - 1)

    def statistic(totals: Floats) -> Floats:
        n, by_kind = totals[:, 1], totals[:, 2:]
        expected = (n**2 - (by_kind**2).sum(axis=1)) / (n - 1)
        found: Floats = np.divide(expected - totals[:, 0], expected, out=np.full(len(n), np.nan), where=expected > 0)
        return found

    features = np.column_stack([observed, sizes, counts])
    bootstrap = Bootstrap(len(ids), contexts=[stems[name] for name in ids])
    return Numbers({"alpha": bootstrap.statistic(features, statistic, len(ids), low=-1.0, high=1.0)})
