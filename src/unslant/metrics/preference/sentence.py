"""What a model falls back on when it does not know: some labels, some positions, or nothing in particular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unslant.metrics.bootstrap import SHARE, Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.preference.habit import FEWEST, Kind, Meaning, Named, Search
from unslant.metrics.preference.slots import (
    LAST,
    SlotEffect,
    Unit,
    has_probabilities,
    place_shares,
    question_effects,
    slot_effects,
    slot_groups,
    unsure_questions,
)
from unslant.metrics.registry import NEEDS_ORDERS, metric
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import extended
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
UNKNOWN = "cannot be distinguished"
_VERBS = ("falls back ", "avoids ")


@dataclass(frozen=True)
class Preference:
    """What the answers go by where they change with the order.

    Attributes:
        finding: ``habit``: slots that are taken or avoided. ``own places``: each question keeps to a place of its own.
            ``trace``: a pull too small to matter that decides between nearly equal options all the same. ``none``: no
            preference that matters. ``open``: the data do not decide.
        phrase: the finding in words.
        takes, avoids: names of the slots taken and avoided, all questions together; ``A or the first position`` where
            nothing shows which of them is meant.
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


@metric("sticky", "keeps to one place", "unsure questions where one place gets nearly all answers", unit="share")
@metric("preference.subjects_p", "p", "F test: subjects do not differ in their habit", unit="p")
def preference(scores: OrderScores, bootstrap: Bootstrap | None = None) -> Preference:
    """Find what a model prefers when unsure, that is on questions whose answer changes with the order.

    Two things are read off the same cells: how much each label and each position adds
    (:mod:`unslant.metrics.preference.slots`), and which few of them explain it all
    (:mod:`~unslant.metrics.preference.habit`), the sentence. The cells are log-probabilities, or choices where there
    are no probabilities.

    Example::

        preference(read_scores(responses)).phrase  # "falls back on A when unsure"
    """
    return _Sentence(scores, bootstrap or Bootstrap.of(scores)).preference()


