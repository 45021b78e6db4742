"""Where the variance of a score comes from: a generalisability study of right and wrong answers.

Each answer is right or wrong on one *page*: a question with its options in one order under one set of labels. The model
is that of generalisability theory (Brennan 2001, "Generalizability Theory", ch. 3 to 5):

    right = mean + question + position + label + order
                 + question x position + question x label + question x order + repeat

Questions are random. Positions and labels (of the right option) and orders (of the options in the file) are fixed
facets: all their levels were shown. A facet appears only where the pages vary it and can separate it from the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unslant.arrays import Bools, Floats, Ints, Jsonable
from unslant.metrics.bootstrap import UNBOUNDED, Bootstrap
from unslant.metrics.decision_study import ORDER, PAGE, PLACE, QUESTION, REPEAT, between_questions
from unslant.metrics.estimate import Estimate, normal_quantile
from unslant.metrics.registry import Numbers, metric

NAMES = {
    QUESTION: "question",
    "position": "position",
    "label": "label",
    PLACE: "label or position",
    ORDER: "order",
    "question_position": "question × position",
    "question_label": "question × label",
    f"question_{PLACE}": "question × label or position",
    PAGE: "question × order",
    REPEAT: "repeat",
}
"""Component -> display name."""
_ZERO = 1e-12


@dataclass(frozen=True)
class Pages:
    """M answers, one a row.

    Attributes:
        right: (M,) 1 where the answer is right, 0 where it is not, or any other score.
        question: (M,) number of the question, 0 to Q - 1.
        page: (M,) number of the page of its question; two rows with the same question and page are repeats.
        facets: name of a fixed facet -> (M,) its level: ``position``, ``label`` (or ``place``), ``order``, ``shots``.
        group: (M,) number of the group of questions that share levels, such as those with as many options.
        scored: (M,) whether the page is one of those that the score averages over; others only help to separate facets.
    """

    right: Floats
    question: Ints
    page: Ints
    facets: Mapping[str, Ints]
    group: Ints
    scored: Bools


@dataclass(frozen=True)
class VarianceComponents(Jsonable):
    """What the variance of an answer and of the score consists of.

    Attributes:
        components: facet -> its variance, and its share of the variance of one answer and of the score.
        accuracy: mean over the orders asked.
        between: variance between questions of their means over the orders asked.
        design_effect: the score's variance over that of as many questions drawn independently: above 1 where questions
            share passages, below 1 where subjects differ.
        questions: questions looked at.
        positions, orders, repeats: number a question, as the harmonic mean over questions.
        inseparable: facets left out because no page separates them from the others.
    """

    components: Mapping[str, Numbers]
    accuracy: float
    between: Estimate
    design_effect: float
    questions: int
    positions: float
    orders: float
    repeats: float
    inseparable: tuple[str, ...] = ()

    def variances(self) -> dict[str, float]:
        """Component -> its variance."""
        return {name: numbers["variance"].value for name, numbers in self.components.items()}


@metric("components.variance", "variance", "of an answer (right 1, wrong 0)", digits=4, source="Brennan 2001, ch. 3")
@metric("components.of_answer", "of one answer", "share of the variance of one answer", unit="share", plain=True)
@metric(
    "components.of_score", "of the score", "share of the variance of the mean over orders", unit="share", plain=True
)
@metric("between", "variance between questions", "of their means over the orders asked", digits=4)
def variance_components(pages: Pages, bootstrap: Bootstrap) -> VarianceComponents:
    """Variance components of answers, with intervals over questions.

    Fixed facets: least squares within questions. The component is sum((effect - mean)^2) / (levels - 1), as in the
    expected mean squares of Cornfield and Tukey (1956), less what sampling questions adds to it; where groups have
    different levels, the mean over groups, by questions. Questions and their interactions: the analogous-ANOVA
    procedure for unbalanced designs (Henderson's method 1; Brennan 2001, sec. 7.1) on what the fixed effects leave. For
    each term t,

        T_t = sum over its cells c of n_c mean_c^2,    E T_t = M mean^2 + sum over terms u of k_tu variance_u,
        k_tu = sum over cells c of t of (1 / n_c) sum over cells d of u of n_cd^2,

    which is solved for the variances. Estimates are unbiased, so that one near 0 may come out below; it counts as 0.
    Intervals are Student's, from the influence of each question on the estimate (the infinitesimal jackknife).

    Args:
        pages: the answers, of Q questions.
        bootstrap: over these Q questions.

    Returns:
        Without components where every question was answered once, or all answers are the same.
    """
    question, n = pages.question, bootstrap.n_questions
    page = codes(question, pages.page)
    rows = np.arange(len(page))
    if len(page) == n or np.ptp(pages.right) == 0:
        fixed, random = _Fixed({}, np.zeros(0), np.zeros((n, 0)), np.zeros(0), ()), dict[str, tuple[float, Floats]]()
    else:
        fixed = _fixed(pages, bootstrap)
        terms = {QUESTION: question}
        terms |= {f"question_{name}": codes(question, pages.facets[name]) for name in fixed.levels if name != ORDER}
        terms |= {PAGE: page, REPEAT: rows} if len(np.unique(page)) < len(page) else {PAGE: rows}
        random = _random(pages.right - fixed.values, question, terms, n)
    names = sorted({*fixed.levels, *random}, key=[*NAMES, *fixed.levels, *random].index)
    estimates = {
        name: _estimate(*random[name], bootstrap) if name in random else fixed.estimate(name, bootstrap)
        for name in names
    }
    variances = {name: estimate.value for name, estimate in estimates.items()}
    at = question[pages.scored]
    means = np.bincount(at, pages.right[pages.scored], n) / np.bincount(at, minlength=n)
    orders = _harmonic(at, page[pages.scored])
    place = next((pages.facets[name] for name in (PLACE, "position") if name in pages.facets), page)
    positions = min(orders, _harmonic(at, codes(question, place)[pages.scored]))
    parts = between_questions(variances, positions, orders)
    mean, between = float(means.mean()), float(means.var(ddof=1))
    sampled = float(bootstrap.sampling.variance((means - mean) / n))
    return VarianceComponents(
        {
            name: Numbers(
                {
                    "components.variance": estimates[name],
                    "components.of_answer": _share(variances, name),
                    "components.of_score": _share(parts, name),
                }
            )
            for name in names
        },
        mean,
        _estimate(between, (means - mean) ** 2 - between, bootstrap),
        sampled * n / between if between > _ZERO and sampled == sampled else 1.0,
        n,
        positions,
        orders,
        len(page) / len(np.unique(page)),
        fixed.inseparable,
    )


def _share(parts: Mapping[str, float], name: str) -> float:
    total = sum(parts.values())
    return parts[name] / total if total > 0 else math.nan


def _estimate(value: float, influence: Floats, bootstrap: Bootstrap, error: float = 0.0) -> Estimate:
    """A variance, cut at 0, from what each question adds to it.

    Args:
        influence: (Q,) with mean 0.
        error: standard error that no single question causes.
    """
    found = bootstrap.mean(value + influence - influence.mean(), bounds=UNBOUNDED)
    if found.low != found.low or found.high <= 0:
        return Estimate.bare(max(0.0, value), found.n, found.note or "estimated below 0: no interval")
    half = math.hypot(found.high - value, normal_quantile(found.confidence) * error)
    low, high = max(0.0, value - half), value + half
    return Estimate(max(0.0, value), low, max(high, max(0.0, value)), found.n, found.method, found.confidence)


@dataclass(frozen=True)
class _Fixed:
    """Least-squares effects of fixed facets.

    Attributes:
        levels: facet -> columns of the levels that each group of questions has, and the group's share of the questions.
        effects: (D,) effect of each level; a facet's are defined up to a constant.
        influence: (Q, D) of each question on them, times Q.
        values: (M,) sum of the effects of each row, each less its mean over the levels of the group.
        inseparable: facets left out.
    """

    levels: Mapping[str, Sequence[tuple[Ints, float]]]
    effects: Floats
    influence: Floats
    values: Floats
    inseparable: tuple[str, ...]

    def estimate(self, name: str, bootstrap: Bootstrap) -> Estimate:
        """The variance component of a facet."""
        n = len(self.influence)
        value, noise, influence = 0.0, 0.0, np.zeros(n)
        for columns, weight in self.levels[name]:
            effects, own = self.effects[columns] - self.effects[columns].mean(), self.influence[:, columns]
            own = own - own.mean(axis=1, keepdims=True)
            each, covariance = weight / (len(columns) - 1), own.T @ own / n / (n - 1)
            value += each * float((effects**2).sum() - np.trace(covariance))
            noise += 2 * each**2 * float((covariance**2).sum())
            influence += 2 * each * own @ effects
        return _estimate(value, influence, bootstrap, math.sqrt(noise))


def _fixed(pages: Pages, bootstrap: Bootstrap) -> _Fixed:
    """Effects of all facets that can be separated; the last ones are left out first."""
    n = bootstrap.n_questions
    facets = {
        name: codes(levels)
        for name, levels in pages.facets.items()
        if int(codes(pages.question, levels).max()) + 1 > n  # otherwise it does not vary within any question
    }
    lost: list[str] = []
    while (fitted := _least_squares(pages, facets, n)) is None:
        lost.append(facets.popitem()[0])
    return _Fixed(*fitted, tuple(lost))


def _least_squares(
    pages: Pages, facets: Mapping[str, Ints], n: int
) -> tuple[Mapping[str, Sequence[tuple[Ints, float]]], Floats, Floats, Floats] | None:
    """Levels, effects, influence and fitted values; None where facets cannot be separated.

    Groups share the effects of a level, so that few questions with as many options are no obstacle.
    """
    question = pages.question
    starts = np.cumsum([0, *(int(own.max()) + 1 for own in facets.values())])
    width = int(starts[-1])
    columns = [own + start for own, start in zip(facets.values(), starts[:-1], strict=True)]
    counts = np.bincount(question, minlength=n)
    centred = pages.right - (np.bincount(question, pages.right, n) / counts)[question]
    values = np.zeros(len(question))
    if not columns:
        return {}, np.zeros(0), np.zeros((n, 0)), values

    def by_question(values: Floats | None = None) -> Floats:
        """(Q, D) sum of the values in each level."""
        found = np.zeros((n, width))
        for own in columns:
            found += np.bincount(question * width + own, values, n * width).reshape(n, width)
        return found

    shown, products = by_question(), np.zeros((width, width))
    for one in columns:
        for other in columns:
            products += np.bincount(one * width + other, minlength=width**2).reshape(width, width)
    products -= shown.T @ (shown / counts[:, None])
    ends = list(pairwise(starts.tolist()))
    if _rank(products) < sum(_rank(products[i:j, i:j]) for i, j in ends):
        return None
    inverse = np.linalg.pinv(products, rcond=_SINGULAR, hermitian=True)
    effects = inverse @ by_question(centred).sum(axis=0)
    groups = [
        (pages.group == group, len(np.unique(question[pages.group == group]))) for group in np.unique(pages.group)
    ]
    levels: dict[str, list[tuple[Ints, float]]] = {}
    for name, own in zip(facets, columns, strict=True):
        found = [(rows, np.unique(own[rows]), size) for rows, size in groups]
        whole = sum(size for _, some, size in found if len(some) > 1)
        levels[name] = [(some, size / whole) for _, some, size in found if len(some) > 1]
        for rows, some, _ in found:
            values[rows] += effects[own[rows]] - effects[some].mean()
    left = centred - values + (np.bincount(question, values, n) / counts)[question]
    return levels, effects, n * by_question(left) @ inverse, values


_SINGULAR = 1e-8


def _rank(products: Floats) -> int:
    return int(np.linalg.matrix_rank(products, tol=_SINGULAR * float(np.abs(products).max()), hermitian=True))


def _random(values: Floats, question: Ints, terms: Mapping[str, Ints], n: int) -> dict[str, tuple[float, Floats]]:
    """Term -> its variance and (Q,) the influence of each question on it, times Q.

    Terms that have the same cells as a later one, or that the others determine, are left out.

    Args:
        terms: name -> (M,) its cell; all are within questions.
    """
    chosen = dict(terms)
    sizes = {name: len(np.unique(cells)) for name, cells in terms.items()}
    for name in list(chosen)[1:-1]:
        if sizes[name] in (n, len(values)):
            del chosen[name]
    mean = float(values.mean())
    rows, total = len(values), np.bincount(question, minlength=n)
    counts = {name: np.bincount(cells)[cells] for name, cells in chosen.items()}
    while True:
        squares, weights = np.zeros((len(chosen), n)), np.zeros((len(chosen), len(chosen), n))
        for i, (name, own) in enumerate(chosen.items()):
            squares[i] = np.bincount(question, np.bincount(own, values)[own] / counts[name] * values, n)
            for j, (other, cells) in list(enumerate(chosen.items()))[i:]:
                code = own * (int(cells.max()) + 1) + cells
                _, place, together = np.unique(code, return_inverse=True, return_counts=True)
                weights[i, j] = np.bincount(question, together[place] / counts[name], n)
                weights[j, i] = np.bincount(question, together[place] / counts[other], n)
        # the row of the mean: all M answers as one cell
        size = np.stack([np.bincount(question, counts[name], n) for name in chosen])
        whole = size.sum(axis=1)
        matrix = weights.sum(axis=2) - whole / rows
        scaled = matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
        if len(chosen) == 2 or np.linalg.cond(scaled) < _MOST_CONDITION:
            break
        del chosen[list(chosen)[-2]]
    solved = np.linalg.solve(matrix, squares.sum(axis=1) - rows * mean**2)
    of_mean = 2 * mean * np.bincount(question, values, n) - mean**2 * total
    of_whole = size / rows - whole[:, None] * total / rows**2
    change = squares - of_mean - np.einsum("ijq,j->iq", weights - of_whole, solved)
    influence = n * np.linalg.solve(matrix, change)
    return {name: (float(solved[i]), influence[i]) for i, name in enumerate(chosen)}


_MOST_CONDITION = 1e4


def codes(*columns: Ints) -> Ints:
    """(M,) number of each combination of columns, from 0."""
    code = columns[0].astype(np.int64)
    for column in columns[1:]:
        code = code * (int(column.max(initial=0)) + 1) + column
    return np.asarray(np.unique(code, return_inverse=True)[1], np.int64)


def _harmonic(question: Ints, cells: Ints) -> float:
    """Harmonic mean over questions of the number of their cells."""
    numbers = np.bincount(np.unique(np.stack([question, cells]), axis=1)[0])
    return float(1 / (1 / numbers[numbers > 0]).mean())
