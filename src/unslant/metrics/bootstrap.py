"""Intervals of means and ratios over questions, and one set of bootstrap resamples for everything else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.metrics.estimate import CONFIDENCE, Estimate, normal_quantile, wilson
from unslant.metrics.sampling import LEAST_UNITS, Sampling

if TYPE_CHECKING:
    from unslant.metrics.scores import OrderScores

RESAMPLES = 1000
_CHUNK = 4_000_000  # weights turned into float64 at a time

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From column totals, shape (R, F), to one value per resample, shape (R,)."""

SHARE, DIFFERENCE, UNBOUNDED = (0.0, 1.0), (-1.0, 1.0), (-math.inf, math.inf)
"""Least and greatest value that a question can have: of shares, of differences of shares, of anything."""


class Bootstrap:
    """Uncertainty over the questions of a set; see :class:`~unslant.metrics.sampling.Sampling` for what is drawn.

    Args:
        n_questions: number of questions Q.
        subjects, contexts: of each question.
        resamples: number of resamples R, drawn when the first statistic needs them and shared by all.
        seed: the same seed and questions give the same intervals.
    """

    def __init__(
        self,
        n_questions: int,
        subjects: Sequence[str] | None = None,
        *,
        contexts: Sequence[str] | None = None,
        resamples: int = RESAMPLES,
        seed: int = 0,
        confidence: float = CONFIDENCE,
    ) -> None:
        self.n_questions, self.resamples, self.seed, self.confidence = n_questions, resamples, seed, confidence
        self.sampling, self._unstratified = (
            Sampling(n_questions, subjects, contexts),
            Sampling(n_questions, None, contexts),
        )

    @classmethod
    def of(
        cls, scores: OrderScores, *, resamples: int = RESAMPLES, seed: int = 0, confidence: float = CONFIDENCE
    ) -> Bootstrap:
        """Over the questions of a set of scores."""
        strata, units = scores.subjects, scores.contexts
        return cls(len(scores), strata, contexts=units, resamples=resamples, seed=seed, confidence=confidence)

    def mean(
        self,
        values: Floats,
        *,
        share: bool = True,
        bounds: tuple[float, float] | None = None,
        note: str = "",
        confidence: float | None = None,
    ) -> Estimate:
        """Mean over the questions with a value (``nan``: has none), with its interval; see :meth:`ratio`.

        Args:
            share: whether values are shares of something; if not, they are differences of shares.
            bounds: least and greatest possible value, if neither. The mean stays within them also where single values
                do not (:func:`~unslant.metrics.measures.extended`).
        """
        defined = ~np.isnan(values)
        ones = defined.astype(np.float64)
        found = self.ratio(
            np.where(defined, values, 0.0), ones, share=share, bounds=bounds, note=note, confidence=confidence
        )
        return found.within(*bounds) if bounds else found

    def ratio(
        self,
        numerators: Floats,
        denominators: Floats,
        *,
        share: bool = True,
        bounds: tuple[float, float] | None = None,
        note: str = "",
        confidence: float | None = None,
    ) -> Estimate:
        """Sum of numerators over sum of denominators, (Q,) each, over the questions with a denominator above 0.

        The variance is that of the linearised ratio. What has bounds gets the interval of Agresti and Coull (1998) for
        as many yes-or-no answers as would vary as much (Wilson's where all answers are yes, or all no); what has none
        gets Student's. Where all questions have the same value, others may differ that were not drawn: with 95 %
        confidence no more than z^2 / (N + z^2) of them (Wilson's bound for a share of 0), and the interval is what
        these could make of the mean. ``docs/intervals.md`` has the coverage of all this in a simulation.

        Args:
            share, bounds: see :meth:`mean`, of a question's ratio.
        """
        confidence = confidence or self.confidence
        kept = denominators > 0
        n = int(kept.sum())
        if n == 0:
            return Estimate.undefined(note or "no question has a value", confidence=confidence)
        total = float(denominators[kept].sum())
        value = float(numerators[kept].sum()) / total
        ratios = numerators[kept] / denominators[kept]
        floor, ceiling = bounds or (SHARE if share else DIFFERENCE)
        if ratios.min() < floor - _ROUNDING or ratios.max() > ceiling + _ROUNDING:
            floor, ceiling = UNBOUNDED  # counts, say
        value = min(ceiling, max(floor, value))
        width = ceiling - floor
        yes_or_no = bool(np.isin(ratios, (floor, ceiling)).all()) and np.ptp(denominators[kept]) == 0
        residuals = (numerators - value * denominators) / total
        sampling = self.sampling
        variance = float(sampling.variance(residuals, kept))
        alike = _ALIKE * min(width, max(1.0, abs(value)))
        if sampling.stratified and math.sqrt(variance * n) < alike:  # subjects that are all of a piece
            sampling = self._unstratified
            variance = float(sampling.variance(residuals, kept))
        if n > 1 and sampling.clustered and sampling.units(kept) < LEAST_UNITS:
            return Estimate.bare(value, n, note or f"fewer than {LEAST_UNITS} contexts: no interval", confidence)
        if n == 1 and not yes_or_no:
            return Estimate.bare(value, n, note or "one question: no interval", confidence)
        if n == 1 or math.sqrt(variance * n) < alike:
            return _alike(value, n, sampling.units(kept), floor, ceiling, confidence, note)
        plain = yes_or_no and not (sampling.clustered or sampling.stratified)
        quantile = _quantile(confidence, math.inf if plain else sampling.degrees(residuals, kept))
        if math.isinf(width):
            half = quantile * math.sqrt(variance)
            return Estimate(value, value - half, value + half, n, f"Student {sampling.words}", confidence, note)
        at = (value - floor) / width
        effective = (n / (n - 1) if yes_or_no else 1.0) * at * (1 - at) * width**2 / variance
        size = effective + quantile**2
        centre = (at * effective + quantile**2 / 2) / size
        half = quantile * math.sqrt(centre * (1 - centre) / size)
        low, high = (floor + width * min(1.0, max(0.0, x)) for x in (centre - half, centre + half))
        return Estimate(value, low, high, n, f"Agresti-Coull {sampling.words}", confidence, note)

    @cached_property
    def _draws(self) -> NDArray[np.integer[Any]]:
        return self.sampling.draws(self.resamples, self.seed)

    def totals(self, features: Floats) -> Floats:
        """Column totals of ``features`` (Q, F) in every resample: (R, F)."""
        step = max(1, _CHUNK // max(1, self.n_questions))
        rows = (self.sampling.weights(self._draws[r : r + step]) for r in range(0, self.resamples, step))
        return np.concatenate([weights @ features for weights in rows])

    def statistic(
        self,
        features: Floats,
        function: Statistic,
        n: int,
        *,
        reflect: float = 0.0,
        low: float = -math.inf,
        high: float = math.inf,
        note: str = "",
    ) -> Estimate:
        """Any function of column totals, with its bootstrap interval; none where resamples do not differ.

        Spreads and extremes (standard deviations, divergences, the worst of several) come out larger in a resample
        than in the data, because resampling adds its own noise; a percentile interval would then lie on one side of
        the value and could never hold a true 0. For these, ``reflect`` = p > 0 asks for the basic bootstrap
        (2 v^p - quantiles of v*^p, Davison and Hinkley 1997, eq. 5.6) on the p-th power, cut to ``low``..``high``.

        Args:
            features: (Q, F); a question without a value contributes zeros.
            function: see :data:`Statistic`; ``nan`` where a resample leaves the statistic undefined.
            n: N to report.
        """
        if n == 0:
            return Estimate.undefined(note or "no question has a value", confidence=self.confidence)
        value = float(function(features.sum(axis=0, keepdims=True))[0])
        if math.isnan(value):
            return Estimate.undefined(note or "undefined for these answers", n, self.confidence)
        if not math.isfinite(value) or self.n_questions < 2:
            reason = "one question: no interval" if n == 1 else "no interval"
            return Estimate.bare(value, n, note or reason, self.confidence)
        samples = function(self.totals(features))
        samples = samples[np.isfinite(samples)]
        if samples.size < self.resamples / 2 or np.ptp(samples) <= 1e-12 * max(1.0, abs(value)):
            return Estimate.bare(value, n, note or "too few different questions for an interval", self.confidence)
        tail = (1 - self.confidence) / 2
        below, above = (float(x) for x in np.quantile(samples, (tail, 1 - tail)))
        method = f"bootstrap {self.sampling.words}"
        if reflect:
            method += ", reflected"
            centre = 2 * value**reflect
            below, above = (max(0.0, centre - x**reflect) ** (1 / reflect) for x in (above, below))
        below, above = min(value, max(low, below)), max(value, min(high, above))
        if below == above:
            return Estimate.bare(value, n, note or "at the edge of its range: no interval", self.confidence)
        return Estimate(value, below, above, n, method, self.confidence, note)


_ROUNDING = 1e-9
_ALIKE = 1e-3
"""Values whose standard deviation is less than this part of their range count as the same."""


def _alike(value: float, n: int, units: int, floor: float, ceiling: float, confidence: float, note: str) -> Estimate:
    """What questions (or contexts) that all have the same value leave open."""
    if math.isinf(ceiling - floor):
        return Estimate.bare(value, n, note or "the same for every question: no interval", confidence)
    others = 1 - wilson(1.0, units, confidence=confidence).low
    low, high = value - others * (value - floor), value + others * (ceiling - value)
    return Estimate(value, low, high, n, "Wilson", confidence, note)


def _quantile(confidence: float, degrees: float) -> float:
    """Two-sided quantile of Student's t."""
    if math.isinf(degrees):
        return normal_quantile(confidence)
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + confidence / 2))
