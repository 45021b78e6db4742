"""The state of a training run after its last finished epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from unslant.debias.lora1.progress import Epoch
from unslant.debias.lora1.settings import TrainSettings
from unslant.errors import InputError
from unslant.files import exists, make_folder, write_atomically
from unslant.models.hf.model import TransformersModel
from unslant.questions import Question
from unslant.questions.question_set import canonical_line


@dataclass(frozen=True)
class Saved:
    """The contents of a checkpoint."""

    adapter: dict[str, Any]
    optimizer: dict[str, Any]
    log: tuple[Epoch, ...]


class TrainingState:
    """``checkpoint.pt`` in the folder of a run, replaced as a whole after every epoch.

    Attributes:
        saved: the state found there; ``None`` if no epoch is finished.

    Raises:
        InputError: if the folder cannot be made, or holds a run with other settings, questions or weights.
    """

    def __init__(
        self, out: Path, settings: TrainSettings, model: TransformersModel, questions: Sequence[Question]
    ) -> None:
        self.path = out / "checkpoint.pt"
        self.settings = settings
        lines = sorted(canonical_line(question) for question in questions)
        self.digest = hashlib.sha256("\n".join([model.identity["weights"], *lines]).encode()).hexdigest()
        make_folder(out)
        self.saved = self._load() if exists(self.path) else None

    def _load(self) -> Saved:
        try:
            data = torch.load(self.path, weights_only=True, map_location="cpu")
            settings, log = TrainSettings(**data["settings"]), tuple(map(Epoch.from_dict, data["log"]))
            saved, digest = Saved(data["adapter"], data["optimizer"], log), data["digest"]
        except Exception as error:  # other files fail in many ways
            raise InputError.at(self.path, "is not a checkpoint of a training run; use another --out") from error
        other = self.settings.differences(settings)
        if other:
            raise InputError.at(
                self.path, f"was trained with another {', '.join(other)}; use the same, or another --out"
            )
        if digest != self.digest:
            raise InputError.at(self.path, "was trained on other questions or another model; use another --out")
        if len(log) > self.settings.epochs + 1:
            raise InputError.at(self.path, f"has {len(log) - 1} epochs already; use another --out for fewer")
        return saved

    def save(self, adapter: dict[str, Any], optimizer: dict[str, Any], log: Sequence[Epoch]) -> None:
        """Write the state; a crash leaves the old file or the new one."""
        data = {"settings": asdict(self.settings), "digest": self.digest, "adapter": adapter, "optimizer": optimizer}
        whole = data | {"log": [asdict(entry) for entry in log]}
        write_atomically(self.path, lambda file: torch.save(whole, file))
