"""Where a habit differs: by number of options, and by subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.metrics.habits import FEWEST, LEVEL, Habit, Meaning, Search, Slot, slot_columns
from unslant.metrics.slot_effects import SlotGroup, page_variances, restricted

Searching = Callable[[tuple[SlotGroup, ...]], Search]

PERMUTATIONS = 999
_MOST_QUESTIONS = 2_000
LEAST_VARIANCE = 1e-6
_CLEAR = 2.5
"""Standard errors by which the strongest slot of one subject has to stand out."""
_ABSENT = 1 / 3
"""A slot with less than this part of its strongest pull is not at work."""


def by_size(habit: Habit | None, groups: tuple[SlotGroup, ...], search: Searching, bounded: bool) -> dict[int, Meaning]:
    """Number of options -> what is taken or avoided there; empty where a habit is the same for all.

    Args:
        habit: of all questions together.
        bounded: whether pulls are shares, so that avoiding one of n cannot move more than 1/(n - 1).
    """
    sizes = sorted({group.n for group in groups})
    counts = {n: sum(len(group.rows) for group in groups if group.n == n) for n in sizes}
    asked = [n for n in sizes if counts[n] >= FEWEST]
    if len(asked) < 2 or habit is None:
        return {}
    if not habit.adequate:
        alone = {n: search(tuple(group for group in groups if group.n == n)).find() for n in asked}
        simple = all(found is None or (found.adequate and len(found.slots) < 3) for found in alone.values())
        return {n: found.meaning if found else frozenset() for n, found in alone.items()} if simple else {}
    found: dict[int, set[tuple[Slot, bool]]] = {}
    same = True
    for i, slot in enumerate(habit.slots):
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
            found.setdefault(n, set())
            if not absent:
                found[n].add((slot, (usual > 0) != turned))
    return {} if same else {n: frozenset(found[n]) for n in asked if n in found}


def _differ(values: Floats, errors: Floats) -> bool:
    """Chi-squared test of equal values (Cochran 1954)."""
    from scipy.special import chdtrc

    weights = 1 / errors**2
    mean = np.average(values, weights=weights)
    return bool(chdtrc(len(values) - 1, float((weights * (values - mean) ** 2).sum())) < LEVEL)


def _told_apart(habit: Habit, n: int) -> bool:
    """Whether n options leave room for more than the habit's own slots: taking A or B says nothing of two options."""
    pulls = [slot.pulls(n) for slot in habit.slots if slot.pulls(n).any()]
    return bool(np.linalg.matrix_rank(np.stack(pulls)) == len(pulls)) if pulls else False


def by_subject(
    groups: tuple[SlotGroup, ...], subjects: Sequence[str], margin: float, search: Searching, seed: int
) -> tuple[float, list[tuple[tuple[str, ...], Habit | None]]]:
    """Whether subjects differ in their habit, and subjects put together by the slot that stands out in each.

    The test permutes questions among subjects, within their number of options; its statistic is the greatest part, over
    slots, of the variance of a slot's pull that lies between subjects. Where it says that subjects differ, each is
    put to the slot that explains most of its effects, the habit of those put together is looked for anew, and every
    subject goes to the habit that fits it best.

    Args:
        subjects: of all questions of the scores.
        search: for a habit in some of the groups.

    Returns:
        p-value (nan with fewer than two subjects), and (subjects, habit) of each set; empty where subjects do not
        differ.
    """
    rows = np.concatenate([np.zeros(0, np.intp), *(group.rows for group in groups)])
    names, codes = np.unique(np.asarray(subjects, dtype=str)[rows], return_inverse=True)
    if len(names) < 2 or len(rows) < 2 * FEWEST:
        return float("nan"), []
    pulls, norms, sizes = _pulls(groups, margin)
    p = _p_value(pulls, codes, sizes, np.random.default_rng(seed))
    if p >= LEVEL:
        return p, []
    together: dict[tuple[int, bool], list[int]] = {}
    for subject, slot in enumerate(_strongest(pulls, norms, codes, len(names), margin)):
        together.setdefault(slot, []).append(subject)

    found: list[Habit] = []
    for members in sorted(together.values(), key=len, reverse=True):
        mask = np.zeros(len(subjects), bool)
        mask[rows[np.isin(codes, members)]] = True
        own = search(restricted(groups, mask))
        habit = own.find()
        if habit and not any(own.explained_by(other.meaning) for other in found):
            found.append(habit)
    nearest = _nearest(groups, dict(zip(rows.tolist(), codes.tolist(), strict=True)), len(names), found)
    ranked = [(tuple(str(names[i]) for i in np.flatnonzero(nearest == h)), habit) for h, habit in enumerate(found)]
    ranked.sort(key=lambda item: -len(item[0]))
    rest = tuple(str(name) for name in names[nearest == len(found)])
    return p, [item for item in [*ranked, (rest, None)] if item[0]]


