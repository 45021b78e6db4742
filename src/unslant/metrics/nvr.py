"""Nvr-X: accuracy where the right option is never under label X, and the lowest of these as the score (P5, 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, jsonable
from unslant.metrics.accuracy import accuracy
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate, verdict
from unslant.metrics.registry import Measured, Numbers, metric
from unslant.metrics.scores import OrderScores, is_right

MATERIAL = 0.02
"""Least distance from the median of the other variants at which a significant variant is reported."""
_LEAST_NOTE = "the least of several lies low by chance: no interval"


@dataclass(frozen=True)
class LabelReading:
    """A variant whose accuracy differs from that of the others.

    Attributes:
        label: X.
        kind: ``prefers`` (accuracy far below the others: X is answered when unsure) or ``avoids`` (far above).
        gap: accuracy on Nvr-X minus the median of the other variants, over questions of the most common option count;
            the interval allows for picking the extreme one of several.
    """

    label: str
    kind: Literal["prefers", "avoids"]
    gap: Estimate

    @property
    def phrase(self) -> str:
        return f"{self.kind} {self.label} when unsure"


@dataclass(frozen=True)
class Nvr(Measured):
    """Nvr-X of Q questions.

    Attributes:
        accuracy: of each variant, over the questions that have its label.
        numbers: see :func:`nvr`.
        extremes: the lowest variant and, of more than two, the highest, whether or not they differ from the others.
        n_options: the number of options, the most common one, of the questions that ``extremes`` rest on; None where
            all questions have as many.
        left_out: questions without a complete set of variants.
    """

    labels: tuple[str, ...]
    accuracy: tuple[Estimate, ...]
    numbers: Numbers
    extremes: tuple[LabelReading, ...]
    n_options: int | None
    left_out: int

    @property
    def among(self) -> str:
        """ " on questions with 4 options", where there are others too; for the end of a sentence about extremes."""
        return f" on questions with {self.n_options} options" if self.n_options else ""

    @property
    def readings(self) -> tuple[LabelReading, ...]:
        """The variants that differ from the others, significantly and by enough to matter."""
        return tuple(end for end in self.extremes if verdict(end.gap).differs and abs(end.gap.value) >= MATERIAL)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        accuracy = jsonable(dict(zip(self.labels, self.accuracy, strict=True)))
        values = super().to_dict() | {"accuracy": accuracy, "readings": jsonable(self.readings)}
        del values["extremes"], values["n_options"]
        return values


@metric("nvr.score", "Nvr-X score", "lowest Nvr-X within each number of options, pooled by N", unit="share",
        source="P5 sec. 3.2")  # fmt: skip
@metric("nvr.accuracy", "Nvr-X", "accuracy with the right option never under X", unit="share", source="P5 sec. 3.2")
@metric("nvr.plain", "as given", "accuracy as given, same questions", unit="share")
@metric("nvr.drop", "drop to Nvr-X", "as given minus the Nvr-X score, paired", unit="difference")
@metric("nvr.guess", "guessing on Nvr-X", "expected score of guessing", unit="share", plain=True)
@metric("nvr.never", "avoiding one label", "expected Nvr-X score of never answering one label", unit="share",
        plain=True)  # fmt: skip
@metric("readings.gap", "gap", "one Nvr-X minus the median of the others", unit="difference")
def nvr(
    right: Floats,
    plain: Floats,
    n_options: NDArray[np.integer],
    labels: Sequence[str],
    bootstrap: Bootstrap,
    *,
    shared: Floats | None = None,
) -> Nvr:
    """Nvr-X from the answers to all variants.

    The score is the least of the variants. Where questions differ in their number of options, it is the least within
    each number, weighted by questions (a question of three options has no Nvr-D).

    Args:
        right: (Q, N) whether each question is answered right in the variant for each label; ``nan`` without one.
        plain: (Q,) whether it is as given; ``nan`` where unknown.
        n_options: (Q,)
        labels: N label names.
        shared: (Q, N) as ``right`` with tied labels sharing the credit, from which labels are said to be preferred or
            avoided: where the first of tied labels wins, a model without any preference seems to prefer A.
    """
    exists = np.arange(right.shape[1]) < n_options[:, None]
    complete: Bools = np.asarray((np.isfinite(right) | ~exists).all(axis=1))
    n = int(complete.sum())
    if n == 0:
        none = Estimate.undefined("no question has all its Nvr-X variants")
        nothing = {f"nvr.{key}": none for key in ("plain", "score", "drop", "guess", "never")}
        return Nvr(tuple(labels), (none,) * len(labels), Numbers(nothing), (), None, len(right))
    sizes = n_options[complete].tolist()
    size = int(np.bincount(sizes).argmax())
    common = complete & (n_options == size)
    paired = complete & np.isfinite(plain)

    # no interval: the least of several lies low by chance, and none that we know covers if variants are much alike
    def least(rows: Bools) -> float:
        groups = [right[rows & (n_options == k), :k] for k in sorted(set(sizes))]
        return sum(float(variants.sum(axis=0).min()) for variants in groups if len(variants)) / int(rows.sum())

    drop = Estimate.undefined("no question is answered as given")
    if paired.any():
        drop = Estimate.bare(float(plain[paired].mean()) - least(paired), int(paired.sum()), _LEAST_NOTE)
    return Nvr(
        labels=tuple(labels),
        accuracy=tuple(
            bootstrap.mean(np.where(complete & exists[:, x], right[:, x], np.nan)) for x in range(len(labels))
        ),
        numbers=Numbers(
            {
                "nvr.plain": bootstrap.mean(np.where(complete, plain, np.nan)),
                "nvr.score": Estimate.bare(least(complete), n, _LEAST_NOTE),
                "nvr.drop": drop,
                "nvr.guess": float(np.mean([1 / size for size in sizes])),  # as on the plain set
                # In the variants for the other labels the right option is among the n-1 guessed labels with probability
                # (n-2)/(n-1), and hit with 1/(n-1). For n = 4 this is 2/9, P5's "about 22 %".
                "nvr.never": float(np.mean([(size - 2) / (size - 1) ** 2 for size in sizes])),
            }
        ),
        extremes=_extremes(right if shared is None else shared, common, size, labels, bootstrap),
        n_options=size if len({*sizes}) > 1 else None,
        left_out=len(right) - n,
    )


def _extremes(
    right: Floats, mask: Bools, size: int, labels: Sequence[str], bootstrap: Bootstrap
) -> tuple[LabelReading, ...]:
    """The lowest and the highest variant among some questions of ``size`` options."""
    means = right[mask, :size].mean(axis=0)
    strict = 1 - (1 - CONFIDENCE) / size  # the lowest and highest are picked from ``size`` variants
    readings: list[LabelReading] = []
    extremes: list[tuple[int, Literal["prefers", "avoids"]]] = [(int(means.argmin()), "prefers")]
    if size > 2:  # of two labels, to prefer one is to avoid the other
        extremes.append((int(means.argmax()), "avoids"))
    for x, kind in extremes:
        others = sorted(np.delete(np.arange(size), x), key=lambda y: means[y])
        middle = [others[(size - 2) // 2], others[(size - 1) // 2]]  # the variants that are the median of the others
        gap = np.where(mask, right[:, x] - right[:, middle].mean(axis=1), np.nan)
        mean = bootstrap.mean(gap, share=False, confidence=strict, room="bounds, unsure")
        readings.append(LabelReading(labels[x], kind, mean))
    return tuple(readings)


def nvr_from_scores(scores: OrderScores, bootstrap: Bootstrap | None = None) -> Nvr:
    """Nvr-X from orders already scored, without asking the model again.

    The published test draws one fitting order for each question and label. This takes its expectation, which has no
    chance of the draw: the mean over all fitting orders, each position of the right option weighted the same.

    Args:
        scores: questions with their order sets; those whose orders do not hold every variant are left out and counted.
        bootstrap: over the questions of ``scores``.
    """
    return nvr(nvr_values(scores), accuracy(scores), scores.n_options, scores.labels, bootstrap or Bootstrap.of(scores))


def nvr_values(scores: OrderScores) -> Floats:
    """(Q, N) share of fitting orders answered right in the variant for each label; nan without one.

    Every place of the right option weighs the same.
    """
    right = np.full((len(scores), scores.width), np.nan)
    for block in scores.blocks:
        hits = is_right(block.answers, block.chosen)[:, :, None]
        there = np.take_along_axis(np.broadcast_to(block.answers[:, None], block.probs.shape), block.contents, axis=2)
        for x in range(block.n):
            fits = there & ~there[:, :, x : x + 1]  # (Q, K, n) right option at that place, none at x
            counts = fits.sum(axis=1)
            by_place = (fits & hits).sum(axis=1) / np.maximum(counts, 1)
            with np.errstate(invalid="ignore"):
                right[block.index, x] = by_place.sum(axis=1) / (counts > 0).sum(axis=1)
    return right
