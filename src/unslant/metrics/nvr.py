"""Nvr-X: accuracy where the right option is never under label X, and the least of these as the score (P5, 3.2)."""

from __future__ import annotations

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


_LEAST_NOTE = "the least of several lies low by chance: no interval"


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
            weighted by questions (a question of three options has no Nvr-D). Without an interval: the least of several
            lies low by chance, and no interval we know covers as it should where variants are much alike.
        drop: ``plain`` less ``score``, of the same questions.
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

    def least(rows: Bools) -> float:
        own = [right[rows & (n_options == size), :size] for size in sizes]
        return sum(float(variants.sum(axis=0).min()) for variants in own if len(variants)) / int(rows.sum())

    drop = Estimate.undefined("no question is answered as given")
    if paired.any():
        drop = Estimate.bare(float(plain[paired].mean()) - least(paired), int(paired.sum()), _LEAST_NOTE)
    kept = np.asarray(n_options)[complete]
    return Nvr(
        labels=tuple(labels),
        accuracy=accuracy,
        plain=bootstrap.mean(np.where(complete, plain, np.nan)),
        score=Estimate.bare(least(complete), n, _LEAST_NOTE),
        drop=drop,
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
    means = right[mask, :size].mean(axis=0)
    strict = 1 - (1 - bootstrap.confidence) / size  # the lowest and highest are picked from ``size`` variants
    found: list[LabelReading] = []
    extremes: list[tuple[int, Literal["prefers", "avoids"]]] = [(int(means.argmin()), "prefers")]
    if size > 2:  # with two labels, to prefer one is to avoid the other
        extremes.append((int(means.argmax()), "avoids"))
    for x, kind in extremes:
        others = sorted(np.delete(np.arange(size), x), key=lambda y: means[y])
        middle = [others[(size - 2) // 2], others[(size - 1) // 2]]  # the variants that are the median of the others
        gap = np.where(mask, right[:, x] - right[:, middle].mean(axis=1), np.nan)
        estimate = bootstrap.mean(gap, share=False, confidence=strict)
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
        bootstrap: over the questions of ``scores``.
        draws: ``one`` draws one fitting order for each question and label, seeded by the question's id, as the
            published test does; ``every`` takes the mean over all fitting orders with each position of the right
            option weighted the same, which is what ``one`` gives on average without the chance of the draw.
        seed: of the draw (and of the default bootstrap).
    """
    right, plain = nvr_values(scores, draws=draws, seed=seed)
    return nvr(right, plain, scores.n_options, scores.labels, bootstrap or Bootstrap.of(scores, seed=seed))


def nvr_values(
    scores: OrderScores, *, draws: Literal["one", "every"] = "every", seed: int = 0
) -> tuple[Floats, Floats]:
    """(Q, N) whether each question is right in the variant for each label, and (Q,) as given; nan where unknown."""
    right = np.full((len(scores), scores.width), np.nan)
    for block in scores.blocks:
        right[block.index, : block.n] = _drawn(block, seed) if draws == "one" else _expected(block)
    plain = np.full(len(scores), np.nan)
    given = scores.given
    ok = given.ok & scores.has_answer
    plain[ok] = np.take_along_axis(scores.answers, given.chosen[:, None], axis=1)[ok, 0]
    return right, plain


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
