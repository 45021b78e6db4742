"""Which labels are answered, how often each is right, and what each adds to an option where the model is unsure.

A *slot* is a label of the standard sequence and its position; with labels in standard sequence the two
are one. Slots are numbered from the top; ``last`` is slot n-1 of each question, wherever n differs between questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats
from unslant.metrics.bootstrap import UNBOUNDED, Bootstrap
from unslant.metrics.estimate import Estimate, by_design
from unslant.metrics.registry import Measured, Numbers, metric
from unslant.metrics.sampling import Codes, holm, student
from unslant.metrics.scores import LEAST_PROBABILITY, Block, OrderScores, View, credit
from unslant.metrics.two_phase import represented

Kind = Literal["label", "position"]
Unit = Literal["nats", "shares"]
LAST = "last"
"""Name of the last position, wherever it is."""
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

# Cells of the design that are fitted together, to save memory.
_AT_ONCE = 1 << 21
# A relabelled page weighs this much, an order 1: it decides only what the orders leave open. Labels out of sequence can
# be unlikely in themselves, and with full weight would shift the contents.
_RELABELLED = 1e-3
# Weight of "contents are alike", for orders that leave open what is content and what position, as one order and its
# reverse do: contents come in any order, and even out over questions.
_ALIKE = 1e-6


@dataclass(frozen=True)
class Slots:
    """Per question and slot, as shares of its presentations; nan where a question has no such slot.

    Attributes:
        predicted: (Q, N) share in which the slot was answered (the first shown, among tied options).
        gold: (Q, N) share in which the right option was there; nan without exactly one right option.
        hit: (Q, N) share in which both.
    """

    predicted: Floats
    gold: Floats
    hit: Floats


def given_slots(scores: OrderScores) -> Slots:
    """Slots under the given order."""
    view = scores.given
    predicted, gold = (np.zeros(scores.answers.shape) for _ in range(2))
    rows = np.arange(len(scores))
    predicted[rows, view.positions[rows, view.chosen]] = view.chosen >= 0
    gold[rows, view.positions[rows, scores.answers.argmax(axis=1)]] = 1.0
    return _masked(scores, predicted, gold, predicted * gold, view.ok)


def order_slots(scores: OrderScores) -> Slots:
    """Slots over all orders of each question; nothing where no question was shown in two."""
    predicted, gold, hit = (np.zeros(scores.answers.shape) for _ in range(3))
    for block in scores.blocks:
        at = np.take_along_axis(block.positions, block.chosen[..., None], axis=2) == np.arange(block.n)
        at &= (block.chosen >= 0)[..., None]
        right = block.by_position(np.broadcast_to(block.answers[:, None].astype(np.float64), block.probs.shape))
        predicted[block.index, : block.n] = at.mean(axis=1)
        gold[block.index, : block.n] = right.mean(axis=1)
        hit[block.index, : block.n] = (at * right).mean(axis=1)
    return _masked(scores, predicted, gold, hit, (scores.order_counts > 0) & (scores.order_counts > 1).any())


def _masked(scores: OrderScores, predicted: Floats, gold: Floats, hit: Floats, ok: NDArray[np.bool_]) -> Slots:
    present = scores.exists & ok[:, None]
    single = present & (scores.answers.sum(axis=1) == 1)[:, None]
    return Slots(np.where(present, predicted, np.nan), np.where(single, gold, np.nan), np.where(single, hit, np.nan))


def at_slot(values: Floats, slot: NDArray[np.integer]) -> Floats:
    """One slot of each question: (Q, N) and (Q,) in, (Q,) out."""
    return np.asarray(values[np.arange(len(values)), slot])


def ordinal(place: int) -> str:
    """``first`` for 0."""
    return ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th"


class Place(NamedTuple):
    """A position and the label that usually appears there: 0 first, -1 last; None is the middle one, or the two.

    Of a habit also which of the two is meant (``None``: cannot be known), and whether it is taken or avoided.
    """

    rank: int | None
    kind: Kind | None = None
    taken: bool = True

    def among(self, n: int) -> Floats:
        """(n,) 1 at this place of n; zeros where there is no such place."""
        at = np.arange(n)
        if self.rank is None:
            return np.asarray((at == (n - 1) // 2) | (at == n // 2), np.float64)
        return np.asarray(at == self.rank + n * (self.rank < 0), np.float64)

    def name(self, kind: Kind, labels: Sequence[str], sizes: Iterable[int]) -> str:
        """``A`` (of the standard ``labels``), ``the last label``, ``the second position``, for numbers of options."""
        sizes = set(sizes)
        if kind == "label" and (len(sizes) == 1 or (self.rank is not None and self.rank >= 0)):
            return " or ".join(labels[i] for i in np.flatnonzero(self.among(max(sizes))).tolist())
        if self.rank is None:
            return f"{'the' if kind == 'label' or all(n % 2 for n in sizes) else 'a'} middle {kind}"
        rank = {-1: "last", -2: "second to last"}.get(self.rank) or ordinal(self.rank)
        return f"the {rank} {kind}"


@dataclass(frozen=True)
class LabelShare(Measured):
    """One label, as shown, or ``last``, the last position of each question."""

    label: str
    numbers: Numbers


@metric("predicted", "predicted", "share of answers under the label, as published", unit="share")
@metric("gold", "gold", "share of right options under the label, as published", unit="share")
@metric("recall", "recall", "accuracy where the right option has the label as published", unit="share")
@metric("order_labels.recall", "recall, all orders", "accuracy with the right option moved to the label", unit="share")
@metric("predicted_excess", "predicted less gold", "share of answers minus share of right options", unit="difference")
def label_shares(scores: OrderScores, slots: Slots, bootstrap: Bootstrap) -> tuple[LabelShare, ...]:
    """One row per label of the standard sequence, then ``last``.

    Shares are among the questions that have this label; gold and recall need exactly one right option. Gold is a matter
    of the questions and their orders, not of any answer, and has no interval.
    """
    rows = []
    for j, label in enumerate((*scores.labels, LAST)):
        column = np.full(len(scores), j) if j < scores.width else scores.n_options - 1
        predicted, gold, hit = (at_slot(x, column) for x in (slots.predicted, slots.gold, slots.hit))
        hits, golds = np.nan_to_num(hit), np.nan_to_num(gold)
        numbers = {
            "predicted": bootstrap.mean(predicted, room="unsure"),
            "gold": by_design(gold),
            "recall": bootstrap.ratio(hits, golds, room="unsure", note="the right option is never here"),
            "predicted_excess": bootstrap.mean(predicted - gold, share=False, room="unsure"),
        }
        rows.append(LabelShare(label, Numbers(numbers)))
    return tuple(rows)


def place_shares(scores: OrderScores, unsure: Floats) -> tuple[Floats, Floats]:
    """(Q, N) share of orders in which each place was taken, and that expected of a model that goes by content alone.

    It chooses the same contents equally often: 1/n where every option was everywhere equally often. nan where a
    question is not unsure.
    """
    shares, expected = (np.full((len(scores), scores.width), np.nan) for _ in range(2))
    for block in scores.blocks:
        picks = credit(block.probs)
        by_content = np.broadcast_to(picks.mean(axis=1, keepdims=True), picks.shape)
        shares[block.index, : block.n] = block.by_position(picks).mean(axis=1)
        expected[block.index, : block.n] = block.by_position(by_content).mean(axis=1)
    shares[unsure != 1] = expected[unsure != 1] = np.nan
    return shares, expected


class Effects(NamedTuple):
    """(Q, N) what each slot, label and position adds to an option beyond the others of its question.

    nan where a question is not unsure, a place never changes, or the pages leave it open.
    """

    slots: Floats
    labels: Floats
    positions: Floats
    mirrored: Floats  # label less position, less those of the place as far from the other end: all that reversal shows


def effects_of(scores: OrderScores, unsure: Floats) -> dict[Unit, Effects]:
    """The effects on the choice (ties share one evenly), and last on log-probabilities where there are any.

    Each question is fitted on its own, with log P centred over the options of a page:

        log P(option) = content + effect of its label + effect of its position

    by least squares over the order set and the pages with relabelled positions. In the orders, label and position go
    together as a *slot*, or place, which gives their sum; only the other pages separate the two.
    """
    effects = np.full((2, len(Effects._fields), len(scores), scores.width), np.nan)
    for block in scores.blocks:
        rows = np.flatnonzero(unsure[block.index] == 1)
        cells = 3 * (block.k + len(scores.relabelled)) * block.n**2
        parts = min(len(rows), 1 + len(rows) * cells // _AT_ONCE)  # one question may be more than fits
        for some in np.array_split(rows, parts) if parts else ():
            effects[:, :, block.index[some], : block.n] = _fitted(block, some, scores.relabelled)
    by_unit: dict[Unit, Effects] = {"shares": Effects(*effects[0]), "nats": Effects(*effects[1])}
    if all(np.isin(block.probs, (0.0, 1.0)).all() for block in scores.blocks):
        del by_unit["nats"]
    return by_unit


def _fitted(block: Block, rows: Codes, views: Sequence[View]) -> Floats:
    """(units, 4, Q, n) least squares for some questions of a block."""
    n, index, free, at = block.n, block.index[rows], ~block.pinned[rows], block.positions[rows]
    pages: list[tuple[NDArray[Any], ...]] = [(block.probs[rows], at, at, np.ones(at.shape[:2]))]
    for view in views:
        page = (values[index, None, :n] for values in (view.probs, view.labels, view.positions))
        pages.append((*page, _RELABELLED * view.ok[index, None]))
    probs, labels, positions, weights = (np.concatenate(parts, axis=1) for parts in zip(*pages, strict=True))
    contents = np.broadcast_to(np.eye(n), (*labels.shape, n))
    measured = np.stack([credit(probs * free[:, None]), np.log(np.maximum(probs, LEAST_PROBABILITY))], axis=3)
    table = np.concatenate([contents, np.eye(n)[labels], np.eye(n)[positions], measured], axis=3)
    table = np.sqrt(weights)[..., None, None] * _centred(table, free[:, None, :, None], axis=2)
    table = table.reshape(len(rows), -1, 3 * n + 2)
    products, each = table.transpose(0, 2, 1) @ table, np.eye(n)
    products[:, :n, :n] += _ALIKE * each
    # the same for all, but for rounding, where every option was everywhere equally often
    normal, sums = products[:, :-2, :-2].round(12), products[:, :-2, -2:]
    normal = normal[:1] if (normal == normal[:1]).all() else normal
    inverse = np.linalg.pinv(normal, rcond=1e-9, hermitian=True)
    solved, left_open = inverse @ sums, inverse @ normal - np.eye(3 * n)
    used = normal.diagonal(axis1=1, axis2=2)[:, n : 2 * n] > 0
    effects = []
    for columns, among in (((0, 1, 1), free), ((0, 1, 0), used), ((0, 0, 1), free), ((0, 1, -1), free)):
        pick = np.kron(columns, each - each[::-1] if -1 in columns else each)
        estimates, residuals = (_centred(pick @ x, among[..., None], axis=1) for x in (solved, left_open))
        determined = among[..., None] & (np.abs(residuals).max(axis=2, keepdims=True) <= 1e-6)
        effects.append(np.where(determined, estimates, np.nan))
    return np.stack(effects).transpose(3, 0, 1, 2)


def _centred(values: Floats, among: Bools, axis: int) -> Floats:
    """Values less their mean among some; 0 at the others."""
    mean = np.where(among, values, 0.0).sum(axis=axis, keepdims=True) / among.sum(axis=axis, keepdims=True)
    return np.asarray(np.where(among, values - mean, 0.0))


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


@metric("chosen", "chosen when unsure", "share of orders in which it is chosen, where unsure", unit="share")
@metric("expected", "expected", "chosen when unsure by a model that goes by content alone", unit="share", plain=True)
@metric("preference.effect", "effect", "added to an option's log-probability when unsure", digits=2, unit="nats",
        signed=True)  # fmt: skip
@metric("preference.excess", "effect on choice", "added to the share of unsure answers", unit="difference")
@metric("preference.labels.p", "p", "test that it adds nothing, corrected for all rows", unit="p", source="Holm 1979")
def slot_effects(
    scores: OrderScores,
    kind: Kind,
    effects: Mapping[Unit, Effects],
    shares: Floats,
    expected: Floats,
    bootstrap: Bootstrap,
) -> tuple[SlotEffect, ...]:
    """The effect of every label, or of every position.

    Args:
        effects: :func:`effects_of`.
        shares, expected: :func:`place_shares`.
    """
    # of an adaptive audit, those that were asked because two answers differ are all here, the others in part
    weights, open_pages = represented(scores), "label and position are together on every page"
    if any(view.ok.any() for view in scores.relabelled):
        open_pages = "the pages with rearranged labels leave open which of label and position it is"
    mixed, last = len(set(scores.n_options.tolist())) > 1, scores.n_options - 1
    columns = [np.full(len(scores), i) for i in range(scores.width)]
    if kind == "label":
        slots = [*zip(scores.labels, columns, strict=True), *([("last label", last)] if mixed else [])]
    else:
        upper = columns if mixed else columns[:-1]
        slots = [*((ordinal(i), column) for i, column in enumerate(upper)), (LAST, last)]
    of_unit = {unit: one.labels if kind == "label" else one.positions for unit, one in effects.items()}
    tested = of_unit.get("nats", of_unit["shares"])
    p_values = holm([student(bootstrap.sampling, at_slot(tested, column))[1] for _, column in slots])
    rows = []
    for (name, column), p in zip(slots, p_values, strict=True):
        choice, share, by_content = (at_slot(x, column) for x in (of_unit["shares"], shares, expected))
        some, unsure = np.isfinite(choice), np.isfinite(share)
        effect = excess = Estimate.undefined(open_pages if unsure.any() else "no unsure question")
        if some.any():
            # where nearly all are at their most, no interval we know covers as it should
            added = float(np.average(choice[some], weights=weights[some]))
            excess = Estimate.bare(added, int(some.sum()), "no interval: see the share chosen, and p")
            effect = Estimate.undefined("answers in words: no probabilities")
            if "nats" in of_unit:
                effect = bootstrap.mean(at_slot(tested, column), bounds=UNBOUNDED)
        content = float(np.average(by_content[unsure], weights=weights[unsure])) if unsure.any() else math.nan
        chosen = bootstrap.ratio(
            np.nan_to_num(share) * weights, unsure * weights, room="unsure", note="no unsure question"
        )
        rows.append(SlotEffect(name, effect, excess, chosen, content, p))
    return tuple(rows)
