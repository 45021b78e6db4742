"""Where the variance of a score comes from: a generalisability study of right and wrong answers.

Each answer is right or wrong on one *page*: a question with its options in one order under one set of labels. The model
is that of generalisability theory (Brennan 2001, "Generalizability Theory", ch. 3 to 5):

    right = mean + question + position + label + order
                 + question x position + question x label + question x order + repeat

Questions are random. Positions and labels (of the right option) and orders (of the options in the file) are fixed
facets: all their levels are on some page. A facet appears only where pages vary it and separate it from the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from unslant.arrays import Floats, Ints, Jsonable
from unslant.metrics.accuracy import expected_accuracy
from unslant.metrics.bootstrap import SAME, UNBOUNDED, Bootstrap, student_quantile
from unslant.metrics.decision_study import ORDER, PAGE, PLACE, QUESTION, REPEAT, between_questions
from unslant.metrics.estimate import CONFIDENCE, Estimate, normal_quantile
from unslant.metrics.pages import Pages, Repeat, codes, pages_of
from unslant.metrics.registry import Numbers, metric
from unslant.metrics.sampling import by_unit
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import whole_part

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


@dataclass(frozen=True)
class VarianceComponents(Jsonable):
    """What the variance of an answer and of the score consists of.

    Attributes:
        components: facet -> its variance, and its share of the variance of one answer and of the score.
        accuracy: mean over the orders of the audit.
        between: variance between questions of their means over these orders.
        design_effect: see :meth:`~unslant.metrics.sampling.Sampling.design_effect`.
        questions: number of questions; in two phases all of them, though components are of the part in all orders.
        positions, orders, repeats: number a question, as the harmonic mean over questions.
        inseparable: facets left out because no page separates them from the others, or their effects fit every answer.
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


@metric("components.variance", "variance", "of an answer (right 1, wrong 0)", digits=4, source="Brennan 2001, ch. 3")
@metric("components.of_answer", "of one answer", "share of the variance of one answer", unit="share", plain=True)
@metric("components.of_score", "of the score", "share of the variance of the mean over orders", unit="share",
        plain=True)  # fmt: skip
@metric("between", "variance between questions", "of their means over the orders asked", digits=4)
def variance_components(pages: Pages, bootstrap: Bootstrap) -> VarianceComponents:
    """Variance components of answers, with intervals over questions.

    Fixed facets: least squares within questions. The component is sum((effect - mean)^2) / (levels - 1), as in the
    expected mean squares of Cornfield and Tukey (1956), minus what sampling questions adds to it; where groups have
    different levels, the mean over groups, by questions. Questions and their interactions: the analogous-ANOVA
    procedure for unbalanced designs (Henderson's method 1; Brennan 2001, sec. 7.1) on what the fixed effects leave. For
    each term t,

        T_t = sum over its cells c of n_c mean_c^2,    E T_t = M mean^2 + sum over terms u of k_tu variance_u,
        k_tu = sum over cells c of t of (1 / n_c) sum over cells d of u of n_cd^2,

    which is solved for the variances. Estimates are unbiased, so that one near 0 may come out below; it counts as 0.
    Intervals are Student's, from the influence of each question on the estimate (the infinitesimal jackknife); the
    upper ends are those of the logarithm.

    Args:
        pages: the answers, of Q questions.
        bootstrap: over these Q questions.

    Returns:
        Without components where every question was answered once, or all answers are the same.
    """
    question, n = pages.question, bootstrap.n_questions
    page = codes(question, pages.page)
    rows, random = np.arange(len(page)), dict[str, tuple[float, Floats]]()
    varied = len(page) > n and np.ptp(pages.right) > 0
    fixed = _fixed(pages, n, pages.facets if varied else {})
    if varied:
        terms = {QUESTION: question}
        terms |= {f"question_{name}": codes(question, pages.facets[name]) for name in fixed.levels if name != ORDER}
        terms |= {PAGE: page, REPEAT: rows} if len(np.unique(page)) < len(page) else {PAGE: rows}
        random = _random(pages.right, question, terms, n, fixed)
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
    keys = ("components.variance", "components.of_answer", "components.of_score")
    columns: list[Mapping[str, Estimate | float]] = [estimates, _shares(variances), _shares(parts)]
    return VarianceComponents(
        {name: Numbers({key: column[name] for key, column in zip(keys, columns, strict=True)}) for name in names},
        *_of_means(means, bootstrap),
        n,
        positions,
        orders,
        len(page) / len(np.unique(page)),
        fixed.inseparable,
    )


