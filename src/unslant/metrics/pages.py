"""Answers as pages, one a row: the form in which :mod:`unslant.metrics.variance_components` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.decision_study import ORDER, PLACE
from unslant.metrics.scores import OrderScores, is_right

LEAST_QUESTIONS = 10
"""Questions that must share their orders before an effect of single orders is estimated."""
Repeat = tuple[int, tuple[int, ...], bool]
"""A further answer to a page: row of its question, contents from the top, and whether it is right."""


@dataclass(frozen=True)
class Pages:
    """M answers, one a row.

    Attributes:
        right: (M,) 1 where the answer is right, 0 where it is not, or any other score.
        question: (M,) number of the question, 0 to Q - 1.
        page: (M,) number of the page of its question; two rows with the same question and page are repeats.
        facets: name of a fixed facet -> (M,) its level: ``position``, ``label`` (or ``place``), ``order``, ``shots``.
        group: (M,) number of the group of questions that share levels, such as those with as many options.
        scored: (M,) whether the page is one of those that the score averages over; others only help to separate facets.
    """

    right: Floats
    question: Ints
    page: Ints
    facets: Mapping[str, Ints]
    group: Ints
    scored: Bools


def codes(*columns: Ints) -> Ints:
    """(M,) number of each combination of columns, from 0."""
    code = columns[0].astype(np.int64)
    for column in columns[1:]:
        code = code * (int(column.max(initial=0)) + 1) + column
    return np.asarray(np.unique(code, return_inverse=True)[1], np.int64)


def pages_of(scores: OrderScores, repeats: Sequence[Repeat]) -> Pages | None:
    """Pages of order sets and repeats; those with rearranged labels, where their order is one of the set."""
    parts: list[Sequence[NDArray[Any]]] = []  # of each: right, question, page, position, label, order, group, scored
    single, answer = scores.answers.sum(axis=1) == 1, scores.answers.argmax(axis=1)
    for b, block in enumerate(scores.blocks):
        rows = np.flatnonzero(single[block.index])
        at = block.index[rows]
        place = {int(q): i for i, q in zip(rows, at, strict=True)}
        shared = block.same_orders and len(rows) >= LEAST_QUESTIONS
        for k in range(block.k):
            position = block.positions[rows, k, answer[at]]
            parts.append(np.broadcast_arrays(block.right[rows, k], at, k, position, position, k * shared, b, True))
        for j, view in enumerate(scores.relabelled):
            same = (block.positions[rows] == view.positions[at, None, : block.n]).all(axis=2)
            some = view.ok[at] & same.any(axis=1) & (view.labels[at] != view.positions[at]).any(axis=1)
            q, order = at[some], same[some].argmax(axis=1) * shared
            right = is_right(scores.answers[q], view.chosen[q]).astype(np.float64)
            position, label = view.positions[q, answer[q]], view.labels[q, answer[q]]
            parts.append(np.broadcast_arrays(right, q, block.k + j, position, label, order, b, False))
        for row, again, hit in (one for one in repeats if one[0] in place):
            page, position = np.flatnonzero((block.contents[place[row]] == again).all(axis=1)), again.index(answer[row])
            parts.append(np.broadcast_arrays(float(hit), row, page, position, position, page * shared, b, False))
    if not parts:
        return None
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    right, question, page, position, label, order, group, scored = columns
    facets = {"position": position, "label": label} if (position != label).any() else {PLACE: position}
    return Pages(right, question, page, facets | {ORDER: order}, group, scored)
