"""What a label and a position add to an option, question by question.

Model, each question on its own, with log P centred over the options of a page:

    log P(option) = content + effect of its position + effect of its label

Least squares over the order set gives the content and the *sum* of position and label, which stand together there.
Pages with relabelled positions, less that content, tell the two apart. Content is taken from the orders alone, because
labels out of their sequence can be unlikely in themselves, and would shift it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.preference.places import Place
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.ties import credit

Unit = Literal["nats", "shares"]

LEAST_PROBABILITY = 1e-6
"""Probabilities count as at least this much, so that a 0 does not outweigh all others."""
_ERROR = 0.002
"""Standard deviation allowed to every cell besides its sampling error, or a cell that never varies would be exact."""


@dataclass(frozen=True)
class SlotGroup:
    """Unsure questions with the same number of options, free places, and kinds of pages.

    Attributes:
        n: options.
        rows: (Q,) rows of :class:`OrderScores`.
        free: places where options move, M of them.
        values: (Q, cells) what an option got at a place of a kind of page, less its content. The first M cells are the
            free places of the order set, then come those of every other page; each page sums to zero.
        pages: (cells,) which kind of page, 0 = the order set.
        design: (cells, 2n) what an effect of 1 of each label, then of each position, makes of the cells.
    """

    n: int
    rows: NDArray[np.intp]
    free: NDArray[np.intp]
    values: Floats
    pages: Ints
    design: Floats

    @property
    def slots(self) -> Floats:
        """(Q, M) label and position effects together, from the order set."""
        return self.values[:, : len(self.free)]

    def columns(self, places: Sequence[Place]) -> Floats:
        """(M, P) what a pull of 1 at each of P places makes of the slots."""
        among = np.stack([place.among(self.n) for place in places], axis=1)
        made: Floats = self.design[: len(self.free), : self.n] @ among
        return made


def restricted(groups: Sequence[SlotGroup], rows: Bools) -> tuple[SlotGroup, ...]:
    """The groups without the questions that a (Q,) mask leaves out."""
    kept = [replace(g, rows=g.rows[rows[g.rows]], values=g.values[rows[g.rows]]) for g in groups]
    return tuple(group for group in kept if len(group.rows))


def _relabelled(scores: OrderScores) -> tuple[View, ...]:
    """Presentations with relabelled positions."""
    return scores.labels_reversed, scores.both_reversed, scores.labels_shifted


def unsure_questions(scores: OrderScores) -> Floats:
    """(Q,) 1 where the answer changes with the order or the place of the labels, 0 where not; nan with one order.

    All pages count alike. Were questions picked by their orders alone, content would seem to attract less there than on
    the other pages, and the label it carries on those more.
    """
    result = np.full(len(scores), np.nan)
    for block in scores.blocks:
        if block.k > 1:
            answered = block.chosen >= 0
            usual = np.take_along_axis(block.chosen, answered.argmax(axis=1)[:, None], axis=1)[:, 0]
            changes = (answered & (block.chosen != usual[:, None])).any(axis=1)
            for view in _relabelled(scores):
                there = view.chosen[block.index]
                changes |= view.ok[block.index] & (there >= 0) & (there != usual)
            result[block.index] = np.where(answered.any(axis=1), changes, np.nan)
    return result


def has_probabilities(scores: OrderScores) -> bool:
    """Whether any answer is more than the choice of an option."""
    return any(not np.isin(block.probs, (0.0, 1.0)).all() for block in scores.blocks)


def slot_groups(scores: OrderScores, unsure: Floats, unit: Unit) -> tuple[SlotGroup, ...]:
    """The cells of every unsure question, in log-probabilities or in choices (ties share one evenly)."""
    views = _relabelled(scores)
    groups = []
    for block in scores.blocks:
        asked = np.stack([view.ok[block.index] for view in views], axis=1)
        kinds = np.concatenate([asked, block.pinned], axis=1)
        mask = unsure[block.index] == 1
        for kind in np.unique(kinds[mask], axis=0):
            own = np.flatnonzero(mask & (kinds == kind).all(axis=1))
            usable = [view for view, there in zip(views, kind, strict=False) if there]
            groups.append(_group(block, own, np.flatnonzero(~kind[len(views) :]), usable, unit))
    return tuple(groups)


def _group(block: Block, own: NDArray[np.intp], free: NDArray[np.intp], views: list[View], unit: Unit) -> SlotGroup:
    m = len(free)
    slots_of, rank = np.eye(block.n)[free], np.zeros(block.n, np.int64)
    rank[free] = np.arange(m)
    cells = np.ix_(own, np.arange(block.k), free)
    content, slots, kept, leaked = _two_way(_measured(block.probs[cells], unit), rank[block.positions[cells]])
    # label and position stand together in the orders, so an effect of either looks the same there
    pages, designs = [slots], [np.tile(kept @ slots_of, 2)]
    rows = block.index[own]
    for view in views:
        at = rank[view.positions[rows][:, free]]
        order = np.argsort(at, axis=1)
        rest = _measured(view.probs[rows][:, free], unit) - content
        pages.append(np.take_along_axis(rest, order, axis=1))
        labels = view.labels[rows[0], free][order[0]]
        leak = np.take_along_axis(leaked, order[:, :, None], axis=1).mean(axis=0)
        effect = np.concatenate([np.eye(block.n)[labels], slots_of], axis=1)
        designs.append(_centred(effect - np.tile(leak @ slots_of, 2), axis=0))
    values = np.concatenate([_centred(page) for page in pages], axis=1)
    return SlotGroup(block.n, rows, free, values, np.repeat(np.arange(len(pages)), m), np.concatenate(designs))


def _measured(probs: Floats, unit: Unit) -> Floats:
    return _centred(np.log(np.maximum(probs, LEAST_PROBABILITY)) if unit == "nats" else credit(probs))


def _centred(values: Floats, axis: int = -1) -> Floats:
    centred: Floats = values - values.mean(axis=axis, keepdims=True)
    return centred


def _two_way(values: Floats, places: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Content and slot effects of each question by least squares.

    Args:
        values: (Q, K, M) by content, each order summing to zero.
        places: (Q, K, M) place of each content.

    Returns:
        (Q, M) contents, (Q, M) slots; (M, M) what is left of true slot effects in the slots, on average, and
        (Q, M, M) what of them gets into the contents (nothing, where every content stands everywhere equally often).
    """
    size, k, m = values.shape
    by_place = np.take_along_axis(values, np.argsort(places, axis=2), axis=2)
    sums = np.concatenate([values.sum(axis=1), by_place.sum(axis=1)], axis=1)
    counts = np.stack([(places == place).sum(axis=1) for place in range(m)], axis=2)
    centre = np.eye(m) - 1 / m
    if (counts * m == k).all():
        return sums[:, :m] / k, sums[:, m:] / k, centre, np.zeros((size, m, m))
    normal = np.zeros((size, 2 * m, 2 * m))
    normal[:, :m, :m] = normal[:, m:, m:] = k * np.eye(m)
    normal[:, :m, m:] = counts
    normal[:, m:, :m] = counts.transpose(0, 2, 1)
    inverse = np.linalg.pinv(normal, hermitian=True)
    solved = (inverse @ sums[..., None])[..., 0]
    projection = inverse @ normal
    return solved[:, :m], solved[:, m:], centre @ projection[:, m:, m:].mean(axis=0), projection[:, :m, m:] @ centre


