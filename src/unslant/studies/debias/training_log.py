"""Training of an adapter: held-out metrics by epoch (P1, LoRA-1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

from unslant.debiasing.lora1.progress import Epoch
from unslant.errors import InputError
from unslant.experiment.provenance import settings_rows
from unslant.experiment.result import StudyResult
from unslant.files import exists, parse_json, read_text
from unslant.metrics import METRICS, Estimate, Metric, metric
from unslant.reports import Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.figure import Row
from unslant.reports.numbers import count, has_interval, number, with_interval
from unslant.responses import Run
from unslant.responses.provenance import checked_provenance

LOG = "log.jsonl"
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
        path = Path(folder) / LOG
        if not exists(path):
            raise InputError.at(folder, f"is a folder without {LOG}; give an adapter folder made by unslant train")
        epochs = []
        for at, line in enumerate(read_text(path).splitlines(), start=1):
            try:
                epochs.append(Epoch.from_dict(parse_json(line)))
            except ValueError as error:
                reason = f"not an epoch as unslant train writes it: {error}"
                raise InputError.at(path, reason, line=at) from None
        made = Path(folder) / PROVENANCE
        run = Run(study="training")
        if exists(made):
            try:
                block = checked_provenance(parse_json(read_text(made)), made)
            except ValueError as error:
                raise InputError.at(made, f"not JSON: {error}") from None
            run = replace(run, provenance=block)
        return cls(Path(folder).resolve().name, tuple(epochs), run)

    def described(self) -> Page:
        """One section: accuracy, PBM and loss by epoch."""
        rows: list[dict[str, Any]] = [
            {
                "epoch": str(epoch.epoch),
                "at": epoch.epoch,
                "expected_accuracy": _accuracy(epoch),
                "pbm": _plain(epoch.pbm, epoch.n),
                "loss": _plain(epoch.loss, epoch.n),
                "entropy": epoch.entropy,
                "train_loss": epoch.train_loss,
            }
            for epoch in self.epochs
        ]
        plots = [_plot(METRICS[key], rows) for key in ("expected_accuracy", "pbm", "loss")]
        columns = ["expected_accuracy", "pbm", "loss", "entropy", "train_loss"]
        panel = Panel(
            "training",
            f"Training {self.name}",
            "Held-out questions, in all orders, after each epoch; epoch 0 is the untrained model.",
            figures=(Figure("training", "Epoch by epoch", ["epoch"], columns, rows, plots),),
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
                ),
            ),
            panels=(panel,),
            settings=settings_rows(self.run),
            name=self.name,
        )

    def _headline(self) -> str:
        if len(self.epochs) < 2:
            return f"{self.name}: no epochs trained"
        first, last = self.epochs[0], self.epochs[-1]
        change = f"PBM from {number(first.pbm, METRICS['pbm'])} to {number(last.pbm, METRICS['pbm'])}"
        if not math.isnan(first.accuracy):
            change += f", accuracy over orders from {number(first.accuracy)} to {with_interval(_accuracy(last))}"
        return f"{self.name}, {count(last.epoch, 'epoch')}: {change}, on {count(last.n, 'held-out question')}"


def _accuracy(epoch: Epoch) -> Estimate:
    if math.isnan(epoch.accuracy):
        return Estimate.undefined("no right answers")
    spread = NormalDist().inv_cdf(0.975) * epoch.accuracy_se
    low, high = max(0.0, epoch.accuracy - spread), min(1.0, epoch.accuracy + spread)
    return Estimate(epoch.accuracy, low, high, epoch.accuracy_n, "normal, standard error over questions")


def _plain(value: float, n: int) -> Estimate:
    if math.isnan(value):
        return Estimate.undefined("not measured", n)
    return Estimate(value, math.nan, math.nan, n, "none", note="the log has no spread")


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
