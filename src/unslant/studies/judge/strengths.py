"""What a verdict depends on, all at once: who wrote the answers, which one came first, and which one is longer.

The model is that of Rao and Kupper (1967), Bradley-Terry's with ties, with covariates: for the answers f (shown first)
and s, on the log-odds scale,

    eta = strength(f) - strength(s) + place + length * (doublings(f) - doublings(s)),
    P(f preferred) = sigmoid(eta - width),  P(f preferred, or a tie) = sigmoid(eta + width),

where the width of ties may differ between the order of the file and the swapped one. Both probabilities are logistic
regressions with shared coefficients, so they are fitted as one, each verdict counting twice; the sandwich estimate of
their covariance, clustered by question, allows for that, and for the two orders of a pair having much in common (Liang
and Zeger 1986). Where there are labels and no systems, "the label's answer" takes the place of strengths: the
coefficient of length is then an association given correctness, and no cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, stdtrit

from unslant.arrays import Bools, Floats, Ints
from unslant.experiment.comparison import ranks_of
from unslant.experiment.ranking import Ranks, rank_sets
from unslant.metrics import Estimate, Measured, Numbers, metric
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.sampling import LEAST_UNITS
from unslant.studies.judge.verdicts import Verdicts

PLACE, LENGTH, RIGHT, WIDTH, WIDTH_SWAPPED = "(place)", "(length)", "(right)", "(ties)", "(ties, swapped)"
"""Names of coefficients, which no system has."""
PRIOR = 1.0
"""Weight of the pseudo-verdict, half a win, that is added for every coefficient: the log-F(1, 1) prior of Greenland and
Mansournia (2015). It is little next to a hundred verdicts, and gives an estimate, with a wide interval, where a system
wins every time."""
_STEPS = 100
_FEWEST = 20
"""Verdicts below which nothing is fitted."""
_ROUNDING = 1e-9
_DRAWS, _AT_ONCE = 20_000, 2_000


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients (P,) by name, their covariance (P, P), and the number of clusters and pairs that they rest on."""

    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats
    clusters: int
    pairs: int

    def has(self, name: str) -> bool:
        return name in self.names

    def estimate(self, name: str) -> Estimate:
        """One coefficient, in log-odds."""
        return self.combined(np.array([float(one == name) for one in self.names]))

    def combined(self, weights: Floats, confidence: float = CONFIDENCE, quantile: float | None = None) -> Estimate:
        """A weighted sum of the coefficients."""
        value = float(weights @ self.coefficients)
        t = quantile or float(stdtrit(self.clusters - 1, 0.5 + confidence / 2))
        half = t * float(np.sqrt(weights @ self.covariance @ weights))
        return Estimate(value, value - half, value + half, self.pairs, "sandwich over questions", confidence)


def fitted(v: Verdicts, *, systems: bool = True, habits: bool = True, pages: Bools | None = None) -> Fit | None:
    """The model of the verdicts on pairs; None where there are too few, or they cannot separate its coefficients.

    Args:
        systems: with a strength for each system (the first is the reference, 0), else with that of right answers.
        habits: with place and length.
        pages: (R,) the verdicts to use, by default all.
    """
    kept = v.decided & (v.exists[v.pair].sum(axis=1) == 2) & (True if pages is None else pages)
    systems = systems and bool(v.systems)
    if systems:
        kept &= (v.system[v.pair] >= 0).sum(axis=1) == 2
    if not kept.any():
        return None
    pair, order = v.pair[kept], v.order[kept]
    first, second = order[:, 0], order[:, 1]
    score = v.credit[kept, first]
    columns: dict[str, Floats] = {}
    if systems:
        for s, name in enumerate(v.systems[1:], 1):
            columns[name] = (v.system[pair, first] == s).astype(float) - (v.system[pair, second] == s)
    elif v.labelled.any():
        columns[RIGHT] = v.right[pair, first].astype(float) - v.right[pair, second]
    if habits:
        columns[PLACE] = v.placed[kept].astype(float)
        columns[LENGTH] = np.nan_to_num(v.doublings[pair, first] - v.doublings[pair, second])
    names = [name for name, column in columns.items() if np.abs(column).max() > _ROUNDING]
    clusters = np.unique(np.array(v.stems)[pair], return_inverse=True)[1]
    n = int(clusters.max()) + 1
    if _places_decide(v) or not names or len(pair) < _FEWEST or n < len(names) + LEAST_UNITS:
        return None
    X, y = np.stack([columns[name] for name in names], axis=1), score
    # The strength of a system that always comes first cannot be separated from the place, and systems that never meet,
    # even through others, cannot be compared.
    if np.linalg.matrix_rank(X) < len(names):
        return None
    if (score == 0.5).any():
        swapped = v.swapped[kept].astype(float)
        widths = [np.ones(len(pair)), *([swapped] if habits and 0 < swapped.sum() < len(pair) else [])]
        names += [WIDTH, WIDTH_SWAPPED][: len(widths)]
        wide = np.stack(widths, axis=1)
        X, clusters = np.block([[X, -wide], [X, wide]]), np.concatenate([clusters, clusters])
        y = np.concatenate([score == 1, score >= 0.5]).astype(float)
    coefficients, covariance = _regression(X, y, clusters, _pseudo(names, v.systems if systems else ()))
    return Fit(tuple(names), coefficients, covariance, n, int(np.unique(pair).size))


