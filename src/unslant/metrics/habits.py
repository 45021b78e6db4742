"""Which places a habit is about: the fewest that explain what slots get, over the orders, beyond their content.

Over the orders every label stands at its own position, so that a place is both; which of the two it is, other pages
tell (:mod:`unslant.metrics.label_or_position`). Only the orders are searched: there the pages look as usual, while
labels out of their sequence can be unlikely in themselves.

A set of places explains the effects if, their own pulls allowed for (each for every number of options), no other place
still gets more or less than the rest. Of the smallest such sets the one that fits best is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unslant.arrays import Bools, Floats
from unslant.metrics.sampling import Sampling
from unslant.metrics.slot_effects import SlotGroup, Weighing

LEVEL = 0.01
"""Level of every test by which something is named, for all places together: false alarms are dear here."""
DOUBT = 2.0
"""A set is held to fit worse than another only if this many standard errors say so."""
PART = 0.25
"""What gets less than this part of the greatest pull needs no explanation of its own."""
MOST = 3
"""Places a habit is made of, at most; never more than half of all."""
_TRIED, _FAR = 15, 25.0
"""Of the sets of one size, so many that fit best are tried, and none that fits worse by so much (chi-squared)."""
FEWEST = 5
"""Questions with which anything is looked for."""


@dataclass(frozen=True, order=True)
class Place:
    """A position and the label that usually stands there.

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

    def pulls(self, n: int) -> Floats:
        """(n,) effect of a pull of 1, summing to zero."""
        own = self.among(n)
        return np.asarray(own - own.mean(), np.float64)


def places_of(sizes: Sequence[int]) -> list[Place]:
    """Every place that questions of these numbers of options can have, each once, by its best name."""
    found: dict[tuple[object, ...], Place] = {}
    starts = [Place("start", rank) for rank in range(1, max(sizes))]
    for place in (Place(), Place("end"), Place("middle"), *starts, Place("end", 1)):
        if any(place.pulls(n).any() for n in sizes):
            found.setdefault(tuple(tuple(place.pulls(n)) for n in sizes), place)
    return list(found.values())


def order_columns(groups: Sequence[SlotGroup], places: Sequence[Place]) -> list[Floats]:
    """For each group of cells over the orders, (cells, places) what a pull of 1 makes of them."""
    return [g.design[:, : g.n] @ np.stack([place.pulls(g.n) for place in places], axis=1) for g in groups]


def over_orders(groups: Sequence[SlotGroup]) -> tuple[SlotGroup, ...]:
    """The groups with the cells of their order sets alone."""
    return tuple(
        replace(g, values=g.values[:, g.pages == 0], design=g.design[g.pages == 0], pages=g.pages[g.pages == 0])
        for g in groups
    )


@dataclass(frozen=True)
class Habit:
    """Places that explain the effects, each with its pull.

    Attributes:
        places: what is taken or avoided.
        pulls: number of options -> (places,) pull of each beyond the places that are no part of the habit, in the unit
            of the cells.
        errors: number of options -> (places,) standard errors.
        counts: number of options -> questions.
        rivals: other sets as small that explain the effects as well.
        same: another set as small that says the same: not B and not D, where A or C are taken of four.
        adequate: whether the set explains them; if not, none of up to ``MOST`` places does.
    """

    places: tuple[Place, ...]
    pulls: Mapping[int, Floats]
    errors: Mapping[int, Floats]
    counts: Mapping[int, int]
    rivals: tuple[tuple[Place, ...], ...] = ()
    same: tuple[Place, ...] = ()
    adequate: bool = True

    def sizes(self, i: int) -> list[int]:
        """Numbers of options that have a place."""
        return [n for n in self.pulls if self.places[i].pulls(n).any()]

    def pull(self, i: int) -> float:
        """Mean pull of one place over the questions that have it."""
        there = self.sizes(i)
        return float(np.average([self.pulls[n][i] for n in there], weights=[self.counts[n] for n in there]))

    @property
    def taken(self) -> tuple[bool, ...]:
        """Of each place, whether it is taken (or avoided), on average."""
        return tuple(self.pull(i) > 0 for i in range(len(self.places)))


