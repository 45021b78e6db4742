"""Which option a row of probabilities chooses, and what happens when several are equally probable.

A row of zeros is a reply without an answer: it chooses nothing and gives no option credit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import TIE_TOLERANCE as TIE_TOLERANCE
from unslant.arrays import Bools, Floats


def tied(probs: Floats) -> Bools:
    """(..., n) whether each option is within ``TIE_TOLERANCE`` of the most probable one."""
    most = probs.max(axis=-1, keepdims=True)
    best: Bools = (probs >= most * (1.0 - TIE_TOLERANCE)) & (most > 0)
    return best


def is_tie(probs: Floats) -> Bools:
    """(...) whether several of n options are most probable."""
    several: Bools = tied(probs).sum(axis=-1) > 1
    return several


def choose(probs: Floats, preference: NDArray[np.integer]) -> NDArray[np.intp]:
    """(...) index of the most probable of n options; among tied ones that of least ``preference``, then least index.

    -1 where there is no answer.

    Args:
        preference: broadcastable to ``probs`` (..., n): the position, if the first label shown wins ties; minus the
            position, if the last; the rank of the option's text, if ties must not depend on order.
    """
    last = preference.dtype.type(np.iinfo(preference.dtype).max)
    best = tied(probs)
    chosen: NDArray[np.intp] = np.where(best, preference, last).argmin(axis=-1)
    return np.where(best.any(axis=-1), chosen, -1)


def credit(probs: Floats) -> Floats:
    """(..., n) the choice as shares that sum to 1, split evenly between tied options; zeros for no answer."""
    best = tied(probs).astype(np.float64)
    shares: Floats = best / np.maximum(best.sum(axis=-1, keepdims=True), 1.0)
    return shares
