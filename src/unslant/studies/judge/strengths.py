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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtrit

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics import Estimate, metric
from unslant.metrics.estimate import CONFIDENCE
from unslant.studies.judge.verdicts import Verdicts

PLACE, LENGTH, RIGHT, WIDTH, WIDTH_SWAPPED = "place", "length", "right", "tie width", "tie width, swapped"
PENALTY = 0.01
"""Precision of a normal prior on every coefficient (standard deviation 10): nothing next to a hundred verdicts, and an
estimate where a system wins every time."""
_STEPS = 100
_FEWEST = 20
"""Verdicts a coefficient below which nothing is fitted."""
_DRAWS = 20_000


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
    """The model of the verdicts on pairs; None where there are too few, or nothing to fit.

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
    X = np.stack(list(columns.values()) or [np.zeros(len(pair))], axis=1)
    names = list(columns) or [PLACE]
    clusters = np.unique(np.array(v.stems)[pair], return_inverse=True)[1]
    if (score == 0.5).any():
        swapped = v.swapped[kept].astype(float)
        widths = [np.ones(len(pair)), *([swapped] if habits and 0 < swapped.sum() < len(pair) else [])]
        names += [WIDTH, WIDTH_SWAPPED][: len(widths)]
        wide = np.stack(widths, axis=1)
        X = np.block([[X, -wide], [X, wide]])
        y, clusters = np.concatenate([score == 1, score >= 0.5]).astype(float), np.concatenate([clusters, clusters])
    else:
        y = score
    used = np.ptp(X, axis=0) > 1e-9
    used |= np.array([name in (PLACE, WIDTH) and bool(X[:, k].any()) for k, name in enumerate(names)])
    used[: len(columns)] &= np.abs(X[:, : len(columns)]).max(axis=0) > 1e-9
    X, kept_names = X[:, used], tuple(name for name, one in zip(names, used, strict=True) if one)
    if not kept_names or len(pair) < _FEWEST * min(2, len(kept_names)) or np.unique(clusters).size < len(kept_names) + 2:
        return None
    coefficients, covariance = _regression(X, y, clusters)
    return Fit(kept_names, coefficients, covariance, int(np.unique(clusters).size), int(np.unique(pair).size))


def _regression(X: Floats, y: Floats, clusters: Ints) -> tuple[Floats, Floats]:
    """Logistic regression by Newton's method, and its sandwich covariance."""
    beta = np.zeros(X.shape[1])
    ridge = PENALTY * np.eye(len(beta))
    for _ in range(_STEPS):
        p = expit(X @ beta)
        information = (X * (p * (1 - p))[:, None]).T @ X + ridge
        step = np.linalg.solve(information, X.T @ (y - p) - PENALTY * beta)
        # A full step overshoots where a coefficient is on its way to infinity; halving keeps the likelihood in reach.
        beta = beta + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    p = expit(X @ beta)
    bread = np.linalg.inv((X * (p * (1 - p))[:, None]).T @ X + ridge)
    sums = np.zeros((int(clusters.max()) + 1, len(beta)))
    np.add.at(sums, clusters, X * (y - p)[:, None])
    groups = np.unique(clusters).size
    meat = sums.T @ sums * groups / max(1, groups - len(beta))
    return beta, bread @ meat @ bread


@dataclass(frozen=True)
class Ranked:
    """Systems by their corrected win rates.

    Attributes:
        published: mean credit in the order of the file, the rate that a run in one order prints.
        averaged: mean credit over orders.
        corrected: without the judge's preference for places and lengths, against the same opponents.
    """

    system: str
    published: Estimate
    averaged: Estimate
    corrected: Estimate
    rank_published: int
    rank: int
    ranks_published: tuple[int, int]
    ranks: tuple[int, int]


@dataclass(frozen=True)
class Match:
    """Two systems: the difference of their strengths in log-odds, all pairs together, before and after correction."""

    higher: str
    lower: str
    before: Estimate
    difference: Estimate

    @property
    def differ(self) -> bool:
        """Whether the corrected difference is shown."""
        return self.difference.excludes(0.0)

    @property
    def differed(self) -> bool:
        """Whether a run in the order of the file shows a difference, whichever way round."""
        return self.before.excludes(0.0)

    @property
    def change(self) -> str:
        """What correction does to what may be said of the two; empty where nothing."""
        turned = self.before.value < 0
        if self.differ and turned:
            return "turned round" if self.differed else "order changed, and now shown"
        if self.differed and not self.differ:
            return "no longer shown" + ", and turned" * turned
        return "now shown" if self.differ and not self.differed else ""


