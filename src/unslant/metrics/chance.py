"""Whether a score is above chance, that of each question being the share of its options that are right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate

LEVEL = 0.05


@dataclass(frozen=True)
class ChanceTest:
    """A score against guessing.

    Attributes:
        excess: score less chance, question by question.
        p: one-sided p-value of "no better than guessing".
        above: whether p is below ``LEVEL``; if not, the score is not above chance.
    """

    excess: Estimate
    p: float
    above: bool


def above_chance(right: Floats, chance: Floats, bootstrap: Bootstrap) -> ChanceTest:
    """Test a score against each question's chance.

    Answers that are right (1) or wrong (0): exact, a sum of independent guesses being a sum of binomials (Poisson
    binomial). Shares of orders: Student's test of the mean difference; where the difference is the same for every
    question, by its interval.

    Args:
        right: (Q,) whether each question is right, or the share of orders in which it is; nan where unknown.
        chance: (Q,) share of its options that are right; nan where none is.
    """
    known = np.isfinite(right) & np.isfinite(chance)
    excess = bootstrap.mean(
        np.where(known, right - chance, np.nan), share=False, note="" if known.any() else "no answer"
    )
    if not known.any():
        return ChanceTest(excess, math.nan, False)
    right, chance = right[known], chance[known]
    if np.isin(right, (0.0, 1.0)).all():
        p = _at_least(int(right.sum()), chance)
    else:
        residuals = np.zeros(len(known))
        residuals[known] = (right - chance - excess.value) / len(right)
        variance = float(bootstrap.sampling.variance(residuals, known))
        if len(right) > 1 and variance > 1e-24:
            from scipy.special import stdtr

            p = float(stdtr(bootstrap.sampling.degrees(residuals, known), -excess.value / math.sqrt(variance)))
        else:
            p = 0.0 if excess.low > 0 else 1.0
    return ChanceTest(excess, p, p < LEVEL)


def _at_least(hits: int, chance: Floats) -> float:
    """Probability of so many hits or more from independent guesses."""
    from scipy.stats import binom

    distribution = np.ones(1)
    for share, count in zip(*np.unique(chance, return_counts=True), strict=True):
        distribution = np.convolve(distribution, binom.pmf(np.arange(count + 1), count, share))
    return float(min(1.0, distribution[hits:].sum()))
