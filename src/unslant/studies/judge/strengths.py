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
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, stdtrit

from unslant.arrays import Bools, Floats, Ints
from unslant.experiment.comparison import ranks_of
from unslant.experiment.ranking import Ranks, rank_sets
from unslant.metrics import Estimate, Measured, Numbers, metric
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.sampling import LEAST_UNITS, codes_of
from unslant.studies.judge.verdicts import Verdicts

PLACE, LENGTH, RIGHT, WIDTH, WIDTH_SWAPPED = "(place)", "(length)", "(right)", "(ties)", "(ties, swapped)"
"""Names of coefficients; no system has such a name."""
PRIOR = 1.0
"""Weight of the pseudo-verdict, half a win, that is added for every coefficient: the log-F(1, 1) prior of Greenland and
Mansournia (2015). It hardly matters next to a hundred verdicts; where a system wins every time, it gives an estimate
with a wide interval instead of infinity. The pseudo-opponent has strength 0, which fixes the origin of the scale."""
_FEWEST = 20
"""Verdicts below which nothing is fitted."""
SEPARATED = np.log(100)
"""Log-odds of a place, or of twice the length, beyond which its standard error is that of a score test. Wald's grows
faster than the coefficient as verdicts approach a rule (Hauck and Donner 1977): of a judge that always prefers the
longer answer, it would say that this could be chance."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients (P,) by name, their covariance (P, P), and the number of clusters and pairs that they rest on.

    Attributes:
        names: of the S systems that are compared, then of the other coefficients.
        met: (S, S) pairs in which two systems met.
    """

    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats
    clusters: int
    pairs: int
    met: Floats

    def estimate(self, weights: Floats, quantile: float | None = None) -> Estimate:
        """A weighted sum of the coefficients, in log-odds."""
        value = float(weights @ self.coefficients)
        half = (quantile or self.quantile()) * float(np.sqrt(weights @ self.covariance @ weights))
        return Estimate(value, value - half, value + half, self.pairs, "sandwich over questions")

    def weights(self, name: str) -> Floats:
        """(P,) 1 for the coefficient of this name."""
        return np.array([float(one == name) for one in self.names])

    def quantile(self) -> float:
        """Quantile of Student's t for a single interval."""
        return float(stdtrit(self.clusters - 1, 0.5 + CONFIDENCE / 2))


@cache
def _joint_quantile(systems: int, degrees: int) -> float:
    """Quantile at which the intervals of all pairwise differences hold simultaneously (Tukey and Kramer)."""
    from scipy.stats import studentized_range  # slow to import

    return float(studentized_range.ppf(CONFIDENCE, systems, degrees)) / 2**0.5