@metric("judge.published", "win rate as published", "mean credit in the order of the file; a tie is half a win",
        unit="share", short="published")  # fmt: skip
@metric("judge.averaged", "win rate over both orders", "mean credit over both orders", unit="share", short="averaged")
@metric("judge.corrected", "corrected win rate", "win rate of a judge with these strengths and no preference for a place "
        "or a length, against the same opponents", unit="share", source="Rao and Kupper 1967", short="corrected")  # fmt: skip
@metric("judge.before", "difference before", "difference of two strengths, from the order of the file alone, in log-odds; "
        "intervals of all pairs of systems hold together", signed=True, unit="nats", short="before")  # fmt: skip
@metric("judge.after", "difference after", "the same without the judge's preference for a place or a length", signed=True,
        unit="nats", short="after")  # fmt: skip
def ranking(v: Verdicts) -> tuple[tuple[Ranked, ...], tuple[Match, ...]]:
    """Systems by corrected win rate, best first, and every two of them; empty without two systems or more."""
    from unslant.experiment.ranking import rank_sets

    file_order = ~v.swapped if (v.placed & ~v.swapped).any() else np.ones(len(v.pair), bool)
    before, after = fitted(v, habits=False, pages=file_order), fitted(v)
    if not v.systems or before is None or after is None:
        return (), ()
    met = _met(v)
    rates = {name: _published(v, s, file_order) for s, name in enumerate(v.systems)}
    averaged = {name: _published(v, s, np.ones(len(v.pair), bool)) for s, name in enumerate(v.systems)}
    corrected = {name: _win_rate(after, v.systems, s, met[s]) for s, name in enumerate(v.systems)}
    matches = _matches(v.systems, before, after)
    sets = rank_sets(v.systems, matches)
    turned = [_Shown(*((m.lower, m.higher) if m.before.value < 0 else (m.higher, m.lower)), m.differed) for m in matches]
    published_sets = rank_sets(v.systems, turned)
    places, published_places = (_ranks({name: one.value for name, one in found.items()}) for found in (corrected, rates))
    rows = [
        Ranked(name, rates[name], averaged[name], corrected[name], published_places[name], places[name],
               published_sets[name], sets[name])
        for name in v.systems
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda one: one.rank)), matches


@dataclass(frozen=True)
class _Shown:
    higher: str
    lower: str
    differ: bool


def _ranks(values: Mapping[str, float]) -> dict[str, int]:
    return {name: 1 + sum(other > value for other in values.values()) for name, value in values.items()}


def _met(v: Verdicts) -> Floats:
    """(S, S) pairs in which two systems met."""
    met = np.zeros((len(v.systems), len(v.systems)))
    both = (v.system >= 0).sum(axis=1) == 2
    for one, other in v.system[both][:, :2]:
        met[one, other] += 1
        met[other, one] += 1
    return met


def _published(v: Verdicts, s: int, pages: Bools) -> Estimate:
    """Mean credit of a system's answers over pairs, those about one question together."""
    own = (v.system[v.pair] == s) & v.exists[v.pair]
    credit = np.where(own.any(axis=1), (np.nan_to_num(v.credit) * own).sum(axis=1), np.nan)
    return v.bootstrap.mean(v.per_pair(credit, pages & v.decided), note="no decision")


def _row(fit: Fit, systems: Sequence[str], s: int) -> Floats:
    return np.array([float(name == systems[s]) for name in fit.names])


def _win_rate(fit: Fit, systems: Sequence[str], s: int, met: Floats) -> Estimate:
    """Mean of P(win) + P(tie) / 2 over opponents, weighted by how often they met; its interval by the delta method on the
    log-odds scale, which keeps it between 0 and 1."""
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
            a, b, was, now = b, a, _negated(was), _negated(now)
        rows.append(Match(systems[a], systems[b], was, now))
    return tuple(rows)


def _negated(one: Estimate) -> Estimate:
    return Estimate(-one.value, -one.high, -one.low, one.n, one.method, one.confidence, one.note)


def _joint_quantile(apart: Floats, fit: Fit) -> float:
    """Quantile of the largest |t| of all differences: their intervals then hold together with 95 %."""
    spread = apart @ fit.covariance @ apart.T
    errors = np.sqrt(np.diag(spread))
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(np.zeros(len(errors)), spread, size=_DRAWS, method="svd") / errors
    draws *= np.sqrt((fit.clusters - 1) / rng.chisquare(fit.clusters - 1, size=(_DRAWS, 1)))
    return float(np.quantile(np.abs(draws).max(axis=1), CONFIDENCE))
