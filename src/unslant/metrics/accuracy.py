"""Right and wrong: under the given order, under every order, and for the vote.

Everything is per question, ``nan`` where undefined (no answer, no right option, orders missing), so that any mean over
questions leaves those out and knows its N. An answer is right when its content is one of the right ones.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.ties import choose, credit
from unslant.metrics.vote import VotedAnswers

TieRule = Literal["first", "last", "split"]


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
        right = np.take_along_axis(scores.answers, chosen[:, None], axis=1)[:, 0].astype(np.float64)
    right[~view.ok | ~scores.has_answer] = np.nan
    return right


def correct_under_orders(block: Block) -> Floats:
    """(Q, K) whether each question is right under each order; rows of nan where no option is right."""
    right = np.take_along_axis(block.answers, block.chosen, axis=1).astype(np.float64)
    right[~block.answers.any(axis=1)] = np.nan
    return right


def vote_correct(scores: OrderScores, voted: VotedAnswers) -> Floats:
    """(Q,) whether the voted answer is right."""
    right = np.take_along_axis(scores.answers, np.maximum(voted.content, 0)[:, None], axis=1)[:, 0].astype(np.float64)
    right[(voted.content < 0) | ~scores.has_answer] = np.nan
    return right
