"""Intervals of means and ratios over questions, and one set of bootstrap resamples for everything else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats
from unslant.metrics.estimate import (
    CONFIDENCE,
    ROUNDING,
    WILSON,
    Estimate,
    agresti_coull,
    blaker,
    clopper_pearson,
    normal_quantile,
    with_swings,
    with_unseen,
)
from unslant.metrics.sampling import LEAST_UNITS, Sampling
from unslant.metrics.scores import Block, OrderScores, over_orders

RESAMPLES = 1000
"""Resamples, drawn when the first statistic needs them and shared by all."""
_CHUNK = 4_000_000
"""Weights turned into float64 at a time."""

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From column totals, shape (R, F), to one value per resample, shape (R,), or to several, (R, K)."""

Room = Literal["bounds", "bounds, unsure", "unsure"]
"""When an interval has room for questions of a rare kind that the sample missed: where nearly all values are near a
bound; where they are and fewer than five questions are unsure (for numbers that follow from the answers: five show what
the model does when unsure, or ten if all are near a bound; of a difference, wherever none is unsure); or where fewer
than five are unsure, wherever the values are (for shares of answers under a label: a known question gives each 1/n)."""
SHARE, DIFFERENCE, UNBOUNDED = (0.0, 1.0), (-1.0, 1.0), (-math.inf, math.inf)
"""Least and greatest value that a question can have: of shares, of differences of shares, of anything."""
SAME = "the same for every question: no interval"


