"""Which places a habit is about: the fewest that explain what slots get, over the orders, beyond their content.

In the order set every label has its own position, so a *place* is both. The slot effects of question q are
regressed on indicators of a set of places,

    slots_q = sum over places of pull_q(place) x (1 at that place, centred) + rest,

by least squares, question by question. A set explains the effects if no other place has a mean pull beyond it
(Student's t over questions, at 1 % after Holm's correction for all places and numbers of options looked at). Pulls
below a margin, or far below the largest, are not held against it. The smallest set that explains the effects is named.

All sets of a size are compared, because a step of a stepwise selection cannot be undone: of four options, B and C taken
look at first like A avoided. There are few sets, because a habit names at most half the places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from unslant.arrays import Floats, Ints
from unslant.metrics.preference.slots import Rows, SlotGroup, ordinal
from unslant.metrics.sampling import Sampling, holm

Kind = Literal["label", "position"]
Groups = Sequence[SlotGroup]
Set = tuple[int, ...]

LEVEL = 0.01
"""Level of all tests by which something is named, together: a false alarm costs more here than a habit missed."""
KIND_LEVEL = 0.05
"""Level of the tests between label and position, once there is a habit."""
DOUBT = 2.0
"""Standard errors by which a set has to fit worse before it is dropped as an alternative."""
PART = 0.3
"""Effects below this part of the largest need no explanation of their own."""
MOST = 3
"""Places of a habit, at most; and never more than half of all, so two of the usual four or five."""
FEWEST = 5
"""Questions with which anything is looked for."""
_TRIED = 15
"""Sets of a size that are tested: those that leave least."""
_CLEAR = 2.5
"""Standard errors by which the strongest place of one subject has to stand out."""
_ABSENT = 1 / 3
"""A place with less than this part of its strongest pull is not at work."""


@dataclass(frozen=True, order=True)
class Place:
    """A position and the label that usually appears there.

    Attributes:
        origin: whether ``rank`` counts from the first or the last; ``middle`` is the middle one, or the middle two.
        rank: 0 = the first of all.
    """

    origin: Literal["start", "end", "middle"] = "start"
    rank: int = 0

    def among(self, n: int) -> Floats:
        """(n,) 1 where this is, of n places; zeros where there is no such one."""
        at = np.arange(n)
        if self.origin == "middle":
            return np.asarray((at == (n - 1) // 2) | (at == n // 2), np.float64)
        return np.asarray(at == (self.rank if self.origin == "start" else n - 1 - self.rank), np.float64)

    def name(self, kind: Kind, labels: Sequence[str], sizes: Iterable[int]) -> str:
        """A label as it is written, or a position: ``A``, ``the last label``, ``the second position``.

        Args:
            labels: the standard sequence.
            sizes: numbers of options there are.
        """
        sizes = set(sizes)
        if kind == "label" and (self.origin == "start" or len(sizes) == 1):
            return " or ".join(labels[i] for i in np.flatnonzero(self.among(max(sizes))).tolist())
        if self.origin == "middle":
            return f"{'the' if kind == 'label' or all(n % 2 for n in sizes) else 'a'} middle {kind}"
        if self.origin == "end":
            return f"the {'second to last' if self.rank else 'last'} {kind}"
        return f"the {ordinal(self.rank)} {kind}"


def places_of(sizes: Sequence[int]) -> list[Place]:
    """Every place that questions of these numbers of options can have, each once, by its best name."""
    known: dict[tuple[float, ...], Place] = {}
    ranks = [Place("start", r) for r in range(1, max(sizes))]
    for place in (Place(), Place("end"), Place("middle"), *ranks, Place("end", 1)):
        pulls = np.concatenate([place.among(n) - place.among(n).mean() for n in sizes])
        if pulls.any():
            known.setdefault(tuple(pulls), place)
    return list(known.values())


@dataclass(frozen=True)
class Habit:
    """Places that explain the effects, each with its pull.

    Attributes:
        places: what is taken or avoided.
        pulls: (places,) mean pull of each, in the unit of the cells.
        by_size: number of options -> (places,) pulls and their standard errors; nan where there is no such place.
        rivals: other sets as small that explain the effects as well.
        adequate: whether the set explains them; if not, none of up to :data:`MOST` places does.
    """

    places: tuple[Place, ...]
    pulls: Floats
    by_size: Mapping[int, tuple[Floats, Floats]]
    rivals: tuple[tuple[Place, ...], ...] = ()
    adequate: bool = True


class Search:
    """The search for a habit in some questions.

    Args:
        groups: their cells; only those of the orders are looked at.
        sampling: how all Q questions of the scores came together.
        excess: (Q, N) what each place got of the answers to a question beyond what content explains.
        margin: least mean pull that matters, in the unit of the cells.
    """

    def __init__(self, groups: Groups, sampling: Sampling, excess: Floats, margin: float) -> None:
        self.groups, self.sampling, self.excess, self.margin = groups, sampling, excess, margin
        self.n_options = np.zeros(len(excess), np.int64)
        for group in groups:
            self.n_options[group.rows] = group.n
        self.sizes = sorted({group.n for group in groups})
        self.places = places_of(self.sizes)
        self.columns = [_columns(group, self.places) for group in groups]

    def find(self) -> Habit | None:
        """The habit; ``None`` where no place gets more or less than the others, or no choice goes that way."""
        if (self.n_options > 0).sum() < FEWEST or self.explains(()):
            return None
        habit = self._smallest()
        moved = 0.0
        for group in self.groups:
            signs = np.nan_to_num(np.sign(habit.by_size[group.n][0]))
            moved += float((self.excess[group.rows, : group.n] @ _among(habit.places, group.n) @ signs).sum())
        return habit if moved > 0 else None

    def explains(self, chosen: Set) -> bool:
        """Whether no place beyond a set gets more or less than the others, by chance and by what matters.

        All numbers of options together and each by itself: an effect in one of them alone is diluted in the mean.
        """
        terms = self.beyond(chosen)
        largest = np.nan_to_num([np.abs(pulls) for pulls, _ in self._pulls(chosen)[1].values()]).max(initial=0.0)
        least = max(self.margin, PART * float(largest))
        p_values, matters = [], []
        unsure = self.n_options > 0
        for part in [unsure, *([self.n_options == n for n in self.sizes] if len(self.sizes) > 1 else [])]:
            having = np.isfinite(terms[part]).sum(axis=0)
            if part.sum() < FEWEST:
                continue
            pulls = np.nan_to_num(terms[part]).sum(axis=0) / np.maximum(1, having)
            _, p = self.sampling.student(np.nan_to_num(terms), part)
            # n answers of k options agree on one place with probability k^(1 - n), even if they never vary
            logs = np.log(self.n_options[part])
            p = np.maximum(p, np.exp(logs.max() - logs.sum()))
            p_values += np.where(having > 0, p, np.nan).tolist()
            matters += (np.abs(pulls) * np.sqrt(having / unsure.sum()) >= least).tolist()
        return not any(p < LEVEL and big for p, big in zip(holm(p_values), matters, strict=True))

    def beyond(self, chosen: Set) -> Floats:
        """(Q, places) pull of each place in a regression on a set and itself; nan where that is not determined."""
        terms = np.full((len(self.excess), len(self.places)), np.nan)
        for group, columns in zip(self.groups, self.columns, strict=True):
            inside = columns[:, list(chosen)]
            rest = columns - inside @ (np.linalg.pinv(inside) @ columns)
            norms = (rest**2).sum(axis=0)
            there = np.flatnonzero(norms > 1e-9)
            terms[np.ix_(group.rows, there)] = group.slots @ rest[:, there] / norms[there]
        return terms

    def _smallest(self) -> Habit:
        """The smallest set that explains the effects; of equally small ones, that which leaves least."""
        # how many of the places shown each covers: the middle of four options covers two
        covers = [round(max(place.among(n).sum() for n in self.sizes)) for place in self.places]
        ranked: list[Set] = []
        for size in range(1, min(MOST, max(1, max(self.sizes) // 2)) + 1):
            every = (c for k in range(1, size + 1) for c in combinations(range(len(covers)), k))
            sets = [chosen for chosen in every if sum(covers[i] for i in chosen) == size]
            # the more a least-squares fit explains, the less it leaves
            ranked = sorted(sets, key=lambda c: (float((self._fit(c) ** 2).sum()), c), reverse=True) or ranked
            adequate = [chosen for chosen in ranked[:_TRIED] if self.explains(chosen)]
            if adequate:
                return self._best(adequate)
        return self._habit(ranked[0], adequate=False)

    def _fit(self, chosen: Set) -> Floats:
        """What a set says of the mean slots, one group of questions after another, weighted by their number."""
        fits = []
        for group, columns in zip(self.groups, self.columns, strict=True):
            inside = columns[:, list(chosen)]
            fits.append(len(group.rows) ** 0.5 * (inside @ (np.linalg.pinv(inside) @ group.slots.mean(axis=0))))
        return np.concatenate(fits)

    def _best(self, adequate: Sequence[Set]) -> Habit:
        """The best of equally small sets, and its rivals: those that fit as well and mean something else.

        Of two that say the same, such as A or C against not B and not D, the one that is taken is named.
        """

        def alike(a: Set, b: Set) -> bool:
            fit = self._fit(b)
            return float(np.linalg.norm(self._fit(a) - fit)) <= PART * float(np.linalg.norm(fit))

        same = [chosen for chosen in adequate if alike(chosen, adequate[0])]
        best = min(same, key=lambda chosen: ((self._pulls(chosen)[0] < 0).sum(), sum(chosen)))
        rivals: list[Set] = []
        for chosen in adequate:
            if not any(alike(chosen, other) for other in (adequate[0], *rivals)):
                terms = np.nan_to_num(self.beyond(chosen)[:, list(best)])
                if np.abs(self.sampling.student(terms, self.n_options > 0)[0]).max() < DOUBT:
                    rivals.append(chosen)
        return self._habit(best, rivals)

    def _pulls(self, chosen: Set) -> tuple[Floats, dict[int, tuple[Floats, Floats]]]:
        """(places,) mean pulls of a set, and by number of options with their standard errors."""
        pulls = np.full((len(self.excess), len(chosen)), np.nan)
        for group, columns in zip(self.groups, self.columns, strict=True):
            pulls[group.rows] = _regressed(group.slots, columns[:, list(chosen)])
        return _mean(pulls)[0], {n: _mean(pulls[self.n_options == n]) for n in self.sizes}

    def _habit(self, chosen: Set, rivals: Sequence[Set] = (), adequate: bool = True) -> Habit:
        places, *others = (tuple(self.places[i] for i in one) for one in (chosen, *rivals))
        return Habit(places, *self._pulls(chosen), tuple(others), adequate)


def _among(places: Sequence[Place], n: int) -> Floats:
    """(n, P) which of n options each place is."""
    return np.stack([place.among(n) for place in places], axis=1)


def _columns(group: SlotGroup, places: Sequence[Place]) -> Floats:
    """(M, P) what a pull of 1 at each of P places makes of the slots."""
    columns: Floats = group.design[: len(group.free), : group.n] @ _among(places, group.n)
    return columns


def _regressed(values: Floats, columns: Floats) -> Floats:
    """(Q, K) coefficients of (Q, M) values on (M, K) columns, by least squares; nan for those not determined."""
    inverse = np.linalg.pinv(columns, rcond=1e-9)
    coefficients: Floats = values @ inverse.T
    coefficients[:, np.abs(inverse @ columns - np.eye(columns.shape[1])).max(axis=1, initial=0.0) > 1e-6] = np.nan
    return coefficients


def _mean(pulls: Floats) -> tuple[Floats, Floats]:
    """Means and their standard errors down the columns, of what is known; nan where nothing is."""
    known = np.isfinite(pulls)
    counts = np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    means = np.nan_to_num(pulls).sum(axis=0) / counts
    squares = np.where(known, (pulls - means) ** 2, 0.0).sum(axis=0)
    return means, np.sqrt(squares / np.maximum(1, counts - 1) / counts)


class Named(NamedTuple):
    """One place of a habit: its label or its position (``None``: cannot be known), taken or avoided."""

    place: Place
    kind: Kind | None
    taken: bool


Meaning = tuple[Named, ...]


def meaning_of(habit: Habit | None, groups: Groups, apart: Floats, sampling: Sampling) -> Meaning:
    """Of each place of a habit, whether its label or its position is meant, as far as the pages show it.

    With labels in other places, a pull moves with the label or stays at the position. The difference of label and
    position effects is regressed on the places, question by question: a pull W of a label is W there, one of a position
    -W. Its sign is tested by Student's t, with Holm's correction for the places; a place too weak to decide alone goes
    with all places together, weighted by their pulls, if it points the same way. Without relabelled pages nothing is
    determined, and the kind stays unknown.

    Args:
        apart: (Q, N) label effects minus position effects, see :func:`~unslant.metrics.preference.slots.effects`.
    """
    if habit is None:
        return ()
    terms = np.full((len(apart), len(habit.places)), np.nan)
    for group in groups:
        columns = _among(habit.places, group.n)[group.free]
        differences = apart[np.ix_(group.rows, group.free)]
        terms[group.rows] = _regressed(
            differences - differences.mean(axis=1, keepdims=True), columns - columns.mean(axis=0)
        )
    tests: list[tuple[float, float]] = []
    for term in (*(terms * np.sign(habit.pulls)).T, (terms * habit.pulls).sum(axis=1)):
        known = np.isfinite(term)
        if known.sum() > 1:
            t, p = sampling.student(np.nan_to_num(term)[:, None], known)
            tests.append((float(t[0]), float(p[0])))
        else:
            tests.append((0.0, math.nan))
    *single, (t_all, p_all) = tests
    named = []
    corrected = holm([p for _, p in single])
    for place, pull, (sign, _), own_p in zip(habit.places, habit.pulls, single, corrected, strict=True):
        decided = own_p < KIND_LEVEL or (p_all < KIND_LEVEL and sign * t_all > 0)
        kind: Kind = "label" if sign > 0 else "position"
        named.append(Named(place, kind if decided else None, bool(pull > 0)))
    return tuple(named)


def by_size(
    habit: Habit | None, groups: Groups, search: Callable[[Groups], Search], bounded: bool
) -> dict[int, Habit | None]:
    """Number of options -> habit there, looked for in these questions alone; empty where it is the same for all.

    It differs where a place of the habit is absent with some number of options (even the upper end of its pull, two
    standard errors, is far below its strongest pull), or turned round (the other sign, as clearly), or where the habit
    explains the effects in part only.

    Args:
        habit: of all questions together.
        bounded: whether pulls are shares, so that avoiding one of n cannot move more than 1/(n - 1).
    """
    sizes = sorted({group.n for group in groups})
    asked = [n for n in sizes if sum(len(group.rows) for group in groups if group.n == n) >= FEWEST]
    if len(asked) < 2 or habit is None:
        return {}
    pulls, errors = (np.asarray([habit.by_size[n][part] for n in asked]) for part in (0, 1))
    factor = np.where(pulls < 0, np.asarray(asked)[:, None] - 1.0, 1.0) if bounded else np.ones_like(pulls)
    pulls, errors = pulls * factor, 2 * errors * factor
    least = _ABSENT * np.maximum(np.abs(habit.pulls), np.nan_to_num(np.abs(pulls) - errors).max(axis=0))
    differs = (np.abs(pulls) + errors < least) | ((pulls * habit.pulls < 0) & (np.abs(pulls) - errors > least))
    if habit.adequate and not differs.any():
        return {}
    each = {n: search([group for group in groups if group.n == n]).find() for n in asked}
    return each if all(own is None or (own.adequate and len(own.places) < 3) for own in each.values()) else {}


def by_subject(
    groups: Groups, subjects: Sequence[str], search: Callable[[Groups], Search]
) -> tuple[float, list[tuple[tuple[str, ...], Groups, Habit | None]]]:
    """Whether subjects differ in their habit, and subjects put together by it.

    The pull of each place, less its mean over questions of as many options, is compared between subjects (F test,
    Holm's correction for the places). Where subjects differ, those with the same strongest place are put together, a
    habit is looked for in each such set, and every subject goes to the habit, or none, that leaves least of its
    questions' slots unexplained.

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
    p = _differ(pulls, codes, whole.n_options[rows])
    if p >= LEVEL:
        return p, []

    def cells(members: Rows) -> Groups:
        mask = np.isin(np.arange(len(subjects)), rows[np.isin(codes, members)])
        parts = [replace(g, rows=g.rows[mask[g.rows]], values=g.values[mask[g.rows]]) for g in groups]
        return [part for part in parts if len(part.rows)]

    def unexplained(habit: Habit | None) -> Floats:
        """(S,) squares that a habit leaves of the slots of each subject's questions."""
        squares = []
        for group in groups:
            predicted = np.zeros(len(group.free))
            if habit and group.n in habit.by_size:
                predicted = _columns(group, habit.places) @ np.nan_to_num(habit.by_size[group.n][0])
            squares.append(((group.slots - predicted) ** 2).sum(axis=1))
        return np.asarray(np.bincount(codes, np.concatenate(squares)), np.float64)

    strongest = _strongest(pulls, codes, whole.margin)
    sets = sorted((np.flatnonzero(strongest == one) for one in np.unique(strongest)), key=len, reverse=True)
    habits = [*(habit for members in sets if (habit := search(cells(members)).find())), None]
    nearest = np.stack([unexplained(habit) for habit in habits]).argmin(axis=0)
    parts = [(np.flatnonzero(nearest == h), habit) for h, habit in enumerate(habits)]
    named = [(tuple(names[own].tolist()), cells(own), habit) for own, habit in parts if len(own)]
    # the most subjects first; of as many, those that fall back on something; those without a habit last
    return p, sorted(named, key=lambda s: (s[2] is None, -len(s[0]), s[2] and s[2].pulls.max() < 0))


def _differ(pulls: Floats, codes: Rows, sizes: Ints) -> float:
    """p-value of "the mean pull of every place is the same in all subjects", numbers of options taken out."""
    from scipy.special import fdtrc

    rest = pulls.copy()
    for n in np.unique(sizes):
        rest[sizes == n] -= pulls[sizes == n].mean(axis=0)
    members = (codes[:, None] == np.unique(codes)).astype(np.float64)
    between = ((members.T @ rest) ** 2 / members.sum(axis=0)[:, None]).sum(axis=0)
    within = (rest**2).sum(axis=0) - between
    degrees, left = members.shape[1] - 1, len(rest) - members.shape[1] - len(np.unique(sizes)) + 1
    if left < 1 or (between <= 1e-12).all():
        return 1.0
    return min(holm(fdtrc(degrees, left, between * left / (degrees * np.maximum(within, 1e-12))).tolist()))


def _strongest(pulls: Floats, codes: Rows, margin: float) -> Ints:
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
    return np.asarray(stands_out * (best + 1) * np.sign(pull), np.int64)[:, 0]
