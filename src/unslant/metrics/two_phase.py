"""Every question in one Latin square of its orders, and a random part of the questions in all of them.

A square has every option in every place once, and each order is equally likely to be in it: what is a mean over orders
(the score averaged over them, shares of labels) has the same expectation over the square as over all orders, and needs
nothing else. What is not a mean (PBM, the vote, consistency, right in every order) is estimated in two phases: for all
questions it is predicted from their squares by a regression fitted in the part, and the mean residual of the part is
added (the regression estimator of two-phase sampling: Särndal, Swensson and Wretman 1992, ch. 6 and 9). Even with
a poor regression the estimate is about unbiased; the better it predicts, the narrower the interval.

A question of the part has every square of its orders, so its prediction is the mean over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.registry import METRICS, Numbers, QuestionMetric, metric, question_metric
from unslant.metrics.sampling import LEAST_UNITS
from unslant.metrics.scores import LEAST_PROBABILITY, Block, OrderScores, QuestionArrays, View
from unslant.presentations.orders import auto_arrangements, latin_squares

UNSEEN, UNSEEN_FALLING = 0.65, 0.5
"""Residual of a yes-or-no answer that is counted though the part did not show it; for :data:`FALLING` metrics, less."""
FALLING = ("consistency", "robust_accuracy")
"""Metrics that are 0 for a question over all orders if they are 0 over some."""
PRIOR = 3.0
"""Questions, as different as all are, by which the regression is drawn to "the same as over the square"."""


def whole_part(scores: OrderScores) -> OrderScores:
    """The scores with the order sets of the questions drawn to be shown in all orders alone."""
    if scores.full is None:
        return scores
    kept = [(block, np.flatnonzero(scores.full[block.index])) for block in scores.blocks]
    blocks = tuple(block.only(rows, np.arange(block.k)) for block, rows in kept if len(rows))
    return replace(scores, blocks=blocks, full=None)


def over_squares(scores: OrderScores) -> tuple[OrderScores, Ints]:
    """Every Latin square of every question as a question of its own.

    Returns:
        Scores of P pairs of a question and one of its squares, and (P,) rows of their questions. Questions that were
        shown in a square have that one, those shown in all orders every one of them.
    """
    parts = [part for block in scores.blocks for part in _squares(block, scores.partial[block.index])]
    rows = np.concatenate([part.index for part in parts]) if parts else np.zeros(0, np.int64)
    ends = np.cumsum([len(part.index) for part in parts]).tolist()
    blocks = tuple(
        replace(part, index=np.arange(end - len(part.index), end)) for part, end in zip(parts, ends, strict=True)
    )
    about: dict[str, Any] = {"blocks": blocks, "full": None}
    for name in (f.name for f in fields(OrderScores)):
        values = getattr(scores, name)
        if isinstance(values, View):
            known = {f.name: own[rows] for f in fields(View) if (own := getattr(values, f.name)) is not None}
            about[name] = replace(values, **known)
        elif name in _OF_QUESTIONS:
            about[name] = tuple(values[q] for q in rows) if isinstance(values, tuple) else values[rows]
    about["label_mass"] = None if scores.label_mass is None else scores.label_mass[rows]
    return replace(scores, **about), rows


def noise_between_squares(scores: OrderScores) -> Floats:
    """(n,) variance between the squares of each question shown in all orders, of the share right."""
    pairs, rows = over_squares(replace(whole_part(scores), full=scores.full))
    right, counts = cast(QuestionMetric, METRICS["expected_accuracy"]).values(pairs), np.bincount(rows)
    mean, square = (np.bincount(rows, right**power) / np.maximum(1, counts) for power in (1, 2))
    noise: Floats = np.maximum(0.0, square - mean**2)[counts > 0]
    return noise


_OF_QUESTIONS = frozenset(f.name for f in fields(QuestionArrays))


def _squares(block: Block, partial: Bools) -> Iterator[Block]:
    """The block of each square that the orders of its questions hold."""
    if len(rows := np.flatnonzero(partial)):
        yield block.only(rows, np.arange(block.k))
    movable = np.where(partial, -1, (~block.pinned).sum(axis=1))
    for m in np.unique(movable[~partial]).tolist():
        for square in _places(m):
            yield block.only(np.flatnonzero(movable == m), square)


@lru_cache
def _places(m: int) -> tuple[Ints, ...]:
    """Places of the orders of each square among all of them, sorted by content, which pinned options do not change."""
    place = {order: k for k, order in enumerate(sorted(auto_arrangements(m)))}
    return tuple(np.asarray(sorted(place[order] for order in square)) for square in latin_squares(m))


def least_margin(scores: OrderScores) -> Floats:
    """(Q,) the least distance, over a question's orders, between its two most probable options."""
    found = np.full(len(scores), np.nan)
    for block in scores.blocks:
        second, first = (
            np.moveaxis(np.sort(block.probs, axis=2)[:, :, -2:], 2, 0) if block.n > 1 else np.ones((2, 1, 1))
        )
        found[block.index] = (first - second).min(axis=1)
    return found


