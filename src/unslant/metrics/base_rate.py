"""Base rates: how probable each label is where there is nothing to know (P5, section 3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, Ints, jsonable
from unslant.metrics.estimate import Estimate
from unslant.metrics.label_scores import LabelScores, standard_labels
from unslant.metrics.registry import Measured, Numbers, metric
from unslant.presentations.controls import CONTROL
from unslant.responses.table import Responses

PERMUTATIONS = 9_999
ALPHA = 0.05
MATERIAL = 0.05
"""Least total variation distance from even that matters (H1): one guess in twenty would have to move."""


@dataclass(frozen=True)
class BaseRates(Measured):
    """Base-rate probabilities (BRP) of ``n_options`` labels under one elicitation.

    Probabilities are not renormalised: for the cloze, that of the label among all tokens; for the counterfactual, of
    the canary after that label. They have no interval: the label orders shown are all there are, or a balanced choice.

    Attributes:
        labels: in standard sequence.
        by_label: BRP of each label, mean over the orders shown.
        by_position: mean probability of the label at each position, top first.
        numbers: see :func:`base_rates`.
        n_orders: label orders shown.
        note: why parts and tests are missing, if they are.
    """

    elicitation: str
    n_options: int
    labels: tuple[str, ...]
    by_label: tuple[Estimate, ...]
    by_position: tuple[Estimate, ...]
    numbers: Numbers
    n_orders: int
    note: str = ""

    @property
    def values(self) -> Floats:
        """(n,) BRP of each label."""
        return np.array([estimate.value for estimate in self.by_label])

    @property
    def shares(self) -> Floats:
        """(n,) BRP of each label as a share of their sum."""
        shares: Floats = self.values / self.values.sum()
        return shares

    @property
    def top(self) -> str:
        """The label of highest BRP."""
        return self.labels[int(self.values.argmax())]

    @property
    def uneven(self) -> bool:
        """Whether the labels' base rates differ significantly (``label_p``) and by enough to matter (``distance``)."""
        return self["label_p"].value < ALPHA and self["distance"].value >= MATERIAL

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**super().to_dict(), "shares": jsonable(self.shares), "uneven": self.uneven}


@metric(
    "base_rates.by_label",
    "base rate",
    "probability of a label where there is nothing to know",
    digits=4,
    unit="share",
    source="P5 sec. 3.1",
)
@metric("base_rates.by_position", "rate by position", "probability of the label at a position", digits=4, unit="share")
@metric("base_rates.shares", "share", "base rate as a share of all labels'", unit="share", plain=True)
@metric(
    "base_rates.distance",
    "distance from even",
    "guesses that would change if labels were equally likely",
    unit="share",
)
@metric("base_rates.position_distance", "distance by position", "the same for positions", unit="share")
@metric("base_rates.label_part", "variance by label", "part of the variance that the label explains", unit="share")
@metric(
    "base_rates.position_part", "variance by position", "part of the variance that the position explains", unit="share"
)
@metric("base_rates.label_p", "p", "permutation test: the label makes no difference", unit="p")
@metric("base_rates.position_p", "p", "permutation test: the position makes no difference", unit="p")
def base_rates(
    responses: Responses, elicitation: str = "cloze", labels: tuple[str, ...] = (), *, seed: int = 0
) -> dict[int, BaseRates]:
    """Number of options -> base rates, from the control presentations; empty if there are none of this elicitation.

    The distance is the total variation distance of the labels' shares from even, 0 to 1 - 1/n. The parts of the
    variance are main effects of a two-way decomposition of a balanced design, which add up; the rest belongs to single
    orders. The tests are those of :func:`permutation_p`.

    Args:
        labels: the standard label sequence, or its beginning; others follow as in the first control row with most.
        seed: of the permutation test.
    """
    controls = responses.where(kind=CONTROL, elicitation=elicitation)
    if not len(controls):
        return {}
    more = [one for one in standard_labels(controls, (CONTROL,)) if one not in labels]  # than a shard's questions have
    scores = LabelScores.read(controls, CONTROL, elicitation, (*labels, *more))
    return {
        int(n): _measured(scores.take(scores.n_options == n), elicitation, int(n), seed)
        for n in np.unique(scores.n_options)
    }


