"""Training of an adapter (P1, LoRA-1), as ``unslant train`` does it, and its log: held-out metrics by epoch."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from unslant.asking import Progress, no_progress
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.base import check_apart
from unslant.debiasing.lora1 import Epoch, TrainSettings
from unslant.errors import InputError, needed
from unslant.experiment.job import provenance
from unslant.experiment.result import StudyResult
from unslant.files import dump_json, parse_json, read_text
from unslant.flags import by_kind, part_of, path_in, with_options
from unslant.metrics import METRICS, Estimate, Metric, metric
from unslant.models import ModelOptions
from unslant.models.open import opened, options_of_each
from unslant.presentations import check_labels, parse_labels
from unslant.prompts import Cloze
from unslant.reports import Figure, Page, Plot, Tile, charts
from unslant.reports.figure import Row
from unslant.reports.numbers import count, has_interval, number, with_interval
from unslant.responses import Run
from unslant.responses.provenance import checked_provenance
from unslant.studies import TRAINING_LOG
from unslant.studies.debias.settings import AdapterKeywords, AdapterSettings
from unslant.writing import write_all, write_atomically

PROVENANCE = "provenance.json"


@metric("entropy", "entropy", "of one order's probabilities: 0 certain, 1 uniform", unit="share", plain=True)
@metric("loss", "loss", "on held-out questions", source="P1 eq. 8")
@metric("train_loss", "loss in training", "mean over the epoch's training questions", source="P1 eq. 8")
@dataclass(frozen=True)
class TrainingLog(StudyResult):
    """The log ``unslant train`` writes into the adapter's folder; epoch 0 is the untrained model."""

    study = "training"

    name: str
    epochs: tuple[Epoch, ...]
    run: Run = field(default_factory=partial(Run, study="training"))

    @classmethod
    def read(cls, folder: str | Path) -> TrainingLog:
        """Read the log in an adapter's folder; InputError if it is missing or malformed."""
        path = Path(folder) / TRAINING_LOG
        if not os.path.isfile(path):
            reason = f"is a folder without {TRAINING_LOG}; give an adapter folder made by unslant train"
            raise InputError.at(folder, reason)
        epochs = []
        for at, line in enumerate(read_text(path).splitlines(), start=1):
            try:
                epochs.append(Epoch.from_dict(parse_json(line)))
            except ValueError as error:
                reason = f"not an epoch as unslant train writes it: {error}"
                raise InputError.at(path, reason, line=at) from None
        file = Path(folder) / PROVENANCE
        run = Run(study="training")
        if os.path.isfile(file):
            try:
                block = checked_provenance(parse_json(read_text(file)), file)
            except ValueError as error:
                raise InputError.at(file, f"not JSON: {error}") from None
            run = replace(run, provenance=block)
        return cls(Path(folder).resolve().name, tuple(epochs), run)

    def described(self) -> Page:
        """One section: accuracy, PBM and loss by epoch."""
        rows: list[dict[str, Any]] = [
            {
                **vars(epoch),
                "epoch": str(epoch.epoch),
                "at": epoch.epoch,
                "expected_accuracy": _accuracy(epoch),
                "pbm": _plain(epoch.pbm, epoch.n),
                "loss": _plain(epoch.loss, epoch.n),
            }
            for epoch in self.epochs
        ]
        plots = [_plot(METRICS[key], rows) for key in ("expected_accuracy", "pbm", "loss")]
        columns = ["expected_accuracy", "pbm", "loss", "entropy", "train_loss"]
        panel = Figure("training", "Epoch by epoch", ["epoch"], columns, rows, plots).panel(
            f"Training {self.name}",
            "Held-out questions, in all orders, after each epoch; epoch 0 is the untrained model.",
            short="Training",
        )
        return Page(
            about=f"Training {self.name}: {count(max(0, len(self.epochs) - 1), 'epoch')}",
            headline=self._headline(),
            tiles=Tile.row(
                *(
                    (key, rows[at][key], f"{METRICS[key].label}, epoch {rows[at]['epoch']}")
                    for key in ("expected_accuracy", "pbm")
                    for at in sorted({0, len(rows) - 1} if rows else ())
                )
            ),
            panels=(panel,),
            name=self.name,
        )

    def _headline(self) -> str:
        if len(self.epochs) < 2:
            return f"{self.name}: no epochs trained"
        first, last = self.epochs[0], self.epochs[-1]
        if not last.n:
            return f"{self.name}, {count(last.epoch, 'epoch')}: not measured, because no questions were held out"
        change = f"PBM from {number(first.pbm, METRICS['pbm'])} to {number(last.pbm, METRICS['pbm'])}"
        if not math.isnan(first.accuracy):
            change += f", accuracy over orders from {number(first.accuracy)} to {with_interval(_accuracy(last))}"
        return f"{self.name}, {count(last.epoch, 'epoch')}: {change}, on {count(last.n, 'held-out question')}"


