"""Questions that an adaptive audit did not ask in all orders, estimated from a random sample that it did.

An adaptive audit of replies asks every question as given and reversed. Where the answers differ, it asks all other
orders; where they agree, only for a random sample, the calibration sample. Or every question is asked as given, and a
random sample in all orders. What all orders would have shown of the questions left out is estimated from the sample, in
two phases (:mod:`unslant.metrics.two_phase`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.accuracy import accuracy
from unslant.metrics.bootstrap import SHARE, Bootstrap, with_swings
from unslant.metrics.estimate import CONFIDENCE, Estimate, with_unseen
from unslant.metrics.registry import QuestionMetric
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import FALLING, two_phase_values

_CHANGED = 1e-9
"""Distance from its prediction beyond which a value counts as changed."""


def extended(scores: OrderScores, values: Floats, predicted: Floats) -> Floats:
    """Values whose mean estimates that of all questions asked in all orders.

    Of N questions that agree, n were drawn at random and asked in all orders (``checked``). A question left out counts
    as predicted from its first answers, and each of the n as predicted + N / n (value - predicted): without bias,
    however few they are. Where the n were drawn of all questions, and are more, the prediction is a regression fitted
    in them, also on whether the answer is right (:func:`~unslant.metrics.two_phase.two_phase_values`). Single values
    can lie outside the range of the metric; only their means say anything.

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


def represented(scores: OrderScores) -> Floats:
    """(Q,) how many questions each that was asked in all orders stands for: itself, and its part of those left out."""
    if scores.stopped is None or scores.checked is None:
        return np.ones(len(scores))
    return np.asarray(1 + scores.stopped.sum() / max(1, scores.checked.sum()) * scores.checked)


def room_left_out(
    value: float, scores: OrderScores, bootstrap: Bootstrap, rows: Bools | Ints | slice = slice(None),
    metric: QuestionMetric | None = None, known: Floats | None = None,
) -> tuple[float, float]:  # fmt: skip
    """How far below and above the mean of :func:`extended` values changes may move it that no question checked shows.

    A question left out is predicted to keep its answer in every order, so the prediction errs in one direction only. If
    none of ten questions that stand for 90 changes its answer, the mean varies as if the 90 were known not to change
    theirs; but ten miss a change that 26 % of such questions have, with 5 % probability. With one change among the ten,
    the values are so skewed that their spread is enough.

    Args:
        value: the mean.
        rows: the questions of the mean and of the bootstrap.
        metric: of the mean; None for a share of questions that is 0 where no order changes the answer.
        known: (Q,) values over all orders, not extended; by default those of the metric.

    Returns:
        Two distances: 0 where there is no such room, nan where none of the rows was asked in all orders.
    """
    stopped, checked = scores.stopped, scores.checked
    swings, bounds = (metric.swings, metric.bounds) if metric else (False, SHARE)
    one_way = not metric or swings or metric.unmoved in bounds or metric.key in FALLING
    if stopped is None or checked is None or not stopped.any() or not one_way:
        return 0.0, 0.0
    if known is None:
        known = metric.values(scores) if metric else np.full(len(scores), np.nan)
    changed = np.abs(known - (metric.predicted(scores) if metric else 0.0))[rows] > _CHANGED
    known, weights = known[rows], np.where(stopped | np.isnan(known), 0.0, represented(scores))[rows]
    asked, ends = weights > 0, (value, value, value)
    if not asked.any():
        return math.nan, math.nan
    if swings:
        low, high = with_swings(ends, (known * weights)[asked], weights[asked], CONFIDENCE)
    elif (changed & checked[rows]).any():
        return 0.0, 0.0
    else:
        size = bootstrap.sampling.effective_units(weights, asked)
        low, high = with_unseen(ends, bounds, size, CONFIDENCE, alike=False)
    return value - low, high - value


def with_left_out(estimate: Estimate, room: tuple[float, float], bounds: tuple[float, float] = SHARE) -> Estimate:
    """The estimate, with an interval for the spread of its values and, independent of that, :func:`room_left_out`."""
    if math.isnan(room[0]) and not math.isnan(estimate.low):
        return Estimate.bare(estimate.value, estimate.n, "none of these questions was asked in all orders: no interval")
    if room == (0.0, 0.0):
        return estimate
    value = estimate.value
    low, high = value - math.hypot(value - estimate.low, room[0]), value + math.hypot(estimate.high - value, room[1])
    return replace(estimate, low=low, high=high).within(*bounds)
