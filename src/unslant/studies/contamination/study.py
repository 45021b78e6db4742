"""The contamination check (P4, sec. 6.2): the same model before and after it has seen the test set, or any two models.

A score that measures ability must not rise because the published file was learned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.asking import Progress, no_progress
from unslant.errors import InputError
from unslant.metrics import Bootstrap
from unslant.models.open import opened
from unslant.presentations.interventions import VANILLA
from unslant.questions import EMBEDDED, QuestionSet
from unslant.studies.contamination.finetuning import FineTuned, fine_tune
from unslant.studies.contamination.result import ContaminationResult
from unslant.studies.contamination.settings import ContaminationSettings, Training
from unslant.studies.options import part_of, with_options
from unslant.studies.unbiased.metrics import AS_PUBLISHED
from unslant.studies.unbiased.plan import AnySet, plan
from unslant.studies.unbiased.result import UnbiasedResult
from unslant.studies.unbiased.settings import UnbiasedSettings
from unslant.studies.unbiased.study import unbiased

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel


def _load(name: str) -> TransformersModel:
    model: TransformersModel = opened(name, ("score", "train"))
    return model


def contamination(
    model: str | Callable[[], TransformersModel],
    questions: str | Path | AnySet = EMBEDDED,
    settings: ContaminationSettings | None = None,
    *,
    load: Callable[[str], Any] = _load,
    progress: Progress = no_progress,
    **options: Any,
) -> ContaminationResult:
    """Measure a model, fine-tune a copy on the very questions as published, and measure again.

    With ``against``, two models that exist already are compared instead.

    Args:
        model: a name for :func:`unslant.open_model`, or a function that loads one; it is called once, and what it gives
            is trained in place.
        questions: a file, recipe or loaded set.
        settings, options: how they are learned and asked: a
            :class:`~unslant.studies.contamination.settings.ContaminationSettings`, its fields as keywords
            (``epochs=40``, ``runs=5``, ...), or both. Fine-tuning uses no worked examples.
        load: opens models that are given by name.
        progress: told of progress.

    Raises:
        InputError: on questions or settings that cannot be used.
        ModelError: if the model cannot be loaded or trained.
    """
    chosen = with_options(ContaminationSettings, settings, options)
    found = chosen.sampled(questions if isinstance(questions, QuestionSet) else chosen.load(questions))
    asked = part_of(chosen, UnbiasedSettings, alone=False, limit=None)
    measure = partial(unbiased, questions=found, settings=asked, progress=progress)
    opener = partial(load, model) if isinstance(model, str) else model
    if chosen.against is not None:
        return compare(measure(opener), measure(partial(load, chosen.against)))
    as_published = plan(found, replace(asked, runs=1, shots=0))
    samples = [shown for _, shown in as_published.asked if shown.kind == VANILLA]
    asker = opener()
    before = measure(asker)
    training = part_of(chosen, Training)
    trained = fine_tune(asker, samples, chosen.writer(), training, progress)
    after = measure(asker).renamed(f"{before.model} + test set")
    if chosen.save_model is not None:
        asker.model.save_pretrained(chosen.save_model)
        asker.tokenizer.save_pretrained(chosen.save_model)
    return compare(before, after, trained=trained, training=training)


def compare(
    before: UnbiasedResult,
    after: UnbiasedResult,
    *,
    trained: FineTuned | None = None,
    training: Training | None = None,
    seed: int = 0,
) -> ContaminationResult:
    """Set two results on the same questions side by side, for any pair of models.

    Raises:
        InputError: if the two were not asked the same questions under the same settings.
    """
    for key in ("questions_digest", "settings"):
        if before.meta.get(key) != after.meta.get(key):
            raise InputError(f"{before.model} and {after.model} cannot be compared: their {key} differ")
    clean, suspect = before.outcomes, after.outcomes
    if clean.ids != suspect.ids:
        raise InputError(f"{before.model} and {after.model} cannot be compared: they answered different questions")
    bootstrap = Bootstrap(len(clean.ids), clean.subjects, seed=seed)
    vanilla = suspect.credit(AS_PUBLISHED) - clean.credit(AS_PUBLISHED)
    ours = suspect.ours() - clean.ours()
    return ContaminationResult(
        before,
        after,
        vanilla_gain=bootstrap.mean(vanilla, share=False),
        ours_gain=bootstrap.mean(ours, share=False),
        excess=bootstrap.mean(vanilla - ours, share=False),
        trained=trained,
        training=training,
    )
