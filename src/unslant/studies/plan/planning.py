"""How much to ask for a precision: questions, orders, tokens, time and money, from a pilot, a log, or nothing."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Unpack

from unslant.arrays import Jsonable
from unslant.auditing import MOST_WHOLE, PART, WHOLE, AuditSettings, audit_presentations, orders_in_words
from unslant.auditing.comparison import audit_logs
from unslant.auditing.cost import CHARACTERS_A_TOKEN, SAMPLED
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.experiment.gates import Baseline
from unslant.experiment.result import StudyResult, listed_files, logs_in
from unslant.flags import check_unused, path_in, with_options
from unslant.metrics import Estimate
from unslant.metrics.decision_study import between_questions, half_width
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.measures import detectable_difference, with_two_more
from unslant.metrics.order_curve import balanced_names, share_in_all
from unslant.presentations import given_order, orders_for, parse_labels, present
from unslant.prompts import Cloze
from unslant.questions import Question
from unslant.responses import Responses, Run
from unslant.responses.provenance import money
from unslant.studies.plan import PlanKeywords, PlanSettings

MOST_QUESTIONS = 10_000_000
PUBLISHED = "as published"
_SETTLED = 0.01
"""Change of the share of questions in all orders below which it counts as settled."""
_ENOUGH = 1.05
"""A set of orders counts as precise as the best if its half-width is at most this many times as wide."""
_WITHOUT = "too few questions with one right option, or --adaptive chose which were asked in all orders"
_OF_PILOT = ("score", "options")


@dataclass(frozen=True)
class Pilot(Jsonable):
    """What is known before a run, per question unless said otherwise.

    Attributes:
        source: where it is from; empty where everything is assumed.
        questions: of the pilot.
        accuracy: mean over orders.
        between: variance between questions of their means over the pilot's orders.
        components: component -> variance; empty where the pilot has one order.
        positions, orders, design_effect: see :class:`~unslant.metrics.variance_components.VarianceComponents`.
        by_options: number of options -> share of the questions.
        spec: the pilot's orders, as ``--orders`` names them.
        in_words: replies are read.
        prompt_tokens, output_tokens: of a prompt, and of a reply.
        computed, once: tokens that a local model computes, set of orders -> for a question; for all of them together.
        seconds: of a computed token; of a prompt, where none is counted; nan where not known.
        published: accuracy in the order of the file; nan where it is that over orders.
    """

    source: str
    questions: int
    accuracy: float
    between: Estimate
    components: Mapping[str, float]
    positions: float
    orders: float
    design_effect: float
    by_options: Mapping[int, float]
    spec: str = "auto"
    in_words: bool = False
    prompt_tokens: float = 200.0
    output_tokens: float = 0.0
    computed: Mapping[str, float] = field(default_factory=dict)
    once: float = 0.0
    seconds: float = math.nan
    published: float = math.nan

    @classmethod
    def assumed(cls, settings: PlanSettings) -> Pilot:
        """Without a pilot: orders change no answer, and questions are independent."""
        variance = settings.score * (1 - settings.score)
        between = Estimate.bare(variance, 0, "assumed")
        return cls("", 0, settings.score, between, {}, settings.options, 1.0, 1.0, {settings.options: 1.0})

    @classmethod
    def of(cls, values: Mapping[str, Any], source: object, responses: Responses | None = None) -> Pilot:
        """What the JSON of an audit holds.

        Args:
            source: the file, for errors.
            responses: of the audit, from which prompts are measured where none were counted.

        Raises:
            InputError: naming the file, if it is not an audit with right options.
        """
        if values.get("study") != "audit":
            raise InputError.at(source, f"holds a result of the study {values.get('study')}; plan needs an audit")
        components, counts = values.get("variance_components"), values["metrics"]["counts"]
        if not components:
            raise InputError.at(source, f"no variance to plan from: {_WITHOUT}")
        cost, requests = values["cost"], values.get("requests", {}).values()
        n = values.get("until", counts).get("of_questions", counts["questions"])  # an ordinary run asks them all
        total, scored = sum(counts["by_options"].values()), values["metrics"]["means"]["accuracy"]
        published = math.nan if scored["value"] is None else scored["value"]
        pilot = cls(
            f"{values.get('model') or 'a model'} on {values.get('questions') or 'its questions'}",
            components["questions"],
            components["accuracy"],
            Estimate.from_dict(components["between"]),
            {name: numbers["variance"]["value"] for name, numbers in components["components"].items()},
            components["positions"],
            components["orders"],
            components["design_effect"],
            {int(options): number / total for options, number in counts["by_options"].items()},
            str(values.get("settings", {}).get("orders", "auto")),
            values["replies"] is not None,
            published=with_two_more(scored["n"], published)[0] if published in (0, 1) else published,
        )
        if pilot.between.value == 0:
            pilot = pilot.with_two_more()
        ordinary = cost["tokens_ordinary"] / n
        replies = sum(one["requests"] - one["failed"] - one["uncounted"] for one in requests)
        if replies:
            read, written = (sum(one[key] for one in requests) for key in ("input_tokens", "output_tokens"))
            return replace(pilot, prompt_tokens=read / replies, output_tokens=written / replies)
        if ordinary:
            each = cost["tokens_plain"] / cost["prompts"] if cost["prompts"] else ordinary
            once = values.get("cost_once", 0.0) * ordinary
            computed = {name: number * ordinary - once for name, number in values.get("order_costs", {}).items()}
            spent = cost["tokens"] if computed else cost["prompts"]
            seconds = cost["seconds"] / spent if spent and cost["seconds"] else math.nan
            return replace(pilot, prompt_tokens=each or ordinary, computed=computed, once=once * n, seconds=seconds)
        if not responses:
            example = values.get("example_prompt")
            return replace(pilot, prompt_tokens=len(example) / CHARACTERS_A_TOKEN) if example else pilot
        # what a prompt of our own would have for the questions of a log, approximately
        alphabet, cloze = parse_labels("A"), Cloze(AuditSettings().resolved(False).writer())
        some = responses.questions[:: max(1, len(responses.questions) // SAMPLED)]
        prompts = [cloze.prompts(present(question, given_order(question), alphabet))[0] for question in some]
        return replace(pilot, prompt_tokens=fmean(len(one.as_text()) for one in prompts) / CHARACTERS_A_TOKEN)

    def with_two_more(self) -> Pilot:
        """As if two more questions had been asked, see :func:`~unslant.metrics.measures.with_two_more`."""
        n, (mean, variance) = self.questions + 2, with_two_more(self.questions, self.accuracy)
        value, missed = variance * n / (n - 1), 1 - (1 - CONFIDENCE) ** (1 / self.questions)
        # All others may be alike too, or as many as a pilot misses in 5 % of the draws may have the farthest score.
        most = max(value, missed * (1 - missed) * max(self.accuracy, 1 - self.accuracy) ** 2)
        return replace(self, accuracy=mean, between=Estimate(value, 0.0, most, n, "two questions were imagined"))

    @property
    def options(self) -> int:
        """The most common number of options."""
        return max(self.by_options, key=lambda options: self.by_options[options])

    def variance(self, orders: float, repeats: int = 1) -> float:
        """Between questions, of their means over some orders."""
        # a pilot in fewer orders than options did not put options into every position, but a plan may
        positions = self.harmonic(float)
        positions = positions if self.orders < positions - 1e-9 else min(positions, self.positions)
        planned, piloted = (
            sum(between_questions(self.components, *design).values())
            for design in ((positions, orders, float(repeats)), (self.positions, self.orders, 1.0))
        )
        # only the change comes from the components: for the pilot's own orders, the variance is the one measured
        return min(max(self.between.value + planned - piloted, 0.0), self.accuracy * (1 - self.accuracy))

    def harmonic(self, orders: Callable[[int], float]) -> float:
        """Orders of a question, by its options, on average: variances are inverse to them."""
        return 1 / sum(share / orders(options) for options, share in self.by_options.items())

    def effect(self, variance: float) -> float:
        """The design effect of values with this variance: what questions of a passage share is part of ``between``."""
        return 1 + (self.design_effect - 1) * min(1.0, self.between.value / variance) if variance else 1.0


@dataclass(frozen=True)
class Design(Jsonable):
    """One way to reach the goal: a set of orders, and the questions that it needs.

    Attributes:
        orders: the set, as ``--orders`` names it.
        k: orders of a question: their harmonic mean, rounded, where questions differ.
        score: ``mean over orders``, or ``as published`` for the given order alone.
        questions: needed, or those there are.
        least, most: range of the questions needed, given the pilot's uncertainty; nan without one.
        reached: whether the questions there are suffice.
        half_width: of the score's 95 % interval.
        difference, difference_unpaired: least found between models at a power of 80 %, on the same or other questions.
        prompts: prompts or requests.
        tokens: in prompts; of a local model, those computed, shared beginnings once.
        output_tokens: in replies.
        seconds, price: nan where not known.
    """

    orders: str
    k: int
    score: str
    questions: int
    least: float
    most: float
    reached: bool
    half_width: float
    difference: float
    difference_unpaired: float
    prompts: int
    tokens: int
    output_tokens: int
    seconds: float
    price: float


@dataclass(frozen=True)
class PlanResult(StudyResult):
    """How much to ask.

    Attributes:
        goal: what is wanted.
        pilot: what is known or assumed.
        designs: every set of orders compared, cheapest first.
        best: the cheapest that reaches the goal; where none does, the cheapest of the most precise ones.
    """

    study = "plan"
    unwritten = ("goal",)

    goal: PlanSettings
    pilot: Pilot
    designs: tuple[Design, ...]
    best: Design

    @classmethod
    def of(cls, pilot: Pilot, goal: PlanSettings) -> PlanResult:
        """Compare sets of orders."""
        n = pilot.options
        names = ["given", *balanced_names(n, round(_size(n, "auto", False)[0])), "auto"]
        if pilot.spec not in names and _size(n, pilot.spec, pilot.in_words)[0] >= n:
            names.append(pilot.spec)
        designs = [designed(name, pilot, goal) for name in names]
        designs.sort(key=lambda one: one.tokens + one.output_tokens)
        balanced = [one for one in designs if one.score != PUBLISHED]
        narrowest = min(one.half_width for one in balanced)
        usable = [one for one in balanced if goal.aimed and one.reached]
        usable = usable or [one for one in balanced if one.half_width <= _ENOUGH * narrowest]
        return cls(goal, pilot, tuple(designs), usable[0])

    @cached_property
    def run(self) -> Run:
        default = asdict(PlanSettings())
        return Run(study=self.study, settings={k: v for k, v in asdict(self.goal).items() if v != default[k]})


def designed(name: str, pilot: Pilot, goal: PlanSettings, part: float = 1.0) -> Design:
    """The questions that a set of orders needs for a goal, and what they cost.

    Args:
        part: of the questions that is asked in the whole set, the others in a square of it.
    """
    sizes = {n: _size(n, name, pilot.in_words) for n in pilot.by_options}
    # of a pilot in two phases, ``auto`` is what it cost itself
    tokens = pilot.computed.get(WHOLE if name == "auto" else name, pilot.computed.get(name, math.nan))
    tokens = part * tokens + (1 - part) * pilot.computed.get("latin", tokens)
    whole, square = pilot.harmonic(lambda n: sizes[n][0]), pilot.harmonic(float)
    k = 1 / (part / whole + (1 - part) / square)
    each = {n: part * prompts + (1 - part) * _size(n, "latin", False)[1] for n, (_, prompts) in sizes.items()}
    prompts = sum(share * each[n] for n, share in pilot.by_options.items()) * goal.repeats
    score = pilot.published if name == "given" and pilot.published == pilot.published else pilot.accuracy
    largest = score * (1 - score)
    variance = largest if name == "given" else pilot.variance(k, goal.repeats)
    about = score, variance, pilot.effect(variance)
    n = _needed(goal, *about) if goal.aimed else goal.available or pilot.questions
    asked = min(n, goal.available or n)
    if name == "auto" and not pilot.in_words and asked > MOST_WHOLE:
        v = pilot.variance(whole)
        # right and wrong answers cannot differ more between the squares of a question than between its orders
        s = min(pilot.variance(square) - v, (largest - v) * (1 / square - 1 / whole))
        wanted = max(PART / asked, share_in_all(v, s))
        if wanted < part - _SETTLED:
            return designed(name, pilot, goal, wanted)
    between, needed = pilot.between, [n]
    ends = [end for end in (between.low, between.high) if end == end and between.value and goal.aimed]
    # Nor is the score known: nearer to 0.5 it may vary more. The lower end of equal values may need more questions.
    for end, side in zip(ends if name != "given" else (), (1, -1), strict=False):
        off = abs(score - 0.5) + side * half_width(pilot.questions, score, between.value, pilot.design_effect)
        at = 0.5 + math.copysign(min(0.499, max(0.0, off)), score - 0.5)
        needed.append(_needed(goal, at, min(end / between.value * variance, at * (1 - at)), about[2]))
    least, most = (min(needed), max(needed)) if len(needed) > 1 else (math.nan, math.nan)
    tokens = tokens * goal.repeats if tokens == tokens else prompts * (goal.tokens or pilot.prompt_tokens)
    total = asked * tokens + pilot.once
    output = asked * prompts * pilot.output_tokens
    return Design(
        name,
        round(k),
        PUBLISHED if name == "given" else "mean over orders",
        n,
        least,
        most,
        goal.available is None or n <= goal.available,
        half_width(asked, *about),
        detectable_difference(asked, *about, correlation=goal.correlation),
        detectable_difference(asked, *about, correlation=0),
        round(asked * prompts),
        round(total),
        round(output),
        pilot.seconds * (total if pilot.computed else asked * prompts),
        money(total, output, goal.price, goal.output_price),
    )


def _size(options: int, orders: str, in_words: bool) -> tuple[float, float]:
    """Orders and prompts of a question."""
    question = Question("any", "?", tuple(f"{i:03d}" for i in range(options)), frozenset({0}))
    if in_words:
        return (len(orders_in_words(question, orders)),) * 2
    if orders == "latin":  # the published order is asked too, where it is not in the square drawn
        return options, options + 1 - options / len(orders_for(question, "auto"))
    presentations = audit_presentations(question, orders, parse_labels("A"))
    return sum(presentation.kind == "order" for presentation in presentations), len(presentations)


def _needed(goal: PlanSettings, score: float, variance: float, effect: float) -> int:
    """The least number of questions with this score, variance and design effect that reaches the goal.

    Raises:
        InputError: if none does.
    """

    def enough(n: int) -> bool:
        about = n, score, variance, effect
        return (goal.half_width is None or half_width(*about) <= goal.half_width) and (
            goal.difference is None or detectable_difference(*about, correlation=goal.correlation) <= goal.difference
        )

    high = 2
    while not enough(high):
        if high >= MOST_QUESTIONS:
            raise InputError(f"more than {MOST_QUESTIONS:,} questions would be needed: ask for less precision")
        high = min(2 * high, MOST_QUESTIONS)
    return bisect_left(range(high + 1), True, lo=high // 2 + 1, key=enough)


def plan(
    pilot: str | Path | AuditResult | None = None,
    /,
    *,
    log: Any = (),
    settings: PlanSettings | None = None,
    **options: Unpack[PlanKeywords],
) -> PlanResult:
    """How many questions, in how many orders, a precision takes, and what that costs.

    Args:
        pilot: an audit, or its file (JSON or Parquet), also of few questions; without it the most demanding case.
        log: in its place, answers that another harness logged, as for :func:`unslant.audit`.
        options: fields of :class:`PlanSettings`.

    Raises:
        InputError: if nothing is asked for, or a file is not of an audit.

    Examples:
        >>> unslant.plan(half_width=0.02).best.questions
        2398
    """
    goal = with_options(PlanSettings, settings, options)
    basis = _pilot(pilot, logs_in(log), goal)
    if not basis.output_tokens:
        check_unused("no replies are counted", goal, only=("output_price",))
    if goal.tokens:  # how many of them would be shared is not known
        basis = replace(basis, computed={}, once=0.0, seconds=math.nan if basis.computed else basis.seconds)
    if basis.source and not basis.in_words:
        check_unused("labels are scored, the same each time", goal, only=("repeats",))
    if not basis.questions and not (goal.half_width or goal.difference or goal.available):
        raise InputError("nothing to plan for: give --half-width, --difference or --available")
    return PlanResult.of(basis, goal)


def _pilot(pilot: Any, log: Any, goal: PlanSettings) -> Pilot:
    if pilot is not None and log:
        raise InputError("give a pilot or a log, not both")
    if pilot is None and not log:
        return Pilot.assumed(goal)
    check_unused("the pilot has its own", goal, only=_OF_PILOT)
    if log:
        pilot = audit_logs(log)
        if not isinstance(pilot, AuditResult):
            raise InputError("the log has several models: give the files of one")
    if isinstance(pilot, AuditResult):
        return Pilot.of(pilot.to_dict(), listed_files(log) if log else "the pilot", pilot.responses)
    earlier = Baseline.read(path_in("pilot", pilot, "an audit, or the name of its file"), AuditResult)
    audit = earlier.result if isinstance(earlier.result, AuditResult) else None
    try:
        return Pilot.of(earlier.values, earlier.path, audit.responses if audit else None)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        raise InputError.at(earlier.path, "holds numbers in a form that unslant does not write") from None
