"""P5's own correlation, within each subject over the labels, and its change under the counterfactual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, json_number
from unslant.metrics.estimate import CONFIDENCE, Estimate
from unslant.metrics.registry import metric
from unslant.studies.base_rate.gold_labels import GoldAccuracy

_MIN_LABELS = 3
MIN_SUBJECTS = 6
"""Fewer subjects allow no 95 % interval of a median."""


@dataclass(frozen=True)
class SubjectCorrelation:
    """Pearson's r between the labels' base rates and the accuracy on their questions, subject by subject.

    This is the correlation of P5 (figure 1, bottom row, and its notebook). The base rates are those of the cloze, even
    where the accuracies are the counterfactual's: the question is whether they still show.

    Attributes:
        subjects: the S subjects where r is defined.
        r: (S,) correlations, each over at least three labels with questions in the subject.
        median: of ``r``; N counts subjects, with the interval of the sign test.
        left_out: number of subjects with fewer than three labels, or without variation in base rates or accuracies.
    """

    subjects: tuple[str, ...]
    r: Floats
    median: Estimate
    left_out: int

    def to_dict(self) -> dict[str, object]:
        return {
            "median": self.median.to_dict(),
            "quartiles": [json_number(float(q)) for q in np.quantile(self.r, (0.25, 0.75))] if len(self.r) else None,
            "left_out": self.left_out,
            "by_subject": dict(zip(self.subjects, self.r.tolist(), strict=True)),
        }


@metric(
    "median", "base rate against accuracy, median r", "over subjects, of r within each", digits=2, source="P5 fig. 1"
)
@metric(
    "subject_correlation_cloze_base_rates.by_subject",
    "r within a subject",
    "over its labels",
    digits=2,
    source="P5 fig. 1",
)
def subject_correlation(rates: Floats, gold: GoldAccuracy) -> SubjectCorrelation:
    """Correlate the (n,) base rates of the labels with accuracy within each subject."""
    found: dict[str, float] = {}
    for subject, accuracy in zip(gold.subjects, gold.accuracy, strict=True):
        there = np.isfinite(accuracy)
        x, y = rates[there], accuracy[there]
        if there.sum() >= _MIN_LABELS and np.ptp(x) > 0 and np.ptp(y) > 0:
            found[subject] = float(np.corrcoef(x, y)[0, 1])
    r = np.array(list(found.values()))
    return SubjectCorrelation(tuple(found), r, median(r), len(gold.subjects) - len(found))


def median(values: Floats) -> Estimate:
    """The median with the distribution-free 95 % interval of the sign test; five or fewer values have none."""
    from scipy import stats

    n = len(values)
    if not n:
        return Estimate.undefined("no subject has a correlation")
    ranked = np.sort(values)
    k = int(stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    middle = float(np.median(values))
    if k < 1:
        return Estimate(middle, np.nan, np.nan, n, "none", note="too few subjects for an interval")
    low, high = float(ranked[k - 1]), float(ranked[n - k])
    if low == high:
        return Estimate(middle, np.nan, np.nan, n, "none", note="most subjects have exactly this value: no interval")
    return Estimate(middle, low, high, n, "sign test")


def weaker(before: SubjectCorrelation, after: SubjectCorrelation) -> tuple[Estimate, float]:
    """Median drop in r within subjects, with its interval, and the two-sided p-value of Wilcoxon's signed-rank test."""
    from scipy import stats

    second = dict(zip(after.subjects, after.r.tolist(), strict=True))
    pairs = [(r, second[s]) for s, r in zip(before.subjects, before.r.tolist(), strict=True) if s in second]
    drop = np.array([first - then for first, then in pairs])
    if len(drop) < 2 or not np.any(drop):
        return median(drop), float("nan")
    return median(drop), float(stats.wilcoxon(drop).pvalue)