def _of_means(means: Floats, bootstrap: Bootstrap) -> tuple[float, Estimate, float]:
    """Mean, variance between questions, and design effect of (Q,) means over orders."""
    mean, between = float(means.mean()), float(means.var(ddof=1))
    effect = bootstrap.sampling.design_effect(means)
    return mean, _estimate(between, (means - mean) ** 2 - between, bootstrap), effect


def _shares(parts: Mapping[str, float]) -> dict[str, float]:
    total = sum(parts.values())
    return {name: part / total if total > 0 else math.nan for name, part in parts.items()}


def _estimate(value: float, influence: Floats, bootstrap: Bootstrap, half: float | None = None) -> Estimate:
    """A variance, cut at 0, from the (Q,) influence of each question, and a half-width that no question causes."""
    mean, size = bootstrap.mean(value + influence - influence.mean(), bounds=UNBOUNDED), bootstrap.sampling.units()
    if half is None:
        # of answers that are half right the influences vanish; the second term of the variance's variance is left
        half = normal_quantile(mean.confidence) * abs(value) * math.sqrt(2 / size / max(1.0, size - 1))
    if mean.low == mean.low:
        half = math.hypot(mean.high - value, half)
    if value + half <= 0 or not half or (mean.low != mean.low and mean.note != SAME):
        return Estimate.bare(max(0.0, value), mean.n, mean.note or "estimated below 0: no interval")
    # Samples that underestimate a variance underestimate its error too, and Student's interval lies too low (it covers
    # 0.84 with 15 questions): the upper end is that of the logarithm. Log 0 has no error, so a half-width larger than
    # the variance grows as one that is as large.
    ratio = half / max(abs(value), half)
    low, high = max(0.0, value - half), max(0.0, value + half * math.expm1(ratio) / ratio)
    return Estimate(max(0.0, value), low, high, mean.n, mean.method, mean.confidence)


@dataclass(frozen=True)
class _Fixed:
    """Least-squares effects of fixed facets.

    Attributes:
        levels: facet -> columns of the levels that each group of questions has, and the group's share of the questions.
        effects: (D,) effect of each level; a facet's are defined up to a constant.
        influence: (Q, D) of each question on them, times Q.
        design: (M, D) levels of each row, each minus its mean over the levels of the group, and over all rows.
        inverse: (D, D) from the totals of rows within questions to effects.
        inseparable: facets left out.
    """

    levels: Mapping[str, Sequence[tuple[Ints, float]]]
    effects: Floats
    influence: Floats
    design: Floats
    inverse: Floats
    inseparable: tuple[str, ...] = ()

    def taken(self, cells: Sequence[Ints]) -> Floats:
        """(T, T) by how much the fit lowers E T_t, for each unit of the variance of term u.

        Effects follow the interactions of the questions that they are fitted to, and take part of these along: a tenth,
        if ten questions have five options. Where what is left is B times the answers, A_t the form of T_t and V_u the
        covariance of term u, E T_t has tr(B' A_t B V_u) instead of tr(A_t V_u).

        Args:
            cells: (M,) of each of T terms; the first are the questions.
        """
        within, taken = self.design - _means(self.design, cells[0]), np.zeros((len(cells),) * 2)
        means = [by_unit(self.design, one) / np.bincount(one)[:, None] for one in cells]
        for u, one in enumerate(cells):
            sums = by_unit(within, one)[one]
            along = self.inverse @ within.T @ sums @ self.inverse
            for t, mean in enumerate(means):
                each = mean[cells[t]]
                taken[t, u] = (2 * self.inverse * (sums.T @ each) - along * (self.design.T @ each)).sum()
        return taken

    def estimate(self, name: str, bootstrap: Bootstrap) -> Estimate:
        """The variance component of a facet."""
        n = len(self.influence)
        value, noise, least, most, influence = 0.0, 0.0, 0.0, 0.0, np.zeros(n)
        missed = 1 - (1 - CONFIDENCE) ** (1 / bootstrap.sampling.units())
        for columns, weight in self.levels[name]:
            effects, each = self.effects[columns] - self.effects[columns].mean(), weight / (len(columns) - 1)
            changes = self.influence[:, columns]
            changes = changes - changes.mean(axis=1, keepdims=True)
            # sampling questions makes the effects of even a fair model differ: that part is subtracted
            totals = by_unit(changes, bootstrap.sampling.unit)
            covariance = totals.T @ totals / n**2 * len(totals) / (len(totals) - 1)
            value += each * float((effects**2).sum() - np.trace(covariance))
            noise += 2 * each**2 * float((covariance**2).sum())
            influence += 2 * each * changes @ effects
            # Right under half of the levels and wrong under the others: the most that a question can show.
            norm, largest = math.sqrt(float((effects**2).sum())), math.sqrt(len(columns)) / 2
            least += each * (norm - missed * norm) ** 2
            most += each * (norm + missed * max(0.0, largest - norm)) ** 2
        # Of a strong model, one to four questions show all that a sample has of an effect, and of its error. So the
        # quantile is Student's for so few, and as many as a sample misses may show the most, or none (`with_unseen`).
        degrees = bootstrap.sampling.degrees(influence, bounded=False) if noise else math.inf
        one = _estimate(value, influence, bootstrap, student_quantile(CONFIDENCE, degrees) * math.sqrt(noise))
        return one if math.isnan(one.high) else replace(one, low=min(one.low, least), high=max(one.high, most))


