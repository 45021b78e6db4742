"""How precise a score will be: intervals and detectable differences of a future run, from variance components."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import CONFIDENCE, normal_quantile
from unslant.metrics.registry import metric

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
        cancels = orders >= positions and not name.startswith("question_")
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


def detectable_difference(
    n: int, mean: float, variance: float, design_effect: float = 1.0, correlation: float = 0.5
) -> float:
    """The least difference between two models' scores that n questions show with a power of 80 %.

    :func:`minimum_detectable_difference` for as many yes-or-no answers as would vary as much.

    Args:
        n: number of questions, at least 1.
        mean, variance, design_effect: as in :func:`half_width`, about those of both models.
        correlation: between their values of a question; 0 for other questions.
    """
    at = (n * mean + 1) / (n + 2)  # a score of 0 or 1 is not a certainty
    smallest = max(variance, at * (1 - at) / (n + 2))
    size = min(_MOST_COMPARED, max(1, round(n * at * (1 - at) / smallest / design_effect)))
    return minimum_detectable_difference(size, accuracy=at, correlation=correlation)


_MOST_COMPARED = 10_000_000


@metric("minimum_difference", "minimum detectable difference, paired",
        "in accuracy to another model on the same questions, power 80 %", digits=2, source="Connor 1987",
        plain=True)  # fmt: skip
@metric("minimum_difference_unpaired", "minimum detectable difference, unpaired",
        "in accuracy to another model on as many other questions, power 80 %", digits=2, plain=True)  # fmt: skip
def minimum_detectable_difference(
    n: int, *, accuracy: float = 0.5, correlation: float = 0.5, power: float = 0.8, confidence: float = CONFIDENCE
) -> float:
    """The least difference in accuracy between two models that n questions show with probability ``power``.

    A difference shows if the exact McNemar test, two-sided at level 1 - ``confidence``, detects it; its power is
    computed exactly. Two models of about the same accuracy a, right on the same questions with correlation r, are
    discordant on a share 2 a (1 - a) (1 - r) of the questions (Connor 1987), or on as many as the difference itself
    where that is more. With a correlation of 0 this is also the difference between two models on n questions *each*,
    not the same.

    Args:
        n: questions, at least 1.
        accuracy: about that of the two; 0.5 asks most.
        correlation: between their being right on a question, below 1; 0.5 is usual between models.

    Returns:
        A difference of shares; 1 where none can show, as with fewer than six questions.

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
    detected = sum(bdtr(most, m, (1 + sign * difference / discordant) / 2) for sign in (-1, 1))
    exactly = bdtrc(m - 1, n, discordant) - np.where(m < n, bdtrc(np.minimum(m, n - 1), n, discordant), 0.0)
    return float((np.where(most >= 0, detected, 0.0) * exactly).sum())
