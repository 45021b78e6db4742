"""What a label and a position add to an option, question by question: content, position and label told apart.

Model: log P(option) = content + effect of its position + effect of its label, each question on its own, log P centred
over the options. The order set gives content, and the sum of position and label (they stand together there). Pages
with the labels in other places give what is left of them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats, Ints
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.ties import credit

Unit = Literal["nats", "shares"]

_AT_ONCE = 10_000  # questions
LEAST = 1e-6
"""Probabilities count as at least this much, so that one that is 0 does not outweigh all others."""


@dataclass(frozen=True)
class SlotGroup:
    """Unsure questions with the same number of options, the same places free, and the same kinds of pages.

    Attributes:
        n: options.
        rows: (Q,) rows of :class:`OrderScores`.
        free: places where options move, M of them.
        values: (Q, cells) what an option got at a place of a kind of page, less its content. Cells are the free places
            of the order set, then those of every other page; each page sums to zero.
        pages: (cells,) which kind of page, 0 = the order set.
        design: (cells, 2n) what an effect of 1 of each label, then of each position, makes of the cells.
    """

    n: int
    rows: NDArray[np.intp]
    free: NDArray[np.intp]
    values: Floats
    pages: Ints
    design: Floats


def restricted(groups: tuple[SlotGroup, ...], rows: NDArray[np.bool_]) -> tuple[SlotGroup, ...]:
    """The groups without the questions that a (Q,) mask leaves out."""
    kept = [replace(g, rows=g.rows[rows[g.rows]], values=g.values[rows[g.rows]]) for g in groups]
    return tuple(group for group in kept if len(group.rows))


def relabelled(scores: OrderScores) -> tuple[View, ...]:
    """The pages on which labels stand in other places."""
    return scores.labels_reversed, scores.both_reversed, scores.labels_shifted


def unsure_questions(scores: OrderScores) -> Floats:
    """(Q,) 1 where the answer changes with the order or the place of the labels, 0 where not.

    nan with one order or no answer.

    All pages count alike. Were questions picked by their orders alone, content would seem to attract less there than on
    the other pages, and the label it carries on those more.
    """
    result = np.full(len(scores), np.nan)
    for block in scores.blocks:
        if block.k > 1:
            answered = block.chosen >= 0
            usual = np.take_along_axis(block.chosen, answered.argmax(axis=1)[:, None], axis=1)[:, 0]
            changes = (answered & (block.chosen != usual[:, None])).any(axis=1)
            for view in relabelled(scores):
                there = view.chosen[block.index]
                changes |= view.ok[block.index] & (there >= 0) & (there != usual)
            result[block.index] = np.where(answered.any(axis=1), changes, np.nan)
    return result


def has_probabilities(scores: OrderScores) -> bool:
    """Whether any answer is more than the choice of an option."""
    return any(not np.isin(block.probs, (0.0, 1.0)).all() for block in scores.blocks)


def slot_groups(scores: OrderScores, unsure: Floats, unit: Unit) -> tuple[SlotGroup, ...]:
    """The cells of every unsure question, in log-probabilities or in choices (ties share one evenly)."""
    views = relabelled(scores)
    groups = []
    for block in scores.blocks:
        asked = np.stack([view.ok[block.index] for view in views], axis=1)
        kinds = np.concatenate([asked, block.pinned], axis=1)
        mask = unsure[block.index] == 1
        for kind in np.unique(kinds[mask], axis=0):
            free = np.flatnonzero(~kind[len(views) :])
            own = np.flatnonzero(mask & (kinds == kind).all(axis=1))
            usable = [view for view, there in zip(views, kind, strict=False) if there]
            groups.append(_group(block, own, free, usable, unit))
    return tuple(groups)


def _group(block: Block, own: NDArray[np.intp], free: NDArray[np.intp], views: list[View], unit: Unit) -> SlotGroup:
    m = len(free)
    rank = np.zeros(block.n, np.int64)
    rank[free] = np.arange(m)
    cells = np.ix_(own, np.arange(block.k), free)
    values = _measured(block.probs[cells], unit)
    places = rank[block.positions[cells]]
    content, slots, kept, leaked = _two_way(values, places)
    pages, designs = [slots], [_both(np.eye(block.n)[free], kept)]
    rows = block.index[own]
    for view in views:
        at = rank[view.positions[rows][:, free]]
        order = np.argsort(at, axis=1)
        rest = _measured(view.probs[rows][:, free], unit) - content
        pages.append(np.take_along_axis(rest, order, axis=1))
        labels = view.labels[rows[0], free][order[0]]
        leak = np.take_along_axis(leaked, order[:, :, None], axis=1).mean(axis=0)
        effect = np.concatenate([np.eye(block.n)[labels], np.eye(block.n)[free]], axis=1)
        designs.append(_centred(effect - _both(np.eye(block.n)[free], leak), axis=0))
    return SlotGroup(
        block.n,
        rows,
        free,
        np.concatenate([_centred(page) for page in pages], axis=1),
        np.repeat(np.arange(len(pages)), m),
        np.concatenate(designs),
    )


def _measured(probs: Floats, unit: Unit) -> Floats:
    return _centred(np.log(np.maximum(probs, LEAST)) if unit == "nats" else credit(probs))


def _centred(values: Floats, axis: int = -1) -> Floats:
    centred: Floats = values - values.mean(axis=axis, keepdims=True)
    return centred


def _both(slots: Floats, operator: Floats) -> Floats:
    """What an effect of each label, then of each position, makes of slots where the two stand together."""
    return np.tile(operator @ slots, 2)


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
    sums, counts = np.empty((size, 2 * m)), np.empty((size, m, m), np.int64)
    for start in range(0, size, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        value, place = values[some], places[some]
        by_place = np.take_along_axis(value, np.argsort(place, axis=2), axis=2)
        sums[some] = np.concatenate([value.sum(axis=1), by_place.sum(axis=1)], axis=1)
        counts[some] = (place[..., None] == np.arange(m)).sum(axis=1)
    if (counts * m == k).all():
        return sums[:, :m] / k, sums[:, m:] / k, np.eye(m) - 1 / m, np.zeros((size, m, m))
    normal = np.zeros((size, 2 * m, 2 * m))
    normal[:, :m, :m] = normal[:, m:, m:] = k * np.eye(m)
    normal[:, :m, m:] = counts
    normal[:, m:, :m] = counts.transpose(0, 2, 1)
    inverse = np.linalg.pinv(normal, hermitian=True)
    solved = (inverse @ sums[..., None])[..., 0]
    projection = inverse @ normal
    centre = np.eye(m) - 1 / m
    kept = centre @ projection[:, m:, m:].mean(axis=0)
    return solved[:, :m], solved[:, m:], kept, projection[:, :m, m:] @ centre


@dataclass(frozen=True)
class Weighing:
    """How much each cell of each group counts in a fit to the means: one over its variance.

    Attributes:
        groups: as measured.
        weights: (cells,) for each group.
        error: standard deviation that every cell is allowed beside that of its mean.
    """

    groups: tuple[SlotGroup, ...]
    weights: tuple[Floats, ...]
    error: float

    @classmethod
    def of(cls, groups: tuple[SlotGroup, ...], error: float) -> Weighing:
        """Variances between questions are taken to be the same for one kind of page, whatever the number of options."""
        variance = page_variances(groups)
        weights = tuple(1 / (variance[group.pages] / len(group.rows) + error**2) for group in groups)
        return cls(groups, weights, error)

    def __iter__(self) -> Iterator[tuple[SlotGroup, Floats]]:
        return iter(zip(self.groups, self.weights, strict=True))


def page_variances(groups: Sequence[SlotGroup]) -> Floats:
    """Variance between questions of a cell, for each kind of page."""
    pages = 1 + max(int(group.pages.max()) for group in groups)
    squares, degrees = np.zeros(pages), np.zeros(pages)
    for group in groups:
        spread = ((group.values - group.values.mean(axis=0)) ** 2).sum(axis=0)
        squares += np.bincount(group.pages, spread, pages)
        degrees += np.bincount(group.pages, minlength=pages) * (len(group.values) - 1)
    return np.asarray(squares / np.maximum(1, degrees))


def effects(weighing: Weighing, size: int, width: int) -> tuple[Floats, Floats]:
    """Label and position effects of every unsure question, by weighted least squares over its cells.

    Args:
        size, width: number of questions Q, and the largest number of options N.

    Returns:
        (Q, N) labels and (Q, N) positions, each summing to zero over a question's own; nan where a question is not
        unsure, has no such slot, or its pages leave the effect open.
    """
    labels, positions = np.full((size, width), np.nan), np.full((size, width), np.nan)
    for group, weights in weighing:
        root = np.sqrt(weights)[:, None]
        solver = np.linalg.pinv(group.design * root, rcond=1e-9) * root.T
        resolved = solver @ group.design
        for into, at in ((labels, 0), (positions, group.n)):
            part = slice(at, at + group.n)
            there = np.flatnonzero(group.design[:, part].any(axis=0))
            if len(there) < 2:
                continue
            # contrasts of each slot with the mean of those that stand anywhere
            contrast = (np.eye(group.n) - np.isin(np.arange(group.n), there) / len(there))[there]
            full = np.zeros((len(there), 2 * group.n))
            full[:, part] = contrast
            open_ = np.abs(full @ resolved - full).max(axis=1) > 1e-6
            found = group.values @ (full @ solver).T
            found[:, open_] = np.nan
            into[np.ix_(group.rows, there)] = found
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
    for values in (share, expected):
        values[unsure != 1] = math.nan
    return share, expected
