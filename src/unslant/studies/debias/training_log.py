"""Training of an adapter: held-out metrics by epoch (P1, LoRA-1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist

from unslant.debiasing.lora1.progress import Epoch
from unslant.errors import InputError
from unslant.experiment.provenance import settings_rows
from unslant.experiment.result import StudyResult
from unslant.files import exists, parse_json, read_text
from unslant.metrics import METRICS, Estimate, Metric, metric
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, with_interval
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
        shown: list[tuple[str, Callable[[Epoch], Estimate]]] = [
            ("expected_accuracy", _accuracy),
            ("pbm", lambda epoch: _plain(epoch.pbm, epoch.n)),
            ("loss", lambda epoch: _plain(epoch.loss, epoch.n)),
        ]
        drawn = tuple(
            _chart(f"training-{key.removeprefix('expected_')}", METRICS[key], [(e.epoch, of(e)) for e in self.epochs])
            for key, of in shown
            if any(of(e).defined for e in self.epochs)
        )
        columns = (Column("epoch"), *map(Column.of, (*(key for key, _ in shown), "entropy", "train_loss")))
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (str(e.epoch), *[of(e) for _, of in shown], e.entropy, e.train_loss) for e in self.epochs
        )
        table = Table("training", "Epoch by epoch", columns, rows)
        explanation = "Held-out questions, in all orders, after each epoch; epoch 0 is the untrained model."
        panel = Panel(
            "training", f"Training {self.name}", explanation, drawn, (table,) * bool(rows),
            short="Training", first_screen=True,
        )  # fmt: skip
        return Page(
            about=f"Training {self.name}: {count(max(0, len(self.epochs) - 1), 'epoch')}",
            headline=self._headline(),
            tiles=Tile.row(
                *(
                    (key, of(e), f"{METRICS[key].label}, epoch {e.epoch}")
                    for key, of in shown[:2]
                    for e in dict.fromkeys(self.epochs[:1] + self.epochs[-1:])
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


def _chart(name: str, metric: Metric, values: Sequence[tuple[int, Estimate]]) -> Chart:
    marks = [Mark("", value, at=epoch) for epoch, value in values]
    whether = "with 95 % intervals" if any(value.low == value.low for _, value in values) else "without intervals"
    return Chart(
        name,
        metric.name[:1].upper() + metric.name[1:],
        f"After each epoch, {whether} (P1, figure 1b).",
        lambda style: charts.lines(
            marks, style, rows="epoch", axis=metric.name, how=metric, zero=metric.key in ("pbm", "loss"), whole=True
        ),
        of="held-out questions",
    )
