"""LoRA-1 as a method, and its training: without labels, through the prefix tree, resumable after every epoch."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unslant.asking import Progress, no_progress
from unslant.debiasing.asker import Asker, ask_orders
from unslant.debiasing.base import Method, OrderDebiaser
from unslant.debiasing.lora1 import Epoch, TrainSettings, collapsed
from unslant.debiasing.lora1.adapter import Adapted
from unslant.debiasing.model_pass import ModelPass, label_pass, loaded_model
from unslant.errors import InputError, needed
from unslant.files import dump_json
from unslant.metrics import credit, pbm
from unslant.metrics.bootstrap import SETTLED, Bootstrap
from unslant.presentations import Presentation, orders_for, present, question_rng
from unslant.questions import Question
from unslant.questions.question import canonical_line
from unslant.writing import make_folder, write_all, write_atomically, write_folder

_HELD_OUT_SHARE, _MOST_HELD_OUT = 0.2, 64


@dataclass(frozen=True)
class Lora1(TrainSettings, Method):
    """A rank-1 adapter trained to answer alike in every order. No labels; one presentation per question once trained.

    Args:
        adapter: folder of a trained adapter; if empty, one is trained on the questions to fit on (a fifth of them, at
            most 64, are held out to monitor the training).
    """

    adapter: str = ""
    name = "lora-1"
    needs_model = held_out = True

    @property
    def needs_fit(self) -> bool:
        return not self.adapter

    def check_installed(self) -> None:
        needed("peft", "LoRA-1")

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> OrderDebiaser:
        """See :func:`train`."""
        if self.adapter:
            return OrderDebiaser(asker, restore=Adapted.load(loaded_model(asker, "LoRA-1"), self.adapter).close)
        adapted, log = train(asker, *split(questions, self.seed), self)
        return OrderDebiaser(asker, fit_notes=tuple(filter(None, [collapsed(log)])), restore=adapted.close)


def split(questions: Sequence[Question], seed: int) -> tuple[list[Question], list[Question]]:
    """Questions to train on, and questions to monitor the training with; independent of the order of the file."""
    shuffled = sorted(questions, key=lambda question: question.id)
    question_rng("", seed, "lora1-held-out").shuffle(shuffled)
    held_out = min(_MOST_HELD_OUT, int(_HELD_OUT_SHARE * len(shuffled)))
    return shuffled[held_out:], shuffled[:held_out]


def train(
    asker: Asker,
    questions: Sequence[Question],
    held_out: Sequence[Question],
    settings: TrainSettings,
    *,
    out: Path | None = None,
    progress: Progress = no_progress,
) -> tuple[Adapted, list[Epoch]]:
    """Train an adapter on ``questions`` and monitor it on ``held_out``.

    The questions, orders and dropout of an epoch are seeded by the seed and the epoch's number. A run that was
    interrupted and is resumed from the last finished epoch in ``out`` therefore gives the same adapter.

    Args:
        asker: of a loaded model, asking by cloze.
        held_out: questions for the log; their right answers, where known, are used for its accuracy only.
        out: folder for the checkpoint, the adapter and ``log.jsonl``; by default nothing is written.
        progress: called after every question.

    Returns:
        The adapter, still inside its model: close it to restore the model. The log: an entry before training (epoch 0)
        and one after every epoch.

    Raises:
        InputError: if no question can be reordered, or ``out`` holds a run with other settings or questions.
        ModelError: without peft, or if the model has no attention projections.
    """
    usable = sorted((question for question in questions if len(question.movable) > 1), key=lambda q: q.id)
    if not usable:
        raise InputError("LoRA-1: no question to train on has options that can be reordered")
    model = loaded_model(asker, "LoRA-1")
    checkpoint = _Checkpoint(out, settings, _made_with(asker, usable, held_out)) if out else None
    adapted = Adapted.new(model, settings)
    try:
        optimizer = torch.optim.AdamW(
            adapted.trainable().values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        adapted.train_mode(False)
        if checkpoint and checkpoint.saved:
            adapted.load_state(checkpoint.saved["adapter"])
            optimizer.load_state_dict(checkpoint.saved["optimizer"])
            log = [Epoch.from_dict(entry) for entry in checkpoint.saved["log"]]
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
    if collapse := collapsed(log):
        warnings.warn(f"LoRA-1: {collapse}", stacklevel=2)
    if out:
        lines = "".join(dump_json(entry.to_dict(), indent=None) for entry in log)
        write_all(
            partial(write_folder, out, adapted.peft_model.save_pretrained),
            partial(write_atomically, out / "training.json", dump_json(asdict(settings))),
            partial(write_atomically, out / "log.jsonl", lines),
        )
    return adapted, log


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
    batch = rng.sample(questions, min(settings.questions_per_epoch, len(questions)))
    adapted.train_mode(True)
    total, step = 0.0, settings.questions_per_step
    devices = [adapted.model.device] if adapted.model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(rng.getrandbits(63))  # dropout depends on seed and epoch only: a resumed run repeats it
        for done, question in enumerate(batch, start=1):
            value = question_loss(asker, question, settings, epoch)
            # The mean over a step's questions; the last step may have fewer.
            group = min(step, len(batch) - (done - 1) // step * step)
            (value / group).backward()  # type: ignore[no-untyped-call]
            total += float(value.detach())
            if done % step == 0 or done == len(batch):
                optimizer.step()
                optimizer.zero_grad()
            progress(f"epoch {epoch} of {settings.epochs}", done, len(batch))
    return total / len(batch)


def question_loss(
    asker: Asker, question: Question, settings: TrainSettings, epoch: int = 0, tree: bool = True
) -> Tensor:
    """The loss of one question, a differentiable scalar (P1 eq. 8).

    Over all its orders if there are at most ``settings.max_orders``, else over a sample that differs in every epoch.
    """
    orders = orders_for(question, str(settings.max_orders), settings.seed + 1_000_003 * epoch)
    presentations = [present(question, order, asker.alphabet) for order in orders]
    scored = label_pass(asker, presentations, "LoRA-1", tree=tree)
    return loss(content_logprobs(scored, presentations), settings.entropy_weight)


def content_logprobs(scored: ModelPass, presentations: Sequence[Presentation]) -> Tensor:
    """(K, n) log-probability of each option under each order, normalised over the labels shown."""
    positions = [np.argsort(presentation.contents).tolist() for presentation in presentations]
    rows = [torch.log_softmax(row, dim=0)[places] for row, places in zip(scored.logprobs, positions, strict=True)]
    return torch.stack(rows)


def log_bias(logprobs: Tensor) -> Tensor:
    """B_log = sum over orders of the mean over options of (log P[k,i] - log mean_k P[k,i])^2 (P1 eq. 9, with eq. 1).

    Args:
        logprobs: (K, n) natural-log probabilities; rows sum to 1 in probability.
    """
    mean = torch.logsumexp(logprobs, dim=0) - math.log(logprobs.shape[0])
    return (logprobs - mean).square().mean(dim=1).sum()


def order_entropy(logprobs: Tensor) -> Tensor:
    """H = - sum over orders and options of P log P (P1 eq. 10), in nats."""
    return -(logprobs.exp() * logprobs).sum()


def loss(logprobs: Tensor, entropy_weight: float) -> Tensor:
    """B_log + lambda H (P1 eq. 8)."""
    return log_bias(logprobs) + entropy_weight * order_entropy(logprobs)


def evaluate(asker: Asker, questions: Sequence[Question], settings: TrainSettings, epoch: int) -> Epoch:
    """Measure the model as it is now, in the same orders every epoch."""
    asker.forget()
    usable = [question for question in questions if len(question.movable) > 1]
    rows = ask_orders(asker, usable, [orders_for(q, str(settings.max_orders), settings.seed) for q in usable])
    biases, entropies, losses = [], [], []
    accuracies, unsure = np.full(len(usable), np.nan), np.zeros(len(usable), bool)
    for at, (question, raw) in enumerate(zip(usable, rows, strict=True)):
        probs = np.clip(raw, 1e-30, 1.0)  # probabilities may underflow to 0, whose logarithm is not finite
        logprobs = torch.from_numpy(np.log(probs))
        biases.append(float(pbm(probs)))
        entropies.append(float(order_entropy(logprobs)) / len(probs) / math.log(len(question.options)))
        losses.append(float(loss(logprobs, settings.entropy_weight)))
        mean = probs.mean(axis=0)
        unsure[at] = mean.max() < SETTLED * mean.sum()
        if question.answers:
            accuracies[at] = credit(probs)[:, sorted(question.answers)].sum(axis=1).mean()
    subjects, contexts = ([getattr(question, name) for question in usable] for name in ("subject", "context"))
    accuracy = Bootstrap(len(usable), subjects, contexts=contexts, unsure=unsure).mean(
        accuracies, room="bounds, unsure"
    )
    known = accuracies[np.isfinite(accuracies)]
    spread = float(np.std(known, ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    right = accuracy.value, accuracy.n, spread, accuracy.low, accuracy.high
    return Epoch(epoch, len(usable), _mean(biases), _mean(entropies), *right, _mean(losses))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


class _Checkpoint:
    """``checkpoint.pt`` in the folder of a run, replaced as a whole after every epoch.

    Attributes:
        saved: the state in that file; ``None`` if no epoch is finished.

    Raises:
        InputError: if the folder cannot be made, or holds a run whose gradients or log could differ: other settings,
            questions, labels or template, or another model.
    """

    def __init__(self, out: Path, settings: TrainSettings, made_with: dict[str, str]) -> None:
        self.path = out / "checkpoint.pt"
        self.settings, self.made_with = settings, made_with
        make_folder(out)
        self.saved = self._load() if os.path.isfile(self.path) else None

    def _load(self) -> dict[str, Any]:
        try:
            data: dict[str, Any] = torch.load(self.path, weights_only=True, map_location="cpu")
            settings = asdict(TrainSettings(**data["settings"])).items()
            other = [name for name, value in settings if name != "epochs" and getattr(self.settings, name) != value]
            epochs = len([Epoch.from_dict(entry) for entry in data["log"]]) - 1
            other += [name for name, value in self.made_with.items() if data["made_with"].get(name) != value]
        except Exception as error:  # torch.load fails in many ways on files that it did not write
            raise InputError.at(self.path, "is not a checkpoint of a training run; use another --out") from error
        if other:
            raise InputError.at(
                self.path, f"was trained with another {', '.join(other)}; use the same, or another --out"
            )
        if epochs > self.settings.epochs:
            raise InputError.at(self.path, f"has {epochs} epochs already; use another --out for fewer")
        return data

    def save(self, adapter: dict[str, Any], optimizer: dict[str, Any], log: Sequence[Epoch]) -> None:
        """Write the state; a crash leaves the old file or the new one."""
        data = {
            "settings": asdict(self.settings),
            "made_with": self.made_with,
            "adapter": adapter,
            "optimizer": optimizer,
            "log": [asdict(entry) for entry in log],
        }
        write_atomically(self.path, lambda file: torch.save(data, file))


def _made_with(asker: Asker, questions: Sequence[Question], held_out: Sequence[Question]) -> dict[str, str]:
    """Everything but the settings that a gradient or the log depends on, by the name that messages use."""
    identity = asker.model.identify().identity if asker.model else {}
    elicitation: Any = asker.elicitation
    writer = getattr(elicitation, "writer", None)
    return {
        "model": _digest([identity.get(key, "") for key in ("class", "weights", "config", "adapter config", "code")]),
        "tokenizer": identity.get("tokenizer", ""),
        "dtype": identity.get("dtype", ""),
        "labels": ",".join(asker.alphabet),
        "template": _digest([repr(writer.template.model_dump(exclude={"name"}))] if writer else []),
        "chat": str(getattr(writer, "chat", "")),
        "elicitation": repr(replace(elicitation, writer=None) if writer else elicitation),
        "to_end": str(getattr(writer, "to_end", "")),
        "set of questions": _digest(sorted(map(canonical_line, questions))),
        "set of held-out questions": _digest(sorted(map(canonical_line, held_out))),
    }


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
