"""A number with its interval and its N: the only form in which a metric leaves this package.

With the intervals of proportions, and the one that may be looked at after every question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable

CONFIDENCE = 0.95
BY_DESIGN = "known by design: no interval"


@dataclass(frozen=True, slots=True)
class Estimate(Jsonable):
    """One metric, measured.

    Attributes:
        value: the point estimate; ``nan`` where undefined, and then ``note`` says why; may be ``inf`` (raw CKLD).
        low, high: the interval. It contains ``value`` and is never of zero width; ``nan`` where there is none, and
            then ``note`` says why.
        n: how many questions the value rests on (subjects, for a correlation across subjects).
        method: how the interval was made, in words.
        confidence: coverage the interval aims at.
        note: why the value or its interval is missing, or what to keep in mind when reading it; usually empty.

    Examples:
        >>> accuracy = unslant.audit("fair", "embedded", limit=20).metrics.means["accuracy"]
        >>> accuracy.low <= accuracy.value <= accuracy.high, accuracy.n
        (True, 20)
    """

    value: float
    low: float
    high: float
    n: int
    method: str
    confidence: float = CONFIDENCE
    note: str = ""

    @classmethod
    def undefined(cls, note: str, n: int = 0, confidence: float = CONFIDENCE) -> Estimate:
        """No value, and the reason."""
        return cls(math.nan, math.nan, math.nan, n, "none", confidence, note)

    @classmethod
    def bare(cls, value: float, n: int, note: str, confidence: float = CONFIDENCE) -> Estimate:
        """A value without an interval, and the reason."""
        return cls(value, math.nan, math.nan, n, "none", confidence, note)

    @property
    def defined(self) -> bool:
        """Whether there is a value at all."""
        return not math.isnan(self.value)

    def excludes(self, value: float) -> bool:
        """Whether the interval exists and ``value`` lies outside it."""
        return value < self.low or value > self.high

    def taken_from(self, total: float) -> Estimate:
        """``total`` minus this: of a share 1 minus it, of a difference with 0 the other way round."""
        return replace(self, value=total - self.value, low=total - self.high, high=total - self.low)

    def within(self, least: float, most: float) -> Estimate:
        """The estimate in the range that its metric has; an interval wholly outside keeps its width."""
        if not self.defined:
            return self
        value = min(most, max(least, self.value))
        if math.isnan(self.low):
            return replace(self, value=value)
        low, high = max(least, self.low), min(most, self.high)
        if low >= high:
            width = self.high - self.low
            low, high = max(least, value - width), min(most, value + width)
        return replace(self, low=low, value=value, high=high)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Estimate:
        """The inverse of :meth:`to_dict`."""
        numbers = {name: math.nan if values[name] is None else float(values[name]) for name in ("value", "low", "high")}
        return cls(**{**values, **numbers})


def by_design(values: Floats) -> Estimate:
    """Mean of values that do not depend on any answer, such as the chance of each question; ``nan`` is left out."""
    values = values[~np.isnan(values)]
    if not len(values):
        return Estimate.undefined("no question has a value")
    return Estimate.bare(float(values.mean()), len(values), BY_DESIGN)


def normal_quantile(confidence: float) -> float:
    """Two-sided quantile of the normal distribution: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(share: float, n: int, confidence: float = CONFIDENCE) -> Estimate:
    """Wilson score interval of a proportion (Wilson 1927).

    Args:
        share: the observed proportion, 0 to 1.
        n: number of questions, at least 1.

    Raises:
        ValueError: if ``share`` is outside [0, 1] or ``n`` is less than 1.
    """
    if n < 1 or not 0.0 <= share <= 1.0:
        raise ValueError(f"wilson: share {share} of {n} is not a proportion of at least one question")
    z = normal_quantile(confidence)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    low, high = max(0.0, centre - spread), min(1.0, centre + spread)
    return Estimate(share, min(share, low), max(share, high), n, "Wilson", confidence)


