"""LoRA-1 as a debiasing method: train an adapter, or load a trained one, and ask once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from unslant.debiasing.asker import Asker
from unslant.debiasing.base import Method, OrderDebiaser
from unslant.debiasing.lora1.adapter import Adapted
from unslant.debiasing.lora1.settings import TrainSettings
from unslant.debiasing.lora1.training import train
from unslant.debiasing.model_pass import loaded_model
from unslant.extras import needed
from unslant.presentations import question_rng
from unslant.questions import Question

HELD_OUT_SHARE, MOST_HELD_OUT = 0.2, 64


@dataclass(frozen=True)
class Lora1(Method):
    """A rank-1 adapter trained to answer alike in every order. No labels; one presentation per question once trained.

    Args:
        adapter: folder of a trained adapter; if empty, one is trained on the questions to fit on (a fifth of them, at
            most 64, are held out to monitor the training).
        settings: of the training.
    """

    adapter: str = ""
    settings: TrainSettings = field(default_factory=TrainSettings)
    name = "lora-1"
    needs_model = held_out = True

    @property
    def needs_fit(self) -> bool:
        return not self.adapter

    def check_installed(self) -> None:
        needed("peft", "LoRA-1")

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> OrderDebiaser:
        """See :func:`unslant.debiasing.lora1.training.train`."""
        if self.adapter:
            adapted = Adapted.load(loaded_model(asker, "LoRA-1"), self.adapter)
            return OrderDebiaser(asker, restore=adapted.close)
        training, held_out = split(questions, self.settings.seed)
        trained = train(asker, training, held_out, self.settings)
        return OrderDebiaser(asker, (trained.collapse,) if trained.collapse else (), trained.adapted.close)


def split(questions: Sequence[Question], seed: int) -> tuple[list[Question], list[Question]]:
    """Questions to train on, and questions to monitor the training with; independent of the order of the file."""
    shuffled = sorted(questions, key=lambda question: question.id)
    question_rng("", seed, "lora1-held-out").shuffle(shuffled)
    held_out = min(MOST_HELD_OUT, int(HELD_OUT_SHARE * len(shuffled)))
    return shuffled[held_out:], shuffled[:held_out]
