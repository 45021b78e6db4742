"""Where a habit differs: by number of options, and by subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats, Ints
from unslant.metrics.habits import FEWEST, LEVEL, Habit, Place, Search, order_columns, over_orders, places_of
from unslant.metrics.slot_effects import SlotGroup, page_variances, restricted

Groups = tuple[SlotGroup, ...]
Searching = Callable[[Groups], Search]

PERMUTATIONS = 999
_MOST_QUESTIONS = 2_000
_CLEAR = 2.5
"""Standard errors by which the strongest place of one subject has to stand out."""
_ABSENT = 1 / 3
"""A place with less than this part of its strongest pull is not at work."""
_LEAST_VARIANCE = 1e-6


def by_size(
    habit: Habit | None, groups: Groups, search: Searching, bounded: bool
) -> dict[int, Habit | tuple[tuple[Place, bool], ...]]:
    """Number of options -> places of the habit, and whether each is taken there; empty where it is the same for all.

    What cannot be told from all together is looked for among the questions of one number of options alone.

    Args:
        habit: of all questions together.
        bounded: whether pulls are shares, so that avoiding one of n cannot move more than 1/(n - 1).
    """
    sizes = sorted({group.n for group in groups})
    asked = [n for n in sizes if sum(len(group.rows) for group in groups if group.n == n) >= FEWEST]
    if len(asked) < 2 or habit is None:
        return {}

    def alone(n: int) -> Habit | tuple[tuple[Place, bool], ...]:
        return search(tuple(group for group in groups if group.n == n)).find() or ()

    if not habit.adequate:
        each = {n: alone(n) for n in asked}
        simple = all(not isinstance(own, Habit) or (own.adequate and len(own.places) < 3) for own in each.values())
        return each if simple else {}
    found: dict[int, list[tuple[Place, bool]]] = {}
    same = True
    for i, place in enumerate(habit.places):
        there = [n for n in habit.sizes(i) if n in asked and _told_apart(habit, n)]
        scale = {n: n - 1.0 if bounded and habit.pulls[n][i] < 0 else 1.0 for n in there}
        pulls = np.asarray([float(habit.pulls[n][i]) * scale[n] for n in there])
        errors = np.asarray([float(habit.errors[n][i]) * scale[n] for n in there])
        usual = habit.pull(i)
        differ = len(there) > 1 and _differ(pulls, errors)
        least = _ABSENT * max(abs(usual), float((np.abs(pulls) - 2 * errors).max(initial=0.0)))
        for n, pull, error in zip(there, pulls, errors, strict=True):
            absent = differ and abs(pull) + 2 * error < least
            turned = differ and pull * usual < 0 and abs(pull) - 2 * error > least
            same &= not absent and not turned
            found.setdefault(n, [])
            if not absent:
                found[n].append((place, (usual > 0) != turned))
    return {} if same else {n: tuple(found[n]) if n in found else alone(n) for n in asked}


def _differ(values: Floats, errors: Floats) -> bool:
    """Chi-squared test of equal values (Cochran 1954)."""
    from scipy.special import chdtrc

    weights = 1 / errors**2
    mean = np.average(values, weights=weights)
    return bool(chdtrc(len(values) - 1, float((weights * (values - mean) ** 2).sum())) < LEVEL)


def _told_apart(habit: Habit, n: int) -> bool:
    """Whether n options leave room for more than the habit's own places: taking A or B says nothing of two options."""
    pulls = [place.pulls(n) for place in habit.places if place.pulls(n).any()]
    return bool(np.linalg.matrix_rank(np.stack(pulls)) == len(pulls)) if pulls else False


def by_subject(
    groups: Groups, subjects: Sequence[str], margin: float, search: Searching, seed: int
) -> tuple[float, list[tuple[tuple[str, ...], Groups, Habit | None]]]:
    """Whether subjects differ in their habit, and subjects put together by the place that stands out in each.

    The test permutes questions among subjects, within their number of options; its statistic is the greatest part, over
    places, of the variance of a place's pull that lies between subjects. Where it says that subjects differ, each is
    put to the place that explains most of its effects, the habit of those put together is looked for anew, and every
    subject goes to the habit that fits it best.

    Args:
        subjects: of all questions of the scores.
        search: for a habit in some of the groups.

    Returns:
        p-value (nan with fewer than two subjects), and (subjects, their cells, habit) of each set; empty where subjects
        do not differ.
    """
    rows = np.concatenate([np.zeros(0, np.intp), *(group.rows for group in groups)])
    names, codes = np.unique(np.asarray(subjects, dtype=str)[rows], return_inverse=True)
    if len(names) < 2 or len(rows) < 2 * FEWEST:
        return float("nan"), []
    ordered = over_orders(groups)
    pulls, norms, sizes = _pulls(ordered, margin)
    p = _p_value(pulls, codes, sizes, np.random.default_rng(seed))
    if p >= LEVEL:
        return p, []
    together: dict[tuple[int, bool], list[int]] = {}
    for subject, place in enumerate(_strongest(pulls, norms, codes, len(names), margin)):
        together.setdefault(place, []).append(subject)

    def cells(members: Sequence[int]) -> Groups:
        mask = np.zeros(len(subjects), bool)
        mask[rows[np.isin(codes, members)]] = True
        return restricted(groups, mask)

    found: list[Habit] = []
    for members in sorted(together.values(), key=len, reverse=True):
        own = search(cells(members))
        habit = own.find()
        if habit and not any(own.explained_by(other) for other in found):
            found.append(habit)
    code_of = dict(zip(rows.tolist(), codes.tolist(), strict=True))
    nearest = _nearest(ordered, code_of, len(names), found)
    sets = []
    for h, habit in enumerate([*found, None]):
        members = np.flatnonzero(nearest == h).tolist()
        if members:
            sets.append((tuple(str(names[i]) for i in members), cells(members), habit))
    return p, sorted(sets, key=lambda item: (item[2] is None, -len(item[0])))


