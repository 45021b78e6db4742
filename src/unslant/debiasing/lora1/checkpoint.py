"""The state of a training run after its last finished epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from unslant.debiasing.asker import Asker
from unslant.debiasing.lora1.progress import Epoch
from unslant.debiasing.lora1.settings import TrainSettings
from unslant.errors import InputError
from unslant.files import exists, make_folder, write_atomically
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
        InputError: if the folder cannot be made, or holds a run in which a gradient could differ: other settings,
            questions, labels or template, or another model.
    """

    def __init__(self, out: Path, settings: TrainSettings, asker: Asker, questions: Sequence[Question]) -> None:
        self.path = out / "checkpoint.pt"
        self.settings = settings
        self.made_with = _made_with(asker, questions)
        make_folder(out)
        self.saved = self._load() if exists(self.path) else None

    def _load(self) -> Saved:
        try:
            data = torch.load(self.path, weights_only=True, map_location="cpu")
            settings, log = TrainSettings(**data["settings"]), tuple(map(Epoch.from_dict, data["log"]))
            saved = Saved(data["adapter"], data["optimizer"], log)
        except Exception as error:  # other files fail in many ways
            raise InputError.at(self.path, "is not a checkpoint of a training run; use another --out") from error
        made_with = data.get("made_with", {})
        other = self.settings.differences(settings)
        other += [name for name, value in self.made_with.items() if made_with.get(name) != value]
        if other:
            raise InputError.at(
                self.path, f"was trained with another {', '.join(other)}; use the same, or another --out"
            )
        if len(log) > self.settings.epochs + 1:
            raise InputError.at(self.path, f"has {len(log) - 1} epochs already; use another --out for fewer")
        return saved

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


def _made_with(asker: Asker, questions: Sequence[Question]) -> dict[str, str]:
    """What a gradient depends on beside the settings, by the name that people know it by."""
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
        "set of questions": _digest(sorted(canonical_line(question) for question in questions)),
    }


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
