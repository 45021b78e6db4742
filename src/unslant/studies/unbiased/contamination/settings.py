"""Settings of the contamination study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from unslant.errors import InputError
from unslant.experiment.options import Options
from unslant.reach import Reach
from unslant.studies.unbiased.settings import ComposeSettings


@dataclass(frozen=True, kw_only=True)
class Training(Options):
    """How a model is fine-tuned on questions.

    Raises:
        InputError: on a value out of range.
    """

    epochs: int = 40
    """Passes over the questions, at most."""
    learning_rate: float = 1e-3
    """AdamW learning rate, falling linearly to 0."""
    batch: int = 16
    """Questions in one step."""
    stop_at: float = 1.0
    """Stop once this share of the questions was answered right during an epoch."""
    last_layers: int = 0
    """Number of last layers to train (0: all of them and the embeddings)."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs < 1 or self.batch < 1 or self.learning_rate <= 0 or not 0 < self.stop_at <= 1:
            raise InputError(
                f"epochs {self.epochs}, batch {self.batch}, learning_rate {self.learning_rate}, stop_at {self.stop_at}:"
                " epochs and batch must be 1 or more, learning_rate above 0, stop_at above 0 and at most 1"
            )


@dataclass(frozen=True, kw_only=True)
class ContaminationSettings(Training, ComposeSettings):
    """How the questions are learned and asked."""

    against: Annotated[str | None, Reach.MODEL] = None
    """Compare with this model, suspected of having seen the questions, instead of fine-tuning MODEL."""
    save_model: Path | None = None
    """Folder for the fine-tuned model."""
