"""``unslant study contamination``: what seeing the test set does to a score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from unslant.experiment import options as o
from unslant.studies.unbiased.contamination.settings import ContaminationSettings, Training


def contamination(
    model: o.Model = "fair",
    questions: o.Questions = o.EMBEDDED,
    /,
    *,
    log: o.Logs = (),
    settings: ContaminationSettings = ContaminationSettings(),
    models: o.Models = o.ModelOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Fine-tune a model on the questions as published, and show what it gains there and under interventions.

    With --against, nothing is trained: MODEL, the clean one, is compared with a model suspected of having seen the
    questions. With --log BEFORE AFTER, two recorded runs of `study unbiased` are compared. Scores are stored as they
    come; fine-tuning is done again.

    Examples:
      unslant study contamination org/name questions.jsonl --epochs 10 --save-model tuned/
      unslant study contamination org/clean mmlu --against org/suspect --limit 500
    """
    from unslant.errors import InputError
    from unslant.experiment.outputs import check_folder, check_outputs, write_outputs
    from unslant.experiment.recording import recording
    from unslant.models.open import address_of, open_model
    from unslant.studies.unbiased.contamination.study import compare
    from unslant.studies.unbiased.contamination.study import contamination as run
    from unslant.studies.unbiased.result import UnbiasedResult

    check_outputs(outputs)
    if log:
        o.check_unused(o.WITH_LOG, settings, models)
        if len(log) != 2:
            raise InputError(f"--log: give two files, of the clean and of the suspected model, not {len(log)}")
        return write_outputs(compare(*map(UnbiasedResult.from_parquet, log)), outputs)
    if settings.against is not None:
        trained = {"save_model", *(f.name for f in fields(Training) if f.name != "seed")}
        o.check_unused("with --against nothing is trained", settings, only=trained)
    check_folder(settings.save_model)
    needs = ("score", "train") if settings.against is None else ("score",)
    for name in (model, settings.against):
        if name is not None:
            address_of(name, models, needs)
    found = settings.load(questions)
    both = model if settings.against is None else f"{model}, {settings.against}"
    saves: list[Callable[[], object]] = []
    with recording(store, outputs.quiet) as record:

        def load(name: str) -> Any:
            return record.loader(partial(open_model, name, models, needs), settings.sampled(found), run_of=both)()

        result = run(model, found, settings, load=load, progress=record.progress, save=saves.append)
        record.note_score(result)
    return write_outputs(result, outputs, *saves, record.check_kept)
