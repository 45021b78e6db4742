"""When an audit with ``--until`` may stop, and what it asks next: more questions, or more orders of some of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from unslant.arrays import Floats, Ints
from unslant.metrics.bootstrap import DIFFERENCE, SHARE
from unslant.metrics.estimate import CONFIDENCE

Interval = tuple[float, float]
Values = Mapping[str, Floats]
"""Number -> (n,) value of each question asked, in the order asked; nan where it has none."""

BOUNDS = {"accuracy": SHARE, "expected_accuracy": SHARE, "order_advantage": DIFFERENCE, "pbm": (0.0, 0.25)}
"""The numbers whose intervals the search narrows, and their bounds."""
WITH_ORDERS = ("expected_accuracy", "order_advantage")
"""Those that average over orders; for questions asked in the published order alone they are estimated."""
PUBLISHED, SQUARE, WHOLE = range(3)
"""How a draw is asked: in the published order; also in a Latin square of its orders; in all of them."""
FIRST, FIRST_WHOLE = 48, 24
"""Draws of the first step, which all get a square, and how many of them get all orders."""
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.125)
"""Shares of further draws that may be asked in a square."""
_USUAL_VARIANCE = 0.2
"""Assumed variance of a share, before anything is known."""
_LEAST_STEP = 0.03
"""Least number of further draws in a step, as a share of those asked."""
_WORTH = 0.1
"""Asking more orders of the same questions is worthwhile if it narrows an interval by this share of its width."""
_ALIKE = 1e-9
"""Variance below which values count as the same."""


class UntilSearch:
    """Asks questions in random order, some of them in a Latin square of their orders, until all intervals are narrow.

    Every question is asked in the published order. A regression on earlier questions guesses its mean over orders from
    that answer. With probability q, fixed beforehand, the question is also asked in a random square, and counts as
    guess + (square - guess) / q. Because chance alone picks the squares and the questions that get one, this value is
    unbiased for the mean over all orders even if the guess is bad (the difference estimator: Särndal, Swensson and
    Wretman 1992, ch. 6). It is bounded, so while questions are left, the intervals are those of a
    :class:`ConfidenceSequence`, which may be inspected after every step. Once all questions are asked, the data no
    longer choose how many there are, and the usual interval holds.

    PBM is over the first questions, which are asked in all orders; their number grows with what its interval needs.

    How many squares: the variance of the value is v + (1/q - 1) d, with v the variance of questions' means over orders
    and d the mean squared error of the guess, both estimated from the answers so far. The cheapest q follows from the
    questions that each q would need and the cost of a square (two-phase sampling: Cochran 1977, sec. 12.5).

    Args:
        width: largest half-width that any interval may have in the end.
        sizes: (U,) questions of each draw (a question, or the questions of one passage), in the order asked.
        luck: (U,) a random number from 0 to 1 for each draw; those below q get a square.
        cost: of a square in addition to the published order, which costs 1.

    Attributes:
        draws: how many draws to ask, counted from the first; levels: (U,) how each of them is asked.
    """

    def __init__(self, width: float, sizes: Ints, luck: Floats, cost: float) -> None:
        self.width, self.cost, self._luck = width, cost, luck
        self._sizes, self._ends = sizes, np.cumsum(sizes)
        self.sequences = {name: ConfidenceSequence(bounds) for name, bounds in BOUNDS.items()}
        self.levels, self._chances = np.zeros(len(sizes), np.int64), np.ones(len(sizes))
        self.draws = min(FIRST, len(sizes))
        self.levels[: self.draws] = SQUARE
        self.levels[:FIRST_WHOLE] = WHOLE
        self.values: dict[str, Floats] = {}
        self._seen = self._seen_whole = 0
        self._means = np.zeros(0)
        self._slopes, self._missed, self._over_squares = np.zeros(3), 0.0, dict[str, float]()
        self._horizons = {
            name: min(len(sizes), 2 * one.target * _USUAL_VARIANCE * one.range**2 / width**2)
            for name, one in self.sequences.items()
        }

    @property
    def questions(self) -> int:
        return int(self._ends[self.draws - 1])

    @property
    def asked(self) -> Ints:
        """(n,) how each question is asked."""
        return np.repeat(self.levels[: self.draws], self._sizes[: self.draws])

    @property
    def whole(self) -> int:
        """How many draws are asked in all orders: the first ones."""
        return int((self.levels == WHOLE).sum())

    @property
    def complete(self) -> bool:
        """Whether all questions are asked."""
        return self.draws == len(self._ends)

    def exhausted(self, name: str) -> bool:
        """Whether every question that can have a value of a number has one."""
        return self.whole == len(self._ends) if name == "pbm" else self.complete

    def look(self, columns: Values, usual: Callable[[str, Floats], Interval]) -> dict[str, Interval]:
        """The interval of every number for which at least one question has a value.

        Args:
            columns: of the questions asked: the numbers, over the orders asked; ``certainty``, the probability of the
                right option in the published order; ``pbm`` over all orders, where these were asked.
            usual: the interval of a number for as many questions fixed beforehand.
        """
        expected = self._expected(columns)
        self.values = {
            "accuracy": columns["accuracy"],
            "expected_accuracy": expected,
            "order_advantage": columns["accuracy"] - expected,
            "pbm": np.where(self.asked == WHOLE, columns["pbm"], np.nan),
        }
        intervals = {}
        for name, sequence in self.sequences.items():
            values = self.values[name]
            done, until = (self._seen_whole, self.whole) if name == "pbm" else (self._seen, self.draws)
            self._feed(name, values, slice(done, until))
            if np.isfinite(values).any():
                low, high = usual(name, values) if self.exhausted(name) else sequence.interval()
                intervals[name] = (low, high) if low == low else sequence.interval()
        self._seen, self._seen_whole = self.draws, self.whole
        return intervals

    def _feed(self, name: str, values: Floats, draws: slice) -> None:
        """Add the values of some draws to the sequence of a number."""
        sequence = self.sequences[name]
        starts = np.concatenate([[0], self._ends])[draws]
        if not len(starts):
            return
        defined, end = np.isfinite(values), int(self._ends[draws][-1])
        totals = np.add.reduceat(np.where(defined, values, 0.0)[:end], starts) / self._sizes.max()
        weights = np.add.reduceat(defined.astype(np.float64)[:end], starts) / self._sizes.max()
        drawn = weights > 0
        beyond = (name in WITH_ORDERS) * (1 / self._chances[draws] - 1) / sequence.range
        sequence.add(totals[drawn], weights[drawn], self._horizons[name], beyond[drawn])

    def _expected(self, columns: Values) -> Floats:
        """(n,) unbiased values of each question's mean over orders; those of earlier steps are kept."""
        over_square, new = columns["expected_accuracy"], slice(len(self._means), None)
        if self.complete and (self.levels >= SQUARE).all():
            return over_square
        about = np.column_stack([np.ones(len(over_square)), columns["accuracy"], columns["certainty"]])
        chance = np.repeat(self._chances[: self.draws], self._sizes[: self.draws])[new]
        guess = np.clip(about[new] @ self._slopes, 0.0, 1.0)
        value = np.where(self.asked[new] >= SQUARE, guess + (over_square[new] - guess) / chance, guess)
        self._means = np.concatenate([self._means, np.where(chance == 1, over_square[new], value)])
        # fitted only now: a guess that had seen the square that corrects it would bias the value
        fitted = (self.asked >= SQUARE) & np.isfinite(over_square) & np.isfinite(about).all(axis=1)
        if fitted.any():
            x, y = about[fitted], over_square[fitted]
            self._slopes = np.linalg.solve(x.T @ x + np.diag([_ALIKE, 1.0, 1.0]), x.T @ y)
            self._missed = float(((y - np.clip(x @ self._slopes, 0.0, 1.0)) ** 2).mean())
            self._over_squares = {"expected_accuracy": float(y.var()), "order_advantage": float((x[:, 1] - y).var())}
        return self._means

    def next(self, intervals: Mapping[str, Interval], noise: Floats) -> Literal["", "width", "orders", "all"]:
        """Decide what to ask next, or why to stop.

        Args:
            noise: (m,) variance of the share right between the squares of the questions asked in all orders.

        Returns:
            ``width``: every interval is narrow enough; ``orders``: all questions are asked, and more orders would
            hardly narrow any interval; ``all``: everything is asked; empty: keep asking.
        """
        half = {name: (high - low) / 2 for name, (low, high) in intervals.items()}
        if half and max(half.values()) <= self.width:
            return "width"
        if self.whole == len(self._ends):
            return "all"
        before = self.draws, self.levels.copy()
        scores = {name: one for name, one in half.items() if name != "pbm"}
        if not self.complete:
            if max(scores.values(), default=1.0) > self.width or self.whole == self.draws:
                self._more_questions(list(scores))
        else:
            self._more_orders(scores, float(np.nanmean(noise)) if len(noise) else 0.0)
        if half.get("pbm", 0.0) > self.width:
            self._horizons["pbm"] = max(self._needed("pbm", 1.0), self.whole)
            whole = min(self.draws, self._next_size(self.whole, self._horizons["pbm"]))
            self.levels[:whole] = WHOLE
            self._chances[self._seen : whole] = 1.0
        unchanged = self.draws == before[0] and (self.levels == before[1]).all()
        return "orders" if unchanged else ""

    def _more_questions(self, names: Sequence[str]) -> None:
        """Extend the draws by the cheapest share of squares."""
        needed = {share: max((self._needed(name, share) for name in names), default=math.inf) for share in SHARES}
        enough = [share for share, n in needed.items() if n <= len(self._ends)]
        share = min(enough, key=lambda q: (needed[q] - self._seen) * (1 + q * self.cost), default=1.0)
        self.draws = min(len(self._ends), self._next_size(self._seen, needed[share]))
        new = slice(self._seen, self.draws)
        self.levels[new], self._chances[new] = np.where(self._luck[new] < share, SQUARE, PUBLISHED), share
        self._horizons |= {name: min(len(self._ends), max(self._needed(name, share), self.draws)) for name in names}

    @staticmethod
    def _next_size(seen: int, needed: float) -> int:
        """Draws after the next step, which doubles them at most: early variances say little."""
        return math.ceil(max(min(needed, 2 * seen), seen + max(8, _LEAST_STEP * seen)))

    def _needed(self, name: str, share: float) -> float:
        """Draws at which an interval is narrow enough, if this share of further ones is asked in a square.

        The half-width is about sqrt(2 t (sum of the values' variances)) / n, with t the target of the sequence, plus a
        term for the range of the values, which matters if they hardly vary.
        """
        seen, later = self._seen_whole if name == "pbm" else self._seen, self._variance(name, share)
        sequence, excess = self.sequences[name], max(0.0, seen * (self._variance(name) - later))
        a = 2 * sequence.target / self.width**2
        least = sequence.target * sequence.range / (3 * self.width)  # even if all values are the same
        return (a * later + math.sqrt((a * later) ** 2 + 4 * a * excess)) / 2 + least

    def _variance(self, name: str, share: float | None = None) -> float:
        """The variance of the values so far, or what it would be if this share of questions had a square."""
        values = self.values[name]
        if share is None or name in ("accuracy", "pbm"):
            return max(_ALIKE, float(np.nanvar(values)))
        return max(_ALIKE, self._over_squares.get(name, 0.0)) + (1 / share - 1) * self._missed

    def _more_orders(self, half: Mapping[str, float], noise: float) -> None:
        """Once all questions are asked: a square of each, or all orders, if an average over orders gains enough."""
        averaged = {name: one for name, one in half.items() if name in WITH_ORDERS}
        now = {name: self._variance(name) for name in averaged}
        squares = {name: one * math.sqrt(self._variance(name, 1.0) / now[name]) for name, one in averaged.items()}
        whole = {name: one * math.sqrt(max(0.0, 1 - noise / now[name])) for name, one in averaged.items()}
        levels = ((SQUARE, squares), (WHOLE, whole)) if (self.levels < SQUARE).any() else ((WHOLE, whole),)
        for level, narrowed in levels:
            narrower = (averaged[name] - narrowed[name] > _WORTH * averaged[name] for name in averaged)
            if any(narrower) or max(averaged.values(), default=0) > self.width >= max(narrowed.values(), default=1):
                self.levels = np.maximum(self.levels, level)
                return


