"""Correlations, with their intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from unslant.arrays import Jsonable
from unslant.metrics.estimate import CONFIDENCE, Estimate

MIN_PAIRS = 3


@dataclass(frozen=True, slots=True)
class Association(Jsonable):
    """Pearson's r and Kendall's tau-b over the same pairs, with two-sided p-values; see :func:`correlation`."""

    pearson: Estimate
    pearson_p: float
    kendall: Estimate
    kendall_p: float


def correlation(
    x: Sequence[float],
    y: Sequence[float],
    kind: Literal["pearson", "spearman", "kendall"] = "pearson",
    *,
    of: str = "pairs",
    confidence: float = CONFIDENCE,
) -> tuple[Estimate, float]:
    """A correlation over the pairs without nan, with its interval, and the two-sided p-value.

    The interval takes artanh r as normal with variance 1/(n-3) (Fisher) for Pearson's r, (1 + r^2/2)/(n-3) (Bonett and
    Wright 2000) for Spearman's rho, and 0.437/(n-4) (Fieller, Hartley and Pearson 1957) for Kendall's tau-b.

    Args:
        of: what the pairs are, for the notes.

    Raises:
        ValueError: if ``x`` and ``y`` differ in length.
    """
    pairs = np.array([(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))])
    n = len(pairs)
    if n < MIN_PAIRS:
        return Estimate.undefined(f"needs {MIN_PAIRS} {of} or more, there are {n}", n, confidence), math.nan
    if (np.ptp(pairs, axis=0) == 0).any():
        return Estimate.undefined(f"all {of} have the same value", n, confidence), math.nan
    from scipy import stats

    found = getattr(stats, {"kendall": "kendalltau"}.get(kind, f"{kind}r"))(*pairs.T)
    r, p = float(found.statistic), float(found.pvalue)
    scale, less = {"pearson": (1.0, 3), "spearman": (1 + r * r / 2, 3), "kendall": (0.437, 4)}[kind]
    if n <= less or abs(r) >= 1:
        note = f"too few {of} for an interval" if n <= less else "perfect agreement: no interval"
        return Estimate(r, math.nan, math.nan, n, "none", confidence, note), p
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(scale / (n - less))
    low, high = (math.tanh(math.atanh(r) + step) for step in (-half, half))
    return Estimate(r, low, high, n, "Fisher z", confidence), p


def associate(x: Sequence[float], y: Sequence[float], *, of: str = "pairs") -> Association:
    """Both correlations over the pairs without nan."""
    return Association(*correlation(x, y, of=of), *correlation(x, y, "kendall", of=of))


def agreement(ours: Mapping[str, float], external: Mapping[str, float]) -> Association:
    """Agreement of a ranking of models with another one, over the models in both (P4, table 4)."""
    shared = sorted(set(ours) & set(external))
    return associate([ours[name] for name in shared], [external[name] for name in shared], of="models")
