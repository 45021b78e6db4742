"""Bootstrap over questions, or over subjects where there are enough of them; one set of resamples for all metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.metrics.estimate import CONFIDENCE, Estimate, wilson

RESAMPLES = 1000
MIN_CLUSTERS = 10
"""Subjects are resampled whole from this many on; with fewer, an interval over subjects would mean little."""
_CHUNK = 4_000_000  # resample counts turned into floats at a time

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From column totals, shape (R, F), to one value per resample, shape (R,)."""


class Bootstrap:
    """Resamples of a set of questions, drawn once and shared by every metric (so that differences are paired).

    Args:
        n_questions: number of questions Q.
        subjects: subject of each question; resampled whole where there are at least ``MIN_CLUSTERS`` different ones.
        resamples: number of resamples R.
        seed: the same seed and questions give the same intervals.
    """

    def __init__(
        self,
        n_questions: int,
        subjects: Sequence[str] | None = None,
        *,
        resamples: int = RESAMPLES,
        seed: int = 0,
        confidence: float = CONFIDENCE,
    ) -> None:
        self.n_questions, self.resamples, self.seed, self.confidence = n_questions, resamples, seed, confidence
        self.unit = np.arange(n_questions)
        self.clustered = False
        if subjects is not None:
            _, codes = np.unique(np.asarray(subjects, dtype=str), return_inverse=True)
            if n_questions and codes.max() + 1 >= MIN_CLUSTERS:
                self.unit, self.clustered = codes, True
        self.n_units = int(self.unit.max()) + 1 if n_questions else 0
        self._counts: NDArray[np.uint16] | None = None

    @property
    def method(self) -> str:
        return f"bootstrap over {'subjects' if self.clustered else 'questions'}"

    def _unit_totals(self, features: Floats) -> Floats:
        if not self.clustered:
            return features
        totals = np.zeros((self.n_units, features.shape[1]))
        np.add.at(totals, self.unit, features)
        return totals

    def totals(self, features: Floats) -> Floats:
        """Column totals of ``features`` (Q, F) in every resample: shape (R, F)."""
        units = self._unit_totals(features)
        if self._counts is None:
            rng = np.random.default_rng(self.seed)
            counts = np.empty((self.resamples, self.n_units), np.uint16)
            for r in range(self.resamples):
                counts[r] = np.bincount(rng.integers(self.n_units, size=self.n_units), minlength=self.n_units)
            self._counts = counts
        step = max(1, _CHUNK // max(1, self.n_units))
        parts = [self._counts[r : r + step].astype(np.float64) @ units for r in range(0, self.resamples, step)]
        return np.concatenate(parts)

    def mean(self, values: Floats, *, share: bool = True, note: str = "", confidence: float | None = None) -> Estimate:
        """Mean over the questions with a value (``nan``: has none), with its interval.

        Values that are all 0 or 1 are a proportion: Wilson interval, with the number of questions reduced by the
        design effect where questions are clustered by subject. All other means: percentile bootstrap.

        Args:
            share: whether values are shares of something, 0 to 1. If not (differences, variances), always bootstrap.
        """
        confidence = confidence or self.confidence
        defined = ~np.isnan(values)
        n = int(defined.sum())
        if n == 0:
            return Estimate.undefined(note or "no question has a value", confidence=confidence)
        kept = values[defined]
        value = float(kept.mean())
        if share and np.isin(kept, (0.0, 1.0)).all():
            return self._proportion(value, values, defined, confidence, note)
        totals = self.totals(np.column_stack([np.where(defined, values, 0.0), defined.astype(np.float64)]))
        with np.errstate(invalid="ignore"):
            samples = totals[:, 0] / totals[:, 1]
        return self._interval(value, samples, n, confidence, note)

    def _proportion(
        self, share: float, values: Floats, defined: NDArray[np.bool_], confidence: float, note: str
    ) -> Estimate:
        n = int(defined.sum())
        share = min(1.0, max(0.0, share))
        effective, method = float(n), "Wilson"
        if self.clustered:
            method = "Wilson, clustered by subject"
            residual = np.where(defined, values - share, 0.0)
            sums = self._unit_totals(residual[:, None])[:, 0]
            units = np.unique(self.unit[defined]).size
            if units > 1 and 0 < share < 1:
                variance = float(sums @ sums) / n**2 * units / (units - 1)
                effective = n / max(1.0, variance / (share * (1 - share) / n))
        result = wilson(share, n, effective_n=effective, confidence=confidence, method=method)
        return Estimate(share, result.low, result.high, n, method, confidence, note)

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
        """Any function of column totals, with its bootstrap interval.

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
        samples = function(self.totals(features))
        return self._interval(value, samples, n, self.confidence, note, reflect, low, high)

    def _interval(
        self,
        value: float,
        samples: Floats,
        n: int,
        confidence: float,
        note: str,
        reflect: float = 0.0,
        floor: float = -math.inf,
        ceiling: float = math.inf,
    ) -> Estimate:
        samples = samples[~np.isnan(samples)]
        if self.n_units < 2 or samples.size < self.resamples / 2:
            reason = "one question: no interval" if n == 1 else "too few questions for an interval"
            return Estimate(value, math.nan, math.nan, n, "none", confidence, note or reason)
        tail = (1 - confidence) / 2
        # inverted_cdf picks a resample as it is: no interpolation between a finite and an infinite one
        below, above = (float(x) for x in np.quantile(samples, (tail, 1 - tail), method="inverted_cdf"))
        method = self.method
        if reflect:
            method += ", reflected"
            centre = 2 * value**reflect
            below, above = (max(0.0, centre - x**reflect) ** (1 / reflect) for x in (above, below))
        below, above = float(max(floor, below)), float(min(ceiling, above))
        return Estimate(value, min(below, value), max(above, value), n, method, confidence, note)
