"""The result of the study of judges: one judge, and several side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from unslant.arrays import Jsonable, json_number
from unslant.experiment.comparison import ComparedResult, check_whole
from unslant.experiment.result import RecordedResult, StudyResult
from unslant.metrics import METRICS, Bootstrap, Measured, Numbers, Verdict, metric, verdict, verdicts
from unslant.metrics.association import beyond_chance
from unslant.responses import Responses
from unslant.studies.judge import measures
from unslant.studies.judge.measures import Abstention, CorrectedWay
from unslant.studies.judge.strengths import LENGTH, PLACE, Match, Ranked, fitted, ranking
from unslant.studies.judge.verdicts import Verdicts

NONE_WITHIN = 0.05
"""A place that moves verdicts by less than this counts as none, and so does a difference in ties."""
NONE_IN_ODDS = 0.1
"""So does this much in log-odds for a doubling of the length."""


@dataclass(frozen=True)
class JudgeHabit(Jsonable):
    """A preference that has nothing to do with the answers' quality.

    Attributes:
        name: place, length, or ties (by order).
        verdict, shown: above or below zero; equal, to within a bound; or unclear.
    """

    name: str
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """What is shown; the estimate itself is among the places and the odds, under its own name."""
        return {"name": self.name, "shown": self.verdict.kind, "p": json_number(self.verdict.p)}


@metric("place_odds", "first place, in log-odds", "what standing first adds", unit="nats", signed=True)
@metric("length_odds", "length, in log-odds", "what twice the length adds, given which answer is right, or who "
        "wrote them: an association", unit="nats", signed=True)  # fmt: skip
def odds_numbers(v: Verdicts) -> Numbers:
    """The two coefficients, where they are known."""
    fit = fitted(v, () if v.labelled.any() else v.systems)
    coefficients = {"place_odds": PLACE, "length_odds": LENGTH}
    return Numbers(
        {key: fit.estimate(fit.weights(name)) for key, name in coefficients.items() if fit and name in fit.names}
    )


@dataclass(frozen=True)
class JudgeResult(RecordedResult):
    """One judge.

    Attributes:
        places: how verdicts depend on the order of the answers.
        rights: agreement with the labels.
        lengths: how often the longest answer is preferred.
        subjects: the same by subject.
        odds: place and length at once, in log-odds.
        habits: place, length and ties by order; their differences are corrected for their number (Holm).
        changes: how the verdict changes with the order -> pairs.
        undecided: rule of our reader -> logged pages without a decision.
        misread: rule of our reader -> logged pages that it reads otherwise than the log.
        corrected_verdicts: each way to a verdict against the labels; empty without labels or both orders.
        abstention: verdicts only where the margin is large; None without labels.
        systems: by corrected win rate, best first; empty where none can be compared.
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
    habits: tuple[JudgeHabit, ...]
    changes: Mapping[str, int]
    undecided: Mapping[str, int]
    misread: Mapping[str, int]
    corrected_verdicts: tuple[CorrectedWay, ...]
    abstention: Abstention | None
    systems: tuple[Ranked, ...]
    matches: tuple[Match, ...]
    verdicts: Verdicts = field(repr=False)

    @classmethod
    def of(cls, responses: Responses, error: float | None = None) -> JudgeResult:
        """The result, with abstention at this ``error``, by default that of the run's settings."""
        v, read = Verdicts.of(responses), measures.readings(responses)
        places, odds = measures.place_numbers(v, read), odds_numbers(v)
        systems, matches = ranking(v)
        return cls(
            responses,
            places,
            measures.right_numbers(v),
            measures.length_numbers(v),
            odds,
            measures.by_subject(v),
            _habits(places, odds),
            measures.changes(v),
            Counter(one.rule for one in read if not one.decided),
            Counter(one.rule for one in read if one.decided and not one.same),
            measures.ways(v),
            measures.abstention(v, error or float(responses.run.settings.get("error") or measures.ERROR)),
            systems,
            matches,
            v,
        )


