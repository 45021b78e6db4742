"""Bias of evaluators that write their own questions (P4, sec. 3): consensus rates, data and model bias, decomposition.

A model i rephrases every question with probability p, the answer kept; every model j then says from 1 to 10 how sure
it is that the kept answer is right for the question as it now stands. 1 to 5 is "no", 6 to 10 "yes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, Jsonable
from unslant.metrics import Association, Estimate, associate
from unslant.metrics.bootstrap import RESAMPLES, Bootstrap

LOWEST, HIGHEST = 1, 10
NO_AT_MOST = 5.0
"""A confidence up to here is a "no" (P4: upper threshold of "NO")."""
YES_AT_LEAST = 6.0
"""A confidence from here is a "yes" (P4: lower threshold of "Yes")."""


@dataclass(frozen=True)
class ConsensusRates(Jsonable):
    """Rates of one rephrasing model at one strength.

    Attributes:
        cer: consensus-error rate, 0 to 1: weighted share of questions that both the model and the others reject.
        ocr: over-confidence rate, 0 to 1: share it accepts and the others reject.
        ucr: under-confidence rate, 0 to 1: share it rejects and the others accept.
        rejected: share that both reject, unweighted.
        by_subject: subject -> consensus-error rate; empty where there is one subject or none.
    """

    cer: Estimate
    ocr: Estimate
    ucr: Estimate
    rejected: Estimate
    by_subject: Mapping[str, float]


def consensus_values(own: Floats, others: Floats) -> tuple[Floats, Floats, Floats]:
    """What each question adds to CER, OCR and UCR: three arrays (Q,), nan where a score is missing.

    The equations (5) to (7) of P4 are damaged in the text we have; these follow its prose. With c = own score of
    rephraser i, m = mean score of the other models, u = 5 and l = 6, over N questions::

        CER_i = 1/N sum [c <= u] [m <= u] ((l - c) + (l - m)) / (2 (l - 1))
        OCR_i = 1/N sum [c >= l] [m <= u]
        UCR_i = 1/N sum [c <= u] [m >= l]

    The weight in CER grows "as the confidence values decrease": 1 where both are 1, 1/5 where both are 5. A mean
    between 5 and 6 is neither "no" nor "yes".

    Args:
        own: (Q,) c, 1 to 10.
        others: (Q,) m, 1 to 10.
    """
    missing = np.isnan(own) | np.isnan(others)
    weight = ((YES_AT_LEAST - own) + (YES_AT_LEAST - others)) / (2 * (YES_AT_LEAST - LOWEST))
    with np.errstate(invalid="ignore"):
        both_no = (own <= NO_AT_MOST) & (others <= NO_AT_MOST)
        over = (own >= YES_AT_LEAST) & (others <= NO_AT_MOST)
        under = (own <= NO_AT_MOST) & (others >= YES_AT_LEAST)
    cer, ocr, ucr = (np.where(missing, np.nan, values) for values in (np.where(both_no, weight, 0.0), over, under))
    return cer, ocr, ucr


def consensus_rates(
    scores: Floats, own: int, subjects: Sequence[str] = (), *, resamples: int = RESAMPLES, seed: int = 0
) -> ConsensusRates:
    """CER, OCR and UCR of the model ``own``.

    Args:
        scores: (J, Q) confidence of each judge for each question, 1 to 10, nan where a judge gave none. The mean of
            the others is over those that did.
        own: row of the rephrasing model's own scores.
        subjects: of each question.

    Raises:
        ValueError: if there is no other judge, or a score lies outside 1 to 10.
    """
    if scores.shape[0] < 2:
        raise ValueError("consensus needs at least two judges")
    given = scores[~np.isnan(scores)]
    if given.size and (given.min() < LOWEST or given.max() > HIGHEST):
        raise ValueError(f"scores must lie between {LOWEST} and {HIGHEST}")
    rest = np.delete(scores, own, axis=0)
    counted = (~np.isnan(rest)).sum(axis=0)
    others = np.where(counted > 0, np.nansum(rest, axis=0) / np.maximum(counted, 1), np.nan)
    cer, ocr, ucr = consensus_values(scores[own], others)
    names = list(subjects) or [""] * scores.shape[1]
    bootstrap = Bootstrap(scores.shape[1], names, resamples=resamples, seed=seed)
    by_subject = {}
    if len(set(names)) > 1:
        for name in sorted(set(names)):
            kept = cer[np.array(names) == name]
            kept = kept[~np.isnan(kept)]
            by_subject[name] = float(kept.mean()) if kept.size else float("nan")
    rejected = np.where(np.isnan(cer), np.nan, cer > 0)
    return ConsensusRates(
        bootstrap.mean(cer), bootstrap.mean(ocr), bootstrap.mean(ucr), bootstrap.mean(rejected), by_subject
    )


def data_bias(accuracy: Mapping[str, float], cer: Mapping[str, float]) -> Association:
    """Correlation over subjects of a model's accuracy with its consensus-error rate (P4, table 1).

    Negative: it does well where its own questions are sound, and badly where they are not.
    """
    shared = sorted(set(accuracy) & set(cer))
    return associate([accuracy[s] for s in shared], [cer[s] for s in shared], of="subjects")


@dataclass(frozen=True)
class Decomposition(Jsonable):
    """Mean squared bias of a new protocol in three terms (P4, prop. 3.1).

    ``total`` = ``original`` + ``related`` + ``independent``, where bias is (expected score - true ability) under the
    old protocol and delta is what the new one adds to it.

    Attributes:
        original: E[bias^2].
        related: 2 E[bias delta]; negative where the new bias counteracts the old one.
        independent: E[delta^2].
        total: E[(bias + delta)^2].
    """

    original: Estimate
    related: Estimate
    independent: Estimate
    total: Estimate


def decompose(
    ability: Sequence[float] | Floats,
    old: Sequence[float] | Floats,
    new: Sequence[float] | Floats,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Decomposition:
    """The terms of prop. 3.1 over units (models, or subjects of one model) whose true ability is known.

    Args:
        ability: (U,) true ability, in the unit of the scores.
        old, new: (U,) score of each unit under the old and the new protocol. Noise in a score that rests on few
            questions counts as bias: use units with many.

    Raises:
        ValueError: if the three are not equally long, or empty.
    """
    truth, before, after = (np.asarray(values, dtype=np.float64) for values in (ability, old, new))
    if not truth.shape == before.shape == after.shape or truth.ndim != 1 or not truth.size:
        raise ValueError("ability, old and new must be equally long and not empty")
    bias, delta = before - truth, after - before
    bootstrap = Bootstrap(truth.size, resamples=resamples, seed=seed)

    def mean(values: Floats) -> Estimate:
        return bootstrap.mean(values, share=False)

    return Decomposition(mean(bias**2), mean(2 * bias * delta), mean(delta**2), mean((bias + delta) ** 2))
