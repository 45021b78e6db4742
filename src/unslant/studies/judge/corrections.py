"""What corrections gain against the labels, and what abstaining costs: the vote over both orders, a prior over places,
a monotone map of probabilities, and a margin below which there is no verdict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable
from unslant.debiasing.pride import label_prior, without_prior
from unslant.metrics import Estimate, Measured, Numbers, metric, wilson
from unslant.metrics.estimate import clopper_pearson
from unslant.studies.judge.measures import agrees, page_right
from unslant.studies.judge.verdicts import Verdicts

GIVEN, VOTED = "one order, as published", "vote over both orders"
PRIOR, MAPPED = "one order, prior over places removed", "one order, probabilities mapped"
_FOLDS = 2
_ONE_SIDED = 0.90
"""Confidence of a two-sided interval whose upper end is a bound at 95 %."""


@dataclass(frozen=True)
class Way(Measured):
    """One way to a verdict, on the labelled pairs that are no tie.

    Attributes:
        way: its name.
        orders: asked for each verdict.
    """

    way: str
    orders: int
    numbers: Numbers


@dataclass(frozen=True)
class Abstention(Jsonable):
    """Verdicts only where the judge is sure enough.

    Attributes:
        error: the highest error wanted, 0 to 1.
        margin: least difference in credit (or probability) between the two answers, averaged over orders; None where no
            margin keeps the error that low.
        kept: share of the pairs that then have a verdict.
        wrong: share of those that are wrong.
    """

    error: float
    margin: float | None
    kept: Estimate
    wrong: Estimate


@metric("corrected_verdicts.right", "right", "verdicts that are the label's; a tie, or none, is not", unit="share")
@metric("corrected_verdicts.change", "change", "from the order of the file, same pairs", unit="difference")
def ways(v: Verdicts) -> tuple[Way, ...]:
    """Every way that these verdicts allow; empty without labels, or without both orders."""
    kept = v.labelled & v.in_orders & (v.right.sum(axis=1) < v.exists.sum(axis=1))
    given_pages = v.placed & ~v.swapped & (v.repeat == 0)
    if not (kept & (np.bincount(v.pair[given_pages], minlength=len(v)) > 0)).any():
        return ()
    only = np.where(kept, 1.0, np.nan)
    every: dict[str, tuple[Floats, int]] = {}
    every[GIVEN] = v.per_pair(page_right(v), given_pages) * only, 1
    every[VOTED] = agrees(v.voted, v.right, v.exists).astype(float) * only, 2
    scored = _scored_pairs(v)
    if scored is not None:
        pairs, by_place = scored
        for name, first in ((PRIOR, _without_prior(by_place)), (MAPPED, _mapped(by_place))):
            values = np.full(len(v), np.nan)
            values[pairs] = np.where(first > 0.5, v.right[pairs, 0], v.right[pairs, 1])
            every[name] = values * only, 1
    published = every[GIVEN][0]
    return tuple(
        Way(name, orders, Numbers({"corrected_verdicts.right": v.bootstrap.mean(values),
                                   "corrected_verdicts.change": v.bootstrap.mean(values - published, share=False)}))
        for name, (values, orders) in every.items()
    )  # fmt: skip


def _scored_pairs(v: Verdicts) -> tuple[Bools, Floats] | None:
    """Pairs of two with probabilities in both orders, and (n, 2, 2) these by place, the order of the file first."""
    found: dict[int, Floats] = {}
    for q, pages in enumerate(v.pages_of):
        if len(pages) == 2 and v.exists[q].sum() == 2 and np.isfinite(v.probs[pages][:, 0]).all():
            first, second = sorted(pages, key=lambda r: bool(v.swapped[r]))
            if v.swapped[second] and not v.swapped[first]:
                found[q] = np.stack([v.probs[r, v.order[r, :2]] for r in (first, second)])
    if not found:
        return None
    return np.isin(np.arange(len(v)), list(found)), np.stack(list(found.values()))


def _without_prior(by_place: Floats) -> Floats:
    """(n,) P(first answer of the file) in its order, the prior over places divided out (PriDe, Zheng et al. 2024)."""
    return without_prior(by_place[:, 0], label_prior(by_place))[:, 0]


def _mapped(by_place: Floats) -> Floats:
    """(n,) P(first answer of the file), by the monotone map from one order to the mean over both.

    In the spirit of CalibraEval (Li et al. 2024), which optimises an order-preserving function without labels; here it
    is the isotonic regression of the mean of both orders on the probability of the answer shown first, fitted on the
    other half of the pairs.
    """
    from scipy.optimize import isotonic_regression

    both = (by_place[:, 0, 0] + by_place[:, 1, 1]) / 2
    x = np.concatenate([by_place[:, 0, 0], by_place[:, 1, 0]])
    y = np.concatenate([both, 1 - both])
    fold = np.arange(len(both)) % _FOLDS
    found = np.full(len(both), np.nan)
    for k in range(_FOLDS):
        train = np.tile(fold != k, 2)
        if train.any():
            order = np.argsort(x[train], kind="stable")
            fit = isotonic_regression(y[train][order]).x
            found[fold == k] = np.interp(by_place[fold == k, 0, 0], x[train][order], fit)
    return found


@metric("abstention.kept", "pairs with a verdict", "pairs whose margin is large enough", unit="share")
@metric("abstention.wrong", "wrong verdicts", "of the pairs with a verdict", unit="share")
def abstention(v: Verdicts, error: float) -> Abstention | None:
    """The lowest margin at which at most ``error`` of the verdicts are wrong, with 95 % confidence.

    Margins are tried from the highest down, and the first at which the bound (Clopper-Pearson) exceeds ``error`` ends
    the search: in this fixed sequence no correction for trying several is needed (Angelopoulos et al. 2021). It begins
    with as many pairs as could show so low an error at all.

    Returns:
        None without labels.
    """
    kept = v.labelled & (v.right.sum(axis=1) < v.exists.sum(axis=1)) & v.in_orders
    if not kept.any():
        return None
    credit = _mean_probs(v)[kept]
    ordered = np.sort(np.nan_to_num(credit, nan=-1.0), axis=1)
    margins = np.round(ordered[:, -1] - np.maximum(ordered[:, -2], 0), 9)
    wrong = ~agrees(v.voted[kept], v.right[kept], v.exists[kept])
    n = len(margins)
    chosen: tuple[float, int, int] | None = None
    for margin in np.unique(margins[margins > 0])[::-1]:
        covered = margins >= margin
        size, errors = int(covered.sum()), int(wrong[covered].sum())
        if clopper_pearson(0.0, size, _ONE_SIDED)[1] > error:
            continue
        if clopper_pearson(errors / size, size, _ONE_SIDED)[1] > error:
            break
        chosen = float(margin), size, errors
    if chosen is None:
        note = "no margin keeps the error that low"
        return Abstention(error, None, Estimate.bare(0.0, n, note), Estimate.undefined(note))
    margin, size, errors = chosen
    return Abstention(error, margin, wilson(size / n, n), wilson(errors / size, size))


def _mean_probs(v: Verdicts) -> Floats:
    """(Q, N) mean over orders of the probability where it is known, else of the credit."""
    scored = np.isfinite(v.probs).any(axis=1)
    if not scored.all():
        return v.mean_credit
    total = np.zeros(v.exists.shape)
    np.add.at(total, v.pair, np.nan_to_num(v.probs))
    return np.where(v.exists, total / np.bincount(v.pair, minlength=len(v))[:, None], np.nan)
