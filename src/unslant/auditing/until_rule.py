"""When an audit with ``--until`` may stop, and whether it asks more questions or more orders next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from unslant.arrays import Floats, Ints
from unslant.metrics.anytime import ConfidenceSequence
from unslant.metrics.bootstrap import DIFFERENCE, SHARE

Interval = tuple[float, float]
Values = Mapping[str, Floats]
"""Number -> (n,) value of each question asked, in the order asked; nan where it has none."""

BOUNDS = {"accuracy": SHARE, "expected_accuracy": SHARE, "order_advantage": DIFFERENCE, "pbm": (0.0, 1 / 3)}
"""The numbers whose intervals are to be narrow. PBM estimated from some rounds can be 1/n, with n >= 3 options."""
WITH_ORDERS = ("expected_accuracy", "order_advantage")
"""Those of them that more orders make more precise by much."""
LEAST_ROUNDS = 2
"""Of one round, the variance between rounds cannot be known."""
FIRST = 48
"""Draws of the first step."""
_USUAL_VARIANCE = 0.2
"""Of a share, before anything is known."""
_WORTH = 0.1
"""More orders of the questions asked are worth it if they narrow an interval by this part of the width asked for."""


class Search:
    """Asks questions in random order, each in some rounds of its orders, until all intervals are narrow enough.

    As long as there are questions left, intervals are those of a :class:`ConfidenceSequence`, which may be looked at
    after every step. A question enters it once, with the rounds that it was first asked in; as these are drawn at
    random, its mean over them is an unbiased value of its mean over all orders. Once all questions are asked, their
    number is no longer for the data to choose, and the usual interval holds.

    More questions or more orders: the variance of a question's mean over r of its R rounds is v + s (1/r - 1/R), with v
    between questions and s between the rounds of a question, both estimated from what was asked. With the questions
    that each r would need, and what a question costs in r rounds, follows the cheapest r (Cochran 1977, sec. 10.6).

    Args:
        width: half-width that every interval is to have at most.
        sizes: (U,) questions of each draw (a question, or the questions of one passage), in the order asked.
        rounds: (Q,) rounds R of each question, in the order asked.
        cost: tokens, in any unit, of a question asked in r rounds.

    Attributes:
        draws, questions, rounds: what to ask next, from the beginning.
    """

    def __init__(self, width: float, sizes: Ints, rounds: Ints, cost: Callable[[int], float]) -> None:
        self.width, self.cost = width, cost
        self._ends, self._all_rounds = np.cumsum(sizes), rounds
        self.sequences = {name: ConfidenceSequence(bounds) for name, bounds in BOUNDS.items()}
        self._seen = 0
        self.most_rounds = int(rounds.max())
        self.rounds = min(LEAST_ROUNDS, self.most_rounds)
        self.draws = min(FIRST, len(sizes))
        target = next(iter(self.sequences.values())).target
        self._horizon = min(len(sizes), 2 * target * _USUAL_VARIANCE / width**2)

    @property
    def questions(self) -> int:
        return int(self._ends[self.draws - 1])

    @property
    def complete(self) -> bool:
        """Whether all questions are asked."""
        return self.draws == len(self._ends)

    def look(self, values: Values, usual: Callable[[str], Interval]) -> dict[str, Interval]:
        """The interval of every number that any question has a value of.

        Args:
            usual: the interval of a number for as many questions fixed beforehand.
        """
        starts = np.concatenate([[0], self._ends])[self._seen : self.draws]
        largest = float(np.diff(self._ends, prepend=0).max())
        found = {}
        for name, sequence in self.sequences.items():
            known = ~np.isnan(values[name])
            if len(starts):
                totals = np.add.reduceat(np.where(known, values[name], 0.0), starts) / largest
                weights = np.add.reduceat(known.astype(np.float64), starts) / largest
                sequence.add(totals[weights > 0], weights[weights > 0], self._horizon)
            if known.any():
                low, high = usual(name) if self.complete else sequence.interval()
                found[name] = (low, high) if low == low else sequence.interval()
        self._seen = self.draws
        return found

    def next(
        self, intervals: Mapping[str, Interval], values: Values, noise: Floats
    ) -> Literal["", "width", "orders", "all"]:
        """Decide what to ask next, or why to stop.

        Args:
            noise: (n,) variance between the rounds of each question, of the share right.

        Returns:
            ``width``: every interval is narrow enough; ``orders``: all questions are asked, and more orders would not
            narrow any interval by much; ``all``: everything is asked; empty: go on.
        """
        half = {name: (high - low) / 2 for name, (low, high) in intervals.items()}
        if half and max(half.values()) <= self.width:
            return "width"
        variance = {name: float(np.nanvar(values[name])) for name in half}
        removed = {r: self._removed(r, noise) for r in range(self.rounds, self.most_rounds + 1)}
        narrower = {  # the variance of a question's value in r rounds over that in the rounds asked
            r: {
                name: max(0.0, 1 - less / variance[name]) if name in WITH_ORDERS and variance[name] > 0 else 1.0
                for name in half
            }
            for r, less in removed.items()
        }
        if not self.complete:
            needed = {
                r: max((self._seen * (half[name] / self.width) ** 2 * by for name, by in found.items()), default=np.inf)
                for r, found in narrower.items()
            }
            enough = [r for r, n in needed.items() if n <= len(self._ends)]
            self.rounds = min(enough, key=lambda r: needed[r] * self.cost(r), default=self.rounds)
            wanted = min(needed[self.rounds], 2 * self._seen)
            self.draws = min(len(self._ends), math.ceil(max(wanted, self._seen + max(8, self._seen / 10))))
            self._horizon = min(len(self._ends), max(needed[self.rounds], self.draws))
            return ""
        if self.rounds == self.most_rounds:
            return "all"
        root = {r: {name: half[name] * math.sqrt(by) for name, by in found.items()} for r, found in narrower.items()}
        least = root[self.most_rounds]
        rounds = [r for r, own in root.items() if r > self.rounds and max(own.values(), default=np.inf) <= self.width]
        near = _WORTH * self.width
        rounds += [r for r, own in root.items() if all(own[name] - least[name] <= near for name in own)]
        if rounds[0] == self.rounds:
            return "orders"
        self.rounds = rounds[0]
        return ""

    def _removed(self, r: int, noise: Floats) -> float:
        """How much less a question's mean over orders would vary in r rounds."""
        rounds = self._all_rounds[: len(noise)]
        return float((noise * (1 / np.minimum(self.rounds, rounds) - 1 / np.minimum(r, rounds))).mean())
