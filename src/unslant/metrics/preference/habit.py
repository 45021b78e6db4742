"""Which places a habit is about: the fewest that explain what slots get, over the orders, beyond their content.

In the order set every label has its own position, so a *place* is both. Effects of places are those of a least-squares
regression, question by question, on indicators of the places. The effect of each place beyond those named is tested
(Student's t over questions, at 1 % after Holm's correction for all places and numbers of options looked at), and a
place is added until no other has an effect left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.preference.slots import Rows, SlotGroup, Unit, ordinal, student
from unslant.metrics.sampling import Sampling, holm

Kind = Literal["label", "position"]

LEVEL = 0.01
"""Level of all tests by which something is named, together: a false alarm costs more here than a habit missed."""
KIND_LEVEL = 0.05
"""Level of the tests between label and position, once there is a habit."""
PART = 0.3
"""Effects below this part of the largest need no explanation of their own."""
MOST = 3
"""Places of a habit, at most; and never more than half of all, so two of the usual four or five."""
FEWEST = 5
"""Questions with which anything is looked for."""
_CLEAR = 2.5
"""Standard errors by which the strongest place of one subject has to differ from 0."""
_ABSENT = 1 / 3
"""A place with less than this part of its strongest pull is not at work."""


class Place(NamedTuple):
    """A position and the label that usually appears there: 0 first, -1 last; None is the middle one, or the two."""

    rank: int | None

    def among(self, n: int) -> Floats:
        """(n,) 1 at this place of n; zeros where there is no such place."""
        at = np.arange(n)
        if self.rank is None:
            return np.asarray((at == (n - 1) // 2) | (at == n // 2), np.float64)
        return np.asarray(at == self.rank + n * (self.rank < 0), np.float64)

    def name(self, kind: Kind, labels: Sequence[str], sizes: Iterable[int]) -> str:
        """``A`` (of the standard ``labels``), ``the last label``, ``the second position``, for numbers of options."""
        sizes = set(sizes)
        if kind == "label" and (len(sizes) == 1 or (self.rank is not None and self.rank >= 0)):
            return " or ".join(labels[i] for i in np.flatnonzero(self.among(max(sizes))).tolist())
        if self.rank is None:
            return f"{'the' if kind == 'label' or all(n % 2 for n in sizes) else 'a'} middle {kind}"
        rank = {-1: "last", -2: "second to last"}.get(self.rank) or ordinal(self.rank)
        return f"the {rank} {kind}"


Places = tuple[Place, ...]


def places_of(sizes: Sequence[int]) -> Places:
    """Every place that questions of these numbers of options can have, each once, by its best name."""
    places: dict[tuple[float, ...], Place] = {}
    for place in map(Place, (0, -1, None, *range(1, max(sizes)), -2)):
        pulls = np.concatenate([place.among(n) - place.among(n).mean() for n in sizes])
        if pulls.any():
            places.setdefault(tuple(pulls), place)
    return tuple(places.values())


class Named(NamedTuple):
    """One place of a habit: its label or its position (``None``: cannot be known), taken or avoided."""

    place: Place
    kind: Kind | None
    taken: bool


Meaning = tuple[Named, ...]


@dataclass(frozen=True, eq=False)
class Habit:
    """The places taken or avoided, and (Q, places) the pull of each in each question; nan where there is no such place.

    It is not ``adequate`` where effects are left that no other set of the size allowed explains either.
    """

    places: Places
    terms: Floats
    adequate: bool = True

    @cached_property
    def pulls(self) -> Floats:
        """(places,) mean of the terms."""
        return _mean(self.terms)[0]


@dataclass(frozen=True)
class Search:
    """The search for a habit in some of Q questions.

    Attributes:
        excess: (Q, N) what each place got of the answers to a question beyond what content explains.
        unit: of the effects in ``groups``.
        margin: least mean pull that matters.
        fixed_labels: labels never move, so that only positions can be meant.
    """

    groups: Sequence[SlotGroup]
    sampling: Sampling
    excess: Floats
    unit: Unit
    margin: float
    fixed_labels: bool = False

    @cached_property
    def n_options(self) -> Ints:
        """(Q,) options of each question; 0 for those that are not looked at."""
        n_options = np.zeros(len(self.excess), np.int64)
        for group in self.groups:
            n_options[group.rows] = group.n
        return n_options

    @cached_property
    def sizes(self) -> dict[int, Bools]:
        """Number of options -> (Q,) its questions."""
        return {n: self.n_options == n for n in sorted({group.n for group in self.groups})}

    @cached_property
    def places(self) -> Places:
        return places_of([*self.sizes] or [1])

    def among(self, mask: Bools) -> Search:
        """The search in some of the questions."""
        return replace(self, groups=[group.only(mask) for group in self.groups if mask[group.rows].any()])

    def find(self) -> Habit:
        """The fewest places that explain the effects; none where all places get the same, or no choice goes that way.

        All sets of one size are fitted: a step of a stepwise selection cannot be undone, and of four options, B and C
        taken look at first like A avoided. Of sets that fit about as well, one that is taken is named.
        """
        nothing = best = self._habit(())
        if np.count_nonzero(self.n_options) < FEWEST:
            return nothing
        # how many of the places shown each covers: the middle of four options covers two
        covers = {place: round(max(place.among(n).sum() for n in self.sizes)) for place in self.places}
        for size in range(min(MOST, max(1, max(self.sizes) // 2)) + 1):
            sets = (places for k in range(size + 1) for places in combinations(self.places, k))
            habits = (self._habit(places) for places in sets if sum(map(covers.__getitem__, places)) == size)
            fits = {habit: float(self._explained(habit).sum()) for habit in habits}
            best = replace(max(fits, key=fits.__getitem__), adequate=False)
            near = [habit for habit in fits if fits[habit] >= (1 - PART**2) * max(fits.values())]
            # A or C, rather than not B and not D
            near.sort(key=lambda one: ((one.pulls < 0).sum(), len(one.places), -fits[one]))
            if adequate := next((habit for habit in near if self._is_all(habit)), None):
                best = adequate
                break
        return best if self.moved(best) > 0 else nothing

    def moved(self, habit: Habit) -> float:
        """Answers that its places got over the orders beyond content, less those that places avoided lost."""
        moved = 0.0
        for n, part in self.sizes.items():
            signs = np.nan_to_num(np.sign(_mean(habit.terms[part])[0]))
            moved += float((self.excess[part, :n] @ _columns(habit.places, n) @ signs).sum())
        return moved

    def _is_all(self, habit: Habit) -> bool:
        """Whether no other place gets more or less than the others, by chance and by what matters."""
        terms = np.column_stack([self._habit((*habit.places, other)).terms[:, -1] for other in self.places])
        parts = [*self.sizes.values()]
        largest = [np.abs(_mean(habit.terms[part])[0]).max(initial=0.0) for part in parts]
        least = max(self.margin, PART * float(np.nan_to_num(largest).max()))
        p_values, matters = [], []
        # each number of options by itself, too: an effect in one of them alone is diluted in the mean of all
        for part in [self.n_options > 0, *(parts if len(parts) > 1 else [])]:
            if part.sum() < FEWEST:
                continue
            counts = np.isfinite(terms[part]).sum(axis=0)
            means = np.nan_to_num(terms[part]).sum(axis=0) / np.maximum(1, counts)
            _, p = self.sampling.student(np.nan_to_num(terms), part)
            # n answers of k options agree on one place with probability k^(1 - n), even if they never vary
            logs = np.log(self.n_options[part])
            p = np.maximum(p, np.exp(logs.max() - logs.sum()))
            p_values += np.where(counts > 0, p, np.nan).tolist()
            matters += (np.abs(means) * np.sqrt(counts / np.count_nonzero(self.n_options)) >= least).tolist()
        return not any(p < LEVEL and big for p, big in zip(holm(p_values), matters, strict=True))

    def _habit(self, places: Places) -> Habit:
        """A regression of the slots on places."""
        terms = np.full((len(self.excess), len(places)), np.nan)
        for group in self.groups:
            terms[group.rows] = _regressed(group.slots, _slots(places, group))
        return Habit(places, terms)

    def _explained(self, habit: Habit) -> Floats:
        """(Q,) squares of the slots of each question that a habit explains; negative where it misleads."""
        squares = np.zeros(len(self.excess))
        for group in self.groups:
            pulls = _mean(habit.terms[self.sizes[group.n]])[0]
            # where two places are one, both pull
            pulls = np.nan_to_num(np.where(np.isnan(pulls), habit.pulls, pulls))
            fitted = _slots(habit.places, group) @ pulls
            squares[group.rows] = 2 * group.slots @ fitted - fitted @ fitted
        return squares

    def meaning(self, habit: Habit) -> Meaning:
        """Of each place of a habit, whether its label or its position is meant, as far as the pages show it.

        With labels in other places, a pull moves with the label or stays at the position. The difference of label and
        position effects is regressed on the places: a pull W of a label is W there, one of a position -W. Its sign is
        tested by Student's t, with Holm's correction for the places; a place too weak to decide alone goes with all
        places together, weighted by their pulls, if it points the same way. Without relabelled pages the kind stays
        unknown.
        """
        terms = np.full((len(self.excess), len(habit.places) + 1), np.nan)
        for group in self.groups:
            columns = _columns(habit.places, group.n)[group.free]
            apart = (group.labels - group.positions)[:, group.free]
            values = _regressed(apart - apart.mean(axis=1, keepdims=True), columns - columns.mean(axis=0))
            terms[group.rows] = np.column_stack([values * np.sign(habit.pulls), values @ habit.pulls])
        *single, (t_all, p_all) = [student(self.sampling, term) for term in terms.T]
        named = []
        for place, pull, (t, _), p in zip(habit.places, habit.pulls, single, holm([p for _, p in single]), strict=True):
            kind: Kind = "label" if t > 0 and not self.fixed_labels else "position"
            decided = self.fixed_labels or p < KIND_LEVEL or (p_all < KIND_LEVEL and t * t_all > 0)
            named.append(Named(place, kind if decided else None, bool(pull > 0)))
        return tuple(named)

    def by_size(self, habit: Habit) -> dict[int, Meaning]:
        """Number of options -> habit there, found in these questions alone; empty where it is the same for all.

        It differs where a place of the habit is absent with some number of options (even the upper end of its pull, two
        standard errors, is far below its strongest pull), or reversed (the other sign, as clearly), or where the habit
        explains the effects in part only.
        """
        parts = {n: part for n, part in self.sizes.items() if part.sum() >= FEWEST}
        if len(parts) < 2 or not habit.places:
            return {}
        pulls, errors = np.stack([_mean(habit.terms[part]) for part in parts.values()], axis=1)
        # of shares, avoiding one of n cannot move more than 1/(n - 1)
        factor = np.where((self.unit == "shares") & (pulls < 0), np.asarray([*parts])[:, None] - 1.0, 1.0)
        pulls, errors = pulls * factor, 2 * errors * factor
        least = _ABSENT * np.maximum(np.abs(habit.pulls), np.nan_to_num(np.abs(pulls) - errors).max(axis=0))
        absent, reverse = np.abs(pulls) + errors < least, pulls * habit.pulls < 0
        if habit.adequate and not (absent | (reverse & (np.abs(pulls) - errors > least))).any():
            return {}
        searches = [self.among(part) for part in parts.values()]
        habits = [search.find() for search in searches]
        if any(not one.adequate or len(one.places) > 2 for one in habits):
            return {}
        return {n: search.meaning(one) for n, search, one in zip(parts, searches, habits, strict=True)}

    def by_subject(self, subjects: Sequence[str]) -> tuple[float, dict[str, Meaning]]:
        """p-value of "subjects do not differ in their habit" (nan for fewer than two), and the habit of each.

        Where the pull of some place differs (F test), subjects with the same strongest place are put together, a habit
        is looked for in each such set, and every subject goes to the habit, or none, that explains most of its
        questions' slots. Those of the most common habit come first. Empty where subjects do not differ.

        Args:
            subjects: (Q,) of all questions of the scores.
        """
        rows = np.flatnonzero(self.n_options)
        names, codes = np.unique(np.asarray(subjects, dtype=str)[rows], return_inverse=True)
        if len(names) < 2 or len(rows) < 2 * FEWEST:
            return math.nan, {}
        pulls = np.column_stack([np.nan_to_num(self._habit((place,)).terms[rows, 0]) for place in self.places])
        p, strongest = _compared(pulls, codes, self.n_options[rows], self.margin)
        if p >= LEVEL:
            return p, {}

        def among(members: Bools) -> Search:
            return self.among(np.isin(np.arange(len(subjects)), rows[members[codes]]))

        clusters = sorted((strongest == one for one in np.unique(strongest)), key=np.count_nonzero, reverse=True)
        found = [habit for members in clusters if (habit := among(members).find()).places]
        habits = [*found, self.among(np.zeros(len(subjects), bool))._habit(())]
        squares = np.stack([self._explained(habit)[rows] for habit in habits], axis=1)
        nearest = ((codes == np.arange(len(names))[:, None]) @ squares).argmax(axis=1)
        sets = [(nearest == h, habit) for h, habit in enumerate(habits) if (nearest == h).any()]
        parts = [(names[members].tolist(), among(members).meaning(habit)) for members, habit in sets]
        # the most subjects first; of as many, those that fall back on something; those without a habit last
        parts.sort(key=lambda part: (not part[1], -len(part[0]), not any(one.taken for one in part[1])))
        return p, {name: meaning for members, meaning in parts for name in members}


def _columns(places: Places, n: int) -> Floats:
    """(n, P) which of n options each place is."""
    return np.asarray([place.among(n) for place in places]).reshape(-1, n).T


def _slots(places: Places, group: SlotGroup) -> Floats:
    """(M, P) slots of a group that a pull of 1 of each place makes."""
    return group.resolved @ _columns(places, group.n)[group.free]


def _regressed(values: Floats, columns: Floats) -> Floats:
    """(Q, K) coefficients of (Q, M) values on (M, K) columns, by least squares; nan for those not determined."""
    inverse = np.linalg.pinv(columns, rcond=1e-9)
    coefficients: Floats = values @ inverse.T
    coefficients[:, np.abs(inverse @ columns - np.eye(columns.shape[1])).max(axis=1, initial=0.0) > 1e-6] = np.nan
    return coefficients


def _mean(pulls: Floats) -> tuple[Floats, Floats]:
    """Means and their standard errors down the columns, of what is known; nan where nothing is."""
    finite = np.isfinite(pulls)
    counts = np.where(finite.any(axis=0), finite.sum(axis=0), np.nan)
    means = np.nan_to_num(pulls).sum(axis=0) / counts
    squares = np.where(finite, (pulls - means) ** 2, 0.0).sum(axis=0)
    return means, np.sqrt(squares / np.maximum(1, counts - 1) / counts)


def _compared(pulls: Floats, codes: Rows, sizes: Ints, margin: float) -> tuple[float, Ints]:
    """F test of (Q, P) pulls of places between S subjects, with numbers of options taken out (Holm's correction).

    Returns:
        p-value of "the mean pull of every place is the same in all subjects"; and (S,) the place whose pull in a
        subject is clearest: counted from 1, negative if avoided, 0 for none.
    """
    from scipy.special import fdtrc

    rest = pulls.copy()
    for n in np.unique(sizes):
        rest[sizes == n] -= pulls[sizes == n].mean(axis=0)
    counts = np.bincount(codes)[:, None]
    members = (codes[:, None] == np.arange(len(counts))).astype(np.float64)
    between = ((members.T @ rest) ** 2 / counts).sum(axis=0)
    within = np.maximum((rest**2).sum(axis=0) - between, 1e-12)
    degrees, left = len(counts) - 1, len(rest) - len(counts) - len(np.unique(sizes)) + 1
    if left < 1 or (between <= 1e-12).all():
        return 1.0, np.zeros(len(counts), np.int64)
    means = members.T @ pulls / counts
    clear = means / np.sqrt(np.maximum(((pulls - means[codes]) ** 2).sum(axis=0), 1e-12) / left / counts)
    # where a place that is taken is nearly as clear as one that is avoided, it is the one
    best = np.where(clear > 0, 1.01 * clear, -clear).argmax(axis=1)[:, None]
    pull, errors = (np.take_along_axis(values, best, axis=1) for values in (means, clear))
    differs = (counts > 1) & (np.abs(pull) > margin) & (np.abs(errors) > _CLEAR)
    strongest = np.asarray(differs * (best + 1) * np.sign(pull), np.int64)[:, 0]
    return min(holm(fdtrc(degrees, left, between * left / (degrees * within)).tolist())), strongest
