"""The contamination check (P4, sec. 6.2): a score of ability must not rise because the published file was learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.asking import Progress, no_progress
from unslant.errors import InputError
from unslant.experiment.comparison import check_comparable
from unslant.experiment.options import part_of, with_options
from unslant.experiment.provenance_block import provenance
from unslant.files import dump_json, write_atomically
from unslant.metrics import Bootstrap
from unslant.metrics.registry import metric
from unslant.models.open import opened
from unslant.models.stored import unwrapped
from unslant.presentations.interventions import VANILLA
from unslant.questions import EMBEDDED
from unslant.studies.unbiased.contamination.finetuning import FineTuned, fine_tune
from unslant.studies.unbiased.contamination.result import ContaminationResult
from unslant.studies.unbiased.contamination.settings import ContaminationSettings, Training
from unslant.studies.unbiased.metrics import AS_PUBLISHED
from unslant.studies.unbiased.plan import plan
from unslant.studies.unbiased.result import UnbiasedResult
from unslant.studies.unbiased.settings import UnbiasedSettings
from unslant.studies.unbiased.study import unbiased
from unslant.writing import write_folder

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel


def _load(name: str) -> TransformersModel:
    model: TransformersModel = opened(name, ("score", "train"))
    return model


def contamination(
    model: str | TransformersModel | Callable[[], TransformersModel],
    questions: Any = EMBEDDED,
    settings: ContaminationSettings | None = None,
    *,
    load: Callable[[str], Any] = _load,
    progress: Progress = no_progress,
    save: Callable[[Callable[[], None]], object] = lambda write: write(),
    **options: Any,
) -> ContaminationResult:
    """Measure a model, fine-tune it on the questions as published (without worked examples), and measure again.

    With ``against``, two existing models are compared instead.

    Args:
        model: a name for ``load``, a loaded model, or a function that loads one; it is trained in place.
        questions: whatever :func:`unslant.load_questions` takes.
        settings, options: settings, some of their fields as keywords (``epochs=40``, ``runs=5``, ...), or both.
        load: opens models by name.
        save: is given what writes the tuned model to ``save_model``; by default it is written at once.

    Raises:
        InputError: on questions or settings that cannot be used.
        ModelError: if the model cannot be loaded or trained.
    """
    chosen = with_options(ContaminationSettings, settings, options)
    found = chosen.sampled(chosen.load(questions))
    asked = part_of(chosen, UnbiasedSettings, no_alone=True, limit=None)
    measure = partial(unbiased, questions=found, settings=asked, progress=progress)
    opener = partial(load, model) if isinstance(model, str) else partial(opened, model, ("score", "train"))
    if chosen.against is not None:
        return compare(measure(opener), measure(partial(load, chosen.against)))
    planned = plan(found, replace(asked, runs=1, shots=0))
    published = [shown for _, shown in planned.asked if shown.kind == VANILLA]
    asker, training = opener(), part_of(chosen, Training)
    before = measure(asker)
    trained = fine_tune(unwrapped(asker), published, chosen.writer(), training, progress)
    after = measure(asker).renamed(f"{before.model} + test set")
    if chosen.save_model is not None:
        made = after.provenance | {"settings": provenance((), (), chosen)["settings"]}
        save(partial(_save, unwrapped(asker), made, chosen.save_model))
    return compare(before, after, trained=trained, training=training)


def _save(model: TransformersModel, made: Mapping[str, Any], folder: Path) -> None:
    def files(scratch: Path) -> None:
        model.model.save_pretrained(scratch)
        model.tokenizer.save_pretrained(scratch)
        write_atomically(scratch / "provenance.json", dump_json(made))

    write_folder(folder, files)


@metric("vanilla_gain", "gain as published", "after minus before, same questions", unit="difference")
@metric("ours_gain", "gain under interventions", "after minus before, same questions", unit="difference")
@metric(
    "excess", "excess", "gain as published beyond the gain under interventions", unit="difference", source="P4 sec. 6.2"
)
def compare(
    before: UnbiasedResult, after: UnbiasedResult, *, trained: FineTuned | None = None, training: Training | None = None
) -> ContaminationResult:
    """Set the results of any two models on the same questions side by side.

    Raises:
        InputError: if the two were not asked the same questions under the same settings.
    """
    check_comparable([before, after])
    clean, suspect = before.outcomes, after.outcomes
    if clean.ids != suspect.ids:
        raise InputError(f"{before.model} and {after.model} cannot be compared: they answered different questions")
    bootstrap = Bootstrap(len(clean.ids), clean.subjects)
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
