"""Following a training run on held-out questions, and seeing when it goes wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Jsonable
from unslant.asking import Asker, ask_orders
from unslant.debias.lora1.settings import TrainSettings
from unslant.metrics import credit, pbm
from unslant.presentations import orders_for
from unslant.questions import Question

ENTROPY_RISE = 0.15
"""Of normalised entropy, from which on a fall in accuracy is taken for collapse."""
UNIFORM = 0.95
"""Normalised entropy at which answers tell nothing, whatever the accuracy."""
_STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Epoch(Jsonable):
    """The held-out questions after an epoch; every number is a mean over them.

    Attributes:
        epoch: 0 is before training.
        n: held-out questions with more than one order.
        pbm: permutation bias.
        entropy: of the probabilities of one order, divided by log n options: 0 certain, 1 uniform.
        accuracy: mean over all orders of right answers; nan without right answers.
        accuracy_n: questions it rests on.
        accuracy_se: its standard error over questions.
        loss: P1 eq. 8.
        train_loss: mean loss of the epoch's training questions, as they were trained on; nan before training.
    """

    epoch: int
    n: int
    pbm: float
    entropy: float
    accuracy: float
    accuracy_n: int
    accuracy_se: float
    loss: float
    train_loss: float = math.nan


def evaluate(asker: Asker, questions: Sequence[Question], settings: TrainSettings, epoch: int) -> Epoch:
    """Measure the model as it is now; the same orders for every epoch."""
    asker.forget()
    asked = [question for question in questions if len(question.movable) > 1]
    rows = ask_orders(asker, asked, [orders_for(q, str(settings.orders), settings.seed) for q in asked])
    biases, entropies, accuracies, losses = [], [], [], []
    for question, own in zip(asked, rows, strict=True):
        probs = np.clip(own, 1e-30, 1.0)
        biases.append(float(pbm(probs)))
        entropy = -(probs * np.log(probs)).sum(axis=1)
        entropies.append(float(entropy.mean()) / math.log(len(question.options)))
        bias = ((np.log(probs) - np.log(probs.mean(axis=0))) ** 2).mean(axis=1).sum()
        losses.append(float(bias + settings.entropy_weight * entropy.sum()))
        if question.answers:
            accuracies.append(float(credit(probs)[:, sorted(question.answers)].sum(axis=1).mean()))
    spread = float(np.std(accuracies, ddof=1)) / math.sqrt(len(accuracies)) if len(accuracies) > 1 else math.nan
    return Epoch(
        epoch, len(asked), _mean(biases), _mean(entropies), _mean(accuracies), len(accuracies), spread, _mean(losses)
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def collapsed(log: Sequence[Epoch]) -> str:
    """Why a run looks collapsed: answers grew uniform and fewer are right, or they tell nothing at all any more."""
    if len(log) < 2 or not log[0].n:
        return ""
    first, last = log[0], log[-1]
    rise = last.entropy - first.entropy
    lost = first.accuracy - last.accuracy
    error = math.hypot(first.accuracy_se, last.accuracy_se)
    advice = "use a lower learning rate, fewer epochs or a larger entropy weight, and do not use this adapter"
    if rise > ENTROPY_RISE and lost > _STANDARD_ERRORS * error:
        return (
            f"the adapter has collapsed: on {last.n} held-out questions entropy rose from {first.entropy:.2f} to "
            f"{last.entropy:.2f} of its maximum and accuracy fell from {first.accuracy:.2f} to {last.accuracy:.2f}; "
            + advice
        )
    if last.entropy > UNIFORM and rise > 0.05:
        return (
            f"the adapter has collapsed: on {last.n} held-out questions entropy is {last.entropy:.2f} of its maximum "
            f"({first.entropy:.2f} before training), answers are close to uniform; " + advice
        )
    return ""
