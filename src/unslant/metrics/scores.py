"""The scores of one set of questions under their order sets: what every order metric is computed from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unslant.responses.table import Response, Responses

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Block:
    """The questions of one option count n that were shown in the same number K of orders.

    Arrays over contents are indexed by the option's place in the question (its *content*), not by where it stood.

    Attributes:
        index: (Q,) rows of these questions in the arrays of :class:`OrderScores`.
        ids: their ids.
        probs: (Q, K, n) probability of content i under order k, over the shown labels only; rows sum to 1. Orders of
            one question are sorted lexicographically by content, so that order k is the same for all questions shown
            in all orders, and nothing depends on the row order of the table.
        positions: (Q, K, n) position, 0 = top, at which content i stood under order k.
        answers: (Q, n) which contents are right.
        pinned: (Q, n) which contents kept their place in every order.
        text_ranks: (Q, n) rank of the content's text among the question's options.
        subjects: subject of each question.
    """

    index: NDArray[np.intp]
    ids: tuple[str, ...]
    probs: Floats
    positions: Ints
    answers: Bools
    pinned: Bools
    text_ranks: Ints
    subjects: tuple[str, ...]

    @property
    def n(self) -> int:
        """Options a question."""
        return int(self.probs.shape[2])

    @property
    def k(self) -> int:
        """Orders a question."""
        return int(self.probs.shape[1])

    @cached_property
    def contents(self) -> Ints:
        """(Q, K, n) content at each position: the inverse of ``positions``."""
        return np.argsort(self.positions, axis=2)

    @cached_property
    def same_orders(self) -> bool:
        """Whether all questions of the block were shown in the same K orders."""
        return bool((self.positions == self.positions[:1]).all())

    def by_position(self, values: Floats) -> Floats:
        """Rearrange values over contents (Q, K, n) to values over positions (Q, K, n)."""
        return np.take_along_axis(values, self.contents, axis=2)


@dataclass(frozen=True)
class View:
    """Every question under one presentation, padded to the largest option count N with probability 0.

    Attributes:
        ok: (Q,) whether the question has a usable answer here; other rows are all zeros.
        probs: (Q, N) probability of each content.
        positions: (Q, N) position of each content.
        labels: (Q, N) which label of the standard sequence each content carried, 0 = first.
    """

    ok: Bools
    probs: Floats
    positions: Ints
    labels: Ints


@dataclass(frozen=True)
class OrderScores:
    """The scores of Q questions, in order of id; see :class:`Block` and :class:`View`.

    Attributes:
        ids, subjects: (Q,) of each question.
        n_options: (Q,) option count.
        answers, pinned: (Q, N) padded with False.
        text_ranks: (Q, N) padded with 0.
        labels: the standard label sequence, as long as the largest option count.
        blocks: the order sets, without the questions of which an order is missing.
        given: options as the file lists them, labels in standard sequence.
        reversed: movable options from last to first, labels in standard sequence.
        labels_reversed: options as listed, labels from last to first.
        both_reversed: both.
        labels_shifted: options as listed, labels from the second on, the first at the bottom.
        contexts: (Q,) the passage of each question, empty where it has none; empty where the table does not tell.
        n_failed: rows of these presentations that are not answers (status other than ``ok``, or not a number).
        n_incomplete: questions left out of the order sets because an order is missing or failed.
    """

    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    n_options: Ints
    answers: Bools
    pinned: Bools
    text_ranks: Ints
    labels: tuple[str, ...]
    blocks: tuple[Block, ...]
    given: View
    reversed: View
    labels_reversed: View
    both_reversed: View
    labels_shifted: View
    contexts: tuple[str, ...] = ()
    n_failed: int = 0
    n_incomplete: int = 0
    elicitation: str = "cloze"

    @classmethod
    def from_responses(cls, responses: Responses | Iterable[Response], elicitation: str = "cloze") -> OrderScores:
        """Read the presentations ``order``, ``given``, ``reverse``, and those with the labels in other places.

        ``order`` rows are the order set. The given order is the ``order`` row that shows it, or the ``given`` row;
        likewise the reversed one. Rows of other presentations and repeats beyond the first are not looked at. A row
        answered in words (no log-probabilities) counts as probability 1 for the one option it names, and as failed
        if it names none or several. Within one option count and number of pinned options, a question with fewer
        orders than the others is incomplete.

        Raises:
            InputError: if no row is left, a question has the same order twice, an order row does not show exactly the
                question's options, or questions use different label sequences.
        """
        from unslant.metrics.reading import read_scores

        table = responses if isinstance(responses, Responses) else Responses.from_rows(responses)
        return read_scores(table, elicitation)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        """N, the largest option count."""
        return int(self.answers.shape[1])

    @cached_property
    def exists(self) -> Bools:
        """(Q, N) True where the question has that option."""
        return np.asarray(np.arange(self.width) < self.n_options[:, None], dtype=bool)

    @cached_property
    def has_answer(self) -> Bools:
        """(Q,) whether any option is right."""
        return np.asarray(self.answers.any(axis=1), dtype=bool)

    @cached_property
    def movable(self) -> Ints:
        """(Q,) number of options that may change place."""
        movable: Ints = self.n_options - self.pinned.sum(axis=1)
        return movable

    @cached_property
    def order_counts(self) -> Ints:
        """(Q,) number of complete orders K; 0 for an incomplete question."""
        counts = np.zeros(len(self), np.int64)
        for block in self.blocks:
            counts[block.index] = block.k
        return counts
