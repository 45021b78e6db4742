"""Which places a habit is about: the fewest that explain what slots get, over the orders, beyond their content.

In the orders, label and position go together as a *slot*, or place. Effects of places are those of a least-squares
regression, question by question, on indicators of the places. The effect of each place beyond those named is tested
(Student's t over questions, at 1 % after Holm's correction for all places and numbers of options looked at), and a
place is added until no other has an effect left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.metrics.labels import Effects, Kind, Place, Unit
from unslant.metrics.sampling import Codes, Sampling, brown_forsythe, holm, moments, student, unit_means

LEVEL = 0.01
"""Joint level of all tests that name a place: a false alarm costs more here than a missed habit."""
KIND_LEVEL = 0.05
"""Level of the tests between label and position, once there is a habit."""
PART = 0.3
"""Effects below this part of the largest need no explanation, and a place below this part of its largest is absent."""
MOST = 3
"""Places of a habit, at most; and never more than half of all, so two of the usual four or five."""
FEWEST = 5
"""Fewest unsure questions in which a habit is looked for."""


Places = tuple[Place, ...]


def places_of(sizes: Sequence[int]) -> Places:
    """Every place that questions of these numbers of options can have, each once, by its best name."""
    places: dict[tuple[float, ...], Place] = {}
    for place in map(Place, (0, -1, None, *range(1, max(sizes)), -2)):
        pulls = np.concatenate([_columns((place,), n)[:, 0] for n in sizes])
        if pulls.any():
            places.setdefault(tuple(pulls), place)
    return tuple(places.values())


class Habit(NamedTuple):
    """The places taken or avoided, and (Q, places) the pull of each in each question; nan where there is no such place.

    It is not ``adequate`` if effects remain that no set of the allowed size explains.
    """

    places: Places
    terms: Floats
    adequate: bool = True

    @property
    def pulls(self) -> Floats:
        return _mean(self.terms)


@dataclass(frozen=True)
class HabitSearch:
    """The search for a habit in some of Q questions.

    Attributes:
        n_options: (Q,) options of each question; 0 for those that are not looked at.
        effects: of every place, in ``unit``.
        excess: (Q, N) what each place got of the answers to a question beyond what content explains.
        margin: least mean pull that matters.
        fixed_labels: labels never move, so that only positions can be meant.
    """

    n_options: Ints
    effects: Effects
    excess: Floats
    sampling: Sampling
    unit: Unit
    margin: float
    fixed_labels: bool

    @cached_property
    def sizes(self) -> dict[int, Bools]:
        """Number of options -> (Q,) its questions."""
        return {n: self.n_options == n for n in np.unique(self.n_options).tolist() if n}

    @cached_property
    def kinds(self) -> list[tuple[int, Codes, Codes]]:
        """Number of options, rows of the questions that have them and the same free places, and those places."""
        table = np.column_stack([self.n_options, np.isfinite(self.effects.slots)])
        kinds, codes = np.unique(table, axis=0, return_inverse=True)
        return [(int(n), np.flatnonzero(codes == i), np.flatnonzero(free)) for i, (n, *free) in enumerate(kinds) if n]

    @cached_property
    def places(self) -> Places:
        return places_of([*self.sizes] or [1])

    def among(self, parts: NDArray[Any], some: NDArray[Any]) -> HabitSearch:
        """The search in some parts of the questions, such as subjects; ``parts`` has that of each."""
        return replace(self, n_options=np.where(np.isin(parts, some), self.n_options, 0))

    def find(self) -> Habit:
        """The fewest places that explain the effects; none where all places get the same, or the choices do not follow.

        All sets of one size are fitted: a step of a stepwise selection cannot be undone, and of four options, B and C
        taken look at first like A avoided. Of sets that fit about as well, one that is taken is named.
        """
        if np.count_nonzero(self.n_options) < FEWEST:
            return self._habit(())
        # how many of the places shown each covers: the middle of four options covers two
        covers = {place: round(max(place.among(n).sum() for n in self.sizes)) for place in self.places}
        for size in range(min(MOST, max(1, max(self.sizes) // 2)) + 1):
            every = (places for k in range(size + 1) for places in combinations(self.places, k))
            sets = [places for places in every if sum(map(covers.__getitem__, places)) == size]
            # habits are made again: of 26 options there are 3,000 sets, each with terms of every question
            fits, avoided = list[float](), list[int]()
            for habit in map(self._habit, sets):
                fits.append(float(self._explained(habit).sum()))
                avoided.append(int((habit.pulls < 0).sum()))
            least = (1 - PART**2) * max(fits)
            near = [i for i, fit in enumerate(fits) if fit >= least]
            near.sort(key=lambda i: (avoided[i], len(sets[i]), -fits[i]))  # A or C, rather than not B and not D
            if best := next((habit for habit in (self._habit(sets[i]) for i in near) if self._is_all(habit)), None):
                break
        else:
            best = self._habit(sets[int(np.argmax(fits))])._replace(adequate=False)
        return best if self.moved(best) > 0 else self._habit(())

    def moved(self, habit: Habit) -> float:
        """Answers that its places got over the orders beyond content, less those that places avoided lost."""
        gained = (self.excess[part, :n].sum(axis=0) @ _columns(habit.places, n) for n, part in self.sizes.items())
        return float(sum(gain @ np.sign(pull) for gain, pull in zip(gained, self._pulls(habit).values(), strict=True)))

    def _is_all(self, habit: Habit) -> bool:
        """Whether no other place gets significantly more or less than the rest, by enough to matter."""
        terms = np.column_stack([self._habit((*habit.places, other)).terms[:, -1] for other in self.places])
        least = max(self.margin, PART * max(np.abs(pulls).max(initial=0.0) for pulls in self._pulls(habit).values()))
        p_values, matters, every = [], [], self.n_options > 0
        # each number of options by itself, too: an effect in one of them alone is diluted in the mean of all
        for part in [every, *(self.sizes.values() if len(self.sizes) > 1 else ())]:
            if part.sum() >= FEWEST:
                _, p = self.sampling.student(np.nan_to_num(terms), part)
                # n answers of k options agree on one place with probability k^(1 - n), even if they never vary
                logs = np.log(self.n_options[part])
                share = np.isfinite(terms[part]).sum(axis=0) / every.sum()
                p_values += np.where(share > 0, np.maximum(p, np.exp(logs.max() - logs.sum())), np.nan).tolist()
                matters += (np.abs(_mean(terms[part])) * np.sqrt(share) >= least).tolist()
        return not any(p < LEVEL and big for p, big in zip(holm(p_values), matters, strict=True))

    def _habit(self, places: Places) -> Habit:
        return Habit(places, self._regressed(self.effects.slots, places))

    def _regressed(self, effects: Floats, places: Places, *, mirrored: bool = False) -> Floats:
        """(Q, P) effect of each place (or of it less its mirror image), by least squares; nan where absent."""
        terms = np.full((len(effects), len(places)), np.nan)
        for n, rows, free in self.kinds:
            columns = _columns(places, n, free) - mirrored * _columns(places, n, free)[::-1]
            inverse = np.linalg.pinv(columns, rcond=1e-9)
            determined = np.abs(inverse @ columns - np.eye(len(places))).max(axis=1, initial=0.0) <= 1e-6
            terms[rows] = np.where(determined, effects[np.ix_(rows, free)] @ inverse.T, np.nan)
        return terms

    def _pulls(self, habit: Habit) -> dict[int, Floats]:
        """Number of options -> mean pulls there; those of all questions where places are missing or two are one."""
        means = {n: _mean(habit.terms[part]) for n, part in self.sizes.items()}
        return {n: np.nan_to_num(np.where(np.isnan(mean), habit.pulls, mean)) for n, mean in means.items()}

    def _explained(self, habit: Habit) -> Floats:
        """(Q,) squares of the slots of each question that a habit explains; negative where it misleads."""
        squares, pulls = np.zeros(len(self.n_options)), self._pulls(habit)
        for n, rows, free in self.kinds:
            fitted = _columns(habit.places, n, free) @ pulls[n]
            squares[rows] = 2 * self.effects.slots[np.ix_(rows, free)] @ fitted - fitted @ fitted
        return squares

    def meaning(self, habit: Habit) -> Places:
        """Of each place of a habit, whether its label or its position is meant, as far as the pages show it.

        With labels in other places, a pull moves with the label or stays at the position. The difference of label and
        position effects is regressed on the places: a pull W of a label is W there, one of a position -W. Its sign is
        tested by Student's t, with Holm's correction for the places; a place too weak to decide alone goes with all
        places together, weighted by their pulls, if it points the same way. Without relabelled pages the kind stays
        unknown.
        """
        terms = self._regressed(self.effects.labels - self.effects.positions, habit.places)
        terms = np.where(np.isnan(terms), self._regressed(self.effects.mirrored, habit.places, mirrored=True), terms)
        single = [student(self.sampling, term) for term in (terms * np.sign(habit.pulls)).T]
        t_all, p_all = student(self.sampling, terms @ habit.pulls)
        named = []
        for place, pull, (t, _), p in zip(habit.places, habit.pulls, single, holm([p for _, p in single]), strict=True):
            kind: Kind = "label" if t > 0 and not self.fixed_labels else "position"
            decided = self.fixed_labels or p < KIND_LEVEL or (p_all < KIND_LEVEL and t * t_all > 0)
            named.append(Place(place.rank, kind if decided else None, bool(pull > 0)))
        return tuple(named)

    def by_size(self, habit: Habit) -> dict[int, Places]:
        """Number of options -> habit there; empty where it is the same for all.

        It differs where a place of the habit is absent with some number of options (even the upper end of its pull, two
        standard errors, is far below its strongest pull), or reversed (the other sign, as clearly), or where the habit
        explains the effects in part only.
        """
        parts = {n: part for n, part in self.sizes.items() if part.sum() >= FEWEST}
        if len(parts) < 2 or not habit.places:
            return {}
        pulls = np.stack([_mean(habit.terms[part]) for part in parts.values()])
        rests, counts = (np.nan_to_num(habit.terms - mean) for mean in pulls), [[n.sum()] for n in parts.values()]
        errors = np.sqrt([*map(self.sampling.variance, rests, parts.values())]) / counts
        # of shares, avoiding one of n cannot move more than 1/(n - 1)
        factor = np.where((self.unit == "shares") & (pulls < 0), np.asarray([*parts])[:, None] - 1.0, 1.0)
        low, high = (factor * (np.abs(pulls) + step * errors) for step in (-2, 2))
        least = PART * np.maximum(np.abs(habit.pulls), np.nan_to_num(low).max(axis=0))
        if habit.adequate and not ((high < least) | ((pulls * habit.pulls < 0) & (low > least))).any():
            return {}
        searches = {n: self.among(self.n_options, np.asarray(n)) for n in parts}
        habits = {n: search.find() for n, search in searches.items()}
        if any(not part.adequate or len(part.places) > 2 for part in habits.values()):
            return {}
        meanings = {n: search.meaning(habits[n]) for n, search in searches.items()}
        return meanings if len({*meanings.values()}) > 1 else {}

    def by_subject(self, subjects: NDArray[np.str_]) -> tuple[float, dict[str, Places], bool]:
        """p-value of "subjects do not differ in their habit" (nan for fewer than two), and the habit of each; last
        whether those without one exclude it: the upper end of each pull there, two standard errors, is far below the
        strongest in the others.

        Where the pull of some place differs, subjects with the same strongest place are put together, a habit
        is looked for in each such set, and every subject goes to the habit, or none, that explains most of its
        questions' slots. Those of the most common habit come first. Empty where subjects do not differ.
        """
        rows = np.flatnonzero(self.n_options)
        names, codes = np.unique(subjects[rows], return_inverse=True)
        if len(names) < 2 or len(rows) < 2 * FEWEST:
            return math.nan, {}, True
        pulls = np.column_stack([np.nan_to_num(self._habit((place,)).terms[rows, 0]) for place in self.places])
        p, strongest = _compared(pulls, codes, self.n_options[rows], self.sampling.unit[rows])
        if not p < LEVEL:
            return p, {}, True
        clusters = Counter(strongest.tolist()).most_common()
        habits = [*(self.among(subjects, names[strongest == place]).find() for place, _ in clusters), self._habit(())]
        squares = np.stack([self._explained(habit)[rows] for habit in habits], axis=1)
        # a habit is the same where its pulls are weaker
        alike = [(habit.places, *(habit.pulls > 0).tolist()) for habit in habits]
        explained = np.eye(len(names))[:, codes] @ squares
        best = explained.argmax(axis=1)
        for subject, place in enumerate(strongest.tolist()):
            at, pull = self.places[abs(place) - 1], pulls[codes == subject, abs(place) - 1].mean()
            # a pull far weaker than that of its set is explained best by no habit, and is a preference all the same
            if place and not habits[best[subject]].places and abs(pull) >= self.margin:
                taken = [dict(zip(habit.places, habit.pulls > 0, strict=True)) for habit in habits]
                same = [h for h, one in enumerate(taken) if one.get(at) == (pull > 0)]
                best[subject] = max(same, key=lambda h: explained[subject, h], default=best[subject])
        nearest = np.asarray([*map(alike.index, alike)])[best]
        sets = ((names[nearest == h], habits[h]) for h in np.unique(nearest))
        groups = [(some.tolist(), self.among(subjects, some).meaning(habit)) for some, habit in sets]
        # most subjects first; of equally many, those that fall back on something; those without a habit last
        groups.sort(key=lambda group: (not group[1], -len(group[0]), not any(place.taken for place in group[1])))
        none = np.isin(codes, np.flatnonzero([not habits[h].places for h in nearest]))
        _, (rest,) = unit_means(self.sampling.unit[rows][none], codes[none], pulls[none])
        least = PART * max(np.abs(habit.pulls).max(initial=0.0) for habit in habits)
        sizes, means, variances = moments(rest, np.zeros(len(rest), np.int64))  # of one unit, the variance is unknown
        excluded = not len(rest) or bool((np.abs(means) + 2 * np.sqrt(variances / sizes) < least).all())
        together = {name: meaning for some, meaning in groups for name in some}
        return p, together if len(groups) > 1 else {}, excluded


def _columns(places: Places, n: int, free: Codes | slice = slice(None)) -> Floats:
    """(M, P) which of the M free places among n each place is, less its mean."""
    columns = np.asarray([place.among(n) for place in places]).reshape(-1, n).T[free]
    return np.asarray(columns - columns.mean(axis=0))


def _mean(terms: Floats) -> Floats:
    """Mean down each column of what is known; nan where nothing is."""
    counts = np.isfinite(terms).sum(axis=0)
    return np.asarray(np.nan_to_num(terms).sum(axis=0) / np.where(counts, counts, np.nan))


def _compared(pulls: Floats, codes: Codes, sizes: Ints, unit: Codes) -> tuple[float, Ints]:
    """p of "subjects do not differ" in (Q, P) pulls of places, numbers of options taken out (Holm's correction).

    And (S,) the place of the clearest pull in each subject: from 1, negative if avoided; 0 where none is significant.
    Questions on one passage, of (Q,) ``unit``, can share a pull by chance: their mean is one observation.
    """
    from scipy.special import stdtrit

    rest = pulls.copy()
    for n in np.unique(sizes):
        rest[sizes == n] -= pulls[sizes == n].mean(axis=0)
    codes, (pulls, rest) = unit_means(unit, codes, pulls, rest)
    counts, means, variances = moments(rest, codes)
    several = counts[:, 0] > 1
    if several.sum() < 2:
        return math.nan, np.zeros(len(counts), np.int64)
    p = min(holm(brown_forsythe(counts[several], means[several], variances[several]).tolist()))
    left, means = int((counts[several] - 1).sum()), moments(pulls, codes)[1]
    pooled = np.nansum(variances * (counts - 1), axis=0) / left
    spread = np.fmax(pooled, variances)  # few questions of a subject may vary little by chance
    clear = means / np.sqrt(np.maximum(spread, 1e-9) / counts)
    best = np.abs(clear).argmax(axis=1)
    clearest = np.where(several, clear[np.arange(len(best)), best], 0.0)
    # Corrected for subjects and places: sets of subjects are tested for the very place that they are put together by.
    least = float(stdtrit(left, 1 - LEVEL / (2 * means.size)))
    return p, np.asarray((best + 1) * np.sign(clearest) * (np.abs(clearest) > least), np.int64)
