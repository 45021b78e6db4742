"""What each label and each position adds to an option, for the questions that a model is unsure of.

Model, each question on its own, with log P centred over the options of a page:

    log P(option) = content + effect of its position + effect of its label

Least squares over the order set gives the content and the *sum* of position and label, which go together there.
Pages with relabelled positions, minus that content, separate the two. Content is taken from the orders alone, because
labels out of their sequence can be unlikely in themselves, and would shift it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.bootstrap import UNBOUNDED, Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.labels import at_slot
from unslant.metrics.registry import metric
from unslant.metrics.sampling import holm
from unslant.metrics.scores import LEAST_PROBABILITY, Block, OrderScores, View
from unslant.metrics.ties import credit

Unit = Literal["nats", "shares"]
Rows = NDArray[np.intp]

LAST = "last"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_AT_ONCE = 1 << 13
"""Number of questions whose orders are all looked at together."""
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
    rows: Rows
    free: Rows
    values: Floats
    pages: Ints
    design: Floats

    @property
    def slots(self) -> Floats:
        """(Q, M) label and position effects together, from the order set."""
        return self.values[:, : len(self.free)]


@metric("unsure", "unsure", "questions whose answer changes with the order or the labels", unit="share")
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
                chosen = view.chosen[block.index]
                changes |= view.ok[block.index] & (chosen >= 0) & (chosen != usual)
            result[block.index] = np.where(answered.any(axis=1), changes, np.nan)
    return result


def _relabelled(scores: OrderScores) -> tuple[View, ...]:
    return scores.labels_reversed, scores.both_reversed, scores.labels_shifted


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
            alike = np.flatnonzero(mask & (kinds == kind).all(axis=1))
            usable = [view for view, there in zip(views, kind, strict=False) if there]
            groups.append(_group(block, alike, np.flatnonzero(~kind[len(views) :]), usable, unit))
    return tuple(groups)


def _group(block: Block, alike: Rows, free: Rows, views: Sequence[View], unit: Unit) -> SlotGroup:
    parts = [_cells(block, part, free, views, unit) for part in _parts(alike)]
    values = np.concatenate([values for values, _ in parts])
    # a design is a mean over questions
    design = np.average([design for _, design in parts], axis=0, weights=[len(values) for values, _ in parts])
    pages = np.repeat(np.arange(1 + len(views)), len(free))
    return SlotGroup(block.n, block.index[alike], free, values, pages, design)


def _parts(rows: Rows) -> Iterator[Rows]:
    """The questions, some at a time: copies of all their orders at once would be the most memory of an audit."""
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


def _cells(block: Block, alike: Rows, free: Rows, views: Sequence[View], unit: Unit) -> tuple[Floats, Floats]:
    """(Q, M x pages) cells of questions that were asked alike, and their design."""
    m, slots_of, rank = len(free), np.eye(block.n)[free], np.zeros(block.n, np.int64)
    rank[free] = np.arange(m)
    cells = np.ix_(alike, np.arange(block.k), free)
    content, slots, kept, leaked = _two_way(_measured(block.probs[cells], unit), rank[block.positions[cells]])
    # label and position go together in the orders, so an effect of either looks the same there
    pages, designs = [slots], [np.tile(kept @ slots_of, 2)]
    rows = block.index[alike]
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
    return values, np.concatenate(designs)


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
        (Q, M, M) what of them gets into the contents (nothing, where every content appears everywhere equally often).
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
    normal[:, :m, m:], normal[:, m:, :m] = counts, counts.transpose(0, 2, 1)
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
            # contrasts of each slot with the mean of those that can be anywhere
            full = np.zeros((len(there), 2 * group.n))
            full[:, part] = (np.eye(group.n) - np.isin(np.arange(group.n), there) / len(there))[there]
            solved = group.values @ (full @ solver).T
            solved[:, np.abs(full @ resolved - full).max(axis=1) > 1e-6] = np.nan
            into[np.ix_(group.rows, there)] = solved
    return labels, positions


@dataclass(frozen=True)
class SlotValues:
    """What the tables are means of: (Q, N) arrays, nan where a question is not unsure or leaves the value open.

    Attributes:
        nats, shares: effects of (labels, positions) on log-probability and on choice.
        share: by place, the share of orders in which it was taken.
        expected: that share for a model that goes by content alone and chose the same contents equally often: 1/n where
            every option stood everywhere equally often.
    """

    nats: tuple[Floats, Floats]
    shares: tuple[Floats, Floats]
    share: Floats
    expected: Floats

    @classmethod
    def of(cls, scores: OrderScores, unsure: Floats, groups: tuple[SlotGroup, ...], unit: Unit) -> SlotValues:
        """From the cells of the unsure questions.

        Args:
            unsure: (Q,) 1 where the answer changes with the order.
        """
        shape = len(scores), scores.width
        share, expected, nothing = (np.full(shape, np.nan) for _ in range(3))
        for block in scores.blocks:
            for part in _parts(np.arange(len(block.index))):
                picked, contents = credit(block.probs[part]), block.contents[part]
                by_content = np.broadcast_to(picked.mean(axis=1, keepdims=True), picked.shape)
                at = np.ix_(block.index[part], np.arange(block.n))
                share[at] = np.take_along_axis(picked, contents, axis=2).mean(axis=1)
                expected[at] = np.take_along_axis(by_content, contents, axis=2).mean(axis=1)
        share[unsure != 1] = expected[unsure != 1] = np.nan
        choices = slot_groups(scores, unsure, "shares") if unit == "nats" else groups
        nats = effects(groups, *shape) if groups and unit == "nats" else (nothing, nothing)
        return cls(nats, effects(choices, *shape) if choices else (nothing, nothing), share, expected)


@dataclass(frozen=True)
class SlotEffect:
    """One label (wherever it is) or one position (with any label).

    Attributes:
        label: the label as written (``last label``: that of each question's last), or ``first``, ``second``, ...
            ``last``.
        effect: what it adds to the log-probability of an option, in nats, beyond the other labels (or positions); mean
            over unsure questions.
        excess: the same for the choice: what it adds to the share of unsure answers.
        chosen: share of unsure answers in its place over the orders, where label and position go together; ties
            shared evenly.
        expected: ``chosen`` for a model that goes by content alone.
        p: of "it adds nothing" (in nats where there are probabilities), corrected for the number of rows (Holm 1979).
    """

    label: str
    effect: Estimate
    excess: Estimate
    chosen: Estimate
    expected: float
    p: float


@metric("chosen", "chosen when unsure", "share of orders, where unsure", unit="share")
@metric("expected", "expected", "chosen when unsure by a model going by content alone", unit="share", plain=True)
@metric("preference.effect", "effect", "added to an option's log-probability when unsure", digits=2, unit="nats",
        signed=True)  # fmt: skip
@metric("preference.excess", "effect on choice", "added to the share of unsure answers", unit="difference")
@metric("preference.labels.p", "p", "it adds nothing; corrected for the number of rows", unit="p", source="Holm 1979")
def slot_effects(scores: OrderScores, values: SlotValues, unit: Unit, bootstrap: Bootstrap) -> list[list[SlotEffect]]:
    """The effect of every label, and of every position."""
    mixed, last = len(set(scores.n_options.tolist())) > 1, scores.n_options - 1
    columns = [np.full(len(scores), i) for i in range(scores.width)]
    labels = [*zip(scores.labels, columns, strict=True), *([("last label", last)] if mixed else [])]
    positions = [(ordinal(i), column) for i, column in enumerate(columns[: scores.width - (not mixed)])]
    tables = []
    for at, slots in enumerate((labels, [*positions, (LAST, last)])):
        tested = values.nats[at] if unit == "nats" else values.shares[at]
        p = holm([_p(at_slot(tested, column), bootstrap) for _, column in slots])
        tables.append([_row(*slot, values, at, bootstrap, own_p) for slot, own_p in zip(slots, p, strict=True)])
    return tables


def _row(name: str, column: Ints, values: SlotValues, at: int, bootstrap: Bootstrap, p: float) -> SlotEffect:
    nats, shares, share, expected = (
        at_slot(array, column) for array in (values.nats[at], values.shares[at], values.share, values.expected)
    )

    def missing(array: Floats) -> str:
        if np.isfinite(array).any():
            return ""
        if np.isfinite(shares).any():
            return "answers in words: no probabilities"
        return "label and position are together on every page" if np.isfinite(share).any() else "no unsure question"

    excess = Estimate.undefined(missing(shares))
    if not excess.note:  # where nearly all are at their most, no interval we know covers as it should
        note = "no interval: see the share chosen, and p"
        excess = Estimate.bare(float(np.nanmean(shares)), int(np.isfinite(shares).sum()), note)
    by_content = float(np.nanmean(expected)) if np.isfinite(expected).any() else math.nan
    effect = bootstrap.mean(nats, bounds=UNBOUNDED, note=missing(nats))
    return SlotEffect(name, effect, excess, bootstrap.mean(share, note=missing(share)), by_content, p)


def _p(values: Floats, bootstrap: Bootstrap) -> float:
    known: Bools = np.isfinite(values)
    if known.sum() < 2:
        return math.nan
    return float(bootstrap.sampling.student(np.nan_to_num(values)[:, None], known)[1][0])


def ordinal(place: int) -> str:
    """``first`` for 0."""
    return ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th"
