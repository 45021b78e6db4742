"""A number with its interval and its N: the only form in which a metric leaves this package.

With the intervals of proportions, and one rule for when a number may be called higher, lower or the same, in every
headline, tile and hypothesis: a difference is claimed only where the interval excludes the null, after correction for
how many numbers were looked at. No difference is claimed only within a bound that the sentence states. Anything else is
unclear, and the sentence says how many questions would settle it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import index
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable
from unslant.metrics.sampling import LEAST_UNITS, holm

CONFIDENCE = 0.95
BY_DESIGN = "known by design: no interval"
WILSON = "Wilson"
"""Method of the interval where all questions are alike."""
ROUNDING = 1e-9
"""Values nearer to a bound are at it: a normalised PBM of 1e-12 is 0."""


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
        """The inverse of :meth:`to_dict`; TypeError, ValueError or KeyError on anything else."""
        numbers = {name: math.nan if values[name] is None else float(values[name]) for name in ("value", "low", "high")}
        return cls(**{**values, **numbers, "n": index(values["n"]), "confidence": float(values["confidence"])})


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
    return Estimate(share, min(share, low), max(share, high), n, WILSON, confidence)


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


def with_unseen(
    interval: tuple[float, float, float], bounds: tuple[float, float], size: float, confidence: float, *, alike: bool
) -> tuple[float, float]:
    """Low and high, with room for questions of a rare kind that the sample missed.

    Of a model that knows 97 %, 20 questions show no unsure one in 54 % of the draws, and the little by which the others
    differ says nothing about those. So where nearly all values are near a bound, or all alike, some of the questions
    may have the value farthest away: as many as can be missed with 5 % probability, about 3/N. Where all are alike, as
    60 right answers are, it is Wilson's bound for a share of 0: there is no spread to widen.
    """
    # When only the last 3 % of the range counted as near, the intervals of models that are 0.95 sure of what they know
    # held the truth in 30 % of the runs. Where many values are off the bounds, the sample has shown both kinds, and the
    # allowance would only make intervals wider (docs/intervals.md proves that no method can do both).
    (low, value, high), z = interval, normal_quantile(confidence)
    # one-sided: questions that were missed on one side cannot make the interval fail on the other
    most = z**2 / (size + z**2) if alike else 1 - (1 - confidence) ** (1 / size)
    return min(low, value - most * (value - bounds[0])), max(high, value + most * (bounds[1] - value))


def with_swings(
    interval: tuple[float, float, float], numerators: Floats, denominators: Floats, confidence: float
) -> tuple[float, float]:
    """Low and high of a mean of "right or wrong less the mean over orders", with room for luck that went one way.

    Where a model takes A of four options, one question in four gains 0.75 and the others lose 0.25. Five such questions
    are without a gain in 24 % of the samples, whose own spread says nothing about it. A question below 0 would be up to
    1 higher, had its answer been right; one above 0 would be at most as much below 0. A share z^2 / (n + z^2) of the n
    questions that are seen may be so (Wilson's bound for a share of 0, one-sided, as in :func:`with_unseen`).
    """
    low, value, high = interval
    rooms, z = [], NormalDist().inv_cdf(confidence)
    for room in ((numerators < -ROUNDING * denominators) * denominators, 2 * np.maximum(numerators, 0.0)):
        total = float(room.sum())
        # by question, also within passages: which of them are right by luck has nothing to do with each other
        size = total**2 / float((room**2).sum()) if total else 1.0
        rooms.append(total / float(denominators.sum()) * z**2 / (size + z**2))
    return max(-1.0, min(low, value - rooms[1])), min(1.0, max(high, value + rooms[0]))


Kind = Literal["above", "below", "equal", "unclear"]

FEWEST = LEAST_UNITS
"""Questions (models, pairs) below which nothing is claimed, however clear the interval looks."""
POWER = 0.8
MOST_TIMES = 1000
"""A needed number of questions beyond this many times those at hand is impractical, and a noisy guess, so not named."""


@dataclass(frozen=True)
class Verdict:
    """The claim that one estimate supports.

    Attributes:
        kind: ``above`` or ``below`` the null; ``equal`` to it, to within the bound; or ``unclear``.
        p: two-sided, corrected for how many estimates were looked at; nan without an interval.
        needed: questions on which a distance as large as that measured would settle the matter with probability 0.8;
            None where it is settled, or where no number can be named.
        null: value of no effect.
        looked_at: how many estimates this one was picked from.
    """

    kind: Kind
    estimate: Estimate
    p: float
    needed: int | None
    null: float = 0.0
    looked_at: int = 1

    @property
    def joint(self) -> Estimate:
        """:meth:`jointly`, of a share or a difference of shares: within its range."""
        return self.jointly().within(0.0 if self.null else -1.0, 1.0)

    def jointly(self) -> Estimate:
        """The estimate with an interval that holds for all that were looked at (Bonferroni), and so also for the one
        that was picked as the largest; a claim keeps it on its side of the null (Strassburger and Bretz 2008)."""
        wide = self.estimate
        if self.looked_at > 1 and wide.n > 1:
            from scipy.special import stdtrit

            tail, degrees = (1 - wide.confidence) / 2, (wide.n - 1) / 2  # as in p_of
            times = float(stdtrit(degrees, 1 - tail / self.looked_at) / stdtrit(degrees, 1 - tail))
            low, high = (wide.value + times * (end - wide.value) for end in (wide.low, wide.high))
            low = max(low, self.null) if self.kind == "above" else low
            high = min(high, self.null) if self.kind == "below" else high
            wide = replace(wide, low=low, high=high)
        return wide

    @property
    def differs(self) -> bool:
        """Whether a difference may be claimed."""
        return self.kind in ("above", "below")

    @property
    def too_few(self) -> bool:
        """Whether there are too few questions for any claim."""
        return self.estimate.n < FEWEST


def yes_or_no(values: Floats) -> bool:
    """Whether all values other than nan are 0 or 1."""
    return bool(np.isin(values[np.isfinite(values)], (0.0, 1.0)).all())


def verdict(
    estimate: Estimate, *, null: float = 0.0, bound: float | None = None, looked_at: int = 1, p: float | None = None
) -> Verdict:
    """The claim that an estimate supports.

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
    # Equality goes first: a difference within the bound does not matter, even where it is significant.
    if bound is not None and null - bound <= estimate.low and estimate.high <= null + bound:
        return Verdict("equal", estimate, p, None, null, looked_at)
    if p < 1 - estimate.confidence and estimate.excludes(null):
        return Verdict("above" if estimate.value > null else "below", estimate, p, None, null, looked_at)
    return Verdict("unclear", estimate, p, _needed(estimate, null, bound, looked_at), null, looked_at)


def _needed(estimate: Estimate, null: float, bound: float | None, looked_at: int) -> int | None:
    """Questions that would settle it: half-widths shrink with the root of their number, or with it where all are alike
    (see :func:`wilson`)."""
    gap = abs(estimate.value - null)
    target = max(gap, (bound or 0.0) - gap)  # a difference or equality may be the first to be shown
    each, usual = (normal_quantile(1 - (1 - estimate.confidence) / m) for m in (looked_at, 1))
    detectable = _half(estimate, null) / usual * (each + NormalDist().inv_cdf(POWER))
    if target <= 0 or detectable <= 0 or detectable > math.sqrt(MOST_TIMES) * target:
        return None
    return max(estimate.n + 1, math.ceil(estimate.n * (detectable / target) ** (1 if estimate.method == WILSON else 2)))
