"""Debiased answers to a question set."""

from __future__ import annotations

from typing import Any, Unpack

from unslant.asking import Progress, no_progress
from unslant.debiasing import method_named
from unslant.debiasing.asker import asker_of
from unslant.debiasing.base import Answers
from unslant.debiasing.base import debias as answer
from unslant.errors import InputError
from unslant.experiment.options import with_options
from unslant.models.open import gives_replies, opened
from unslant.presentations import parse_labels
from unslant.questions import EMBEDDED
from unslant.studies.debias.settings import AnswerKeywords, AnswerSettings


def debias(
    model: Any,
    questions: Any = EMBEDDED,
    settings: AnswerSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Unpack[AnswerKeywords],
) -> Answers:
    """Answer every question with a debiasing method, as ``unslant debias`` does.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called last.
        questions: whatever :func:`unslant.load_questions` takes.
        settings, options: an :class:`~unslant.studies.debias.settings.AnswerSettings`, its fields as keywords
            (``method="pride"``, ...), or both.

    Example::

        unslant.debias("fair", "embedded", method="vote:orders=4", limit=10).to_pandas()

    Raises:
        InputError: on questions, a method, labels or a keyword that cannot be used.
        ModelError: if the model cannot be loaded or asked.
    """
    chosen = with_options(AnswerSettings, settings, options)
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