def _means(rows: Floats, cells: Ints) -> Floats:
    """(M, D) the mean of each row's cell."""
    return (by_unit(rows, cells) / np.bincount(cells)[:, None])[cells]


def _fixed(pages: Pages, n: int, given: Mapping[str, Ints]) -> _Fixed:
    """Effects of all facets that can be separated; the last ones are dropped first."""
    facets = {
        name: codes(levels)
        for name, levels in given.items()
        if int(codes(pages.question, levels).max()) + 1 > n  # otherwise it does not vary within any question
    }
    lost: list[str] = []
    while (fitted := _least_squares(pages, facets, n)) is None:
        lost.append(facets.popitem()[0])
    return replace(fitted, inseparable=tuple(lost))


def _least_squares(pages: Pages, facets: Mapping[str, Ints], n: int) -> _Fixed | None:
    """The effects of some facets; None where they cannot be separated."""
    # Groups share the effects of a level: a number of options may have few questions.
    question = pages.question
    if not facets:
        return _Fixed({}, np.zeros(0), np.zeros((n, 0)), np.zeros((len(question), 0)), np.zeros((0, 0)))
    starts = np.cumsum([0, *(int(levels.max()) + 1 for levels in facets.values())])
    columns = [levels + start for levels, start in zip(facets.values(), starts[:-1], strict=True)]
    design = np.concatenate([np.eye(int(levels.max()) + 1)[levels] for levels in facets.values()], axis=1)
    within = design - _means(design, question)
    products = within.T @ within
    ends = list(pairwise(starts.tolist()))
    ranks = [_rank(products[i:j, i:j]) for i, j in ends]
    # Where the effects fit every answer, nothing is left that shows how much these vary.
    if _rank(products) < sum(ranks) or sum(ranks) >= len(question) - n:
        return None
    inverse = np.asarray(np.linalg.pinv(products, rcond=_SINGULAR, hermitian=True), np.float64)
    effects = inverse @ (within.T @ pages.right)
    levels: dict[str, list[tuple[Ints, float]]] = {}
    for name, column in zip(facets, columns, strict=True):
        several: list[tuple[Ints, int]] = []  # of each group of questions, the columns of its levels, and its size
        for rows in (pages.group == group for group in np.unique(pages.group)):
            some = np.unique(column[rows])
            design[np.ix_(rows, some)] -= 1 / len(some)
            several += [(some, len(np.unique(question[rows])))] * (len(some) > 1)
        levels[name] = [(some, size / sum(size for _, size in several)) for some, size in several]
    left = pages.right - within @ effects
    influence = n * by_unit(within * left[:, None], question) @ inverse
    return _Fixed(levels, effects, influence, design - design.mean(axis=0), inverse)


_SINGULAR = 1e-8


def _rank(products: Floats) -> int:
    return int(np.linalg.matrix_rank(products, tol=_SINGULAR * float(np.abs(products).max()), hermitian=True))