def agresti_coull(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Interval of a proportion with ``quantile``^2 answers added, half of them yes (Agresti and Coull 1998)."""
    size = n + quantile**2
    centre = (share * n + quantile**2 / 2) / size
    half = quantile * math.sqrt(centre * (1 - centre) / size)
    return max(0.0, centre - half), min(1.0, centre + half)


def clopper_pearson(
    share: float, n: float, confidence: float = CONFIDENCE, *, effective: float | None = None
) -> tuple[float, float]:
    """Exact interval of a proportion (Clopper and Pearson 1934), or of a mean of values from 0 to 1.

    The exact interval is the Bayesian bootstrap (Rubin 1981) of the answers and one more: "no" for the lower end, "yes"
    for the upper. Gaffke (2005) extends it to any bounded values, and so do Learned-Miller and Thomas (2020), who found
    no population that it covers too rarely. Its distribution of the mean has no closed form; here it is the beta
    distribution with the same mean and variance.

    Args:
        effective: how many yes-or-no answers would vary as much as the values; by default n.
    """
    from scipy.special import betaincinv

    ends, tail = [], (1 - confidence) / 2
    for bound, quantile in ((0.0, tail), (1.0, 1 - tail)):
        mean = (n * share + bound) / (n + 1)
        squares = n**2 * share * (1 - share) / (effective or n) + n / (n + 1) * (bound - share) ** 2
        if 0 < mean < 1:
            size = mean * (1 - mean) * (n + 1) * (n + 2) / squares - 1
            bound = float(betaincinv(mean * size, (1 - mean) * size, quantile))
        ends.append(bound)
    return ends[0], ends[1]


@lru_cache(maxsize=4096)
def blaker(yes: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact interval of a proportion (Blaker 2000), within Clopper and Pearson's: never covers less than it says.

    It holds every p at which the outcomes of tails as improbable as that observed, on either side, together have more
    than 1 - ``confidence``. Clopper and Pearson give each tail half of that. Bounds are rounded outwards, by 1e-4.

    Examples:
        >>> round(blaker(5, 5)[0], 3)
        0.5
    """
    from scipy.special import bdtr

    def holds(p: Floats) -> Bools:
        below = bdtr(np.arange(n + 1.0)[:, None], n, p)
        probs = np.diff(below, axis=0, prepend=0.0)
        tails = np.minimum(below, 1 - below + probs)
        return np.asarray(np.where(tails <= tails[yes] * (1 + 1e-9), probs, 0.0).sum(axis=0) > 1 - confidence)

    bounds = []
    for outside in (0.0, 1.0):
        p = np.linspace(outside, yes / n, 401)
        for _ in range(2):  # from the outside in: the interval has gaps
            first = max(1, int(holds(p).argmax()))
            p = np.linspace(p[first - 1], p[first], 41)
        bounds.append(float(p[0]))
    return bounds[0], bounds[1]


ANYTIME = "anytime-valid, by betting, over questions"
_MOST_STAKED = 0.75
"""Share of the capital that is risked on one question at most."""
_PRECISION = 1e-7
"""Of the ends of an interval, as a share of the range."""


class ConfidenceSequence:
    """The mean of bounded values, ever more precise as questions come, by betting against every other mean.

    Hedged capital (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", Theorem 3):
    for each candidate mean m, one gambler bets that the mean is above m, and another that it is below. At the true
    mean the game is fair, and the chance that a gambler's capital ever grows by a factor of 2/alpha is at most alpha/2
    (Ville 1939). So the means against which neither gambler got there form an interval that holds the truth after
    every question at once with probability 1 - alpha, however one decided to stop. Values need only be bounded and
    come in random order: no normal distribution, no least number of questions.

    The stake on a question is the best one for an interval at ``horizon``; a wrong horizon costs width, never
    coverage. At the horizon the interval reaches sqrt(2 log(2/alpha)) = 2.72 standard errors
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
        # each stake depends on the draws before it alone: only so does the capital stay a fair game
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
        """Whether the interval was without this mean after any of the questions."""
        m = (mean - self.floor) / self.range
        sides = (self._totals, m), (self._weights - self._totals, 1 - m)
        return any(bool((np.cumsum(self._gains(y, at)) >= self.target).any()) for y, at in sides)

    def _gains(self, y: Floats, m: float) -> Floats:
        """(U,) what each draw adds to the log capital of who bets that the mean of ``y`` is above m."""
        stakes = np.minimum(self._stakes, _MOST_STAKED / np.maximum(m + self._beyond, 1e-12))
        gains: Floats = np.log1p(stakes * (y - self._weights * m))
        return gains

    def _edge(self, y: Floats) -> float:
        """The greatest m that was won against, 0 if none was."""
        from scipy.optimize import brentq

        # The capital falls with m, so that there is one root: so does each stake, and by less than the value's distance
        # from m where that is lost.
        def ahead(m: float) -> float:
            return float(self._gains(y, m).sum()) - self.target

        if not len(y) or ahead(0.0) <= 0:
            return 0.0
        return float(brentq(ahead, 0.0, 1.0, xtol=_PRECISION)) if ahead(1.0) < 0 else 1.0
