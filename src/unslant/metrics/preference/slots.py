"""What each label and each position adds to an option, for the questions that a model is unsure of.

Each question is fitted on its own, with log P centred over the options of a page:

    log P(option) = content + effect of its label + effect of its position

by least squares over the order set and the pages with relabelled positions. In the orders, label and position go
together as a *slot*, which gives their sum; only the other pages separate the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats
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
# Questions, times their squared number of options, that are fitted together, to save memory.
_AT_ONCE = 1 << 17
# A relabelled page weighs this much, an order 1: it decides only what the orders leave open. Labels out of sequence can
# be unlikely in themselves, and with full weight would shift the contents.
_RELABELLED = 1e-3
# Weight of "contents are alike", for orders that leave open what is content and what position, as one order and its
# reverse do: contents come in any order, and even out over questions.
_ALIKE = 1e-6


@dataclass(frozen=True)
class SlotGroup:
    """Unsure questions with the same number of options, free places, and kinds of pages.

    Attributes:
        n: options.
        rows: (Q,) rows of :class:`OrderScores`.
        free: places where options move, M of them.
        slots: (Q, M) label and position effects together, summing to zero.
        resolved: (M, M) how true slot effects show in the slots, on average over the questions: unchanged but for
            their mean, where every option was everywhere equally often.
        labels, positions: (Q, n) effects of each, summing to zero; nan where the pages leave them open.
    """

    n: int
    rows: Rows
    free: Rows
    slots: Floats
    resolved: Floats
    labels: Floats
    positions: Floats

    def only(self, mask: Bools) -> SlotGroup:
        """Those of (Q,) questions that are in the mask."""
        some = mask[self.rows]
        slots, labels, positions = (effects[some] for effects in (self.slots, self.labels, self.positions))
        return replace(self, rows=self.rows[some], slots=slots, labels=labels, positions=positions)


@metric("unsure", "unsure", "questions whose answer changes with the order or the labels", unit="share")
def unsure_questions(scores: OrderScores) -> Floats:
    """(Q,) 1 where the answer changes with the order or the place of the labels, 0 where not; nan with one order."""
    result = np.full(len(scores), np.nan)
    for block in scores.blocks:
        if block.k > 1:
            answered = block.chosen >= 0
            usual = np.take_along_axis(block.chosen, answered.argmax(axis=1)[:, None], axis=1)[:, 0]
            changes = (answered & (block.chosen != usual[:, None])).any(axis=1)
            # All pages count alike. Were questions picked by their orders alone, content would seem to attract less
            # there than on the other pages, and the label it carries on those more.
            for view in scores.relabelled:
                answer = view.chosen[block.index]
                changes |= view.ok[block.index] & (answer >= 0) & (answer != usual)
            result[block.index] = np.where(answered.any(axis=1), changes, np.nan)
    return result


def has_probabilities(scores: OrderScores) -> bool:
    """Whether any answer is more than the choice of an option."""
    return any(not np.isin(block.probs, (0.0, 1.0)).all() for block in scores.blocks)


def slot_groups(scores: OrderScores, unsure: Floats, unit: Unit) -> tuple[SlotGroup, ...]:
    """The effects in every unsure question, on log-probabilities or on choices (ties share one evenly)."""
    groups = []
    for block in scores.blocks:
        pages = np.stack([view.ok[block.index] for view in scores.relabelled], axis=1)
        kinds = np.concatenate([pages, block.pinned], axis=1)
        mask = unsure[block.index] == 1
        for kind in np.unique(kinds[mask], axis=0):
            views = [view for view, ok in zip(scores.relabelled, kind, strict=False) if ok]
            free, alike = np.flatnonzero(~kind[-block.n :]), np.flatnonzero(mask & (kinds == kind).all(axis=1))
            for some in np.array_split(alike, 1 + len(alike) * block.n**2 // _AT_ONCE):
                groups.append(_group(block, some, free, views, unit))
    return tuple(groups)


def _group(block: Block, alike: Rows, free: Rows, views: Sequence[View], unit: Unit) -> SlotGroup:
    """Least squares for questions with the same free places and kinds of pages."""
    m, n, k, size, rows = len(free), block.n, block.k, len(alike), block.index[alike]
    rank, centre = np.zeros(n, np.int64), np.eye(m) - 1 / m
    rank[free] = np.arange(m)
    cells = np.ix_(alike, np.arange(k), free)
    values, places = _measured(block.probs[cells], unit), rank[block.positions[cells]]
    by_place = np.take_along_axis(values, np.argsort(places, axis=2), axis=2).sum(axis=1)
    counts = np.stack([(places == place).sum(axis=1) for place in range(m)], axis=2)
    # normal equations of contents (m), labels (n) and positions (m); over the orders, a slot is both of the last two
    slot = np.concatenate([np.eye(n)[free], np.eye(m)], axis=1)
    crossed = (counts - k / m) @ slot
    normal = np.zeros((size, 2 * m + n, 2 * m + n))
    normal[:, :m, :m], normal[:, m:, m:] = k * centre, k * slot.T @ centre @ slot
    normal[:, :m, m:], normal[:, m:, :m] = crossed, crossed.transpose(0, 2, 1)
    sums = np.concatenate([values.sum(axis=1), by_place @ slot], axis=1)
    to_slots = np.concatenate([np.zeros((m, m)), centre @ slot], axis=1)
    solution, resolution = _solved(normal, sums)
    slots, resolved = solution @ to_slots.T, (to_slots @ resolution)[:, :, m + n :].mean(axis=0)
    for view in views:
        label, place = np.eye(n)[view.labels[rows][:, free]], np.eye(m)[rank[view.positions[rows][:, free]]]
        page = _centred(np.concatenate([np.tile(np.eye(m), (size, 1, 1)), label, place], axis=2), axis=1)
        weighted = _RELABELLED * page.transpose(0, 2, 1)
        normal += weighted @ page
        sums += (weighted @ _measured(view.probs[rows][:, free], unit)[..., None])[..., 0]
    normal[:, :m, :m] += _ALIKE * np.eye(m)
    solution, resolution = _solved(normal, sums)
    used = np.flatnonzero(normal[0].diagonal()[m : m + n] > 0)
    effects = []
    for places, columns in ((used, m + used), (free, m + n + np.arange(m))):
        # each label or position against the mean of those that are used
        contrasts = np.zeros((n, 2 * m + n))
        contrasts[np.ix_(places, columns)] = np.eye(len(places)) - 1 / len(places)
        undetermined = np.abs(contrasts @ resolution - contrasts).max(axis=2) > 1e-6
        effects.append(np.where(undetermined | ~np.isin(np.arange(n), places), np.nan, solution @ contrasts.T))
    return SlotGroup(n, rows, free, slots, resolved, *effects)


def _solved(normal: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """(Q, T) solutions of (Q, T, T) normal equations, and (Q or 1, T, T) what of the truth they resolve."""
    # the same for all where every option was everywhere equally often
    if (normal == normal[:1]).all():
        normal = normal[:1]
    inverse = np.linalg.pinv(normal, rcond=1e-9, hermitian=True)
    return (inverse @ sums[..., None])[..., 0], inverse @ normal


def _measured(probs: Floats, unit: Unit) -> Floats:
    return _centred(np.log(np.maximum(probs, LEAST_PROBABILITY)) if unit == "nats" else credit(probs))


def _centred(values: Floats, axis: int = -1) -> Floats:
    centred: Floats = values - values.mean(axis=axis, keepdims=True)
    return centred


def question_effects(groups: Sequence[SlotGroup], scores: OrderScores) -> tuple[Floats, Floats]:
    """(Q, N) effects of labels, and of positions, in every question; nan where it is not unsure or leaves them open."""
    labels, positions = (np.full((len(scores), scores.width), np.nan) for _ in range(2))
    for group in groups:
        labels[group.rows, : group.n], positions[group.rows, : group.n] = group.labels, group.positions
    return labels, positions


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
    effects: Mapping[Unit, tuple[Floats, Floats]],
    shares: Floats,
    expected: Floats,
    bootstrap: Bootstrap,
) -> list[tuple[SlotEffect, ...]]:
    """The effect of every label, and of every position.

    Args:
        effects: :func:`question_effects`, in nats only where there are probabilities.
        shares, expected: :func:`place_shares`.
    """
    mixed, last = len(set(scores.n_options.tolist())) > 1, scores.n_options - 1
    columns = [np.full(len(scores), i) for i in range(scores.width)]
    labels = [*zip(scores.labels, columns, strict=True), *([("last label", last)] if mixed else [])]
    positions = [(ordinal(i), column) for i, column in enumerate(columns[: scores.width - (not mixed)])]
    nats, tables = effects.get("nats"), []
    for kind, slots in enumerate((labels, [*positions, (LAST, last)])):
        on_choice = effects["shares"][kind]
        tested = nats[kind] if nats else on_choice
        p_values = holm([student(bootstrap.sampling, at_slot(tested, column))[1] for _, column in slots])
        rows = []
        for (name, column), p in zip(slots, p_values, strict=True):
            choice, share, by_content = (at_slot(x, column) for x in (on_choice, shares, expected))
            choice, unsure = choice[np.isfinite(choice)], np.isfinite(share).any()
            missing = "label and position are together on every page" if unsure else "no unsure question"
            effect = excess = Estimate.undefined(missing)
            if len(choice):
                # where nearly all are at their most, no interval we know covers as it should
                excess = Estimate.bare(float(choice.mean()), len(choice), "no interval: see the share chosen, and p")
                effect = Estimate.undefined("answers in words: no probabilities")
                if nats:
                    effect = bootstrap.mean(at_slot(nats[kind], column), bounds=UNBOUNDED)
            content = float(np.nanmean(by_content)) if unsure else math.nan
            chosen = bootstrap.mean(share, note="" if unsure else missing)
            rows.append(SlotEffect(name, effect, excess, chosen, content, p))
        tables.append(tuple(rows))
    return tables


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
