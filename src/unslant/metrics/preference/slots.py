"""What each label and each position adds to an option, for the questions that a model is unsure of.

Each question is fitted on its own, with log P centred over the options of a page:

    log P(option) = content + effect of its label + effect of its position

by least squares over the order set and the pages with relabelled positions. In the orders, label and position go
together as a *slot*, which gives their sum; only the other pages separate the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.bootstrap import UNBOUNDED, Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.labels import at_slot
from unslant.metrics.registry import metric
from unslant.metrics.sampling import Sampling, holm
from unslant.metrics.scores import LEAST_PROBABILITY, Block, OrderScores, View, credit

Unit = Literal["nats", "shares"]
Rows = NDArray[np.intp]

LAST = "last"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
# Cells of the design that are fitted together, to save memory.
_AT_ONCE = 1 << 21
# A relabelled page weighs this much, an order 1: it decides only what the orders leave open. Labels out of sequence can
# be unlikely in themselves, and with full weight would shift the contents.
_RELABELLED = 1e-3
# Weight of "contents are alike", for orders that leave open what is content and what position, as one order and its
# reverse do: contents come in any order, and even out over questions.
_ALIKE = 1e-6


class Effects(NamedTuple):
    """(Q, N) what each slot, label and position adds to an option beyond the others of its question.

    nan where a question is not unsure, a place never changes, or the pages leave it open.
    """

    slots: Floats
    labels: Floats
    positions: Floats


@metric("unsure", "unsure", "questions whose answer changes with the order or the labels", unit="share")
def unsure_questions(scores: OrderScores) -> Floats:
    """(Q,) 1 where the answer changes with the order or the place of the labels, 0 where not; nan with one order."""
    result = np.full(len(scores), np.nan)
    for block in scores.blocks:
        if block.k > 1:
            # All pages count alike. Were questions picked by their orders alone, content would seem to attract less
            # there than on the other pages, and the label it carries on those more.
            others = [np.where(view.ok, view.chosen, -1)[block.index] for view in scores.relabelled]
            pages = np.column_stack([block.chosen, *others])
            changes = ((pages >= 0) & (pages != pages.max(axis=1, keepdims=True))).any(axis=1)
            result[block.index] = np.where((block.chosen >= 0).any(axis=1), changes, np.nan)
    return result


def effects_of(scores: OrderScores, unsure: Floats) -> dict[Unit, Effects]:
    """The effects on the choice (ties share one evenly), and last on log-probabilities where there are any."""
    effects = np.full((2, len(Effects._fields), len(scores), scores.width), np.nan)
    for block in scores.blocks:
        rows = np.flatnonzero(unsure[block.index] == 1)
        cells = 3 * (block.k + len(scores.relabelled)) * block.n**2
        for some in np.array_split(rows, 1 + len(rows) * cells // _AT_ONCE) if len(rows) else ():
            effects[:, :, block.index[some], : block.n] = _fitted(block, some, scores.relabelled)
    found: dict[Unit, Effects] = {"shares": Effects(*effects[0]), "nats": Effects(*effects[1])}
    if all(np.isin(block.probs, (0.0, 1.0)).all() for block in scores.blocks):
        del found["nats"]
    return found


def _fitted(block: Block, rows: Rows, views: Sequence[View]) -> Floats:
    """(units, 3, Q, n) least squares for some questions of a block."""
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
    products = table.transpose(0, 2, 1) @ table
    products[:, :n, :n] += _ALIKE * np.eye(n)
    # the same for all, but for rounding, where every option was everywhere equally often
    normal, sums = products[:, :-2, :-2].round(12), products[:, :-2, -2:]
    if (normal == normal[:1]).all():
        normal = normal[:1]
    inverse = np.linalg.pinv(normal, rcond=1e-9, hermitian=True)
    solved, left_open = inverse @ sums, inverse @ normal - np.eye(3 * n)
    used = normal.diagonal(axis1=1, axis2=2)[:, n : 2 * n] > 0
    effects = []
    for columns, among in (((0, 1, 1), free), ((0, 1, 0), used), ((0, 0, 1), free)):
        pick = np.kron(columns, np.eye(n))
        found, unknown = (_centred(pick @ x, among[..., None], axis=1) for x in (solved, left_open))
        known = among[..., None] & (np.abs(unknown).max(axis=2, keepdims=True) <= 1e-6)
        effects.append(np.where(known, found, np.nan))
    return np.stack(effects).transpose(3, 0, 1, 2)


def _centred(values: Floats, among: Bools, axis: int) -> Floats:
    """Values less their mean among some; 0 at the others."""
    mean = np.where(among, values, 0.0).sum(axis=axis, keepdims=True) / among.sum(axis=axis, keepdims=True)
    centred: Floats = np.where(among, values - mean, 0.0)
    return centred


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
def slot_effects(
    scores: OrderScores,
    effects: Mapping[Unit, Effects],
    shares: Floats,
    expected: Floats,
    bootstrap: Bootstrap,
) -> tuple[tuple[SlotEffect, ...], tuple[SlotEffect, ...]]:
    """The effect of every label, and of every position.

    Args:
        effects: :func:`effects_of`.
        shares, expected: :func:`place_shares`.
    """
    mixed, last = len(set(scores.n_options.tolist())) > 1, scores.n_options - 1
    columns = [np.full(len(scores), i) for i in range(scores.width)]
    labels = [*zip(scores.labels, columns, strict=True), *([("last label", last)] if mixed else [])]
    positions = [(ordinal(i), column) for i, column in enumerate(columns[: scores.width - (not mixed)])]

    def table(kind: str, slots: list[tuple[str, Ints]]) -> tuple[SlotEffect, ...]:
        of_unit = {unit: getattr(one, kind) for unit, one in effects.items()}
        tested = of_unit.get("nats", of_unit["shares"])
        p_values = holm([student(bootstrap.sampling, at_slot(tested, column))[1] for _, column in slots])
        rows = []
        for (name, column), p in zip(slots, p_values, strict=True):
            choice, share, by_content = (at_slot(x, column) for x in (of_unit["shares"], shares, expected))
            choice, unsure = choice[np.isfinite(choice)], np.isfinite(share).any()
            missing = "label and position are together on every page" if unsure else "no unsure question"
            effect = excess = Estimate.undefined(missing)
            if len(choice):
                # where nearly all are at their most, no interval we know covers as it should
                excess = Estimate.bare(float(choice.mean()), len(choice), "no interval: see the share chosen, and p")
                effect = Estimate.undefined("answers in words: no probabilities")
                if "nats" in of_unit:
                    effect = bootstrap.mean(at_slot(tested, column), bounds=UNBOUNDED)
            content = float(np.nanmean(by_content)) if unsure else math.nan
            chosen = bootstrap.mean(share, note="" if unsure else missing)
            rows.append(SlotEffect(name, effect, excess, chosen, content, p))
        return tuple(rows)

    return table("labels", labels), table("positions", [*positions, (LAST, last)])


def student(sampling: Sampling, values: Floats) -> tuple[float, float]:
    """t and two-sided p of "the mean is 0" for (Q,) values, without nan; p is nan for fewer than two."""
    finite = np.isfinite(values)
    if finite.sum() < 2:
        return 0.0, math.nan
    t, p = sampling.student(np.nan_to_num(values)[:, None], finite)
    return float(t[0]), float(p[0])


def ordinal(place: int) -> str:
    """``first`` for 0."""
    return ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th"
