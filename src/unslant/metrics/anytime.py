"""Intervals that may be looked at after every question: confidence sequences for means of bounded values."""

from __future__ import annotations

import math

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.estimate import CONFIDENCE

ANYTIME = "anytime-valid, by betting, over questions"
_MOST_STAKED = 0.75
"""Share of the capital that is risked on one question at most."""
_PRECISION = 1e-7
"""Of the ends of an interval, as a share of the range."""


class ConfidenceSequence:
    """The mean of values with bounds, known ever better as questions come, by betting against every other mean.

    Hedged capital (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", Theorem 3):
    for each candidate mean m, one gambler bets that the mean is above m, and another that it is below. At the true
    mean the game is fair, and the chance that a gambler's capital ever grows by a factor of 2/alpha is at most alpha/2
    (Ville 1939). So the means against which neither gambler got there form an interval that holds the truth after
    every question at once with probability 1 - alpha, however one decided to stop. Values need only be bounded and
    come in random order: no normal distribution, no least number of questions.

    The stake on a question depends on earlier ones alone. It is the best one for an interval at ``horizon``; a wrong
    horizon costs width, never coverage. At the horizon the interval reaches sqrt(2 log(2/alpha)) = 2.72 standard errors
    to each side, against 1.96 for a single look at a number of questions fixed beforehand.

    Questions that share a passage count as one draw: the mean is then the ratio of totals and weights. Values may lie
    outside the bounds of their mean (an estimate of each question's, say), by a known part of the range.

    Args:
        bounds: least and greatest possible value.
        confidence: 1 - alpha.
    """

    def __init__(self, bounds: tuple[float, float] = (0.0, 1.0), confidence: float = CONFIDENCE) -> None:
        self.floor, self.range = bounds[0], bounds[1] - bounds[0]
        self.target = math.log(2 / (1 - confidence))
        self._totals, self._weights, self._stakes, self._beyond = (np.zeros(0) for _ in range(4))
        self._sums = np.array([0.5, 1.0])  # one imagined question, as in the paper
        self._squares, self._seen = 0.25, 1.0

    def __len__(self) -> int:
        return len(self._totals)

    def add(self, totals: Floats, weights: Floats, horizon: float, beyond: Floats | None = None) -> None:
        """Further draws, in the order in which they came.

        Args:
            totals: (U,) sum of the values of each draw's questions over the most questions that a draw can have.
            weights: (U,) number of its questions over the same, 0 to 1; all 1 where draws are single questions.
            horizon: number of draws after which one expects to stop, by what was known before these.
            beyond: (U,) how far outside the bounds a value can lie, as a share of the range; by default not at all.
        """
        y = (totals - self.floor * weights) / self.range
        sums = self._sums + np.cumsum(np.stack([y, weights], axis=1), axis=0)
        deviations = (y - weights * sums[:, 0] / sums[:, 1]) ** 2
        squares = self._squares + np.concatenate([[0.0], np.cumsum(deviations)])
        variances = squares / (self._seen + np.arange(len(y) + 1))
        stakes = np.sqrt(2 * self.target / (max(horizon, 1.0) * variances[:-1]))
        self._totals, self._weights = np.concatenate([self._totals, y]), np.concatenate([self._weights, weights])
        self._stakes = np.concatenate([self._stakes, stakes])
        self._beyond = np.concatenate([self._beyond, np.zeros(len(y)) if beyond is None else beyond])
        if len(y):
            self._sums, self._squares, self._seen = sums[-1], float(squares[-1]), self._seen + len(y)

    def interval(self) -> tuple[float, float]:
        """Least and greatest mean that no gambler has won against; the bounds before the first question."""
        low = self._edge(self._totals)
        high = 1 - self._edge(self._weights - self._totals)
        return self.floor + self.range * min(low, high), self.floor + self.range * max(low, high)

    def ever_excluded(self, mean: float) -> bool:
        """Whether the interval was without this mean after any of the questions: looked at after each."""
        m = (mean - self.floor) / self.range
        sides = (self._totals, m), (self._weights - self._totals, 1 - m)
        return any(bool((np.cumsum(self._gains(y, at)) >= self.target).any()) for y, at in sides)

    def _gains(self, y: Floats, m: float) -> Floats:
        """(U,) what each draw adds to the log capital of who bets that the mean of ``y`` is above m."""
        stakes = np.minimum(self._stakes, _MOST_STAKED / np.maximum(m + self._beyond, 1e-12))
        gains: Floats = np.log1p(stakes * (y - self._weights * m))
        return gains

    def _edge(self, y: Floats) -> float:
        """The greatest m that was won against, 0 if none was. The capital falls with m: so does each stake, and by less
        than the value's distance from m where that is lost."""
        from scipy.optimize import brentq

        def ahead(m: float) -> float:
            return float(self._gains(y, m).sum()) - self.target

        if not len(y) or ahead(0.0) <= 0:
            return 0.0
        return float(brentq(ahead, 0.0, 1.0, xtol=_PRECISION)) if ahead(1.0) < 0 else 1.0
