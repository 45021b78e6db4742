"""Orders in balanced rounds, and what some rounds of a question's orders tell of all of them.

A round is a class of rotations: every movable option stands in every movable place once. ``--until`` asks few rounds
of each question, drawn at random.
"""

from __future__ import annotations

import numpy as np

from unslant.arrays import Floats, Ints
from unslant.metrics.permutation import pbm
from unslant.metrics.scores import Block


def by_round(block: Block, values: Floats) -> list[tuple[Ints, Floats]]:
    """Values of every order, sorted into rounds.

    Args:
        values: (Q, K, ...) as the block's orders.

    Returns:
        For each kind of question of the block, by its pinned options: (q,) rows of the block, and their values
        (q, r, s, ...) in r rounds of s orders; s = 1 where the orders are no whole rounds.
    """
    found = []
    for pattern in np.unique(block.pinned, axis=0):
        rows = np.flatnonzero((block.pinned == pattern).all(axis=1))
        kept = np.flatnonzero(~pattern)  # pinned options stand at their own places
        shown = block.contents[rows][:, :, kept].astype(np.int64)
        # which option follows which, round the circle, is the same in all rotations of an order
        weights = np.random.default_rng(0).integers(1, 1 << 62, block.n)
        after = np.zeros((*shown.shape[:2], block.n), np.int64)
        np.put_along_axis(after, shown, np.roll(shown, -1, axis=2) + 1, axis=2)
        codes = (after * weights).sum(axis=2)
        size = max(1, len(kept))
        sequence = np.argsort(codes, axis=1, kind="stable")
        if block.k % size:
            size = 1
        else:
            sorted_codes = np.take_along_axis(codes, sequence, axis=1).reshape(len(rows), -1, size)
            if (sorted_codes != sorted_codes[:, :, :1]).any():
                size = 1
        own = values[rows[:, None], sequence]
        found.append((rows, own.reshape(len(rows), block.k // size, size, *values.shape[2:])))
    return found


def spread_between_rounds(block: Block, values: Floats) -> Floats:
    """(Q,) variance between the means of a question's rounds, with r - 1 in the denominator; 0 for one round.

    Args:
        values: (Q, K), such as whether each order is answered right.
    """
    spread = np.zeros(len(block.index))
    for rows, own in by_round(block, values):
        if own.shape[1] > 1:
            spread[rows] = own.mean(axis=2).var(axis=1, ddof=1)
    return spread


def pbm_of_all(block: Block, whole: Ints) -> Floats:
    """(Q,) unbiased estimate of PBM over all orders of a question, from the rounds that were asked.

    PBM over all is the mean variance within rounds plus the variance of the means of the rounds. The first is estimated
    by its mean over the r rounds asked, the second by their variance with r - 1 in the denominator, times 1 - 1/R for R
    rounds in all (sampling without replacement: Cochran 1977, theorem 2.4). Of a single round of several, the second
    part cannot be known and counts as 0.

    Args:
        whole: (Q,) number of orders of each question in all.
    """
    estimate = pbm(block.probs)
    for rows, own in by_round(block, block.probs):
        r, size = own.shape[1:3]
        some = whole[rows] > block.k  # else all of them were asked
        if r > 1 and some.any():
            within = own.var(axis=2).mean(axis=(1, 2))
            between = own.mean(axis=2).var(axis=1, ddof=1).mean(axis=1)
            estimate[rows[some]] = (within + between * (1 - size / whole[rows]))[some]
    return estimate
