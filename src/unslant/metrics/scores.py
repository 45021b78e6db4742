"""The scores of one set of questions under their order sets: what every order metric is computed from.

Which option a row of probabilities chooses is decided here too, also between options that are equally probable. A row
of zeros is a reply without an answer: it chooses nothing and gives no option credit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import TIE_TOLERANCE as TIE_TOLERANCE
from unslant.arrays import Bools, Floats, Ints
from unslant.presentations.orders import auto_arrangements
from unslant.responses import GENERATE


def tied(probs: Floats) -> Bools:
    """(..., n) whether each option is within ``TIE_TOLERANCE`` of the most probable one."""
    most = probs.max(axis=-1, keepdims=True)
    return np.asarray((probs >= most * (1.0 - TIE_TOLERANCE)) & (most > 0))


def is_tie(probs: Floats) -> Bools:
    """(...) whether several of n options are most probable."""
    return np.asarray(tied(probs).sum(axis=-1) > 1)


def choose(probs: Floats, preference: NDArray[np.integer]) -> NDArray[np.intp]:
    """(...) index of the most probable of n options; among tied ones that of least ``preference``, then least index.

    -1 where there is no answer.

    Args:
        preference: broadcastable to ``probs`` (..., n): the position, if the first label shown wins ties; minus the
            position, if the last; the rank of the option's text, if ties must not depend on order.
    """
    last = preference.dtype.type(np.iinfo(preference.dtype).max)
    best = tied(probs)
    return np.where(best.any(axis=-1), np.where(best, preference, last).argmin(axis=-1), -1)


def credit(probs: Floats) -> Floats:
    """(..., n) the choice as shares that sum to 1, split evenly between tied options; zeros for no answer."""
    best = tied(probs).astype(np.float64)
    return np.asarray(best / np.maximum(best.sum(axis=-1, keepdims=True), 1.0))


LEAST_PROBABILITY = 1e-6
"""Probabilities count as at least this much in log-probabilities, so that a 0 does not outweigh all others."""
Places = NDArray[np.integer[Any]]
"""Places of options in few bytes each: there are millions."""


def is_right(answers: Bools, chosen: NDArray[np.integer]) -> Bools:
    """(Q,) or (Q, K) whether each chosen content is one of the right ones, (Q, n); no answer (-1) is not right."""
    rows = np.arange(len(answers)).reshape(-1, *[1] * (chosen.ndim - 1))
    return np.asarray(answers[rows, np.maximum(chosen, 0)] & (chosen >= 0))


@dataclass(frozen=True)
class Block:
    """The questions of one option count n that were shown in the same number K of orders.

    Arrays over contents are indexed by the option's place in the question (its *content*), not by where it stood.

    Attributes:
        index: (Q,) rows of these questions in the arrays of :class:`OrderScores`.
        probs: (Q, K, n) probability of content i under order k, over the shown labels only; rows sum to 1, and are all
            zeros for a reply without an answer. Orders of one question are sorted lexicographically by content: order k
            is the same for all questions shown in all orders, in any sequence of the table's rows.
        positions: (Q, K, n) position, 0 = top, at which content i stood under order k.
        answers: (Q, n) which contents are right.
        pinned: (Q, n) which contents kept their place in every order.
        text_ranks: (Q, n) rank of the content's text among the question's options.
        decided: (Q, K) the content chosen, where something else than the place decides between tied options.
    """

    index: NDArray[np.intp]
    probs: Floats
    positions: Places
    answers: Bools
    pinned: Bools
    text_ranks: Ints
    decided: Ints | None = None

    @property
    def n(self) -> int:
        """Options a question."""
        return int(self.probs.shape[2])

    @property
    def k(self) -> int:
        """Orders a question."""
        return int(self.probs.shape[1])

    @cached_property
    def contents(self) -> Places:
        """(Q, K, n) content at each position: the inverse of ``positions``."""
        return np.argsort(self.positions, axis=2).astype(np.int16)

    @cached_property
    def chosen(self) -> Ints:
        """(Q, K) the content chosen under each order, -1 for no answer; of tied ones the first shown, unless it was
        ``decided``."""
        return choose(self.probs, self.positions).astype(np.int64) if self.decided is None else self.decided

    @cached_property
    def right(self) -> Floats:
        """(Q, K) whether each question is right under each order; rows of nan where no option is right."""
        right = is_right(self.answers, self.chosen).astype(np.float64)
        right[~self.answers.any(axis=1)] = np.nan
        return right

    @cached_property
    def same_orders(self) -> bool:
        """Whether all questions of the block were shown in the same K orders."""
        return bool((self.positions == self.positions[:1]).all())

    def only(self, rows: Ints, orders: Ints) -> Block:
        """The block of some of its questions in some of their orders, by their places."""
        some, names = np.ix_(rows, orders), ("index", "answers", "pinned", "text_ranks")
        of_questions: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        decided = None if self.decided is None else self.decided[some]
        return replace(self, probs=self.probs[some], positions=self.positions[some], decided=decided, **of_questions)

    def by_position(self, values: Floats) -> Floats:
        """Rearrange values over contents (Q, K, n) to values over positions (Q, K, n)."""
        return np.take_along_axis(values, self.contents, axis=2)


@dataclass(frozen=True)
class View:
    """Every question under one presentation, padded to the largest option count N with probability 0.

    Attributes:
        ok: (Q,) whether the model replied here; other rows are all zeros, as are replies without an answer.
        probs: (Q, N) probability of each content.
        positions: (Q, N) position of each content.
        labels: (Q, N) which label of the standard sequence each content carried, 0 = first.
        decided: (Q,) as in :class:`Block`.
    """

    ok: Bools
    probs: Floats
    positions: Ints
    labels: Ints
    decided: Ints | None = None

    @cached_property
    def chosen(self) -> Ints:
        """(Q,) the content chosen, -1 for no answer; of tied ones the first shown, unless it was ``decided``."""
        return choose(self.probs, self.positions).astype(np.int64) if self.decided is None else self.decided


@dataclass(frozen=True)
class QuestionArrays:
    """Q questions as arrays, in order of id; N is the largest option count.

    Attributes:
        ids, subjects: (Q,) of each question.
        n_options: (Q,) option count.
        answers, pinned: (Q, N) padded with False.
        text_ranks: (Q, N) rank of each option's text among the question's; arbitrary where there is no such option.
        contexts: (Q,) the passage of each question, empty where it has none or the responses do not say.
    """

    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    n_options: Ints
    answers: Bools
    pinned: Bools
    text_ranks: Ints
    contexts: tuple[str, ...]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, int, Iterable[int], Iterable[int], Sequence[int], str]]) -> Self:
        """From id, subject, number of options, right and pinned ones, text ranks and context of each question."""
        ids, subjects, sizes, rights, places, ranks, contexts = zip(*rows, strict=True)
        width = max(sizes)
        answers, pinned = (np.zeros((len(ids), width), bool) for _ in range(2))
        text_ranks = np.tile(np.arange(width, dtype=np.int64), (len(ids), 1))
        for q, (right, pins, of_texts) in enumerate(zip(rights, places, ranks, strict=True)):
            answers[q, [content for content in right if content >= 0]] = pinned[q, list(pins)] = True
            if of_texts:
                text_ranks[q, : len(of_texts)] = of_texts
        return cls(ids, subjects, np.asarray(sizes, np.int64), answers, pinned, text_ranks, contexts)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        """N, the largest option count."""
        return int(self.answers.shape[1])

    @cached_property
    def place(self) -> dict[str, int]:
        """Id of each question -> its row."""
        return {name: q for q, name in enumerate(self.ids)}

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
        return np.asarray(self.n_options - self.pinned.sum(axis=1))


@dataclass(frozen=True)
class OrderScores(QuestionArrays):
    """The scores of Q questions, in order of id; see :class:`Block` and :class:`View`.

    Made by :func:`unslant.metrics.read_scores` from a table of responses.

    Attributes:
        labels: the standard label sequence, as long as the largest option count.
        blocks: the order sets, without the questions with a missing order.
        given: options as the file lists them, labels in standard sequence.
        reversed: movable options from last to first, labels in standard sequence.
        labels_reversed: options as listed, labels from last to first.
        both_reversed: both.
        labels_shifted: options as listed, labels from the second on, the first at the bottom.
        n_rows: rows of these presentations.
        n_failed: rows of these presentations that got no reply or no usable scores.
        n_unanswered: replies that are no answer: unparsed, refused, or naming none or several options.
        n_censored: those of them whose best label may be one that a server did not return.
        n_bounds: label scores that are only upper bounds.
        n_incomplete: questions left out of the order sets because an order is missing or failed.
        stopped: (Q,) asked in the given and the reversed order only, because these agreed (``--adaptive``), or in the
            given one only (``--in-all-orders``), and in no order set; None where all were asked in all orders.
        checked: (Q,) asked in all orders, drawn at random to represent those of ``stopped``.
        label_mass: (Q,) probability of all labels together, of the whole vocabulary, mean over the question's
            presentations; nan where it is not known (replies, scores of a debiaser).
        full: (Q,) drawn at random to be shown in all orders, while the others were shown in one Latin square of them
            (:mod:`unslant.metrics.two_phase`), or in the published order (``--until``); None where all were alike.
    """

    labels: tuple[str, ...]
    blocks: tuple[Block, ...]
    given: View
    reversed: View
    labels_reversed: View
    both_reversed: View
    labels_shifted: View
    n_rows: int = 0
    n_failed: int = 0
    n_unanswered: int = 0
    n_censored: int = 0
    n_bounds: int = 0
    n_incomplete: int = 0
    elicitation: str = "cloze"
    stopped: Bools | None = None
    checked: Bools | None = None
    label_mass: Floats | None = None
    full: Bools | None = None

    @property
    def is_scored(self) -> bool:
        """Whether answers are probabilities, not replies."""
        return self.elicitation != GENERATE

    @property
    def relabelled(self) -> tuple[View, View, View]:
        """The views with labels in other places."""
        return self.labels_reversed, self.both_reversed, self.labels_shifted

    @cached_property
    def order_counts(self) -> Ints:
        """(Q,) number of complete orders K; 0 for an incomplete question."""
        counts = np.zeros(len(self), np.int64)
        for block in self.blocks:
            counts[block.index] = block.k
        return counts

    @cached_property
    def single(self) -> Bools:
        """(Q,) whose orders are one Latin square: those of fewer than three options that move, or of very many."""
        movable, which = np.unique(self.movable, return_inverse=True)
        return np.asarray([len(auto_arrangements(m)) <= max(1, m) for m in movable.tolist()], bool)[which]

    @cached_property
    def partial(self) -> Bools:
        """(Q,) shown in one Latin square of more orders."""
        return np.zeros(len(self), bool) if self.full is None else ~self.full & ~self.single

    @cached_property
    def selected(self) -> bool:
        """Whether answers decided which questions were asked in all orders; if not, they are random."""
        if self.stopped is None or self.checked is None:
            return False
        return bool(((self.order_counts > 0) & ~self.checked).any())

    @cached_property
    def reordered(self) -> bool:
        """Whether any question was shown in two orders; if not, no number can say anything about orders."""
        return bool((self.order_counts > 1).any())

    def under(self, orders: Ints) -> tuple[Floats, Bools]:
        """The answers under certain orders.

        Args:
            orders: (Q, R, N) content at each position of each order, from the top; only the first n count.

        Returns:
            (Q, R, N) probability by position, 0 where unknown, and (Q, R) whether that order was scored.
        """
        probs, scored = np.zeros(orders.shape), np.zeros(orders.shape[:2], bool)
        padding = ~self.exists[:, None]
        for view in (self.reversed, self.given):
            contents = np.argsort(np.where(self.exists, view.positions, self.width), axis=1, kind="stable")
            same = view.ok[:, None] & ((contents[:, None] == orders) | padding).all(axis=2)
            by_position = np.take_along_axis(view.probs, contents, axis=1)
            probs = np.where(same[:, :, None], by_position[:, None], probs)
            scored |= same
        for block in self.blocks:
            contents = orders[block.index][:, :, : block.n]
            same = (block.contents[:, None] == contents[:, :, None]).all(axis=3)  # (q, R, K)
            rows, places = same.any(axis=2).nonzero()
            at = same[rows, places].argmax(axis=1)
            probs[block.index[rows], places, : block.n] = block.by_position(block.probs)[rows, at]
            scored[block.index[rows], places] = True
        return probs, scored


def over_orders(scores: OrderScores, value: Callable[[Block], NDArray[np.generic]], least: int = 1) -> Floats:
    """(Q,) a value of every question from its order set; nan where orders are missing or nothing was reordered.

    Args:
        value: (Q,) of a block's questions.
        least: orders that a question needs to have a value.
    """
    result = np.full(len(scores), np.nan)
    for block in scores.blocks if scores.reordered else ():
        if block.k >= least:
            result[block.index] = value(block)
    return result


ROLES = ("order", "given", "reverse", "labels-reversed", "both-reversed", "labels-shifted")
"""Kinds of presentation that order metrics read."""
ORDER, GIVEN, REVERSE, LABELS_REVERSED, BOTH_REVERSED, LABELS_SHIFTED = range(6)
ROWS_AT_ONCE = 1 << 17


def labels_at(role: int, n: int) -> Ints:
    """(n,) which label of the standard sequence is at each position, from the top, in presentations of a role."""
    if role in (LABELS_REVERSED, BOTH_REVERSED):
        return np.arange(n)[::-1]
    return (np.arange(n) + (role == LABELS_SHIFTED)) % n


@dataclass(frozen=True)
class OrderRows:
    """R rows of the questions with n options.

    Attributes:
        question: (R,) place of the question in :class:`QuestionArrays`.
        role: (R,) index into :data:`ROLES`.
        contents: (R, n) content at each position, from the top.
        by_position: (R, n) its probability; zeros where the reply has no answer.
        ok: (R,) whether the model replied.
        decided: (R,) the content chosen, where something else than the place decides between tied options.
        mass: (R,) probability that all labels hold together, of the whole vocabulary; nan where it is not known.
    """

    question: Places
    role: Places
    contents: Places
    by_position: Floats
    ok: Bools
    decided: Ints | None = None
    mass: Floats | None = None

    def by_content(self, which: NDArray[np.intp]) -> tuple[Floats, Places]:
        """Probability and position of every content, (R, n) each, for the rows ``which``."""
        shape = len(which), self.contents.shape[1]
        probs, positions = np.empty(shape), np.empty(shape, np.int16)
        for start in range(0, len(which), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            positions[some] = np.argsort(self.contents[which[some]], axis=1)
            probs[some] = np.take_along_axis(self.by_position[which[some]], positions[some], axis=1)
        return probs, positions
