"""LoRA-1 as a debiasing method: train, or take a trained adapter, and ask once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from unslant.asking import Asker
from unslant.debias.base import Method, OrderDebiaser
from unslant.debias.lora1.adapter import Adapted
from unslant.debias.lora1.settings import TrainSettings
from unslant.debias.model_pass import loaded_model
from unslant.presentations import question_rng
from unslant.questions import Question

HELD_OUT_SHARE, MOST_HELD_OUT = 0.2, 64


@dataclass(frozen=True)
class Lora1(Method):
    """A rank-1 adapter trained to answer alike in every order. No labels; one presentation a question once trained.

    Args:
        adapter: folder of a trained adapter; empty: train one on the questions to fit on (a fifth of them, at most 64,
            are held out to follow the training).
        settings: of the training.
    """

    adapter: str = ""
    settings: TrainSettings = field(default_factory=TrainSettings)
    name = "lora-1"
    needs_model = held_out = True

    @property
    def needs_fit(self) -> bool:
        return not self.adapter

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> AdaptedModel:
        """See :func:`unslant.debias.lora1.training.train`."""
        from unslant.debias.lora1.training import train

        if self.adapter:
            adapted = Adapted.load(loaded_model(asker, "LoRA-1"), self.adapter)
            asker.forget()
            return AdaptedModel(asker, adapted)
        training, held_out = split(questions, self.settings.seed)
        trained = train(asker, training, held_out, self.settings)
        return AdaptedModel(asker, trained.adapted, (trained.collapse,) if trained.collapse else (), trained.log)


def split(questions: Sequence[Question], seed: int) -> tuple[list[Question], list[Question]]:
    """Questions to train on and questions to follow the training with, by seed and ids."""
    shuffled = sorted(questions, key=lambda question: question.id)
    question_rng("", seed, "lora1-held-out").shuffle(shuffled)
    held_out = min(MOST_HELD_OUT, int(HELD_OUT_SHARE * len(shuffled)))
    return shuffled[held_out:], shuffled[:held_out]


class AdaptedModel(OrderDebiaser):
    """Answers with the adapter in force, until closed."""

    def __init__(self, asker: Asker, adapted: Adapted, notes: tuple[str, ...] = (), log: tuple[Any, ...] = ()) -> None:
        super().__init__(asker, notes)
        self.adapted, self.log = adapted, log

    def close(self) -> None:
        self.adapted.close()
        self.asker.forget()