def _random(
    right: Floats, question: Ints, terms: Mapping[str, Ints], n: int, fixed: _Fixed
) -> dict[str, tuple[float, Floats]]:
    """The variance of each term (name -> (M,) its cells, within questions), and (Q,) each question's influence times Q.

    Terms that have the same cells as a later one, or that the others determine, are left out.
    """
    names, values = list(terms), right - fixed.design @ fixed.effects
    names = [names[0], *(one for one in names[1:-1] if len(np.unique(terms[one])) not in (n, len(values))), names[-1]]
    mean = float(values.mean())
    rows, total = len(values), np.bincount(question, minlength=n)
    counts = {name: np.bincount(terms[name])[terms[name]] for name in names}
    while True:
        squares, weights = np.zeros((len(names), n)), np.zeros((len(names), len(names), n))
        for i, name in enumerate(names):
            first = terms[name]
            squares[i] = np.bincount(question, np.bincount(first, values)[first] / counts[name] * values, n)
            for j, other in list(enumerate(names))[i:]:
                code = first * (int(terms[other].max()) + 1) + terms[other]
                _, place, together = np.unique(code, return_inverse=True, return_counts=True)
                weights[i, j] = np.bincount(question, together[place] / counts[name], n)
                weights[j, i] = np.bincount(question, together[place] / counts[other], n)
        # the row of the mean: all M answers as one cell
        size = np.stack([np.bincount(question, counts[name], n) for name in names])
        whole = size.sum(axis=1)
        matrix = weights.sum(axis=2) - whole / rows - fixed.taken([terms[name] for name in names])
        scaled = matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
        if len(names) == 2 or np.linalg.cond(scaled) < _MOST_CONDITION:
            break
        del names[-2]
    solved = np.linalg.solve(matrix, squares.sum(axis=1) - rows * mean**2)
    of_mean = 2 * mean * np.bincount(question, values, n) - mean**2 * total
    of_whole = size / rows - whole[:, None] * total / rows**2
    change = squares - of_mean - np.einsum("ijq,j->iq", weights - of_whole, solved)
    influence = n * np.linalg.solve(matrix, change)
    return {name: (float(solved[i]), influence[i]) for i, name in enumerate(names)}


_MOST_CONDITION = 1e4


def _harmonic(question: Ints, cells: Ints) -> float:
    """Harmonic mean over questions of the number of their cells."""
    numbers = np.bincount(np.unique(np.stack([question, cells]), axis=1)[0])
    return float(1 / (1 / numbers[numbers > 0]).mean())


MOST_QUESTIONS = 4_000
"""Questions in the analysis, evenly spaced among more."""


def components_of(
    scores: OrderScores, bootstrap: Bootstrap, repeats: Sequence[Repeat] = ()
) -> VarianceComponents | None:
    """The components of the questions with one right option, whose orders are complete.

    In two phases, a square shows no components, but it does show the mean over orders: only the components are of the
    part in all orders, and a plan knows the score and its variance from all questions.

    Args:
        bootstrap: over the questions of the scores.

    Returns:
        None where there are fewer than two, or the answers themselves decided which questions were asked in all orders
        (``--adaptive``).
    """
    pages = None if scores.selected else pages_of(whole_part(scores), repeats)
    questions = np.unique(pages.question) if pages else np.zeros(0, np.int64)
    if pages is None or len(questions) < 2:
        return None
    questions = questions[:: -(-len(questions) // MOST_QUESTIONS)]
    rows = np.isin(pages.question, questions)
    arrays = {name: getattr(pages, name)[rows] for name in ("right", "page", "group", "scored")}
    facets = {name: levels[rows] for name, levels in pages.facets.items()}
    pages = Pages(question=np.searchsorted(questions, pages.question[rows]), facets=facets, **arrays)
    result = variance_components(pages, _bootstrap_of(questions, scores, bootstrap))
    if scores.full is None:
        return result
    means = expected_accuracy(scores)
    every = np.flatnonzero((scores.answers.sum(axis=1) == 1) & np.isfinite(means))
    accuracy, between, effect = _of_means(means[every], _bootstrap_of(every, scores, bootstrap))
    return replace(
        result,
        accuracy=accuracy,
        between=between,
        design_effect=effect,
        questions=len(every),
        orders=float(1 / (1 / scores.order_counts[every]).mean()),
    )


def _bootstrap_of(questions: Ints, scores: OrderScores, bootstrap: Bootstrap) -> Bootstrap:
    """The bootstrap over some of the questions of the scores."""
    if len(questions) == bootstrap.n_questions:
        return bootstrap
    subjects, contexts = ([values[q] for q in questions] for values in (scores.subjects, scores.contexts))
    across = bootstrap.sampling.drawn == "subjects"
    return Bootstrap(len(questions), subjects, contexts=contexts, across_subjects=across)
