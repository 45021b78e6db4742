"""Paired differences between two sets of answers to the same questions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Ints, Jsonable
from unslant.errors import InputError, one_of
from unslant.metrics.bootstrap import RESAMPLES, Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate, normal_quantile
from unslant.metrics.measures import QuestionValues, extended_measures
from unslant.metrics.registry import METRICS, QuestionMetric, metric, question_metrics
from unslant.metrics.scores import OrderScores


@dataclass(frozen=True)
class PairedDifference(Jsonable):
    """How two sets of answers to the same questions differ.

    Attributes:
        measure: key of a metric of single questions.
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


@metric("difference", "difference", "of the same questions, paired", unit="difference")
@metric("differences.a", "this run", "on the questions both have")
@metric("differences.b", "first run", "on the questions both have")
def paired_difference(
    a: OrderScores,
    b: OrderScores,
    measure_name: str = "accuracy",
    *,
    measures: tuple[QuestionValues, QuestionValues] | None = None,
    rows: tuple[Ints, Ints] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """Difference of one metric of single questions over the questions that both sets of scores have.

    Args:
        measures: of ``a`` and ``b``, if already computed.
        rows: (P,) each, the rows of the same questions in ``a`` and ``b``; by default those of the same id.

    Raises:
        InputError: if the measure is unknown or no question is shared.
    """
    if not isinstance(known := METRICS.get(measure_name), QuestionMetric):
        names = [one.key for one in question_metrics()]
        raise InputError(f"no metric of single questions is called {measure_name!r}: {one_of(measure_name, names)}")
    at_a, at_b = rows or np.intersect1d(np.asarray(a.ids), np.asarray(b.ids), return_indices=True)[1:]
    if not at_a.size:
        raise InputError("the two sets of responses have no question in common")
    values_a, values_b = measures or (extended_measures(a), extended_measures(b))
    of_a, of_b = values_a[measure_name][at_a], values_b[measure_name][at_b]
    both = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[both], of_b[both]
    kept = at_a[both]
    subjects = [a.subjects[i] for i in kept]
    contexts = [a.contexts[i] for i in kept]
    bootstrap = Bootstrap(len(subjects), subjects, contexts=contexts, resamples=resamples, seed=seed)
    bounds = known.bounds
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
        len(a) + len(b) - len(at_a) - len(subjects),
    )


@metric(
    "minimum_difference",
    "minimum detectable difference, paired",
    "in accuracy to another model on the same questions, power 80 %",
    digits=2,
    source="Connor 1987",
    plain=True,
)
@metric(
    "minimum_difference_unpaired",
    "minimum detectable difference, unpaired",
    "in accuracy to another model on as many other questions, power 80 %",
    digits=2,
    plain=True,
)
def minimum_detectable_difference(
    n: int, *, accuracy: float = 0.5, correlation: float = 0.5, power: float = 0.8, confidence: float = CONFIDENCE
) -> float:
    """The least difference in accuracy between two models that n questions show with probability ``power``.

    To show is to be found by the exact McNemar test, two-sided at level 1 - ``confidence``, whose power is computed
    exactly. Two models of about the same accuracy a, right on the same questions with correlation r, are discordant on
    a share 2 a (1 - a) (1 - r) of the questions (Connor 1987), or on as many as the difference itself where that is
    more. With a correlation of 0 this is also the difference between two models on n questions *each*, not the same.

    Args:
        n: questions, at least 1.
        accuracy: about that of the two; 0.5 asks most.
        correlation: between their being right on a question, below 1; 0.5 is usual between models.

    Returns:
        A difference of shares; 1 where none shows, as with fewer than six questions.

    Raises:
        ValueError: if an argument is out of its range.
    """
    if n < 1 or not 0 < accuracy < 1 or not -1 <= correlation < 1 or not 0 < power < 1:
        raise ValueError("n >= 1, accuracy and power between 0 and 1, correlation from -1 to below 1")
    discordant = 2 * accuracy * (1 - accuracy) * (1 - correlation)
    low, high = 0.0, 1.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        shows = _power(n, middle, min(1.0, max(discordant, middle)), confidence) >= power
        low, high = (low, middle) if shows else (middle, high)
    return high


def _power(n: int, difference: float, discordant: float, confidence: float) -> float:
    """Probability that the exact McNemar test finds a difference, given the share of discordant questions."""
    from scipy.special import bdtr, bdtrc

    middle, reach = n * discordant, 6 * math.sqrt(n * discordant * (1 - discordant)) + 6
    m = np.arange(max(1, int(middle - reach)), min(n, int(middle + reach)) + 1)
    level = (1 - confidence) / 2
    # of the rarer kind, the largest count that is too small by chance: approximately, then exactly
    most = np.clip(np.floor(m / 2 - normal_quantile(confidence) * np.sqrt(m) / 2), 0, m - 1)
    while (more := bdtr(most, m, 0.5) > level * (1 + 1e-12)).any():  # of -1 it is nan
        most = most - more
    while (less := (most + 1 < m) & (bdtr(np.minimum(most + 1, m), m, 0.5) <= level)).any():
        most = most + less
    found = sum(bdtr(most, m, (1 + sign * difference / discordant) / 2) for sign in (-1, 1))
    exactly = bdtrc(m - 1, n, discordant) - np.where(m < n, bdtrc(np.minimum(m, n - 1), n, discordant), 0.0)
    return float((np.where(most >= 0, found, 0.0) * exactly).sum())


@metric("p_value", "p", "exact McNemar test: both are equally likely to be the only one", unit="p")
def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value of McNemar's test from the two counts of discordant pairs; 1 where there are none."""
    if only_a + only_b == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
