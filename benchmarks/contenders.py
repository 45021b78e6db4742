"""The ways to score that are compared. Each gets the same prompts and the same loaded model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from unslant.models.base import Cost, Encoded
from unslant.models.hf import common_prefix
from unslant.models.hf.model import TransformersModel
from unslant.models.hf.tokenization import Encoder
from unslant.prompts import Prompt

Scores = list[NDArray[np.float64]]


class Contender(Protocol):
    name: str

    def prepare(self) -> None:
        """Forget everything earlier runs have left; not timed."""

    def score(self, prompts: Sequence[Prompt]) -> Scores:
        """Log-probability of every continuation of every prompt; timed, tokenization included."""


class Library:
    """unslant's own engines: the prefix tree, or whole prompts in padded batches sorted by length."""

    def __init__(self, name: str, model: Any, tokenizer: Any, engine: str, token_budget: int | None = None) -> None:
        self.name = name
        self._new = lambda: TransformersModel(model, tokenizer, name, engine=engine, token_budget=token_budget)

    def prepare(self) -> None:
        self.model = self._new()

    def score(self, prompts: Sequence[Prompt]) -> Scores:
        found = {scored.index: scored.logprobs for scored in self.model.score(prompts)}
        return [found[i] for i in range(len(prompts))]


def cost_of(contender: Contender) -> Cost | None:
    """What one of unslant's engines counts from now on."""
    return contender.model.cost if isinstance(contender, Library) else None


class BaQCKV:
    """P1, Algorithm 1: keys and values of what a question's prompts share are computed once, repeated for the K
    suffixes, and the suffixes run as one padded batch. The output head sees only the positions that are read."""

    name = "BaQCKV"

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer

    def prepare(self) -> None:
        self.encoder = Encoder(self.tokenizer)

    def score(self, prompts: Sequence[Prompt]) -> Scores:
        encoded = self.encoder.encode(prompts)
        questions: dict[str, list[int]] = {}
        for i, prompt in enumerate(prompts):
            questions.setdefault(prompt.group, []).append(i)
        scores: Scores = [np.empty(0)] * len(prompts)
        with torch.inference_mode():
            for members in questions.values():
                for i, found in zip(members, self._question([encoded[i] for i in members]), strict=True):
                    scores[i] = found
        return scores

    def _question(self, encoded: Sequence[Encoded]) -> Scores:
        rows: dict[bytes, int] = {}
        sequences, reads = [], []  # a read: row, position, token, prompt, candidate
        for p, item in enumerate(encoded):
            for c, ids in enumerate(item.candidates):
                sequence = np.concatenate([item.context, ids[:-1]])
                row = rows.setdefault(sequence.tobytes(), len(rows))
                if row == len(sequences):
                    sequences.append(sequence)
                reads += [(row, len(item.context) - 1 + j, int(token), p, c) for j, token in enumerate(ids)]
        shared = min(min(common_prefix(sequences[0], s) for s in sequences), min(map(len, sequences)) - 1)
        k, width = len(sequences), max(map(len, sequences)) - shared

        start = torch.from_numpy(sequences[0][:shared]).long()[None]
        cache = self.model.model(input_ids=start, use_cache=True).past_key_values
        for layer in cache.layers:
            layer.keys, layer.values = layer.keys.expand(k, -1, -1, -1), layer.values.expand(k, -1, -1, -1)
        suffixes = torch.zeros(k, width, dtype=torch.long)
        mask = torch.ones(k, shared + width, dtype=torch.long)
        for r, sequence in enumerate(sequences):
            suffixes[r, : len(sequence) - shared] = torch.from_numpy(sequence[shared:])
            mask[r, len(sequence) :] = 0
        positions = torch.arange(shared, shared + width)[None].expand(k, -1)
        hidden = self.model.model(
            input_ids=suffixes, attention_mask=mask, position_ids=positions, past_key_values=cache
        ).last_hidden_state

        row, position, token, prompt, candidate = map(list, zip(*reads, strict=True))
        places, which = np.unique(np.stack([row, position], axis=1), axis=0, return_inverse=True)
        logits = self.model.lm_head(hidden[places[:, 0], places[:, 1] - shared])
        logprobs = (logits[which, token] - torch.logsumexp(logits, -1)[which]).double().numpy()
        scores = [np.zeros(len(item.candidates)) for item in encoded]
        for p, c, value in zip(prompt, candidate, logprobs, strict=True):
            scores[p][c] += value
        return scores


class LmEval:
    """``loglikelihood`` of lm-evaluation-harness' transformers backend."""

    name = "lm-eval"

    def __init__(self, model: Any, tokenizer: Any, batch_size: int) -> None:
        from lm_eval.models.huggingface import HFLM

        self._lm = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch_size, max_length=4096)

    def prepare(self) -> None:
        """It keeps nothing between calls."""

    def score(self, prompts: Sequence[Prompt]) -> Scores:
        from lm_eval.api.instance import Instance

        requests = [
            Instance("loglikelihood", {}, (prompt.text, continuation), i)
            for i, prompt in enumerate(prompts)
            for continuation in prompt.continuations
        ]
        answers = iter(self._lm.loglikelihood(requests, disable_tqdm=True))
        return [np.array([next(answers)[0] for _ in prompt.continuations]) for prompt in prompts]
