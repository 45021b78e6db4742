"""Nvr-X: accuracy where the right option is never under label X, and the least of these as the score (P5, 3.2)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Jsonable
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.scores import Block, OrderScores
from unslant.presentations.nvr import pick_nvr_order

MATERIAL = 0.02
"""A variant stands out when it lies at least so far from the median of the others, and significantly so."""


def guess_score(n: int) -> float:
    """Nvr-X score of random guessing among ``n`` options: 1/n, as on the plain set."""
    return 1 / n


def never_score(n: int) -> float:
    """Expected Nvr-X score of always avoiding one label and guessing among the other n-1: (n-2)/(n-1)^2.

    The least is that of the variants for the other labels: there the right option is among the n-1 guessed labels with
    probability (n-2)/(n-1), and hit with 1/(n-1). For n = 4 this is 2/9, P5's "about 22 %".
    """
    return (n - 2) / (n - 1) ** 2


@dataclass(frozen=True)
class LabelReading:
    """A variant that stands out.

    Attributes:
        label: X.
        kind: ``prefers`` (accuracy far below the others: X is answered when unsure) or ``avoids`` (far above).
        gap: accuracy on Nvr-X less the median of the other variants, over questions of the most common option count;
            interval widened for picking the extreme one of several.
    """

    label: str
    kind: Literal["prefers", "avoids"]
    gap: Estimate

    @property
    def phrase(self) -> str:
        """In words."""
        return f"{self.kind} {self.label} when unsure"


@dataclass(frozen=True)
class Nvr(Jsonable):
    """Nvr-X of Q questions.

    Attributes:
        labels: X.
        accuracy: of each variant, over the questions that have that label.
        plain: accuracy as given, over all these questions.
        score: least of the variants. Where questions differ in their number of options, the least within each number,
            weighted by questions (a question of three options has no Nvr-D).
        drop: ``plain`` less ``score``, paired.
        guess, never: expected score of random guessing and of always avoiding one label, for these option counts.
        readings: variants that stand out.
        left_out: questions without a complete set of variants.
    """

    labels: tuple[str, ...]
    accuracy: tuple[Estimate, ...]
    plain: Estimate
    score: Estimate
    drop: Estimate
    guess: float
    never: float
    readings: tuple[LabelReading, ...]
    left_out: int


def nvr(
    right: Floats,
    plain: Floats,
    n_options: NDArray[np.integer],
    labels: Sequence[str],
    bootstrap: Bootstrap,
) -> Nvr:
    """Put the answers to all variants together.

    Args:
        right: (Q, N) whether each question is answered right in the variant for each label; ``nan`` without one.
        plain: (Q,) whether it is as given; ``nan`` where unknown.
        n_options: (Q,)
        labels: N label names.
    """
    exists = np.arange(right.shape[1]) < np.asarray(n_options)[:, None]
    complete: Bools = np.asarray((np.isfinite(right) | ~exists).all(axis=1))
    n = int(complete.sum())
    if n == 0:
        none = Estimate.undefined("no question has all its Nvr-X variants", confidence=bootstrap.confidence)
        return Nvr(tuple(labels), (none,) * len(labels), none, none, none, math.nan, math.nan, (), len(right))
    accuracy = tuple(bootstrap.mean(np.where(complete & exists[:, x], right[:, x], np.nan)) for x in range(len(labels)))
    sizes = [int(size) for size in np.unique(np.asarray(n_options)[complete])]
    paired = complete & np.isfinite(plain)
    columns, cuts = [], []
    for size in sizes:
        mask = complete & (n_options == size)
        columns.append(np.where(mask[:, None], np.nan_to_num(right[:, :size]), 0.0))
        cuts.append(size)
    columns.append(complete[:, None].astype(np.float64))
    features = np.column_stack(columns)

    def least(totals: Floats) -> Floats:
        found, at = np.zeros(len(totals)), 0
        for size in cuts:
            found += totals[:, at : at + size].min(axis=1)
            at += size
        with np.errstate(invalid="ignore"):
            result: Floats = found / totals[:, at]
        return result

    both = np.column_stack([features * paired[:, None], np.where(paired, np.nan_to_num(plain), 0.0)])

    def drop(totals: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            result: Floats = totals[:, -1] / totals[:, -2] - least(totals[:, :-1])
        return result

    kept = np.asarray(n_options)[complete]
    return Nvr(
        labels=tuple(labels),
        accuracy=accuracy,
        plain=bootstrap.mean(np.where(complete, plain, np.nan)),
        score=bootstrap.statistic(features, least, n, reflect=1, low=0, high=1),
        drop=bootstrap.statistic(both, drop, int(paired.sum()), reflect=1, low=-1, high=1),
        guess=float(np.mean([guess_score(int(size)) for size in kept])),
        never=float(np.mean([never_score(int(size)) for size in kept])),
        readings=_readings(right, complete, np.asarray(n_options), labels, bootstrap),
        left_out=len(right) - n,
    )


def _readings(
    right: Floats,
    complete: Bools,
    n_options: NDArray[np.integer],
    labels: Sequence[str],
    bootstrap: Bootstrap,
) -> tuple[LabelReading, ...]:
    """The lowest and the highest variant, where they stand out, among the questions of the most common option count."""
    sizes, counts = np.unique(n_options[complete], return_counts=True)
    size = int(sizes[counts.argmax()])
    mask = complete & (n_options == size)
    features = np.column_stack([np.where(mask[:, None], np.nan_to_num(right[:, :size]), 0.0), mask.astype(np.float64)])
    means = features.sum(axis=0)[:-1]
    found: list[LabelReading] = []
    careful = copy.copy(bootstrap)  # the lowest and highest are picked from ``size`` variants: Bonferroni
    careful.confidence = 1 - (1 - bootstrap.confidence) / size
    if size < 3:  # with two labels, to prefer one is to avoid the other
        extremes: tuple[tuple[int, Literal["prefers", "avoids"]], ...] = ((int(means.argmin()), "prefers"),)
    else:
        extremes = ((int(means.argmin()), "prefers"), (int(means.argmax()), "avoids"))
    for x, kind in extremes:

        def gap(totals: Floats, x: int = x) -> Floats:
            with np.errstate(invalid="ignore", divide="ignore"):
                accuracy = totals[:, :-1] / totals[:, -1:]
            result: Floats = accuracy[:, x] - np.median(np.delete(accuracy, x, axis=1), axis=1)
            return result

        estimate = careful.statistic(features, gap, int(mask.sum()), low=-1, high=1)
        if abs(estimate.value) >= MATERIAL and estimate.excludes(0.0):
            found.append(LabelReading(labels[x], kind, estimate))
    return tuple(found)


def nvr_from_scores(
    scores: OrderScores,
    bootstrap: Bootstrap | None = None,
    *,
    draws: Literal["one", "every"] = "every",
    seed: int = 0,
) -> Nvr:
    """Nvr-X from orders that are already scored, with no further call of the model.

    Args:
        scores: questions with their order sets; those whose orders do not hold every variant are left out and counted.
        bootstrap: over the questions of ``scores``; by default over subjects where there are enough.
        draws: ``one`` draws one fitting order for each question and label, seeded by the question's id, as the
            published test does; ``every`` takes the mean over all fitting orders with each position of the right
            option weighted the same, which is what ``one`` gives on average without the chance of the draw.
        seed: of the draw (and of the default bootstrap).
    """
    bootstrap = bootstrap or Bootstrap(len(scores), scores.subjects, seed=seed)
    right = np.full((len(scores), scores.width), np.nan)
    plain = np.full(len(scores), np.nan)
    for block in scores.blocks:
        values = _drawn(block, seed) if draws == "one" else _expected(block)
        right[block.index, : block.n] = values
    given = scores.given
    ok = given.ok & scores.has_answer
    plain[ok] = np.take_along_axis(scores.answers, given.chosen[:, None], axis=1)[ok, 0]
    return nvr(right, plain, scores.n_options, scores.labels, bootstrap)


def _right_by_order(block: Block) -> tuple[Floats, Bools]:
    """(Q, K) whether each order is answered right, ties to the first label; (Q, K, n) where right options stand."""
    hits = np.take_along_axis(block.answers, block.chosen, axis=1).astype(np.float64)
    answers = np.broadcast_to(block.answers[:, None], block.contents.shape)
    return hits, np.take_along_axis(answers, block.contents, axis=2)


def _drawn(block: Block, seed: int) -> Floats:
    hits, _ = _right_by_order(block)
    result = np.full((len(block.ids), block.n), np.nan)
    for q, question_id in enumerate(block.ids):
        answers = set(np.flatnonzero(block.answers[q]).tolist())
        for x in range(block.n):
            k = pick_nvr_order(question_id, block.contents[q].tolist(), answers, x, seed)
            if k is not None:
                result[q, x] = hits[q, k]
    return result


def _expected(block: Block) -> Floats:
    hits, there = _right_by_order(block)
    result = np.full((len(block.ids), block.n), np.nan)
    for x in range(block.n):
        fits = there & ~there[:, :, x : x + 1]  # (Q, K, n) right option at that place, none at x
        counts = fits.sum(axis=1)
        by_place = np.divide(
            (fits * hits[:, :, None]).sum(axis=1), counts, out=np.zeros(counts.shape), where=counts > 0
        )
        places = (counts > 0).sum(axis=1)
        result[:, x] = np.divide(by_place.sum(axis=1), places, out=np.full(len(places), np.nan), where=places > 0)
    return result
