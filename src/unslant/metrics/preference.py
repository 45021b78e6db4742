"""What a model falls back on when it does not know: a label, a position, or nothing in particular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.labels import at_slot
from unslant.metrics.permutation import consistent
from unslant.metrics.scores import OrderScores, View
from unslant.metrics.ties import credit

Kind = Literal["label", "position"]

MARGIN = 0.05
"""A preference is named from this much above the share expected of a model without one (5 points)."""
PROBABILITY_MARGIN = 0.02
"""... and if the mean probability lies this much above, too: the most probable of nearly equal options is still a
choice of nothing, and would make a trace of preference look like a firm one."""
MIN_UNSURE = 10
LAST = "last"


@dataclass(frozen=True)
class SlotPreference:
    """How often one slot (a label at its standard position; ``last``: the last position) is taken when unsure.

    Attributes:
        label: the label, or ``last``.
        chosen: share of orders in which it was the answer, among unsure questions that have it (ties shared evenly).
        probability: mean probability it was given there.
        expected: ``chosen`` for a model that goes by content alone: what was chosen, at the places where it stood.
            1/n on average when every option stands everywhere equally often.
        excess: ``chosen`` minus expected, over all unsure questions (0 where a question lacks the slot).
        probability_excess: the same for the probability.
    """

    label: str
    chosen: Estimate
    probability: Estimate
    expected: float
    excess: Estimate
    probability_excess: Estimate


@dataclass(frozen=True)
class Preference:
    """What the answers go by where they change with the order.

    Attributes:
        named: the slot preferred, by its label in the standard sequence (``"A"``), ``"last"``, or ``None``.
        kind: whether it is the label or the position that is preferred; ``None`` where the responses cannot tell.
        slots: every label, then ``last``.
        unsure: share of questions whose answer changes with the order.
        position_over_label: with the labels reversed, how much more often the preferred position is taken than the
            position where its label now stands: +1 position only, -1 label only.
        note: why nothing is named, where the data do not allow it.
    """

    named: str | None
    kind: Kind | None
    slots: tuple[SlotPreference, ...]
    unsure: Estimate
    position_over_label: Estimate
    note: str = ""

    @property
    def slot(self) -> SlotPreference | None:
        """The preferred slot's row."""
        return next((slot for slot in self.slots if slot.label == self.named), None)

    @property
    def phrase(self) -> str:
        """In words: ``prefers A when unsure``."""
        if self.named is None:
            return "prefers no label or position when unsure"
        if self.named == LAST:
            return "prefers the last position when unsure"
        place = {"label": " (the label, wherever it stands)", "position": " (the position, whatever its label)"}
        return f"prefers {self.named} when unsure" + (place[self.kind] if self.kind else "")


@dataclass(frozen=True)
class _Taken:
    """Per question and slot, over its orders; nan where a question is not unsure or has no such slot."""

    share: Floats
    expected: Floats

    @property
    def excess(self) -> Floats:
        return self.share - self.expected


def preference(
    scores: OrderScores,
    bootstrap: Bootstrap | None = None,
    *,
    margin: float = MARGIN,
    probability_margin: float = PROBABILITY_MARGIN,
) -> Preference:
    """Find what a model prefers when unsure, that is on questions whose answer changes with the order.

    Named is the slot with the greatest excess over content (see :class:`SlotPreference`), if that is at least
    ``margin`` with an interval above 0, and the same holds for its probability and ``probability_margin``. Intervals
    for naming are widened for the number of slots looked at (Bonferroni), and there must be ``MIN_UNSURE`` questions.

    ``order`` rows alone cannot tell a label from its position. ``labels-reversed`` and ``both-reversed`` rows can:
    there, the preferred label stands at the mirrored position. Which of the two is taken decides ``kind``.
    """
    bootstrap = bootstrap or Bootstrap(len(scores), scores.subjects)
    unsure = _unsure(scores)
    chosen, probability = (_taken(scores, unsure, rule) for rule in ("chosen", "probability"))
    columns = (*scores.labels, LAST)
    slots = tuple(
        _slot(scores, label, j, chosen, probability, bootstrap, len(columns)) for j, label in enumerate(columns)
    )
    n_unsure = int(np.nansum(unsure))
    share = bootstrap.mean(unsure, note="needs two or more orders a question")
    nothing = Estimate.undefined("no preference named", confidence=bootstrap.confidence)
    if n_unsure < MIN_UNSURE:
        note = f"the answer changes with the order in {n_unsure} questions; at least {MIN_UNSURE} are needed"
        return Preference(None, None, slots, share, nothing, note)
    passed = [
        s
        for s in slots
        if s.excess.value >= margin
        and s.excess.low > 0
        and s.probability_excess.value >= probability_margin
        and s.probability_excess.low > 0
    ]
    if not passed:
        return Preference(None, None, slots, share, nothing)
    twin = _twin_of_last(scores, unsure)
    best = max(passed, key=lambda s: (s.excess.value, s.label == LAST))
    label = LAST if twin is not None and best.label == scores.labels[twin] else best.label
    kind, evidence = _label_or_position(scores, unsure, label, bootstrap, margin)
    if label == LAST and kind == "label":
        # with one option count the last position's label is one label; with several, no label answers to the evidence
        label, kind = (scores.labels[twin], kind) if twin is not None else (label, None)
    return Preference(label, kind, slots, share, evidence)


