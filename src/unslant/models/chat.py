"""Models that answer in words: local ones through transformers, any other through inspect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from unslant.errors import ModelError
from unslant.prompts.prompt import Message, Prompt

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel

MAX_TOKENS = 1000
"""Longest reply, in tokens (P4, 5.1)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one prompt; ``text`` is None where nothing did, and then ``error`` says why."""

    index: int
    text: str | None
    error: str = ""


class Speaker(Protocol):
    """A model that gives a reply in words, without randomness where that can be asked for."""

    @property
    def name(self) -> str: ...

    def say(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        """Reply to every prompt, each once, as it is ready, in any order. Continuations of prompts are ignored."""
        ...


class LocalSpeaker:
    """Greedy replies of a local model.

    Args:
        model: a loaded model.
        max_tokens: longest reply.
        batch: prompts in one pass, padded on the left.
    """

    def __init__(self, model: TransformersModel, max_tokens: int = MAX_TOKENS, batch: int = 8) -> None:
        self.model, self.max_tokens, self.batch = model, max_tokens, batch
        self.name = model.name

    def say(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        encoded = [self._ids(prompt) for prompt in prompts]
        by_length = sorted(range(len(prompts)), key=lambda i: len(encoded[i]))
        for start in range(0, len(by_length), self.batch):
            part = by_length[start : start + self.batch]
            for index, text in zip(part, self._generate([encoded[i] for i in part]), strict=True):
                yield Reply(index, text)

    def _ids(self, prompt: Prompt) -> list[int]:
        text = self.model.encoder.text_of(prompt)
        # A written chat already begins with whatever special tokens its template wants.
        return list(self.model.tokenizer(text, add_special_tokens=not prompt.messages).input_ids)

    def _generate(self, rows: list[list[int]]) -> list[str]:
        import torch

        tokenizer, limit = self.model.tokenizer, getattr(self.model.model.config, "max_position_embeddings", None)
        longest = max(map(len, rows))
        room = self.max_tokens if limit is None else min(self.max_tokens, limit - longest)
        if room < 1:
            raise ModelError(f"{self.name}: a prompt of {longest} tokens leaves no room for a reply: use fewer shots")
        end = tokenizer.eos_token_id
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end or 0
        ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows], device=self.model.device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=self.model.device)
        with torch.inference_mode():
            out = self.model.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=room,
                do_sample=False,
                pad_token_id=pad,
                eos_token_id=end,
            )
        return [str(text) for text in tokenizer.batch_decode(out[:, longest:], skip_special_tokens=True)]


class InspectSpeaker:
    """Replies of any model that inspect can reach (``openai/...``, ``openai-api/...``, ``hf/...``).

    Args:
        name: the model as inspect names it.
        max_tokens: longest reply.
        batch: prompts under way at once.
        model: a model object of inspect, in place of ``name`` being looked up.

    Raises:
        ModelError: if inspect is not installed, or does not know the model.
    """

    def __init__(self, name: str, max_tokens: int = MAX_TOKENS, batch: int = 32, model: Any = None) -> None:
        try:
            from inspect_ai.model import GenerateConfig, get_model
        except ImportError:
            raise ModelError("this needs inspect: pip install 'unslant[inspect]'") from None
        try:
            self._model = model if model is not None else get_model(name)
        except Exception as error:  # providers raise what they like; the first line says what is wrong
            raise ModelError(f"{name}: inspect cannot load it: {str(error).strip().splitlines()[0]}") from error
        self._config = GenerateConfig(temperature=0.0, max_tokens=max_tokens)
        self.name, self.batch = name, batch

    def say(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        with asyncio.Runner() as runner:  # one event loop for all batches: a provider's connections belong to a loop
            for start in range(0, len(prompts), self.batch):
                part = range(start, min(start + self.batch, len(prompts)))
                yield from runner.run(self._together([(i, prompts[i]) for i in part]))

    async def _together(self, part: list[tuple[int, Prompt]]) -> list[Reply]:
        return list(await asyncio.gather(*(self._one(index, prompt) for index, prompt in part)))

    async def _one(self, index: int, prompt: Prompt) -> Reply:
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

        kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
        said = prompt.messages or (Message("user", prompt.text),)
        try:
            output = await self._model.generate(
                [kinds[message.role](content=message.content) for message in said], config=self._config
            )
        except Exception as error:  # a failed call is a row with status "error", not the end of the run
            return Reply(index, None, f"{type(error).__name__}: {error}")
        return Reply(index, output.completion)
