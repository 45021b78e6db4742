"""The audit in two phases: a Latin square of orders for every question, all orders for a random part of them.

Beyond :data:`MOST_WHOLE` questions, asking every one of them in all orders buys little: see
:mod:`unslant.metrics.two_phase` for what is estimated how. What a square cannot show (rearranged labels, the reversed
order) is asked of the part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from unslant.arrays import Bools, Floats
from unslant.asking import Asked
from unslant.auditing.presented import audit_presentations, square_presentations
from unslant.auditing.settings import AuditSettings
from unslant.metrics import Bootstrap, read_scores, wilson
from unslant.metrics.accuracy import expected_accuracy
from unslant.metrics.estimate import normal_quantile
from unslant.metrics.measures import TwoPhaseValues
from unslant.metrics.registry import bounds_of
from unslant.metrics.two_phase import noise_between_squares, yes_or_no
from unslant.presentations import Presentation, auto_square, parse_labels
from unslant.questions import Question, QuestionSet
from unslant.questions.loaders import sample
from unslant.responses import SCHEMA, Responses, Run
from unslant.responses.run import TwoPhaseRun

MOST_WHOLE = 200
"""Questions up to which every one is asked in all orders."""
PART = 100
"""Questions that are asked in all orders, if that is enough."""
WIDTH = 2.0
"""How much wider than those of an audit in all orders the intervals of :data:`WIDENED` may be."""
WIDENED = ("pbm", "normalised_pbm", "consistency", "robust_accuracy")
"""What needs all orders; but for the votes, whose price would be too high (3.8 ordinary runs in place of 3.0 for 1,000
questions of a model that follows the place alone). The vote over a square is of all questions, and narrow."""
WIDTH_OF_MEAN = 1.15
"""The same for the mean over orders, which the square of each question shows up to what differs between squares."""
NARROW = 0.005
"""Half-width at which the mean over orders is known well enough, however much better all orders would do."""
WHOLE = "cyclic:24"
"""The orders of the part, as ``--orders`` names them: those of ``auto`` for all questions."""
MOST_STEPS = 4
"""Times that the part may grow."""


@dataclass(frozen=True)
class Phases:
    """Which questions are asked in all orders.

    Attributes:
        questions: all that are asked; full: ids of the part.
    """

    questions: Sequence[Question]
    seed: int
    alphabet: tuple[str, ...]
    own_labels: bool
    full: frozenset[str]

    @classmethod
    def of(
        cls, questions: Sequence[Question], orders: str, alphabet: tuple[str, ...], seed: int, *, own_labels: bool
    ) -> Phases | None:
        """The part of :data:`PART` questions; None where every question is asked in all orders.

        Args:
            orders: as ``--orders`` names them; only ``auto`` has phases.
            own_labels: see :func:`~unslant.auditing.presented.audit_presentations`.
        """
        if orders != "auto" or len(questions) <= MOST_WHOLE:
            return None
        return cls(questions, seed, alphabet, own_labels, frozenset()).with_part(PART)

    def with_part(self, size: int) -> Phases:
        """A copy with ``size`` questions in the part, by subject; those of a smaller part are among them."""
        return replace(self, full=frozenset(one.id for one in sample(self.questions, size, self.seed)))

    def shown(self, question: Question) -> list[Presentation]:
        """Every presentation of a question."""
        if question.id in self.full:
            return self.whole(question)
        return square_presentations(question, auto_square(question, self.seed), self.alphabet)

    def whole(self, question: Question) -> list[Presentation]:
        """Every presentation of a question of the part."""
        return audit_presentations(question, "auto", self.alphabet, self.seed, own_labels=self.own_labels)

    def run(self, of_prompts: int = 0) -> TwoPhaseRun:
        """What a run records.

        Args:
            of_prompts: prompts of an audit in all orders.
        """
        return TwoPhaseRun(full=tuple(sorted(self.full)), of_prompts=of_prompts)


def phases_of(found: QuestionSet[Question], chosen: AuditSettings, *, own_labels: bool = True) -> Phases | None:
    """The phases of an audit; None where every question is asked alike, or ``--until`` says what is asked."""
    if chosen.until is not None:
        return None
    return Phases.of(found.questions, chosen.orders, parse_labels(chosen.labels), chosen.seed, own_labels=own_labels)


def grown(
    phases: Phases,
    responses: Responses,
    ask: Callable[[list[Asked]], Responses],
) -> tuple[Phases, Responses]:
    """Ask more questions in all orders, until the intervals that need them are narrow enough.

    Args:
        responses: of the phases.
        ask: further presentations of questions.

    Returns:
        The phases and responses in the end, question by question.
    """
    texts = tuple(phases.questions)
    for _ in range(MOST_STEPS):
        scores = read_scores(replace(responses, run=Run(two_phase=phases.run()), questions=texts))
        found = TwoPhaseValues.of(scores)
        if found is None or scores.full is None or scores.full.all():
            break
        bootstrap, means = Bootstrap.of(scores), expected_accuracy(scores)
        needed = part_needed(found, scores.full, bootstrap)
        needed = max(needed, part_for_mean(means, noise_between_squares(scores), len(phases.full), bootstrap))
        if needed <= len(phases.full):
            break
        larger = phases.with_part(needed)
        further: list[Asked] = []
        for question in phases.questions:
            if question.id in larger.full - phases.full:
                seen = {shown.contents for shown in phases.shown(question)}
                rest = (one for one in larger.whole(question) if one.kind not in _OF_ORDERS or one.contents not in seen)
                further += [(question, one) for one in rest]
        responses = _joined(responses, ask(further), phases, larger)
        phases = larger
    return phases, responses


_OF_ORDERS = ("order", "given", "reverse")


def _joined(responses: Responses, more: Responses, phases: Phases, larger: Phases) -> Responses:
    """Two tables, question by question; the published order of a question now asked in all orders is one of them."""
    table = pa.concat_tables([responses.table, more.table])
    ids, kinds = table["question_id"].to_pylist(), table["kind"].to_pylist()
    new = larger.full - phases.full
    kinds = ["order" if kind == "given" and name in new else kind for kind, name in zip(kinds, ids, strict=True)]
    place = {question.id: i for i, question in enumerate(phases.questions)}
    sequence = np.argsort([place.get(name, len(place)) for name in ids], kind="stable")
    at = SCHEMA.get_field_index("kind")
    table = table.set_column(at, SCHEMA.field(at), pa.array(kinds, pa.string())).take(pa.array(sequence))
    return Responses(table, responses.run, responses.questions)


def part_needed(found: TwoPhaseValues, full: Bools, bootstrap: Bootstrap) -> int:
    """Questions of the part that make the intervals of :data:`WIDENED` at most :data:`WIDTH` times as wide as all
    orders of all questions would; those there are, if they do.

    Args:
        full: (Q,) questions of the part.
    """
    size, needed = len(full), found.shown
    for key in WIDENED:
        known = found.known[key][np.isfinite(found.known[key]) & full]
        estimate = bootstrap.two_phase(found.values[key], found.known[key], found.shown, bounds=bounds_of(key))
        if len(known) < 2 or math.isnan(estimate.low):
            continue
        spread = max(known.std(ddof=1), np.nanstd(found.values[key][~full]))  # the part may show less than there is
        usual = 2 * normal_quantile(estimate.confidence) * float(spread) / math.sqrt(estimate.n)
        if yes_or_no(known) and key != "normalised_pbm":  # which is 1 of all questions, where a model always says A
            share = wilson(estimate.value, estimate.n)
            usual = share.high - share.low
        if usual <= 0 or (ratio := (estimate.high - estimate.low) / usual) <= WIDTH:
            continue
        # the width squared, over that of all orders, is about 1 + c (1 / n - 1 / N)
        c = (ratio**2 - 1) / (1 / found.shown - 1 / size) if found.shown < size else 0.0
        needed = max(needed, math.ceil(1 / ((_SAFE * WIDTH**2 - 1) / c + 1 / size)) if c else size)
    return min(size, needed)


def part_for_mean(means: Floats, noise: Floats, shown: int, bootstrap: Bootstrap) -> int:
    """Questions of the part that make the interval of the mean over orders at most :data:`WIDTH_OF_MEAN` times as wide
    as all orders of all questions would, or :data:`NARROW`; those there are, if they do.

    A question's mean over its square varies by v + s, v between questions and s between the squares of one. With n of N
    in all orders, the mean of all varies by (v + (1 - n / N) s) / N.

    Args:
        means: (Q,) share right over the orders shown.
        noise: (n,) of the part: s of each question.
        shown: n, the questions of the part.
    """
    estimate, size = bootstrap.mean(means), len(means)
    s, total = float(np.nanmean(noise)) if np.isfinite(noise).any() else 0.0, float(np.nanvar(means))
    v, half = max(0.0, total - (1 - shown / size) * s), (estimate.high - estimate.low) / 2
    if not half > NARROW or total <= WIDTH_OF_MEAN**2 * v:
        return shown
    allowed = max((_SAFE * WIDTH_OF_MEAN**2 - 1) * v, _SAFE * total * (NARROW / half) ** 2 - v)
    return min(size, math.ceil(size * (1 - max(0.0, allowed) / s)))


_SAFE = 0.9
"""Of the squared width allowed, what is aimed at."""
