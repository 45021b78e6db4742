"""The base-rate study (P5): labels a model prefers before reading anything, and their effect on its score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from unslant.asking import Asked, Progress, ask, no_progress
from unslant.errors import InputError, MostlyFailedError
from unslant.experiment.options import with_options
from unslant.experiment.provenance import unanswered
from unslant.experiment.run_record import run_of, with_run
from unslant.models import ScoringModel
from unslant.models.open import opened
from unslant.presentations import control_presentations, nvr_presentations, parse_labels, present
from unslant.prompts import Cloze, Counterfactual, Elicitation
from unslant.questions import EMBEDDED, Question, load_questions
from unslant.responses import Responses, load_recorded
from unslant.scale.options import WHOLE, ShardOptions
from unslant.studies.base_rate.findings import GIVEN
from unslant.studies.base_rate.result import BaseRateResult, result_of
from unslant.studies.base_rate.settings import BaseRateSettings


def base_rate(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: Any = EMBEDDED,
    settings: BaseRateSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> BaseRateResult:
    """Ask every question as given and as Nvr-X, and the control questions, each by cloze and by counterfactual.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one.
        questions: whatever :func:`unslant.load_questions` takes.
        settings, options: a :class:`~unslant.studies.base_rate.settings.BaseRateSettings`, its fields as keywords
            (``canary="best"``, ``no_nvr=True``, ...), or both.

    Raises:
        InputError: if questions, labels, canary, template or a keyword are invalid.
        ModelError: if the model cannot be loaded or cannot take a prompt.
    """
    responses = base_rate_responses(model, questions, settings, progress=progress, **options)
    try:
        return base_rate_recorded(responses)
    except InputError as error:
        if failure := unanswered(responses):  # it is the model that is at fault
            raise MostlyFailedError(f"{failure}: {error}") from None
        raise


def base_rate_responses(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: Any = EMBEDDED,
    settings: BaseRateSettings | None = None,
    *,
    shards: ShardOptions = WHOLE,
    progress: Progress = no_progress,
    **options: Any,
) -> Responses:
    """What :func:`base_rate` measures: the answers to all questions, or to those of a shard."""
    chosen = with_options(BaseRateSettings, settings, options)
    alphabet, writer = parse_labels(chosen.labels), chosen.writer()
    elicitations: list[Elicitation] = [Cloze(writer), Counterfactual(writer, chosen.canary)]
    found = chosen.sampled(chosen.load(questions))
    chooser = chosen.chooser(found, alphabet)
    asked = [
        (question, presentation.with_shots(chooser.of(question)))
        for question, presentation in base_rate_presentations(found.questions, alphabet, not chosen.no_nvr, chosen.seed)
    ]
    asker = opened(model)
    share = shards.share("base-rate", found, chosen.recorded(), elicitations, lambda: asked, progress)
    before = asker.cost.copy()
    responses = ask(asker, list(share.cut(asked)), elicitations, progress=progress)
    run = run_of("base-rate", found, chosen.recorded(), asker, before, chosen)
    return with_run(responses, replace(run, shard=share.header), share.own(found))


def base_rate_presentations(
    questions: Sequence[Question], alphabet: tuple[str, ...], nvr: bool = True, seed: int = 0
) -> list[Asked]:
    """Every question as given and (``nvr``) in its Nvr-X variants, then the controls for every number of options."""
    asked: list[Asked] = []
    for question in questions:
        asked.append((question, present(question, alphabet=alphabet, kind=GIVEN)))
        if nvr:
            asked += [(question, presentation) for presentation in nvr_presentations(question, alphabet, seed)]
    for n in sorted({len(question.options) for question in questions}):
        asked += control_presentations(n, alphabet, seed=seed)
    return asked


def base_rate_recorded(
    source: str | Path | Responses | Sequence[str | Path],
    questions: Any = None,
    *,
    model: str | None = None,
    fields: Mapping[str, str] | None = None,
    seed: int = 0,
) -> BaseRateResult:
    """The same study from recorded log-probabilities, without a model.

    Args:
        source: one or several files of one model for :func:`unslant.responses.load_recorded`, including those of
            :meth:`BaseRateResult.to_parquet`, or a table of responses.
        questions: the texts for the shortcut controls, by default those in a table of ours: whatever
            :func:`unslant.load_questions` takes. Recorded ids may be the last parts of the questions' ids
            (``abstract_algebra/0`` for ``mmlu/test/abstract_algebra/0``).
        model, fields: see unslant.responses.load_recorded.

    Raises:
        InputError: if a file cannot be used, or the questions are not the recorded ones.
    """
    if isinstance(source, Responses):
        responses = source
    else:
        paths = [source] if isinstance(source, str | Path) else source
        responses = _joined([load_recorded(path, fields=fields, model=model) for path in paths])
    if questions is not None:
        return result_of(responses, list(load_questions(questions)), seed)
    return result_of(responses, responses.questions or None, seed or responses.run.settings.get("seed", 0))


def _joined(tables: Sequence[Responses]) -> Responses:
    models = sorted({table.run.model for table in tables})
    if len(models) > 1:
        raise InputError(f"the files hold responses of several models: {', '.join(models)}; give those of one")
    return replace(tables[0], table=pa.concat_tables([table.table for table in tables]))
