"""The answer of all orders together (P1 sec. 3.3.1, eq. 6)."""

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
        content: (Q,) the voted content; -1 where the question has no complete order set.
        shares: (Q, N) what was voted on: mean probabilities (soft) or shares of orders (hard); padded with 0.
        tied: (Q,) whether several contents had the highest share.
    """

    content: NDArray[np.intp]
    shares: Floats
    tied: Bools


def mean_over_orders(probs: Floats) -> Floats:
    """Mean over the orders, exactly independent of the sequence of orders: (..., K, n) in, (..., n) out.

    Summation in floating point depends on sequence in the last bit, so the terms are sorted first.
    """
    mean: Floats = np.sort(probs, axis=-2).mean(axis=-2)
    return mean


def vote_over_orders(
    probs: Floats, text_ranks: Ints, rule: Literal["soft", "hard"] = "soft"
) -> tuple[NDArray[np.intp], Floats]:
    """The voted content (...), and what was voted on (..., n), of (..., K, n) probabilities; see :func:`vote`.

    Args:
        text_ranks: (..., n) rank of each content's text, which decides ties.
    """
    mean = mean_over_orders(probs)
    if rule == "soft":
        return choose(mean, text_ranks), mean
    shares = mean_over_orders(credit(probs))
    return choose(np.where(credit(shares) > 0, mean, 0.0), text_ranks), shares


def vote(scores: OrderScores, rule: Literal["soft", "hard"] = "soft") -> VotedAnswers:
    """Vote over all orders of each question.

    ``soft``: the content of highest mean probability. ``hard``: the content chosen under most orders (an order in
    which options tie gives each an equal part of its vote); equal counts go to the higher mean probability.

    Ties (see ``TIE_TOLERANCE``) go to the option whose text sorts first. Nothing here looks at the place of an option
    in the file, so the voted text is the same however a file lists the options, if the orders shown are (all of them,
    or sampled from the canonical arrangement). Where the table knows no text ranks, ties go to the first in the file.
    """
    content = np.full(len(scores), -1, dtype=np.intp)
    shares = np.zeros(scores.answers.shape)
    ties = np.zeros(len(scores), bool)
    for block in scores.blocks:
        content[block.index], voted = vote_over_orders(block.probs, block.text_ranks, rule)
        ties[block.index] = is_tie(voted)
        shares[block.index, : block.n] = voted
    return VotedAnswers(content, shares, ties)
