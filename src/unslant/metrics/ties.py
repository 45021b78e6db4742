"""Which option a row of probabilities chooses, and what happens when several are equally probable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import TIE_TOLERANCE as TIE_TOLERANCE
from unslant.arrays import Bools, Floats


def tied(probs: Floats) -> Bools:
    """(..., n) whether each option is within ``TIE_TOLERANCE`` of the most probable one."""
    best: Bools = probs >= probs.max(axis=-1, keepdims=True) * (1.0 - TIE_TOLERANCE)
    return best


def is_tie(probs: Floats) -> Bools:
    """(...) whether several of n options are most probable."""
    several: Bools = tied(probs).sum(axis=-1) > 1
    return several


def choose(probs: Floats, preference: NDArray[np.integer]) -> NDArray[np.intp]:
    """(...) index of the most probable of n options; among tied ones that of least ``preference``, then least index.

    Args:
        preference: broadcastable to ``probs`` (..., n): the position, if the first label shown wins ties; minus the
            position, if the last; the rank of the option's text, if ties must not depend on order.
    """
    last = preference.dtype.type(np.iinfo(preference.dtype).max)
    chosen: NDArray[np.intp] = np.where(tied(probs), preference, last).argmin(axis=-1)
    return chosen


def credit(probs: Floats) -> Floats:
    """(..., n) the choice as shares that sum to 1, split evenly between tied options."""
    best = tied(probs).astype(np.float64)
    shares: Floats = best / best.sum(axis=-1, keepdims=True)
    return shares
