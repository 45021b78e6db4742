"""Which labels and positions a habit is about: the fewest that explain what slots get beyond their content.

A set of slots explains the effects if, their own pulls allowed for (each for every number of options), no other slot
still gets more or less than the rest. Of the smallest such sets the one that fits best is taken; another that fits as
well, and means something else, leaves the habit open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.metrics.sampling import Sampling
from unslant.metrics.slot_effects import SlotGroup, Weighing

Kind = Literal["label", "position"]

LEVEL = 0.01
"""Level of every test by which something is named, for all slots together: false alarms are dear here."""
DOUBT = 2.0
"""A set is held to fit worse than another only if this many standard errors say so."""
PART = 0.25
"""What gets less than this part of the greatest pull needs no explanation of its own."""
MOST = 3
"""Slots a habit is made of, at most; never more than half of all."""
_TRIED, _FAR = 15, 25.0
"""Of the sets of one size, so many that fit best are tried, and none that fits worse by so much (chi-squared)."""
FEWEST = 5
"""Questions with which anything is looked for."""


@dataclass(frozen=True, order=True)
class Slot:
    """A label of the standard sequence, or a position.

    Attributes:
        kind: which of the two.
        origin: whether ``place`` counts from the first or the last; ``middle`` is the middle one, or the middle two.
        place: 0 = the first of all.
    """

    kind: Kind
    origin: Literal["start", "end", "middle"] = "start"
    place: int = 0

    def among(self, n: int) -> Floats:
        """(n,) 1 where this is, among n labels or positions; zeros where there is no such one."""
        at = np.arange(n)
        if self.origin == "middle":
            return np.asarray((at == (n - 1) // 2) | (at == n // 2), np.float64)
        return np.asarray(at == (self.place if self.origin == "start" else n - 1 - self.place), np.float64)

    def pulls(self, n: int) -> Floats:
        """(2n,) effect of labels, then of positions, each summing to zero."""
        own = self.among(n)
        own = own - own.mean()
        parts = [own, np.zeros(n)] if self.kind == "label" else [np.zeros(n), own]
        return np.asarray(np.concatenate(parts), np.float64)


def slots_of(sizes: Sequence[int]) -> list[Slot]:
    """Every slot that questions of these numbers of options can have, each once, by its best name."""
    widest = max(sizes)
    starts = [("start", i) for i in range(widest)]
    ends: list[tuple[str, int]] = [("end", 0), ("end", 1)]
    orders = {
        "label": [*starts, ends[0], ("middle", 0)],
        "position": [starts[0], ends[0], ("middle", 0), *starts[1:], ends[1]],
    }
    found: dict[tuple[object, ...], Slot] = {}
    for kind, names in orders.items():
        for origin, place in names:
            slot = Slot(kind, origin, place)  # type: ignore[arg-type]
            shape = (kind, *(tuple(slot.pulls(n)) for n in sizes))
            if any(slot.pulls(n).any() for n in sizes):
                found.setdefault(shape, slot)
    return list(found.values())


def slot_columns(groups: Sequence[SlotGroup]) -> tuple[list[Slot], list[Floats]]:
    """Every slot of these questions, and for each group (cells, slots) what a pull of 1 makes of its cells."""
    slots = slots_of(sorted({group.n for group in groups}))
    return slots, [group.design @ np.stack([slot.pulls(group.n) for slot in slots], axis=1) for group in groups]


Meaning = frozenset[tuple[Slot, bool]]
"""Slots, each with whether it is taken (or avoided)."""


@dataclass(frozen=True)
class Habit:
    """Slots that explain the effects, each with its pull.

    Attributes:
        slots: what is taken or avoided.
        pulls: number of options -> (slots,) pull of each beyond the slots that are no part of the habit, in the unit of
            the cells.
        errors: number of options -> (slots,) standard errors.
        counts: number of options -> questions.
        rivals: other sets as small that explain the effects as well.
        same: another set as small that says the same: not B and not D, where A or C are taken of four.
        adequate: whether the set explains them; if not, none of up to ``MOST`` slots does.
    """

    slots: tuple[Slot, ...]
    pulls: Mapping[int, Floats]
    errors: Mapping[int, Floats]
    counts: Mapping[int, int]
    rivals: tuple[tuple[Slot, ...], ...] = ()
    same: Meaning = frozenset()
    adequate: bool = True

    def sizes(self, slot: int) -> list[int]:
        """Numbers of options that have this slot."""
        return [n for n in self.pulls if self.slots[slot].pulls(n).any()]

    def pull(self, slot: int) -> float:
        """Mean pull of one slot over the questions that have it."""
        there = self.sizes(slot)
        return float(np.average([self.pulls[n][slot] for n in there], weights=[self.counts[n] for n in there]))

    @property
    def meaning(self) -> Meaning:
        """What is taken and what is avoided, on average."""
        return frozenset((slot, self.pull(i) > 0) for i, slot in enumerate(self.slots))


@dataclass(frozen=True)
class _Moments:
    """Products of the slots' columns with each other, (sizes, slots, slots), with the means, and of the means."""

    weighing: Weighing
    gram: Floats
    right: Floats
    square: float


