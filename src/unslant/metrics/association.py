"""Correlations, of numbers and of raters, with their intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate, normal_quantile
from unslant.metrics.registry import Numbers, metric

Kind = Literal["pearson", "spearman", "kendall"]
BY_DEFAULT: tuple[Kind, ...] = ("kendall", "pearson")
MIN_PAIRS = 3
EXACT_BELOW = 10
"""Number of pairs from which p is the usual approximation; below, all n! ways to pair x with y are counted."""


def correlation(
    x: Sequence[float], y: Sequence[float], kind: Kind = "pearson", *, of: str = "pairs"
) -> tuple[Estimate, float]:
    """A correlation over the pairs without nan, with its interval, and the two-sided p-value.

    The interval takes artanh r as normal with variance 1/(n-3) (Fisher) for Pearson's r, (1 + r^2/2)/(n-3) (Bonett and
    Wright 2000) for Spearman's rho, and 0.437/(n-4) (Fieller, Hartley and Pearson 1957) for Kendall's tau-b, or more
    where values are tied or the pairs vary more (:func:`_variance_of_tau`).
    Of fewer than ten pairs, p is exact: the share of all n! ways to pair x with y whose correlation is as far from 0.
    For more, it is the usual approximation, but at least 2/n!, the exact p of two rankings that agree completely.

    Args:
        of: what the pairs are, for the notes.

    Raises:
        ValueError: if ``x`` and ``y`` differ in length.
    """
    pairs = np.array([(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))])
    n = len(pairs)
    if n < MIN_PAIRS:
        return Estimate.undefined(f"needs {MIN_PAIRS} {of} or more, there are {n}", n), math.nan
    if (np.ptp(pairs, axis=0) == 0).any():
        return Estimate.undefined(f"all {of} have the same value", n), math.nan
    from scipy import stats

    test = getattr(stats, {"kendall": "kendalltau"}.get(kind, f"{kind}r"))(*pairs.T)
    r = float(test.statistic)
    if n < EXACT_BELOW:
        p = _exact_p(pairs[:, 0], pairs[:, 1], kind)
    else:  # Student's t gives 0 where the ranks agree completely
        p = max(float(test.pvalue), 2 / math.factorial(min(n, 100)))
    less = 4 if kind == "kendall" else 3
    if n <= less or abs(r) > 1 - 1e-9:  # Kendall's of 12 in the same order is 1 but for rounding
        note = f"too few {of} for an interval" if n <= less else "perfect agreement: no interval"
        return Estimate.bare(r, n, note), p
    if kind == "kendall":
        variance = _variance_of_tau(pairs[:, 0], pairs[:, 1], r)
    else:
        variance = (1 + r * r / 2 if kind == "spearman" else 1.0) / (n - less)
    half = normal_quantile(CONFIDENCE) * math.sqrt(variance)
    low, high = (math.tanh(math.atanh(r) + step) for step in (-half, half))
    return Estimate(r, low, high, n, "Fisher z"), p


def _variance_of_tau(x: Floats, y: Floats, tau: float) -> float:
    """Variance of artanh of Kendall's tau-b, the larger of two.

    Fieller's 0.437/(n-4) holds for normal values without ties: scores of three levels without an association vary 1.3
    times as much. It is therefore scaled by the variance that tau-b has over all pairings of these values (Daniels
    1944). That variance assumes no association, and with one it is further off the more values are tied; the other is
    the linearised variance of tau-b, which alone is too small for ten pairs.
    """
    n = len(x)
    a, b = (np.sign(values[:, None] - values) for values in (x, y))
    (rows_a, size_a), (rows_b, size_b) = ((one.sum(axis=1), float((one**2).sum())) for one in (a, b))
    threes = (rows_a @ rows_a / size_a - 1) * (rows_b @ rows_b / size_b - 1) / (n - 2)
    by_chance = (4 * threes + 2) / (n * (n - 1))
    without_ties = 2 * (2 * n + 5) / (9 * n * (n - 1))
    influence = 2 * (a * b).sum(axis=1) / math.sqrt(size_a * size_b)
    influence -= tau * ((a**2).sum(axis=1) / size_a + (b**2).sum(axis=1) / size_b)
    linearised = n / (n - 1) * float(influence @ influence) / (1 - tau**2) ** 2
    return max(0.437 / (n - 4) * float(by_chance) / without_ties, linearised)


def _exact_p(x: Floats, y: Floats, kind: str) -> float:
    """Two-sided p of "x and y are unrelated", over all ways to pair them."""
    orders = _orders(len(x))
    if kind == "kendall":
        pairs = list(combinations(range(len(x)), 2))
        signs = np.sign(y[:, None] - y)
        totals = sum(np.sign(x[i] - x[j]) * signs[orders[:, i], orders[:, j]] for i, j in pairs)
    else:
        if kind == "spearman":
            from scipy.stats import rankdata

            x, y = rankdata(x), rankdata(y)
        totals = ((y - y.mean()) / y.std())[orders] @ ((x - x.mean()) / x.std())
    far = np.abs(np.asarray(totals))
    return float((far >= far[0] - 1e-9).mean())  # the first is the pairing observed; the others differ by rounding too


@lru_cache(maxsize=EXACT_BELOW)
def _orders(n: int) -> NDArray[np.int8]:
    """(n!, n) all orders of n things, the unchanged one first."""
    return np.array(list(permutations(range(n))), np.int8)


@metric("kendall", "Kendall", "rank correlation", digits=2, source="P4 tables 1, 4")
@metric("kendall_p", "p", "of Kendall's rank correlation, two-sided, exact for fewer than ten", unit="p")
@metric("pearson", "Pearson", "correlation", digits=2, source="P4 tables 1, 4")
@metric("pearson_p", "p", "of Pearson's correlation, two-sided, exact for fewer than ten", unit="p")
@metric("spearman", "Spearman", "rank correlation", digits=2, source="P3 fig. 6")
@metric("spearman_p", "Spearman p", "of Spearman's rank correlation, two-sided, exact for fewer than ten", unit="p")
def associate(
    x: Sequence[float], y: Sequence[float], kinds: Sequence[Kind] = BY_DEFAULT, *, of: str = "pairs"
) -> Numbers:
    """Correlations of these kinds over the pairs without nan, with two-sided p-values; see :func:`correlation`."""
    by_kind = {kind: correlation(x, y, kind, of=of) for kind in kinds}
    return Numbers({key: one for kind, (r, p) in by_kind.items() for key, one in ((kind, r), (f"{kind}_p", p))})


@metric("pbm_accuracy.pearson", "PBM against accuracy, r", "Pearson correlation across subjects, or sets and models",
        digits=2, source="P1 sec. 4", short="r")  # fmt: skip
@metric("pbm_accuracy.pearson_p", "p", "of the Pearson correlation, two-sided, exact for fewer than ten", unit="p")
@metric("pbm_accuracy.spearman", "PBM against accuracy, Spearman",
        "rank correlation across subjects, or sets and models", digits=2, short="Spearman", plain=True)  # fmt: skip
@metric("pbm_accuracy.spearman_p", "p", "of the rank correlation, two-sided, exact for fewer than ten", unit="p")
def pbm_accuracy(rows: Sequence[Numbers], *, of: str = "subjects", over: str = "pbm") -> Numbers:
    """PBM against the mean accuracy over orders, of the rows that have both: a label-free sign of difficulty (P1)?

    Args:
        over: key of PBM: ``square_pbm`` for that over a Latin square.
    """
    x, y = ([row[key].value for row in rows] for key in (over, "expected_accuracy"))
    numbers = associate(x, y, ("pearson", "spearman"), of=of)
    return Numbers({f"pbm_accuracy.{metric.key}": value for metric, value in numbers.items()})


def agreement(
    ours: Mapping[str, float], external: Mapping[str, float], kinds: Sequence[Kind] = BY_DEFAULT, *, of: str = "models"
) -> Numbers:
    """Agreement of a ranking of models (or ``of`` others) with another one, over those in both (P4, tables 1 and 4)."""
    shared = sorted(set(ours) & set(external))
    return associate([ours[name] for name in shared], [external[name] for name in shared], kinds, of=of)


def beyond_chance(codes: Floats, bootstrap: Bootstrap, *, pooled: bool = False) -> Estimate:
    """Agreement of raters beyond chance: 1 minus the disagreement observed over that expected, with its interval.

    Args:
        codes: (J, Q) verdict of each rater, 0 for none; items that one rater alone has coded are left out.
        pooled: expected of the verdicts of all raters together (Krippendorff's alpha, of any number of raters), rather
            than of each rater's own (Cohen's kappa, of two).
    """
    codes = np.where((codes > 0).sum(axis=0) > 1, codes, 0)
    kinds, n, items = np.unique(codes[codes > 0]), codes.shape[1], int((codes > 0).any(axis=0).sum())
    if len(kinds) < 2:
        return Estimate.undefined("needs two different verdicts or more", items)
    # A judge and labels that both name the first of two in 90 % of 40 pairs name the second together in none of them in
    # 67 % of the draws. No resample then has such a pair, and kappa's percentiles end below the chance that it is.
    pairs = np.zeros((len(codes), len(kinds) ** 2))
    pairs[0], pairs[1] = np.repeat(kinds, len(kinds)), np.tile(kinds, len(kinds))
    votes = (np.column_stack([codes, pairs])[:, :, None] == kinds).astype(float)  # (J, Q + K^2, K)
    counts = votes.sum(axis=0)
    sizes = counts.sum(axis=1)
    differ = (sizes**2 - (counts**2).sum(axis=1)) / np.maximum(sizes - 1, 1)

    def statistic(totals: Floats) -> Floats:
        by_rater = totals[:, 1:].reshape(len(totals), *votes.shape[::2])  # (resamples, J, K)
        together, total = by_rater.sum(axis=1), by_rater.sum(axis=(1, 2))
        if pooled:
            expected = (total**2 - (together**2).sum(axis=1)) / (total - 1)
        else:
            expected = total - 4 * by_rater.prod(axis=1).sum(axis=1) / total
        undefined = np.full(len(total), np.nan)
        return np.asarray(np.divide(expected - totals[:, 0], expected, out=undefined, where=expected > 0))

    features = np.column_stack([differ, votes.transpose(1, 0, 2).reshape(len(sizes), -1)])
    return bootstrap.statistic(features[:n], statistic, items, low=-1.0, high=1.0, unseen=features[n:])
