"""When a number may be called higher, lower or the same: one rule for every headline, tile and hypothesis.

A difference is claimed only where the interval excludes the null, after correction for how many numbers were looked at.
No difference is claimed only within a bound that the sentence states. Anything else is unclear, and the sentence says
how many questions would settle it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from unslant.metrics.estimate import Estimate, normal_quantile
from unslant.metrics.sampling import LEAST_UNITS, holm

Kind = Literal["above", "below", "equal", "unclear"]

FEWEST = LEAST_UNITS
"""Questions (models, pairs) below which nothing is claimed, however clear the interval looks."""
POWER = 0.8
MOST_TIMES = 1000
"""A number of questions beyond this many times those at hand is not a prospect, and a noisy guess."""


@dataclass(frozen=True)
class Verdict:
    """What may be said of one estimate.

    Attributes:
        kind: ``above`` or ``below`` the null; ``equal`` to it, to within the bound; or ``unclear``.
        p: two-sided, corrected for how many were looked at; nan without an interval.
        needed: questions on which a distance as large as that measured would settle the matter with probability 0.8;
            None where it is settled, or where no number can be named.
    """

    kind: Kind
    estimate: Estimate
    p: float
    needed: int | None

    @property
    def differs(self) -> bool:
        """Whether a difference may be claimed."""
        return self.kind in ("above", "below")

    @property
    def too_few(self) -> bool:
        """Whether there are too few questions for any claim."""
        return self.estimate.n < FEWEST


def verdict(
    estimate: Estimate, *, null: float = 0.0, bound: float | None = None, looked_at: int = 1, p: float | None = None
) -> Verdict:
    """What may be said of an estimate.

    Equality is shown by two one-sided tests: the whole interval lies within ``bound`` of the null (at 95 % rather than
    the usual 90 %, so that the interval printed next to the claim shows it). A difference within it counts as none.

    Args:
        null: value of no effect: 0 for a difference, chance for an accuracy.
        looked_at: how many numbers this one was picked from (Bonferroni); see also :func:`verdicts`.
        p: of an exact test of the same null, uncorrected; a claim then needs both the test and the interval.

    Example::

        verdict(differences["accuracy"], bound=0.02).kind  # "unclear"
    """
    return _verdict(estimate, null, bound, looked_at * p_of(estimate, null, p), looked_at)


def verdicts(
    estimates: Sequence[Estimate],
    *,
    null: float = 0.0,
    bound: float | None = None,
    p: Sequence[float | None] | None = None,
) -> list[Verdict]:
    """Verdicts on a family of estimates, their differences corrected for their number (Holm 1979).

    Claims of equality are not corrected: that all of a family are equal needs each to be shown at its own level
    (Berger 1982).

    Args:
        p: see :func:`verdict`, one each.
    """
    tests = p or [None] * len(estimates)
    corrected = holm([p_of(one, null, test) for one, test in zip(estimates, tests, strict=True)])
    return [_verdict(one, null, bound, p, len(estimates)) for one, p in zip(estimates, corrected, strict=True)]


def p_of(estimate: Estimate, null: float, test: float | None = None) -> float:
    """Two-sided p-value that the interval implies, or that of an exact test if larger; nan where nothing is claimed.

    Student's t with half as many degrees of freedom as there are questions to spare, like the intervals themselves
    (:meth:`unslant.metrics.sampling.Sampling.degrees`); exactly at the end of the interval it is 1 - confidence.
    """
    if estimate.n < FEWEST or math.isnan(estimate.low) or not math.isfinite(estimate.value):
        return math.nan
    from scipy.special import stdtr, stdtrit

    degrees = (estimate.n - 1) / 2
    gap, half = abs(estimate.value - null), _half(estimate, null)
    p = 1.0
    if gap:
        t = gap / half * float(stdtrit(degrees, 0.5 + estimate.confidence / 2)) if half else math.inf
        p = 2 * float(stdtr(degrees, -t))
    return p if test is None or math.isnan(test) else max(p, test)


def _half(estimate: Estimate, null: float) -> float:
    """Half-width of the interval on the side of the null; of the other side, where it ends at the value."""
    below, above = estimate.value - estimate.low, estimate.high - estimate.value
    return (below or above) if estimate.value > null else (above or below)


def _verdict(estimate: Estimate, null: float, bound: float | None, p: float, looked_at: int) -> Verdict:
    if math.isnan(p):
        return Verdict("unclear", estimate, p, None)
    p = min(1.0, p)
    # Equality goes first: what lies within the bound is none that matters, even where it is significant.
    if bound is not None and null - bound <= estimate.low and estimate.high <= null + bound:
        return Verdict("equal", estimate, p, None)
    if p < 1 - estimate.confidence and estimate.excludes(null):
        return Verdict("above" if estimate.value > null else "below", estimate, p, None)
    return Verdict("unclear", estimate, p, _needed(estimate, null, bound, looked_at))


def _needed(estimate: Estimate, null: float, bound: float | None, looked_at: int) -> int | None:
    """Questions that would settle it: half-widths shrink with the root of their number."""
    gap = abs(estimate.value - null)
    target = max(gap, (bound or 0.0) - gap)  # either end of the question may come within reach first
    each, usual = (normal_quantile(1 - (1 - estimate.confidence) / m) for m in (looked_at, 1))
    wanted = _half(estimate, null) / usual * (each + NormalDist().inv_cdf(POWER))
    if target <= 0 or wanted <= 0 or wanted > math.sqrt(MOST_TIMES) * target:
        return None
    return max(estimate.n + 1, math.ceil(estimate.n * (wanted / target) ** 2))
