"""Accuracy split by the label of the right option, and what it has to do with the labels' base rates (P5, 3.1.1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, Ints, json_fields
from unslant.metrics import Bootstrap, Estimate, LabelScores, wilson

MODERATE = 0.3
"""H2 asks for a correlation of at least so much (a moderate one after Cohen 1988; 9 % of the variance)."""
_MIN_PAIRS = 3
_ALL_ASSIGNMENTS = 720
_SAMPLED_ASSIGNMENTS = 5_000


@dataclass(frozen=True)
class GoldAccuracy:
    """Accuracy on the questions whose right option stands under each label; ties go to the first label.

    Attributes:
        labels: (n,)
        by_label: accuracy of each label's questions, pooled over subjects.
        gap: highest less lowest of ``by_label``: 0 where no label has a head start.
        subjects: S subject names, sorted.
        accuracy: (S, n) accuracy per subject and label; ``nan`` where a subject has no such question.
        counts: (S, n) questions.
    """

    labels: tuple[str, ...]
    by_label: tuple[Estimate, ...]
    gap: Estimate
    subjects: tuple[str, ...]
    accuracy: Floats
    counts: Ints

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "labels": list(self.labels),
            "by_label": [estimate.to_dict() for estimate in self.by_label],
            "gap": self.gap.to_dict(),
            "by_subject": [
                {
                    "subject": subject,
                    "label": label,
                    "n": int(self.counts[s, i]),
                    "accuracy": _share(self.accuracy[s, i], int(self.counts[s, i])).to_dict(),
                }
                for s, subject in enumerate(self.subjects)
                for i, label in enumerate(self.labels)
            ],
        }


def _share(accuracy: float, n: int) -> Estimate:
    return wilson(float(accuracy), n) if n else Estimate.undefined("no question of this label in this subject")


def gold_accuracy(scores: LabelScores, bootstrap: Bootstrap) -> GoldAccuracy:
    """Split the accuracy of questions with n options each and one right option.

    Args:
        scores: rows with the same number of options; those without exactly one right label are left out.
        bootstrap: over the rows of ``scores``.
    """
    n = int(scores.n_options.max())
    right = scores.correct()
    gold = scores.gold
    by_label = tuple(bootstrap.mean(np.where(gold == i, right, np.nan)) for i in range(n))
    subjects, codes = np.unique(np.asarray(scores.subjects, dtype=str), return_inverse=True)
    counts = np.zeros((len(subjects), n), np.int64)
    sums = np.zeros((len(subjects), n))
    one = gold >= 0
    np.add.at(counts, (codes[one], gold[one]), 1)
    np.add.at(sums, (codes[one], gold[one]), right[one])
    accuracy = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    hits = np.column_stack([np.where(gold == i, np.nan_to_num(right), 0.0) for i in range(n)])
    there = np.column_stack([gold == i for i in range(n)]).astype(np.float64)
    gap = bootstrap.statistic(np.column_stack([hits, there]), _gap, int(one.sum()), reflect=1, low=0, high=1)
    return GoldAccuracy(scores.labels[:n], by_label, gap, tuple(str(s) for s in subjects), accuracy, counts)


def _gap(totals: Floats) -> Floats:
    n = totals.shape[1] // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = totals[:, :n] / totals[:, n:]
    gap: Floats = accuracy.max(axis=1) - accuracy.min(axis=1)
    return gap


@dataclass(frozen=True)
class PooledCorrelation:
    """Pearson correlation between the base rate of a label and the accuracy on its questions.

    Attributes:
        r: over all pairs of subject and label that have questions; N counts pairs, the interval is over subjects
            (resampled whole, since the pairs of a subject belong together). P5's own correlation, one r a subject, is
            :class:`~unslant.studies.base_rate.subject_correlation.SubjectCorrelation`.
        p: two-sided p-value of r for so many independent pairs. The base rates are only n different numbers,
            so this is too small when labels differ in accuracy for any reason; hence the next.
        assignment_p: share of all ways to assign the base rates to the labels under which r is at least as high. With
            n labels it cannot be less than 1/n!.
        pairs: N of ``r``.
        n_subjects: subjects behind them.
        n_labels: labels.
    """

    r: Estimate
    p: float
    assignment_p: float
    pairs: int
    n_subjects: int
    n_labels: int

    @property
    def testable(self) -> bool:
        """Whether there are pairs enough; where base rates or accuracies do not vary, r is undefined all the same."""
        return self.pairs >= _MIN_PAIRS

    @property
    def holds(self) -> bool:
        """Whether accuracy goes with the base rate: r of at least ``MODERATE``, p below 0.05, interval above 0."""
        return self.r.value >= MODERATE and self.p < 0.05 and not self.r.low <= 0

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return json_fields(self, also=("holds",))


def base_rate_correlation(rates: Sequence[float] | Floats, gold: GoldAccuracy, *, seed: int = 0) -> PooledCorrelation:
    """Correlate base rates with accuracy by subject and label.

    Args:
        rates: (n,) base rate of each label of ``gold``.
    """
    rates = np.asarray(rates, np.float64)
    there = gold.counts > 0
    pairs, s, n = int(there.sum()), len(gold.subjects), len(gold.labels)

    def undefined(reason: str) -> PooledCorrelation:
        return PooledCorrelation(Estimate.undefined(reason, pairs), math.nan, math.nan, pairs, s, n)

    if pairs < _MIN_PAIRS:
        return undefined(f"needs at least {_MIN_PAIRS} pairs of subject and label")
    x = np.where(there, rates, 0.0)
    y = np.where(there, gold.accuracy, 0.0)
    features = np.column_stack([a.sum(axis=1) for a in (there.astype(np.float64), x, y, x * x, y * y, x * y)])
    estimate = Bootstrap(s, seed=seed).statistic(features, _pearson, pairs)
    if not estimate.defined:
        return undefined("base rates or accuracies are all the same")
    from scipy import stats

    p = float(stats.pearsonr(x[there], y[there]).pvalue)
    assignments = _assignments(n, seed)
    as_high = 0
    for order in assignments:
        moved = np.where(there, rates[list(order)], 0.0)
        sums = [a.sum() for a in (there.astype(np.float64), moved, y, moved**2, y * y, moved * y)]
        as_high += bool(_pearson(np.array([sums]))[0] >= estimate.value - 1e-9)
    return PooledCorrelation(estimate, p, as_high / len(assignments), pairs, s, n)


def _pearson(totals: Floats) -> Floats:
    """r from the totals of 1, x, y, x^2, y^2 and xy: (R, 6) in, (R,) out; ``nan`` where x or y does not vary."""
    k, x, y, xx, yy, xy = totals.T
    with np.errstate(invalid="ignore", divide="ignore"):
        vx, vy = xx - x * x / k, yy - y * y / k
        r: Floats = (xy - x * y / k) / np.sqrt(np.where((vx > 1e-12 * xx) & (vy > 1e-12 * yy), vx * vy, np.nan))
    return np.clip(r, -1.0, 1.0)


def _assignments(n: int, seed: int) -> list[tuple[int, ...]]:
    if math.factorial(n) <= _ALL_ASSIGNMENTS:
        return list(itertools.permutations(range(n)))
    rng = np.random.default_rng(seed)
    return [tuple(range(n)), *(tuple(rng.permutation(n).tolist()) for _ in range(_SAMPLED_ASSIGNMENTS))]
