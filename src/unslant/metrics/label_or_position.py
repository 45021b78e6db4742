"""Whether a habit goes by labels or by positions: what becomes of its pulls where labels stand in other places."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.habits import Habit
from unslant.metrics.sampling import Sampling
from unslant.metrics.slot_effects import SlotGroup, page_variances

Kind = Literal["label", "position"]
Kinds = tuple[Kind, ...]

LEVEL = 0.05
"""Level of the test by which one reading is held to fit worse than the best."""
_LEAST_VARIANCE = 1e-6


def label_or_position(habit: Habit, groups: Sequence[SlotGroup], sampling: Sampling, size: int) -> list[Kinds]:
    """The readings of a habit that fit the pages with other labels, the best one first.

    A reading says of every place whether its label is meant or its position. It predicts that the pull, as found over
    the orders, moves with the label, or stays. Readings are compared question by question in how far they are from what
    was answered; those that are not worse than the best by Student's test are kept.

    Args:
        groups: cells of the questions the habit was found in.
        size: number of all questions of the scores.
    """
    variance = page_variances(groups)
    readings: list[Kinds] = list(itertools.product(("label", "position"), repeat=len(habit.places)))
    misfits = np.zeros((size, len(readings)))
    kept = np.zeros(size, bool)
    for group in groups:
        other = group.pages > 0
        if not other.any() or group.n not in habit.pulls:
            continue
        kept[group.rows] = True
        weights = 1 / (variance[group.pages[other]] + _LEAST_VARIANCE)
        for r, kinds in enumerate(readings):
            rest = group.values[:, other] - group.design[other] @ _effect(habit, kinds, group.n)
            misfits[group.rows, r] = rest**2 @ weights
    if kept.sum() < 2:
        return readings
    best = int(misfits[kept].mean(axis=0).argmin())
    worse = misfits - misfits[:, [best]]
    t, p = sampling.student(worse, kept)
    order = sorted(range(len(readings)), key=lambda r: float(t[r]))
    return [readings[best], *(readings[r] for r in order if r != best and p[r] >= LEVEL)]


def _effect(habit: Habit, kinds: Kinds, n: int) -> Floats:
    """(2n,) effect of labels, then of positions."""
    effect = np.zeros((2, n))
    for place, kind, pull in zip(habit.places, kinds, habit.pulls[n], strict=True):
        effect[0 if kind == "label" else 1] += pull * place.pulls(n)
    return effect.ravel()
