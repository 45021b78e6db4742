"""The orders in which an audit shows each question, and the audit in two phases.

With more than :data:`MOST_WHOLE` questions, asking every one in all orders buys little precision. Each question is then
asked in a Latin square of its orders, and a random part of them in all orders. Rearranged labels and the reversed
order, which a square does not have, are asked of the part only. See :mod:`unslant.metrics.two_phase` for the estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from unslant.arrays import Bools, Floats
from unslant.asking import Asked
from unslant.auditing import AuditSettings
from unslant.metrics import Bootstrap, Estimate, read_scores, wilson
from unslant.metrics.accuracy import expected_accuracy
from unslant.metrics.estimate import normal_quantile
from unslant.metrics.registry import bounds_of
from unslant.metrics.two_phase import TwoPhaseValues, noise_between_squares, yes_or_no
from unslant.presentations import (
    Chooser,
    Order,
    Presentation,
    auto_square,
    control_presentations,
    cyclic_orders,
    given_order,
    labels_for,
    orders_for,
    parse_labels,
    present,
    reversed_order,
)
from unslant.prompts import Cloze, Decision, Elicitation
from unslant.questions import Question, QuestionSet
from unslant.questions.loaders import sample
from unslant.responses import SCHEMA, Responses, Run
from unslant.responses.run import TwoPhaseRun

MOST_ORDERS = 6
"""Default number of orders of a question where replies are read: they are expensive."""
MOST_WHOLE = 200
"""Up to this many questions, all are asked in all orders."""
PART = 100
"""Questions that are asked in all orders to begin with."""
WIDTH = 2.0
"""How many times wider than in an audit in all orders the intervals of :data:`WIDENED` may be."""
WIDENED = ("pbm", "normalised_pbm", "consistency", "robust_accuracy")
"""Numbers that need all orders and for which the part grows. Not the votes: for 1,000 questions and a model that only
follows the place, they would cost 3.8 instead of 3.0 ordinary runs, and the vote over a square is narrow."""
WIDTH_OF_MEAN = 1.15
"""The same for the mean over orders, which misses only what differs between the squares of a question."""
WHOLE = "cyclic:24"
"""``--orders`` that asks every question what ``auto`` asks of the part."""
_SAFE = 0.9
"""Share of the allowed squared width that the next size aims at, so that the part need not grow again."""
_OF_ORDERS = ("order", "given", "reverse")


def order_presentations(
    question: Question, orders: str, alphabet: tuple[str, ...], seed: int = 0
) -> list[Presentation]:
    """A question's order set, plus the given and the reversed order if they are not in it."""
    return square_presentations(
        question, orders_for(question, orders, seed), alphabet, reverse=reversed_order(question)
    )


def square_presentations(
    question: Question, orders: Sequence[Order], alphabet: tuple[str, ...], **more: Order
) -> list[Presentation]:
    """The orders, plus the given one and those of ``more`` kinds if they are not among them."""
    others = {"given": given_order(question)} | more
    return [
        *(present(question, order, alphabet) for order in orders),
        *(present(question, order, alphabet, kind) for kind, order in others.items() if order not in orders),
    ]


def audit_presentations(
    question: Question, orders: str, alphabet: tuple[str, ...], seed: int = 0, *, own_labels: bool = True
) -> list[Presentation]:
    """The :func:`order_presentations` of a question, and rearranged labels.

    Labels are reversed in the given and in the reversed order. With three options or more they are also shifted by one,
    because reversal leaves the middle label in place, and only a shift separates label from position there. Questions
    whose options are all pinned have a single order, hence no reversed one. ``latin`` shows only the square and the
    published order: its point is the price.

    Args:
        own_labels: false for a decision endpoint, which labels the options itself: they cannot be rearranged.
    """
    if orders == "latin":
        return square_presentations(question, orders_for(question, orders, seed), alphabet)
    presentations = order_presentations(question, orders, alphabet, seed)
    if not own_labels:
        return presentations
    published, reverse = given_order(question), reversed_order(question)
    labels = labels_for(alphabet, len(question.options))
    upside_down = labels[::-1]
    presentations.append(present(question, published, kind="labels-reversed", labels=upside_down))
    if reverse != published:
        presentations.append(present(question, reverse, kind="both-reversed", labels=upside_down))
    if len(labels) > 2:
        presentations.append(present(question, published, kind="labels-shifted", labels=(*labels[1:], labels[0])))
    return presentations


