"""Debiased answers to a question set, from a model or from recorded scores."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from unslant.asking import Progress, no_progress
from unslant.debiasing import METHODS, method_named
from unslant.debiasing.asker import RecordedAsker, asker_of
from unslant.debiasing.base import Answers, Method, OrderDebiaser, Outcome, check_apart, left_out, left_out_notes
from unslant.debiasing.base import debias as answer
from unslant.debiasing.gray_box import GrayBox
from unslant.debiasing.pride import Pride
from unslant.debiasing.vote import Undebiased, Vote
from unslant.errors import InputError
from unslant.experiment import WITH_LOG, check_generate, check_no_model
from unslant.experiment.page_parts import caveats_of, unanswered
from unslant.experiment.result import logs_in, tables_of
from unslant.flags import by_kind, check_unused, with_options, without_effect
from unslant.models import GenerateOptions, ModelOptions
from unslant.models.open import opened, options_of_each
from unslant.presentations import check_labels, orders_for, parse_labels
from unslant.questions import EMBEDDED, Question
from unslant.responses import Responses
from unslant.studies.debias.settings import AnswerKeywords, AnswerSettings


def debias(
    model: Any = None,
    questions: Any = None,
    /,
    *,
    log: Any = (),
    progress: Progress = no_progress,
    settings: AnswerSettings | None = None,
    **options: Unpack[AnswerKeywords],
) -> Answers:
    """Answer every question with a debiasing method, as ``unslant debias`` does.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called last.
        questions: what :func:`unslant.load_questions` takes; by default the embedded ones.
        log: files of recorded scores or replies, in place of both; see
            :func:`~unslant.studies.debias.answers.debias_log`.
        settings, options: an :class:`~unslant.studies.debias.settings.AnswerSettings`, its fields as keywords
            (``method="pride"``, ...), or both; also how a named model is opened (``device="cpu"``, ...: fields of
            :class:`~unslant.models.ModelOptions`) and how it replies (``temperature=``, ``max_tokens=``).

    Raises:
        InputError: on questions, a method, labels or a keyword that cannot be used.
        ModelError: if the model cannot be loaded or asked.

    Examples:
        >>> answers = unslant.debias("fair", "embedded", method="vote:orders=4", limit=10)
        >>> answers.outcomes[0].orders
        4
    """
    parts = by_kind({"settings": AnswerSettings, "models": ModelOptions, "generate": GenerateOptions}, options)
    settings = with_options(AnswerSettings, settings, parts["settings"])
    models, generate = ModelOptions(**parts["models"]), GenerateOptions(**parts["generate"])
    if log := logs_in(log):
        check_no_model(model, questions)
        check_unused(WITH_LOG, settings, models, generate, but=("method", "fields", "skip_bad"))
        return debias_log(log, settings.method, settings.fields, settings.skip_bad)
    if model is None:
        raise InputError("name a model, or recorded answers with log=")
    model, questions = str(model) if isinstance(model, Path) else model, EMBEDDED if questions is None else questions
    method = method_named(settings.method)
    settings = settings.of_model(model, models)
    in_words = settings.in_words
    needs = method.asks(in_words)
    check_generate(generate, in_words)
    (models,) = options_of_each([model], models, needs)
    if method.held_out and method.needs_fit and not settings.train:
        raise InputError(f"{method.name} must not be fitted on the questions it answers; give others with --train FILE")
    if settings.train is not None and not method.needs_fit:
        named = f" {settings.train}" * isinstance(settings.train, str | Path)  # not whole questions in memory
        raise without_effect(f"{method.name} is not fitted", [f"--train{named}"])
    sample = settings.sampled(settings.load(questions))
    fit_on = settings.pool(settings.train)
    if fit_on and method.held_out:
        check_apart(method.name, list(fit_on), list(sample))
    writer, alphabet = settings.writer(), parse_labels(settings.labels)
    check_labels(alphabet, (*sample, *(fit_on or ())))
    asker = asker_of(opened(model, needs, models, generate), writer, alphabet, in_words=in_words, progress=progress)
    return answer(method, asker, sample.questions, fit_on.questions if fit_on else None)


FROM_LOGS = ("none", "vote", "vote-hard", "pride", "gray-box", "gray-box-calibrated")
"""Methods that work on recorded scores."""


def debias_log(
    logs: Any, method: str = "vote", fields: Mapping[str, str] | None = None, skip_bad: bool = False
) -> Answers:
    """Debiased answers from logged scores; neither a model nor PyTorch is needed.

    The vote is over all recorded orders of a question. PriDe estimates its prior on questions shown in all rotations,
    calibrated gray-box its frequencies on those shown as published and reversed. A question without the orders that
    its answer needs has none: its choice is -1, and a note counts such questions.

    Args:
        logs: files of one model, in any format that :func:`unslant.audit` reads as ``log``.
        method: one of :data:`FROM_LOGS`, with settings after colons, such as ``pride:alpha=0.1``.
        fields: field -> column or key, for tables of your own.
        skip_bad: leave out rows of such tables whose question cannot be read.

    Raises:
        InputError: if the files cannot be read or are of several models, or the method needs what they do not hold.
    """
    name = method.partition(":")[0]
    if name in METHODS and name not in FROM_LOGS:
        raise InputError(
            f"{name} needs a model to ask; from --log there are {', '.join(FROM_LOGS)}: unslant debias MODEL QUESTIONS "
            f"--method {name}"
        )
    debiasing = method_named(method)
    tables = tables_of("audit", logs, fields, skip_bad)
    if len(tables) > 1:
        sources = ", ".join(
            f"{table.run.model or 'a model'}{f' ({table.run.source})' * bool(table.run.source)}" for table in tables
        )
        raise InputError(f"the logs are of {len(tables)} models or kinds of scores: {sources}; give the files of one")
    (table,) = tables
    asker = RecordedAsker(table, answered=debiasing.needs_scores)
    debiasing.asks(asker.in_words)
    questions = _questions(table)
    orders = _NEEDED[type(debiasing)]
    remedy = (
        f"questions shown {orders}, and the logs have none; log them in more orders, or ask a model: unslant debias "
        f"MODEL QUESTIONS --method {debiasing.name}"
    )
    spec = "cyclic" if isinstance(debiasing, Pride) else "reverse"
    fit_on = [q for q in questions if asker.has(q, orders_for(q, spec))] if debiasing.needs_fit else []
    if debiasing.needs_fit and not fit_on:
        raise InputError(f"{debiasing.name} estimates on {remedy}")
    with closing(debiasing.fitted(asker, fit_on)) as debiaser:
        assert isinstance(debiaser, OrderDebiaser)  # all of FROM_LOGS are
        fit_cost = asker.cost.copy()
        answerable = [q for q in questions if asker.recorded(q) and asker.has(q, debiaser.orders(q))]
        by_id = dict(zip([q.id for q in answerable], debiaser.answer(answerable), strict=True))
        notes = [*caveats_of([table.run]), *debiaser.notes(answerable)]
    if not by_id:
        raise InputError(f"{debiasing.name} answers {remedy}")
    if isinstance(debiasing, Vote) and all(outcome.orders < 2 for outcome in by_id.values()):
        notes.append("every question was shown in one order: the vote is the model's own answer")
    why = f"not shown, or not answered, {orders}"
    outcomes = [by_id.get(q.id) or Outcome.none(q, "unsupported", why) for q in questions]
    notes += left_out_notes(left_out(outcomes), len(outcomes))
    if not table.questions:
        outcomes = [replace(outcome, text="") for outcome in outcomes]
    cost = asker.cost - fit_cost
    return Answers(debiasing.name, questions, tuple(outcomes), fit_cost, cost, tuple(notes), unanswered(table))


_NEEDED: Mapping[type[Method], str] = {
    Undebiased: "in the order given",
    Vote: "in the orders voted over",
    Pride: "in the order given, and some in all rotations of it",
    GrayBox: "in the order given and reversed",
}


def _questions(table: Responses) -> tuple[Question, ...]:
    """The questions of a table, with texts of the same ranks in place of option texts that it does not have."""
    if table.questions:
        return table.questions
    questions: dict[str, Question] = {}
    for row in table.each_row():
        if row.question_id not in questions and row.answers <= frozenset(range(row.n_options)):
            # Ties are broken by how option texts sort, so the substitutes sort like the texts did.
            options = tuple(f"{rank:04d}" for rank in row.text_ranks or range(row.n_options))
            questions[row.question_id] = Question(row.question_id, "", options, row.answers, pinned=row.pinned)
    return tuple(questions.values())