def _habits(places: Numbers, odds: Numbers) -> tuple[JudgeHabit, ...]:
    effects = {"place": (places["moved"], NONE_WITHIN)}
    effects |= {"length": (odds["length_odds"], NONE_IN_ODDS)} if METRICS["length_odds"] in odds else {}
    effects["ties"] = places["tie_orders"], NONE_WITHIN
    measured = {name: one for name, one in effects.items() if one[0].defined}
    corrected = verdicts([estimate for estimate, _ in measured.values()])
    habits = []
    for (name, (estimate, bound)), outcome in zip(measured.items(), corrected, strict=True):
        # Differences are corrected for their number (Holm 1979); claims of equality need no correction (Berger 1982).
        within = verdict(estimate, bound=bound)
        small = within.kind == "equal" and not outcome.differs
        habits.append(JudgeHabit(name, replace(within, p=outcome.p) if small else outcome))
    return tuple(habits)


@dataclass(frozen=True)
class Agreed(Measured):
    """Two judges on the pairs that both decide.

    Attributes:
        one, other: names of the judges.
    """

    one: str
    other: str
    numbers: Numbers


@dataclass(frozen=True)
class JudgeComparison(ComparedResult):
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
    @metric("agreement.share", "same verdict", "pairs on which two judges agree, voted over orders", unit="share")
    @metric("agreement.kappa", "kappa", "agreement of two judges beyond chance", source="Cohen 1960")
    @metric("alpha", "agreement of all judges", "Krippendorff's alpha of verdicts voted over orders: 1 is perfect, 0 "
            "chance", source="Krippendorff 2011", short="alpha")  # fmt: skip
    def of(cls, results: Sequence[JudgeResult]) -> JudgeComparison:
        check_whole(results)
        numbering: dict[tuple[str, ...], Sequence[Any]] = {}
        votes: list[dict[tuple[str, ...], float]] = [{} for _ in results]
        for by_pair, one in zip(votes, results, strict=True):
            for pair, options, answers in _votes(one):
                order = numbering.setdefault(pair, options)
                by_pair[pair] = sum(2.0 ** order.index(answer) for answer in answers)
        codes = np.array([[by_pair.get(pair, 0.0) for pair in numbering] for by_pair in votes])
        bootstrap = Bootstrap(len(numbering), contexts=[stem for _, stem, *_ in numbering])

        def agreed(a: int, b: int) -> Agreed:
            one, other = codes[a], codes[b]
            same = np.where((one > 0) & (other > 0), one == other, np.nan)
            share = bootstrap.mean(same, note="no pair in common" * bool(np.isnan(same).all()))
            kappa = beyond_chance(codes[[a, b]], bootstrap)
            numbers = Numbers({"agreement.share": share, "agreement.kappa": kappa})
            return Agreed(results[a].model, results[b].model, numbers)

        alpha = Numbers({"alpha": beyond_chance(codes, bootstrap, pooled=True)})
        return cls(tuple(results), tuple(agreed(*two) for two in combinations(range(len(votes)), 2)), alpha)

    @property
    def answered(self) -> StudyResult | None:
        rest = [one for one in self.results if not one.failure]
        return self.of(rest) if len(rest) > 1 else next(iter(rest), None)


def _votes(result: JudgeResult) -> Iterator[tuple[tuple[str, ...], Sequence[Any], frozenset[Any]]]:
    """Pair, known by its id and texts, its answers in the order of the file, and those voted for: another judge's file
    may number the answers otherwise, or use the id for another pair."""
    v, texts = result.verdicts, {question.id: question for question in result.responses.questions}
    for name, stem, winners in zip(v.ids, v.stems, v.voted, strict=True):
        if winners.any():
            options: Sequence[Any] = texts[name].options if name in texts else ()
            if len(set(options)) < len(winners):  # logs without texts, or equal answers: only their places differ
                options = [*enumerate(options)] or range(len(winners))
            answers = frozenset(options[i] for i in np.flatnonzero(winners).tolist())
            yield (name, stem, *sorted(map(str, options))), options, answers
