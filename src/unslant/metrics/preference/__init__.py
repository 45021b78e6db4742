"""What a model falls back on when it does not know: some labels, some positions, or nothing in particular."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unslant.metrics.bootstrap import SHARE, Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate
from unslant.metrics.labels import LAST, Kind, SlotEffect, Unit, at_slot, effects_of, place_shares, slot_effects
from unslant.metrics.permutation import unsure_questions
from unslant.metrics.preference.habit import FEWEST, LEVEL, HabitSearch, Places
from unslant.metrics.registry import NEEDS_ORDERS, metric
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import extended, represented, room_left_out, with_left_out
from unslant.responses import DECISION

Finding = Literal["habit", "own places", "trace", "none", "open"]
Names = tuple[tuple[str, ...], tuple[str, ...]]

MARGIN: Mapping[Unit, float] = {"nats": 0.2, "shares": 0.03}
"""Least pull that is a preference: 0.2 nats make 0.29 of a probability of 0.25."""
TRACE = 0.002
"""Smallest pull that is looked for at all, in nats or shares."""
SLIGHT = 0.05
"""Habits that move less than this share of the unsure answers are called slight."""
MATTERS = 0.05
"""Excess of the share of all answers that would matter: "no preference that moves" as much is said only where the
intervals of all places lie within."""
STICKY = 0.9
"""A question is stuck to a place when that place gets at least this share of its answers."""
UNKNOWN = "cannot be distinguished"
KINDS: tuple[Kind, ...] = ("label", "position")


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
        by_size, by_subject: where these differ, the phrase for each number of options, or each subject (empty: no
            preference).
        subjects_p: p-value of "subjects do not differ in their habit"; nan without subjects of two unsure questions.
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
@metric("preference.subjects_p", "p", "test that subjects do not differ in their habit", unit="p",
        source="Brown and Forsythe 1974")  # fmt: skip
def preference(scores: OrderScores, bootstrap: Bootstrap | None = None) -> Preference:
    """Find what a model prefers when unsure, that is on questions whose answer changes with the order.

    Two things are read off the same cells: how much each label and each position adds
    (:func:`slot_effects`), and which few of them explain it all (:class:`HabitSearch`), the sentence. The cells are
    log-probabilities, or choices where there are no probabilities.

    Example::

        preference(read_scores(responses)).phrase  # "falls back on A when unsure"
    """
    return _Sentence(scores, bootstrap or Bootstrap.of(scores)).preference()


class _Sentence:
    """The effects in one set of scores, and the sentence about them."""

    def __init__(self, scores: OrderScores, bootstrap: Bootstrap) -> None:
        self.scores, self.bootstrap = scores, bootstrap
        self.unsure = unsure_questions(scores)
        self.shares, expected = place_shares(scores, self.unsure)
        effects, chosen = effects_of(scores, self.unsure), (self.shares, expected, bootstrap)
        self.labels = slot_effects(scores, "label", effects, *chosen)
        self.positions = slot_effects(scores, "position", effects, *chosen)
        unit = [*effects][-1]
        n_options, excess = np.where(self.unsure == 1, scores.n_options, 0), np.nan_to_num(self.shares - expected)
        # labels of decisions are the server's, and never move
        fixed = scores.elicitation == DECISION
        self.search = HabitSearch(n_options, effects[unit], excess, bootstrap.sampling, unit, MARGIN[unit], fixed)
        self.habit = self.search.find()
        self.meaning = self.search.meaning(self.habit)

    def preference(self) -> Preference:
        """See :func:`preference`."""
        sizes = {n: self._words(there, [n]) for n, there in self.search.by_size(self.habit).items()}
        # the last of two and the second of four are both B
        differ = len({words for words, _ in sizes.values()}) > 1
        by_size = {n: "".join(words) for n, words in sizes.items() if differ}
        subjects_p, subjects, excluded = self.search.by_subject(np.asarray(self.scores.subjects, str))
        by_subject = {name: "".join(self._words(there)) for name, there in subjects.items()}
        sticky, scattered = self._sticky()
        nothing = f"shows no {'' if excluded else 'clear '}preference"
        finding, phrase, note = self._finding(by_size, by_subject, nothing, sticky.value if scattered else 0.0)
        if self.search.fixed_labels and finding in ("habit", "trace"):
            phrase += f" (or the label that the server puts there: {UNKNOWN})"
        takes, avoids = self._names(self.meaning, unknown=KINDS)
        of_all = extended(self.scores, self.unsure, np.zeros(len(self.scores)))
        unsure = self.bootstrap.mean(of_all, bounds=SHARE, note=NEEDS_ORDERS * bool(np.isnan(self.unsure).all()))
        room = room_left_out(unsure.value, self.scores, self.bootstrap, {"unsure": self.unsure})
        return Preference(
            *(finding, phrase, takes, avoids, by_size, by_subject, subjects_p, self.labels, self.positions),
            unsure=with_left_out(unsure, room),
            sticky=sticky,
            note=note,
        )

    def _finding(
        self, by_size: Mapping[int, str], by_subject: Mapping[str, str], nothing: str, sticky: float
    ) -> tuple[Finding, str, str]:
        """Finding, phrase and note; ``nothing`` is said of subjects without a habit, and ``sticky`` is the share of
        unsure questions that each keep to a place of their own."""
        n, n_unsure = int(np.isfinite(self.unsure).sum()), int((self.unsure == 1).sum())
        if not n:
            return "open", "one order cannot show a preference", NEEDS_ORDERS
        if n_unsure < FEWEST:
            of = f"{n_unsure} of {n:,} question{'s' * (n != 1)}"
            note = f"the answer changes with the order in {of}; {FEWEST} are needed"
            return "open", "too few unstable answers to detect a preference", note
        if always := self._always(self.meaning):
            words, caveat = self._words(always)
            return "habit", words.replace("falls back on", "always answers") + caveat, ""
        if by_subject:
            return "habit", by_part(by_subject, nothing), "subjects differ"
        if by_size:
            return "habit", by_part(by_size), "numbers of options differ"
        if self.meaning:
            note = "" if self.habit.adequate else "other labels or positions have pulls of their own"
            words, caveat = self._words(self.meaning, slight=self.search.moved(self.habit) / n_unsure < SLIGHT)
            return "habit", when_unsure(words) + caveat, note
        if sticky >= 0.5:
            share = 100 if sticky == 1 else min(99, round(100 * sticky))  # 399 of 400 are not all
            words = f"sticks to one position in {share} % of its unstable questions, not the same one in all"
            return "own places", words, "no label or position is preferred over all; were the questions seen before?"
        search = replace(self.search, margin=TRACE)
        trace = search.find()
        if (moved := search.moved(trace) / n_unsure) >= SLIGHT:
            words, caveat = self._words(search.meaning(trace))
            phrase = f"{when_unsure(words)}, which moves {100 * moved:.0f} points of its near ties{caveat}"
            pull = f"a pull of {np.abs(trace.pulls).max():.3f} {search.unit}"
            return "trace", phrase, f"{pull} decides between options that are nearly equal"
        few = "too few unsure questions to exclude one that matters"
        if always := self._always(search.places):
            label, position = (self._names(always, unknown=(kind,))[0][0] for kind in KINDS)
            said = f"every answer in every order is {label} ({position})"
            return "open", f"{said}; {n} questions are too few to call it a preference", few
        for rows in zip(self.labels, self.positions, strict=True):
            pulls = [(row.effect if search.unit == "nats" else row.excess).value for row in rows]
            if all(row.p < LEVEL for row in rows) and max(pulls) >= self.search.margin and min(pulls) < 0:
                words = "labels and their positions pull in opposite directions when unsure"
                return "open", words, "they cancel in the orders: see the effect of each"
        if self._nothing_matters():
            # of all answers: where few are unsure, they may all go to one place
            return "none", f"no preference that moves {100 * MATTERS:.0f} points of all answers", ""
        return "open", "no clear fallback preference", few

    def _always(self, places: Places) -> Places:
        """The place that gets every answer in every order, if one does."""
        sizes = self.search.sizes.items()
        every = [one for one in places if all((self.shares[part, :n] @ one.among(n) == 1).all() for n, part in sizes)]
        # the middle can be two places, and comes before each of them
        return () if (self.unsure == 0).any() else tuple(every[-1:])

    def _names(self, meaning: Places, sizes: Sequence[int] = (), unknown: tuple[Kind, ...] = ("label",)) -> Names:
        """Names of what is taken, and of what is avoided, from first to last; ``unknown`` for those of unknown kind."""
        sizes = sizes or [*self.search.sizes]
        names: dict[bool, list[str]] = {True: [], False: []}
        for one in sorted(meaning, key=lambda one: (one.kind == "position", int(one.among(max(sizes)).argmax()))):
            kinds = (one.kind,) if one.kind else unknown
            names[one.taken].append(" or ".join(one.name(kind, self.scores.labels, sizes) for kind in kinds))
        return tuple(names[True]), tuple(names[False])

    def _words(self, meaning: Places, sizes: Sequence[int] = (), slight: bool = False) -> tuple[str, str]:
        """What is taken and avoided; and that positions fit as well as labels, where the pages leave it open."""
        unknown = tuple(one._replace(taken=True) for one in meaning if one.kind is None)
        positions, _ = self._names(unknown, sizes, ("position",))
        caveat = f" (or {listed(positions, 'or')}: {UNKNOWN})" if unknown else ""
        return in_words(*self._names(meaning, sizes), slight), caveat

    def _sticky(self) -> tuple[Estimate, bool]:
        """How many unsure questions keep to one place, and whether these are more than one."""
        three = (self.unsure == 1) & (self.scores.n_options > 2)
        shares = np.nan_to_num(self.shares)
        most = three & (shares.max(axis=1) >= STICKY)
        from_top = shares[most].argmax(axis=1)
        # of several numbers of options, the last place has several numbers
        from_end = self.scores.n_options[most] - 1 - from_top
        counts = [np.bincount(place, minlength=1).max() for place in (from_top, from_end)]
        scattered = most.sum() >= 2 * FEWEST and max(counts) < 0.75 * most.sum()
        weights, note = represented(self.scores), "no unsure question of three options or more"
        return self.bootstrap.ratio(most * weights, three * weights, note=note), bool(scattered)

    def _nothing_matters(self) -> bool:
        """Whether the intervals of what every place gets of all answers lie within what matters."""
        places = np.column_stack([self.search.excess, at_slot(self.search.excess, self.scores.n_options - 1)])
        places[np.isnan(self.unsure)] = np.nan
        strict = 1 - (1 - CONFIDENCE) / places.shape[1]
        intervals = [self.bootstrap.mean(place, share=False, confidence=strict) for place in places.T]
        return all(one.low > -MATTERS and one.high < MATTERS for one in intervals)


def listed(items: Sequence[str], word: str) -> str:
    """``A``, ``A or C``, ``A, B or C``; of positions alone: ``the first or last position``."""
    ranks = [re.fullmatch("the (.*) position", item) for item in items]
    if len(items) > 1 and all(ranks):
        return f"the {listed([rank[1] for rank in ranks if rank], word)} position{'s' * (word == 'and')}"
    return f" {word} ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def in_words(taken: Sequence[str], avoided: Sequence[str], slight: bool = False) -> str:
    """What is taken and what is avoided, without the ``when unsure``; empty for neither."""
    toward, away = listed(taken, "or"), listed(avoided, "or")
    if slight:
        parts = [f"towards {toward}"] * bool(taken) + [f"away from {away}"] * bool(avoided)
        return f"leans slightly {', '.join(parts)}"
    if taken:
        return f"falls back on {toward}" + (f", away from {away}" if avoided else "")
    return f"avoids {listed(avoided, 'and')}" if avoided else ""


def when_unsure(words: str) -> str:
    """``falls back on A when unsure``; ``falls back on A, away from B, when unsure``."""
    return f"{words}{',' * (', away from' in words)} when unsure"


def by_part(phrases: Mapping[int, str] | Mapping[str, str], nothing: str = "shows no preference") -> str:
    """``falls back on A with 4 options, on the last position with 5 when unsure``; ``avoids A in 10 subjects, ...``.

    Args:
        phrases: number of options, or subject -> its phrase, empty for no preference.
        nothing: what is said of those without one.
    """
    some = {*phrases.values()} - {""}
    # one caveat at the end if it applies to all, else one for each
    at_end = len(some) > 1 and all(words.endswith(f"{UNKNOWN})") for words in some)
    together: dict[str, list[int | str]] = {}
    for part, words in phrases.items():
        together.setdefault(words.split(" (or ")[0] if at_end else words, []).append(part)
    sentence, before = list[str](), ""
    for words, parts in together.items():
        verb = next((verb for verb in ("falls back ", "avoids ") if words.startswith(verb)), "")
        if isinstance(parts[0], int):
            where = f"with {listed([*map(str, parts)], 'or')}{'' if sentence else ' options'}"
        elif len(phrases) <= 3:
            where = f"in {listed([*map(str, parts)], 'and')}"
        else:
            where = f"in {len(parts)}{'' if sentence else ' subject' if len(parts) == 1 else ' subjects'}"
        sentence.append(f"{words.removeprefix(verb if verb == before else '') or nothing} {where}")
        before = verb
    return f"{', '.join(sentence)} when unsure{f' (labels or their positions: {UNKNOWN})' * at_end}"
