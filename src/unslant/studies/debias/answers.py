"""Debiased answers to a question set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unslant.asking import ModelAsker, Progress, no_progress
from unslant.debias import Answers, method_named
from unslant.debias import debias as answer
from unslant.errors import InputError
from unslant.models.open import opened
from unslant.presentations import parse_labels
from unslant.prompts import Cloze
from unslant.questions import EMBEDDED, Question, QuestionSet
from unslant.studies.debias.settings import AnswerSettings
from unslant.studies.options import with_options


def debias(
    model: Any,
    questions: str | Path | QuestionSet[Question] = EMBEDDED,
    settings: AnswerSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> Answers:
    """Answer every question with a debiasing method, as ``unslant debias`` does.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called last.
        questions: a file, recipe or loaded set.
        settings, options: an :class:`~unslant.studies.debias.settings.AnswerSettings`, its fields as keywords
            (``method="pride"``, ...), or both.

    Raises:
        InputError: on questions, a method, labels or a keyword that cannot be used.
        ModelError: if the model cannot be loaded or asked.
    """
    chosen = with_options(AnswerSettings, settings, options)
    method = method_named(chosen.method)
    if method.held_out and method.needs_fit and not chosen.train:
        raise InputError(f"{method.name} must not be fitted on the questions it answers; give others with --train FILE")
    found = chosen.sampled(questions if isinstance(questions, QuestionSet) else chosen.load(questions))
    fit_on = chosen.pool(chosen.train)
    elicitation, alphabet = Cloze(chosen.writer()), parse_labels(chosen.labels)
    loaded = opened(model, ("score", "attend") if method.needs_model else ("score",))
    asker = ModelAsker(loaded, elicitation, alphabet, progress=progress)
    return answer(method, asker, found.questions, fit_on.questions if fit_on else None)