ANYTIME = "anytime-valid, by betting, over questions"
_MOST_STAKED = 0.75
"""Share of the capital that is risked on one question at most."""
_PRECISION = 1e-7
"""Precision of the ends of an interval, as a share of the range."""


class ConfidenceSequence:
    """The mean of bounded values, ever more precise as questions come, by betting against every other mean.

    Hedged capital (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", Theorem 3):
    for each candidate mean m, one gambler bets that the mean is above m, and another that it is below. At the true
    mean the game is fair, and the chance that a gambler's capital ever grows by a factor of 2/alpha is at most alpha/2
    (Ville 1939). So the means against which neither gambler got there form an interval that holds the truth after
    every question at once with probability 1 - alpha = :data:`CONFIDENCE`, however one decided to stop. Values need
    only be bounded and come in random order: no normal distribution, no least number of questions.

    The stake on a question is the best one for an interval at ``horizon``; a wrong horizon costs width, never
    coverage. At the horizon the interval reaches sqrt(2 log(2/alpha)) = 2.72 standard errors
    to each side, against 1.96 for a single look at a number of questions fixed beforehand.

    Questions that share a passage count as one draw: the mean is then the ratio of totals and weights. Values may lie
    outside the bounds of their mean (an estimate of each question's, say), by a known part of the range.

    Args:
        bounds: least and greatest possible value.
    """

    def __init__(self, bounds: tuple[float, float] = (0.0, 1.0)) -> None:
        self.floor, self.range = bounds[0], bounds[1] - bounds[0]
        self.target = math.log(2 / (1 - CONFIDENCE))
        self._totals, self._weights, self._stakes, self._beyond = (np.zeros(0) for _ in range(4))
        self._sums = np.array([0.5, 1.0])  # one imagined question, as in the paper
        self._squares, self._seen = 0.25, 1.0

    def add(self, totals: Floats, weights: Floats, horizon: float, beyond: Floats | None = None) -> None:
        """Further draws, in the order in which they came.

        Args:
            totals: (U,) sum of the values of each draw's questions over the most questions that a draw can have.
            weights: (U,) number of its questions over the same, 0 to 1; all 1 where draws are single questions.
            horizon: number of draws after which one expects to stop, by what was known before these.
            beyond: (U,) how far outside the bounds a value can lie, as a share of the range; by default not at all.
        """
        y = (totals - self.floor * weights) / self.range
        # each stake depends on the draws before it alone: only so does the capital stay a fair game
        sums = self._sums + np.cumsum(np.stack([y, weights], axis=1), axis=0)
        deviations = (y - weights * sums[:, 0] / sums[:, 1]) ** 2
        squares = self._squares + np.concatenate([[0.0], np.cumsum(deviations)])
        variances = squares / (self._seen + np.arange(len(y) + 1))
        stakes = np.sqrt(2 * self.target / (max(horizon, 1.0) * variances[:-1]))
        self._totals, self._weights = np.concatenate([self._totals, y]), np.concatenate([self._weights, weights])
        self._stakes = np.concatenate([self._stakes, stakes])
        self._beyond = np.concatenate([self._beyond, np.zeros(len(y)) if beyond is None else beyond])
        if len(y):
            self._sums, self._squares, self._seen = sums[-1], float(squares[-1]), self._seen + len(y)

    def interval(self) -> tuple[float, float]:
        """Least and greatest mean that no gambler has ruled out; the bounds before the first question."""
        low = self._edge(self._totals)
        high = 1 - self._edge(self._weights - self._totals)
        return self.floor + self.range * min(low, high), self.floor + self.range * max(low, high)

    def _gains(self, y: Floats, m: float) -> Floats:
        """(U,) what each draw adds to the log capital of the gambler who bets that the mean of ``y`` is above m."""
        stakes = np.minimum(self._stakes, _MOST_STAKED / np.maximum(m + self._beyond, 1e-12))
        gains: Floats = np.log1p(stakes * (y - self._weights * m))
        return gains

    def _edge(self, y: Floats) -> float:
        """The greatest mean m that the gambler has ruled out, 0 if none."""
        from scipy.optimize import brentq

        # The capital falls with m, so that there is one root: so does each stake, and by less than the value's distance
        # from m where that is lost.
        def ahead(m: float) -> float:
            return float(self._gains(y, m).sum()) - self.target

        if ahead(0.0) <= 0:
            return 0.0
        return float(brentq(ahead, 0.0, 1.0, xtol=_PRECISION)) if ahead(1.0) < 0 else 1.0