def fitted(v: Verdicts, systems: Sequence[str] = (), *, habits: bool = True, pages: Bools | None = None) -> Fit | None:
    """The model of the verdicts on pairs; None where there are too few, or they cannot separate its coefficients.

    Args:
        systems: whose strengths are estimated, on the verdicts between two of them; without any, the pull of being
            right is estimated instead.
        habits: include place and length.
        pages: (R,) the verdicts to use, by default all.
    """
    rows = v.decided & (v.exists[v.pair].sum(axis=1) == 2) & (True if pages is None else pages)
    if systems:
        rows &= (np.isin(v.system, [v.systems.index(name) for name in systems]).sum(axis=1) == 2)[v.pair]
    pair, first, second = v.pair[rows], v.order[rows, 0], v.order[rows, 1]
    # Where nearly every winner follows the place, nothing is left to estimate strengths from.
    places_decide = v.in_orders.sum() >= LEAST_UNITS > (v.in_orders & ~v.follows).sum()
    if len(pair) < _FEWEST or places_decide:
        return None

    def apart(values: Floats | Bools) -> Floats:
        """(R,) the value of the answer shown first minus that of the second."""
        return np.asarray(values[pair, first].astype(float) - values[pair, second])

    columns = {name: apart(v.system == v.systems.index(name)) for name in systems}
    if not systems:
        columns[RIGHT] = apart(v.right)
    if habits:
        columns |= {PLACE: v.placed[rows].astype(float), LENGTH: np.nan_to_num(apart(v.doublings))}
    names = [name for name, column in columns.items() if name in systems or column.any()]
    clusters = np.unique(codes_of(v.stems)[pair], return_inverse=True)[1]
    n = int(clusters.max()) + 1
    score = v.credit[rows, first]
    # Ties say nothing about strengths, place or length: a judge that only ties would seem to have none for certain.
    clear = np.unique(clusters[score != 0.5]).size
    # The strength of a system that always comes first cannot be separated from the place, and systems that never meet,
    # even through others, cannot be compared.
    X = np.stack([columns[name] for name in names], axis=1) if names else np.zeros((len(pair), 0))
    if not names or clear < len(names) + LEAST_UNITS or np.linalg.matrix_rank(X) < len(names) - bool(systems):
        return None
    y = (score == 1).astype(float)
    if (score == 0.5).any():
        swapped = v.swapped[rows].astype(float)
        widths = [np.ones(len(pair)), *([swapped] if habits and 0 < swapped.sum() < len(pair) else [])]
        names += [WIDTH, WIDTH_SWAPPED][: len(widths)]
        wide = np.stack(widths, axis=1)
        X, clusters = np.block([[X, -wide], [X, wide]]), np.concatenate([clusters, clusters])
        y = np.concatenate([score == 1, score >= 0.5]).astype(float)
    met = np.zeros((len(systems), len(systems)))
    used = np.unique(pair)
    if systems:
        two = np.searchsorted([v.systems.index(name) for name in systems], v.system[used][:, :2])
        np.add.at(met, (two[:, 0], two[:, 1]), 1)
    habitual = [names.index(name) for name in (PLACE, LENGTH) if name in names]
    return Fit(tuple(names), *_regression(X, y, clusters, habitual), n, len(used), met + met.T)


def _regression(X: Floats, y: Floats, clusters: Ints, habitual: Sequence[int] = ()) -> tuple[Floats, Floats]:
    """Logistic regression and its sandwich covariance; see :data:`PRIOR`, and for the columns of habits,
    :data:`SEPARATED`."""
    given, (n, parameters) = (X, y, clusters), X.shape
    weights = np.concatenate([np.ones(n), np.full(parameters, PRIOR)])
    clusters = np.concatenate([clusters, clusters.max() + 1 + np.arange(parameters)])
    X, y = np.concatenate([X, np.eye(parameters)]), np.concatenate([y, np.full(parameters, 0.5)])

    def loss(beta: Floats) -> tuple[float, Floats]:
        eta = X @ beta
        return float(weights @ (np.logaddexp(0, eta) - y * eta)), X.T @ (weights * (expit(eta) - y))

    def information(beta: Floats) -> Floats:
        p = expit(X @ beta)
        return np.asarray((X * (weights * p * (1 - p))[:, None]).T @ X)

    def scores(beta: Floats) -> Floats:
        sums = np.zeros((int(clusters.max()) + 1, parameters))
        np.add.at(sums, clusters, X * (weights * (y - expit(X @ beta)))[:, None])
        return sums

    beta = minimize(
        loss, np.zeros(parameters), jac=True, hess=information, method="trust-exact", options={"gtol": 1e-8}
    ).x
    sums, groups, bread = scores(beta), np.unique(clusters).size, np.linalg.inv(information(beta))
    covariance = bread @ (sums.T @ sums * groups / max(1, groups - len(beta))) @ bread
    for j in (j for j in habitual if abs(beta[j]) > SEPARATED):
        without = np.insert(_regression(np.delete(given[0], j, 1), *given[1:])[0], j, 0.0)
        efficient = scores(without) @ np.linalg.inv(information(without))[j]
        scale = np.ones(parameters)
        scale[j] = abs(beta[j] / efficient.sum()) * np.sqrt((efficient**2).sum() / covariance[j, j])
        covariance = covariance * np.outer(scale, scale)
    return beta, covariance