class _Sentence:
    """The effects in one set of scores, and what is said of them."""

    def __init__(self, scores: OrderScores, bootstrap: Bootstrap) -> None:
        self.scores, self.bootstrap = scores, bootstrap
        self.unsure = unsure_questions(scores)
        self.rows = np.flatnonzero(self.unsure == 1)
        self.shares, self.expected = place_shares(scores, self.unsure)
        unit: Unit = "nats" if has_probabilities(scores) else "shares"
        groups = slot_groups(scores, self.unsure, unit)
        excess = np.nan_to_num(self.shares - self.expected)
        # labels of decisions are the server's, and never move
        by_server = scores.elicitation == DECISION
        self.search = Search(groups, bootstrap.sampling, excess, unit, MARGIN[unit], fixed_labels=by_server)
        self.habit = self.search.find()
        self.meaning, self.sizes = self.search.meaning(self.habit), self.search.by_size(self.habit)
        self.subjects_p, self.subjects = self.search.by_subject(scores.subjects)
        if len({self._words(meaning) for meaning in self.subjects.values()}) < 2:
            self.subjects = {}

    def preference(self) -> Preference:
        """See :func:`preference`."""
        scores, search = self.scores, self.search
        sticky, scattered = self._sticky()
        finding, phrase, note = self._finding(sticky.value if scattered else 0.0)
        if search.fixed_labels and finding in ("habit", "trace"):
            phrase += f" (or the label that the server puts there: {UNKNOWN})"
        effects = {search.unit: question_effects(search.groups, scores)}
        if search.unit == "nats":
            effects["shares"] = question_effects(slot_groups(scores, self.unsure, "shares"), scores)
        labels, positions = slot_effects(scores, effects, self.shares, self.expected, self.bootstrap)
        unsure = extended(scores, self.unsure, np.zeros(len(scores)))
        missing = "" if np.isfinite(self.unsure).any() else NEEDS_ORDERS
        return Preference(
            finding,
            phrase,
            *self._names(self.meaning, unknown=("label", "position")),
            {n: self._words(one, [n]) + self._caveat(one, [n]) for n, one in self.sizes.items()},
            {name: self._words(one) + self._caveat(one) for name, one in self.subjects.items()},
            self.subjects_p,
            labels,
            positions,
            self.bootstrap.mean(unsure, bounds=SHARE, note=missing),
            sticky,
            note,
        )

    def _names(
        self, meaning: Meaning, sizes: Sequence[int] = (), unknown: tuple[Kind, ...] = ("label",)
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of what is taken, and of what is avoided, from first to last; ``unknown`` for those of unknown kind."""
        sizes = sizes or [*self.search.sizes]

        def name(one: Named) -> str:
            kinds = (one.kind,) if one.kind else unknown
            return " or ".join(one.place.name(kind, self.scores.labels, sizes) for kind in kinds)

        ranked = sorted(meaning, key=lambda one: (one.kind == "position", int(one.place.among(max(sizes)).argmax())))
        taken, avoided = (tuple(name(one) for one in ranked if one.taken == way) for way in (True, False))
        return taken, avoided

    def _words(self, meaning: Meaning, sizes: Sequence[int] = (), slight: bool = False) -> str:
        return in_words(*self._names(meaning, sizes), slight)

    def _caveat(self, meaning: Meaning, sizes: Sequence[int] = ()) -> str:
        """That the positions of the labels named fit as well."""
        unknown = tuple(one._replace(taken=True) for one in meaning if one.kind is None)
        positions, _ = self._names(unknown, sizes, ("position",))
        return f" (or {listed(positions, 'or')}: {UNKNOWN})" if unknown else ""

    def _finding(self, sticky: float) -> tuple[Finding, str, str]:
        """Finding, phrase and note."""
        n, meaning, sizes = int(np.isfinite(self.unsure).sum()), self.meaning, self.search.sizes
        if not n:
            return "open", "one order cannot show a preference", NEEDS_ORDERS
        if len(self.rows) < FEWEST:
            note = f"the answer changes with the order in {len(self.rows)} of {n} questions; {FEWEST} are needed"
            return "open", "too few unstable answers to detect a preference", note
        for one in meaning if len(self.rows) == n else ():
            at = (self.shares[part, :size] @ one.place.among(size) for size, part in sizes.items())
            if one.taken and all((share == 1).all() for share in at):
                return "habit", f"always answers {self._names((one,))[0][0]}{self._caveat((one,))}", ""
        if self.subjects:
            return "habit", self._in_parts(self.subjects), "subjects differ"
        if self.sizes:
            return "habit", self._in_parts(self.sizes), "numbers of options differ"
        if meaning:
            note = "" if self.habit.adequate else "other labels or positions have pulls of their own"
            there = [sum(one.place.among(n).sum() for one in meaning) / n for n in self.scores.n_options[self.rows]]
            slight = self.search.moved(self.habit) / len(self.rows) < min(SLIGHT, float(np.mean(there)) / 2)
            return "habit", when_unsure(self._words(meaning, slight=slight)) + self._caveat(meaning), note
        if sticky >= 0.5:
            words = f"sticks to one position in {sticky:.0%} of its unstable questions, not the same one in all"
            return "own places", words, "no label or position is preferred over all; were the questions seen before?"
        search = replace(self.search, margin=TRACE)
        trace = search.find()
        if (part := search.moved(trace) / len(self.rows)) >= SLIGHT:
            meaning = search.meaning(trace)
            note = (
                f"a pull of {np.abs(trace.pulls).max():.3f} {search.unit} decides between options that are nearly equal"
            )
            moved = f"which moves {100 * part:.0f} points of its near ties"
            return "trace", f"{when_unsure(self._words(meaning))}, {moved}{self._caveat(meaning)}", note
        if self._nothing_matters():
            return "none", "no preference when unsure", ""
        return "open", "no clear fallback preference", "too few unsure questions to exclude one that matters"

    def _in_parts(self, meanings: Mapping[int, Meaning] | Mapping[str, Meaning]) -> str:
        """What is said of each number of options, or of each subject, with the caveat where a kind is unknown."""
        together: dict[str, list[str]] = {}
        for key, meaning in meanings.items():
            words = self._words(meaning, [key] if isinstance(key, int) else ())
            together.setdefault(words, []).append(str(key))
        if meanings is self.sizes:
            where = [f"with {listed(keys, 'or')}" for keys in together.values()]
            where[0] += " options"
        elif len(meanings) <= 3:
            where = [f"in {listed(keys, 'and')}" for keys in together.values()]
        else:
            where = [f"in {len(keys)}" for keys in together.values()]
            where[0] += " subject" if where[0] == "in 1" else " subjects"
        unknown = any(one.kind is None for meaning in meanings.values() for one in meaning)
        caveat = f" (labels or their positions: {UNKNOWN})" if unknown else ""
        return f"{by_part([*zip(together, where, strict=True)])} when unsure{caveat}"

    def _sticky(self) -> tuple[Estimate, bool]:
        """How many unsure questions keep to one place, and whether these are more than one."""
        three = (self.unsure == 1) & (self.scores.n_options > 2)
        shares = np.nan_to_num(self.shares)
        most = np.where(three, shares.max(axis=1) >= STICKY, np.nan)
        counts = np.bincount(shares[most == 1].argmax(axis=1), minlength=1)
        scattered = counts.sum() >= 2 * FEWEST and counts.max() < 0.75 * counts.sum()
        note = "" if three.any() else "no unsure question of three options or more"
        return self.bootstrap.mean(most, note=note), bool(scattered)

    def _nothing_matters(self) -> bool:
        """Whether the intervals of what every place gets of all answers lie within what matters."""
        last = np.take_along_axis(self.search.excess, self.scores.n_options[:, None] - 1, axis=1)
        places = np.concatenate([self.search.excess, last], axis=1)
        places[np.isnan(self.unsure)] = np.nan
        strict = 1 - (1 - self.bootstrap.confidence) / places.shape[1]
        intervals = [self.bootstrap.mean(place, share=False, confidence=strict) for place in places.T]
        return all(one.low > -MATTERS and one.high < MATTERS for one in intervals)


def listed(items: Sequence[str], word: str) -> str:
    """``A``, ``A or C``, ``A, B or C``; of positions alone: ``the first or last position``."""
    ending = " position"
    if len(items) > 1 and all(item.startswith("the ") and item.endswith(ending) for item in items):
        ranks = [item.removeprefix("the ").removesuffix(ending) for item in items]
        return f"the {listed(ranks, word)}{ending}{'s' if word == 'and' else ''}"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"


def in_words(taken: Sequence[str], avoided: Sequence[str], slight: bool = False) -> str:
    """What is taken and what is avoided, without the ``when unsure``; empty for neither."""
    toward, away = (listed(items, "or") if items else "" for items in (taken, avoided))
    if slight:
        parts = [f"towards {toward}"] * bool(taken) + [f"away from {away}"] * bool(avoided)
        return f"leans slightly {', '.join(parts)}"
    if taken:
        return f"falls back on {toward}" + (f", away from {away}" if avoided else "")
    return f"avoids {listed(avoided, 'and')}" if avoided else ""


def when_unsure(words: str) -> str:
    """``falls back on A when unsure``; ``falls back on A, away from B, when unsure``."""
    return f"{words}{',' * (', away from' in words)} when unsure"


def by_part(parts: Sequence[tuple[str, str]]) -> str:
    """What is said of one part and another: ``falls back on A with 4 options, on the last position with 5``.

    Args:
        parts: (what is said, empty for no preference; the part it is said of).
    """
    sentence, before = [], ""
    for words, where in parts:
        verb = next((verb for verb in _VERBS if words.startswith(verb)), "")
        said = words.removeprefix(verb) if verb == before else words
        sentence.append(f"{said or 'shows no preference'} {where}")
        before = verb
    return ", ".join(sentence)
