"""From answers row by row to :class:`OrderScores`: which rows are a question's order set, and which single views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.errors import InputError
from unslant.metrics.scores import Block, OrderScores, Places, QuestionArrays, View

ROLES = ("order", "given", "reverse", "labels-reversed", "both-reversed", "labels-shifted")
"""Kinds of presentation that order metrics read."""
ORDER, GIVEN, REVERSE, LABELS_REVERSED, BOTH_REVERSED, LABELS_SHIFTED = range(6)
_VIEWS = ("given", "reversed", "labels_reversed", "both_reversed", "labels_shifted")


def labels_at(role: int, n: int) -> Ints:
    """(n,) which label of the standard sequence is at each position, from the top, in presentations of a role."""
    if role in (LABELS_REVERSED, BOTH_REVERSED):
        return np.arange(n)[::-1]
    return (np.arange(n) + (role == LABELS_SHIFTED)) % n


@dataclass(frozen=True)
class OrderRows:
    """R rows of the questions with n options.

    Attributes:
        question: (R,) place of the question in :class:`QuestionArrays`.
        role: (R,) index into :data:`ROLES`.
        contents: (R, n) content at each position, from the top.
        by_position: (R, n) its probability; zeros where the reply has no answer.
        ok: (R,) whether the model replied.
        decided: (R,) the content chosen, where something else than the place decides between tied options.
        mass: (R,) probability that all labels hold together, of the whole vocabulary; nan where it is not known.
    """

    question: Places
    role: Places
    contents: Places
    by_position: Floats
    ok: Bools
    decided: Ints | None = None
    mass: Floats | None = None


def order_scores(
    questions: QuestionArrays,
    groups: Mapping[int, OrderRows],
    labels: Sequence[str],
    elicitation: str = "cloze",
    stopped: Bools | None = None,
    full: Bools | None = None,
    every_in_orders: bool = True,
) -> OrderScores:
    """Sort rows into order sets and views.

    The given order is the ``order`` row that shows it, or the ``given`` row; likewise the reversed one. Within one
    option count and number of pinned options, a question with fewer orders than the others is incomplete; questions
    in ``full`` are compared with one another, and so are the others.

    Args:
        groups: option count -> rows of its questions.
        labels: the standard label sequence.
        stopped: see :class:`OrderScores`.
        full: see :class:`OrderScores`.
        every_in_orders: whether a question without any ``order`` row is one whose orders are missing.

    Raises:
        InputError: if a question has the same order twice, or a row does not show the order that its role says.
    """
    none = np.zeros(len(questions), bool)
    blocks = _blocks(groups, questions, none if stopped is None else stopped, none if full is None else full)
    complete, in_orders = none.copy() if stopped is None else stopped.copy(), none.copy()
    for block in blocks:
        complete[block.index] = True
    views: dict[str, Any] = {name: _view(groups, questions, role) for role, name in enumerate(_VIEWS, GIVEN)}
    if full is not None:  # the square of another question may hold it by chance, more often the fewer its options
        turned = views["reversed"]
        views["reversed"] = replace(turned, ok=turned.ok & full, probs=np.where(full[:, None], turned.probs, 0.0))
    for rows in groups.values():
        in_orders[rows.question[rows.role == ORDER]] = True
    missing = ~complete & (in_orders | (every_in_orders & in_orders.any()))
    return OrderScores(
        **{f.name: getattr(questions, f.name) for f in fields(QuestionArrays)},
        labels=tuple(labels),
        blocks=blocks,
        **views,
        n_rows=sum(len(rows.ok) for rows in groups.values()),
        n_failed=sum(int((~rows.ok).sum()) for rows in groups.values()),
        n_unanswered=sum(int((rows.ok & ~rows.by_position.any(axis=1)).sum()) for rows in groups.values()),
        n_incomplete=int(missing.sum()),
        elicitation=elicitation,
        stopped=stopped,
        full=full,
        label_mass=_mean_mass(groups, len(questions), ROLES[:1] if full is not None else ROLES),
    )


_ALL = 1 - 1e-6
"""Where every row has at least this mass, it is not a model's: the scores are normalised over the labels."""


def _mean_mass(groups: Mapping[int, OrderRows], size: int, roles: Sequence[str]) -> Floats | None:
    """(Q,) mean over a question's rows; nan where no row has it. None where scores are normalised over labels.

    Args:
        roles: of the rows; those that every question has.
    """
    total, rows = np.zeros(size), np.zeros(size)
    for group in groups.values():
        if group.mass is not None:
            counted = np.isfinite(group.mass) & (group.role < len(roles))
            np.add.at(total, group.question[counted], group.mass[counted])
            np.add.at(rows, group.question[counted], 1)
    mean: Floats = np.divide(total, rows, out=np.full(size, np.nan), where=rows > 0)
    return None if rows.any() and np.nanmin(mean) > _ALL else mean


