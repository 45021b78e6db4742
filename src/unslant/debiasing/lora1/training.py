"""The training loop of LoRA-1: label-free, through the prefix-tree pass, resumable after every epoch."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from unslant.asking import Progress, no_progress
from unslant.debiasing.asker import Asker
from unslant.debiasing.lora1.adapter import Adapted
from unslant.debiasing.lora1.checkpoint import TrainingState
from unslant.debiasing.lora1.loss import content_logprobs, loss
from unslant.debiasing.lora1.progress import Epoch, collapsed, evaluate
from unslant.debiasing.lora1.settings import TrainSettings
from unslant.debiasing.model_pass import label_pass, loaded_model
from unslant.errors import InputError
from unslant.files import dump_json, make_folder, write_atomically
from unslant.presentations import orders_for, present, question_rng
from unslant.questions import Question


@dataclass(frozen=True)
class TrainedAdapter:
    """A trained adapter, still inside its model.

    Attributes:
        adapted: close it to restore the model.
        log: one entry before training (epoch 0) and one after every epoch.
        collapse: why the run looks collapsed; empty if it does not.
    """

    adapted: Adapted
    log: tuple[Epoch, ...]
    collapse: str = ""


def train(
    asker: Asker,
    questions: Sequence[Question],
    held_out: Sequence[Question],
    settings: TrainSettings,
    *,
    out: Path | None = None,
    progress: Progress = no_progress,
) -> TrainedAdapter:
    """Train an adapter on ``questions`` and monitor it on ``held_out``.

    The questions, orders and dropout of an epoch are seeded by the seed and the epoch's number. A run that was
    interrupted and is resumed from the last finished epoch in ``out`` therefore gives the same adapter.

    Args:
        asker: of a loaded model, asking by cloze.
        held_out: questions for the log; their right answers, where known, are used for its accuracy only.
        out: folder for the checkpoint, the adapter and ``log.jsonl``; by default nothing is written.
        progress: called after every question.

    Raises:
        InputError: if no question can be reordered, or ``out`` holds a run with other settings or questions.
        ModelError: without peft, or if the model has no attention projections.
    """
    usable = sorted((question for question in questions if len(question.movable) > 1), key=lambda q: q.id)
    if not usable:
        raise InputError("LoRA-1: no question to train on has options that can be reordered")
    model = loaded_model(asker, "LoRA-1")
    checkpoint = TrainingState(out, settings, asker, usable) if out else None
    adapted = Adapted.new(model, settings)
    try:
        optimizer = torch.optim.AdamW(
            adapted.trainable().values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        adapted.train_mode(False)
        if checkpoint and checkpoint.saved:
            adapted.load_state(checkpoint.saved.adapter)
            optimizer.load_state_dict(checkpoint.saved.optimizer)
            log = list(checkpoint.saved.log)
        else:
            log = [evaluate(asker, held_out, settings, epoch=0)]
        for epoch in range(len(log), settings.epochs + 1):
            mean_loss = _run_epoch(asker, adapted, optimizer, usable, settings, epoch, progress)
            adapted.train_mode(False)
            log.append(replace(evaluate(asker, held_out, settings, epoch), train_loss=mean_loss))
            if checkpoint:
                checkpoint.save(adapted.state(), optimizer.state_dict(), log)
        asker.forget()
    except BaseException:
        adapted.close()
        raise
    collapse = collapsed(log)
    if collapse:
        warnings.warn(f"LoRA-1: {collapse}", stacklevel=2)
    if out:
        with tempfile.TemporaryDirectory(dir=make_folder(out), prefix=".unslant-") as scratch:
            adapted.peft_model.save_pretrained(scratch)
            for file in sorted(Path(scratch).iterdir()):
                write_atomically(out / file.name, file.read_bytes())
        write_atomically(out / "training.json", dump_json(asdict(settings)))
        write_atomically(out / "log.jsonl", "".join(dump_json(entry.to_dict(), indent=None) for entry in log))
    return TrainedAdapter(adapted, tuple(log), collapse)


def _run_epoch(
    asker: Asker,
    adapted: Adapted,
    optimizer: torch.optim.Optimizer,
    questions: Sequence[Question],
    settings: TrainSettings,
    epoch: int,
    progress: Progress,
) -> float:
    """One epoch; returns the mean loss of its questions."""
    rng = question_rng("", settings.seed, f"lora1-epoch-{epoch}")
    chosen = rng.sample(questions, min(settings.questions_per_epoch, len(questions)))
    adapted.train_mode(True)
    total, step = 0.0, settings.questions_per_step
    devices = [adapted.model.device] if adapted.model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(rng.getrandbits(63))
        for done, question in enumerate(chosen, start=1):
            value = question_loss(asker, question, settings, epoch)
            group = min(step, len(chosen) - (done - 1) // step * step)
            (value / group).backward()  # type: ignore[no-untyped-call]
            total += float(value.detach())
            if done % step == 0 or done == len(chosen):
                optimizer.step()
                optimizer.zero_grad()
            progress(f"epoch {epoch} of {settings.epochs}", done, len(chosen))
    return total / len(chosen)


def question_loss(
    asker: Asker, question: Question, settings: TrainSettings, epoch: int = 0, tree: bool = True
) -> Tensor:
    """The loss of one question, a differentiable scalar (P1 eq. 8).

    Over all its orders if there are at most ``settings.orders``, else over a sample that differs in every epoch.
    """
    orders = orders_for(question, str(settings.orders), settings.seed + 1_000_003 * epoch)
    shown = [present(question, order, asker.alphabet) for order in orders]
    return loss(content_logprobs(label_pass(asker, shown, "LoRA-1", tree=tree), shown), settings.entropy_weight)
