"""Questions asked no further once their first two orders agreed, and what the whole set would have scored all the same.

An adaptive audit asks every question as given and reversed. Where the answers differ, it asks all other orders; where
they agree, only for a random sample, the calibration sample. What all orders would have shown of the questions left out
is estimated from that sample (the difference estimator of two-phase sampling: Sarndal, Swensson and Wretman 1992,
ch. 6).
"""

from __future__ import annotations

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.accuracy import correct
from unslant.metrics.measures import QuestionMeasures, measure
from unslant.metrics.scores import OrderScores


def extended(scores: OrderScores, values: Floats, predicted: Floats) -> Floats:
    """Values whose mean estimates, without bias, that of all questions asked in all orders.

    With N agreeing questions, of which a random n were asked in all orders (``checked``), a question left out counts as
    predicted from its two answers, and each of the n as predicted + N / n (value - predicted). Single values can lie
    outside the range of the measure; only their means say anything. Where none of the n differs from its prediction,
    the interval of the mean leaves out that others might.

    Args:
        values: (Q,) of the questions asked in all orders; nan for those left out.
        predicted: (Q,) what the value would be if all orders had the answer of the first two.

    Returns:
        (Q,); all nan where questions were left out and none of the agreeing ones was asked in all orders.
    """
    if scores.stopped is None or scores.checked is None:
        return values
    left_out = scores.stopped & ~np.isnan(predicted)
    checked = scores.checked & ~np.isnan(values) & ~np.isnan(predicted)
    n = int(checked.sum())
    if not left_out.any():
        return values
    if not n:
        return np.full(len(values), np.nan)
    factor = (n + int(left_out.sum())) / n
    result: Floats = np.where(left_out, predicted, values)
    result[checked] = predicted[checked] + factor * (values - predicted)[checked]
    return result


def extended_measures(scores: OrderScores) -> QuestionMeasures:
    """:func:`~unslant.metrics.measures.measure`, with order metrics :func:`extended` to the questions left out."""
    values = measure(scores)
    if scores.stopped is None:
        return values
    right, one, zero = correct(scores, scores.given), np.ones(len(scores)), np.zeros(len(scores))
    predicted = {
        **dict.fromkeys(("expected_accuracy", "robust_accuracy", "vote_accuracy", "hard_vote_accuracy"), right),
        **dict.fromkeys(("pbm", "normalised_pbm", "order_tie_rate", "vote_tie_rate", "order_advantage"), zero),
        "consistency": one,
    }
    return values.map(lambda name, v: extended(scores, v, predicted[name]) if name in predicted else v)
