"""Every metric of every single question: what means, subject tables, scatter plots and pairs start from.

An adaptive audit of replies asks every question as given and reversed. Where the answers differ, it asks all other
orders; where they agree, only for a random sample, the calibration sample. Or every question is asked as given, and a
random sample in all orders. What all orders would have shown of the questions left out is estimated from the sample
(the regression estimator of two-phase sampling: Särndal, Swensson and Wretman 1992, ch. 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.accuracy import accuracy
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate, by_design
from unslant.metrics.registry import Numbers, QuestionMetric, question_metrics
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import FALLING, least_margin, over_squares, two_phase_values

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
        return by_design(column) if metric.exact else bootstrap.mean(column, bounds=metric.bounds)

    return Numbers({metric.key: mean(metric, values[metric.key]) for metric in question_metrics()})


def extended_measures(scores: OrderScores) -> dict[str, Floats]:
    """:func:`measure`, with order metrics :func:`extended` to the questions that were not asked in all orders."""
    values = measure(scores)
    if phases := TwoPhaseValues.of(scores):
        return values | dict(phases.values)
    if scores.stopped is None:
        return values
    result = dict(values)
    for metric in question_metrics():
        same = metric.unmoved
        if same is not None:
            predicted = values[same] if isinstance(same, str) else np.full(len(scores), same)
            result[metric.key] = extended(scores, values[metric.key], predicted)
    return result


@dataclass(frozen=True)
class TwoPhaseValues:
    """Metrics that a Latin square does not show, estimated for all questions (:mod:`unslant.metrics.two_phase`).

    Attributes:
        values: key -> (Q,) values whose mean is the estimate.
        known: key -> (Q,) values over all orders where they are certain, nan elsewhere.
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
        every = replace(scores, blocks=tuple(
            block.only(rows, np.arange(block.k))
            for block in scores.blocks if len(rows := np.flatnonzero(~scores.partial[block.index]))
        ))  # fmt: skip
        pairs, rows = over_squares(scores)
        margin, certain = least_margin(pairs), np.zeros(len(scores), bool)
        values, known = {}, {}
        for metric in question_metrics():
            if metric.unmoved is not None and not metric.averaged:
                key, falls, whole = metric.key, metric.key in FALLING, metric.values(every)
                squares = np.column_stack([metric.values(pairs), margin])
                values[key] = two_phase_values(whole, squares, rows, scores.single, falls)
                certain[rows] = falls & (squares[:, 0] == 0)
                known[key] = np.where(np.isnan(whole) & certain, 0.0, whole)
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
    known = np.column_stack([predicted, np.nan_to_num(accuracy(scores))])[rows]
    none = np.zeros(len(rows), bool)
    result[rows] = two_phase_values(np.where(checked, values, np.nan)[rows], known, np.arange(len(rows)), none)
    return result
