"""The vote over all orders of a question (P1 sec. 3.3.1, eq. 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.scores import OrderScores
from unslant.metrics.ties import choose, credit, is_tie


@dataclass(frozen=True)
class VotedAnswers:
    """Voted answers of Q questions.

    Attributes:
        content: (Q,) the voted content; -1 without a complete order set.
        shares: (Q, N) mean probabilities (soft) or shares of orders (hard), padded with 0.
        tied: (Q,) whether several contents have the highest share.
    """

    content: NDArray[np.intp]
    shares: Floats
    tied: Bools


def mean_over_orders(probs: Floats) -> Floats:
    """Mean over the orders, (..., K, n) to (..., n), the same to the last bit in any sequence."""
    mean: Floats = np.sort(probs, axis=-2).mean(axis=-2)
    return mean


def vote_over_orders(
    probs: Floats, text_ranks: Ints, rule: Literal["soft", "hard"] = "soft"
) -> tuple[NDArray[np.intp], Floats]:
    """Content (...) and shares (..., n), as in :class:`VotedAnswers`, from (..., K, n) probabilities; see :func:`vote`.

    Args:
        text_ranks: (..., n) rank of each content's text; the least wins a tie.
    """
    mean = mean_over_orders(probs)
    if rule == "soft":
        return choose(mean, text_ranks), mean
    shares = mean_over_orders(credit(probs))
    return choose(np.where(credit(shares) > 0, mean, 0.0), text_ranks), shares


def vote(scores: OrderScores, rule: Literal["soft", "hard"] = "soft") -> VotedAnswers:
    """Vote over all orders of each question.

    ``soft``: the content of highest mean probability. ``hard``: the content chosen under most orders, where tied
    options share the vote of their order and equal counts go to the higher mean probability.

    Ties (see ``TIE_TOLERANCE``) go to the option whose text sorts first, so that the vote does not depend on the order
    of options in the file; to the first in the file where the table has no text ranks.
    """
    content = np.full(len(scores), -1, dtype=np.intp)
    shares = np.zeros(scores.answers.shape)
    ties = np.zeros(len(scores), bool)
    for block in scores.blocks:
        content[block.index], voted = vote_over_orders(block.probs, block.text_ranks, rule)
        ties[block.index] = is_tie(voted)
        shares[block.index, : block.n] = voted
    return VotedAnswers(content, shares, ties)