def _measured(scores: LabelScores, elicitation: str, n: int, seed: int) -> BaseRates:
    """Base rates from rows that all have ``n`` options."""
    k = len(scores)
    values = np.exp(scores.logprobs[:, :n])
    places = scores.positions[:, :n]
    by_place = np.take_along_axis(values, np.argsort(places, axis=1), axis=1)
    counts = (places[:, :, None] == np.arange(n)).sum(axis=0)
    note = ""

    def exact(value: float) -> Estimate:
        shown = "all orders" if k >= math.factorial(n) else f"{k} orders"
        return Estimate.bare(float(value), k, f"over {shown} of the labels, none drawn at random: no interval")

    if (counts == counts[0, 0]).all():
        parts = [exact(_part(values)), exact(_part(by_place))]
        rng = np.random.default_rng(seed)
        label_p = permutation_p(by_place, places, rng)
        position_p = permutation_p(values, np.argsort(places, axis=1), rng)
    else:
        note = "the label orders are not balanced: label and position cannot be distinguished"
        parts, label_p, position_p = [Estimate.undefined(note, k)] * 2, math.nan, math.nan
    return BaseRates(
        elicitation,
        n,
        scores.labels[:n],
        tuple(map(exact, values.mean(axis=0))),
        tuple(map(exact, by_place.mean(axis=0))),
        Numbers(
            {
                "base_rates.distance": exact(_distance(values)),
                "base_rates.position_distance": exact(_distance(by_place)),
                "base_rates.label_part": parts[0],
                "base_rates.position_part": parts[1],
                "base_rates.label_p": label_p,
                "base_rates.position_p": position_p,
            }
        ),
        k,
        note,
    )


def _distance(values: Floats) -> float:
    """Total variation distance from even of the (k, n) columns' shares."""
    shares = values.sum(axis=0) / values.sum()
    return float(np.abs(shares - 1 / len(shares)).sum()) / 2


def _part(values: Floats) -> float:
    """Part of the sum of squares of (k, n) values that lies between the columns."""
    rest = values - values.mean()
    everything = float((rest**2).sum())
    # a model whose scores are all the same has no variance to explain
    if everything <= 1e-12 * float((values**2).sum()):
        return 0.0
    return len(values) * float((rest.mean(axis=0) ** 2).sum()) / everything


def permutation_p(values: Floats, places: Ints, rng: np.random.Generator, permutations: int = PERMUTATIONS) -> float:
    """Permutation test of "the label makes no difference, only the position does" (or the other way round).

    Under that hypothesis the scores by position do not depend on which labels stood there, so the rows of scores can be
    permuted among the label orders. The statistic is the variance between the labels' means. Unlike a test on the
    labels' scores alone (chi-squared, Friedman), it holds under a position effect of any size. One-sided;
    p = (1 + as extreme) / (1 + permutations).

    Args:
        values: (K, n) scores by position (by label, to test positions).
        places: (K, n) position of each label (label at each position).
    """
    k = len(values)
    if k < 2:
        return math.nan
    observed = np.take_along_axis(values, places, axis=1).sum(axis=0).var()
    extreme = 0
    for start in range(0, permutations, 1000):
        size = min(1000, permutations - start)
        deals = rng.permuted(np.tile(np.arange(k), (size, 1)), axis=1)
        sums = np.take_along_axis(values[deals], places[None], axis=2).sum(axis=1)
        # summation in another sequence may differ in the last bits
        extreme += int((sums.var(axis=1) >= observed * (1 - 1e-9)).sum())
    return (1 + extreme) / (1 + permutations)
