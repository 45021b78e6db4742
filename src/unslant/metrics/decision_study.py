"""How precise a score will be: the interval of a future run, from variance components."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap

QUESTION, ORDER, REPEAT, PAGE = "question", "order", "repeat", "question_order"
PLACE = "place"
"""Label and position together, where no page shows a label in another position."""
_MOST_COMPUTED = 20_000
"""Questions; of more, an interval narrows with the root of their number."""


def between_questions(
    components: Mapping[str, float], positions: float, orders: float, repeats: float = 1.0
) -> dict[str, float]:
    """What each component adds to the variance, between questions, of their mean over some orders.

    A decision study (Brennan 2001, sec. 4.2). In K orders that put every option in every one of n positions equally
    often, main effects of positions and labels cancel, interactions with the question are divided by n, those with the
    order by K, and repeats by K R. Of fewer orders than positions, all are divided by K, and nothing cancels.

    Args:
        components: component -> variance.
        positions: n.
        orders: K.
        repeats: R, replies to each page.

    Returns:
        Component -> variance; the sum over the number of questions is the variance of the score.
    """
    divisors = {QUESTION: 1.0, PAGE: orders, REPEAT: orders * repeats}

    def divisor(name: str) -> float:
        cancels = orders > positions * (1 - 1e-9) and not name.startswith("question_")
        return divisors.get(name, math.inf if cancels else min(orders, positions))

    return {name: variance / divisor(name) for name, variance in components.items()}


def half_width(n: int, mean: float, variance: float, design_effect: float = 1.0) -> float:
    """Half-width of the 95 % interval that a score on n questions will have: that of :meth:`Bootstrap.mean`.

    The interval is computed for n questions whose values are the quantiles of a beta distribution with this mean and
    variance (right or wrong, where the variance is that of yes-or-no answers).

    Args:
        n: number of questions, at least 1.
        mean: expected score, 0 to 1.
        variance: between questions; at most mean (1 - mean).
        design_effect: see :class:`VarianceComponents`.

    Examples:
        >>> round(half_width(100, 0.5, 0.25), 3)
        0.096
    """
    size = max(1, round(n / design_effect))
    computed = min(size, _MOST_COMPUTED)
    score = Bootstrap(computed).mean(_values(computed, mean, variance))
    return (score.high - score.low) / 2 * math.sqrt(computed / size)


def _values(n: int, mean: float, variance: float) -> Floats:
    """(n,) sorted values of questions with a mean and a variance."""
    largest = mean * (1 - mean)
    if variance >= (1 - 1e-6) * largest:
        return (np.arange(n) >= n - round(n * mean)).astype(np.float64)
    if variance <= 1e-6 * largest:
        return np.full(n, mean)
    from scipy.special import betaincinv

    size = largest / variance - 1
    return np.asarray(betaincinv(mean * size, (1 - mean) * size, (np.arange(n) + 0.5) / n))
