"""Reward models: a head for sequence classification with one output, which scores each answer by itself.

Named ``reward:NAME``. The probability that one of several answers is preferred is that of the model that such heads are
trained with (Bradley-Terry): the softmax of the rewards. It does not depend on the order of the answers, so each answer
is scored once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from unslant import __version__
from unslant.errors import ModelError
from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.models.hf.chats import written_chat
from unslant.models.hf.identity import tokenizer_digest, weights_digest
from unslant.models.hf.loading import pretrained
from unslant.models.hf.model import context_limit
from unslant.models.options import ModelOptions
from unslant.prompts import STATE, Prompt


class RewardModel(ScoringModel):
    """Scores answers to a question as turns of a chat; without a chat template, as two paragraphs.

    Args:
        model: of transformers, with one output, on its device.
        tokenizer: its tokenizer.
        name: display name.
        incomplete: weights that the checkpoint did not have.
    """

    def __init__(self, model: Any, tokenizer: Any, name: str, incomplete: str = "") -> None:
        if model.config.num_labels != 1:
            raise ModelError(f"{name}: has {model.config.num_labels} outputs; a reward model has one")
        identity = {
            "model": name,
            "weights": weights_digest(model),
            "tokenizer": tokenizer_digest(tokenizer),
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": model.device.type,
            "engine": f"reward {__version__}",
        }
        facts: dict[str, object] = {"parameters": model.num_parameters(), "incomplete": incomplete}
        super().__init__(ModelInfo(name=name, identity=identity, engine="reward", facts=facts, renders_prompts=True))
        self._model, self._tokenizer = model, tokenizer
        self._rewards: dict[tuple[str, str], tuple[float, int]] = {}

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """Log-probability that each answer is the preferred one.

        Raises:
            ModelError: if an answer is longer than the model's context, or gets no finite reward.
        """
        for index, prompt in enumerate(prompts):
            question = prompt.text if prompt.state in (None, STATE) else f"{prompt.state}\n\n{prompt.text}"
            rewards = np.array([self._reward(question, answer, prompt.group) for answer in prompt.continuations])
            self.cost.prompts += 1
            yield Scored(index, rewards - np.logaddexp.reduce(rewards))

    def _reward(self, question: str, answer: str, group: str) -> float:
        if (question, answer) not in self._rewards:
            ids = self._ids(question, answer)
            if len(ids) > (longest := context_limit(self._model)):
                raise ModelError(f"{self.name}, {group!r}: {len(ids):,} tokens; its context has {longest:,}")
            with torch.inference_mode():  # one by one: padding would change the last bits
                logits = self._model(input_ids=torch.tensor([ids], device=self._model.device)).logits
            self.cost.forwards += 1
            self.cost.tokens += len(ids)
            self._rewards[question, answer] = float(logits[0, 0]), len(ids)
        reward, tokens = self._rewards[question, answer]
        self.cost.tokens_plain += tokens
        if not np.isfinite(reward):
            raise ModelError(f"{self.name}, {group!r}: its reward is {reward}")
        return reward

    def _ids(self, question: str, answer: str) -> list[int]:
        if not self._tokenizer.chat_template:
            return list(self._tokenizer(f"{question}\n\n{answer}")["input_ids"])
        turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        text = written_chat(self._tokenizer, turns, prompt=False)
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def load_reward(name: str, options: ModelOptions) -> RewardModel:
    """A reward model by folder or Hub id; see :func:`unslant.models.hf.loading.load_model`."""
    model, tokenizer, incomplete = pretrained(name, options, "AutoModelForSequenceClassification")
    return RewardModel(model.eval(), tokenizer, name, "; ".join(filter(None, incomplete)))
