"""Every question in one Latin square of its orders, and a random part of the questions in all of them.

A square puts every option in every place once, and each order is equally likely to be in it. A mean over orders (the
averaged score, shares of labels) therefore has the same expectation over the square as over all orders. Numbers that
are not means (PBM, the vote, consistency, right in every order) are estimated in two phases: a regression fitted in the
part predicts each question's value from its square, and the mean residual of the part corrects the predictions (the
regression estimator of two-phase sampling: Särndal, Swensson and Wretman 1992, ch. 6 and 9). The estimate is nearly
unbiased even where the regression is poor; the better it predicts, the narrower the interval.

An adaptive audit of replies asks every question as given and reversed. Where the answers differ, it asks all other
orders; where they agree, only for a random sample, the calibration sample. Or every question is asked as given, and a
random sample in all orders. What all orders would have shown of the questions left out is estimated from the sample in
the same way (:func:`extended`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from unslant.arrays import Bools, Floats, Ints, mean_by
from unslant.metrics.accuracy import accuracy, robust_accuracy, vote_accuracy
from unslant.metrics.bootstrap import SHARE, Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate, with_swings, with_unseen, yes_or_no
from unslant.metrics.registry import Numbers, QuestionMetric, QuestionValues, metric, question_metric, question_metrics
from unslant.metrics.sampling import LEAST_UNITS
from unslant.metrics.scores import LEAST_PROBABILITY, Block, OrderScores, QuestionArrays, View
from unslant.presentations.orders import auto_arrangements, latin_squares

UNSEEN, UNSEEN_FALLING = 0.65, 0.5
"""Size of the one residual that is assumed although the part did not show it, for yes-or-no metrics and for those that
are :data:`FALLING`."""
FALLING = ("consistency", "robust_accuracy")
"""Metrics that are 0 over all orders of a question if they are 0 over some of them."""
GRADUAL = ("pbm", "normalised_pbm")
"""Metrics that move no farther, where they are above 0, than the chance that a question's square shows a difference:
if they are the same in the squares of all questions, the squares bound them, and not the part alone."""
_CHANGED = 1e-9
"""Distance from its prediction beyond which a value counts as changed."""
PRIOR = 3.0
"""Weight, in questions, with which the regression shrinks towards "the same as over the square"."""


def whole_part(scores: OrderScores) -> OrderScores:
    """The scores, with the order sets of only those questions that were drawn to be shown in all orders."""
    if scores.full is None:
        return scores
    return replace(scores, blocks=_blocks_of(scores, scores.full), full=None)


def _blocks_of(scores: OrderScores, mask: Bools) -> tuple[Block, ...]:
    rows = [(block, np.flatnonzero(mask[block.index])) for block in scores.blocks]
    return tuple(block.only(some, np.arange(block.k)) for block, some in rows if len(some))


def over_squares(scores: OrderScores) -> tuple[OrderScores, Ints]:
    """Treat every Latin square of every question as a question of its own.

    Returns:
        Scores of P pairs of a question and one of its squares, and (P,) rows of their questions. A question shown in a
        square has one pair, a question shown in all orders one for each of its squares.
    """
    parts = [part for block in scores.blocks for part in _squares(block, scores.partial[block.index])]
    rows = np.concatenate([part.index for part in parts]) if parts else np.zeros(0, np.int64)
    ends = np.cumsum([len(part.index) for part in parts]).tolist()
    blocks = tuple(
        replace(part, index=np.arange(end - len(part.index), end)) for part, end in zip(parts, ends, strict=True)
    )

    def by_pair(values: Any) -> Any:
        if isinstance(values, View):
            return View(*(by_pair(getattr(values, f.name)) for f in fields(View)))
        return tuple(values[q] for q in rows) if isinstance(values, tuple) else None if values is None else values[rows]

    views = [f.name for f in fields(OrderScores) if isinstance(getattr(scores, f.name), View)]
    names = [*(f.name for f in fields(QuestionArrays)), *views, "label_mass"]
    of_pairs = {name: by_pair(getattr(scores, name)) for name in names}
    return replace(scores, blocks=blocks, full=None, **of_pairs), rows


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
    """(Q,) the smallest gap, over a question's orders, between the probabilities of its two most probable options."""
    margins = np.full(len(scores), np.nan)
    for block in scores.blocks:
        best = np.sort(block.probs, axis=2)[:, :, -2:]
        margins[block.index] = (best[:, :, -1] - best[:, :, 0]).min(axis=1)  # 0 where there is only one option
    return margins


