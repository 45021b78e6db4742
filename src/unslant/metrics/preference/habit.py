"""Which places a habit is about: the fewest that explain what slots get, over the orders, beyond their content.

In the order set every label stands at its own position, so a *place* is both. The slot effects of question q are
regressed on indicators of a set of places,

    slots_q = sum over places of pull_q(place) x (1 at that place, centred) + rest,

by least squares, question by question. A set explains the effects if no other place has a mean pull beyond it
(Student's t over questions, at 1 % after Holm's correction for all places and numbers of options looked at). Pulls
below a margin, or far below the largest, are not held against it. The smallest set that explains the effects is named.

All sets of a size are compared, because a step of a stepwise selection cannot be undone: of four options, B and C taken
look at first like A avoided. There are few sets, because a habit names at most half the places.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.preference.cells import SlotGroup
from unslant.metrics.preference.places import Kind, Meaning, Named, Place, places_of
from unslant.metrics.sampling import Sampling, holm

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
Set = tuple[int, ...]


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

    def __init__(self, groups: Sequence[SlotGroup], sampling: Sampling, excess: Floats, margin: float) -> None:
        self.groups, self.sampling, self.excess, self.margin = groups, sampling, excess, margin
        self.n_options = np.zeros(len(excess), np.int64)
        for group in groups:
            self.n_options[group.rows] = group.n
        self.sizes = sorted({group.n for group in groups})
        self.places = places_of(self.sizes)
        self.columns = [group.columns(self.places) for group in groups]

    def find(self) -> Habit | None:
        """The habit; ``None`` where no place gets more or less than the others, or no choice goes that way."""
        if (self.n_options > 0).sum() < FEWEST or self.explains(()):
            return None
        habit = self._smallest()
        moved = 0.0
        for g in self.groups:
            among = np.stack([place.among(g.n) for place in habit.places], axis=1)
            signs = np.nan_to_num(np.sign(habit.by_size[g.n][0]))
            moved += float((self.excess[g.rows, : g.n] @ among @ signs).sum())
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
        ranked: list[tuple[float, Set]] = []
        for size in range(1, min(MOST, max(1, max(self.sizes) // 2)) + 1):
            # the more a least-squares fit explains, the less it leaves
            fits = [(float((self._explained(chosen) ** 2).sum()), chosen) for chosen in self._sets(size)]
            ranked = sorted(fits, reverse=True) or ranked
            adequate = [chosen for _, chosen in ranked[:_TRIED] if self.explains(chosen)]
            if adequate:
                return self._best(adequate)
        return self._habit(ranked[0][1], adequate=False)

    def _sets(self, size: int) -> list[Set]:
        """Sets of places that cover so many of those shown: the middle of four options covers two."""
        covers = [round(max(place.among(n).sum() for n in self.sizes)) for place in self.places]
        every = (c for k in range(1, size + 1) for c in itertools.combinations(range(len(covers)), k))
        return [chosen for chosen in every if sum(covers[i] for i in chosen) == size]

    def _explained(self, chosen: Set) -> Floats:
        """What a set says of the mean slots, one group of questions after another, weighted by their number."""
        fits = []
        for group, columns in zip(self.groups, self.columns, strict=True):
            own = columns[:, list(chosen)]
            fits.append(len(group.rows) ** 0.5 * (own @ (np.linalg.pinv(own) @ group.slots.mean(axis=0))))
        return np.concatenate(fits)

    def _best(self, adequate: Sequence[Set]) -> Habit:
        """The best of equally small sets, and those that fit as well and mean something else.

        Of two that say the same, such as A or C against not B and not D, the one that is taken is named.
        """
        says = {chosen: self._explained(chosen) for chosen in adequate}

        def alike(a: Set, b: Set) -> bool:
            return float(np.linalg.norm(says[a] - says[b])) <= PART * float(np.linalg.norm(says[b]))

        best = min(
            (c for c in adequate if alike(c, adequate[0])), key=lambda c: ((self._pulls(c)[0] < 0).sum(), sum(c))
        )
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
            pulls[group.rows] = regressed(group.slots, columns[:, list(chosen)])
        return _mean(pulls)[0], {n: _mean(pulls[self.n_options == n]) for n in self.sizes}

    def _habit(self, chosen: Set, rivals: Sequence[Set] = (), adequate: bool = True) -> Habit:
        places, *others = (tuple(self.places[i] for i in one) for one in (chosen, *rivals))
        return Habit(places, *self._pulls(chosen), tuple(others), adequate)


def regressed(values: Floats, columns: Floats) -> Floats:
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


def meaning_of(habit: Habit | None, groups: Sequence[SlotGroup], apart: Floats, sampling: Sampling) -> Meaning:
    """Of each place of a habit, whether its label or its position is meant, as far as the pages show it.

    With labels in other places, a pull moves with the label or stays at the position. The difference of label and
    position effects is regressed on the places, question by question: a pull W of a label is W there, one of a position
    -W. Its sign is tested by Student's t, with Holm's correction for the places. A page without relabelled positions
    determines no difference, so the kind stays unknown.

    Args:
        apart: (Q, N) label effects minus position effects, see :func:`~unslant.metrics.preference.cells.effects`.
    """
    if habit is None:
        return ()
    terms = np.full((len(apart), len(habit.places)), np.nan)
    for group in groups:
        columns = np.stack([place.among(group.n) for place in habit.places], axis=1)[group.free]
        differences = apart[np.ix_(group.rows, group.free)]
        centred = differences - differences.mean(axis=1, keepdims=True)
        terms[group.rows] = regressed(centred, columns - columns.mean(axis=0))
    tests = []
    for term in (terms * np.sign(habit.pulls)).T:
        kept = np.isfinite(term)
        t, p = sampling.student(np.nan_to_num(term)[:, None], kept) if kept.sum() > 1 else ([0.0], [np.nan])
        tests.append((float(t[0]), float(p[0])))
    kinds: list[Kind | None] = [
        ("label" if t > 0 else "position") if p < KIND_LEVEL else None
        for (t, _), p in zip(tests, holm([p for _, p in tests]), strict=True)
    ]
    return tuple(Named(*one) for one in zip(habit.places, kinds, (habit.pulls > 0).tolist(), strict=True))
