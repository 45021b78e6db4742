"""The state of a run after its last finished epoch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from unslant.asking import Asker
from unslant.debias.lora1.progress import Epoch
from unslant.debias.lora1.settings import TrainSettings
from unslant.errors import InputError
from unslant.questions import Question
from unslant.questions.question_set import canonical_line

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
        InputError: if the folder cannot be made, or holds a run in which a gradient could differ: other settings,
            questions, labels or template, or another model.
    """

    def __init__(self, out: Path, settings: TrainSettings, asker: Asker, questions: Sequence[Question]) -> None:
        self.path = out / _FILE
        self.settings = settings
        self.made_with = _made_with(asker, questions)
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
        made_with = data.get("made_with", {})
        other = self.settings.differences(TrainSettings(**data["settings"]))
        other += [name for name, value in self.made_with.items() if made_with.get(name) != value]
        if other:
            raise InputError.at(
                self.path, f"was trained with another {', '.join(other)}; use the same, or another --out"
            )
        log = tuple(Epoch(**entry) for entry in data["log"])
        if len(log) > self.settings.epochs + 1:
            raise InputError.at(self.path, f"has {len(log) - 1} epochs already; use another --out for fewer")
        return Saved(data["adapter"], data["optimizer"], log)

    def save(self, adapter: dict[str, Any], optimizer: dict[str, Any], log: Sequence[Epoch]) -> None:
        """Write the state; a crash leaves the old file or the new one."""
        data = {
            "settings": asdict(self.settings),
            "made_with": self.made_with,
            "adapter": adapter,
            "optimizer": optimizer,
            "log": [asdict(entry) for entry in log],
        }
        scratch = self.path.with_suffix(".tmp")
        torch.save(data, scratch)
        os.replace(scratch, self.path)


def _made_with(asker: Asker, questions: Sequence[Question]) -> dict[str, str]:
    """What a gradient depends on beside the settings, by the name that people know it by."""
    identity = asker.model.identity if asker.model else {}
    elicitation: Any = asker.elicitation
    writer = getattr(elicitation, "writer", None)
    return {
        "model": _digest([identity.get(key, "") for key in ("class", "weights", "config", "adapter config", "code")]),
        "tokenizer": identity.get("tokenizer", ""),
        "dtype": identity.get("dtype", ""),
        "labels": ",".join(asker.alphabet),
        "template": _digest([repr(replace(writer.template, name="", path=""))] if writer else []),
        "chat": str(getattr(writer, "chat", "")),
        "elicitation": repr(replace(elicitation, writer=None) if writer else elicitation),
        "to_end": str(getattr(writer, "to_end", "")),
        "set of questions": _digest(sorted(canonical_line(question) for question in questions)),
    }


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
