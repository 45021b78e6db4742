"""Right and wrong: under the given order, under every order, and for the vote.

Everything is per question, ``nan`` where undefined (no reply, no right option, orders missing), so that any mean over
questions leaves those out and knows its N. An answer is right when its content is one of the right ones; a reply that
is no answer is not right.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.ties import choose, credit
from unslant.metrics.vote import VotedAnswers

TieRule = Literal["first", "last", "split"]


def is_right(answers: Bools, chosen: NDArray[np.integer]) -> Bools:
    """(Q, K) whether each chosen content is one of the right ones, (Q, n); no answer (-1) is not right."""
    right: Bools = np.take_along_axis(answers, np.maximum(chosen, 0), axis=1) & (chosen >= 0)
    return right


def correct(scores: OrderScores, view: View, ties: TieRule = "first") -> Floats:
    """Whether each question is right under one presentation: (Q,) of 0, 1 or (``split``) between, and nan.

    Args:
        ties: among equally probable options, the first or last label shown counts, or each counts in part.
    """
    if ties == "split":
        right = np.zeros(len(scores))
        right[view.ok] = (credit(view.probs[view.ok]) * scores.answers[view.ok]).sum(axis=1)
    else:
        chosen = view.chosen if ties == "first" else choose(view.probs, -view.positions)
        right = is_right(scores.answers, chosen[:, None])[:, 0].astype(np.float64)
    right[~view.ok | ~scores.has_answer] = np.nan
    return right


def correct_under_orders(block: Block) -> Floats:
    """(Q, K) whether each question is right under each order; rows of nan where no option is right."""
    right = is_right(block.answers, block.chosen).astype(np.float64)
    right[~block.answers.any(axis=1)] = np.nan
    return right


def vote_correct(scores: OrderScores, voted: VotedAnswers) -> Floats:
    """(Q,) whether the voted answer is right."""
    right = is_right(scores.answers, voted.content[:, None])[:, 0].astype(np.float64)
    right[(scores.order_counts == 0) | ~scores.has_answer] = np.nan
    return right
