"""Where a habit differs: by number of options, and by subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats, Ints
from unslant.metrics.preference.cells import SlotGroup, restricted
from unslant.metrics.preference.habit import FEWEST, LEVEL, Habit, Search
from unslant.metrics.preference.places import places_of

Groups = Sequence[SlotGroup]
Searching = Callable[[Groups], Search]

PERMUTATIONS = 999
_MOST_QUESTIONS = 2_000
_CLEAR = 2.5
"""Standard errors by which the strongest place of one subject has to stand out."""
_ABSENT = 1 / 3
"""A place with less than this part of its strongest pull is not at work."""


def by_size(habit: Habit | None, groups: Groups, search: Searching, bounded: bool) -> dict[int, Habit | None]:
    """Number of options -> habit there; empty where it is the same for all.

    Pulls of one place are compared over the numbers of options by a chi-squared test of equal means (Cochran 1954).
    Where they differ, a place is at work with some numbers of options, and absent or turned round with others. A habit
    that explains no more than part of the effects is looked for with each number of options alone.

    Args:
        habit: of all questions together.
        bounded: whether pulls are shares, so that avoiding one of n cannot move more than 1/(n - 1).
    """
    counts: dict[int, int] = {}
    for group in groups:
        counts[group.n] = counts.get(group.n, 0) + len(group.rows)
    asked = sorted(n for n in counts if counts[n] >= FEWEST)
    if len(asked) < 2 or habit is None:
        return {}

    def alone(n: int) -> Habit | None:
        return search([group for group in groups if group.n == n]).find()

    if not habit.adequate:
        each = {n: alone(n) for n in asked}
        simple = all(own is None or (own.adequate and len(own.places) < 3) for own in each.values())
        return each if simple else {}
    kept: dict[int, list[tuple[int, float]]] = {}
    same = True
    for i, usual in enumerate(habit.pulls.tolist()):
        there = [n for n in asked if np.isfinite(habit.by_size[n][0][i])]
        scale = np.asarray([n - 1.0 if bounded and habit.by_size[n][0][i] < 0 else 1.0 for n in there])
        pulls, errors = (np.asarray([habit.by_size[n][part][i] for n in there]) * scale for part in (0, 1))
        differ = len(there) > 1 and _differ(pulls, errors)
        least = _ABSENT * max(abs(usual), float((np.abs(pulls) - 2 * errors).max(initial=0.0)))
        for n, pull, error in zip(there, pulls, errors, strict=True):
            absent = differ and abs(pull) + 2 * error < least
            turned = differ and pull * usual < 0 and abs(pull) - 2 * error > least
            same &= not absent and not turned
            kept.setdefault(n, []).extend([] if absent else [(i, -usual if turned else usual)])

    def there_alone(n: int) -> Habit | None:
        if n not in kept:
            return alone(n)
        places, pulls = tuple(habit.places[i] for i, _ in kept[n]), np.asarray([pull for _, pull in kept[n]])
        return replace(habit, places=places, pulls=pulls) if places else None

    return {} if same else {n: there_alone(n) for n in asked}


def _differ(values: Floats, errors: Floats) -> bool:
    from scipy.special import chdtrc

    weights = 1 / np.maximum(errors, 1e-9) ** 2
    mean = np.average(values, weights=weights)
    return bool(chdtrc(len(values) - 1, float((weights * (values - mean) ** 2).sum())) < LEVEL)


def by_subject(
    groups: Groups, subjects: Sequence[str], margin: float, search: Searching, seed: int
) -> tuple[float, list[tuple[tuple[str, ...], Groups, Habit | None]]]:
    """Whether subjects differ in their habit, and subjects put together by it.

    The test permutes questions among subjects, within their number of options; its statistic is the greatest part, over
    places, of the variance of a place's pull that lies between subjects. Where it says that subjects differ, those with
    the same strongest place are put together, a habit is looked for in each such set, and every subject goes to the
    habit, or none, that leaves least of its questions' slots unexplained.

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
    sizes = np.concatenate([np.full(len(group.rows), group.n) for group in groups])
    pulls, norms = _pulls(groups)
    p = _p_value(pulls, codes, sizes, np.random.default_rng(seed))
    if p >= LEVEL:
        return p, []

    def cells(members: NDArray[np.intp]) -> Groups:
        mask = np.zeros(len(subjects), bool)
        mask[rows[np.isin(codes, members)]] = True
        return restricted(groups, mask)

    strongest = _strongest(pulls, norms, codes, len(names), margin)
    sets = sorted((np.flatnonzero(strongest == one) for one in np.unique(strongest)), key=len, reverse=True)
    found = [habit for members in sets if (habit := search(cells(members)).find())]
    unexplained = [np.concatenate([_unexplained(habit, group) for group in groups]) for habit in (*found, None)]
    nearest = np.stack([np.bincount(codes, one) for one in unexplained]).argmin(axis=0)
    parts = [(np.flatnonzero(nearest == h), habit) for h, habit in enumerate((*found, None))]
    sets_of_subjects = [(tuple(names[own].tolist()), cells(own), habit) for own, habit in parts if len(own)]
    # the most subjects first; of as many, those that fall back on something; those without a habit last
    return p, sorted(sets_of_subjects, key=lambda s: (s[2] is None, -len(s[0]), s[2] and s[2].pulls.max() < 0))


