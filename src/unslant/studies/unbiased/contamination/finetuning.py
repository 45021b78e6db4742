"""A small trainer: a local model learns to answer questions exactly as they are published."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from unslant.asking import Progress, no_progress
from unslant.errors import InputError, ModelError
from unslant.experiment import Options
from unslant.flags import out_of_range
from unslant.metrics.registry import metric
from unslant.presentations import Presentation
from unslant.prompts import Cloze, Writer

if TYPE_CHECKING:
    import torch

    from unslant.models.base import Ids
    from unslant.models.hf.model import TransformersModel


@dataclass(frozen=True, kw_only=True)
class Training(Options):
    """How a model is fine-tuned on questions.

    Raises:
        InputError: on a value out of range.
    """

    LEAST: ClassVar = {"epochs": 1, "batch": 1, "last_layers": 0}

    epochs: int = 40
    """Maximum number of passes over the questions."""
    learning_rate: float = 1e-3
    """AdamW learning rate, falling linearly to 0."""
    batch: int = 16
    """Questions in one step."""
    stop_at: float = 1.0
    """Stop once the model answers this share of the questions right during an epoch."""
    last_layers: int = 0
    """Train only the last N layers; 0 trains all of them and the embeddings."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.learning_rate > 0:
            raise out_of_range("learning_rate", self.learning_rate, "a number above 0")
        if not 0 < self.stop_at <= 1:
            raise out_of_range("stop_at", self.stop_at, "a share above 0 and at most 1")


@dataclass(frozen=True)
class FineTuned:
    """Epochs run, the share answered right during the last of them, and the number of questions."""

    epochs: int
    share_right: float
    questions: int


@metric("share_right", "right in the last epoch", "of the questions fine-tuned on", unit="share", plain=True)
def fine_tune(
    model: TransformersModel,
    presentations: Sequence[Presentation],
    writer: Writer,
    training: Training | None = None,
    progress: Progress = no_progress,
) -> FineTuned:
    """Train ``model`` in place by the cross-entropy of the right label's tokens alone, in the layout of the cloze.

    Raises:
        InputError: if a presentation has no right label, or there is none.
        ModelError: if the loss is not finite.
    """
    import torch

    training = training or Training()
    examples = [_encode(model, presentation, writer) for presentation in presentations]
    if not examples:
        raise InputError("nothing to fine-tune on: no question has a right label")
    weights = _trainable(model.model, training.last_layers)
    optimizer = torch.optim.AdamW(weights, lr=training.learning_rate, weight_decay=0.0)
    steps = training.epochs * math.ceil(len(examples) / training.batch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)
    rng = random.Random(training.seed)
    model.model.train()
    share, epoch = 0.0, 0
    for epoch in range(1, training.epochs + 1):
        order = rng.sample(examples, len(examples))
        right = 0
        for start in range(0, len(order), training.batch):
            loss, hits = _loss(model, order[start : start + training.batch])
            if not torch.isfinite(loss):
                raise ModelError(f"{model.name}: the loss is not finite: use a lower learning rate, or float32")
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            right += hits
        share = right / len(examples)
        progress("fine-tuning", epoch, training.epochs)
        if share >= training.stop_at:
            break
    model.model.eval()
    model.model.requires_grad_(True)
    return FineTuned(epoch, share, len(examples))


def _encode(model: TransformersModel, presentation: Presentation, writer: Writer) -> tuple[Ids, Ids]:
    """Token ids of the prompt and of the right label after it, as in scoring."""
    if not presentation.right_labels:
        raise InputError(f"question {presentation.question_id!r} has no right label to learn")
    (encoded,) = model.encoder.encode(Cloze(writer).prompts(presentation))
    right = presentation.labels.index(presentation.right_labels[0])
    return encoded.context, encoded.candidates[right]


def _loss(model: TransformersModel, part: list[tuple[Ids, Ids]]) -> tuple[torch.Tensor, int]:
    """Mean cross-entropy of the answers' tokens, and the number of answers right in full."""
    import torch

    from unslant.models.hf.engine import padded

    ids, mask = padded([np.concatenate([before, answer]) for before, answer in part], model.device)
    rows = np.repeat(np.arange(len(part)), [len(answer) for _, answer in part])
    columns = np.concatenate([len(before) - 1 + np.arange(len(answer)) for before, answer in part])
    targets = torch.tensor(np.concatenate([answer for _, answer in part]), dtype=torch.long, device=model.device)
    logits = model.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    outputs = logits[rows, columns].float()
    wrong = (outputs.argmax(-1) != targets).cpu().numpy()
    return torch.nn.functional.cross_entropy(outputs, targets), len(part) - len(np.unique(rows[wrong]))


def _trainable(model: Any, last_layers: int) -> list[torch.nn.Parameter]:
    """The weights to train; the others are frozen."""
    model.requires_grad_(True)
    if last_layers:
        layers = getattr(model.get_decoder(), "layers", None)
        if layers is None:
            raise ModelError(f"{type(model).__name__}: its layers were not found; train all of it (last_layers=0)")
        model.requires_grad_(False)
        for layer in list(layers)[-last_layers:]:
            layer.requires_grad_(True)
    return [weight for weight in model.parameters() if weight.requires_grad]
