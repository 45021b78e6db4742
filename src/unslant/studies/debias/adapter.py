"""Training of an adapter, as ``unslant train`` does it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from unslant.asking import Progress, no_progress
from unslant.debiasing.lora1 import TrainKeywords, TrainSettings
from unslant.experiment.options import (
    Pool,
    PromptOptions,
    ScoredLabelOptions,
    by_kind,
    part_of,
    with_options,
)
from unslant.models import ModelOptions
from unslant.models.options import ModelKeywords
from unslant.studies.debias.settings import PromptKeywords

if TYPE_CHECKING:
    from unslant.studies.debias.training_log import TrainingLog


@dataclass(frozen=True, kw_only=True)
class AdapterSettings(ScoredLabelOptions, PromptOptions, TrainSettings):
    """How an adapter is trained."""

    held_out: Pool | None = None
    """Questions to monitor the training on; by default a fifth of QUESTIONS, at most 64."""


class AdapterKeywords(ModelKeywords, PromptKeywords, TrainKeywords, total=False):
    """Keywords of :func:`train`: the fields of :class:`AdapterSettings`, and how a named model is opened."""

    held_out: Pool | None


def train(
    model: Any,
    questions: Any,
    out: str | Path,
    settings: AdapterSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Unpack[AdapterKeywords],
) -> "TrainingLog":
    """Train an adapter, without right answers, that makes probabilities independent of the order (LoRA-1, P1).

    The model is as it was afterwards: load the adapter with ``unslant.load_model(name, adapter=out)``, or with peft.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called last.
        questions: what :func:`unslant.load_questions` takes.
        out: folder for adapter, log and checkpoint; a run that was stopped there is resumed.
        settings, options: an :class:`AdapterSettings`, its fields as keywords (``epochs=3``, ``held_out="q.jsonl"``,
            ...), or both; also how a named model is opened (``device="cpu"``, ...: fields of
            :class:`~unslant.models.ModelOptions`).

    Returns:
        The log of the training on the held-out questions.

    Raises:
        InputError: on questions or settings that cannot be used, or a folder that holds another run.
        ModelError: if the model cannot be loaded or trained, or peft is not installed.
    """
    from unslant.extras import needed
    from unslant.files import dump_json
    from unslant.models.open import opened, options_of_each
    from unslant.writing import write_atomically

    parts = by_kind({"settings": AdapterSettings, "models": ModelOptions}, options)
    chosen = with_options(AdapterSettings, settings, parts["settings"])
    (models,) = options_of_each([model], ModelOptions(**parts["models"]), ("score", "train"))
    recipe = part_of(chosen, TrainSettings)
    needed("peft", "training an adapter")
    needed("torch", "training an adapter")

    from unslant.debiasing.asker import ModelAsker
    from unslant.debiasing.lora1.training import split
    from unslant.debiasing.lora1.training import train as run
    from unslant.experiment.provenance_block import provenance
    from unslant.presentations import parse_labels
    from unslant.prompts import Cloze
    from unslant.studies.debias.training_log import PROVENANCE, TrainingLog
    from unslant.writing import write_all

    out = Path(out)
    found = chosen.sampled(chosen.load(questions))
    following = chosen.pool(chosen.held_out)
    training, held_out = (list(found), list(following)) if following else split(found.questions, chosen.seed)
    elicitation, alphabet = Cloze(chosen.writer()), parse_labels(chosen.labels)
    loaded = opened(model, ("score", "train"), models)
    asker = ModelAsker(loaded, elicitation, alphabet)
    run(asker, training, held_out, recipe, out=out, progress=progress).adapted.close()
    block = provenance([loaded.unwrapped], [found], chosen)
    block.versions["peft"] = needed("peft", "training an adapter").__version__
    log = TrainingLog.read(out)
    write_all(
        lambda: write_atomically(out / PROVENANCE, dump_json(block.model_dump())),
        lambda: log.to_html(out / "log.html"),
    )
    return log