@dataclass(frozen=True)
class _Moments:
    """Products of the places' columns with each other, (sizes, places, places), with the means, and of the means."""

    weighing: Weighing
    gram: Floats
    right: Floats
    square: float


class Search:
    """The search for a habit in some questions.

    Args:
        groups: their cells; only those of the orders are looked at.
        sampling: how all questions of the scores came together.
        excess: (Q, N) what each place got of the answers to a question beyond what content explains.
        margin: least pull that is looked for, in the unit of the cells; root mean square over the questions.
    """

    def __init__(self, groups: Sequence[SlotGroup], sampling: Sampling, excess: Floats, margin: float) -> None:
        self.groups, self.sampling, self.excess, self.margin = over_orders(groups), sampling, excess, margin
        self.size = size = len(excess)
        self.sizes = sorted({group.n for group in groups})
        self.counts = {n: sum(len(g.rows) for g in groups if g.n == n) for n in self.sizes}
        self.places = places_of(self.sizes)
        self.columns = order_columns(self.groups, self.places)
        self.means = [group.values.mean(axis=0) for group in self.groups]
        self.n_options = np.zeros(size)
        for group in groups:
            self.n_options[group.rows] = group.n
        largest = max(float(np.abs(mean).max()) for mean in self.means)
        self.strict = self._moments(Weighing.of(self.groups, margin / 10))
        self.rough = self._moments(Weighing.of(self.groups, max(margin / 10, PART / 3 * largest)))

    def find(self) -> Habit | None:
        """The habit; ``None`` where no place gets more or less than the others."""
        habit = self._find()
        return habit if habit and self._moves(habit) else None

    def _find(self) -> Habit | None:
        if sum(self.counts.values()) < FEWEST or self._explains((), self.strict):
            return None
        sets: list[tuple[float, tuple[int, ...]]] = []
        for size in range(1, min(MOST, max(1, max(self.sizes) // 2)) + 1):
            chosen_sets = list(self._sets(size))
            sets = sorted(zip(self._misfits(chosen_sets), chosen_sets, strict=True)) or sets
            adequate: list[tuple[float, tuple[int, ...]]] = []
            for misfit, chosen in sets[:_TRIED]:
                if adequate and misfit > adequate[0][0] + _FAR:
                    break
                if self._explains(chosen, self.rough):
                    adequate.append((misfit, chosen))
            if adequate:
                return self._preferred(adequate)
        limit = 1.25 * max(sets[0][0], 1e-9)
        near = [chosen for misfit, chosen in sets if misfit <= limit]
        return self._habit(max(near, key=self._positive), adequate=False)

    def explained_by(self, habit: Habit) -> bool:
        """Whether the places of another habit, taken and avoided as there, explain these effects."""
        chosen = tuple(self.places.index(place) for place in habit.places if place in self.places)
        if not self._explains(chosen, self.rough):
            return False
        said = dict(zip(habit.places, habit.taken, strict=True))
        own = self._habit(chosen)
        return all(said[place] == taken for place, taken in zip(own.places, own.taken, strict=True))

    def _sets(self, size: int) -> Iterable[tuple[int, ...]]:
        covers = [self._covers(place) for place in self.places]
        for count in range(1, size + 1):
            for chosen in itertools.combinations(range(len(self.places)), count):
                if sum(covers[i] for i in chosen) == size:
                    yield chosen

    def _covers(self, place: Place) -> int:
        """How many of the shown places one place is: two for the middle of even numbers of options."""
        there = {n: place.among(n).sum() for n in self.sizes if place.pulls(n).any()}
        return round(float(np.average(list(there.values()), weights=[self.counts[n] for n in there])))

    def _moments(self, weighing: Weighing) -> _Moments:
        k = len(self.places)
        found = _Moments(weighing, np.zeros((len(self.sizes), k, k)), np.zeros((len(self.sizes), k)), 0.0)
        square = 0.0
        for (group, weights), columns, mean in zip(weighing, self.columns, self.means, strict=True):
            at, weighed = self.sizes.index(group.n), columns.T * weights
            found.gram[at] += weighed @ columns
            found.right[at] += weighed @ mean
            square += float(weights @ mean**2)
        return replace(found, square=square)

    def _solve(self, chosen: Sequence[int], moments: _Moments) -> tuple[Floats, Floats]:
        """(sizes, places) pulls of a set, and the inverse of its normal matrix for each number of options."""
        own = list(chosen)
        inverse = np.asarray(np.linalg.pinv(moments.gram[:, own][:, :, own], rcond=1e-9, hermitian=True), np.float64)
        return (inverse @ moments.right[:, own, None])[..., 0], inverse

    def _misfits(self, sets: Sequence[tuple[int, ...]]) -> list[float]:
        """Weighted sum of squares that each set leaves."""
        found: dict[tuple[int, ...], float] = {}
        for count in {len(chosen) for chosen in sets}:
            own = np.asarray([chosen for chosen in sets if len(chosen) == count])
            inverse = np.linalg.pinv(self.rough.gram[:, own[:, :, None], own[:, None, :]], rcond=1e-9, hermitian=True)
            right = self.rough.right[:, own]
            explained = np.einsum("nsi,nsij,nsj->s", right, inverse, right)
            found.update(zip(map(tuple, own.tolist()), (self.rough.square - explained).tolist(), strict=True))
        return [found[chosen] for chosen in sets]

    def _scores(self, chosen: Sequence[int], moments: _Moments) -> tuple[Floats, Floats, Floats]:
        """What each question says for each place beyond a set: (Q, places), and its norm and error, (sizes, places)."""
        _, inverse = self._solve(chosen, moments)
        terms = np.zeros((self.size, len(self.places)))
        norms, errors = (np.zeros((len(self.sizes), len(self.places))) for _ in range(2))
        for (group, weights), columns in zip(moments.weighing, self.columns, strict=True):
            at = self.sizes.index(group.n)
            beyond = columns - columns[:, list(chosen)] @ (inverse[at] @ moments.gram[at, list(chosen)])
            weighed = weights[:, None] * beyond
            terms[group.rows] = group.values @ weighed / len(group.rows)
            norms[at] += (weighed * beyond).sum(axis=0)
            errors[at] += (weighed**2).sum(axis=0) * moments.weighing.error**2
        return terms, norms, errors

    def _tests(self, chosen: Sequence[int], moments: _Moments) -> tuple[Floats, Floats, Floats]:
        """t, p and weight of every place beyond a set: (1 + sizes, places), all questions first, then by size.

        The weight is the root mean square of its pull over all questions, 0 in those that do not have it: what is at
        work in few of them matters the less.
        """
        terms, norms, errors = self._scores(chosen, moments)
        testable = norms > 1e-6 * norms.max()
        counts = np.asarray(list(self.counts.values()))[:, None]
        pulls = np.stack([terms[self.n_options == n].sum(axis=0) for n in self.sizes])
        pulls = np.divide(pulls, norms, out=np.zeros_like(norms), where=testable)
        having = np.maximum(1, (counts * testable).sum(axis=0))
        mean = np.abs((counts * pulls).sum(axis=0)) / having
        weight = np.concatenate(
            [[mean * np.sqrt(having / counts.sum())], np.abs(pulls) * np.sqrt(counts / counts.sum())]
        )
        sets = [(self.n_options > 0, errors.sum(axis=0), testable.any(axis=0))]
        if len(self.sizes) > 1:
            sets += [(self.n_options == n, errors[i], testable[i]) for i, n in enumerate(self.sizes)]
        found = [self._test(terms, *part) for part in sets]
        return np.stack([t for t, _ in found]), np.stack([p for _, p in found]), weight[: len(sets)]

    def _test(self, terms: Floats, kept: Bools, errors: Floats, testable: Bools) -> tuple[Floats, Floats]:
        if kept.sum() < FEWEST:
            return np.zeros_like(errors), np.full_like(errors, np.nan)
        t, p = self.sampling.student(terms, kept, errors)
        # so many questions of n places each can agree on one of them by chance, whatever the variance between them
        log_n = np.log(self.n_options[kept])
        p = np.maximum(p, float(np.exp(log_n.max() - log_n.sum())))
        return np.where(testable, t, 0.0), np.where(testable, p, np.nan)

    def _explains(self, chosen: Sequence[int], moments: _Moments) -> bool:
        """Whether no place beyond a set gets more or less than the others, by chance and by what matters."""
        _, p, weight = self._tests(chosen, moments)
        most = float(np.abs(self._solve(chosen, moments)[0]).max()) if chosen else 0.0
        tested = np.isfinite(p)
        matters = weight >= max(self.margin, PART * most)
        return not (tested & (np.nan_to_num(p) * tested.sum() < LEVEL) & matters).any()

    def _moves(self, habit: Habit) -> bool:
        """Whether choices go the same way: a pull that moves none is no preference."""
        moved = 0.0
        for group in self.groups:
            signs = np.sign(habit.pulls[group.n])
            there = np.stack([place.among(group.n) for place in habit.places])
            moved += float((self.excess[group.rows, : group.n] @ (signs @ there)).sum())
        return moved > 0

    def _preferred(self, adequate: Sequence[tuple[float, tuple[int, ...]]]) -> Habit:
        """The best of equally small sets, and those that fit as well and mean something else.

        Of two that say the same in other words, such as A or C against not B and not D, the one that is taken is named.
        """
        best = adequate[0][1]
        effects = {chosen: self._effect(chosen) for _, chosen in adequate}
        same = [c for _, c in adequate if self._alike(effects[c], effects[best])]
        same.sort(key=lambda c: (-self._positive(c), sum(c)))
        best = same[0]
        rivals: list[tuple[int, ...]] = []
        for _, chosen in adequate:
            if chosen in same or any(self._alike(effects[chosen], effects[r]) for r in rivals):
                continue
            t, _, _ = self._tests(chosen, self.rough)
            if np.abs(t[0, list(best)]).max() < DOUBT:
                rivals.append(chosen)
        return self._habit(best, rivals, same[-1] if len(same) > 1 else ())

    def _effect(self, chosen: Sequence[int]) -> Floats:
        """What a set says of every place, all numbers of options in one row."""
        pulls, _ = self._solve(chosen, self.rough)
        parts = [
            np.sqrt(self.counts[n]) * (own @ np.stack([self.places[i].pulls(n) for i in chosen]))
            for n, own in zip(self.sizes, pulls, strict=True)
        ]
        return np.concatenate(parts)

    @staticmethod
    def _alike(a: Floats, b: Floats) -> bool:
        return float(np.linalg.norm(a - b)) <= PART * float(np.linalg.norm(b))

    def _positive(self, chosen: Sequence[int]) -> int:
        return sum(self._habit(tuple(chosen)).taken) - len(chosen)

    def _habit(
        self,
        chosen: tuple[int, ...],
        rivals: Sequence[tuple[int, ...]] = (),
        same: tuple[int, ...] = (),
        adequate: bool = True,
    ) -> Habit:
        pulls, inverse = self._solve(chosen, self.rough)
        return Habit(
            tuple(self.places[i] for i in chosen),
            dict(zip(self.sizes, pulls, strict=True)),
            dict(zip(self.sizes, np.sqrt(np.diagonal(inverse, axis1=1, axis2=2)), strict=True)),
            self.counts,
            tuple(tuple(self.places[i] for i in rival) for rival in rivals),
            tuple(self.places[i] for i in same),
            adequate,
        )