def _over_square(scores: OrderScores, key: str) -> Floats:
    """(Q,) a metric over the square of each question, mean over all squares of those shown in all orders."""
    if scores.full is None:
        return np.full(len(scores), np.nan)
    pairs, rows = over_squares(scores)
    counts = np.bincount(rows, minlength=len(scores))
    totals = np.bincount(rows, cast(QuestionMetric, METRICS[key]).values(pairs), len(scores))
    mean: Floats = np.divide(totals, counts, out=np.full(len(scores), np.nan), where=counts > 0)
    return mean


NO_SQUARES = "every question was shown in the same orders, not in Latin squares"


@question_metric("square_vote_accuracy", "accuracy, voted over a square", "mean probability over one Latin square",
                 unit="share", short="voted over a square", missing=NO_SQUARES)  # fmt: skip
def square_vote_accuracy(scores: OrderScores) -> Floats:
    """The vote as it was asked of all questions; ``vote_accuracy`` is that over all orders."""
    return _over_square(scores, "vote_accuracy")


@question_metric("place_accuracy", "accuracy, right in every place", "right wherever the right option is put",
                 unit="share", short="right in every place", missing=NO_SQUARES)  # fmt: skip
def place_accuracy(scores: OrderScores) -> Floats:
    """Right in every order of a Latin square, which has the right option in every place once."""
    return _over_square(scores, "robust_accuracy")


@question_metric("square_pbm", "PBM over a square", "variance of an option's probability over one Latin square",
                 digits=4, bounds=(0.0, 0.25), short="PBM, square", missing=NO_SQUARES)  # fmt: skip
def square_pbm(scores: OrderScores) -> Floats:
    """Less than PBM by what differs between squares."""
    return _over_square(scores, "pbm")


@metric("beyond_places", "PBM beyond places", "share of PBM that neither options nor places explain", unit="share")
def beyond_places(scores: OrderScores, bootstrap: Bootstrap) -> Numbers:
    """How much of PBM is in the order as a whole, such as which options are next to each other.

    In each question, log-probabilities are fitted by an effect of each option and one of each place (least squares: the
    means, in a balanced set of orders). What is left of the variance of the probabilities, over all of it.

    Args:
        scores: questions shown in all orders.
        bootstrap: over the questions of the scores.
    """
    left, whole = np.zeros(len(scores)), np.zeros(len(scores))
    for block in scores.blocks:
        for pattern in np.unique(block.pinned, axis=0):
            rows, free = np.flatnonzero((block.pinned == pattern).all(axis=1)), np.flatnonzero(~pattern)
            cells = np.ix_(rows, np.arange(block.k), free)
            logs = np.log(np.maximum(block.probs[cells], LEAST_PROBABILITY))
            logs -= logs.mean(axis=2, keepdims=True)
            places = np.searchsorted(free, block.positions[cells])
            slots = np.take_along_axis(logs, np.argsort(places, axis=2), axis=2).mean(axis=1, keepdims=True)
            fitted = logs.mean(axis=1, keepdims=True) + np.take_along_axis(
                np.broadcast_to(slots, logs.shape), places, 2
            )
            shown, fit = (np.exp(one) / np.exp(one).sum(axis=2, keepdims=True) for one in (logs, fitted))
            left[block.index[rows]] = ((shown - fit) ** 2).mean(axis=(1, 2))
            whole[block.index[rows]] = shown.var(axis=1).mean(axis=1)
    numerators = np.minimum(left, whole)
    share = bootstrap.ratio(numerators, whole, note="" if (whole > 0).any() else "the answer never moves")
    return Numbers({"beyond_places": share})


