"""Whether answers are right as often as the model says it is sure of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Ints, Jsonable
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate

BINS = 10


@dataclass(frozen=True)
class Calibration(Jsonable):
    """Stated confidence against what is right, over all replies that state one and name an option.

    Attributes:
        replies: how many these are.
        confidence: mean confidence stated.
        right: share that is right.
        ece: expected calibration error: in :data:`BINS` bins of equal width, the mean distance between confidence and
            share right, weighted by replies (Guo et al. 2017, eq. 3). Above 0 by chance with few replies.
        brier: mean squared distance between confidence and 1 (right) or 0 (wrong) (Brier 1950): 0 is perfect, 0.25 is
            saying 0.5 always.
    """

    replies: int
    confidence: Estimate
    right: Estimate
    ece: Estimate
    brier: Estimate


def calibration(question: Ints, confidence: Floats, right: Bools, bootstrap: Bootstrap) -> Calibration | None:
    """Calibration of R replies; None if there are none.

    Args:
        question: (R,) row of the question in what ``bootstrap`` resamples.
        confidence: (R,) stated, 0 to 1.
        right: (R,) whether the answer is right.
    """
    if not len(question):
        return None
    size = bootstrap.n_questions
    counts = np.bincount(question, minlength=size).astype(np.float64)

    def mean(values: Floats) -> Estimate:
        return bootstrap.ratio(np.bincount(question, values, size).astype(np.float64), counts)

    hit = right.astype(np.float64)
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    gaps = np.abs(np.bincount(bins, confidence - hit, BINS)).sum() / len(bins)
    ece = Estimate.bare(float(gaps), int((counts > 0).sum()), "holds chance as well: no interval")
    return Calibration(len(question), mean(confidence), mean(hit), ece, mean((confidence - hit) ** 2))