def _places_decide(v: Verdicts) -> bool:
    """Whether hardly a pair has a winner that does not follow the place: nothing is then left to estimate from."""
    return bool(v.in_orders.sum() >= LEAST_UNITS > (v.in_orders & ~v.follows).sum())


def _pseudo(names: Sequence[str], systems: Sequence[str]) -> Floats:
    """(K, P) pseudo-verdicts, weighted by their size: one for each coefficient that is not of a system, and for systems
    one for every two of them, so that none is favoured."""
    rows = [np.eye(len(names))[k] for k, name in enumerate(names) if name not in systems]
    place = {name: k for k, name in enumerate(names)}
    for a, one in enumerate(systems):
        for other in systems[:a]:
            row = np.zeros(len(names))
            for name, sign in ((one, 1.0), (other, -1.0)):
                if name in place:
                    row[place[name]] = sign
            rows.append(row)
    return np.array(rows)


def _regression(X: Floats, y: Floats, clusters: Ints, pseudo: Floats) -> tuple[Floats, Floats]:
    """Logistic regression by Newton's method, and its sandwich covariance; ``pseudo`` are rows with half a win each."""
    n = len(X)
    X, y = np.concatenate([X, pseudo]), np.concatenate([y, np.full(len(pseudo), 0.5)])
    clusters = np.concatenate([clusters, clusters.max() + 1 + np.arange(len(pseudo))])
    weights = np.ones(len(X))
    weights[n:] = PRIOR * X.shape[1] / len(pseudo)
    beta = np.zeros(X.shape[1])
    for _ in range(_STEPS):
        p = expit(X @ beta)
        information = (X * (weights * p * (1 - p))[:, None]).T @ X
        step = np.linalg.solve(information, X.T @ (weights * (y - p)))
        # A full step overshoots where a coefficient is on its way to infinity; halving keeps the likelihood in reach.
        beta = beta + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    p = expit(X @ beta)
    bread = np.linalg.inv((X * (weights * p * (1 - p))[:, None]).T @ X)
    sums = np.zeros((int(clusters.max()) + 1, len(beta)))
    np.add.at(sums, clusters, X * (weights * (y - p))[:, None])
    groups = np.unique(clusters).size
    meat = sums.T @ sums * groups / max(1, groups - len(beta))
    return beta, bread @ meat @ bread


@dataclass(frozen=True)
class Ranked(Measured):
    """A system.

    Attributes:
        system: its name.
        rank_published, rank: by win rate, published and corrected; 1 is best.
        ranks_published, ranks: lowest and highest rank of their confidence sets.
        numbers: win rates as published, averaged over orders, and corrected.
    """

    system: str
    rank_published: int
    rank: int
    ranks_published: Ranks
    ranks: Ranks
    numbers: Numbers


@dataclass(frozen=True)
class Match(Measured):
    """Two systems, and the difference of their strengths before and after correction.

    Attributes:
        higher, lower: names of the systems, the one with the higher corrected strength first.
    """

    higher: str
    lower: str
    numbers: Numbers

    @property
    def differ(self) -> bool:
        """Whether the corrected difference is shown."""
        return self["after"].excludes(0.0)

    @property
    def published(self) -> Shown:
        """What the order of the file alone says of the two."""
        turned = self["before"].value < 0
        names = (self.lower, self.higher) if turned else (self.higher, self.lower)
        return Shown(*names, self["before"].excludes(0.0))

    @property
    def change(self) -> str:
        """What correction does to what may be said of the two; empty where nothing."""
        before = self.published
        if before.differ and before.higher != self.higher:
            return "turned round" if self.differ else "no longer shown"
        return "" if before.differ == self.differ else "now shown" if self.differ else "no longer shown"


class Shown(NamedTuple):
    """Two systems, and whether their difference is shown."""

    higher: str
    lower: str
    differ: bool


@metric("systems.published", "win rate as published", "in the order of the file; a tie is half a win", unit="share",
        short="published")  # fmt: skip
@metric("systems.averaged", "win rate over both orders", "mean over both orders", unit="share", short="averaged")
@metric("systems.corrected", "corrected win rate", "of a judge with no preference for a place or a length, against the "
        "same opponents", unit="share", source="Rao and Kupper 1967", short="corrected")  # fmt: skip
@metric("matches.before", "difference before", "of strengths, by the file's order alone; the intervals of all pairs "
        "of systems hold together", signed=True, unit="nats", short="before")  # fmt: skip
@metric("matches.after", "difference after", "the same without preferences for a place or a length", signed=True,
        unit="nats", short="after")  # fmt: skip
