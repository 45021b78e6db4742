"""The unbiased evaluator (P4): the score as published beside the score under random interventions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from unslant.asking import Progress, ask, ask_for_replies, no_progress, read_labels
from unslant.experiment.options import with_options
from unslant.experiment.run_record import run_of, with_run
from unslant.models import ScoringModel
from unslant.models.chat import ChatModel, is_local
from unslant.models.open import opened
from unslant.presentations import Presentation
from unslant.presentations.interventions.matrix import check_probabilities
from unslant.prompts import Cloze
from unslant.questions import EMBEDDED, Question
from unslant.replies import read_open
from unslant.responses import Responses
from unslant.scale.options import WHOLE, ShardOptions
from unslant.studies.unbiased.plan import plan
from unslant.studies.unbiased.result import UnbiasedResult
from unslant.studies.unbiased.settings import ComposeSettings, UnbiasedSettings


def unbiased(
    model: str | ScoringModel | ChatModel | Callable[[], ScoringModel | ChatModel],
    questions: Any = EMBEDDED,
    settings: UnbiasedSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> UnbiasedResult:
    """Score a model on a question set as published and under random interventions.

    With ``generate`` it is asked for replies instead of label probabilities. Then a reply without an answer is not
    right, a presentation without a reply is left out, and both are counted; open maths is asked as published, and
    models that are not local are always asked in a chat.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called last.
        questions: whatever :func:`unslant.load_questions` takes, or maths questions. With ``limit``, options and second
            stems still come from all questions.
        settings, options: settings, some of their fields as keywords (``runs=5``, ``shots=0``, ...), or both.

    Raises:
        InputError: on questions, probabilities, a template or a keyword that cannot be used.
        ModelError: if the model cannot be loaded, or cannot take a prompt.
    """
    return UnbiasedResult.of(unbiased_responses(model, questions, settings, progress=progress, **options))


def unbiased_responses(
    model: str | ScoringModel | ChatModel | Callable[[], ScoringModel | ChatModel],
    questions: Any = EMBEDDED,
    settings: UnbiasedSettings | None = None,
    *,
    shards: ShardOptions = WHOLE,
    progress: Progress = no_progress,
    **options: Any,
) -> Responses:
    """What :func:`unbiased` measures: the answers to all questions, or to those of a shard."""
    chosen = with_options(UnbiasedSettings, settings, options)
    whole = chosen.load(questions, chosen.maths)
    found = chosen.sampled(whole)
    chosen.writer()  # a bad template is refused before the model is opened
    planned = plan(found, chosen, pool_from=whole, shots_from=chosen.pool(chosen.shots_from, chosen.maths))
    asker = opened(model, ("generate",) if chosen.generate else ("score",))
    if chosen.generate:
        chosen = replace(chosen, chat=chosen.chat or not is_local(asker))
    writer = chosen.writer()
    share = shards.share("unbiased", found, recorded(chosen), [writer], lambda: planned.asked, progress)
    asked = list(share.cut(planned.asked))
    before = asker.cost.copy()
    if chosen.generate:
        responses = ask_for_replies(asker, asked, writer, read=read_reply, progress=progress)
        parameters = None
    else:
        responses = ask(asker, asked, [Cloze(writer)], progress=progress)
        parameters = getattr(asker, "parameters", None)
    run = run_of("unbiased", found, recorded(chosen), asker, before, chosen)
    run = replace(run, parameters=parameters, counts=planned.counts(), shard=share.header)
    return with_run(responses, run, share.own(found))


def recorded(settings: ComposeSettings) -> dict[str, Any]:
    """The settings for JSON, with the probability of every intervention."""
    return settings.recorded("maths", "generate") | {"probabilities": check_probabilities(settings.probabilities)}


def read_reply(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """Status and contents of a reply; to an open question, 0 if its number is right and 1 if not."""
    if presentation.shown:
        return read_labels(reply, question, presentation)
    return read_open(reply, question.options[0])