def effects(groups: Sequence[SlotGroup], size: int, width: int) -> tuple[Floats, Floats]:
    """Label and position effects of every unsure question, by weighted least squares over its cells.

    A cell counts by one over its variance between questions, which is taken to be the same for one kind of page.

    Args:
        size, width: number of questions Q, and the largest number of options N.

    Returns:
        (Q, N) labels and (Q, N) positions, each summing to zero over a question's own; nan where a question is not
        unsure, has no such slot, or its pages leave the effect open.
    """
    labels, positions = np.full((size, width), np.nan), np.full((size, width), np.nan)
    pages = 1 + max((int(group.pages.max()) for group in groups), default=0)
    squares, degrees = np.zeros(pages), np.zeros(pages)
    for group in groups:
        squares += np.bincount(group.pages, ((group.values - group.values.mean(axis=0)) ** 2).sum(axis=0), pages)
        degrees += np.bincount(group.pages, minlength=pages) * (len(group.values) - 1)
    variance = squares / np.maximum(1, degrees)
    for group in groups:
        root = (variance[group.pages] / len(group.rows) + _ERROR**2)[:, None] ** -0.5
        solver = np.linalg.pinv(group.design * root, rcond=1e-9) * root.T
        resolved = solver @ group.design
        for into, at in ((labels, 0), (positions, group.n)):
            part = slice(at, at + group.n)
            there = np.flatnonzero(group.design[:, part].any(axis=0))
            if len(there) < 2:
                continue
            # contrasts of each slot with the mean of those that stand anywhere
            full = np.zeros((len(there), 2 * group.n))
            full[:, part] = (np.eye(group.n) - np.isin(np.arange(group.n), there) / len(there))[there]
            solved = group.values @ (full @ solver).T
            solved[:, np.abs(full @ resolved - full).max(axis=1) > 1e-6] = np.nan
            into[np.ix_(group.rows, there)] = solved
    return labels, positions


def taken(scores: OrderScores, unsure: Floats) -> tuple[Floats, Floats]:
    """Of unsure questions, (Q, N) by place: the share of orders in which it was taken, and the share expected.

    Expected is what a model would show that goes by content alone and chose the same contents equally often: 1/n where
    every option stood everywhere equally often. nan where a question is not unsure or has no such place.
    """
    share, expected = (np.full(scores.answers.shape, np.nan) for _ in range(2))
    for block in scores.blocks:
        picked = credit(block.probs)
        by_content = np.broadcast_to(picked.mean(axis=1, keepdims=True), picked.shape)
        share[block.index, : block.n] = block.by_position(picked).mean(axis=1)
        expected[block.index, : block.n] = block.by_position(by_content).mean(axis=1)
    share[unsure != 1] = expected[unsure != 1] = np.nan
    return share, expected