def _nearest(
    groups: tuple[SlotGroup, ...], code_of: Mapping[int, int], subjects: int, habits: Sequence[Habit]
) -> NDArray[np.intp]:
    """Which habit leaves least of each subject's effects unexplained; their number for none of them."""
    variance = page_variances(groups)
    misfit = np.zeros((len(habits) + 1, subjects))
    for group in groups:
        codes = np.asarray([code_of[row] for row in group.rows.tolist()])
        weights = 1 / (variance[group.pages] + LEAST_VARIANCE)
        for h, habit in enumerate([*habits, None]):
            told = np.zeros(len(group.pages))
            if habit and group.n in habit.pulls:
                told = group.design @ np.stack([s.pulls(group.n) for s in habit.slots], axis=1) @ habit.pulls[group.n]
            for s in np.unique(codes):
                own = group.values[codes == s]
                misfit[h, s] += len(own) * float((weights * (own.mean(axis=0) - told) ** 2).sum())
    nearest: NDArray[np.intp] = misfit.argmin(axis=0)
    return nearest


def _pulls(groups: tuple[SlotGroup, ...], margin: float) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """(U, slots) pull of each slot in each question, its weight, and (U,) the question's number of options."""
    variance = page_variances(groups)
    pulls, norms, sizes = [], [], []
    for group, columns in zip(groups, slot_columns(groups)[1], strict=True):
        weighed = columns / (variance[group.pages] + margin**2)[:, None]
        norm = (weighed * columns).sum(axis=0)
        product = group.values @ weighed
        pulls.append(np.divide(product, norm, out=np.zeros_like(product), where=norm > 1e-9 * norm.max()))
        norms.append(np.tile(norm, (len(group.rows), 1)))
        sizes.append(np.full(len(group.rows), group.n))
    return np.concatenate(pulls), np.concatenate(norms), np.concatenate(sizes)


def _p_value(pulls: Floats, codes: NDArray[np.intp], sizes: NDArray[np.int64], rng: np.random.Generator) -> float:
    if len(pulls) > _MOST_QUESTIONS:
        kept = np.sort(rng.choice(len(pulls), _MOST_QUESTIONS, replace=False))
        pulls, codes, sizes = pulls[kept], codes[kept], sizes[kept]
    rest = (
        pulls
        - np.stack([pulls[sizes == n].mean(axis=0) for n in np.unique(sizes)])[np.searchsorted(np.unique(sizes), sizes)]
    )
    total = (rest**2).sum(axis=0)
    if (total <= 1e-12).all():
        return 1.0
    rest, total = rest[:, total > 1e-12], total[total > 1e-12]
    members = (codes[:, None] == np.unique(codes)).astype(np.float64)
    counts = members.sum(axis=0)[:, None]

    def statistic(order: NDArray[np.intp]) -> float:
        return float((((members.T @ rest[order]) ** 2 / counts).sum(axis=0) / total).max())

    observed = statistic(np.arange(len(rest)))
    within = [np.flatnonzero(sizes == n) for n in np.unique(sizes)]
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
    """Of each subject, the slot that explains most of its effects and whether it is taken; (-1, False) for none."""
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