class Search:
    """The search for a habit in some questions.

    Args:
        groups: their cells.
        sampling: how all questions of the scores came together.
        size: number of all questions.
        margin: least pull that is looked for, in the unit of the cells.
    """

    def __init__(self, groups: tuple[SlotGroup, ...], sampling: Sampling, size: int, margin: float) -> None:
        self.groups, self.sampling, self.size, self.margin = groups, sampling, size, margin
        self.sizes = sorted({group.n for group in groups})
        self.counts = {n: sum(len(g.rows) for g in groups if g.n == n) for n in self.sizes}
        self.slots, self.columns = slot_columns(groups)
        self.n_options = np.zeros(size)
        for group in groups:
            self.n_options[group.rows] = group.n
        self.means = [group.values.mean(axis=0) for group in groups]
        largest = max(float(np.abs(mean).max()) for mean in self.means)
        self.strict = self._moments(Weighing.of(groups, margin / 10))
        self.rough = self._moments(Weighing.of(groups, max(margin / 10, PART / 3 * largest)))

    def find(self) -> Habit | None:
        """The habit; ``None`` where no slot gets more or less than the others."""
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
        near = [chosen for misfit, chosen in sets if misfit <= 1.25 * sets[0][0]]
        return self._habit(max(near, key=self._positive), adequate=False)

    def _sets(self, size: int) -> Iterable[tuple[int, ...]]:
        covers = [self._covers(slot) for slot in self.slots]
        for count in range(1, size + 1):
            for chosen in itertools.combinations(range(len(self.slots)), count):
                if sum(covers[i] for i in chosen) == size:
                    yield chosen

    def _covers(self, slot: Slot) -> int:
        """Places that one slot stands for: two for the middle of even numbers of options."""
        there = {n: slot.among(n).sum() for n in self.sizes if slot.pulls(n).any()}
        return round(float(np.average(list(there.values()), weights=[self.counts[n] for n in there])))

    def _moments(self, weighing: Weighing) -> _Moments:
        k = len(self.slots)
        found = _Moments(weighing, np.zeros((len(self.sizes), k, k)), np.zeros((len(self.sizes), k)), 0.0)
        square = 0.0
        for (group, weights), columns, mean in zip(weighing, self.columns, self.means, strict=True):
            at, weighed = self.sizes.index(group.n), columns.T * weights
            found.gram[at] += weighed @ columns
            found.right[at] += weighed @ mean
            square += float(weights @ mean**2)
        return replace(found, square=square)

    def _solve(self, chosen: Sequence[int], moments: _Moments) -> tuple[Floats, Floats]:
        """(sizes, slots) pulls of a set, and the inverse of its normal matrix for each number of options."""
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
        """What each question says for each slot beyond a set: (Q, slots), and its norm and error, (sizes, slots)."""
        _, inverse = self._solve(chosen, moments)
        terms = np.zeros((self.size, len(self.slots)))
        norms, errors = (np.zeros((len(self.sizes), len(self.slots))) for _ in range(2))
        for (group, weights), columns in zip(moments.weighing, self.columns, strict=True):
            at = self.sizes.index(group.n)
            beyond = columns - columns[:, list(chosen)] @ (inverse[at] @ moments.gram[at, list(chosen)])
            weighed = weights[:, None] * beyond
            terms[group.rows] = group.values @ weighed / len(group.rows)
            norms[at] += (weighed * beyond).sum(axis=0)
            errors[at] += (weighed**2).sum(axis=0) * moments.weighing.error**2
        return terms, norms, errors

    def _tests(self, chosen: Sequence[int], moments: _Moments) -> tuple[Floats, Floats, Floats]:
        """t, p and pull of every slot beyond a set: (1 + sizes, slots), all questions first, then by size."""
        terms, norms, errors = self._scores(chosen, moments)
        parts = [(np.concatenate([g.rows for g in self.groups]), norms.sum(axis=0), errors.sum(axis=0))]
        if len(self.sizes) > 1:
            for i, n in enumerate(self.sizes):
                rows = np.concatenate([g.rows for g in self.groups if g.n == n])
                parts.append((rows, norms[i], errors[i]))
        everything = [self._test(terms, *part, scale=norms.sum(axis=0).max()) for part in parts]
        t, p, pull = (np.stack(values) for values in zip(*everything, strict=True))
        return t, p, pull

    def _test(
        self, terms: Floats, rows: NDArray[np.intp], norms: Floats, errors: Floats, scale: float
    ) -> tuple[Floats, Floats, Floats]:
        testable = (norms > 1e-6 * scale) & (len(rows) >= FEWEST)
        kept = np.zeros(self.size, bool)
        kept[rows] = True
        t, p = self.sampling.student(terms, kept, errors)
        # so many questions of n places each can agree on one of them by chance, whatever the variance between them
        p = np.maximum(p, float(np.exp(np.log(self.n_options[rows].max()) - np.log(self.n_options[rows]).sum())))
        pull = np.divide(terms[rows].sum(axis=0), norms, out=np.zeros_like(norms), where=testable)
        return np.where(testable, t, 0.0), np.where(testable, p, np.nan), pull

    def _explains(self, chosen: Sequence[int], moments: _Moments) -> bool:
        """Whether no slot beyond a set gets more or less than the others, by chance and by what matters."""
        _, p, pull = self._tests(chosen, moments)
        least = self.margin
        if chosen:
            least = max(least, PART * float(np.abs(self._solve(chosen, moments)[0]).max()))
        tested = np.isfinite(p)
        return not (tested & (np.nan_to_num(p) * tested.sum() < LEVEL) & (np.abs(pull) >= least)).any()

    def _preferred(self, adequate: Sequence[tuple[float, tuple[int, ...]]]) -> Habit:
        """The best of equally small sets, and those that fit as well and mean something else.

        Of two that say the same in other words, such as A or C against not B and not D, the one that is taken is named.
        """
        best = adequate[0][1]
        effects = {chosen: self._effect(chosen) for _, chosen in adequate}
        same = [c for _, c in adequate if self._alike(effects[c], effects[best])]
        same.sort(key=lambda c: (-self._positive(c), len({self.slots[i].kind for i in c}), sum(c)))
        best = same[0]
        rivals: list[tuple[int, ...]] = []
        for _, chosen in adequate:
            if chosen in same or any(self._alike(effects[chosen], effects[r]) for r in rivals):
                continue
            t, _, _ = self._tests(chosen, self.rough)
            if np.abs(t[0, list(best)]).max() < DOUBT:
                rivals.append(chosen)
        return self._habit(best, tuple(rivals), self._habit(same[-1]).meaning if len(same) > 1 else frozenset())

    def explained_by(self, meaning: Meaning) -> bool:
        """Whether these slots, taken and avoided as said, explain the effects."""
        chosen = tuple(i for i, slot in enumerate(self.slots) if any(slot == other for other, _ in meaning))
        if not self._explains(chosen, self.rough):
            return False
        return not chosen or self._habit(chosen).meaning <= meaning

    def _effect(self, chosen: Sequence[int]) -> Floats:
        """What a set says of every label and position, all numbers of options in one row."""
        pulls, _ = self._solve(chosen, self.rough)
        parts = [
            np.sqrt(self.counts[n]) * (own @ np.stack([self.slots[i].pulls(n) for i in chosen]))
            for n, own in zip(self.sizes, pulls, strict=True)
        ]
        return np.concatenate(parts)

    @staticmethod
    def _alike(a: Floats, b: Floats) -> bool:
        return float(np.linalg.norm(a - b)) <= PART * float(np.linalg.norm(b))

    def _positive(self, chosen: Sequence[int]) -> int:
        return sum(taken for _, taken in self._habit(tuple(chosen)).meaning) - len(chosen)

    def _habit(
        self,
        chosen: tuple[int, ...],
        rivals: Sequence[tuple[int, ...]] = (),
        same: Meaning = frozenset(),
        adequate: bool = True,
    ) -> Habit:
        pulls, inverse = self._solve(chosen, self.rough)
        return Habit(
            tuple(self.slots[i] for i in chosen),
            dict(zip(self.sizes, pulls, strict=True)),
            dict(zip(self.sizes, np.sqrt(np.diagonal(inverse, axis1=1, axis2=2)), strict=True)),
            self.counts,
            tuple(tuple(self.slots[i] for i in rival) for rival in rivals),
            same,
            adequate,
        )
