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
from unslant.experiment.options import WITH_LOG, check_no_model, check_unused, with_options
from unslant.models.open import gives_replies, opened
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
            (``method="pride"``, ...), or both.

    Example::

        unslant.debias("fair", "embedded", method="vote:orders=4", limit=10).to_pandas()

    Raises:
        InputError: on questions, a method, labels or a keyword that cannot be used.
        ModelError: if the model cannot be loaded or asked.
    """
    chosen = with_options(AnswerSettings, settings, options)
    if log:
        from unslant.studies.debias.recorded import debias_log

        check_no_model(model, questions)
        check_unused(WITH_LOG, chosen, but=("method", "fields"))
        return debias_log(log, chosen.method, chosen.fields)
    if model is None:
        raise InputError("name a model, or recorded answers with log=")
    questions = EMBEDDED if questions is None else questions
    method = method_named(chosen.method)
    in_words = gives_replies(model) if chosen.elicit == "auto" else chosen.elicit == "generate"
    needs = method.asks(in_words)
    chosen = chosen.resolved(in_words)
    if method.held_out and method.needs_fit and not chosen.train:
        raise InputError(f"{method.name} must not be fitted on the questions it answers; give others with --train FILE")
    if chosen.train is not None and not method.needs_fit:
        raise InputError(f"{method.name} is not fitted: leave out --train {chosen.train}, which would have no effect")
    found = chosen.sampled(chosen.load(questions))
    fit_on = chosen.pool(chosen.train)
    writer, alphabet = chosen.writer(), parse_labels(chosen.labels)
    asker = asker_of(opened(model, needs), writer, alphabet, in_words=in_words, progress=progress)
    return answer(method, asker, found.questions, fit_on.questions if fit_on else None)
