"""How much the answer to one question moves with the order of its options. No right answer is needed.

All functions take one question, or any leading axes of questions: probabilities P[..., k, i] of option content i under
order k, over the shown labels only (each row sums to 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats
from unslant.metrics.scores import OrderScores, View
from unslant.metrics.ties import choose


def pbm(probs: Floats) -> Floats:
    """Permutation bias metric of each question: mean over contents of the variance over orders (P1, eq. 1-2).

    Population variance (ddof 0); eq. 2 is misprinted there, the text and every use of it mean the variance. An
    implementation with the unbiased variance gives K/(K-1) of this.

    Args:
        probs: (..., K, n).

    Returns:
        (...), from 0 (the same probabilities under every order) to (n-1)/n^2 (always certain, of every content equally
        often), which is 1/4 for n = 2.
    """
    # a variance does not change with a shift; shifted by the first order, equal orders give exactly 0
    result: Floats = (probs - probs[..., :1, :]).var(axis=-2).mean(axis=-1)
    return result


def normalised_pbm(probs: Floats) -> Floats:
    """PBM divided by the largest value that n options with the same mean probabilities can have.

    A probability with mean m has variance at most m(1-m), reached when it is only ever 0 or 1; so the largest PBM is
    mean_i m_i(1-m_i). A model that always answers A has 1 whatever n, one that ignores the order 0.

    Args:
        probs: (..., K, n).

    Returns:
        (...), 0 to 1; 0 where the mean is certain of one option (nothing can move then).
    """
    mean = probs.mean(axis=-2)
    largest = (mean * (1 - mean)).mean(axis=-1)
    value = pbm(probs)
    share: Floats = np.divide(value, largest, out=np.zeros_like(value), where=largest > 0)
    return np.clip(share, 0.0, 1.0)


def consistent(probs: Floats, positions: NDArray[np.integer]) -> Bools:
    """Whether the chosen content is the same under all orders; among tied options the first shown is chosen.

    A question with a reply that is no answer is not consistent.

    Args:
        probs, positions: (..., K, n).

    Returns:
        (...)
    """
    chosen = choose(probs, positions)
    same: Bools = ((chosen == chosen[..., :1]) & (chosen >= 0)).all(axis=-1)
    return same


def flipped(scores: OrderScores, other: View) -> Floats:
    """Whether the chosen content differs between the given order and another view (fluctuation, P1 eq. 3).

    Returns:
        (Q,) 0, 1, or nan where either reply is missing or no answer, or the view cannot differ (fewer than two movable
        options and the labels in place).
    """
    differs: Floats = (scores.given.chosen != other.chosen).astype(np.float64)
    same_page = (scores.given.positions == other.positions).all(axis=1) & (scores.given.labels == other.labels).all(
        axis=1
    )
    answered = scores.given.ok & other.ok & (scores.given.chosen >= 0) & (other.chosen >= 0)
    differs[~answered | same_page] = np.nan
    return differs
