"""The pages that questions were answered on, with the position and the label of the right option on each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unslant.arrays import Floats, Ints
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.decision_study import ORDER, PLACE
from unslant.metrics.scores import OrderScores, is_right
from unslant.metrics.variance_components import Pages, VarianceComponents, variance_components

MOST_QUESTIONS = 4_000
"""Questions that are looked at, evenly chosen of more."""
LEAST_QUESTIONS = 10
"""Questions that must share their orders before an effect of single orders is estimated."""
Repeat = tuple[int, tuple[int, ...], bool]
"""A further answer to a page: row of its question, contents from the top, and whether it is right."""


def components_of(
    scores: OrderScores, bootstrap: Bootstrap, repeats: Sequence[Repeat] = ()
) -> VarianceComponents | None:
    """The components of the questions with one right option, whose orders are complete.

    Args:
        bootstrap: over the questions of the scores.

    Returns:
        None where there are fewer than two, or the answers themselves decided which questions were asked in all orders
        (``--adaptive``).
    """
    pages = None if scores.selected else _pages(scores, repeats)
    there = np.unique(pages.question) if pages else np.zeros(0, np.int64)
    if pages is None or len(there) < 2:
        return None
    there = there[:: -(-len(there) // MOST_QUESTIONS)]
    rows = np.isin(pages.question, there)
    kept = {name: getattr(pages, name)[rows] for name in ("right", "page", "group", "scored")}
    facets = {name: levels[rows] for name, levels in pages.facets.items()}
    pages = Pages(question=np.searchsorted(there, pages.question[rows]), facets=facets, **kept)
    if len(there) < bootstrap.n_questions:
        subjects, contexts = ([values[q] for q in there] for values in (scores.subjects, scores.contexts))
        across = bootstrap.sampling.drawn == "subjects"
        bootstrap = Bootstrap(len(there), subjects, contexts=contexts, across_subjects=across)
    return variance_components(pages, bootstrap)


def _pages(scores: OrderScores, repeats: Sequence[Repeat]) -> Pages | None:
    """Pages of order sets and repeats; those with rearranged labels, where their order is one of the set."""
    parts: list[list[Any]] = []
    single, answer = scores.answers.sum(axis=1) == 1, scores.answers.argmax(axis=1)
    for b, block in enumerate(scores.blocks):
        kept = np.flatnonzero(single[block.index])
        at = block.index[kept]
        place, contents = {int(q): i for i, q in zip(kept, at, strict=True)}, block.contents
        shared = block.same_orders and len(kept) >= LEAST_QUESTIONS

        def add(q: Ints, right: Floats, k: Ints, page: Ints, position: Ints, label: Ints, scored: bool = False) -> None:
            about = k * shared, np.full(len(q), b), np.full(len(q), scored)  # noqa: B023
            parts.append([right, q, page, position, label, *about])

        for k in range(block.k):
            position, order = block.positions[kept, k, answer[at]].astype(np.int64), np.full(len(at), k)
            add(at, block.right[kept, k], order, order, position, position, True)
        for j, view in enumerate((scores.labels_reversed, scores.both_reversed, scores.labels_shifted)):
            same = (block.positions[kept] == view.positions[at, None, : block.n]).all(axis=2)
            some = view.ok[at] & same.any(axis=1) & (view.labels[at] != view.positions[at]).any(axis=1)
            q, k = at[some], same[some].argmax(axis=1)
            right = is_right(scores.answers[q], view.chosen[q, None])[:, 0]
            add(
                q,
                right.astype(np.float64),
                k,
                np.full(len(q), block.k + j),
                view.positions[q, answer[q]],
                view.labels[q, answer[q]],
            )
        for row, shown, hit in (one for one in repeats if one[0] in place):
            some = np.flatnonzero((contents[place[row]] == shown).all(axis=1))
            spot = np.full(len(some), shown.index(int(answer[row])))
            add(np.full(len(some), row), np.full(len(some), float(hit)), some, some, spot, spot)
    if not parts:
        return None
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    right, question, page, position, label, order, group, scored = columns
    separate = bool((position != label).any())
    facets = {"position": position, "label": label} if separate else {PLACE: position}
    return Pages(right, question, page, facets | {ORDER: order}, group, scored)
