"""The state of a run after its last finished epoch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from unslant.debias.lora1.progress import Epoch
from unslant.debias.lora1.settings import TrainSettings
from unslant.errors import InputError
from unslant.questions import Question
from unslant.questions.question_set import canonical_line

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel

_FILE = "checkpoint.pt"


@dataclass(frozen=True)
class Saved:
    """What :meth:`TrainingState.load` found."""

    adapter: dict[str, Any]
    optimizer: dict[str, Any]
    log: tuple[Epoch, ...]


class TrainingState:
    """``checkpoint.pt`` in the folder of a run: written whole after every epoch, or not at all.

    Raises:
        InputError: if the folder cannot be made, or holds a run with other settings, questions or weights.
    """

    def __init__(
        self, out: Path, settings: TrainSettings, model: TransformersModel, questions: Sequence[Question]
    ) -> None:
        self.path = out / _FILE
        self.settings = settings
        lines = sorted(canonical_line(question) for question in questions)
        self.digest = hashlib.sha256("\n".join([model.identity["weights"], *lines]).encode()).hexdigest()
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError.at(out, f"cannot be made: {error.strerror}") from error
        self.load()

    def load(self) -> Saved | None:
        """The saved state, or nothing if no epoch has been finished here."""
        if not self.path.is_file():
            return None
        try:
            data = torch.load(self.path, weights_only=True, map_location="cpu")
        except Exception as error:  # a file of another make fails in many ways
            raise InputError.at(self.path, "is not a checkpoint of a training run; use another --out") from error
        other = self.settings.differences(TrainSettings(**data["settings"]))
        if other:
            raise InputError.at(
                self.path, f"was trained with another {', '.join(other)}; use the same, or another --out"
            )
        if data["digest"] != self.digest:
            raise InputError.at(self.path, "was trained on other questions or another model; use another --out")
        log = tuple(Epoch(**entry) for entry in data["log"])
        if len(log) > self.settings.epochs + 1:
            raise InputError.at(self.path, f"has {len(log) - 1} epochs already; use another --out for fewer")
        return Saved(data["adapter"], data["optimizer"], log)

    def save(self, adapter: dict[str, Any], optimizer: dict[str, Any], log: Sequence[Epoch]) -> None:
        """Write the state; a crash leaves the old file or the new one."""
        data = {
            "settings": asdict(self.settings),
            "digest": self.digest,
            "adapter": adapter,
            "optimizer": optimizer,
            "log": [asdict(entry) for entry in log],
        }
        scratch = self.path.with_suffix(".tmp")
        torch.save(data, scratch)
        os.replace(scratch, self.path)
