"""Whether answers are right as often as the model is sure of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Ints, Jsonable
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.registry import Measured, Numbers, metric
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
class Calibration(Measured):
    """Confidence against what is right, over all answers that have both.

    The confidence is the probability of the label chosen among the labels shown, or what a reply states.

    Attributes:
        replies: how many answers these are.
        numbers: see :func:`calibration`.
        bins: those with an answer, for the reliability diagram.
    """

    replies: int
    numbers: Numbers
    bins: tuple[CalibrationBin, ...]


@metric("calibration.confidence", "confidence", "of the label chosen, given order, or as the reply states",
        unit="share")  # fmt: skip
@metric("calibration.right", "right, of these", "share right of the answers with a confidence", unit="share")
@metric("calibration.ece", "ECE", "distance of confidence from the share right, in ten equal bins",
        unit="share", source="Guo et al. 2017")  # fmt: skip
@metric("calibration.ece_by_chance", "ECE by chance", "what ECE would be were the confidence right",
        unit="share", plain=True)  # fmt: skip
@metric("calibration.p", "p", "answers are right as often as the confidence says", unit="p",
        source="Bröcker and Smith 2007")  # fmt: skip
@metric("calibration.brier", "Brier score", "squared distance of confidence from right (1) or wrong (0)",
        unit="share", source="Brier 1950")  # fmt: skip
def calibration(question: Ints, confidence: Floats, right: Bools, bootstrap: Bootstrap) -> Calibration | None:
    """Calibration of R answers; None if there are none.

    ECE: in :data:`BINS` bins of equal width, the mean distance between confidence and share right, weighted by answers
    (Guo et al. 2017, eq. 3). Chance alone makes it more than 0, so it is shown with what it is on average for answers
    of the same confidence that are right exactly that often, and with the share ``p`` of such samples whose ECE is as
    large (Bröcker and Smith 2007). Answers to one question, or to questions on one passage, are taken to be right
    together, which makes the test cautious. The Brier score is over the answer given, 0.25 for saying 0.5 always: not
    the sum over all options that lm-eval calls ``brier_score``.

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
    numbers: dict[str, Estimate | float] = {
        "calibration.confidence": mean(confidence, every),
        "calibration.right": mean(hit, every),
        "calibration.ece": Estimate.bare(error, len(np.unique(question)), "holds chance as well: no interval"),
        "calibration.ece_by_chance": float(chance.mean()),
        "calibration.p": float((1 + (chance >= error - 1e-12).sum()) / (1 + len(chance))),
        "calibration.brier": mean((confidence - hit) ** 2, every),
    }
    return Calibration(
        len(question),
        Numbers(numbers),
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
