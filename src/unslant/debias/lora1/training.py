"""The training loop of LoRA-1: label-free, through the prefix-tree pass, resumable after every epoch."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from unslant.asking import Asker, Progress, no_progress
from unslant.debias.lora1.adapter import Adapted
from unslant.debias.lora1.checkpoint import TrainingState
from unslant.debias.lora1.loss import content_logprobs, loss
from unslant.debias.lora1.progress import Epoch, collapsed, evaluate
from unslant.debias.lora1.settings import TrainSettings
from unslant.debias.model_pass import loaded_model, run
from unslant.errors import InputError
from unslant.presentations import Presentation, orders_for, present, question_rng
from unslant.questions import Question


@dataclass(frozen=True)
class TrainedAdapter:
    """A trained adapter, still inside its model.

    Attributes:
        adapted: close it to give the model back.
        log: one entry before training (epoch 0) and one after every epoch.
        collapse: why the run looks collapsed; empty if it does not.
    """

    adapted: Adapted
    settings: TrainSettings
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
    """Train an adapter on ``questions`` and follow it on ``held_out``.

    Every epoch draws its questions and orders, and seeds the adapter's dropout, from the seed and its own number; so a
    run that was cut short and goes on from the last finished epoch in ``out`` gives the same adapter.

    Args:
        asker: of a loaded model that asks by cloze.
        held_out: questions for the log; right answers, where there are any, are used for its accuracy only.
        out: folder for the checkpoint, the adapter and ``log.jsonl``; nothing is written without.
        progress: called after every question.

    Raises:
        InputError: without questions to reorder, or if ``out`` holds a run with other settings or questions.
        ModelError: without peft, or if the model has no attention projections.
    """
    usable = [question for question in questions if len(question.movable) > 1]
    if not usable:
        raise InputError("LoRA-1: no question to train on has options that can be reordered")
    model = loaded_model(asker, "LoRA-1")
    checkpoint = TrainingState(out, settings, asker, usable) if out else None
    saved = checkpoint.load() if checkpoint else None
    adapted = Adapted.new(model, settings)
    try:
        optimizer = torch.optim.AdamW(
            adapted.trainable(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        if saved:
            adapted.load_state(saved.adapter)
            optimizer.load_state_dict(saved.optimizer)
            log = list(saved.log)
        else:
            adapted.train_mode(False)
            log = [evaluate(asker, held_out, settings, epoch=0)]
        for epoch in range(len(log), settings.epochs + 1):
            mean_loss = _run_epoch(asker, adapted, optimizer, usable, settings, epoch, progress)
            adapted.train_mode(False)
            log.append(replace(evaluate(asker, held_out, settings, epoch), train_loss=mean_loss))
            if checkpoint:
                checkpoint.save(adapted.state(), optimizer.state_dict(), log)
        adapted.train_mode(False)
        asker.forget()
    except BaseException:
        adapted.close()
        raise
    collapse = collapsed(log)
    if collapse:
        warnings.warn(f"LoRA-1: {collapse}", stacklevel=2)
    if out:
        save(adapted, out, settings, log)
    return TrainedAdapter(adapted, settings, tuple(log), collapse)


def _run_epoch(
    asker: Asker,
    adapted: Adapted,
    optimizer: Any,
    questions: Sequence[Question],
    settings: TrainSettings,
    epoch: int,
    progress: Progress,
) -> float:
    """One epoch; returns the mean loss of its questions."""
    chosen = sorted(questions, key=lambda question: question.id)
    rng = question_rng("", settings.seed, f"lora1-epoch-{epoch}")
    chosen = rng.sample(chosen, min(settings.questions_per_epoch, len(chosen)))
    adapted.train_mode(True)
    total, step = 0.0, settings.questions_per_step
    devices = [adapted.model.device] if adapted.model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(rng.getrandbits(63))
        for done, question in enumerate(chosen, start=1):
            value = question_loss(asker, question, settings, epoch)
            group = min(step, len(chosen) - (done - 1) // step * step)
            (value / group).backward()
            total += float(value.detach())
            if done % step == 0 or done == len(chosen):
                optimizer.step()
                optimizer.zero_grad()
            progress(f"epoch {epoch} of {settings.epochs}", done, len(chosen))
    return total / len(chosen)


def question_loss(asker: Asker, question: Question, settings: TrainSettings, epoch: int = 0, tree: bool = True) -> Any:
    """The loss of one question over its orders, a differentiable scalar (P1 eq. 8)."""
    model = loaded_model(asker, "LoRA-1")
    shown = shown_orders(asker, question, settings, epoch)
    assert asker.elicitation is not None
    prompts = [prompt for presentation in shown for prompt in asker.elicitation.prompts(presentation)]
    if len(prompts) != len(shown):
        raise InputError("LoRA-1 trains on label probabilities: ask by cloze, one prompt a presentation")
    found = run(model.model, model.encode(prompts), tree=tree and model.engine == "tree")
    model.cost.tokens += found.tokens
    model.cost.prompts += len(prompts)
    model.cost.forwards += 1
    return loss(content_logprobs(found, shown), settings.entropy_weight)


def shown_orders(asker: Asker, question: Question, settings: TrainSettings, epoch: int) -> list[Presentation]:
    """All orders where there are no more than ``settings.orders``, else a sample that is another in every epoch."""
    orders = orders_for(question, str(settings.orders), settings.seed + 1_000_003 * epoch)
    return [present(question, order, asker.alphabet) for order in orders]


def save(adapted: Adapted, out: Path, settings: TrainSettings, log: Sequence[Epoch]) -> None:
    """Write the adapter as peft does, its settings and the log."""
    adapted.peft_model.save_pretrained(str(out))
    (out / "training.json").write_text(json.dumps(asdict(settings), indent=2) + "\n", "utf-8")
    (out / "log.jsonl").write_text("".join(json.dumps(entry.to_dict()) + "\n" for entry in log), "utf-8")