def _over_square(scores: OrderScores, values: Callable[[OrderScores], Floats]) -> Floats:
    """(Q,) a metric over the square of each question, mean over all squares of those shown in all orders."""
    if scores.full is None:
        return np.full(len(scores), np.nan)
    pairs, rows = over_squares(scores)
    return mean_by(rows, values(pairs), len(scores))


NO_SQUARES = "every question was shown in the same orders, not in Latin squares"


@question_metric("square_vote_accuracy", "accuracy, voted over a square", "mean probability over one Latin square",
                 unit="share", short="voted over a square", missing=NO_SQUARES)  # fmt: skip
def square_vote_accuracy(scores: OrderScores) -> Floats:
    """The vote over the orders that every question was asked in; ``vote_accuracy`` is over all orders."""
    return _over_square(scores, vote_accuracy)


@question_metric("place_accuracy", "accuracy, right in every place", "right wherever the right option is put",
                 unit="share", short="right in every place", missing=NO_SQUARES)  # fmt: skip
def place_accuracy(scores: OrderScores) -> Floats:
    """Right in every order of a Latin square, which puts the right option in every place once."""
    return _over_square(scores, robust_accuracy)


@question_metric("square_pbm", "PBM over a square", "variance of an option's probability over one Latin square",
                 digits=4, bounds=(0.0, 0.25), short="PBM, square", missing=NO_SQUARES)  # fmt: skip
def square_pbm(scores: OrderScores) -> Floats:
    """Smaller than PBM, because it misses what differs between squares."""
    from unslant.metrics.permutation import question_pbm  # here, as tables list its metrics after these

    return _over_square(scores, question_pbm)


