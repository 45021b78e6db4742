"""Paired differences between two sets of answers to the same questions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unslant.arrays import Jsonable
from unslant.errors import InputError
from unslant.metrics.bootstrap import RESAMPLES, SHARE, Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate, normal_quantile
from unslant.metrics.measures import BOUNDS, Measures, QuestionMeasures
from unslant.metrics.scores import OrderScores
from unslant.metrics.stopped import extended_measures


@dataclass(frozen=True)
class PairedDifference(Jsonable):
    """How two sets of answers to the same questions differ.

    Attributes:
        measure: one of :class:`Measures`.
        a, b: each on the questions both have.
        difference: a minus b, paired.
        only_a, only_b: questions where a yes/no measure is 1 for this one alone.
        p_value: see :func:`mcnemar`; nan for measures that are not yes/no.
        n_unpaired: questions left out, because only one set has them or the measure is undefined in either.
    """

    measure: str
    a: Estimate
    b: Estimate
    difference: Estimate
    only_a: int
    only_b: int
    p_value: float
    n_unpaired: int


def paired_difference(
    a: OrderScores,
    b: OrderScores,
    measure_name: str = "accuracy",
    *,
    measures: tuple[QuestionMeasures, QuestionMeasures] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """Difference of one per-question measure over the questions that both sets of scores have.

    Args:
        measures: of ``a`` and ``b``, if already computed.

    Raises:
        InputError: if the measure is unknown or no question is shared.
    """
    if measure_name not in Measures.names():
        raise InputError(f"unknown measure {measure_name!r}: use one of {', '.join(Measures.names())}")
    shared, at_a, at_b = np.intersect1d(np.asarray(a.ids), np.asarray(b.ids), return_indices=True)
    if not shared.size:
        raise InputError("the two sets of responses have no question in common")
    values_a, values_b = measures or (extended_measures(a), extended_measures(b))
    of_a, of_b = getattr(values_a, measure_name)[at_a], getattr(values_b, measure_name)[at_b]
    both = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[both], of_b[both]
    kept = at_a[both]
    subjects = [a.subjects[i] for i in kept]
    contexts = [a.contexts[i] for i in kept]
    bootstrap = Bootstrap(len(subjects), subjects, contexts=contexts, resamples=resamples, seed=seed)
    bounds = BOUNDS.get(measure_name, SHARE)
    yes_no = of_a.size and np.isin([of_a, of_b], (0.0, 1.0)).all()
    only_a, only_b = (int((of_a > of_b).sum()), int((of_b > of_a).sum())) if yes_no else (0, 0)
    return PairedDifference(
        measure_name,
        bootstrap.mean(of_a, bounds=bounds),
        bootstrap.mean(of_b, bounds=bounds),
        bootstrap.mean(of_a - of_b, bounds=(bounds[0] - bounds[1], bounds[1] - bounds[0])),
        only_a,
        only_b,
        mcnemar(only_a, only_b) if yes_no else math.nan,
        len(set(a.ids) | set(b.ids)) - len(subjects),
    )


def minimum_detectable_difference(
    n: int, *, accuracy: float = 0.5, correlation: float = 0.5, power: float = 0.5, confidence: float = CONFIDENCE
) -> float:
    """The least difference in accuracy that shows between two models on the same n questions: 0.13 for 60.

    A difference d shows when McNemar's test finds it, at two-sided level 1 - ``confidence``: with discordant pairs in a
    share s of the questions, d >= (z_level + z_power) sqrt(s / n) (Connor 1987, without the term in d^2). Two models
    of the same accuracy a, right on the same questions with correlation r, have s = 2 a (1 - a) (1 - r). No difference
    shows with fewer discordant pairs than the exact test needs, all one way: 6 of n at 95 %.

    Args:
        n: questions, at least 1.
        accuracy: about that of the two; 0.5 asks most.
        correlation: between their being right on a question, below 1; 0.5 is usual between models.
        power: probability with which the difference is to show; at 0.5 it is the half-width of the interval of the
            difference, below which one cannot be told from none.

    Returns:
        A difference of shares, at most 1.

    Raises:
        ValueError: if an argument is out of its range.
    """
    if n < 1 or not 0 < accuracy < 1 or not -1 <= correlation < 1 or not 0 < power < 1:
        raise ValueError("n >= 1, accuracy and power between 0 and 1, correlation from -1 to below 1")
    discordant = 2 * accuracy * (1 - accuracy) * (1 - correlation)
    z = normal_quantile(confidence) + NormalDist().inv_cdf(power)
    fewest = 1 + math.ceil(math.log2(1 / (1 - confidence)))
    return min(1.0, max(z * math.sqrt(discordant / n), fewest / n))


def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value of McNemar's test from the two counts of discordant pairs; 1 where there are none."""
    if only_a + only_b == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
