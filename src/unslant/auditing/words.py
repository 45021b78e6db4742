"""The audit of a model that answers in words: every question in some orders, read by the reader of replies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unslant.asking import Asked, ask_again, ask_for_replies
from unslant.auditing.presented import orders_in_words
from unslant.auditing.settings import AuditSettings
from unslant.errors import InputError
from unslant.experiment.job import Asking
from unslant.models import ChatModel
from unslant.presentations import (
    ShotChooser,
    given_order,
    parse_labels,
    present,
    reversed_order,
)
from unslant.presentations.orders import question_rng
from unslant.questions import Question
from unslant.questions.loaders import sample
from unslant.responses import Response, Responses
from unslant.responses.run import AdaptiveRun

FEWEST_CHECKED = 10
"""Agreeing questions that an adaptive audit asks in all orders, if there are as many."""
FEWEST_DRAWN = 30
"""Questions that ``--in-all-orders`` asks in all orders, if there are as many: a regression is fitted in them."""


@dataclass(frozen=True)
class Plan:
    """What is asked.

    Attributes:
        first: presentations asked in any case, and which sample of each it is, from 0.
        further: question id -> presentations asked only where the first two answers differ, or for calibration.
        full: requests that asking every question in all orders takes.
        part: ids of the questions drawn to be asked in all orders; None where all are, or their answers decide.
    """

    first: list[tuple[Asked, int]]
    further: dict[str, list[Asked]]
    full: int
    part: frozenset[str] | None = None


def plan(questions: Sequence[Question], settings: AuditSettings, chooser: ShotChooser) -> Plan:
    """The presentations of every question.

    Raises:
        InputError: on orders or labels that do not fit the questions.
    """
    alphabet, seed = parse_labels(settings.labels), settings.seed
    again = set[str]()
    if settings.repeats > 1:
        ids = sorted(question.id for question in questions)
        again.update(question_rng("", seed, "repeats").sample(ids, min(settings.repeat_sample, len(ids))))
    first: list[tuple[Asked, int]] = []
    further: dict[str, list[Asked]] = {}
    full, part = 0, None
    if settings.in_all_orders < 1:
        size = max(FEWEST_DRAWN, round(settings.in_all_orders * len(questions)))
        part = frozenset(question.id for question in sample(questions, size, seed))
    for question in questions:
        examples = chooser.of(question)
        given, reverse = given_order(question), reversed_order(question)
        kinds = dict.fromkeys(orders_in_words(question, settings.orders, seed), "order")
        kinds.setdefault(given, "given")
        full += len(kinds)
        if part is not None and question.id not in part:
            kinds = {given: "given"}
        at_once = list(kinds)
        if settings.adaptive and set(kinds) - {given, reverse}:
            kinds.setdefault(reverse, "reverse")
            at_once = [given, reverse]
        shown = {
            order: (question, present(question, order, alphabet, kind).with_shots(examples))
            for order, kind in kinds.items()
        }
        first += [(shown[order], 0) for order in at_once]
        if question.id in again:
            first += [(shown[given], repeat) for repeat in range(1, settings.repeats)]
        if rest := [asked for order, asked in shown.items() if order not in at_once]:
            further[question.id] = rest
    return Plan(first, further, full, part)


def audit_in_words(asking: Asking[AuditSettings]) -> Responses:
    """Ask for replies and read them; see :class:`unslant.auditing.study.Audit`."""
    settings, questions = asking.settings, asking.questions
    parse_labels(settings.labels)
    if settings.adaptive and asking.shards.shard:
        raise InputError("--adaptive looks at all answers before it asks further: leave out --shard")
    planned = plan(questions.questions, settings, settings.chooser(questions))
    settings.writer()  # a bad template is refused before the model is opened
    model: ChatModel = asking.model
    writer = asking.settings.writer()
    everything = [asked for asked, _ in planned.first]
    share = asking.share(lambda: everything, [writer])
    first = list(share.cut(planned.first, lambda one: one[0][0]))
    repeats = [repeat for _, repeat in first]
    asked = [asked for asked, _ in first]
    responses = ask_for_replies(model, asked, writer, repeats=repeats, progress=asking.progress)
    adaptive = None
    if settings.adaptive:
        stopped, checked = _stopped(responses, planned, settings)
        rest = [one for name, some in planned.further.items() if name not in stopped for one in some]
        more = ask_for_replies(model, rest, writer, progress=asking.progress, phase="asking in all orders")
        responses = _in_order(questions.questions, responses, more)
        adaptive = AdaptiveRun(stopped=tuple(stopped), checked=tuple(checked), requests_of_all=planned.full)
    if planned.part is not None:
        others = tuple(sorted(question.id for question in questions if question.id not in planned.part))
        adaptive = AdaptiveRun(
            stopped=others,
            checked=tuple(sorted(planned.part)),
            requests_of_all=planned.full,
            at_random=True,
        )
    if settings.ask_again:
        every = [*asked, *(one for some in planned.further.values() for one in some)]
        responses = ask_again(model, every, responses, writer, asking.progress)
    example = ""
    if planned.first:
        (_, shown), _ = planned.first[0]
        example = writer.prompt(shown, writer.template.render("cloze.cue"), ()).as_text()
    return asking.finished(responses, share, adaptive=adaptive, example_prompt=example)


def _stopped(responses: Responses, planned: Plan, settings: AuditSettings) -> tuple[list[str], list[str]]:
    """Of the questions whose first two answers agree: ids of those asked no further, and of those drawn to be."""
    answers: dict[str, list[Response]] = {}
    for row in responses.rows():
        if not row.repeat and row.question_id in planned.further:
            answers.setdefault(row.question_id, []).append(row)
    agreeing = sorted(name for name, rows in answers.items() if rows[0].choice == rows[1].choice != -1)
    n = max(math.ceil(settings.calibrate * len(agreeing)), min(FEWEST_CHECKED, len(agreeing)))
    checked = sorted(question_rng("", settings.seed, "calibrate").sample(agreeing, n))
    return sorted(set(agreeing) - set(checked)), checked


def _in_order(questions: Sequence[Question], *tables: Responses) -> Responses:
    """The rows of several tables, question by question."""
    rows: dict[str, list[Response]] = {question.id: [] for question in questions}
    for table in tables:
        for row in table.rows():
            rows[row.question_id].append(row)
    return Responses.from_rows(row for own in rows.values() for row in own)
