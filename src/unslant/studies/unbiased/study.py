"""The unbiased evaluator (P4): a score that must survive a change of presentation.

Load, compose interventions at random for every question and run, ask, and set the result beside the published form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unslant.asking import Watch, ask, no_watch
from unslant.models.base import ScoringModel
from unslant.models.chat import Speaker
from unslant.presentations import Presentation
from unslant.presentations.interventions import (
    read_open,
)
from unslant.presentations.interventions.matrix import check_probabilities
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import EMBEDDED, Question, QuestionSet, load_questions
from unslant.questions.loaders import sample
from unslant.responses.table import Responses
from unslant.studies.replies import ask_in_words, read_labels
from unslant.studies.unbiased.plan import AnySet, Plan, UnbiasedSettings, plan
from unslant.studies.unbiased.result import UnbiasedResult, result_of

if TYPE_CHECKING:
    pass


def unbiased(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: str | Path | AnySet = EMBEDDED,
    *,
    runs: int = 5,
    shots: int = 5,
    shots_from: AnySet | None = None,
    probabilities: Mapping[str, float] | None = None,
    alone: bool = True,
    instructions: bool = True,
    template: str = "plain",
    chat: bool = False,
    limit: int | None = None,
    seed: int = 0,
    watch: Watch = no_watch,
) -> UnbiasedResult:
    """Score a model on a question set as published and under random interventions, by label log-probability.

    Args:
        model: a name or folder for :func:`unslant.load_model`, a loaded model, or a function that loads one (called
            once everything else has been found to be in order).
        questions: a file, recipe or loaded set, of multiple-choice or (``load_math``) open maths questions.
        runs: independent draws of interventions for every question.
        shots, shots_from: worked examples that carry the same interventions; by default from the set itself.
        probabilities: intervention -> probability, over the paper's (0.5 each, binary transformation 0.1).
        alone: ask every intervention by itself too.
        instructions: begin with a sentence that says what is asked for, which changes with the interventions. Models
            that were never taught to follow one (the reference models) are better asked without it.
        limit: ask only so many questions, sampled by ``seed``. Options and second stems still come from all of them.
        seed: of every random choice.
        watch: told of progress.

    Raises:
        InputError: on questions, probabilities or a template that cannot be used.
        ModelError: if the model cannot be loaded, or cannot take a prompt.
    """
    from unslant.models.hf.loading import load_model

    settings = UnbiasedSettings(runs, shots, dict(probabilities or {}), alone, instructions, template, chat, seed)
    whole = loaded(questions)
    found = cut(whole, limit, seed)
    writer = Writer(load_template(template), chat)
    planned = plan(found, settings, pool_from=whole, shots_from=shots_from)
    if isinstance(model, str):
        model = partial(load_model, model)
    asker = model() if callable(model) else model
    before = asker.cost.copy()
    responses = ask(asker, planned.asked, [Cloze(writer)], watch=watch)
    meta = {
        **about(found, settings, planned, asker.name),
        "engine": getattr(asker, "engine", type(asker).__name__),
        "parameters": parameters(asker),
        "cost": asdict(asker.cost - before),
    }
    return result_of(with_meta(responses, meta, found))


def unbiased_in_words(
    speaker: Speaker,
    questions: str | Path | AnySet = EMBEDDED,
    *,
    runs: int = 5,
    shots: int = 5,
    shots_from: AnySet | None = None,
    probabilities: Mapping[str, float] | None = None,
    alone: bool = True,
    instructions: bool = True,
    template: str = "plain",
    chat: bool = True,
    limit: int | None = None,
    seed: int = 0,
    watch: Watch = no_watch,
) -> UnbiasedResult:
    """The same study with replies in words, for served and chat models; open maths is asked as published.

    An answer counts if the contents it chooses are exactly the right ones. What cannot be read is left out and
    counted. See :func:`unbiased` for the arguments.
    """
    settings = UnbiasedSettings(runs, shots, dict(probabilities or {}), alone, instructions, template, chat, seed)
    whole = loaded(questions)
    found = cut(whole, limit, seed)
    writer = Writer(load_template(template), chat)
    planned = plan(found, settings, pool_from=whole, shots_from=shots_from, in_words=True)
    responses = ask_in_words(speaker, planned.asked, writer, read=read_reply, watch=watch)
    return result_of(with_meta(responses, about(found, settings, planned, speaker.name), found))


def read_reply(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """What a reply chooses; for an open question whether its number is the right one (option 0) or not (1)."""
    if presentation.shown:
        return read_labels(reply, question, presentation)
    return read_open(reply, question.options[0])


def loaded(questions: str | Path | AnySet) -> AnySet:
    """The questions as a set, read from their file where they are not."""
    return questions if isinstance(questions, QuestionSet) else load_questions(questions)


def cut(questions: AnySet, limit: int | None, seed: int) -> AnySet:
    """At most ``limit`` of the questions, sampled by ``seed``."""
    any_kind: Any = questions
    return cast(AnySet, replace(any_kind, questions=sample(any_kind.questions, limit, seed)))


def about(found: AnySet, settings: UnbiasedSettings, planned: Plan, model: str) -> dict[str, Any]:
    """What is written beside the responses of a run."""
    return {
        "study": "unbiased",
        "model": model,
        "questions": found.name,
        "questions_digest": found.digest,
        "loading": asdict(found.report),
        "settings": {**asdict(settings), "probabilities": check_probabilities(settings.probabilities)},
        "counts": planned.to_dict(),
    }


def with_meta(responses: Responses, meta: Mapping[str, Any], found: AnySet) -> Responses:
    """The responses with their meta data as they would be read back from a file, and the questions."""
    as_written = json.loads(json.dumps(meta))
    texts = tuple(question for question in found if isinstance(question, Question))
    return Responses(responses.table, as_written, texts)


def parameters(model: object) -> int | None:
    """Number of weights of a local model, where it can be told."""
    count = getattr(getattr(model, "model", None), "num_parameters", None)
    return int(count()) if callable(count) else None
