"""How an adapter was trained: the held-out questions, epoch by epoch (P1, LoRA-1)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from unslant.debias.lora1.progress import Epoch
from unslant.errors import InputError
from unslant.metrics import Estimate
from unslant.reports import charts
from unslant.reports.charts import Mark
from unslant.reports.panels import Cell, Chart, Column, Panel, Style, Table

LOG = "log.jsonl"


@dataclass(frozen=True)
class TrainingLog:
    """What ``unslant train`` wrote into the adapter's folder.

    Attributes:
        name: of the adapter.
        epochs: from 0, before training.
    """

    name: str
    epochs: tuple[Epoch, ...]

    @classmethod
    def read(cls, folder: str | Path) -> TrainingLog:
        """The log of an adapter's folder.

        Raises:
            InputError: if there is none, or a line of it is not what ``unslant train`` writes.
        """
        path = Path(folder) / LOG
        if not path.is_file():
            raise InputError.at(folder, f"is a folder without {LOG}; give that of an adapter made by unslant train")
        epochs = []
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            try:
                values: dict[str, Any] = {k: math.nan if v is None else v for k, v in json.loads(line).items()}
                epochs.append(Epoch(**values))
            except (json.JSONDecodeError, TypeError, AttributeError):
                raise InputError.at(path, "not an epoch as unslant train writes it", line=number) from None
        return cls(Path(folder).resolve().name, tuple(epochs))

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        if len(self.epochs) < 2:
            return f"{self.name}: no epoch was trained"
        first, last = self.epochs[0], self.epochs[-1]
        change = f"PBM from {first.pbm:.4f} to {last.pbm:.4f}"
        if not math.isnan(first.accuracy):
            change += f", accuracy over orders from {first.accuracy:.3f} to {last.accuracy:.3f}"
        return f"{self.name}, {last.epoch} epochs: {change}, on held-out questions"

    def panels(self) -> Sequence[Panel]:
        """One section: accuracy, PBM and loss by epoch."""
        shown: list[tuple[str, str, Callable[[Epoch], Estimate], int]] = [
            ("accuracy", "Accuracy, mean over orders", _accuracy, 3),
            ("pbm", "PBM", lambda epoch: _plain(epoch.pbm, epoch.n), 4),
            ("loss", "Loss", lambda epoch: _plain(epoch.loss, epoch.n), 3),
        ]
        drawn = tuple(
            _chart(f"training-{name}", title, [(e.epoch, of(e)) for e in self.epochs], digits)
            for name, title, of, digits in shown
            if any(of(e).defined for e in self.epochs)
        )
        columns = (
            Column("epoch"),
            *[Column(title, digits) for _, title, _, digits in shown],
            Column("entropy", 3, "of one order's probabilities: 0 certain, 1 uniform"),
            Column("loss in training", 3, "mean over the epoch's training questions"),
        )
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (str(e.epoch), *[of(e) for _, _, of, _ in shown], e.entropy, e.train_loss) for e in self.epochs
        )
        table = Table("training", "Epoch by epoch", columns, rows, folded=True)
        return [
            Panel(
                "training",
                f"Training {self.name}",
                "Questions held out of the training, in all orders, after each epoch; epoch 0 is the model before.",
                drawn,
                (table,) if rows else (),
                short="Training",
            )
        ]


def _accuracy(epoch: Epoch) -> Estimate:
    if math.isnan(epoch.accuracy):
        return Estimate.undefined("no right answers")
    spread = NormalDist().inv_cdf(0.975) * epoch.accuracy_se
    low, high = max(0.0, epoch.accuracy - spread), min(1.0, epoch.accuracy + spread)
    return Estimate(epoch.accuracy, low, high, epoch.accuracy_n, "normal, standard error over questions")


def _plain(value: float, n: int) -> Estimate:
    if math.isnan(value):
        return Estimate.undefined("not measured", n)
    return Estimate(value, math.nan, math.nan, n, "none", note="the log holds no spread")


def _chart(name: str, title: str, values: Sequence[tuple[int, Estimate]], digits: int) -> Chart:
    marks = [Mark(str(epoch), value) for epoch, value in values]

    def draw(style: Style) -> object:
        return charts.line(marks, style, under="epoch", beside=title, digits=digits)

    whether = "with 95 % intervals" if any(value.low == value.low for _, value in values) else "without intervals"
    return Chart(name, title, f"On {values[0][1].n:,} held-out questions, {whether}.", draw)
