"""What a model falls back on when it does not know: some labels, some positions, or nothing in particular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.habit_groups import by_size, by_subject
from unslant.metrics.habit_words import Meaning, listed, names_of, place_name, tell, tell_where
from unslant.metrics.habits import FEWEST, Habit, Place, Search
from unslant.metrics.label_or_position import Kind, Kinds, label_or_position
from unslant.metrics.scores import OrderScores
from unslant.metrics.slot_effects import SlotGroup, Unit, has_probabilities, slot_groups, unsure_questions
from unslant.metrics.slot_tables import LAST, SlotEffect, SlotValues, slot_tables
from unslant.metrics.stopped import extended
from unslant.responses.table import DECISION

Finding = Literal["habit", "own places", "trace", "none", "open"]
Subjects = Sequence[tuple[tuple[str, ...], Meaning]]

MARGIN: Mapping[Unit, float] = {"nats": 0.2, "shares": 0.03}
"""Least pull that is a preference: 0.2 nats make 0.29 of a probability of 0.25."""
TRACE = 0.002
"""Least pull that is looked for at all, in nats or shares."""
SLIGHT = 0.05
"""Habits that move less than this share of the unsure answers are called slight."""
MATTERS = 0.05
"""Excess of the share of all answers that would matter: "no preference" is said only where the intervals of all places
lie within."""
STICKY = 0.9
"""A question keeps to one place when that gets so much of its answers over the orders."""


@dataclass(frozen=True)
class Preference:
    """What the answers go by where they change with the order.

    Attributes:
        finding: ``habit``: slots that are taken or avoided. ``own places``: each question keeps to a place of its own.
            ``trace``: a pull too small to matter that decides between nearly equal options all the same. ``none``: no
            preference that matters. ``open``: the data do not tell.
        phrase: the finding in words.
        takes, avoids: names of the slots taken and avoided, all questions together.
        by_size, by_subject: where these differ, what is said of each number of options, or each subject (empty words:
            nothing in particular).
        subjects_p: p-value of "subjects do not differ in their habit"; nan without subjects.
        labels, positions: the effect of each.
        unsure: share of questions whose answer changes with the order.
        sticky: share of unsure questions (of three options or more) in which one place gets nearly all answers.
        note: what to keep in mind.
    """

    finding: Finding
    phrase: str
    takes: tuple[str, ...]
    avoids: tuple[str, ...]
    by_size: Mapping[int, str]
    by_subject: Mapping[str, str]
    subjects_p: float
    labels: tuple[SlotEffect, ...]
    positions: tuple[SlotEffect, ...]
    unsure: Estimate
    sticky: Estimate
    note: str = ""

    @property
    def named(self) -> str | None:
        """The one slot that is taken (``last`` for the last position), or ``None``."""
        if self.finding != "habit" or len(self.takes) != 1:
            return None
        return LAST if self.takes[0] == "the last position" else self.takes[0]

    @property
    def slots(self) -> tuple[SlotEffect, ...]:
        """The rows of a table by label: every label, then the last position."""
        return (*(row for row in self.labels if row.label != "last label"), *self.positions[-1:])


def preference(scores: OrderScores, bootstrap: Bootstrap | None = None, *, seed: int = 0) -> Preference:
    """Find what a model prefers when unsure, that is on questions whose answer changes with the order.

    Two things are read off the same cells (:mod:`unslant.metrics.slot_effects`): how much each label and each position
    adds (:mod:`unslant.metrics.slot_tables`), and which few of them explain it all, the sentence
    (:mod:`unslant.metrics.habits`). The cells are log-probabilities, or choices where there are no probabilities.

    Args:
        seed: of the permutations by which subjects are compared.
    """
    return _Reading(scores, bootstrap or Bootstrap.of(scores, seed=seed)).preference(seed)


class _Reading:
    """The cells of one set of scores, and what is said of them."""

    def __init__(self, scores: OrderScores, bootstrap: Bootstrap) -> None:
        self.scores, self.bootstrap = scores, bootstrap
        self.unsure = unsure_questions(scores)
        self.rows = np.flatnonzero(self.unsure == 1)
        self.sizes = sorted(set(scores.n_options[self.rows].tolist()))
        self.unit: Unit = "nats" if has_probabilities(scores) else "shares"
        self.groups = slot_groups(scores, self.unsure, self.unit)
        self.values = SlotValues.of(scores, self.unsure, self.groups, self.unit)
        self.excess = np.nan_to_num(self.values.share - self.values.expected)

    def preference(self, seed: int) -> Preference:
        """See :func:`preference`."""
        habit = self._search(self.groups).find() if self.groups else None
        readings = self._readings(habit, self.groups)
        sizes = self._by_size(habit, dict(zip(habit.places, readings[0], strict=True)) if habit else {})
        p, parts = by_subject(self.groups, self.scores.subjects, MARGIN[self.unit], self._search, seed)
        subjects = [(names, self._meaning(found, self._readings(found, cells)[0])) for names, cells, found in parts]
        if len({meaning for _, meaning in subjects}) < 2:
            subjects = []
        sticky, scattered = self._sticky()
        finding, phrase, note = self._said(habit, readings, sizes, subjects, sticky.value if scattered else 0.0)
        if self.scores.elicitation == DECISION and finding in ("habit", "trace"):
            phrase += " (or the label that the server puts there: cannot be told apart)"
        takes, avoids = self._names(self._meaning(habit, readings[0]))
        return Preference(
            finding,
            phrase,
            takes,
            avoids,
            {n: tell(*names_of(meaning, self.scores.labels, [n])) for n, meaning in sizes.items()},
            {name: tell(*self._names(meaning)) for names, meaning in subjects for name in names},
            p,
            *slot_tables(self.scores, self.values, self.unit, self.bootstrap),
            self.bootstrap.mean(
                extended(self.scores, self.unsure, np.zeros(len(self.scores))),
                note="" if np.isfinite(self.unsure).any() else _ONE_ORDER,
            ),
            sticky,
            note,
        )

    def _search(self, groups: Sequence[SlotGroup], margin: float | None = None) -> Search:
        least = MARGIN[self.unit] if margin is None else margin
        return Search(groups, self.bootstrap.sampling, self.excess, least)

    def _readings(self, habit: Habit | None, groups: Sequence[SlotGroup]) -> list[Kinds]:
        if habit is None:
            return [()]
        if self.scores.elicitation == DECISION:  # labels are the server's, and never move
            place: Kind = "position"
            return [(place,) * len(habit.places)]
        return label_or_position(habit, groups, self.bootstrap.sampling, len(self.scores))

    @staticmethod
    def _meaning(habit: Habit | None, kinds: Kinds) -> Meaning:
        return tuple(zip(habit.places, kinds, habit.taken, strict=True)) if habit else ()

    def _by_size(self, habit: Habit | None, kind_of: Mapping[Place, Kind]) -> dict[int, Meaning]:
        meanings: dict[int, Meaning] = {}
        for n, found in by_size(habit, self.groups, self._search, self.unit == "shares").items():
            if isinstance(found, Habit):
                own = [group for group in self.groups if group.n == n]
                meanings[n] = self._meaning(found, self._readings(found, own)[0])
            else:
                meanings[n] = tuple((place, kind_of[place], taken) for place, taken in found)
        return meanings

    def _said(
        self,
        habit: Habit | None,
        readings: Sequence[Kinds],
        sizes: Mapping[int, Meaning],
        subjects: Subjects,
        sticky: float,
    ) -> tuple[Finding, str, str]:
        asked = int(np.isfinite(self.unsure).sum())
        if not asked:
            return "open", "a preference cannot be told from one order", _ONE_ORDER
        if len(self.rows) < FEWEST:
            note = f"the answer changes with the order in {len(self.rows)} of {asked} questions; {FEWEST} are needed"
            return "open", "too rarely unsure to tell a preference", note
        if subjects:
            return "habit", f"{self._tell_subjects(subjects)} when unsure", "subjects differ"
        if sizes:
            return "habit", f"{self._tell_sizes(sizes)} when unsure", "numbers of options differ"
        if habit and len(habit.rivals) > 2:
            return "open", "a preference when unsure cannot be told", "something pulls, but what it is cannot be told"
        if habit:
            note = "" if habit.adequate else "other labels or positions have pulls of their own"
            if habit.same:
                names = [place_name(place, readings[0][0], self.scores.labels, self.sizes) for place in habit.same]
                note = f"the same as: {'avoids' if habit.taken[0] else 'takes'} {listed(names, 'and')}"
            words = self._tell(self._meaning(habit, readings[0]))
            return "habit", f"{words} when unsure{self._others(habit, readings)}", note
        if sticky >= 0.5:
            words = f"keeps to one position in {sticky:.0%} of the questions it is unsure of, not the same in all"
            return "own places", words, "no label or position is preferred over all; were the questions seen before?"
        least = self._search(self.groups, TRACE).find()
        if least:
            meaning = self._meaning(least, self._readings(least, self.groups)[0])
            if self._part(meaning) >= SLIGHT:
                pull = max(abs(least.pull(i)) for i in range(len(least.places)))
                note = f"a pull of {pull:.3f} {self.unit} decides between options that are otherwise nearly equal"
                return "trace", f"{self._tell(meaning)} when unsure, but by a trace only", note
        if self._nothing_matters():
            return "none", "no preference when unsure", ""
        return "open", "a preference when unsure cannot be told", "too few unsure questions to exclude one that matters"

    def _names(self, meaning: Meaning) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return names_of(meaning, self.scores.labels, self.sizes) if meaning else ((), ())

    def _tell(self, meaning: Meaning) -> str:
        there = [sum(place.among(n).sum() for place, _, _ in meaning) / n for n in self.scores.n_options[self.rows]]
        slight = abs(self._part(meaning)) < min(SLIGHT, float(np.mean(there)) / 2)
        return tell(*self._names(meaning), slight)

    def _others(self, habit: Habit, readings: Sequence[Kinds]) -> str:
        """What else would fit as well: other readings of the same places, or other places."""
        told = [list(zip(habit.places, kinds, strict=True)) for kinds in readings[1:3]]
        told += [[(place, readings[0][0]) for place in rival] for rival in habit.rivals]
        names = [[place_name(*item, self.scores.labels, self.sizes) for item in items] for items in told]
        return f" (or {', or '.join(listed(own, 'or') for own in names)}: cannot be told apart)" if names else ""

    def _tell_sizes(self, sizes: Mapping[int, Meaning]) -> str:
        together: dict[str, list[str]] = {}
        for n, meaning in sizes.items():
            together.setdefault(tell(*names_of(meaning, self.scores.labels, [n])), []).append(str(n))
        words = [f"with {listed(own, 'or')}{'' if i else ' options'}" for i, own in enumerate(together.values())]
        return tell_where(list(zip(together, words, strict=True)))

    def _tell_subjects(self, subjects: Subjects) -> str:
        few = sum(len(names) for names, _ in subjects) <= 3
        parts = []
        for i, (names, meaning) in enumerate(subjects):
            count = f"{len(names)}" + ("" if i else " subjects" if len(names) > 1 else " subject")
            parts.append((tell(*self._names(meaning)), f"in {listed(names, 'and') if few else count}"))
        return tell_where(parts)

    def _part(self, meaning: Meaning) -> float:
        """What these places got of the unsure answers over the orders, beyond what content explains.

        Those avoided count down, so that a habit that moves answers its own way is above 0.
        """
        part = np.zeros(len(self.scores))
        for place, _, taken in meaning:
            for n in self.sizes:
                own = self.excess[:, :n] @ place.among(n)
                part += np.where(self.scores.n_options == n, own, 0.0) * (1 if taken else -1)
        return float(part[self.rows].mean())

    def _sticky(self) -> tuple[Estimate, bool]:
        """How many unsure questions keep to one place, and whether these are more than one."""
        three = (self.unsure == 1) & (self.scores.n_options > 2)
        share = np.nan_to_num(self.values.share)
        most = np.where(three, share.max(axis=1) >= STICKY, np.nan)
        places = np.bincount(share[most == 1].argmax(axis=1)) if (most == 1).any() else np.zeros(1)
        note = "" if three.any() else "no unsure question of three options or more"
        return self.bootstrap.mean(most, note=note), bool(
            places.sum() >= 2 * FEWEST and places.max() < 0.75 * places.sum()
        )

    def _nothing_matters(self) -> bool:
        """Whether the intervals of what every place gets of all answers lie within what matters."""
        last = np.take_along_axis(self.excess, self.scores.n_options[:, None] - 1, axis=1)
        places = np.concatenate([self.excess, last], axis=1)
        places[np.isnan(self.unsure)] = np.nan
        strict = 1 - (1 - self.bootstrap.confidence) / places.shape[1]
        found = [self.bootstrap.mean(place, share=False, confidence=strict) for place in places.T]
        return all(one.low > -MATTERS and one.high < MATTERS for one in found)


_ONE_ORDER = "needs two or more orders a question"
