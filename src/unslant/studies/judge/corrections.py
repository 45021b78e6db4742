"""What corrections gain against the labels, and what abstaining costs: the vote over both orders, a prior over places,
a monotone map of probabilities, and a margin below which the judge abstains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from unslant.arrays import Floats, Jsonable
from unslant.debiasing.pride import label_prior, without_prior
from unslant.metrics import Estimate, Measured, Numbers, metric
from unslant.metrics.estimate import clopper_pearson
from unslant.studies.judge.measures import agrees, page_right
from unslant.studies.judge.verdicts import Verdicts, best

GIVEN, VOTED = "one order, as published", "vote over both orders"
PRIOR, MAPPED = "one order, prior over places removed", "one order, probabilities mapped"
ERROR = 0.1
"""Error at which abstention is shown unless another is given."""
_FOLDS = 2
_ONE_SIDED = 0.90
"""Confidence of a two-sided interval whose upper end is a bound at 95 %."""


@dataclass(frozen=True)
class CorrectedWay(Measured):
    """One way to a verdict, on the labelled pairs that are not ties.

    Attributes:
        way: its name.
        orders: asked for each verdict, once a prior or map is fitted.
    """

    way: str
    orders: int
    numbers: Numbers


@dataclass(frozen=True)
class Abstention(Jsonable):
    """Verdicts only where the judge is sure enough.

    Attributes:
        error: the highest error wanted, 0 to 1.
        margin: least difference in credit (or probability) between the best two answers, averaged over orders; None
            where no margin keeps the error that low.
        kept: share of the pairs that then have a verdict.
        wrong: share of those that are wrong.
    """

    error: float
    margin: float | None
    kept: Estimate
    wrong: Estimate


@metric("corrected_verdicts.right", "right", "verdicts that are the label's; a tie, or none, is not", unit="share")
@metric("corrected_verdicts.change", "change", "from the order of the file, same pairs", unit="difference")
def ways(v: Verdicts) -> tuple[CorrectedWay, ...]:
    """Every correction that these verdicts allow; empty without labels, or without both orders."""
    mask: Floats = np.where(v.clear_label & v.in_orders, 1.0, np.nan)
    published = v.per_pair(page_right(v), v.placed & ~v.swapped) * mask
    if np.isnan(published).all():
        return ()
    every: dict[str, tuple[Floats, int]] = {
        GIVEN: (published, 1),
        VOTED: (agrees(v.voted, v.right, v.exists) * mask, 2),
    }
    first = _first_probabilities(v)
    if not np.isnan(first).all():
        for name, corrected in (
            (PRIOR, _cross_fitted(v, first, _without_prior)),
            (MAPPED, _cross_fitted(v, first, _mapped)),
        ):
            right = np.where(v.right[:, 0], corrected > 0.5, corrected < 0.5)
            every[name] = np.where(np.isnan(corrected), np.nan, right) * mask, 1
    return tuple(
        CorrectedWay(name, orders, Numbers({"corrected_verdicts.right": v.bootstrap.mean(values),
                                   "corrected_verdicts.change": v.bootstrap.mean(values - published, share=False)}))
        for name, (values, orders) in every.items()
    )  # fmt: skip


def _first_probabilities(v: Verdicts) -> Floats:
    """(Q, 2) of pairs of two with probabilities in both orders: P(answer shown first), in the order of the file and in
    the swapped one; nan elsewhere."""
    by_place = np.where(v.order[:, 0] >= 0, np.take_along_axis(v.probs, v.order[:, :1], 1)[:, 0], np.nan)
    probabilities = np.stack(
        [v.per_pair(by_place, v.placed & (v.swapped == swapped)) for swapped in (False, True)], axis=1
    )
    usable = np.isfinite(probabilities).all(axis=1) & (v.exists.sum(axis=1) == 2)
    return np.where(usable[:, None], probabilities, np.nan)


def _cross_fitted(v: Verdicts, first: Floats, corrected: Callable[[Floats, Floats], Floats]) -> Floats:
    """(Q,) P(first answer of the file), asked in that order and corrected with a fit on both orders of the other half
    of the questions; nan without a probability."""
    # Fitted on the same pairs, a prior or map would borrow from the second order, which it is to save.
    half, pairs = v.bootstrap.sampling.unit % _FOLDS, np.isfinite(first[:, 0])
    estimates = np.full(len(v), np.nan)
    for fold in range(_FOLDS):
        members, others = pairs & (half == fold), first[pairs & (half != fold)]
        if len(others):
            estimates[members] = corrected(others, first[members, 0])
    return estimates


def _without_prior(fitted_on: Floats, first: Floats) -> Floats:
    """P(answer | place) / P(place), normalised (PriDe, Zheng et al. 2024)."""
    prior = label_prior(np.stack([fitted_on, 1 - fitted_on], axis=2))
    return without_prior(np.stack([first, 1 - first], axis=1), prior)[:, 0]


def _mapped(fitted_on: Floats, first: Floats) -> Floats:
    """The monotone map from one order to the mean over both.

    In the spirit of CalibraEval (Li et al. 2024), which optimises an order-preserving function without labels; here it
    is the isotonic regression of the mean of both orders on the probability of the answer shown first.
    """
    both = (fitted_on[:, 0] + 1 - fitted_on[:, 1]) / 2
    x, at, counts = np.unique(fitted_on.T.ravel(), return_inverse=True, return_counts=True)
    y = np.bincount(at, np.concatenate([both, 1 - both])) / counts
    return np.interp(first, x, isotonic_regression(y, weights=counts).x)


@metric("abstention.kept", "pairs with a verdict", "pairs whose margin is large enough", unit="share")
@metric("abstention.wrong", "wrong verdicts", "of the pairs with a verdict", unit="share")
def abstention(v: Verdicts, error: float) -> Abstention | None:
    """The lowest margin at which at most ``error`` of the verdicts are wrong, with 95 % confidence.

    Margins are tried from the highest down, and the first at which the bound (Clopper-Pearson, pairs about one question
    counted once) exceeds ``error`` ends the search: in this fixed sequence no correction for trying several is needed
    (Angelopoulos et al. 2021). It begins with as many questions as could show so low an error at all.

    Returns:
        None without labels.
    """
    pairs = v.clear_label & v.in_orders
    if not pairs.any():
        return None
    scored = np.isfinite(v.probs).any(axis=1).all()
    credit = v.over_orders(v.probs if scored else v.credit)
    ordered = np.sort(np.nan_to_num(credit, nan=-1.0), axis=1)
    margins = np.where(pairs, np.round(ordered[:, -1] - np.maximum(ordered[:, -2], 0), 9), 0.0)
    wrong = ~agrees(best(credit), v.right, v.exists)
    lowest: float | None = None
    for margin in np.unique(margins[margins > 0])[::-1]:
        covered = margins >= margin
        size = v.bootstrap.sampling.units(covered)
        if clopper_pearson(0.0, size, _ONE_SIDED)[1] > error:
            continue
        if clopper_pearson(float(wrong[covered].mean()), size, _ONE_SIDED)[1] > error:
            break
        lowest = float(margin)
    if lowest is None:
        note = "no margin keeps the error that low"
        return Abstention(error, None, Estimate.bare(0.0, int(pairs.sum()), note), Estimate.undefined(note))
    covered = pairs & (margins >= lowest)
    share, errors = np.where(pairs, covered, np.nan), np.where(covered, wrong, np.nan)
    return Abstention(error, lowest, v.bootstrap.mean(share), v.bootstrap.mean(errors))
