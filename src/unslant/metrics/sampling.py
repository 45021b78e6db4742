"""How the questions of a set came together, and what that means for the uncertainty of a mean over them.

Another set of the same kind would have other questions, or other contexts where questions share one (a passage with
five questions is drawn as a whole). Subjects are strata: a benchmark has all of them, every time. On request subjects
are drawn instead: another benchmark of the kind would have others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats

Codes = NDArray[np.intp]

LEAST_UNITS = 5
"""Units that a stratum needs to be one of its own."""
_ZERO = 1e-12
_MOST_GROUPINGS = 100
_DRAWS_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class _Grouping:
    """The unit of each question counted, the stratum of each unit, and units a stratum."""

    unit: Codes
    stratum: Codes
    sizes: Codes

    @property
    def degrees(self) -> int:
        return len(self.stratum) - len(self.sizes)


class Sampling:
    """Units that are drawn together, in strata that are always there.

    Args:
        n_questions: number of questions Q.
        subjects: stratum of each question.
        contexts: what each question shares with others, such as its passage; empty for a question on its own. Where
            one context covers everything, questions count on their own.
        part: these are some of the questions of a set with several contexts, so that one that covers them all counts.
        across_subjects: draw subjects, each as a whole, instead of questions or contexts within them. Without their
            names, there is one value for each subject.
        sets: those within which subjects are drawn.

    Attributes:
        drawn: what is drawn, in words.
        unit: (Q,) number of the unit of each question.
    """

    def __init__(
        self,
        n_questions: int,
        subjects: Sequence[str] | None = None,
        contexts: Sequence[str] | None = None,
        across_subjects: bool = False,
        *,
        part: bool = False,
        sets: Sequence[int] | None = None,
    ) -> None:
        self._within = "sets" if across_subjects else "subjects"
        if across_subjects:
            subjects, contexts = None if sets is None else [str(s) for s in sets], subjects
        self.unit = np.arange(n_questions)
        if contexts is not None and (len(set(contexts)) > 1 or ((across_subjects or part) and any(contexts))):
            self.unit = codes_of([context or f"\0{q}" for q, context in enumerate(contexts)])
        self.clustered = bool(n_questions and self.unit.max() + 1 < n_questions)
        self.drawn = "contexts" if self.clustered else "questions"
        if across_subjects and (contexts is None or any(contexts)):
            self.drawn = "subjects"
        self._stratum = np.zeros(n_questions, np.intp) if subjects is None else codes_of(subjects)
        self._whole = self._group(np.ones(n_questions, bool))
        self._groupings: dict[bytes, _Grouping] = {}
        self.stratified = len(self._whole.sizes) > 1

    @property
    def words(self) -> str:
        """What is drawn, and within what."""
        return f"over {self.drawn}{f', within {self._within}' if self.stratified else ''}"

    def simple(self, mask: Bools) -> bool:
        """Whether the questions in the mask are drawn one by one, and all from one stratum."""
        group = self._grouping(mask)
        return len(group.sizes) == 1 and len(group.stratum) == mask.sum()

    def units(self, mask: Bools | None = None) -> int:
        """How many there are, of the questions in the mask."""
        return len(self._grouping(mask).stratum)

    def effective_units(self, weights: Floats, mask: Bools) -> float:
        """Units of equal weight whose mean would vary as much (Kish 1965): all of them, where they weigh the same."""
        unit = self._grouping(mask).unit
        totals = np.bincount(unit, weights[mask])
        return float(totals.sum() ** 2 / (totals**2).sum())

    def jackknifed(self, residuals: Floats, weights: Floats) -> Floats:
        """Terms of a ratio (Q,), larger by how far their unit has pulled it towards itself (Bell and McCaffrey 2002).

        A passage with 80 % of the questions is near the mean that it makes: a fifth as far off as from the others. As
        in a jackknife, it counts as far as from these; units of the same size keep their terms.
        """
        if not self.clustered:
            return residuals
        totals = np.bincount(self.unit, weights)
        rest = 1 - totals / totals.sum()
        return residuals * ((1 - 1 / np.count_nonzero(totals)) / np.where(rest > 0, rest, 1.0))[self.unit]

    def variance(self, residuals: Floats, mask: Bools | None = None) -> Floats:
        """Variance of a total from its terms, (Q,) or (Q, F) in, () or (F,) out; ``nan`` where it cannot be known.

        The usual estimate for clusters drawn within strata (Cochran 1977, sec. 5.4 and 9.3): the sum over strata of
        n/(n-1) times the squared deviations of unit totals from their mean.

        Args:
            residuals: terms with mean zero, such as (value - mean) / N for a mean.
            mask: questions that the total rests on; the others' terms are ignored.
        """
        group = self._grouping(mask)
        if not group.degrees:
            return np.full(residuals.shape[1:], np.nan)
        terms = self._deviations(residuals, mask, group)
        sizes = group.sizes[group.stratum].reshape(-1, *[1] * (terms.ndim - 1))
        return np.asarray((terms**2 * (sizes / (sizes - 1))).sum(axis=0))

    def design_effect(self, values: Floats) -> float:
        """The variance of the mean of (Q,) values, some not nan, over that of as many questions drawn independently.

        It is above 1 where questions share passages, below 1 where subjects differ.
        """
        counted = np.isfinite(values)
        n, rest = int(counted.sum()), np.where(counted, values - values[counted].mean(), 0.0)
        between = float((rest**2).sum())
        sampled = float(self.variance(self.jackknifed(rest / n, counted.astype(np.float64)), counted))
        # questions that are all alike do not show how alike those of a passage are: they count as one
        alike = between <= _ZERO * n or math.isnan(sampled)
        return n / self.units(counted) if alike else sampled * n * (n - 1) / between

    def degrees(self, residuals: Floats, mask: Bools | None = None, *, bounded: bool = True) -> float:
        """Degrees of freedom for the mean of (Q,) terms: units less strata, or fewer where few units on one side count.

        Where terms are skewed, a mean that is too low comes with a variance that is. U units whose terms have a
        skewness g count as U / g^2: about as many as differ from all others, on one side. Student's quantile of 25 is
        nearly normal, which is Cochran's rule for when a normal interval will do (1977, sec. 2.15: 25 g^2 units). Long
        tails on both sides only make intervals too wide, so the kurtosis does not count (Cressie 1980, "Relaxing
        assumptions in the one sample t-test").

        Args:
            bounded: whether values have bounds, at which many lie.
        """
        group = self._grouping(mask)
        terms = self._deviations(residuals, mask, group)
        second, third = float((terms**2).mean()), float((terms**3).mean())
        # Where few units differ, or there are few passages, the skewness that they show is too little. Counted whole,
        # the intervals of eight passages of five questions cover down to 0.923, and PBM of ten questions 0.90.
        usual = group.degrees / (2 if bounded or self.clustered else 1)
        return max(1.0, min(usual, len(terms) * second**3 / third**2) if third else usual)

    def bootstrap_quantile(self, confidence: float, mask: Bools) -> float:
        """Standard errors to go to either side of a statistic that is bootstrapped over the questions in the mask.

        Resamples have the variance of :meth:`variance`, but their percentiles are those of a normal distribution where
        few units call for Student's (Hesterberg 2015, "What teachers should know about the bootstrap", sec. 3.2). Half
        the degrees of freedom count, as in :meth:`degrees`: with all of them, kappa of eight passages covers 0.92.
        """
        from scipy.special import stdtrit

        return float(stdtrit(max(1, self._grouping(mask).degrees / 2), 0.5 + confidence / 2))

    def student(self, terms: Floats, mask: Bools) -> tuple[Floats, Floats]:
        """t and two-sided p of "the mean is 0" for (Q, F) terms, over the questions in the mask."""
        from scipy.special import stdtr

        group, total, ones = self._grouping(mask), terms[mask].sum(axis=0), mask.astype(np.float64)
        n, residuals = len(group.stratum), self.jackknifed((terms - total / mask.sum()).T, ones).T
        # a quarter of what one more unit would add that is 0 everywhere: a few of the same kind are no proof
        variance = self.variance(residuals, mask) + (total / n) ** 2 / 4
        t = np.divide(total * n / (n + 1), np.sqrt(variance), out=np.zeros_like(total), where=variance > 0)
        return t, 2 * stdtr(min(group.degrees, self.effective_units(ones, mask)), -np.abs(t))

    def draws(self, resamples: int, seed: int) -> NDArray[np.uint8]:
        """(R, U) how often each unit is drawn in bootstrap resamples: n-1 times from each stratum of n units."""
        rng = np.random.default_rng(seed)
        draws = np.empty((resamples, len(self._whole.stratum)), np.uint8)
        for h, size in enumerate(self._whole.sizes.tolist()):
            units = np.flatnonzero(self._whole.stratum == h)
            step = max(1, _DRAWS_AT_ONCE // size)
            for start in range(0, resamples, step):
                n = min(step, resamples - start)
                picks = rng.integers(size, size=(n, size - 1)) + np.arange(n)[:, None] * size
                # no unit of n is drawn more than 255 times: n - 1 draws among n do that with a probability of 1e-507
                draws[start : start + n, units] = np.bincount(picks.ravel(), minlength=n * size).reshape(n, size)
        return draws

    def weights(self, draws: NDArray[np.uint8]) -> Floats:
        """(R, Q) weights of the questions, each row summing to about Q, from rows of :meth:`draws`."""
        sizes = self._whole.sizes[self._whole.stratum]
        # n/(n-1) for each of n-1 draws (Rao and Wu 1988) gives the bootstrap the variance of :meth:`variance`. Plain
        # resampling within subjects of two questions would see half of it.
        weights: Floats = (draws * (sizes / (sizes - 1))).astype(np.float32).astype(np.float64)
        return weights[:, self._whole.unit] if self.clustered else weights

    def _deviations(self, residuals: Floats, mask: Bools | None, group: _Grouping) -> Floats:
        """Unit totals less the mean of their stratum."""
        terms = residuals if mask is None else residuals[mask]
        if self.clustered:
            terms = _sums(terms, group.unit, len(group.stratum))
        sizes = group.sizes.reshape(-1, *[1] * (terms.ndim - 1))
        return np.asarray(terms - (_sums(terms, group.stratum, len(sizes)) / sizes)[group.stratum])

    def _grouping(self, mask: Bools | None) -> _Grouping:
        if mask is None or mask.all():
            return self._whole
        key = mask.tobytes()
        if key not in self._groupings:
            if len(self._groupings) >= _MOST_GROUPINGS:
                self._groupings.clear()
            self._groupings[key] = self._group(mask)
        return self._groupings[key]

    def _group(self, mask: Bools) -> _Grouping:
        _, first, unit = np.unique(self.unit[mask], return_index=True, return_inverse=True)
        stratum = self._stratum[mask][first]
        sizes = np.bincount(stratum)
        # strata of few units are merged: two of a subject that happen to agree would look like certainty
        small = sizes[stratum] < LEAST_UNITS
        if 0 < small.sum() < LEAST_UNITS:  # too few even together: they go with the largest stratum
            small |= stratum == sizes.argmax()
        _, stratum = np.unique(np.where(small, -1, stratum), return_inverse=True)
        return _Grouping(unit, stratum, np.bincount(stratum))


def by_unit(values: Floats, unit: Codes) -> Floats:
    """Totals over the questions of each unit, (Q, F) in and (U, F) out."""
    _, codes = np.unique(unit, return_inverse=True)
    return _sums(values, codes, int(codes.max(initial=-1)) + 1)


def too_few(unit: Codes) -> bool:
    """Whether questions with these units are of fewer passages than a test needs; a question on its own is enough."""
    return len(np.unique(unit)) < min(LEAST_UNITS, len(unit))


def unit_means(unit: Codes, codes: Codes, *values: Floats) -> tuple[Codes, list[Floats]]:
    """The part that each unit is in (a unit of several parts counts in each), and means over its (Q, F) values."""
    _, first, row = np.unique(np.column_stack([unit, codes]), axis=0, return_index=True, return_inverse=True)
    return codes[first], [by_unit(one, row) / np.bincount(row)[:, None] for one in values]


def moments(values: Floats, codes: Codes) -> tuple[Floats, Floats, Floats]:
    """(G, 1) sizes, (G, F) means and (G, F) variances of groups of (Q, F) values; the variance of one value is nan."""
    sizes = np.bincount(codes)[:, None].astype(np.float64)
    means = _sums(values, codes, len(sizes)) / sizes
    squares = _sums((values - means[codes]) ** 2, codes, len(sizes))
    return sizes, means, np.divide(squares, sizes - 1, out=np.full_like(squares, np.nan), where=sizes > 1)


def brown_forsythe(sizes: Floats, means: Floats, variances: Floats) -> Floats:
    """(F,) p of "groups have the same mean", from :func:`moments` of at least two groups of two values or more.

    Brown and Forsythe (1974), with the degrees of freedom of Mehrotra (1997): a group may vary more than another. By
    the plain F test, a fair model with 12 questions of a subject that it finds hard among 120 easy ones had a habit of
    subjects in two samples of three. Few values may vary little by chance: a group of up to :data:`LEAST_UNITS` + 1
    counts as varying at least as all do together. Else p is 0 where two or five choices of a subject happen to agree.
    """
    from scipy.special import fdtrc

    left, shares = sizes - 1, sizes / sizes.sum()
    pooled = (variances * left).sum(axis=0) / left.sum()
    variances = np.maximum(variances, np.maximum(pooled * np.minimum(1, LEAST_UNITS / left), 1e-9))
    apart = (sizes * (means - (shares * means).sum(axis=0)) ** 2).sum(axis=0)
    by_chance = (1 - shares) * variances
    expected = by_chance.sum(axis=0)
    upper = expected**2 / ((variances**2 * (1 - 2 * shares)).sum(axis=0) + (shares * variances).sum(axis=0) ** 2)
    lower = expected**2 / (by_chance**2 / left).sum(axis=0)
    return np.asarray(fdtrc(upper, lower, apart / expected))


def student(sampling: Sampling, values: Floats) -> tuple[float, float]:
    """t and two-sided p of "the mean is 0" for (Q,) values, without nan; p is nan for fewer than two."""
    finite = np.isfinite(values)
    if finite.sum() < 2:
        return 0.0, math.nan
    t, p = sampling.student(np.nan_to_num(values)[:, None], finite)
    return float(t[0]), float(p[0])


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979); ``nan`` stays and is not counted."""
    ranked = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    corrected, highest = [math.nan] * len(p_values), 0.0
    for rank, (p, i) in enumerate(ranked):
        highest = max(highest, min(1.0, (len(ranked) - rank) * p))
        corrected[i] = highest
    return corrected


def codes_of(names: Sequence[str]) -> Codes:
    """The place of each name among all names, sorted."""
    # numpy would give every name the width of the longest, and one passage can have a million characters
    code = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([code[name] for name in names], np.intp)


def _sums(values: Floats, codes: Codes, groups: int) -> Floats:
    """Totals of the rows of each group."""
    if groups == 1:
        return np.asarray(values.sum(axis=0, keepdims=True))
    if values.ndim == 1:
        return np.asarray(np.bincount(codes, values, groups), np.float64)
    totals = np.zeros((groups, *values.shape[1:]))
    np.add.at(totals, codes, values)
    return totals
