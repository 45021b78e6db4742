"""Every metric of every single question: what means, subject tables, scatter plots and paired differences start from.

An adaptive audit of replies asks every question as given and reversed. Where the answers differ, it asks all other
orders; where they agree, only for a random sample, the calibration sample. Or every question is asked as given, and a
random sample in all orders. What all orders would have shown of the questions left out is estimated from the sample
(the regression estimator of two-phase sampling: Särndal, Swensson and Wretman 1992, ch. 6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unslant.arrays import Floats, Ints, Jsonable
from unslant.errors import InputError, one_of
from unslant.metrics.accuracy import accuracy
from unslant.metrics.bootstrap import RESAMPLES, Bootstrap
from unslant.metrics.estimate import Estimate, by_design
from unslant.metrics.registry import METRICS, Numbers, QuestionMetric, metric, question_metrics
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import known_values, least_margin, over_squares, two_phase_values, whole_sets

QuestionValues: TypeAlias = Mapping[str, Floats]
"""Key of a metric -> (Q,) its values in the order of ``OrderScores.ids``, nan where undefined."""


def measure(scores: OrderScores) -> dict[str, Floats]:
    """Every metric of every question that was asked."""
    return {metric.key: metric.values(scores) for metric in question_metrics()}


def means(values: QuestionValues, bootstrap: Bootstrap, phases: TwoPhaseValues | None = None) -> Numbers:
    """The mean of every metric over the questions that have it, with its interval.

    Args:
        phases: the metrics that are estimated in two phases.
    """

    def mean(metric: QuestionMetric, column: Floats) -> Estimate:
        if np.isnan(column).all():
            return Estimate.undefined(metric.missing, confidence=bootstrap.confidence)
        if phases and metric.key in phases.known:
            return bootstrap.two_phase(column, phases.known[metric.key], phases.shown, bounds=metric.bounds)
        if metric.exact:
            return by_design(column)
        return bootstrap.mean(column, bounds=metric.bounds, swings=metric.swings)

    return Numbers({metric.key: mean(metric, values[metric.key]) for metric in question_metrics()})


def extended_measures(scores: OrderScores) -> dict[str, Floats]:
    """:func:`measure`, with order metrics :func:`extended` to the questions that were not asked in all orders."""
    values = measure(scores)
    if phases := TwoPhaseValues.of(scores):
        return values | dict(phases.values)
    if scores.stopped is None:
        return values
    result = dict(values)
    for one in question_metrics():
        if one.unmoved is not None:
            predicted = values[one.unmoved] if isinstance(one.unmoved, str) else np.full(len(scores), one.unmoved)
            result[one.key] = extended(scores, values[one.key], predicted)
    return result


@dataclass(frozen=True)
class TwoPhaseValues:
    """Metrics that a Latin square does not show, estimated for all questions (:mod:`unslant.metrics.two_phase`).

    Attributes:
        values: key -> (Q,) values whose mean is the estimate.
        known: key -> (Q,) values over all orders, or over the square where that decides them; nan elsewhere.
        shown: questions drawn to be shown in all orders.
    """

    values: QuestionValues
    known: QuestionValues
    shown: int

    @classmethod
    def of(cls, scores: OrderScores) -> TwoPhaseValues | None:
        """None where all questions were shown alike."""
        if scores.full is None:
            return None
        every = whole_sets(scores)
        pairs, rows = over_squares(scores)
        margin = least_margin(pairs)
        values, known = {}, {}
        for one in question_metrics():
            if one.unmoved is not None and not one.averaged:
                key, whole, over_square = one.key, one.values(every), one.values(pairs)
                squares = np.column_stack([over_square, margin])
                values[key] = two_phase_values(whole, squares, rows, scores.single, key)
                known[key] = known_values(key, whole, over_square, rows)
        return cls(values, known, int(scores.full.sum()))


def extended(scores: OrderScores, values: Floats, predicted: Floats) -> Floats:
    """Values whose mean estimates that of all questions asked in all orders.

    Of N questions that agree, n were drawn at random and asked in all orders (``checked``). A question left out counts
    as predicted from its first answers, and each of the n as predicted + N / n (value - predicted): without bias,
    however few they are. Where the n were drawn of all questions, and are more, the prediction is a regression fitted
    in them, also on whether the answer is right (:func:`two_phase_values`). Single values can lie outside the range of
    the metric; only their means say anything.

    Args:
        values: (Q,) of the questions asked in all orders; nan for those left out.
        predicted: (Q,) what the value would be if all orders had the answer of the first.

    Returns:
        (Q,); all nan where questions were left out and none was drawn to represent them.
    """
    if scores.stopped is None or scores.checked is None:
        return values
    left_out = scores.stopped & ~np.isnan(predicted)
    checked = scores.checked & ~np.isnan(values) & ~np.isnan(predicted)
    if not left_out.any():
        return values
    if not checked.any():
        return np.full(len(values), np.nan)
    if scores.selected:
        factor = 1 + left_out.sum() / checked.sum()
        result = np.where(left_out, predicted, values)
        result[checked] = predicted[checked] + factor * (values - predicted)[checked]
        return result
    result, rows = values.copy(), np.flatnonzero(left_out | checked)
    features = np.column_stack([predicted, np.nan_to_num(accuracy(scores))])[rows]
    none = np.zeros(len(rows), bool)
    result[rows] = two_phase_values(np.where(checked, values, np.nan)[rows], features, np.arange(len(rows)), none)
    return result


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
    if not isinstance(measured := METRICS.get(measure_name), QuestionMetric):
        names = [one.key for one in question_metrics()]
        raise InputError(f"no metric of single questions is called {measure_name!r}: {one_of(measure_name, names)}")
    at_a, at_b = rows or np.intersect1d(np.asarray(a.ids), np.asarray(b.ids), return_indices=True)[1:]
    if not at_a.size:
        raise InputError("the two sets of responses have no question in common")
    values_a, values_b = measures or (extended_measures(a), extended_measures(b))
    of_a, of_b = values_a[measure_name][at_a], values_b[measure_name][at_b]
    both = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[both], of_b[both]
    subjects, contexts = ([texts[i] for i in at_a[both]] for texts in (a.subjects, a.contexts))
    bootstrap = Bootstrap(len(subjects), subjects, contexts=contexts, resamples=resamples, seed=seed)
    bounds = measured.bounds
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


@metric("p_value", "p", "exact McNemar test: both are equally likely to be the only one", unit="p")
def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value of McNemar's test from the two counts of discordant pairs; 1 where there are none."""
    if only_a + only_b == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