def _reversed_contents(questions: QuestionArrays, n: int) -> Places:
    """(Q, n) content at each position with the movable options reversed; meaningful where n_options == n."""
    pinned = questions.pinned[:, :n]
    # positions of movable options first, in order, then pinned ones: the k-th movable swaps with the k-th last
    order = np.argsort(pinned, axis=1, kind="stable")
    movable = n - pinned.sum(axis=1, keepdims=True)
    k = np.arange(n)
    partner = np.take_along_axis(order, np.where(k < movable, movable - 1 - k, k), axis=1)
    result = np.empty_like(order, np.int16)
    np.put_along_axis(result, order, partner, axis=1)
    return result


_ROWS_AT_ONCE = 1 << 17


def _by_content(rows: OrderRows, which: NDArray[np.intp]) -> tuple[Floats, Places]:
    """Probability and position of every content, (R, n) each, for the rows ``which``."""
    shape = len(which), rows.contents.shape[1]
    probs, positions = np.empty(shape), np.empty(shape, np.int16)
    for start in range(0, len(which), _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        positions[some] = np.argsort(rows.contents[which[some]], axis=1)
        probs[some] = np.take_along_axis(rows.by_position[which[some]], positions[some], axis=1)
    return probs, positions


def _view(groups: Mapping[int, OrderRows], questions: QuestionArrays, role: int) -> View:
    size, width = questions.answers.shape
    ok = np.zeros(size, bool)
    probs = np.zeros((size, width))
    positions = np.tile(np.arange(width, dtype=np.int64), (size, 1))
    labels = positions.copy()
    decided = np.zeros(size, np.int64) if any(rows.decided is not None for rows in groups.values()) else None
    for n, rows in groups.items():
        of_role = rows.role == role
        candidates = np.flatnonzero(of_role | (rows.role == ORDER) if role in (GIVEN, REVERSE) else of_role)
        expected: Places = np.arange(n)
        if role in (REVERSE, BOTH_REVERSED):
            expected = _reversed_contents(questions, n)[rows.question[candidates]]
        matches = np.zeros_like(of_role)
        matches[candidates] = (rows.contents[candidates] == expected).all(axis=1)
        if (of_role & ~matches).any():
            row = int(np.flatnonzero(of_role & ~matches)[0])
            order = np.broadcast_to(expected, (len(candidates), n))[np.searchsorted(candidates, row)]
            raise InputError(
                f"question {questions.ids[rows.question[row]]!r}, presentation {ROLES[role]!r}: shows its options in "
                f"order {tuple(int(c) for c in rows.contents[row])}, not {tuple(int(c) for c in order)}"
            )
        for source in (matches & ~of_role, of_role):
            which = np.flatnonzero(source & rows.ok)
            question = rows.question[which]
            ok[question] = True
            probs[question, :n], at = _by_content(rows, which)
            positions[question, :n], labels[question, :n] = at, labels_at(role, n)[at]
            if decided is not None and rows.decided is not None:
                decided[question] = rows.decided[which]
    return View(ok, probs, positions, labels, decided)


def _blocks(
    groups: Mapping[int, OrderRows], questions: QuestionArrays, stopped: Bools, full: Bools
) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for n, rows in groups.items():
        which = np.flatnonzero(rows.role == ORDER)
        if not which.size:
            continue
        # by question, then lexicographically by content from top to bottom
        which = which[np.lexsort((*rows.contents[which].T[::-1], rows.question[which]))]
        question, contents = rows.question[which], rows.contents[which]
        again = (question[1:] == question[:-1]) & (contents[1:] == contents[:-1]).all(axis=1)
        if again.any():
            row = int(np.flatnonzero(again)[0])
            raise InputError(
                f"question {questions.ids[question[row]]!r} has order {tuple(int(c) for c in contents[row])} twice: "
                "two runs, or two questions of the same id, are mixed in one table"
            )
        at, start, counts = np.unique(question, return_index=True, return_counts=True)
        failed = np.add.reduceat((~rows.ok[which]).astype(np.int64), start) > 0
        pinned = questions.pinned[at, :n].sum(axis=1)
        most = np.zeros((2, n + 1), np.int64)
        in_orders, phase = ~stopped[at], full[at].astype(np.int64)
        np.maximum.at(most, (phase[in_orders], pinned[in_orders]), counts[in_orders])
        complete = ~failed & (counts == most[phase, pinned]) & in_orders
        for part, k in np.unique(np.stack([phase, counts])[:, complete], axis=1).T:
            alike = complete & (counts == k) & (phase == part)
            row_index = which[(start[alike][:, None] + np.arange(k)).ravel()]
            probs, positions = _by_content(rows, row_index)
            index = at[alike]
            blocks.append(
                Block(
                    index,
                    probs.reshape(-1, k, n),
                    positions.reshape(-1, k, n),
                    questions.answers[index, :n],
                    questions.pinned[index, :n],
                    questions.text_ranks[index, :n],
                    None if rows.decided is None else rows.decided[row_index].reshape(-1, k),
                )
            )
    return tuple(blocks)
