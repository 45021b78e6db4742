"""``unslant train``: a LoRA-1 adapter that makes answers independent of the order."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from unslant.debias.lora1.settings import TrainSettings
from unslant.studies import options as o


@dataclass(frozen=True, kw_only=True)
class AdapterSettings(o.ScoredLabelOptions, o.PromptOptions, TrainSettings):
    """How an adapter is trained."""

    held_out: str | None = None
    """Questions to monitor the training on; by default a fifth of QUESTIONS, at most 64."""


def train(
    model: o.Model,
    questions: o.Questions,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for adapter, log and checkpoint; an existing checkpoint is resumed.")],
    settings: Annotated[AdapterSettings, o.SETTINGS] = AdapterSettings(),
    models: o.Models = o.ModelOptions(),
    quiet: o.Quiet = False,
) -> None:
    """Train a rank-1 adapter, without right answers, that makes probabilities independent of the order (LoRA-1, P1).

    The adapter is a peft folder: load it with --adapter, or with peft. To resume, repeat the command.

    Examples:
      unslant train org/name questions.jsonl --out adapter/
      unslant audit org/name others.jsonl --adapter adapter/
    """
    from unslant.asking import ModelAsker
    from unslant.debias.lora1.adapter import require_peft
    from unslant.debias.lora1.method import split
    from unslant.models.open import address_of, open_model
    from unslant.presentations import parse_labels
    from unslant.prompts import Cloze
    from unslant.reports.report import Report
    from unslant.studies.debias.training_log import TrainingLog
    from unslant.studies.outputs import check_folder
    from unslant.studies.progress import show_progress

    recipe = o.part_of(settings, TrainSettings)
    check_folder(out)
    address_of(model, models, ("score", "train"))
    require_peft()
    found = settings.sampled(settings.load(questions)).questions
    following = settings.pool(settings.held_out)
    held_out: list[Any]
    training, held_out = (list(found), list(following)) if following else split(found, settings.seed)
    elicitation, alphabet = Cloze(settings.writer()), parse_labels(settings.labels)

    from unslant.debias.lora1.training import train as run

    loaded = open_model(model, models)
    with show_progress(quiet) as progress:
        asker = ModelAsker(loaded, elicitation, alphabet)
        trained = run(asker, training, held_out, recipe, out=out, progress=progress)
    trained.adapted.close()
    Report.of([TrainingLog.read(out)]).to_html(out / "log.html")
    if quiet:
        return
    print(f"epoch   loss     PBM  entropy  accuracy (mean over orders, {len(held_out)} held-out questions)")
    for entry in trained.log:
        print(f"{entry.epoch:5d} {entry.loss:6.2f} {entry.pbm:7.4f}  {entry.entropy:7.3f}  {entry.accuracy:8.3f}")
    print(f"adapter in {out}: use it with --adapter {out}")
