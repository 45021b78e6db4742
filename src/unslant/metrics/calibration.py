"""Whether answers are right as often as the model is sure of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Ints, Jsonable
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.scores import OrderScores

BINS = 10
_DRAWS, _AT_ONCE = 1000, 2_000_000


@dataclass(frozen=True)
class CalibrationBin(Jsonable):
    """Answers of similar confidence.

    Attributes:
        above, to: their confidence is more than the one (in the first bin it can be 0) and at most the other.
        replies: how many answers these are.
        confidence: mean confidence.
        right: share that is right.
    """

    above: float
    to: float
    replies: int
    confidence: float
    right: Estimate


@dataclass(frozen=True)
class Calibration(Jsonable):
    """Confidence against what is right, over all answers that have both.

    The confidence is the probability of the label chosen among the labels shown, or what a reply states.

    Attributes:
        replies: how many answers these are.
        confidence: mean confidence.
        right: share that is right.
        ece: expected calibration error: in :data:`BINS` bins of equal width, the mean distance between confidence and
            share right, weighted by answers (Guo et al. 2017, eq. 3). Chance alone makes it more than 0.
        ece_by_chance: what it is on average for answers of the same confidence that are right exactly so often.
        p: share of such samples whose ECE is as large (Brocker and Smith 2007): the answers are calibrated. Answers to
            one question, or to questions on one passage, are taken to be right together, which makes it cautious.
        brier: mean squared distance between confidence and 1 (right) or 0 (wrong) (Brier 1950): 0 is perfect, 0.25 is
            saying 0.5 always. Not the sum over all options that lm-eval calls ``brier_score``.
        bins: those with an answer, for the reliability diagram.
    """

    replies: int
    confidence: Estimate
    right: Estimate
    ece: Estimate
    ece_by_chance: float
    p: float
    brier: Estimate
    bins: tuple[CalibrationBin, ...]


def calibration(question: Ints, confidence: Floats, right: Bools, bootstrap: Bootstrap) -> Calibration | None:
    """Calibration of R answers; None if there are none.

    Args:
        question: (R,) row of the question in what ``bootstrap`` resamples.
        confidence: (R,) 0 to 1.
        right: (R,) whether the answer is right.
    """
    if not len(question):
        return None
    size, hit = bootstrap.n_questions, right.astype(np.float64)
    bins = np.clip(np.ceil(np.round(confidence * BINS, 9)).astype(np.int64) - 1, 0, BINS - 1)

    def mean(values: Floats, of: Bools) -> Estimate:
        counts = np.bincount(question[of], minlength=size).astype(np.float64)
        return bootstrap.ratio(np.bincount(question[of], values[of], size).astype(np.float64), counts)

    every = np.ones(len(bins), bool)
    error = float(np.abs(np.bincount(bins, confidence - hit, BINS)).sum() / len(bins))
    chance = _by_chance(bootstrap.sampling.unit[question], bins, confidence, bootstrap.seed)
    return Calibration(
        len(question),
        mean(confidence, every),
        mean(hit, every),
        Estimate.bare(error, len(np.unique(question)), "holds chance as well: no interval"),
        float(chance.mean()),
        float((1 + (chance >= error - 1e-12).sum()) / (1 + len(chance))),
        mean((confidence - hit) ** 2, every),
        tuple(
            CalibrationBin(b / BINS, (b + 1) / BINS, int(of.sum()), float(confidence[of].mean()), mean(hit, of))
            for b in range(BINS)
            if (of := bins == b).any()
        ),
    )


def _by_chance(unit: Ints, bins: Ints, confidence: Floats, seed: int) -> Floats:
    """ECE of samples in which answers of confidence c are right with probability c, all of a unit by the same draw."""
    rng = np.random.default_rng(seed)
    by_bin = np.argsort(bins, kind="stable")
    _, starts = np.unique(bins[by_bin], return_index=True)
    units, unit = np.unique(unit[by_bin], return_inverse=True)
    found: list[Floats] = []
    for size in _portions(len(bins)):
        right = rng.random((size, len(units)))[:, unit] < confidence[by_bin]
        gaps = np.add.reduceat(confidence[by_bin] - right, starts, axis=1)
        found.append(np.abs(gaps).sum(axis=1) / len(bins))
    return np.concatenate(found)


def _portions(answers: int) -> list[int]:
    """Numbers of draws that are made at a time, so that memory stays small."""
    most = min(_DRAWS, max(1, _AT_ONCE // answers))
    return [min(most, _DRAWS - start) for start in range(0, _DRAWS, most)]


def given_calibration(scores: OrderScores, right: Floats, bootstrap: Bootstrap) -> Calibration | None:
    """Calibration of the scored labels under the given order; None for replies, whose probabilities are 0 and 1.

    Args:
        right: (Q,) whether the question is right under the given order; nan where unknown.
    """
    known = np.isfinite(right) & (scores.given.chosen >= 0)
    rows = np.flatnonzero(known & scores.is_scored)
    return calibration(rows, scores.given.probs[rows].max(axis=1), right[rows] > 0, bootstrap)