@metric("beyond_places", "PBM beyond places", "share of PBM that neither options nor places explain", unit="share")
def beyond_places(scores: OrderScores, bootstrap: Bootstrap) -> Numbers:
    """How much of PBM comes from the order as a whole, such as which options are next to each other.

    For each question, log-probabilities are fitted by an effect of each option and one of each place (least squares,
    which are the means in a balanced set of orders). The number is the mean squared residual of probabilities over
    their variance.

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
            probs, fit = (np.exp(one) / np.exp(one).sum(axis=2, keepdims=True) for one in (logs, fitted))
            left[block.index[rows]] = ((probs - fit) ** 2).mean(axis=(1, 2))
            whole[block.index[rows]] = probs.var(axis=1).mean(axis=1)
    return Numbers({"beyond_places": bootstrap.ratio(np.minimum(left, whole), whole, note="the answer never moves")})


@dataclass(frozen=True)
class TwoPhaseValues:
    """Metrics that a Latin square does not show, estimated for all questions.

    Attributes:
        values: key -> (Q,) values whose mean is the estimate.
        known: key -> (Q,) values over all orders, or over the square where that decides them; nan elsewhere.
        shown: questions drawn to be shown in all orders.
    """

    values: dict[str, Floats]
    known: dict[str, Floats]
    shown: int

    @classmethod
    def of(cls, scores: OrderScores) -> TwoPhaseValues | None:
        """None where all questions were shown alike."""
        if scores.full is None:
            return None
        every = replace(scores, blocks=_blocks_of(scores, ~scores.partial))
        pairs, rows = over_squares(scores)
        margin = least_margin(pairs)
        values, known = {}, {}
        for number in question_metrics():
            if number.unmoved is not None and not number.averaged:
                key, whole, over_square = number.key, number.values(every), number.values(pairs)
                squares = np.column_stack([over_square, margin])
                values[key] = two_phase_values(whole, squares, rows, scores.single, key)
                known[key] = known_values(key, whole, over_square, rows)
        return cls(values, known, int(scores.full.sum()))


def extended(scores: OrderScores, values: Floats, predicted: Floats) -> Floats:
    """Values whose mean estimates that of all questions asked in all orders.

    Of N questions that agree, n were drawn at random and asked in all orders (``checked``). A question left out counts
    as predicted from its first answers, and each of the n as predicted + N / n (value - predicted): without bias,
    however few they are. Where the n were drawn of all questions, and are more, the prediction is a regression fitted
    in them, also on whether the answer is right (:func:`two_phase_values`). Single values can lie outside the range of
    the metric; only their means say anything.

    Args:
        values: (Q,) of the questions asked in all orders; nan for those left out.
        predicted: (Q,) what the value would be if all orders had the answer of the first.

    Returns:
        (Q,); all nan where questions were left out and none was drawn to represent them.
    """
    if scores.stopped is None or scores.checked is None:
        return values
    left_out = scores.stopped & ~np.isnan(predicted)
    checked = scores.checked & ~np.isnan(values) & ~np.isnan(predicted)
    if not left_out.any():
        return values
    if not checked.any():
        return np.full(len(values), np.nan)
    if scores.selected:
        factor = 1 + left_out.sum() / checked.sum()
        result = np.where(left_out, predicted, values)
        result[checked] = predicted[checked] + factor * (values - predicted)[checked]
        return result
    result, rows = values.copy(), np.flatnonzero(left_out | checked)
    features = np.column_stack([predicted, np.nan_to_num(accuracy(scores))])[rows]
    none = np.zeros(len(rows), bool)
    result[rows] = two_phase_values(np.where(checked, values, np.nan)[rows], features, np.arange(len(rows)), none)
    return result


def represented(scores: OrderScores) -> Floats:
    """(Q,) how many questions each that was asked in all orders represents: itself, and its part of those left out."""
    if scores.stopped is None or scores.checked is None:
        return np.ones(len(scores))
    return np.asarray(1 + scores.stopped.sum() / max(1, scores.checked.sum()) * scores.checked)


def room_left_out(
    value: float,
    scores: OrderScores,
    bootstrap: Bootstrap,
    measured: QuestionValues,
    metric: QuestionMetric | None = None,
    rows: Bools | Ints | slice = slice(None),
) -> tuple[float, float]:
    """How far below and above the mean of :func:`extended` values changes may move it that no question checked shows.

    A question left out is predicted to keep its answer in every order, so the prediction errs in one direction only. If
    none of ten questions that stand for 90 changes its answer, the mean varies as if the 90 were known not to change
    theirs; but ten miss a change that 26 % of such questions have, with 5 % probability. With one change among the ten,
    the values are so skewed that their spread is enough.

    Args:
        value: the mean.
        measured: values over all orders, not extended: of the metric, and of the one that predicts it.
        metric: of the mean; None for the share of questions that are ``unsure``, 0 where no order changes the answer.
        rows: the questions of the mean and of the bootstrap.

    Returns:
        Two distances: 0 where there is no such room, nan where none of the rows was asked in all orders.
    """
    stopped, checked = scores.stopped, scores.checked
    swings, bounds = (metric.swings, metric.bounds) if metric else (False, SHARE)
    one_way = not metric or swings or metric.unmoved in bounds or metric.key in FALLING
    if stopped is None or checked is None or not stopped.any() or not one_way:
        return 0.0, 0.0
    known, predicted = (measured[metric.key], metric.predicted(measured)) if metric else (measured["unsure"], 0.0)
    changed = np.abs(known - predicted)[rows] > _CHANGED
    known, weights = known[rows], np.where(stopped | np.isnan(known), 0.0, represented(scores))[rows]
    asked, ends = weights > 0, (value, value, value)
    if not asked.any():
        return math.nan, math.nan
    if swings:
        low, high = with_swings(ends, (known * weights)[asked], weights[asked], CONFIDENCE)
    elif (changed & checked[rows]).any():
        return 0.0, 0.0
    else:
        size = bootstrap.sampling.effective_units(weights, asked)
        low, high = with_unseen(ends, bounds, size, CONFIDENCE, alike=False)
    return value - low, high - value


def with_left_out(estimate: Estimate, room: tuple[float, float], bounds: tuple[float, float] = SHARE) -> Estimate:
    """The estimate, with an interval for the spread of its values and, independent of that, :func:`room_left_out`."""
    if math.isnan(room[0]) and not math.isnan(estimate.low):
        return Estimate.bare(estimate.value, estimate.n, "none of these questions was asked in all orders: no interval")
    if room == (0.0, 0.0):
        return estimate
    value = estimate.value
    low, high = value - math.hypot(value - estimate.low, room[0]), value + math.hypot(estimate.high - value, room[1])
    return replace(estimate, low=low, high=high).within(*bounds)


def two_phase_values(values: Floats, squares: Floats, rows: Ints, single: Bools, key: str = "") -> Floats:
    """Values of a metric that needs all orders: their mean estimates it, and their variance gives its uncertainty.

    With N questions, n of them drawn at random and shown in all orders, each question counts as predicted from its
    square, and each of the n as predicted + N / n (value - predicted).

    Args:
        values: (Q,) over all orders; nan for questions that were shown in a square only, or have no value.
        squares: (P, C) what each square shows: first, the value over the square.
        rows: (P,) question of each.
        single: (Q,) questions whose orders are a single square, so that their value is known.
        key: of the metric, if it may be one of :data:`FALLING` or :data:`GRADUAL`.

    Returns:
        (Q,), nan where a question has no value over its square; all nan where none of the n has one.
    """
    size = len(values)
    usable = np.isfinite(squares).all(axis=1)
    squares, rows = squares[usable], rows[usable]
    counts = np.bincount(rows, minlength=size)
    exact = single & np.isfinite(values)
    estimated = (counts > 0) & ~exact
    part = estimated & np.isfinite(values)
    n, every = int(part.sum()), int(estimated.sum())
    if not every:
        return np.where(exact, values, np.nan)
    if not n:
        return np.full(size, np.nan)
    predictions, degrees = _predictions(values, squares, rows, counts, part)
    # a question of the part has every square of its orders, so its prediction is the mean over all of them
    means = np.bincount(rows, predictions, size) / np.maximum(1, counts)
    residuals = (values - means)[part]
    shift = residuals.mean()
    result = np.where(estimated, means + shift, np.where(exact, values, np.nan))
    # residuals of a fit are too small by its degrees of freedom
    residuals = np.sqrt((n - 1) / max(1.0, n - 1 - degrees)) * (residuals - shift)
    unseen = UNSEEN * (key not in GRADUAL and yes_or_no(values[part]))
    if key in FALLING:
        # only questions that are 1 over their square can fall to 0
        unseen = UNSEEN_FALLING * math.sqrt(float((squares[:, 0] / counts[rows])[estimated[rows]].sum()) / every)
    result[part] += every / n * (residuals + _unseen(residuals, unseen))
    return result


def known_values(key: str, whole: Floats, squares: Floats, rows: Ints) -> Floats:
    """(Q,) values of a metric over all orders, or over the square where that decides it; nan elsewhere.

    Args:
        whole: (Q,) over all orders; nan for questions that were shown in a square only.
        squares: (P,) over each square; rows: (P,) its question.
    """
    over_square = np.full(len(whole), np.nan)
    over_square[rows] = squares
    decided = over_square > 0 if key in GRADUAL else (over_square == 0) & (key in FALLING)
    return np.where(np.isnan(whole) & decided, over_square, whole)


def _unseen(residuals: Floats, unseen: float) -> Floats:
    """(n,) terms of mean 0 that widen the interval by what the n questions of the part may not have shown.

    They add the variance of two residuals as large as the largest. For yes-or-no metrics they add one residual of size
    ``unseen`` (0 for other metrics), unless more than a few questions have one already.
    """
    # If other orders change the answer to one question in a hundred, the part may contain no such question.
    squared = 2 * float((residuals**2).max())
    if unseen:
        squared = unseen**2 * ((np.abs(residuals) > 0.5).sum() < LEAST_UNITS)
    n = len(residuals)
    signs = np.resize([1.0, -1.0], n)
    signs[n - n % 2 :] = 0
    # seeded by the residuals: with the same signs for two models, the terms would cancel in their difference
    seed = np.frombuffer(residuals.tobytes(), np.uint32)
    return np.asarray(np.sqrt(squared / n) * np.random.default_rng(seed).permutation(signs))


def _predictions(values: Floats, squares: Floats, rows: Ints, counts: Ints, part: Bools) -> tuple[Floats, float]:
    """(P,) predictions from each square, and the degrees of freedom of the fit."""
    weights, inside = 1 / counts[rows], part[rows]
    centre = np.average(squares, axis=0, weights=weights)
    variances = np.average((squares - centre) ** 2, axis=0, weights=weights)
    fitted, weight = squares[inside], weights[inside]
    columns = (fitted - np.average(fitted, axis=0, weights=weight)) * weight[:, None]
    products = columns.T @ fitted
    # The ridge shrinks towards "the same as over the square". If a model knows 99 %, the part may contain no unsure
    # question, and ordinary least squares could return any slope.
    penalty = np.diag(PRIOR * np.maximum(variances, _ALIKE))
    slopes = np.linalg.solve(products + penalty, columns.T @ (values[rows[inside]] - fitted[:, 0]))
    degrees = float(np.trace(np.linalg.solve(products + penalty, products)))
    return squares[:, 0] + (squares - centre) @ slopes, degrees


_ALIKE = 1e-12
"""Variance below which all squares count as the same."""