def _accuracy(epoch: Epoch) -> Estimate:
    if math.isnan(epoch.accuracy):
        return Estimate.undefined("no right answers")
    if math.isnan(epoch.accuracy_low):
        return Estimate.bare(epoch.accuracy, epoch.accuracy_n, "too few questions for an interval")
    ends = epoch.accuracy_low, epoch.accuracy_high
    return Estimate(epoch.accuracy, *ends, epoch.accuracy_n, "over held-out questions, as in an audit")


def _plain(value: float, n: int) -> Estimate:
    return Estimate.bare(value, n, "not measured" if math.isnan(value) else "the log has no spread")


def _plot(metric: Metric, rows: Sequence[Row]) -> Plot:
    whether = "with 95 % intervals" if any(has_interval(row[metric.key]) for row in rows) else "without intervals"
    return Plot(
        partial(charts.lines, axis=metric.name, zero=metric.key in ("pbm", "loss"), whole=True),
        f"After each epoch, {whether} (selection-bias paper, figure 1b).",
        [metric.key],
        title=metric.name[:1].upper() + metric.name[1:],
        id=f"training-{metric.key.removeprefix('expected_')}",
        at="at",
        of="held-out questions",
    )


def train(
    model: Any,
    questions: Any,
    out: str | Path,
    settings: AdapterSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Unpack[AdapterKeywords],
) -> TrainingLog:
    """Train an adapter, without right answers, that makes probabilities independent of the order (LoRA-1, P1).

    The model is unchanged afterwards: load the adapter with ``unslant.load_model(name, adapter=out)``, or with peft.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called last.
        questions: anything that :func:`unslant.load_questions` takes.
        out: folder for adapter, log and checkpoint; an interrupted run there is resumed.
        settings, options: an :class:`AdapterSettings`, its fields as keywords (``epochs=3``, ``held_out="q.jsonl"``,
            ...), or both; also how a named model is opened (``device="cpu"``, ...: fields of
            :class:`~unslant.models.ModelOptions`).

    Returns:
        The log of the training on the held-out questions.

    Raises:
        InputError: on questions or settings that cannot be used, or a folder that holds another run.
        ModelError: if the model cannot be loaded or trained, or peft is not installed.

    Examples:
        >>> log = unslant.train("prefers-a", "embedded", "adapter", epochs=1, limit=40)
        >>> len(log.epochs)  # the untrained model, and one epoch
        2
    """
    parts = by_kind({"settings": AdapterSettings, "models": ModelOptions}, options)
    settings = with_options(AdapterSettings, settings, parts["settings"])
    out = path_in("out", out, "the name of a folder")
    (models,) = options_of_each([model], ModelOptions(**parts["models"]), ("score", "train"))
    recipe = part_of(settings, TrainSettings)
    needed("peft", "training an adapter")
    needed("torch", "training an adapter")
    from unslant.debiasing.lora1.training import split
    from unslant.debiasing.lora1.training import train as run

    sample = settings.sampled(settings.load(questions))
    pool = settings.pool(settings.held_out)
    training, held_out = (list(sample), list(pool)) if pool else split(sample.questions, settings.seed)
    if pool:
        check_apart("the adapter", training, held_out)
    elicitation, alphabet = Cloze(settings.writer()), parse_labels(settings.labels)
    check_labels(alphabet, (*training, *held_out))
    loaded = opened(model, ("score", "train"), models)
    asker = ModelAsker(loaded, elicitation, alphabet)
    adapted, _ = run(asker, training, held_out, recipe, out=out, progress=progress)
    adapted.close()
    block = provenance([loaded.unwrapped], [sample], settings)
    block.versions["peft"] = needed("peft", "training an adapter").__version__
    log = TrainingLog.read(out)
    write_all(
        lambda: write_atomically(out / PROVENANCE, dump_json(block.model_dump())), lambda: log.to_html(out / "log.html")
    )
    return log
