"""Where a habit differs: by number of options, and by subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats, Ints
from unslant.metrics.preference.cells import SlotGroup, restricted
from unslant.metrics.preference.habit import FEWEST, LEVEL, Habit, Search

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
    Where they differ, a place is absent or turned round with some numbers of options. A habit that explains the effects
    in part only is looked for with each number of options alone.

    Args:
        habit: of all questions together.
        bounded: whether pulls are shares, so that avoiding one of n cannot move more than 1/(n - 1).
    """
    counts = {n: sum(len(group.rows) for group in groups if group.n == n) for n in {group.n for group in groups}}
    asked = sorted(n for n in counts if counts[n] >= FEWEST)
    if len(asked) < 2 or habit is None:
        return {}
    alone = {n: search([group for group in groups if group.n == n]) for n in asked}
    if not habit.adequate:
        each = {n: one.find() for n, one in alone.items()}
        simple = all(own is None or (own.adequate and len(own.places) < 3) for own in each.values())
        return each if simple else {}
    pulls, errors = (np.asarray([habit.by_size[n][part] for n in asked]) for part in (0, 1))
    factor = np.where(pulls < 0, np.asarray(asked)[:, None] - 1.0, 1.0) if bounded else np.ones_like(pulls)
    pulls, errors = pulls * factor, errors * factor
    lowest = np.nan_to_num(np.abs(pulls) - 2 * errors).max(axis=0)
    least = _ABSENT * np.maximum(np.abs(habit.pulls), lowest)
    differ = _differ(pulls, errors)
    absent = differ & (np.abs(pulls) + 2 * errors < least)
    turned = differ & (pulls * habit.pulls < 0) & (np.abs(pulls) - 2 * errors > least)
    if not (absent | turned).any():
        return {}
    found: dict[int, Habit | None] = {}
    for i, n in enumerate(asked):
        kept = np.flatnonzero(np.isfinite(pulls[i]) & ~absent[i])
        signed = np.where(turned[i], -habit.pulls, habit.pulls)[kept]
        own = replace(habit, places=tuple(habit.places[k] for k in kept), pulls=signed) if len(kept) else None
        found[n] = own if np.isfinite(pulls[i]).any() else alone[n].find()
    return found


def _differ(values: Floats, errors: Floats) -> NDArray[np.bool_]:
    """Of each column, whether its values differ by more than their errors; nan are left out."""
    from scipy.special import chdtrc

    weights = np.where(np.isfinite(values), 1 / np.maximum(errors, 1e-9) ** 2, 0.0)
    values = np.nan_to_num(values)
    means = (weights * values).sum(axis=0) / weights.sum(axis=0)
    degrees = (weights > 0).sum(axis=0) - 1
    squares = (weights * (values - means) ** 2).sum(axis=0)
    return np.asarray((degrees > 0) & (chdtrc(np.maximum(1, degrees), squares) < LEVEL))


def by_subject(
    groups: Groups, subjects: Sequence[str], search: Searching, seed: int
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
    whole = search(groups)
    pulls = np.nan_to_num(whole.beyond(())[rows])
    p = _p_value(pulls, codes, whole.n_options[rows], np.random.default_rng(seed))
    if p >= LEVEL:
        return p, []

    def cells(members: NDArray[np.intp]) -> Groups:
        mask = np.zeros(len(subjects), bool)
        mask[rows[np.isin(codes, members)]] = True
        return restricted(groups, mask)

    strongest = _strongest(pulls, codes, whole.margin)
    sets = sorted((np.flatnonzero(strongest == one) for one in np.unique(strongest)), key=len, reverse=True)
    habits = [*(habit for members in sets if (habit := search(cells(members)).find())), None]
    unexplained = [np.concatenate([_unexplained(habit, group) for group in groups]) for habit in habits]
    nearest = np.stack([np.bincount(codes, squares) for squares in unexplained]).argmin(axis=0)
    parts = [(np.flatnonzero(nearest == h), habit) for h, habit in enumerate(habits)]
    named = [(tuple(names[own].tolist()), cells(own), habit) for own, habit in parts if len(own)]
    # the most subjects first; of as many, those that fall back on something; those without a habit last
    return p, sorted(named, key=lambda s: (s[2] is None, -len(s[0]), s[2] and s[2].pulls.max() < 0))


def _unexplained(habit: Habit | None, group: SlotGroup) -> Floats:
    """(Q,) squares that a habit leaves of each question's slots."""
    predicted = np.zeros(len(group.free))
    if habit and group.n in habit.by_size:
        predicted = group.columns(habit.places) @ np.nan_to_num(habit.by_size[group.n][0])
    squares: Floats = ((group.slots - predicted) ** 2).sum(axis=1)
    return squares


def _p_value(pulls: Floats, codes: NDArray[np.intp], sizes: Ints, rng: np.random.Generator) -> float:
    if len(pulls) > _MOST_QUESTIONS:
        kept = np.sort(rng.choice(len(pulls), _MOST_QUESTIONS, replace=False))
        pulls, codes, sizes = pulls[kept], codes[kept], sizes[kept]
    within = [np.flatnonzero(sizes == n) for n in np.unique(sizes)]
    rest = pulls.copy()
    for rows in within:
        rest[rows] -= pulls[rows].mean(axis=0)
    total = (rest**2).sum(axis=0)
    if (total <= 1e-12).all():
        return 1.0
    rest, total = rest[:, total > 1e-12], total[total > 1e-12]
    members = (codes[:, None] == np.unique(codes)).astype(np.float64)
    counts = members.sum(axis=0)[:, None]

    def between(order: NDArray[np.intp]) -> float:
        return float((((members.T @ rest[order]) ** 2 / counts).sum(axis=0) / total).max())

    order = np.arange(len(rest))
    observed, extreme = between(order) * (1 - 1e-9), 0
    for done in range(1, PERMUTATIONS + 1):
        for rows in within:
            order[rows] = rng.permutation(rows)
        extreme += between(order) >= observed
        if extreme >= LEVEL * (1 + PERMUTATIONS):  # not significant, however the rest comes out
            return (1 + extreme) / (1 + done)
    return (1 + extreme) / (1 + PERMUTATIONS)


def _strongest(pulls: Floats, codes: NDArray[np.intp], margin: float) -> Ints:
    """(S,) the place whose pull in a subject is clearest: counted from 1, negative if avoided; 0 for none.

    Where a place that is taken is nearly as clear as one that is avoided, it is the one.
    """
    counts = np.bincount(codes)[:, None]
    means = np.stack([pulls[codes == s].mean(axis=0) for s in range(len(counts))])
    within = ((pulls - means[codes]) ** 2).sum(axis=0) / max(1, len(pulls) - len(counts))
    clear = means / np.sqrt(np.maximum(within, 1e-12) / counts)
    near = np.abs(clear) >= 0.99 * np.abs(clear).max(axis=1, keepdims=True)
    best = np.where(near, np.abs(clear) + 1e6 * (clear > 0), -1.0).argmax(axis=1)[:, None]
    pull, errors = (np.take_along_axis(values, best, axis=1) for values in (means, clear))
    stands_out = (counts > 1) & (np.abs(pull) > margin) & (np.abs(errors) > _CLEAR)
    found: Ints = (stands_out * (best + 1) * np.sign(pull)).astype(np.int64)[:, 0]
    return found