def _unsure(scores: OrderScores) -> Floats:
    """(Q,) 1 where the answer changes with the order, 0 where not, nan with fewer than two orders."""
    result = np.full(len(scores), np.nan)
    for block in scores.blocks:
        if block.k > 1:
            result[block.index] = ~consistent(block.probs, block.positions)
    return result


def _taken(scores: OrderScores, unsure: Floats, rule: str) -> _Taken:
    share, expected = (np.full(scores.answers.shape, np.nan) for _ in range(2))
    for block in scores.blocks:
        picked = credit(block.probs) if rule == "chosen" else block.probs
        by_content = np.broadcast_to(picked.mean(axis=1, keepdims=True), picked.shape)
        share[block.index, : block.n] = block.by_position(picked).mean(axis=1)
        expected[block.index, : block.n] = block.by_position(by_content).mean(axis=1)
    for values in (share, expected):
        values[unsure != 1] = np.nan
    return _Taken(share, expected)


def _slot(
    scores: OrderScores, label: str, j: int, chosen: _Taken, probability: _Taken, bootstrap: Bootstrap, tested: int
) -> SlotPreference:
    def column(values: Floats) -> Floats:
        return at_slot(values, scores.n_options - 1) if label == LAST else values[:, j]

    def over_all(taken: _Taken) -> Floats:
        unsure = ~np.isnan(taken.share[:, 0])
        return np.where(unsure, np.nan_to_num(column(taken.excess)), np.nan)

    strict = 1 - (1 - bootstrap.confidence) / tested
    expected = column(chosen.expected)
    return SlotPreference(
        label,
        bootstrap.mean(column(chosen.share)),
        bootstrap.mean(column(probability.share)),
        float(np.nanmean(expected)) if not np.isnan(expected).all() else float("nan"),
        bootstrap.mean(over_all(chosen), share=False, confidence=strict),
        bootstrap.mean(over_all(probability), share=False, confidence=strict),
    )


def _twin_of_last(scores: OrderScores, unsure: Floats) -> int | None:
    """The slot that is the last one in nearly every unsure question that has it, and so cannot be told from ``last``.

    ``None`` where option counts are mixed enough.
    """
    n = scores.n_options[unsure == 1]
    common = int(np.bincount(n).argmax())
    return common - 1 if (n == common).mean() >= 0.9 else None


def _label_or_position(
    scores: OrderScores, unsure: Floats, label: str, bootstrap: Bootstrap, margin: float
) -> tuple[Kind | None, Estimate]:
    last = scores.n_options - 1
    place = last if label == LAST else np.full(len(scores), scores.labels.index(label))
    views = [_excess_at(scores, view) for view in (scores.labels_reversed, scores.both_reversed)]
    inside = (place <= last) & (2 * place != last) & (unsure == 1)
    both = np.stack([at_slot(v, np.minimum(place, last)) - at_slot(v, np.maximum(last - place, 0)) for v in views])
    known = ~np.isnan(both)
    mean = np.divide(
        np.nan_to_num(both).sum(axis=0), known.sum(axis=0), out=np.full(len(scores), np.nan), where=known.any(axis=0)
    )
    evidence = bootstrap.mean(np.where(inside, mean, np.nan), share=False, note="no presentation with reversed labels")
    if evidence.value >= margin and evidence.low > 0:
        return "position", evidence
    if evidence.value <= -margin and evidence.high < 0:
        return "label", evidence
    return None, evidence


def _excess_at(scores: OrderScores, view: View) -> Floats:
    """(Q, N) by position: what was chosen in ``view`` minus what content alone, over all orders, would choose there."""
    by_content = np.full(scores.answers.shape, np.nan)
    for block in scores.blocks:
        by_content[block.index, : block.n] = credit(block.probs).mean(axis=1)
    excess = np.full(scores.answers.shape, np.nan)
    ok = view.ok
    contents = np.argsort(view.positions[ok], axis=1)
    excess[ok] = np.take_along_axis(credit(view.probs[ok]) - by_content[ok], contents, axis=1)
    return excess
