"""What a model falls back on when it does not know: some labels, some positions, or nothing in particular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.habit_groups import by_size, by_subject
from unslant.metrics.habit_words import listed, names_of, slot_name, tell, tell_where
from unslant.metrics.habits import FEWEST, Habit, Meaning, Search
from unslant.metrics.scores import OrderScores
from unslant.metrics.slot_effects import SlotGroup, Unit, has_probabilities, slot_groups, unsure_questions
from unslant.metrics.slot_tables import LAST, SlotEffect, SlotValues, slot_tables

Finding = Literal["habit", "own places", "trace", "none", "open"]
Subjects = Sequence[tuple[tuple[str, ...], Habit | None]]

MARGIN: Mapping[Unit, float] = {"nats": 0.05, "shares": 0.02}
"""Least pull that is a preference: 0.05 nats make 0.26 of a probability of 0.25."""
TRACE = 0.002
"""Least pull that is looked for at all, in nats or shares."""
SLIGHT = 0.05
"""Habits that move less than this share of the unsure answers are called slight."""
MATTERS: Mapping[Unit, float] = {"nats": 0.25, "shares": 0.10}
"""Pull of a place, or excess of its share of unsure answers, that would matter: "no preference" is said only where the
intervals of all places lie within one of them."""
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
        sizes = by_size(habit, self.groups, self._search, self.unit == "shares")
        p, subjects = by_subject(self.groups, self.scores.subjects, MARGIN[self.unit], self._search, seed)
        if len({found.meaning if found else None for _, found in subjects}) < 2:
            subjects = []
        sticky, scattered = self._sticky()
        finding, phrase, note = self._said(habit, sizes, subjects, sticky.value if scattered else 0.0)
        takes, avoids = self._names(habit.meaning) if habit else ((), ())
        return Preference(
            finding,
            phrase,
            takes,
            avoids,
            {n: tell(*names_of(meaning, self.scores.labels, [n])) for n, meaning in sizes.items()},
            {name: tell(*self._names(found.meaning)) if found else "" for names, found in subjects for name in names},
            p,
            *slot_tables(self.scores, self.values, self.unit, self.bootstrap),
            self.bootstrap.mean(self.unsure, note="" if np.isfinite(self.unsure).any() else _ONE_ORDER),
            sticky,
            note,
        )

    def _search(self, groups: tuple[SlotGroup, ...], margin: float | None = None) -> Search:
        least = MARGIN[self.unit] if margin is None else margin
        return Search(groups, self.bootstrap.sampling, len(self.scores), least)

    def _said(
        self, habit: Habit | None, sizes: Mapping[int, Meaning], subjects: Subjects, sticky: float
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
            note = f"the same as: {self._tell(habit.same)}" if habit.same else note
            return "habit", f"{self._tell(habit.meaning)} when unsure{self._rivals(habit)}", note
        if sticky >= 0.5:
            words = f"keeps to one position in {sticky:.0%} of the questions it is unsure of, not the same in all"
            return "own places", words, "no label or position is preferred over all; were the questions seen before?"
        least = self._search(self.groups, TRACE).find()
        if least and abs(self._part(least.meaning)) >= SLIGHT:
            pull = max(abs(least.pull(i)) for i in range(len(least.slots)))
            note = f"a pull of {pull:.3f} {self.unit} decides between options that are otherwise nearly equal"
            return "trace", f"{self._tell(least.meaning)} when unsure, but by a trace only", note
        if self._nothing_matters():
            return "none", "no preference when unsure", ""
        return "open", "a preference when unsure cannot be told", "too few unsure questions to exclude one that matters"

    def _names(self, meaning: Meaning) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return names_of(meaning, self.scores.labels, self.sizes)

    def _tell(self, meaning: Meaning) -> str:
        there = [sum(slot.among(n).sum() for slot, _ in meaning) / n for n in self.scores.n_options[self.rows]]
        slight = abs(self._part(meaning)) < min(SLIGHT, float(np.mean(there)) / 2)
        return tell(*self._names(meaning), slight)

    def _rivals(self, habit: Habit) -> str:
        names = [[slot_name(slot, self.scores.labels, self.sizes) for slot in rival] for rival in habit.rivals]
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
        for i, (names, habit) in enumerate(subjects):
            count = f"{len(names)}" + ("" if i else " subjects" if len(names) > 1 else " subject")
            said = tell(*self._names(habit.meaning)) if habit else ""
            parts.append((said, f"in {listed(names, 'and') if few else count}"))
        return tell_where(parts)

    def _part(self, meaning: Meaning) -> float:
        """What these slots add to the unsure answers, those avoided counting down.

        Where label and position are not told apart: what they got over the orders, beyond what content explains.
        """
        labels, positions = (np.where(np.isnan(values), self.excess, values) for values in self.values.shares)
        part = np.zeros(len(self.scores))
        for slot, up in meaning:
            for n in self.sizes:
                own = (labels if slot.kind == "label" else positions)[:, :n] @ slot.among(n)
                part += np.where(self.scores.n_options == n, own, 0.0) * (1 if up else -1)
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
        """Whether the intervals of every place's excess lie within what matters."""
        pulls = np.zeros_like(self.excess)
        for group in self.groups:
            pulls[np.ix_(group.rows, group.free)] = group.values[:, group.pages == 0]
        return self._within(self.excess, MATTERS["shares"]) or (
            self.unit == "nats" and self._within(pulls, MATTERS["nats"])
        )

    def _within(self, places: Floats, limit: float) -> bool:
        """Whether the intervals of the means over unsure questions, of every place and the last, lie within a limit."""
        from scipy.special import stdtrit

        last = np.take_along_axis(places, self.scores.n_options[:, None] - 1, axis=1)
        both, kept = np.concatenate([places, last], axis=1), self.unsure == 1
        mean = both[kept].mean(axis=0)
        variance = self.bootstrap.sampling.variance((both - mean) / kept.sum(), kept)
        quantile = stdtrit(kept.sum() - 1, 1 - (1 - self.bootstrap.confidence) / 2 / both.shape[1])
        return bool((np.abs(mean) + quantile * np.sqrt(variance) < limit).all())


_ONE_ORDER = "needs two or more orders a question"
