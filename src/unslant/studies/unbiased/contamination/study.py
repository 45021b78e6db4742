"""The contamination check (P4, sec. 6.2): a score of ability must not rise because the published file was learned."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from unslant.errors import InputError
from unslant.experiment.comparison import check_comparable
from unslant.experiment.job import Given, Job
from unslant.experiment.options import check_unused, part_of
from unslant.experiment.outputs import check_folder
from unslant.experiment.provenance_block import provenance
from unslant.experiment.study import Keywords, Study, function
from unslant.files import dump_json
from unslant.metrics import Bootstrap
from unslant.metrics.registry import metric
from unslant.models.open import address_of
from unslant.presentations.interventions import VANILLA
from unslant.studies.unbiased.contamination.finetuning import FineTuned, fine_tune
from unslant.studies.unbiased.contamination.result import ContaminationResult
from unslant.studies.unbiased.contamination.settings import ContaminationSettings, Training
from unslant.studies.unbiased.metrics import AS_PUBLISHED
from unslant.studies.unbiased.plan import plan
from unslant.studies.unbiased.result import UnbiasedResult
from unslant.studies.unbiased.settings import UnbiasedSettings
from unslant.studies.unbiased.study import Unbiased
from unslant.writing import write_atomically, write_folder

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel
    from unslant.responses.provenance import Provenance


class Contamination(Study[ContaminationSettings]):
    """Train a model on the published questions, to see whether its gain survives changes.

    With --against, nothing is trained: MODEL, the clean one, is compared with a model suspected of having seen the
    questions. With --log BEFORE AFTER, two recorded runs of `study unbiased` are compared. Scores are stored one by
    one; fine-tuning is done again.

    Examples:
      unslant study contamination org/name questions.jsonl --epochs 10 --save-model tuned/
      unslant study contamination org/clean mmlu --against org/suspect --limit 500
    """

    name = "contamination"
    settings = ContaminationSettings
    result = ContaminationResult
    model = "fair"

    def check(self, given: Given[ContaminationSettings]) -> None:
        settings = given.settings
        if given.log and len(given.log) != 2:
            raise InputError(f"--log: give two files, of the clean and of the suspected model, not {len(given.log)}")
        if settings.against is not None:
            trained = {"save_model", *(f.name for f in fields(Training) if f.name != "seed")}
            check_unused("with --against nothing is trained", settings, only=trained)
        check_folder(settings.save_model)
        for model, options in zip((*given.models, settings.against), given.options * 2, strict=False):
            if isinstance(model, str):
                address_of(model, options, self.needs(settings))

    def needs(self, settings: ContaminationSettings) -> tuple[str, ...]:
        return ("score", "train") if settings.against is None else ("score",)

    def measure(self, job: Job[ContaminationSettings]) -> ContaminationResult:
        given, settings, study = job.given, job.given.settings, Unbiased()
        # options and second stems are borrowed from all questions, as by `study unbiased` with the same --limit
        whole, asked = job.questions, part_of(settings, UnbiasedSettings, no_alone=True)
        found = settings.sampled(whole)
        needs, named = self.needs(settings), settings.against
        both = "" if named is None else f"{given.models[0]}, {named}"
        if named is not None:
            before = study.of_model(job.open(0, needs, found, run_of=both), whole, asked, job.record)
            suspect = job.open_named(named, needs, given.options[0], found, run_of=both)
            return compare(before, study.of_model(suspect, whole, asked, job.record))
        planned = plan(found, replace(asked, runs=1, shots=0))
        published = [shown for _, shown in planned.asked if shown.kind == VANILLA]
        model, training = job.open(0, needs, found), part_of(settings, Training)
        before = study.of_model(model, whole, asked, job.record)
        trained = fine_tune(model.unwrapped, published, settings.writer(), training, job.progress)
        after = study.of_model(model, whole, asked, job.record).renamed(f"{before.model} + test set")
        if settings.save_model is not None:
            made = after.provenance.model_copy(update={"settings": provenance((), (), settings).settings})
            job.saves.append(partial(_save, model.unwrapped, made, settings.save_model))
        return compare(before, after, trained=trained, training=training)

    def read(self, given: Given[ContaminationSettings]) -> ContaminationResult:
        return compare(*map(UnbiasedResult.from_parquet, given.log))


@dataclass(frozen=True, kw_only=True)
class ContaminationKeywords(Keywords, ContaminationSettings):
    """Keywords of :func:`contamination`."""


contamination = function(Contamination(), ContaminationKeywords, ContaminationResult)


def _save(model: TransformersModel, made: Provenance, folder: Path) -> None:
    def files(scratch: Path) -> None:
        model.model.save_pretrained(scratch)
        model.tokenizer.save_pretrained(scratch)
        write_atomically(scratch / "provenance.json", dump_json(made.model_dump()))

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
