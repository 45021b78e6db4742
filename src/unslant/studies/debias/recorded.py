"""Debiased answers from scores that were recorded before, without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from unslant.debiasing import METHODS, method_named
from unslant.debiasing.asker import RecordedAsker
from unslant.debiasing.base import Answers, Method, OrderDebiaser, Outcome, left_out, left_out_notes
from unslant.debiasing.gray_box import GrayBox
from unslant.debiasing.pride import Pride
from unslant.debiasing.vote import Undebiased, Vote
from unslant.errors import InputError
from unslant.experiment.provenance import unanswered
from unslant.experiment.recorded import tables_of
from unslant.presentations import Order, cyclic_orders, orders_for
from unslant.questions import Question
from unslant.responses import Responses

FROM_LOGS = ("none", "vote", "vote-hard", "pride", "gray-box", "gray-box-calibrated")
"""Methods that recorded scores suffice for."""


def debias_log(
    logs: str | Path | Sequence[str | Path], method: str = "vote", fields: Mapping[str, str] | None = None
) -> Answers:
    """Debiased answers from logged scores; neither a model nor PyTorch is needed.

    The vote is over all orders that a question was shown in. PriDe estimates on questions shown in all rotations,
    calibrated gray-box on those shown as given and reversed. A question without the orders its answer rests on has
    none: its choice is -1, and a note counts these.

    Args:
        logs: files of one model, of any format that :func:`unslant.audit` reads as ``log``.
        method: one of :data:`FROM_LOGS`, with settings after colons, such as ``pride:alpha=0.1``.
        fields: field -> column or key, for tables of your own.

    Raises:
        InputError: if the files cannot be read or are of several models, or the method needs what they do not hold.
    """
    _check_method(method.partition(":")[0])
    chosen = method_named(method)
    tables = tables_of("audit", logs, fields)
    if len(tables) > 1:
        held = ", ".join(f"{table.run.model or 'a model'} ({table.run.source})" for table in tables)
        raise InputError(f"the logs are of {len(tables)} models or kinds of scores: {held}; give the files of one")
    (table,) = tables
    asker = RecordedAsker.of(table, answered=chosen.needs_scores)
    chosen.asks(asker.in_words)
    questions = _questions(table)
    fit_on = [q for q in questions if asker.has(q, _fit_orders(chosen)(q))] if chosen.needs_fit else []
    if chosen.needs_fit and not fit_on:
        raise InputError(
            f"{chosen.name} estimates on questions shown {_NEEDED[type(chosen)]}, and the logs have none; log them in "
            f"more orders, or ask a model: unslant debias MODEL QUESTIONS --method {chosen.name}"
        )
    with closing(chosen.fitted(asker, fit_on)) as debiaser:
        assert isinstance(debiaser, OrderDebiaser)  # all of FROM_LOGS are
        fit_cost = asker.cost.copy()
        answered = [q for q in questions if asker.recorded(q) and asker.has(q, debiaser.orders(q))]
        found = dict(zip([q.id for q in answered], debiaser.answer(answered), strict=True))
        notes = list(debiaser.notes(answered))
    if not found:
        raise InputError(
            f"{chosen.name} answers questions shown {_NEEDED[type(chosen)]}, and the logs have none; log them in more "
            f"orders, or ask a model: unslant debias MODEL QUESTIONS --method {chosen.name}"
        )
    if isinstance(chosen, Vote) and all(outcome.orders < 2 for outcome in found.values()):
        notes.append("every question was shown in one order: the vote is the model's own answer")
    why = f"not shown, or not answered, {_NEEDED[type(chosen)]}"
    outcomes = [found.get(q.id) or Outcome.none(q, "unsupported", why) for q in questions]
    notes += left_out_notes(left_out(outcomes), len(outcomes))
    if not table.questions:
        outcomes = [replace(outcome, text="") for outcome in outcomes]
    cost = asker.cost - fit_cost
    return Answers(chosen.name, questions, tuple(outcomes), fit_cost, cost, tuple(notes), unanswered(table))


_NEEDED: Mapping[type[Method], str] = {
    Undebiased: "in the order given",
    Vote: "in the orders voted over",
    Pride: "in the order given, and some in all rotations of it",
    GrayBox: "in the order given and reversed",
}


def _fit_orders(method: Method) -> Callable[[Question], list[Order]]:
    return cyclic_orders if isinstance(method, Pride) else lambda question: orders_for(question, "reverse")


def _check_method(name: str) -> None:
    """Raise InputError if a method of this name needs a model."""
    if name in METHODS and name not in FROM_LOGS:
        raise InputError(
            f"{name} needs a model to ask; from --log there are {', '.join(FROM_LOGS)}: unslant debias MODEL QUESTIONS "
            f"--method {name}"
        )


def _questions(table: Responses) -> tuple[Question, ...]:
    """The questions of a table; where it has no texts, texts of the same ranks replace those of the options."""
    if table.questions:
        return table.questions
    known: dict[str, Question] = {}
    for row in table.rows():
        if row.question_id not in known and row.answers <= frozenset(range(row.n_options)):
            ranks = row.text_ranks or range(row.n_options)
            options = tuple(f"{rank:04d}" for rank in ranks)
            known[row.question_id] = Question(row.question_id, "", options, row.answers, pinned=row.pinned)
    return tuple(known.values())