def win_rates(fit: Fit) -> dict[str, Estimate]:
    """System -> mean of P(win) + P(tie) / 2 over opponents, weighted by how often they met, without habits.

    Intervals are by the delta method on the log-odds scale, which keeps them between 0 and 1.
    """
    mean_width = {WIDTH: 1.0, WIDTH_SWAPPED: 0.5}  # of both orders
    tie = np.array([mean_width.get(name, 0.0) for name in fit.names])
    rates = {}
    strengths = np.eye(len(fit.met), len(fit.names))
    for system, strength, met in zip(fit.names, strengths, fit.met, strict=False):
        shares, apart = met / met.sum(), strength - strengths
        value, gradient = 0.0, np.zeros(len(tie))
        for lean in (apart - tie, apart + tie):
            p = expit(lean @ fit.coefficients)
            value += float(shares @ p) / 2
            gradient += (shares * p * (1 - p)) @ lean / 2
        error = float(np.sqrt(gradient @ fit.covariance @ gradient)) / (value * (1 - value))
        logit, half = np.log(value / (1 - value)), fit.quantile() * error
        method = "sandwich over questions, on the log-odds scale"
        rates[system] = Estimate(value, float(expit(logit - half)), float(expit(logit + half)), fit.pairs, method)
    return rates


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
        change: how correction changes what can be claimed about the two; empty if it does not.
    """

    higher: str
    lower: str
    change: str
    numbers: Numbers


def _change(before: tuple[str, str] | None, after: tuple[str, str] | None) -> str:
    """What correction changes of the system shown to be higher than another; None: the difference is not shown."""
    if before and after:
        return "turned round" if before != after else ""
    return "now shown" if after else "no longer shown" if before else ""


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
    """Systems by corrected win rate, best first, and every two of them; empty where they cannot be compared.

    Systems without a verdict against another in the order of the file are left out.
    """
    every = np.ones(len(v.pair), bool)
    listed = ~v.swapped if (v.placed & ~v.swapped).any() else every
    compared = v.decided & listed & ((v.system >= 0).sum(axis=1) == 2)[v.pair] & (v.exists[v.pair].sum(axis=1) == 2)
    systems = [v.systems[s] for s in np.unique(v.system[v.pair[compared]][:, :2])]
    if not systems:
        return (), ()
    before, after = fitted(v, systems, habits=False, pages=listed), fitted(v, systems)
    if before is None or after is None:
        return (), ()
    corrected, matches, decided = win_rates(after), [], []
    fits = [(fit, _joint_quantile(len(systems), fit.clusters - 1)) for fit in (before, after)]
    for a, b in zip(*np.tril_indices(len(systems), -1), strict=True):
        two = [fit.estimate(fit.weights(systems[a]) - fit.weights(systems[b]), q) for fit, q in fits]
        orders = [(systems[b], systems[a]) if one.value < 0 else (systems[a], systems[b]) for one in two]
        was, now = (order if one.excludes(0.0) else None for order, one in zip(orders, two, strict=True))
        if two[1].value < 0:
            two = [one.taken_from(0.0) for one in two]
        numbers = Numbers({"matches.before": two[0], "matches.after": two[1]})
        matches.append(Match(*orders[1], _change(was, now), numbers))
        decided.append((was, now))
    rates = [
        Numbers({"systems.published": _rate(v, name, listed), "systems.averaged": _rate(v, name, every),
                 "systems.corrected": corrected[name]})
        for name in systems
    ]  # fmt: skip
    ranks = [ranks_of([one[key] for one in rates]) for key in ("published", "corrected")]
    sets = [rank_sets(systems, filter(None, [one[k] for one in decided])) for k in range(2)]
    rows = [
        Ranked(name, ranks[0][s] or 0, ranks[1][s] or 0, sets[0][name], sets[1][name], rates[s])
        for s, name in enumerate(systems)
    ]
    return tuple(sorted(rows, key=lambda one: one.rank)), tuple(matches)


def _rate(v: Verdicts, system: str, pages: Bools) -> Estimate:
    """Mean credit of a system's answers over pairs, those about one question together."""
    answers = (v.system[v.pair] == v.systems.index(system)) & v.exists[v.pair]
    credit = np.where(answers.any(axis=1), (np.nan_to_num(v.credit) * answers).sum(axis=1), np.nan)
    return v.bootstrap.mean(v.per_pair(credit, pages & v.decided), note="no decision")
