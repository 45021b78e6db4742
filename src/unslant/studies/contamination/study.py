"""The contamination check (P4, sec. 6.2): the same model before and after it has seen the test set, or any two models.

A score that measures ability must not rise because the published file was learned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unslant.asking import Watch, no_watch
from unslant.errors import InputError
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.prompts import Writer, load_template
from unslant.questions import EMBEDDED
from unslant.studies.contamination.finetuning import Trained, Training, fine_tune
from unslant.studies.contamination.result import ContaminationResult
from unslant.studies.probe.metrics import Decomposition, decompose
from unslant.studies.unbiased.metrics import VANILLA, Outcomes
from unslant.studies.unbiased.plan import AnySet, UnbiasedSettings, plan
from unslant.studies.unbiased.result import UnbiasedResult
from unslant.studies.unbiased.study import cut, loaded, unbiased

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel


def contamination(
    model: str | Callable[[], TransformersModel],
    questions: str | Path | AnySet = EMBEDDED,
    *,
    training: Training | None = None,
    runs: int = 5,
    shots: int = 0,
    probabilities: Mapping[str, float] | None = None,
    instructions: bool = True,
    template: str = "plain",
    chat: bool = False,
    limit: int | None = None,
    seed: int = 0,
    save: str | Path | None = None,
    watch: Watch = no_watch,
) -> ContaminationResult:
    """Measure a model, fine-tune a copy on the very questions as published, and measure again.

    Args:
        model: a name or folder for :func:`unslant.load_model`, or a function that loads one; it is called once, and
            what it gives is trained in place.
        training: how to fine-tune.
        save: folder for the fine-tuned model.
        runs, shots, probabilities, instructions, template, chat, limit, seed, watch: as in
            :func:`~unslant.studies.unbiased.study.unbiased`. Fine-tuning uses no worked examples.

    Raises:
        InputError: on questions or settings that cannot be used.
        ModelError: if the model cannot be loaded or trained.
    """
    from unslant.models.hf.loading import load_model

    training = training or Training(seed=seed)
    found = cut(loaded(questions), limit, seed)
    published = plan(found, UnbiasedSettings(runs=1, shots=0, alone=False, instructions=instructions, seed=seed))
    samples = [shown for _, shown in published.asked if shown.name == VANILLA]
    measure = partial(
        unbiased,
        questions=found,
        runs=runs,
        shots=shots,
        probabilities=probabilities,
        alone=False,
        instructions=instructions,
        template=template,
        chat=chat,
        seed=seed,
        watch=watch,
    )
    asker = load_model(model) if isinstance(model, str) else model()
    before = measure(asker)
    trained = fine_tune(asker, samples, Writer(load_template(template), chat), training, watch)
    asker.name = f"{before.model} + test set"
    after = measure(asker)
    if save is not None:
        asker.model.save_pretrained(save)
        asker.tokenizer.save_pretrained(save)
    return compare(before, after, trained=trained, training=training)


def compare(
    before: UnbiasedResult,
    after: UnbiasedResult,
    *,
    trained: Trained | None = None,
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
    clean, suspect = Outcomes(before.responses), Outcomes(after.responses)
    if clean.ids != suspect.ids:
        raise InputError(f"{before.model} and {after.model} cannot be compared: they answered different questions")
    bootstrap = Bootstrap(len(clean.ids), clean.subjects, seed=seed)
    vanilla = suspect.credit(VANILLA) - clean.credit(VANILLA)
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


def bias_terms(results: Sequence[UnbiasedResult], ability: Sequence[float], *, seed: int = 0) -> Decomposition:
    """Prop. 3.1 over models whose true ability is known: the share of questions they know.

    A score is corrected for guessing before it is set against that share: (accuracy - chance) / (1 - chance).

    Raises:
        ValueError: if there is not one ability for each result.
    """
    if len(results) != len(ability):
        raise ValueError(f"{len(ability)} abilities for {len(results)} results")

    def known(accuracy: Estimate, chance: Estimate) -> float:
        return (accuracy.value - chance.value) / (1 - chance.value)

    old = np.array([known(r.metrics.vanilla, r.metrics.vanilla_chance) for r in results])
    new = np.array([known(r.metrics.ours, r.metrics.ours_chance) for r in results])
    return decompose(np.asarray(ability, dtype=np.float64), old, new, seed=seed)