class Bootstrap:
    """Uncertainty over the questions of a set; see :class:`~unslant.metrics.sampling.Sampling` for what is drawn.

    Args:
        n_questions: number of questions Q.
        subjects, contexts: of each question.
        seed: of the resamples; the same seed and questions give the same intervals.
        across_subjects: whether intervals are for other subjects of the kind, and so wider, instead of for further
            questions of these.
        unsure: (Q,) questions on which the model is known not to settle on an option. Where enough of them
            are among those measured, no interval allows for questions of a rare kind (:func:`with_unseen`).
        part, sets: see :class:`~unslant.metrics.sampling.Sampling`.
    """

    def __init__(
        self,
        n_questions: int,
        subjects: Sequence[str] | None = None,
        *,
        contexts: Sequence[str] | None = None,
        seed: int = 0,
        across_subjects: bool = False,
        unsure: Bools | None = None,
        part: bool = False,
        sets: Sequence[int] | None = None,
    ) -> None:
        self.n_questions, self.seed = n_questions, seed
        self.unsure = np.zeros(n_questions, bool) if unsure is None else unsure
        self.sampling = Sampling(n_questions, subjects, contexts, across_subjects, part=part, sets=sets)
        drawn = subjects if across_subjects else None
        self._unstratified = Sampling(n_questions, drawn, contexts, across_subjects, part=part)

    @classmethod
    def of(cls, scores: OrderScores, *, across_subjects: bool = False) -> Bootstrap:
        """Over the questions of a set of scores."""
        unsure = spread_answers(scores)
        return cls(
            len(scores), scores.subjects, contexts=scores.contexts, across_subjects=across_subjects, unsure=unsure
        )

    def knowing(self, unsure: Bools) -> Bootstrap:
        """The same draws, where these (Q,) questions are unsure."""
        known = copy(self)
        known.unsure = unsure
        return known

    def mean(
        self,
        values: Floats,
        *,
        share: bool = True,
        bounds: tuple[float, float] | None = None,
        swings: bool = False,
        room: Room = "bounds",
        note: str = "",
        confidence: float = CONFIDENCE,
    ) -> Estimate:
        """Mean over the questions with a value (``nan``: has none), with its interval; see :meth:`ratio`.

        Args:
            share: whether values are shares of something; if not, they are differences of shares.
            bounds: least and greatest possible value, if neither. The mean stays within them also where single values
                do not (:func:`~unslant.metrics.two_phase.extended`).
            swings: whether values are 1 or 0, for right or wrong, less a mean over orders or a chance.
            room: see :data:`Room`.
            note: why there is no value, where no question has one.

        Examples:
            >>> round(Bootstrap(100).mean(np.repeat([0.0, 1.0], 50)).high, 3)
            0.596
        """
        defined = ~np.isnan(values)
        numerators, ones = np.where(defined, values, 0.0), defined.astype(np.float64)
        options: dict[str, Any] = {"swings": swings, "room": room, "note": note, "confidence": confidence}
        mean = self.ratio(numerators, ones, share=share, bounds=bounds, **options)
        return mean.within(*bounds) if bounds else mean

    def ratio(
        self,
        numerators: Floats,
        denominators: Floats,
        *,
        share: bool = True,
        bounds: tuple[float, float] | None = None,
        swings: bool = False,
        room: Room = "bounds",
        note: str = "",
        confidence: float = CONFIDENCE,
    ) -> Estimate:
        """Sum of numerators over sum of denominators, (Q,) each, over the questions with a denominator above 0.

        The variance is that of the linearised ratio. What has bounds gets the interval of Agresti and Coull (1998) for
        as many yes-or-no answers as would vary as much, what has none Student's. ``docs/intervals.md`` describes the
        guards around them, and their coverage in a simulation.

        Args:
            share, bounds, swings, room, note: see :meth:`mean`, of a question's ratio.
        """
        counted = denominators > 0
        n = int(counted.sum())
        if n == 0:
            return Estimate.undefined(note or "no question has a value", confidence=confidence)
        total = float(denominators[counted].sum())
        value = float(numerators[counted].sum()) / total
        ratios = numerators[counted] / denominators[counted]
        floor, ceiling = bounds or (SHARE if share else DIFFERENCE)
        if ratios.min() < floor - ROUNDING or ratios.max() > ceiling + ROUNDING:
            floor, ceiling = UNBOUNDED  # values that a regression extends to all questions can lie outside
        value = min(ceiling, max(floor, value))
        width = ceiling - floor
        off = np.minimum(ratios - floor, ceiling - ratios)
        yes_or_no = bool((off <= ROUNDING).all()) and np.ptp(denominators[counted]) == 0
        if n > 1 and (reason := self._too_few(counted)):
            return Estimate.bare(value, n, reason, confidence)
        if n == 1 and not yes_or_no:
            return Estimate.bare(value, n, "one question: no interval", confidence)
        residuals = (numerators - value * denominators) / total
        least = (_ALIKE * min(width, max(1.0, abs(value)))) ** 2 / n
        spread = self._spread(residuals, denominators, least, yes_or_no, confidence, bounded=math.isfinite(width))
        if math.isinf(width):
            if spread is None:
                return Estimate.bare(value, n, SAME, confidence)
            half = spread.quantile * math.sqrt(spread.variance)
            return Estimate(value, value - half, value + half, n, f"Student {self.sampling.words}", confidence)
        size, z = self.sampling.effective_units(denominators, counted), normal_quantile(confidence)
        low, high, at = value, value, (value - floor) / width
        # Of 5 answers, Agresti and Coull's interval covers some shares only 0.895 of the time, of 12 only 0.912;
        # Clopper and Pearson's would be 1.2 times as wide as Blaker's.
        if yes_or_no and n < _FEW and self.sampling.simple(counted):
            low, high = (floor + width * bound for bound in blaker(round(at * n), n, confidence))
            return Estimate(value, min(value, low), max(value, high), n, "Blaker", confidence)
        if spread:
            effective = (n / (n - 1) if yes_or_no else 1.0) * at * (1 - at) * width**2 / spread.variance
            # Each of three intervals holds the mean; the narrowest counts. Where a few questions make up the variance,
            # Student's quantile is that for so few, but bounded values cannot stray farther than yes-or-no answers.
            intervals = (
                agresti_coull(at, effective, spread.quantile),
                agresti_coull(at, size, z),
                clopper_pearson(at, size, confidence, effective=effective),
            )
            low = min(value, floor + width * max(low for low, _ in intervals))
            high = max(value, floor + width * min(high for _, high in intervals))
        difference = floor == -ceiling and room == "bounds, unsure"
        if spread is None or self._rare_may_be_missing(room, counted, off, width, difference):
            # a question that was missed changes one score of a difference of differences, hardly both in opposite ways
            far = max(floor, -1.0), min(ceiling, 1.0)
            low, high = with_unseen((low, value, high), far, size, confidence, alike=spread is None)
        if swings:
            low, high = with_swings((low, value, high), numerators[counted], denominators[counted], confidence)
        method = f"Agresti-Coull {self.sampling.words}" if spread else WILSON
        return Estimate(value, low, high, n, method, confidence)

    def _too_few(self, counted: Bools) -> str:
        """Why there is no interval, where too few contexts or subjects are drawn for one; else empty."""
        few = self.sampling.clustered and self.sampling.units(counted) < LEAST_UNITS
        return f"fewer than {LEAST_UNITS} {self.sampling.drawn}: no interval" if few else ""

    def two_phase(self, values: Floats, known: Floats, shown: int, *, bounds: tuple[float, float]) -> Estimate:
        """Mean of :func:`~unslant.metrics.two_phase.two_phase_values`, with an interval that counts both phases.

        The interval of Agresti and Coull for as many yes-or-no answers as would vary as much, but not much farther than
        Student's, with room for rare questions as in :meth:`ratio`; where all values are the same, for as many as may
        hide among those that are not certain.

        Args:
            known: (Q,) see :func:`~unslant.metrics.two_phase.known_values`.
            shown: questions drawn to be shown in all orders.
            bounds: least and greatest value of a question.
        """
        counted, certain = ~np.isnan(values), known[~np.isnan(known)]
        n, floor, width = int(counted.sum()), bounds[0], bounds[1] - bounds[0]
        if not n:
            return Estimate.undefined("no question was shown in all orders")
        value = min(bounds[1], max(floor, float(values[counted].mean())))
        if reason := self._too_few(counted):
            return Estimate.bare(value, n, reason)
        residuals, least = np.where(counted, values - value, 0.0) / n, (_ALIKE * width) ** 2 / n
        yes_or_no = bool(np.isin(certain, bounds).all())
        spread = self._spread(residuals, counted.astype(np.float64), least, yes_or_no, CONFIDENCE)
        low, high, unseen = value, value, len(certain)
        if spread:
            at = (value - floor) / width
            low, high = agresti_coull(at, at * (1 - at) * width**2 / spread.variance, spread.quantile)
            most = _SKEWED * spread.quantile * math.sqrt(spread.variance)
            low, high, unseen = max(floor + width * low, value - most), min(floor + width * high, value + most), n
        off = np.minimum(values[counted] - floor, bounds[1] - values[counted])
        if spread is None or self._rare_may_be_missing("bounds, unsure", counted, off, width):
            low, high = with_unseen((low, value, high), bounds, unseen, CONFIDENCE, alike=spread is None)
        method = f"two-phase {self.sampling.words}, all orders of {shown:,}"
        return Estimate(value, min(value, low), max(value, high), n, method)

    def _rare_may_be_missing(
        self, room: Room, counted: Bools, off: Floats, width: float, difference: bool = False
    ) -> bool:
        """By the distances ``off`` of the values counted from the nearer bound, and by how many are unsure."""
        # Differences are 0 wherever both are certain, and near it where either slips in one run of five: only questions
        # that are unsure show how large the others' are. One such question makes a skewed sample, and with it Student's
        # quantile, wide enough: with five, models that answer alike would have intervals several times as wide.
        unsure = self.sampling.units(counted & self.unsure)
        if difference or room == "unsure":
            return unsure < (1 if difference else LEAST_UNITS)
        far = off > _AT_BOUND * width
        near = far.sum() < max(LEAST_UNITS, len(off) * _RARE)
        fewest = LEAST_UNITS if (far & self.unsure[counted]).any() else _UNSURE_ALIKE
        return bool(near and (room == "bounds" or unsure < fewest))

    def _spread(
        self, residuals: Floats, weights: Floats, least: float, yes_or_no: bool, confidence: float, bounded: bool = True
    ) -> _Spread | None:
        """The variance of a mean, within subjects or without them; None below ``least``, where all count as alike."""
        counted, residuals = weights > 0, self.sampling.jackknifed(residuals, weights)
        # If ten questions weigh as much as 400 others, the variance is nearly that of the ten (Satterthwaite 1946).
        # Passages that differ little are not as uneven as their sizes.
        most = self.sampling.effective_units(weights if self.sampling.clustered else weights**2, counted)
        # Many subjects of a few questions can agree but for one question, which says next to nothing about the
        # variance, and has few degrees of freedom. Proportional strata add no variance, so that without them is a
        # bound, and the narrower interval counts.
        spreads = []
        for sampling in (self.sampling, self._unstratified)[: 1 + self.sampling.stratified]:
            variance = float(sampling.variance(residuals, counted))
            if variance > least:
                plain = yes_or_no and sampling.simple(counted)
                degrees = math.inf if plain else min(most, sampling.degrees(residuals, counted, bounded=bounded))
                spreads.append(_Spread(variance, student_quantile(confidence, degrees)))
        return min(spreads, key=lambda spread: spread.quantile**2 * spread.variance, default=None)

    @cached_property
    def _draws(self) -> NDArray[np.uint8]:
        return self.sampling.draws(RESAMPLES, self.seed)

    def totals(self, features: Floats) -> Floats:
        """Column totals of ``features`` (Q, F) in every resample: (R, F)."""
        step = max(1, _CHUNK // max(1, self.n_questions))
        rows = (self.sampling.weights(self._draws[r : r + step]) for r in range(0, RESAMPLES, step))
        return np.concatenate([weights @ features for weights in rows])

    def statistic(
        self,
        features: Floats,
        function: Statistic,
        n: int,
        *,
        low: float = -math.inf,
        high: float = math.inf,
        unseen: Floats | None = None,
    ) -> Estimate:
        """Any function of column totals, or the largest of several, with its bootstrap interval, cut to ``low..high``.

        The interval of one is percentile, with wider percentiles where few units are drawn; see
        :meth:`~unslant.metrics.sampling.Sampling.bootstrap_quantile`. The largest of several overstates: the one that
        was lucky counts. Its interval begins at the largest of lower bounds that hold for all at once (from resamples
        of the largest standardised deviation) and ends at the largest of the upper bounds, among them that of the
        truly largest.

        Args:
            features: (Q, F); a question without a value contributes zeros.
            function: see :data:`Statistic`; ``nan`` where a resample leaves the statistic undefined.
            n: N to report.
            unseen: (K, F) features of one question of each kind that there may be. Resamples have only the kinds that
                were seen; with this, each also gets about two units of these kinds, more or fewer at random.

        Returns:
            No interval where resamples do not differ, or where fewer than eight units are drawn.
        """
        if n == 0:
            return Estimate.undefined("no question has a value")
        values = np.atleast_1d(function(features.sum(axis=0, keepdims=True))[0])
        value = float(values.max())
        if math.isnan(value):
            return Estimate.undefined("undefined for these answers", n)
        counted = np.asarray(features.any(axis=1))
        if self.sampling.units(counted) < _LEAST_RESAMPLED:
            reason = f"fewer than {_LEAST_RESAMPLED} {self.sampling.drawn}: no interval"
            return Estimate.bare(value, n, reason)
        totals = self.totals(features)
        if unseen is not None:
            weights = np.random.default_rng(self.seed).gamma(_UNSEEN / len(unseen), size=(RESAMPLES, len(unseen)))
            totals += weights @ unseen * (counted.sum() / self.sampling.units(counted))
        samples = function(totals).reshape(RESAMPLES, -1)
        samples = samples[np.isfinite(samples).all(axis=1)]
        if len(samples) < RESAMPLES / 2 or np.ptp(samples, axis=0).max() <= 1e-12 * max(1.0, abs(value)):
            return Estimate.bare(value, n, "too few different questions for an interval")
        method = f"bootstrap {self.sampling.words}"
        quantile = self.sampling.bootstrap_quantile(CONFIDENCE, counted)
        if len(values) == 1:
            tail = NormalDist().cdf(-quantile)
            below, above = np.quantile(samples, (tail, 1 - tail)).tolist()
        else:
            errors, method = samples.std(axis=0, ddof=1), f"{method}, bounds that hold for all"
            off = np.divide(samples - values, errors, out=np.zeros_like(samples), where=errors > 0).max(axis=1)
            together = float(np.quantile(off, 0.5 + CONFIDENCE / 2)) / normal_quantile(CONFIDENCE)
            below = float((values - max(1.0, together) * quantile * errors).max())
            above = float((values + quantile * errors).max())
        below, above = min(value, max(low, below)), max(value, min(high, above))
        if below == above:
            return Estimate.bare(value, n, "at the edge of its range: no interval")
        return Estimate(value, below, above, n, method)


_LEAST_RESAMPLED = 8
"""Units from which resamples show what another draw would give: the widest percentiles of five passages cover 0.86."""
_UNSEEN = 2.0
"""Units of unseen kinds that each resample gets: with one, kappa of raters that agree on nearly all has intervals up to
1.1 times as wide; with four, they cover 0.90."""
_SKEWED = 1.3
"""Student half-widths that an interval of two phases reaches at most: near a bound, Agresti and Coull's reaches far."""
_ALIKE = 1e-3
"""Values whose standard deviation is less than this part of their range count as the same."""
_FEW = 50
"""Yes-or-no answers from which Agresti and Coull's interval, the narrower one, covers every share at least 0.932."""
_AT_BOUND = 0.19
"""Values nearer than this part of their range count as near a bound: a model 0.95 sure has a normalised PBM of 0.1,
while a fifth, what each of five options gets of a fair model, is off."""
SETTLED = 0.6
"""Share of the answers to a question, averaged over orders, with which the model settles on an option. Models that are
0.95 sure of what they know average more than 0.7 on it when a label pulls; always A averages 1/n."""
_UNSURE_ALIKE = 10
"""As many unsure questions are needed where all are as near a bound as known ones, because others may not be. If one in
five is not, five show one with a probability of 0.67, and ten with 0.89."""
_RARE = 0.3
"""With less than this share of values (or fewer than :data:`LEAST_UNITS`) off the bounds, more may be missing."""


def spread_answers(scores: OrderScores) -> Bools:
    """(Q,) questions whose answers, averaged over their orders, are shared among options: one that always takes A among
    them, however certain each answer is, and one that takes the same wrong option with little certainty."""

    def largest(block: Block) -> Floats:
        means = block.probs.mean(axis=1)
        return np.asarray(means.max(axis=1) / np.maximum(means.sum(axis=1), ROUNDING))

    return np.asarray(over_orders(scores, largest, least=2) < SETTLED)


class _Spread(NamedTuple):
    """Variance of a mean, and the quantile that its root is multiplied by."""

    variance: float
    quantile: float


def student_quantile(confidence: float, degrees: float) -> float:
    """Two-sided quantile of Student's t."""
    if math.isinf(degrees):
        return normal_quantile(confidence)
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + confidence / 2))
