"""A number with its interval and its N: the only form in which a metric leaves this package."""

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
    known = values[~np.isnan(values)]
    if not len(known):
        return Estimate.undefined("no question has a value")
    return Estimate.bare(float(known.mean()), len(known), BY_DESIGN)


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


def clopper_pearson(share: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact interval of a proportion (Clopper and Pearson 1934); of bounded values, a wider one than they need."""
    from scipy.special import betaincinv

    yes, no, tail = share * n, (1 - share) * n, (1 - confidence) / 2
    low = float(betaincinv(yes, no + 1, tail)) if yes > 0 else 0.0
    return low, 1 - float(betaincinv(no, yes + 1, tail)) if no > 0 else 1.0


@lru_cache(maxsize=4096)
def blaker(yes: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact interval of a proportion (Blaker 2000), within Clopper and Pearson's: never covers less than it says.

    It holds every p at which the outcomes of tails as improbable as that observed, on either side, together have more
    than 1 - ``confidence``. Clopper and Pearson give each tail half of that. Bounds are rounded outwards, by 1e-4.
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