def _nearest(groups: Groups, code_of: Mapping[int, int], subjects: int, habits: Sequence[Habit]) -> NDArray[np.intp]:
    """Which habit leaves least of each subject's effects unexplained; their number for none of them."""
    variance = page_variances(groups)
    misfit = np.zeros((len(habits) + 1, subjects))
    for group in groups:
        codes = np.asarray([code_of[row] for row in group.rows.tolist()])
        weights = 1 / (variance[group.pages] + _LEAST_VARIANCE)
        for h, habit in enumerate([*habits, None]):
            told = np.zeros(len(group.pages))
            if habit and group.n in habit.pulls:
                told = order_columns([group], habit.places)[0] @ habit.pulls[group.n]
            for s in np.unique(codes):
                own = group.values[codes == s]
                misfit[h, s] += len(own) * float((weights * (own.mean(axis=0) - told) ** 2).sum())
    nearest: NDArray[np.intp] = misfit.argmin(axis=0)
    return nearest


def _pulls(groups: Groups, margin: float) -> tuple[Floats, Floats, Ints]:
    """(U, places) pull of each place in each question, its weight, and (U,) the question's number of options."""
    variance = page_variances(groups)
    places = places_of(sorted({group.n for group in groups}))
    pulls, norms, sizes = [], [], []
    for group, columns in zip(groups, order_columns(groups, places), strict=True):
        weighed = columns / (variance[group.pages] + margin**2)[:, None]
        norm = (weighed * columns).sum(axis=0)
        product = group.values @ weighed
        pulls.append(np.divide(product, norm, out=np.zeros_like(product), where=norm > 1e-9 * norm.max()))
        norms.append(np.tile(norm, (len(group.rows), 1)))
        sizes.append(np.full(len(group.rows), group.n))
    return np.concatenate(pulls), np.concatenate(norms), np.concatenate(sizes)


def _p_value(pulls: Floats, codes: NDArray[np.intp], sizes: Ints, rng: np.random.Generator) -> float:
    if len(pulls) > _MOST_QUESTIONS:
        kept = np.sort(rng.choice(len(pulls), _MOST_QUESTIONS, replace=False))
        pulls, codes, sizes = pulls[kept], codes[kept], sizes[kept]
    kinds, of = np.unique(sizes, return_inverse=True)
    rest = pulls - np.stack([pulls[sizes == n].mean(axis=0) for n in kinds])[of]
    total = (rest**2).sum(axis=0)
    if (total <= 1e-12).all():
        return 1.0
    rest, total = rest[:, total > 1e-12], total[total > 1e-12]
    members = (codes[:, None] == np.unique(codes)).astype(np.float64)
    counts = members.sum(axis=0)[:, None]

    def statistic(order: NDArray[np.intp]) -> float:
        return float((((members.T @ rest[order]) ** 2 / counts).sum(axis=0) / total).max())

    observed = statistic(np.arange(len(rest)))
    within = [np.flatnonzero(sizes == n) for n in kinds]
    extreme = 0
    for done in range(1, PERMUTATIONS + 1):
        order = np.arange(len(rest))
        for rows in within:
            order[rows] = rng.permutation(rows)
        extreme += statistic(order) >= observed * (1 - 1e-9)
        if extreme >= LEVEL * (1 + PERMUTATIONS):  # no longer significant, whatever the rest
            return (1 + extreme) / (1 + done)
    return (1 + extreme) / (1 + PERMUTATIONS)


def _strongest(
    pulls: Floats, norms: Floats, codes: NDArray[np.intp], subjects: int, margin: float
) -> list[tuple[int, bool]]:
    """Of each subject, the place that explains most of its effects and whether it is taken; (-1, False) for none."""
    counts = np.bincount(codes, minlength=subjects)
    means = np.stack([pulls[codes == s].mean(axis=0) for s in range(subjects)])
    weights = np.stack([norms[codes == s].sum(axis=0) for s in range(subjects)])
    within = ((pulls - means[codes]) ** 2).sum(axis=0) / max(1, len(pulls) - subjects)
    found = []
    for s in range(subjects):
        explained = means[s] ** 2 * weights[s]
        near = np.flatnonzero(explained >= 0.98 * explained.max())
        best = int(max(near, key=lambda f: (means[s, f] > 0, explained[f])))
        clear = abs(means[s, best]) > max(margin, _CLEAR * float(np.sqrt(within[best] / counts[s])))
        found.append((best, bool(means[s, best] > 0)) if clear and counts[s] > 1 else (-1, False))
    return found
