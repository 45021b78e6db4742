"""llama.cpp, through the prebuilt ``xllamacpp``, with its prompt cache: another kernel library, without a target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unslant.models.hf.tokenization import Encoder
from unslant.prompts import Prompt


class LlamaCpp:
    """Scores by asking an in-process server for one token after each prompt, in the order the prompts come.

    A prompt reuses the keys and values of the beginning it shares with the one before it. The 20 likeliest tokens come
    back; those of the labels may not be among them, so this contender's time is measured and its scores are not used.
    A continuation of several tokens is one request more for each token after the first.
    """

    name = "llama.cpp"

    def __init__(self, path: Path, tokenizer: Any, threads: int) -> None:
        import xllamacpp

        settings = xllamacpp.CommonParams()
        settings.model.path = str(path)
        settings.n_ctx, settings.n_parallel, settings.warmup = 4096, 1, False
        settings.n_batch = settings.n_ubatch = 2048
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
        # Only the prompt before is reused: no store of earlier prompts, no checkpoints, none kept of an idle slot.
        settings.cache_ram_mib, settings.n_ctx_checkpoints, settings.cache_idle_slots = 0, 0, False
        settings.verbosity = -1
        self._server = xllamacpp.Server(settings)
        self._tokenizer = tokenizer
        self.tokens = 0

    def prepare(self) -> None:
        self.encoder = Encoder(self._tokenizer)
        self._ask([0])  # the prompt cache holds nothing of the workload

    def score(self, prompts: Sequence[Prompt]) -> None:
        self.tokens = 0
        for item in self.encoder.encode(prompts):
            sequences = {(*item.context.tolist(), *ids[:-1].tolist()): None for ids in item.candidates}
            for sequence in sequences:
                self.tokens += self._ask(list(sequence))

    def _ask(self, ids: list[int]) -> int:
        """Tokens that were run, not found in the prompt cache."""
        request = {"prompt": ids, "n_predict": 1, "n_probs": 20, "cache_prompt": True, "temperature": 0.0}
        answer = self._server.handle_completions(request)
        reply = json.loads(answer) if isinstance(answer, str | bytes) else answer
        return int(reply["timings"]["prompt_n"])
