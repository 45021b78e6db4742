"""The leaderboard: audit every model on every set, and rank them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unslant.asking import Progress, no_progress
from unslant.auditing.result import AuditResult
from unslant.auditing.settings import AuditSettings
from unslant.auditing.study import audit, prepared
from unslant.errors import InputError
from unslant.experiment.options import with_options
from unslant.models import ChatModel, ScoringModel
from unslant.models.open import check_opens, gives_replies, opened
from unslant.presentations import parse_labels
from unslant.questions import EMBEDDED, Question, QuestionSet
from unslant.studies.leaderboard.result import Leaderboard

Model = str | ScoringModel | ChatModel | Callable[[], ScoringModel | ChatModel]


def leaderboard(
    models: Model | Sequence[Model],
    questions: Any = EMBEDDED,
    settings: AuditSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> Leaderboard:
    """Audit every model on every question set, one model at a time, and rank them by the mean over orders.

    Models that give only replies are asked for these, the others are scored; see :func:`unslant.audit`.

    Args:
        models: names, loaded models, or functions that load one; names are all looked at before any work.
        questions: whatever :func:`unslant.load_questions` takes, or a list of such, with distinct names.
        settings, options: an :class:`~unslant.auditing.settings.AuditSettings`, its fields as keywords
            (``limit=100`` of each set), or both.

    Raises:
        InputError: if questions, settings or names are invalid, or two models or sets have the same name.
        ModelError: if a model cannot be opened or cannot take a prompt.
    """
    chosen = with_options(AuditSettings, settings, options)
    sets = chosen.load_each(questions)
    given: list[Any] = list(models) if isinstance(models, list | tuple) else [models]
    if not given:
        raise InputError("no models: give one or more")
    known = [model for model in given if isinstance(model, str) or not _loads(model)]
    ways = {in_words(model, chosen) for model in known}
    for words in ways:
        check_settings(sets, chosen.resolved(words), words)
    check_names([model if isinstance(model, str) else model.name for model in known])
    for model in known:
        if isinstance(model, str):
            check_opens(model, needs=("generate",) if in_words(model, chosen) else ("score",))
    return Leaderboard.of(one for model in given for one in _audits(model, sets, chosen, progress))


def _audits(
    model: Any, sets: Sequence[QuestionSet[Question]], chosen: AuditSettings, progress: Progress
) -> list[AuditResult]:
    """The audits of one model, which is let go afterwards."""
    loaded = model() if _loads(model) else model
    words = in_words(loaded, chosen)
    loaded = opened(loaded, ("generate",) if words else ("score",))
    return [audit(loaded, found, chosen.resolved(words), progress=progress) for found in sets]


def in_words(model: Any, chosen: AuditSettings, options: Any = None) -> bool:
    """Whether replies of a model are read; its labels are scored otherwise."""
    return gives_replies(model, options) if chosen.elicit == "auto" else chosen.elicit == "generate"


def check_settings(sets: Sequence[QuestionSet[Question]], chosen: AuditSettings, words: bool) -> None:
    """Raise InputError if settings, already resolved, and a set do not go together."""
    chosen.writer()
    for found in sets:
        if words:
            from unslant.auditing.words import plan

            parse_labels(chosen.labels)
            plan(found.questions, chosen, chosen.chooser(found))
        else:
            prepared(found, chosen)


def check_names(names: Sequence[str]) -> None:
    """Raise InputError if two models have the same name."""
    if len(set(names)) < len(names):
        raise InputError(f"models {', '.join(names)}: two have the same name")


def _loads(model: Any) -> bool:
    return callable(model) and not hasattr(type(model), "score") and not hasattr(type(model), "generate")
