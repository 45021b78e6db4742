"""The noise floor: how often an answer changes when the same page is asked again, and how much more with the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, Jsonable
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate


@dataclass(frozen=True)
class NoiseFloor(Jsonable):
    """Flips: shares of pairs of answers to one question that name different options.

    Replies without an answer are in no pair; a question without a pair is left out, and N says so.

    Attributes:
        between_orders: of two different orders.
        between_repeats: of two replies to the same page.
        beyond_noise: the first less the second, paired, on the questions that have both: what the order itself does.
    """

    between_orders: Estimate
    between_repeats: Estimate
    beyond_noise: Estimate


def flips(answers: Sequence[int]) -> float:
    """Share of pairs of answers that differ; those below 0 are no answers. nan with fewer than two."""
    _, counts = np.unique([answer for answer in answers if answer >= 0], return_counts=True)
    n = counts.sum()
    return float(1 - (counts * (counts - 1)).sum() / (n * (n - 1))) if n > 1 else float("nan")


def noise_floor(
    ids: Sequence[str],
    by_order: Mapping[str, Sequence[int]],
    by_repeat: Mapping[str, Sequence[Sequence[int]]],
    bootstrap: Bootstrap,
) -> NoiseFloor:
    """The noise floor of a set of questions.

    Args:
        ids: the questions that ``bootstrap`` resamples.
        by_order: question -> its answer under each order.
        by_repeat: question -> for every page that was shown again, all answers to it.
    """

    def of(pages: Mapping[str, Sequence[Sequence[int]]]) -> Floats:
        found = [[share for page in pages.get(name, ()) if (share := flips(page)) == share] for name in ids]
        return np.asarray([np.mean(shares) if shares else np.nan for shares in found])

    def mean(values: Floats, missing: str, *, share: bool = True) -> Estimate:
        return bootstrap.mean(values, share=share, note="" if np.isfinite(values).any() else missing)

    orders, repeats = of({name: [answers] for name, answers in by_order.items()}), of(by_repeat)
    once = "nothing was asked twice: see --repeats"
    return NoiseFloor(
        mean(orders, "needs two or more orders a question"),
        mean(repeats, once),
        mean(orders - repeats, once, share=False),
    )
