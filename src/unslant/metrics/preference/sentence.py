"""What a model falls back on when it does not know: some labels, some positions, or nothing in particular."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.preference.cells import SlotGroup, Unit, has_probabilities, slot_groups, unsure_questions
from unslant.metrics.preference.habit import FEWEST, Habit, Search, meaning_of
from unslant.metrics.preference.parts import by_size, by_subject
from unslant.metrics.preference.places import (
    UNKNOWN,
    Meaning,
    by_part,
    in_words,
    listed,
    names,
    positions_instead,
    when_unsure,
)
from unslant.metrics.preference.tables import LAST, SlotEffect, SlotValues, slot_tables
from unslant.metrics.scores import OrderScores
from unslant.metrics.stopped import extended
from unslant.responses.table import DECISION

Finding = Literal["habit", "own places", "trace", "none", "open"]

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
"""A question is stuck to a place when that place gets at least this share of its answers."""
_ONE_ORDER = "needs two or more orders a question"


@dataclass(frozen=True)
class Preference:
    """What the answers go by where they change with the order.

    Attributes:
        finding: ``habit``: slots that are taken or avoided. ``own places``: each question keeps to a place of its own.
            ``trace``: a pull too small to matter that decides between nearly equal options all the same. ``none``: no
            preference that matters. ``open``: the data do not decide.
        phrase: the finding in words.
        takes, avoids: names of the slots taken and avoided, all questions together; labels where nothing shows whether
            the label or the position is meant, which ``phrase`` says.
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

    Two things are read off the same cells (:mod:`unslant.metrics.preference.cells`): how much each label and each
    position adds (:mod:`~unslant.metrics.preference.tables`), and which few of them explain it all
    (:mod:`~unslant.metrics.preference.habit`), the sentence. The cells are log-probabilities, or choices where there
    are no probabilities.

    Args:
        seed: of the permutations by which subjects are compared.

    Example::

        preference(read_scores(responses)).phrase  # "falls back on A when unsure"
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
        meaning = self._meaning(habit, self.groups)
        sizes = {
            n: self._meaning(own, [group for group in self.groups if group.n == n])
            for n, own in by_size(habit, self.groups, self._search, self.unit == "shares").items()
        }
        p, parts = by_subject(self.groups, self.scores.subjects, self._search, seed)
        subjects = [(members, self._meaning(own, cells)) for members, cells, own in parts]
        if len({self._words(one) for _, one in subjects}) < 2:
            subjects = []
        sticky, scattered = self._sticky()
        finding, phrase, note = self._said(habit, meaning, sizes, subjects, sticky.value if scattered else 0.0)
        if self.scores.elicitation == DECISION and finding in ("habit", "trace"):
            phrase += f" (or the label that the server puts there: {UNKNOWN})"
        return Preference(
            finding,
            phrase,
            *names(meaning, self.scores.labels, self.sizes or [1]),
            {n: self._words(one, [n], caveat=True) for n, one in sizes.items()},
            {name: self._words(one, caveat=True) for members, one in subjects for name in members},
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
        return Search(groups, self.bootstrap.sampling, self.excess, MARGIN[self.unit] if margin is None else margin)

    def _meaning(self, habit: Habit | None, groups: Sequence[SlotGroup]) -> Meaning:
        labels, positions = self.values.nats if self.unit == "nats" else self.values.shares
        meaning = meaning_of(habit, groups, labels - positions, self.bootstrap.sampling)
        if self.scores.elicitation == DECISION:  # labels are the server's, and never move
            return tuple(one._replace(kind="position") for one in meaning)
        return meaning

    def _words(self, meaning: Meaning, sizes: Sequence[int] = (), *, slight: bool = False, caveat: bool = False) -> str:
        words = in_words(*names(meaning, self.scores.labels, sizes or self.sizes), slight)
        return words + self._or_positions(meaning, sizes) * caveat

    def _or_positions(self, meaning: Meaning, sizes: Sequence[int] = (), others: Sequence[str] = ()) -> str:
        """The caveat that something else fits as well: the positions of the labels, or other places."""
        positions = positions_instead(meaning, self.scores.labels, sizes or self.sizes)
        fit = [positions] * bool(positions) + list(others)
        return f" (or {', or '.join(fit)}: {UNKNOWN})" if fit else ""

    def _said(
        self,
        habit: Habit | None,
        meaning: Meaning,
        sizes: Mapping[int, Meaning],
        subjects: Sequence[tuple[tuple[str, ...], Meaning]],
        sticky: float,
    ) -> tuple[Finding, str, str]:
        """Finding, phrase and note."""
        asked = int(np.isfinite(self.unsure).sum())
        if not asked:
            return "open", "one order cannot show a preference", _ONE_ORDER
        if len(self.rows) < FEWEST:
            note = f"the answer changes with the order in {len(self.rows)} of {asked} questions; {FEWEST} are needed"
            return "open", "too few unstable answers to detect a preference", note
        if subjects:
            return "habit", self._by_subject(subjects), "subjects differ"
        if sizes:
            return "habit", self._by_size(sizes), "numbers of options differ"
        if habit and len(habit.rivals) > 2:
            return "open", "no clear fallback preference", "something pulls, but several explanations fit equally well"
        if habit:
            note = "" if habit.adequate else "other labels or positions have pulls of their own"
            kind = meaning[0].kind or "label"
            rivals = [[place.name(kind, self.scores.labels, self.sizes) for place in rival] for rival in habit.rivals]
            words = self._always(meaning) or when_unsure(self._words(meaning, slight=self._is_slight(meaning)))
            caveat = self._or_positions(meaning, others=[listed(rival, "or") for rival in rivals])
            return "habit", words + caveat, note
        if sticky >= 0.5:
            words = f"sticks to one position in {sticky:.0%} of its unstable questions, not the same one in all"
            return "own places", words, "no label or position is preferred over all; were the questions seen before?"
        least = self._search(self.groups, TRACE).find()
        trace = self._meaning(least, self.groups)
        if least and self._part(trace) >= SLIGHT:
            note = (
                f"a pull of {np.abs(least.pulls).max():.3f} {self.unit} decides between options that are nearly equal"
            )
            words = f"{when_unsure(self._words(trace))}, but only by a trace"
            return "trace", words + self._or_positions(trace), note
        if self._nothing_matters():
            return "none", "no preference when unsure", ""
        return "open", "no clear fallback preference", "too few unsure questions to exclude one that matters"

    def _always(self, meaning: Meaning) -> str:
        """``always answers A``, where every answer to every question in every order is that one slot's."""
        if len(meaning) != 1 or not meaning[0].taken or len(self.rows) < np.isfinite(self.unsure).sum():
            return ""
        all_there = all(
            self.values.share[q, : (n := int(self.scores.n_options[q]))] @ meaning[0].place.among(n) == 1
            for q in self.rows
        )
        return f"always answers {names(meaning, self.scores.labels, self.sizes)[0][0]}" if all_there else ""

    def _by_size(self, sizes: Mapping[int, Meaning]) -> str:
        together: dict[str, list[str]] = {}
        for n, meaning in sizes.items():
            together.setdefault(self._words(meaning, [n]), []).append(str(n))
        where = [f"with {listed(own, 'or')}{'' if i else ' options'}" for i, own in enumerate(together.values())]
        return _by_part(list(zip(together, where, strict=True)), sizes.values())

    def _by_subject(self, subjects: Sequence[tuple[tuple[str, ...], Meaning]]) -> str:
        few = sum(len(members) for members, _ in subjects) <= 3
        parts = []
        for i, (members, meaning) in enumerate(subjects):
            count = f"{len(members)}" + ("" if i else " subjects" if len(members) > 1 else " subject")
            parts.append((self._words(meaning), f"in {listed(members, 'and') if few else count}"))
        return _by_part(parts, [meaning for _, meaning in subjects])

    def _is_slight(self, meaning: Meaning) -> bool:
        there = [sum(one.place.among(n).sum() for one in meaning) / n for n in self.scores.n_options[self.rows]]
        return bool(meaning) and abs(self._part(meaning)) < min(SLIGHT, float(np.mean(there)) / 2)

    def _part(self, meaning: Meaning) -> float:
        """What these places got of the unsure answers over the orders, beyond what content explains.

        Those avoided count down, so that a habit that moves answers its own way is above 0.
        """
        part = 0.0
        for group in self.groups:
            for one in meaning:
                gains = self.excess[group.rows, : group.n] @ one.place.among(group.n)
                part += float(gains.sum()) * (1 if one.taken else -1)
        return part / max(1, len(self.rows))

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
        intervals = [self.bootstrap.mean(place, share=False, confidence=strict) for place in places.T]
        return all(one.low > -MATTERS and one.high < MATTERS for one in intervals)


def _by_part(parts: Sequence[tuple[str, str]], meanings: Iterable[Meaning]) -> str:
    """What is said of each part, and the caveat of the plain sentence where a kind is unknown."""
    unknown = any(one.kind is None for meaning in meanings for one in meaning)
    caveat = f" (labels or the positions where they stand: {UNKNOWN})" if unknown else ""
    return f"{by_part(parts)} when unsure{caveat}"
