"""The noise floor: how often an answer changes when the same page is asked again, and how much more with the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.registry import Numbers, metric


def flips(answers: Sequence[int]) -> float:
    """Share of pairs of answers that differ; those below 0 are no answers. nan with fewer than two."""
    _, counts = np.unique([answer for answer in answers if answer >= 0], return_counts=True)
    n = counts.sum()
    return float(1 - (counts * (counts - 1)).sum() / (n * (n - 1))) if n > 1 else float("nan")


@metric("noise.between_orders", "flips between orders", "pairs of orders with different answers", unit="share")
@metric("noise.between_repeats", "flips between repeats", "pairs of replies to the same page that differ", unit="share")
@metric("noise.beyond_noise", "flips beyond noise", "between orders less between repeats, same questions",
        unit="difference")  # fmt: skip
@metric("unparsed", "unparsed", "replies in which no answer is found; they count as not right", unit="share")
@metric("refused", "refused", "refusals; they count as not right", unit="share")
@metric("unreadable", "no answer", "replies that are no answer, unparsed or refused; they count as not right",
        unit="share")  # fmt: skip
@metric("readable", "right among readable replies", "accuracy without the replies that are no answer", unit="share")
@metric("errors", "no reply", "requests without a reply; they are left out of the accuracy", unit="share")
def noise_floor(
    ids: Sequence[str],
    by_order: Mapping[str, Sequence[int]],
    by_repeat: Mapping[str, Sequence[Sequence[int]]],
    bootstrap: Bootstrap,
) -> Numbers:
    """How often two answers to a question differ: between orders, between repeats, and what the order itself does.

    Replies without an answer are in no pair; a question without a pair is left out, and N says so.

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
    return Numbers(
        {
            "noise.between_orders": mean(orders, "needs two or more orders a question"),
            "noise.between_repeats": mean(repeats, once),
            "noise.beyond_noise": mean(orders - repeats, once, share=False),
        }
    )