def _unexplained(habit: Habit | None, group: SlotGroup) -> Floats:
    """(Q,) squares that a habit leaves of each question's slots."""
    predicted = np.zeros(len(group.free))
    if habit and group.n in habit.by_size:
        among = np.stack([place.among(group.n) for place in habit.places])
        predicted = group.columns(among) @ np.nan_to_num(habit.by_size[group.n][0])
    squares: Floats = ((group.slots - predicted) ** 2).sum(axis=1)
    return squares


def _pulls(groups: Groups) -> tuple[Floats, Floats]:
    """(U, places) pull of each place alone in each question, and its weight; 0 where there is no such place."""
    places = places_of(sorted({group.n for group in groups}))
    pulls, norms = [], []
    for group in groups:
        columns = group.columns(np.stack([place.among(group.n) for place in places]))
        norm = (columns**2).sum(axis=0)
        product = group.slots @ columns
        pulls.append(np.divide(product, norm, out=np.zeros_like(product), where=norm > 1e-9))
        norms.append(np.tile(norm, (len(group.rows), 1)))
    return np.concatenate(pulls), np.concatenate(norms)


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
        if extreme >= LEVEL * (1 + PERMUTATIONS):  # not significant, however the rest comes out
            return (1 + extreme) / (1 + done)
    return (1 + extreme) / (1 + PERMUTATIONS)


def _strongest(pulls: Floats, norms: Floats, codes: NDArray[np.intp], subjects: int, margin: float) -> Ints:
    """(S,) place that explains most of a subject's effects: counted from 1, negative if avoided; 0 for none.

    Where a place that is taken explains nearly as much as one that is avoided, it is the one.
    """
    counts = np.bincount(codes, minlength=subjects)
    means = np.stack([pulls[codes == s].mean(axis=0) for s in range(subjects)])
    weights = np.stack([norms[codes == s].sum(axis=0) for s in range(subjects)])
    within = ((pulls - means[codes]) ** 2).sum(axis=0) / max(1, len(pulls) - subjects)
    strongest = np.zeros(subjects, np.int64)
    for s, explained in enumerate(means**2 * weights):
        near = np.flatnonzero(explained >= 0.98 * explained.max())
        best = int(max(near, key=lambda place: (means[s, place] > 0, explained[place])))
        if counts[s] > 1 and abs(means[s, best]) > max(margin, _CLEAR * float(np.sqrt(within[best] / counts[s]))):
            strongest[s] = (best + 1) * int(np.sign(means[s, best]))
    return strongest