def ranking(v: Verdicts) -> tuple[tuple[Ranked, ...], tuple[Match, ...]]:
    """Systems by corrected win rate, best first, and every two of them; empty without two systems or more."""
    every = np.ones(len(v.pair), bool)
    listed = ~v.swapped if (v.placed & ~v.swapped).any() else every
    before, after = fitted(v, habits=False, pages=listed), fitted(v)
    if not v.systems or before is None or after is None:
        return (), ()
    met, matches = _met(v), _matches(v.systems, before, after)
    rates = [
        Numbers({"systems.published": _rate(v, s, listed), "systems.averaged": _rate(v, s, every),
                 "systems.corrected": _win_rate(after, v.systems, s, met[s])})
        for s in range(len(v.systems))
    ]  # fmt: skip
    ranks = [ranks_of([one[key] for one in rates]) for key in ("published", "corrected")]
    sets = [rank_sets(v.systems, found) for found in ([one.published for one in matches], matches)]
    rows = [
        Ranked(name, ranks[0][s] or 0, ranks[1][s] or 0, sets[0][name], sets[1][name], rates[s])
        for s, name in enumerate(v.systems)
    ]
    return tuple(sorted(rows, key=lambda one: one.rank)), matches


def _met(v: Verdicts) -> Floats:
    """(S, S) pairs in which two systems met."""
    met = np.zeros((len(v.systems), len(v.systems)))
    both = (v.system >= 0).sum(axis=1) == 2
    for one, other in v.system[both][:, :2]:
        met[one, other] += 1
        met[other, one] += 1
    return met


def _rate(v: Verdicts, s: int, pages: Bools) -> Estimate:
    """Mean credit of a system's answers over pairs, those about one question together."""
    own = (v.system[v.pair] == s) & v.exists[v.pair]
    credit = np.where(own.any(axis=1), (np.nan_to_num(v.credit) * own).sum(axis=1), np.nan)
    return v.bootstrap.mean(v.per_pair(credit, pages & v.decided), note="no decision")


def _row(fit: Fit, systems: Sequence[str], s: int) -> Floats:
    return np.array([float(name == systems[s]) for name in fit.names])


def _win_rate(fit: Fit, systems: Sequence[str], s: int, met: Floats) -> Estimate:
    """Mean of P(win) + P(tie) / 2 over opponents, weighted by how often they met.

    Its interval is by the delta method on the log-odds scale, which keeps it between 0 and 1."""
    if not met.any():
        return Estimate.undefined("never met another system in a pair")
    tie = np.zeros(len(fit.names))
    for name, share in ((WIDTH, 1.0), (WIDTH_SWAPPED, 0.5)):  # the mean width of both orders
        if fit.has(name):
            tie[fit.names.index(name)] = share
    width = float(tie @ fit.coefficients)
    value, gradient = 0.0, np.zeros(len(fit.names))
    for o, weight in enumerate(met / met.sum()):
        if weight:
            apart = _row(fit, systems, s) - _row(fit, systems, o)
            eta = float(apart @ fit.coefficients)
            for sign in (-1, 1):
                p = float(expit(eta + sign * width))
                value += weight * p / 2
                gradient += weight * p * (1 - p) / 2 * (apart + sign * tie)
    logit = np.log(value / (1 - value))
    error = float(np.sqrt(gradient @ fit.covariance @ gradient)) / (value * (1 - value))
    half = float(stdtrit(fit.clusters - 1, 0.5 + CONFIDENCE / 2)) * error
    low, high = (float(expit(logit + sign * half)) for sign in (-1, 1))
    return Estimate(value, low, high, fit.pairs, "sandwich over questions, on the log-odds scale")


def _matches(systems: Sequence[str], before: Fit, after: Fit) -> tuple[Match, ...]:
    places = [(a, b) for a in range(len(systems)) for b in range(a)]
    found = []
    for fit in (before, after):
        apart = np.array([_row(fit, systems, a) - _row(fit, systems, b) for a, b in places])
        quantile = _joint_quantile(apart, fit)
        found.append([fit.combined(weights, quantile=quantile) for weights in apart])
    rows = []
    for (a, b), was, now in zip(places, *found, strict=True):
        if now.value < 0:
            a, b = b, a
            was, now = (replace(one, value=-one.value, low=-one.high, high=-one.low) for one in (was, now))
        rows.append(Match(systems[a], systems[b], Numbers({"matches.before": was, "matches.after": now})))
    return tuple(rows)


def _joint_quantile(apart: Floats, fit: Fit) -> float:
    """Quantile of the largest |t| of all differences: their intervals then hold together with 95 %."""
    errors = np.sqrt(np.einsum("dp,pq,dq->d", apart, fit.covariance, apart))
    rng, largest = np.random.default_rng(0), []
    for _ in range(_DRAWS // _AT_ONCE):  # of many systems there are thousands of differences
        draws = rng.multivariate_normal(np.zeros(len(fit.names)), fit.covariance, size=_AT_ONCE, method="svd")
        spread = np.sqrt((fit.clusters - 1) / rng.chisquare(fit.clusters - 1, size=_AT_ONCE))
        largest.append(np.abs(draws @ apart.T / errors).max(axis=1) * spread)
    return float(np.quantile(np.concatenate(largest), CONFIDENCE))
