"""How much each label and each position adds, for the questions that a model is unsure of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.metrics.bootstrap import UNBOUNDED, Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.preference.cells import SlotGroup, Unit, effects, slot_groups, taken
from unslant.metrics.preference.places import ordinal
from unslant.metrics.sampling import holm
from unslant.metrics.scores import OrderScores

LAST = "last"


@dataclass(frozen=True)
class SlotEffect:
    """One label (wherever it stands) or one position (with any label).

    Attributes:
        label: the label as written (``last label``: that of each question's last), or ``first``, ``second``, ...
            ``last``.
        effect: what it adds to the log-probability of an option, in nats, beyond the other labels (or positions); mean
            over unsure questions.
        excess: the same for the choice: what it adds to the share of unsure answers.
        chosen: share of unsure answers in its place over the orders, where label and position stand together; ties
            shared evenly.
        expected: ``chosen`` for a model that goes by content alone: 1/n where every option stands everywhere equally
            often.
        p: of "it adds nothing" (in nats where there are probabilities), corrected for the number of rows (Holm 1979).
    """

    label: str
    effect: Estimate
    excess: Estimate
    chosen: Estimate
    expected: float
    p: float


@dataclass(frozen=True)
class SlotValues:
    """What the tables are means of: (Q, N) arrays, nan where a question is not unsure or leaves the value open.

    Attributes:
        nats, shares: effects of (labels, positions) on log-probability and on choice.
        share, expected: see :func:`~unslant.metrics.preference.cells.taken`.
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
        nothing = np.full(shape, np.nan)
        choices = slot_groups(scores, unsure, "shares") if unit == "nats" else groups
        nats = effects(groups, *shape) if groups and unit == "nats" else (nothing, nothing)
        shares = effects(choices, *shape) if choices else (nothing, nothing)
        return cls(nats, shares, *taken(scores, unsure))


def slot_tables(
    scores: OrderScores, values: SlotValues, unit: Unit, bootstrap: Bootstrap
) -> tuple[tuple[SlotEffect, ...], tuple[SlotEffect, ...]]:
    """The effect of every label, and of every position."""
    mixed = len(set(scores.n_options.tolist())) > 1
    last = scores.n_options - 1
    columns = [np.full(len(scores), i) for i in range(scores.width)]
    labels = [*zip(scores.labels, columns, strict=True), *([("last label", last)] if mixed else [])]
    positions = [(ordinal(i), column) for i, column in enumerate(columns[: scores.width - (not mixed)])]
    tables = []
    for at, slots in enumerate((labels, [*positions, (LAST, last)])):
        rows = []
        for name, column in slots:
            arrays = (values.nats[at], values.shares[at], values.share, values.expected)
            rows.append(_row(name, bootstrap, *(_at(array, column) for array in arrays)))
        tested = [_p(_at(getattr(values, unit)[at], column), bootstrap) for _, column in slots]
        tables.append(tuple(SlotEffect(*row, p) for row, p in zip(rows, holm(tested), strict=True)))
    return tables[0], tables[1]


def _at(values: Floats, column: NDArray[np.integer]) -> Floats:
    found: Floats = np.take_along_axis(values, column[:, None], axis=1)[:, 0]
    return found


def _row(
    name: str, bootstrap: Bootstrap, nats: Floats, shares: Floats, share: Floats, expected: Floats
) -> tuple[str, Estimate, Estimate, Estimate, float]:
    def missing(values: Floats) -> str:
        if np.isfinite(values).any():
            return ""
        if np.isfinite(shares).any():
            return "answers in words: no probabilities"
        return "label and position stand together everywhere" if np.isfinite(share).any() else "no unsure question"

    return (
        name,
        bootstrap.mean(nats, bounds=UNBOUNDED, note=missing(nats)),
        _bare(shares, missing(shares)),
        bootstrap.mean(share, note=missing(share)),
        float(np.nanmean(expected)) if np.isfinite(expected).any() else math.nan,
    )


def _bare(values: Floats, missing: str) -> Estimate:
    """The mean without an interval: where nearly all are at their most, none we know covers as it should."""
    if missing:
        return Estimate.undefined(missing)
    note = "no interval: see the share chosen, and p"
    return Estimate.bare(float(np.nanmean(values)), int(np.isfinite(values).sum()), note)


def _p(values: Floats, bootstrap: Bootstrap) -> float:
    kept = np.isfinite(values)
    if kept.sum() < 2:
        return math.nan
    return float(bootstrap.sampling.student(np.nan_to_num(values)[:, None], kept)[1][0])
