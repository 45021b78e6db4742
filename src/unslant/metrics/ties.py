"""Which option a row of probabilities chooses, and what happens when several are equally probable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats

TIE_TOLERANCE = 1e-9
"""Two options are tied when their log-probabilities differ by no more than this.

Models give float32 or coarser, in which equal logits come out exactly equal; what differs by less than 1e-9 was equal
before it was renormalised or averaged in float64. Being relative, it means the same for 0.3 and for 1e-30."""


def tied(probs: Floats) -> Bools:
    """The most probable options: shape (..., n) in and out, True where within ``TIE_TOLERANCE`` of the maximum."""
    best: Bools = probs >= probs.max(axis=-1, keepdims=True) * (1.0 - TIE_TOLERANCE)
    return best


def is_tie(probs: Floats) -> Bools:
    """Whether more than one option is most probable: shape (..., n) in, (...) out."""
    several: Bools = tied(probs).sum(axis=-1) > 1
    return several


def choose(probs: Floats, preference: NDArray[np.integer]) -> NDArray[np.intp]:
    """Index of the most probable option; among tied ones the one of least ``preference``, then of least index.

    ``preference`` is the position for "the first label shown wins", minus the position for "the last", or the rank of
    the option's text for a choice that does not depend on order. Shapes (..., n) and broadcastable in, (...) out.
    """
    highest = np.iinfo(np.int64).max
    chosen: NDArray[np.intp] = np.where(tied(probs), preference.astype(np.int64), highest).argmin(axis=-1)
    return chosen


def credit(probs: Floats) -> Floats:
    """The choice as shares that sum to 1: tied options share it evenly. Shape (..., n) in and out."""
    best = tied(probs).astype(np.float64)
    shares: Floats = best / best.sum(axis=-1, keepdims=True)
    return shares
