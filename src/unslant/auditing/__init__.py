"""The audit: every question in many orders, and what the score is worth.

This file holds its options, and the orders in which it shows each question. With more than :data:`MOST_WHOLE`
questions, asking every one in all orders buys little precision. Each question is then asked in a Latin square of its
orders, and a random part of them in all orders. Rearranged labels and the reversed order, which a square does not have,
are asked of the part only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from unslant.errors import InputError
from unslant.experiment import ChooseShotsOptions, ElicitOptions, OutputOptions, ScoredLabelOptions
from unslant.flags import check_least, check_unused, out_of_range
from unslant.presentations import (
    Asked,
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
from unslant.responses.provenance import money
from unslant.responses.run import TwoPhaseRun

_OF_REPLIES = ("reasoning", "repeats", "repeat_sample", "adaptive", "calibrate", "in_all_orders", "ask_again")
"""Fields without effect where labels are scored."""
MOST_ORDERS = 6
"""Default number of orders of a question where replies are read: they are expensive."""
MOST_WHOLE = 200
"""Up to this many questions, all are asked in all orders."""
PART = 100
"""Questions that are asked in all orders to begin with."""
WHOLE = "cyclic:24"
"""``--orders`` that asks every question what ``auto`` asks of the part."""


@dataclass(frozen=True, kw_only=True)
class AuditSettings(ChooseShotsOptions, ScoredLabelOptions, ElicitOptions):
    """How the questions are asked; see :func:`unslant.audit`."""

    LEAST: ClassVar = {"repeats": 1, "repeat_sample": 1, "calibrate": 0}

    orders: str = "auto"
    """auto (all, up to 24; beyond 200 questions, a Latin square for each and all for some; for replies up to 6
    rotations), all, latin, cyclic, reverse, given, a number to sample, or a balanced set of a size (given:8,
    shared:8)."""
    until: float | None = None
    """Stop early, once scores are known to within this half-width, such as 0.02."""
    repeats: int = 1
    """Replies: ask some questions N times in the same order, to see how often sampling alone changes answers."""
    repeat_sample: int = 50
    """Replies: how many questions --repeats asks again, drawn at random."""
    adaptive: bool = False
    """Replies: ask in all orders only if the answers in the given and the reversed order differ; see --calibrate."""
    calibrate: float = 0.1
    """Replies: share of the agreeing questions that --adaptive still asks in all orders, at least ten."""
    in_all_orders: float = 1.0
    """Replies: ask this share of the questions, at least 30 drawn at random, in all orders, the others as published."""
    ask_again: bool = False
    """Replies: if one is unparsed or conflicts, ask once which label it chose; reported separately."""

    across_subjects: bool = False
    """Give intervals for other subjects like these, which are wider, not for further questions on the same subjects."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.calibrate > 1:
            raise out_of_range("calibrate", self.calibrate, "0 to 1")
        if not 0 < self.in_all_orders <= 1:
            raise out_of_range("in_all_orders", self.in_all_orders, "a share above 0, up to 1")
        if self.adaptive and self.in_all_orders < 1:
            raise InputError("--adaptive chooses the questions itself and cannot be combined with --in-all-orders")
        if self.repeats == 1:
            check_unused("no question is asked again (--repeats=3 asks three times)", self, only=("repeat_sample",))
        if not self.adaptive:
            check_unused("all questions are asked in all orders (--adaptive asks fewer)", self, only=("calibrate",))
        if self.until is not None and not 0 < self.until < 0.5:
            raise out_of_range("until", self.until, "a half-width above 0 and below 0.5, such as 0.02")
        if self.until is not None and self.orders != "auto":
            raise InputError("--until chooses the orders itself and cannot be combined with --orders")

    def resolved(self, generate: bool) -> Self:
        """See :meth:`ElicitOptions.resolved`."""
        useless = ["repeats"] * (self.repeats > 1) + ["adaptive"] * self.adaptive
        useless += ["ask-again"] * self.ask_again + ["in-all-orders"] * (self.in_all_orders < 1)
        if useless and not generate:
            raise InputError(f"--{useless[0]} applies only to generated replies; add --elicit=generate")
        if generate and self.until is not None:
            raise InputError("--until needs label scores, but this run reads replies; use --adaptive")
        return super().resolved(generate)

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """See :meth:`Options.recorded`; only what applies to this way of asking."""
        others = ["to_end"] if self.elicit == "generate" else ["elicit", *_OF_REPLIES]
        others += ["until"] * (self.until is None) + ["across_subjects"] * (not self.across_subjects)
        return super().recorded(*others, *left_out) | {"template": self.template or "plain"}


@dataclass(frozen=True, kw_only=True)
class AuditOutputs(OutputOptions):
    """What is written."""

    dry_run: bool = False
    """Print the cost (prompts, tokens, time; money with --price) and stop."""
    price: float | None = None
    """Price of a million tokens."""
    output_price: float | None = None
    """Price of a million tokens of replies, if it differs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dry_run:
            check_unused("only --dry-run counts money", self, only=("price", "output_price"))
        check_least(self, {"price": 0, "output_price": 0})
        if self.output_price is not None and self.price is None:
            raise InputError("--output-price needs --price, that of the prompts")

    def money(self, tokens: float, replies: float = 0) -> str:
        """The price of tokens in and out, as the end of a sentence; empty where none is given."""
        from unslant.reports.numbers import number

        spent = money(tokens, replies, self.price, self.output_price)
        return f", {number(spent, 2)} at this price" if spent == spent else ""


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
    """The orders, plus the given one and those in ``more`` (kind -> order) if they are not among them."""
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
    """The orders in which replies are requested; ``auto`` is all rotations, or six of them beyond six options."""
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
    def of(cls, questions: QuestionSet[Question], settings: AuditSettings, *, own_labels: bool = True) -> Self:
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

    def with_part(self, size: int) -> Self:
        """A copy with ``size`` questions in all orders, by subject; those of a smaller part are among them."""
        part = sample(self.questions.questions, size, self.settings.seed)
        return replace(self, full=frozenset(question.id for question in part))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return parse_labels(self.settings.labels)

    def asked(self) -> Iterator[Asked]:
        """Everything that is asked: the presentations of each question, then the controls."""
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
        """Prompts without content, which show how probable each label is by itself."""
        sizes = sorted({len(question.options) for question in self.questions} if self.own_labels else ())
        return [page for n in sizes for page in control_presentations(n, self.alphabet, seed=self.settings.seed)]

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
        return sum(
            self.prompts_in_all(question) if question.id in self.full else len(question.movable) + 1
            for question in self.questions
        )

    @property
    def recorded(self) -> TwoPhaseRun | None:
        """The two phases as the run records them; None if there is one phase."""
        if self.full is None:
            return None
        return TwoPhaseRun(full=tuple(sorted(self.full)), of_prompts=self.prompts_of_all)
