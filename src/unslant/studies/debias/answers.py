"""Debiased answers to a question set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from unslant.asking import Progress, no_progress
from unslant.debiasing import method_named
from unslant.debiasing.asker import asker_of
from unslant.debiasing.base import Answers
from unslant.debiasing.base import debias as answer
from unslant.errors import InputError
from unslant.experiment.options import WITH_LOG, by_kind, check_generate, check_no_model, check_unused, with_options
from unslant.models import GenerateOptions, ModelOptions
from unslant.models.open import gives_replies, opened, options_of_each
from unslant.presentations import parse_labels
from unslant.questions import EMBEDDED
from unslant.studies.debias.settings import AnswerKeywords, AnswerSettings


def debias(
    model: Any = None,
    questions: Any = None,
    /,
    *,
    log: str | Path | Sequence[str | Path] = (),
    progress: Progress = no_progress,
    settings: AnswerSettings | None = None,
    **options: Unpack[AnswerKeywords],
) -> Answers:
    """Answer every question with a debiasing method, as ``unslant debias`` does.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called last.
        questions: what :func:`unslant.load_questions` takes; by default the embedded ones.
        log: files of recorded scores or replies, in place of both; see
            :func:`~unslant.studies.debias.recorded.debias_log`.
        settings, options: an :class:`~unslant.studies.debias.settings.AnswerSettings`, its fields as keywords
            (``method="pride"``, ...), or both; also how a named model is opened (``device="cpu"``, ...: fields of
            :class:`~unslant.models.ModelOptions`) and how it replies (``temperature=``, ``max_tokens=``).

    Example::

        unslant.debias("fair", "embedded", method="vote:orders=4", limit=10).to_pandas()

    Raises:
        InputError: on questions, a method, labels or a keyword that cannot be used.
        ModelError: if the model cannot be loaded or asked.
    """
    parts = by_kind({"settings": AnswerSettings, "models": ModelOptions, "generate": GenerateOptions}, options)
    chosen = with_options(AnswerSettings, settings, parts["settings"])
    models, generate = ModelOptions(**parts["models"]), GenerateOptions(**parts["generate"])
    if log:
        from unslant.studies.debias.recorded import debias_log

        check_no_model(model, questions)
        check_unused(WITH_LOG, chosen, models, generate, but=("method", "fields"))
        return debias_log(log, chosen.method, chosen.fields)
    if model is None:
        raise InputError("name a model, or recorded answers with log=")
    questions = EMBEDDED if questions is None else questions
    method = method_named(chosen.method)
    in_words = gives_replies(model, models) if chosen.elicit == "auto" else chosen.elicit == "generate"
    needs = method.asks(in_words)
    check_generate(generate, in_words)
    (models,) = options_of_each([model], models, needs)
    chosen = chosen.resolved(in_words)
    if method.held_out and method.needs_fit and not chosen.train:
        raise InputError(f"{method.name} must not be fitted on the questions it answers; give others with --train FILE")
    if chosen.train is not None and not method.needs_fit:
        raise InputError(f"{method.name} is not fitted: leave out --train {chosen.train}, which would have no effect")
    found = chosen.sampled(chosen.load(questions))
    fit_on = chosen.pool(chosen.train)
    writer, alphabet = chosen.writer(), parse_labels(chosen.labels)
    asker = asker_of(opened(model, needs, models, generate), writer, alphabet, in_words=in_words, progress=progress)
    return answer(method, asker, found.questions, fit_on.questions if fit_on else None)
