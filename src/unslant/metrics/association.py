"""How two columns of numbers go together: Pearson's r and Kendall's tau, each with its p-value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unslant.arrays import Jsonable
from unslant.metrics.estimate import CONFIDENCE, Estimate

MIN_PAIRS = 3


@dataclass(frozen=True, slots=True)
class Association(Jsonable):
    """Pearson and Kendall correlation of the same pairs.

    Attributes:
        pearson: r with its Fisher-z interval (four pairs or more); ``n`` is the number of pairs.
        kendall: tau-b, which allows for ties, with the interval of Fieller, Hartley and Pearson (1957).
        pearson_p, kendall_p: two-sided p-values; nan where undefined.
    """

    pearson: Estimate
    pearson_p: float
    kendall: Estimate
    kendall_p: float


def associate(x: Sequence[float], y: Sequence[float], confidence: float = CONFIDENCE) -> Association:
    """Correlations over the pairs in which both numbers are defined.

    Raises:
        ValueError: if the two are not equally long.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} numbers beside {len(y)}")
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    n = len(pairs)
    if n < MIN_PAIRS:
        return _undefined(f"needs {MIN_PAIRS} pairs, there are {n}", n, confidence)
    a, b = np.array(pairs, dtype=np.float64).T
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return _undefined("one of the two is the same everywhere", n, confidence)
    from scipy.stats import kendalltau, pearsonr

    pearson, tau = pearsonr(a, b), kendalltau(a, b)
    return Association(
        _fisher(float(pearson.statistic), n, 1.0, 3, confidence),
        float(pearson.pvalue),
        _fisher(float(tau.statistic), n, 0.437, 4, confidence),
        float(tau.pvalue),
    )


def agreement(ours: Mapping[str, float], external: Mapping[str, float], confidence: float = CONFIDENCE) -> Association:
    """Agreement of a ranking of models with another one, over the models in both (P4, table 4)."""
    shared = sorted(set(ours) & set(external))
    return associate([ours[name] for name in shared], [external[name] for name in shared], confidence)


def _fisher(r: float, n: int, scale: float, less: int, confidence: float) -> Estimate:
    """Interval of a correlation through artanh, whose variance is ``scale / (n - less)``."""
    if n <= less or abs(r) >= 1:
        return Estimate(
            r, math.nan, math.nan, n, "none", confidence, "too few pairs for an interval" if n <= less else ""
        )
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(scale / (n - less))
    return Estimate(r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), n, "Fisher z", confidence)


def _undefined(note: str, n: int, confidence: float) -> Association:
    nothing = Estimate.undefined(note, n, confidence)
    return Association(nothing, math.nan, nothing, math.nan)