def two_phase_values(values: Floats, squares: Floats, rows: Ints, single: Bools, falling: bool = False) -> Floats:
    """Values whose mean estimates that over all questions of what needs all orders, and whose variance is its own.

    With N questions, n of them at random shown in all orders, each counts as predicted from its square, and each
    of the n as predicted + N / n (value - predicted). Residuals are increased for the degrees of freedom of the fit.

    Args:
        values: (Q,) over all orders; nan for questions that were shown in a square only, or have no value.
        squares: (P, C) what is known of each square: first, the value over the square.
        rows: (P,) question of each.
        single: (Q,) questions whose orders are one square: their value is known, and needs no other.
        falling: whether a question that has 0 over a square has 0 over all orders.

    Returns:
        (Q,), nan where a question has no value over its square; all nan where none of the n has one.
    """
    size = len(values)
    usable = np.isfinite(squares).all(axis=1)
    squares, rows = squares[usable], rows[usable]
    counts = np.bincount(rows, minlength=size)
    exact = single & np.isfinite(values)
    asked = (counts > 0) & ~exact
    part = asked & np.isfinite(values)
    n, every = int(part.sum()), int(asked.sum())
    if not every:
        return np.where(exact, values, np.nan)
    if not n:
        return np.full(size, np.nan)
    predicted, used = _predicted(values, squares, rows, counts, part)
    mean = np.bincount(rows, predicted, size) / np.maximum(1, counts)
    residuals = np.where(part, values - mean, 0.0)
    shift = residuals[part].mean()
    spread = np.sqrt((n - 1) / max(1.0, n - 1 - used))
    result = np.where(asked, mean + shift, np.where(exact, values, np.nan))
    own = spread * (residuals[part] - shift)
    unseen = UNSEEN
    if falling:
        unseen = UNSEEN_FALLING * math.sqrt(float((squares[:, 0] / counts[rows])[asked[rows]].sum()) / every)
    result[part] += every / n * (own + _unseen(own, values[part], unseen))
    return result


def yes_or_no(values: Floats) -> bool:
    """Whether all values that are known are 0 or 1."""
    return bool(np.isin(values[np.isfinite(values)], (0.0, 1.0)).all())


def _unseen(residuals: Floats, values: Floats, unseen: float) -> Floats:
    """(n,) terms of mean 0 that add what the n questions of the part may not have shown to the variance.

    Where few questions make up the residuals, as of a vote that other orders change for one question in a hundred, the
    part may be without any. So two residuals more are counted, as large as the largest; of yes-or-no answers one of the
    size ``unseen``, unless more than a few differ. Signs are drawn from the residuals, so that two models differ.
    """
    most = 2 * float((residuals**2).max())
    if yes_or_no(values):
        most = unseen**2 * ((np.abs(residuals) > 0.5).sum() < LEAST_UNITS)
    n = len(residuals)
    signs = np.resize([1.0, -1.0], n)
    signs[n - n % 2 :] = 0
    seed = np.frombuffer(residuals.tobytes(), np.uint32)
    found: Floats = np.sqrt(most / n) * np.random.default_rng(seed).permutation(signs)
    return found


def _predicted(values: Floats, squares: Floats, rows: Ints, counts: Ints, part: Bools) -> tuple[Floats, float]:
    """(P,) predictions from each square, and the degrees of freedom that fitting them took.

    A ridge regression towards "the same as over the square": where the part shows little of what varies among all
    questions, as of a model that knows nearly everything, its slopes would be anything.
    """
    weights, inside = 1 / counts[rows], part[rows]
    centre = np.average(squares, axis=0, weights=weights)
    varies = np.average((squares - centre) ** 2, axis=0, weights=weights)
    own, weight = squares[inside], weights[inside]
    columns = (own - np.average(own, axis=0, weights=weight)) * weight[:, None]
    products = columns.T @ own
    penalty = np.diag(PRIOR * np.maximum(varies, _ALIKE))
    slopes = np.linalg.solve(products + penalty, columns.T @ (values[rows[inside]] - own[:, 0]))
    used = float(np.trace(np.linalg.solve(products + penalty, products)))
    return squares[:, 0] + (squares - centre) @ slopes, used


_ALIKE = 1e-12
"""Variance below which what is known of all squares is the same."""
