"""The base-rate study (P5): labels that a model likes before it has read anything, and what they do to its score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from unslant.asking import Asked, Watch, ask, no_watch
from unslant.models.base import ScoringModel
from unslant.presentations import ShotChooser, parse_labels, present
from unslant.presentations.controls import control_presentations
from unslant.presentations.nvr import nvr_presentations
from unslant.prompts import Cloze, Counterfactual, Elicitation, Writer, load_template
from unslant.questions import EMBEDDED, Question, QuestionSet, load_questions
from unslant.questions.loaders import sample
from unslant.responses.recorded import load_recorded
from unslant.responses.table import Responses
from unslant.studies.base_rate.findings import GIVEN
from unslant.studies.base_rate.result import BaseRateResult, BaseRateSettings, result_of

if TYPE_CHECKING:
    pass


def base_rate(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: str | Path | QuestionSet[Question] = EMBEDDED,
    *,
    labels: str = "A",
    template: str = "base-rate",
    chat: bool = False,
    shots: int = 0,
    shots_from: QuestionSet[Question] | None = None,
    canary: str = "best",
    nvr: bool = True,
    limit: int | None = None,
    seed: int = 0,
    watch: Watch = no_watch,
) -> BaseRateResult:
    """Ask every question as given and as Nvr-X, and the control questions, each by cloze and by counterfactual.

    Args:
        model: a name or folder for :func:`unslant.load_model`, a loaded model, or a function that loads one.
        questions: a file, recipe or loaded set.
        labels: label set, see :func:`unslant.presentations.parse_labels`.
        template: prompt template; ``base-rate`` is the paper's layout.
        chat: ask through the tokenizer's chat template.
        shots, shots_from: worked examples before each question (and control); by default from the set itself.
        canary: word or words scored after each label under the counterfactual.
        nvr: ask the Nvr-X variants; without them the cost is that of the given order alone, and H4 is not tested.
        limit: ask only so many questions, sampled by ``seed``.
        seed: of every random choice.
        watch: told of progress.

    Raises:
        InputError: on questions, labels, canary or a template that cannot be used.
        ModelError: if the model cannot be loaded, or cannot take a prompt.
    """
    from unslant.models.hf.loading import load_model

    settings = BaseRateSettings(labels, template, chat, shots, canary, nvr, seed)
    writer = Writer(load_template(template), chat)
    elicitations: list[Elicitation] = [Cloze(writer), Counterfactual(writer, canary)]
    found = questions if isinstance(questions, QuestionSet) else load_questions(questions)
    found = replace(found, questions=sample(found.questions, limit, seed))
    chooser = ShotChooser((shots_from or found).questions, shots, seed, alphabet=parse_labels(labels))
    asked = [
        (question, presentation.with_shots(chooser.of(question)))
        for question, presentation in base_rate_presentations(found.questions, parse_labels(labels), nvr, seed)
    ]
    if isinstance(model, str):
        model = partial(load_model, model)
    asker = model() if callable(model) else model
    before = asker.cost.copy()
    responses = ask(asker, asked, elicitations, watch=watch)
    meta = {
        "study": "base-rate",
        "model": asker.name,
        "questions": found.name,
        "questions_digest": found.digest,
        "loading": asdict(found.report),
        "settings": asdict(settings),
        "engine": getattr(asker, "engine", type(asker).__name__),
        "cost": asdict(asker.cost - before),
    }
    return result_of(Responses(responses.table, json.loads(json.dumps(meta))), found.questions, seed)


def base_rate_presentations(
    questions: Sequence[Question], alphabet: tuple[str, ...], nvr: bool = True, seed: int = 0
) -> list[Asked]:
    """Every question as given and (``nvr``) in its Nvr-X variants, then the controls for every number of options."""
    asked: list[Asked] = []
    for question in questions:
        asked.append((question, present(question, alphabet=alphabet, name=GIVEN)))
        if nvr:
            asked += [(question, presentation) for presentation in nvr_presentations(question, alphabet, seed)]
    for n in sorted({len(question.options) for question in questions}):
        asked += control_presentations(n, alphabet, seed=seed)
    return asked


def base_rate_recorded(
    source: str | Path | Responses,
    questions: QuestionSet[Question] | Sequence[Question] | None = None,
    *,
    model: str | None = None,
    fields: Mapping[str, str] | None = None,
    seed: int = 0,
) -> BaseRateResult:
    """The same study from recorded log-probabilities, with no model.

    Args:
        source: a file for :func:`unslant.responses.recorded.load_recorded` (what :meth:`BaseRateResult.to_parquet`
            wrote is one too), or a table of responses.
        questions: the texts, for the shortcut controls. Recorded ids are those of the questions or the last parts of
            them (``abstract_algebra/0`` for ``mmlu/test/abstract_algebra/0``).
        model, fields: see :func:`~unslant.responses.recorded.load_recorded`.
        seed: of the bootstrap.

    Raises:
        InputError: on a file that cannot be used, or questions that are not the recorded ones.
    """
    responses = source if isinstance(source, Responses) else load_recorded(source, fields=fields, model=model)
    return result_of(responses, None if questions is None else list(questions), seed)
