"""Models that generate replies: local ones through transformers, all others through inspect."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from unslant.errors import ModelError
from unslant.extras import needed
from unslant.models.options import KEY_VARIABLES, Address, GenerateOptions, ModelOptions
from unslant.prompts import Message, Prompt

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage

    from unslant.models.hf.model import TransformersModel


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one prompt; if none came, ``text`` is None and ``error`` says why."""

    index: int
    text: str | None
    error: str = ""


class ChatModel(Protocol):
    """A model that generates replies."""

    @property
    def name(self) -> str: ...

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        """One reply per prompt, as it is ready, in any order. Continuations of prompts are ignored."""
        ...


class LocalChat:
    """Replies of a local model: greedy at temperature 0, else sampled from a fixed seed.

    Args:
        generate: by default temperature 0 and at most 1000 tokens.
        batch: prompts per pass, padded on the left.
    """

    def __init__(self, model: TransformersModel, generate: GenerateOptions | None = None, batch: int = 8) -> None:
        self.model, self.batch = model, batch
        self.name = model.name
        self._options = (generate or GenerateOptions()).filled()

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        """See :class:`ChatModel`.

        Raises:
            ModelError: if a prompt leaves no room for a reply.
        """
        encoded = [self.model.encoder.ids(prompt) for prompt in prompts]
        by_length = sorted(range(len(prompts)), key=lambda i: len(encoded[i]))
        for start in range(0, len(by_length), self.batch):
            part = by_length[start : start + self.batch]
            for index, text in zip(part, self._generate([encoded[i] for i in part]), strict=True):
                yield Reply(index, text)

    def _generate(self, rows: list[list[int]]) -> list[str]:
        import torch

        tokenizer, limit = self.model.tokenizer, getattr(self.model.model.config, "max_position_embeddings", None)
        longest, most = max(map(len, rows)), int(self._options.max_tokens or 0)
        room = most if limit is None else min(most, limit - longest)
        if room < 1:
            raise ModelError(f"{self.name}: a prompt of {longest} tokens leaves no room for a reply: use fewer shots")
        end = tokenizer.eos_token_id
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end or 0
        ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows], device=self.model.device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=self.model.device)
        sampling = {"do_sample": True, "temperature": self._options.temperature, "top_k": 0, "top_p": 1.0}
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(0)
            out = self.model.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=room,
                pad_token_id=pad,
                eos_token_id=end,
                **(sampling if self._options.temperature else {"do_sample": False}),
            )
        return [str(text) for text in tokenizer.batch_decode(out[:, longest:], skip_special_tokens=True)]


class InspectChat:
    """Replies of any model that inspect supports.

    Args:
        model: one of inspect's models, see :func:`inspect_model`.
        generate: by default temperature 0 and at most 1000 tokens.
        options: connections, retries and timeout.
    """

    def __init__(
        self, model: Any, name: str, generate: GenerateOptions | None = None, options: ModelOptions | None = None
    ) -> None:
        from inspect_ai.model import GenerateConfig

        self._model, self.name = model, name
        options, limits = options or ModelOptions(), (generate or GenerateOptions()).filled()
        self._batch = 4 * options.connections
        self._config = GenerateConfig(
            temperature=limits.temperature,
            max_tokens=limits.max_tokens,
            max_connections=options.connections,
            max_retries=options.retries,
            attempt_timeout=options.timeout,
        )

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        """See :class:`ChatModel`; a failed call is a reply without text."""
        with asyncio.Runner() as runner:  # one event loop for all batches: a provider's connections belong to a loop
            for start in range(0, len(prompts), self._batch):
                yield from runner.run(self._together(start, prompts[start : start + self._batch]))

    async def _together(self, start: int, prompts: Sequence[Prompt]) -> list[Reply]:
        return await asyncio.gather(*(self._one(index, prompt) for index, prompt in enumerate(prompts, start)))

    async def _one(self, index: int, prompt: Prompt) -> Reply:
        try:
            messages = inspect_messages(prompt.messages or (Message("user", prompt.text),))
            output = await self._model.generate(messages, config=self._config)
        except Exception as error:  # a failed call is a row with status "error", not the end of the run
            return Reply(index, None, f"{type(error).__name__}: {error}")
        return Reply(index, output.completion)


def inspect_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Messages as inspect's own types."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    return [kinds[message.role](content=message.content) for message in messages]


def open_local(address: Address, generate: GenerateOptions) -> LocalChat:
    """A local model that generates; see :mod:`unslant.models.open`."""
    from unslant.models.hf import loading

    return LocalChat(loading.open_local(address), generate, address.options.connections)


def open_inspect(address: Address, generate: GenerateOptions) -> InspectChat:
    """A served model, or one behind inspect, that generates."""
    return InspectChat(inspect_model(address), address.model, generate, address.options)


def inspect_model(address: Address) -> Any:
    """Any model, including local ones, as one of inspect's.

    Raises:
        ModelError: if inspect is not installed, or cannot load the model.
    """
    get_model = needed("inspect_ai.model", "a model that generates replies").get_model
    name, options = address.model, address.options
    try:
        if address.scheme == "http":
            key = next((os.environ[variable] for variable in KEY_VARIABLES if variable in os.environ), "none")
            # inspect repeats failed requests itself, so its client must not.
            return get_model(
                f"openai-api/unslant/{name}", base_url=options.base_url, api_key=key, max_retries=0, memoize=False
            )
        return get_model(name) if address.scheme == "inspect" else _local_in_inspect(get_model, name, options)
    except ModelError:
        raise
    except Exception as error:  # providers raise many kinds; the first line says what is wrong
        hint = f" (a provider's model is written inspect:{name})" if not address.scheme and "/" in name else ""
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"{name}: inspect cannot load it: {reason[0]}{hint}") from error


def _local_in_inspect(get_model: Any, name: str, options: ModelOptions) -> Any:
    from inspect_ai.model import ModelInfo, set_model_info

    from unslant.models.hf.loading import check_complete, locate, with_adapter

    set_model_info("hf/local", ModelInfo())  # else inspect looks for a model "local" on the Hub to know its limits
    chosen = {"device": options.device, "dtype": options.dtype}
    arguments: dict[str, Any] = {key: value for key, value in chosen.items() if value != "auto"}
    folder = locate(name)
    check_complete(folder, trust_remote_code=options.trust_remote_code, allow_missing=options.allow_missing)
    model = get_model(
        "hf/local", model_path=folder, tokenizer_path=folder, memoize=False,
        trust_remote_code=options.trust_remote_code, **arguments,
    )  # fmt: skip
    if options.adapter:
        model.api.model, _ = with_adapter(model.api.model, options.adapter, allow_missing=options.allow_missing)
    sampled = model.api.generate

    async def generate(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        greedy = config.temperature == 0  # which transformers refuses to sample at
        model.api.do_sample = not greedy
        told = config.model_copy(update={"temperature": None}) if greedy else config
        return await sampled(input, tools, tool_choice, told)

    model.api.generate = generate
    return model