def orders_in_words(question: Question, spec: str, seed: int = 0) -> list[Order]:
    """The orders in which replies are asked for; ``auto`` is the rotations, or six of them for more options."""
    if spec != "auto":
        return orders_for(question, spec, seed)
    turns = cyclic_orders(question)
    few = min(len(turns), MOST_ORDERS)
    return [turns[k * len(turns) // few] for k in range(few)]


@dataclass(frozen=True)
class OrderDesign:
    """Which orders and labels of each question an audit shows, where labels are scored.

    Attributes:
        own_labels: see :func:`audit_presentations`.
        full: ids of the questions asked in all orders, where the others are asked in a square; None where every
            question is asked alike, or ``--until`` chooses as it goes.
    """

    questions: QuestionSet[Question]
    settings: AuditSettings
    elicitation: Elicitation
    chooser: Chooser
    own_labels: bool = True
    full: frozenset[str] | None = None
    _sizes: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, questions: QuestionSet[Question], settings: AuditSettings, *, own_labels: bool = True) -> OrderDesign:
        """The design of an audit; beyond :data:`MOST_WHOLE` questions, :data:`PART` of them are asked in all orders.

        Raises:
            InputError: if questions, labels, orders or worked examples are incompatible.
        """
        writer, chooser = settings.writer(), settings.chooser(questions, parse_labels(settings.labels))
        design = cls(questions, settings, Cloze(writer) if own_labels else Decision.of(writer), chooser, own_labels)
        for question in questions:
            design.prompts_in_all(question)
            chooser(question)
        phased = settings.until is None and settings.orders == "auto" and len(questions) > MOST_WHOLE
        return design.with_part(PART) if phased else design

    def with_part(self, size: int) -> OrderDesign:
        """A copy with ``size`` questions in all orders, by subject; those of a smaller part are among them."""
        part = sample(self.questions.questions, size, self.settings.seed)
        return replace(self, full=frozenset(question.id for question in part))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return parse_labels(self.settings.labels)

    def asked(self) -> Iterator[Asked]:
        """Everything: what each question is shown in, then the controls."""
        for question in self.questions:
            yield from self.shown(question)
        yield from self.controls

    def shown(self, question: Question) -> list[Asked]:
        """Every presentation of a question, with its worked examples."""
        return self.whole(question) if self.full is None or question.id in self.full else self.square(question)

    def whole(self, question: Question) -> list[Asked]:
        """Every presentation of a question that is asked in all orders."""
        return self.in_orders(question, self.settings.orders)

    def square(self, question: Question) -> list[Asked]:
        """A Latin square of the orders of ``auto``, and the published order."""
        orders = auto_square(question, self.settings.seed)
        return self._with_shots(question, square_presentations(question, orders, self.alphabet))

    def published(self, question: Question) -> list[Asked]:
        """The published order alone."""
        return self._with_shots(question, [present(question, given_order(question), self.alphabet, "given")])

    def in_orders(self, question: Question, orders: str) -> list[Asked]:
        """What an audit with these ``--orders`` shows."""
        seed, own_labels = self.settings.seed, self.own_labels
        pages = audit_presentations(question, orders, self.alphabet, seed, own_labels=own_labels)
        return self._with_shots(question, pages)

    def _with_shots(self, question: Question, pages: Iterable[Presentation]) -> list[Asked]:
        examples = self.chooser(question)
        return [(question, page.with_shots(examples)) for page in pages]

    @cached_property
    def controls(self) -> list[Asked]:
        """Prompts without content, which show what labels get by themselves."""
        sizes = sorted({len(question.options) for question in self.questions} if self.own_labels else ())
        return [one for n in sizes for one in control_presentations(n, self.alphabet, seed=self.settings.seed)]

    def prompts_in_all(self, question: Question) -> int:
        """Prompts of a question that is asked in all orders."""
        shape = len(question.options), question.pinned
        if shape not in self._sizes:
            self._sizes[shape] = len(self.whole(question))
        return self._sizes[shape]

    @property
    def prompts_of_all(self) -> int:
        """Prompts of an audit that asks every question in all orders."""
        return sum(map(self.prompts_in_all, self.questions)) + len(self.controls)

    @property
    def expected(self) -> int:
        """About how many prompts this audit has, for the progress."""
        if self.full is None:
            return self.prompts_of_all
        whole = (question.id in self.full for question in self.questions)
        return sum(
            self.prompts_in_all(question) if every else len(question.movable) + 1
            for question, every in zip(self.questions, whole, strict=True)
        )

    @property
    def recorded(self) -> TwoPhaseRun | None:
        """What a run says about its two phases."""
        if self.full is None:
            return None
        return TwoPhaseRun(full=tuple(sorted(self.full)), of_prompts=self.prompts_of_all)


def grown(
    design: OrderDesign, responses: Responses, ask: Callable[[list[Asked]], Responses]
) -> tuple[OrderDesign, Responses]:
    """Ask more questions in all orders, until the intervals that need them are narrow enough.

    Args:
        responses: of the design.
        ask: asks further presentations.

    Returns:
        The design and responses in the end, question by question.
    """
    texts = design.questions.questions
    while design.full is not None:
        scores = read_scores(replace(responses, run=Run(two_phase=design.recorded), questions=tuple(texts)))
        values = TwoPhaseValues.of(scores)
        if values is None or scores.full is None or scores.full.all():
            break
        means, noise = expected_accuracy(scores), noise_between_squares(scores)
        size = next_part(values, scores.full, means, noise, Bootstrap.of(scores))
        if size <= len(design.full):
            break
        larger = design.with_part(size)
        new = (larger.full or frozenset()) - design.full
        further: list[Asked] = []
        for question in (question for question in texts if question.id in new):
            known = {page.contents for _, page in design.square(question)}
            pages = design.whole(question)
            further += [page for page in pages if page[1].kind not in _OF_ORDERS or page[1].contents not in known]
        responses, design = _joined(responses, ask(further), texts, new), larger
    return design, responses


def _joined(responses: Responses, more: Responses, questions: Sequence[Question], new: frozenset[str]) -> Responses:
    """Two tables, question by question; the published order of a question now asked in all orders is one of them."""
    table = pa.concat_tables([responses.table, more.table])
    ids, kinds = table["question_id"].to_pylist(), table["kind"].to_pylist()
    kinds = ["order" if kind == "given" and name in new else kind for kind, name in zip(kinds, ids, strict=True)]
    place = {question.id: i for i, question in enumerate(questions)}
    sequence = np.argsort([place.get(name, len(place)) for name in ids], kind="stable")
    at = SCHEMA.get_field_index("kind")
    table = table.set_column(at, SCHEMA.field(at), pa.array(kinds, pa.string())).take(pa.array(sequence))
    return Responses(table, responses.run, responses.questions)


def next_part(phased: TwoPhaseValues, full: Bools, means: Floats, noise: Floats, bootstrap: Bootstrap) -> int:
    """The size that the part grows to: what :func:`part_needed` and :func:`part_for_mean` say, at most twice as many.

    A part that is too small says little about how large it should be, so it is asked again on the way.
    """
    shown = int(full.sum())
    return min(max(part_needed(phased, full, bootstrap), part_for_mean(means, noise, full)), 2 * shown, len(full))


def part_needed(phased: TwoPhaseValues, full: Bools, bootstrap: Bootstrap) -> int:
    """Questions to ask in all orders, so that the intervals of :data:`WIDENED` are narrow enough.

    Args:
        phased: the values of every question, and those known over all orders.
        full: (Q,) questions of the part so far.

    Returns:
        The size of the part at which each interval is at most :data:`WIDTH` times as wide as if every question had been
        asked in all orders; the present size where that is so already.
    """
    size, needed = len(full), phased.shown
    for key in WIDENED:
        values, bounds = phased.values[key], bounds_of(key)
        known = phased.known[key][np.isfinite(phased.known[key]) & full]
        estimate = bootstrap.two_phase(values, phased.known[key], phased.shown, bounds=bounds)
        if len(known) < 2 or math.isnan(estimate.low):
            continue
        # The interval of all orders is that of N questions like the part, or wider, where the squares show that the
        # part by chance has fewer questions of a rare sort than the others.
        usual = _width(bootstrap.mean(np.resize(known, size), bounds=bounds))
        if yes_or_no(known):
            usual = max(usual, _width(wilson(estimate.value, estimate.n)))
        else:
            spread = float(np.nanstd(values[~full])) if np.isfinite(values[~full]).any() else 0.0
            usual = max(usual, 2 * normal_quantile(estimate.confidence) * spread / math.sqrt(estimate.n))
        ratio = _width(estimate) / usual
        if ratio > WIDTH and phased.shown < size:
            # the square of the ratio is about 1 + c (1 / n - 1 / N)
            c = (ratio**2 - 1) / (1 / phased.shown - 1 / size)
            needed = max(needed, math.ceil(1 / ((_SAFE * WIDTH**2 - 1) / c + 1 / size)))
    return min(size, needed)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def part_for_mean(means: Floats, noise: Floats, full: Bools) -> int:
    """Questions to ask in all orders, so that the interval of the mean over orders is narrow enough.

    A question's mean over its square varies by v + s: v between questions, s between the squares of one question. With
    n of N questions in all orders, the variance of the mean is (v + (1 - n / N) s) / N.

    Args:
        means: (Q,) share right over the orders shown.
        noise: (n,) of the part: s of each question.
        full: (Q,) questions of the part so far.

    Returns:
        As :func:`part_needed`, with :data:`WIDTH_OF_MEAN`.
    """
    size, shown = len(full), int(full.sum())
    far = (means - np.nanmean(means)) ** 2
    total, noisy = float(np.nanmean(far)), float(np.nansum(noise))
    if total == 0:
        return shown
    # If few questions move at all, the part may show none whose squares differ: one more is assumed, whose share right
    # varies by an eighth. (With as much as any question lies off the mean, strong models, whose squares hardly differ,
    # would be asked for half as many questions more.)
    unseen = min(float(np.nanmax(far)), 1 / 64)
    share = (noisy + unseen) / (noisy + float(np.nansum(far[full])) + unseen)  # s / (v + s)
    both = total / (1 - share * shown / size) if shown < size else total
    v, s = (1 - share) * both, share * both
    if total <= WIDTH_OF_MEAN**2 * v:
        return shown
    return max(shown, math.ceil(size * (1 - min(1.0, (_SAFE * WIDTH_OF_MEAN**2 - 1) * v / s))))
