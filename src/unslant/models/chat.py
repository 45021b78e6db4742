"""Models that generate replies: local ones through transformers, all others through inspect."""

from __future__ import annotations

import asyncio
import inspect
import json
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from unslant.errors import InputError, ModelError, first_line
from unslant.files import whole_text
from unslant.models.answered import Answerers, ModelChanged
from unslant.models.base import NOBODY, Model, ModelInfo, misplaced
from unslant.models.concurrent import Limit, Server, from_several
from unslant.models.hf.chats import folding
from unslant.models.options import CONNECTIONS, GenerateOptions, ModelOptions
from unslant.models.stored import Stored, keys_of
from unslant.prompts import Prompt
from unslant.responses.provenance import ChatCost as ChatCost
from unslant.store import KeptReply, Store

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one prompt; if none came, ``text`` is None and ``error`` says why.

    Attributes:
        declined: the provider says that the model declined, regardless of the text.
        input_tokens, output_tokens: of the prompt and of the reply; None where the backend does not count them.
        reasoning_tokens: those of the reply that were reasoning.
        recalled: it came from the store.
        by: the model and the system that it names; empty where it names none.
        cut: it ended at the length limit, not because it was complete.
    """

    index: int
    text: str | None
    error: str = ""
    declined: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    recalled: bool = False
    by: tuple[str, str] = NOBODY
    cut: bool = False


_Other = TypeVar("_Other", bound="ChatModel")
_PLAIN: dict[str, Any] = {"num_beams": 1, "num_return_sequences": 1, "return_dict_in_generate": False}
# A checkpoint's generation_config.json may have these too, which fail here, cut replies unseen, or thin out samples.
_DROPPED = "forced_eos_token_id max_time min_p penalty_alpha prompt_lookup_num_tokens stop_strings".split()


class ChatModel(Model, ABC):
    """A model that generates replies, and counts them. Subclasses give :meth:`replies_to`; if they take options, also
    :meth:`at`.

    Attributes:
        cost: running total; subtract a copy taken before to get the cost of one call.
        errors: reason of failed requests -> how many failed for it.
        answerers: the models and systems that the replies named.
    """

    def __init__(self, info: ModelInfo) -> None:
        super().__init__(replace(info, can=frozenset({"generate"})))
        self.cost = ChatCost()
        self.errors: Counter[str] = Counter()
        self.answerers = Answerers(info.name)

    def at(self, generate: GenerateOptions) -> ChatModel:
        """The same model with other options; its costs are counted with this one's (:meth:`counted_here`).

        Raises:
            InputError: if it has none, as by default.
        """
        why = "takes no options such as the temperature of this study"
        raise InputError(f"{self.name} {why}: give a subclass of unslant.models.ChatModel with a method at")

    def choosing(self) -> ChatModel:
        """The same model, replying with the most probable of each prompt's continuations, if it has log-probabilities;
        otherwise it replies freely, as usual."""
        return self

    @abstractmethod
    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        """One reply per prompt, which :meth:`generate` counts."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        """One reply per prompt, as it is ready, in any order. Continuations of prompts are ignored.

        Equal prompts are different samples.

        Raises:
            ModelError: if no request can succeed: a wrong key, an unknown model, no server at the address.
            ModelChanged: if a reply names another model than those before.
        """
        yield from self._counted(self.replies_to(prompts), prompts)

    def generate_at(self, prompts: Sequence[Prompt], places: Sequence[int]) -> Iterator[Reply]:
        """The replies to the prompts at some places, as :meth:`generate` gives them to all."""
        for reply in self.generate([prompts[i] for i in places]):
            yield replace(reply, index=places[reply.index])

    def _counted(self, replies: Iterator[Reply], prompts: Sequence[Prompt]) -> Iterator[Reply]:
        missing = set(range(len(prompts)))
        for reply in replies:
            reply, cost = self._checked(reply, missing, len(prompts)), self.cost
            cost.requests += 1
            cost.input_tokens += reply.input_tokens or 0
            cost.output_tokens += reply.output_tokens or 0
            cost.reasoning_tokens += reply.reasoning_tokens or 0
            if reply.text is None:
                cost.failed += 1
                self.errors[reply.error] += 1
            else:
                cost.uncounted += reply.output_tokens is None
                self._note(reply, prompts[reply.index])
            yield reply

    def _checked(self, reply: Reply, missing: set[int], total: int) -> Reply:
        """A reply of :meth:`replies_to`, which may be other people's, without halves of characters, as of a cut emoji.

        Raises:
            ModelError: if it is not a reply, or not that to one of the prompts that are ``missing``.
        """
        problem = misplaced(reply, Reply, missing, total)
        if not problem and not isinstance(reply.text, str | None):
            problem = f"yields the text {str(reply.text)[:60]!r}, where a str or None is expected"
        if problem:
            raise ModelError(f"{self.name}: replies_to() {problem}")
        missing.remove(reply.index)
        if reply.text is None:
            return replace(reply, error=whole_text(reply.error or "no reply came"))
        return replace(reply, text=whole_text(reply.text), by=(whole_text(reply.by[0]), whole_text(reply.by[1])))

    def _note(self, reply: Reply, prompt: Prompt) -> None:
        self.answerers.note(reply.by, prompt.group, stored=reply.recalled)

    def counted_here(self, other: _Other) -> _Other:
        """The other model, with its costs and errors counted with this one's."""
        other.cost, other.errors, other.answerers = self.cost, self.errors, self.answerers
        return other


class FunctionChat(ChatModel):
    """Replies of a Python function of the prompt as one text, also an ``async`` one.

    An exception, and anything returned that is not a text, is a failed request; what would end a program, such as
    ``sys.exit()``, ends the run with a ModelError. Functions are called one at a time, those that are ``async`` several
    at a time.
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        named: Any = function.func if isinstance(function, partial) else function
        named = named if hasattr(named, "__name__") else type(named)  # an object that can be called
        name = named.__name__.strip("<>")  # of a lambda
        identity = {"function": f"{named.__module__}.{named.__qualname__}"}
        super().__init__(ModelInfo(name=name, identity=identity, takes_turns=False))
        self._function = function

    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        limit = Limit(CONNECTIONS if inspect.iscoroutinefunction(self._function) else 1, adaptive=False)
        for index, reply in from_several(prompts, [Server(self._one, limit, nullcontext)]):
            yield replace(reply, index=index)

    async def _one(self, _: None, prompt: Prompt) -> Reply:
        try:
            text = await asyncio.to_thread(self._function, prompt.as_text())
            text = await text if inspect.isawaitable(text) else text
        except Exception as error:  # a failed call is a row with status "error", not the end of the run
            return Reply(0, None, f"{type(error).__name__}: {first_line(error)}")
        except (KeyboardInterrupt, SystemExit) as error:  # would end the thread of all requests, and the caller waits
            raise ModelError(f"{self.name} ended with {type(error).__name__}, as sys.exit() does") from error
        if not isinstance(text, str):
            return Reply(0, None, f"returned {type(text).__name__}, not a string")
        return Reply(0, text)


class LocalChat(ChatModel):
    """Replies of a local model: greedy at temperature 0, else sampled, every batch of a call from a fixed seed.

    Args:
        generate: by default temperature 0 and at most 1000 tokens.
        batch: prompts per pass, padded on the left.
    """

    def __init__(self, model: TransformersModel, generate: GenerateOptions | None = None, batch: int = 8) -> None:
        turns = bool(getattr(model.tokenizer, "chat_template", None))
        super().__init__(ModelInfo(name=model.name, engine=type(self).__name__, takes_turns=turns))
        self.model, self.batch = model, batch
        self._options = (generate or GenerateOptions()).filled()

    def at(self, generate: GenerateOptions) -> LocalChat:
        return self.counted_here(LocalChat(self.model, generate, self.batch))

    def choosing(self) -> LocalChat:
        return self.counted_here(_Choosing(self.model, self._options, self.batch))

    def identify(self) -> ModelInfo:
        """The model's identity (:mod:`unslant.models.hf.identity`), and how it generates."""
        config = getattr(self.model.model, "generation_config", None)
        how = {"generation config": json.dumps(config.to_dict(), sort_keys=True, default=str) if config else ""}
        identity = {**self.model.identify().identity, **how, **self._options.identity}
        notes = folding(self.model.tokenizer, str(self.model.tokenizer.chat_template)) if self.info.takes_turns else ()
        self._info = replace(self._info, identity=identity, facts={"chat_template": notes})
        return self._info

    def describe(self) -> ModelInfo:
        return self.identify()

    @property
    def foreign_code(self) -> tuple[str, ...]:
        return self.model.foreign_code

    def generate_at(self, prompts: Sequence[Prompt], places: Sequence[int]) -> Iterator[Reply]:
        """The replies to the prompts at some places, as :meth:`generate` gives them to all: in the same batches."""
        # A batch's prompts decide what is sampled, so a resumed run must not form new batches.
        yield from self._counted(self.replies_to(prompts, frozenset(places)), prompts)

    def replies_to(self, prompts: Sequence[Prompt], places: Collection[int] | None = None) -> Iterator[Reply]:
        places = range(len(prompts)) if places is None else places
        encoded = [self.model.encoder.ids(prompt) for prompt in prompts]
        for prompt, ids in zip(prompts, encoded, strict=True):
            self.model.check_known(prompt, ids)
        by_length = sorted(range(len(prompts)), key=lambda i: len(encoded[i]))
        for start in range(0, len(by_length), self.batch):
            part = by_length[start : start + self.batch]
            if not any(index in places for index in part):
                continue
            for index, reply in zip(part, self._generate([encoded[i] for i in part], seed=start), strict=True):
                if index in places:
                    yield replace(reply, index=index, input_tokens=len(encoded[index]))

    def _generate(self, rows: list[list[int]], seed: int) -> list[Reply]:
        """The reply to each prompt; batches with one seed would repeat each other's samples of equal prompts.

        Raises:
            ModelError: if a prompt leaves no room for a reply, or memory runs out.
        """
        import torch

        tokenizer, longest = self.model.tokenizer, max(map(len, rows))
        room = min(int(self._options.max_tokens or 0), self.model.limit - longest)
        if room < 1:
            raise ModelError(f"{self.name}: a prompt of {longest} tokens leaves no room for a reply: use fewer shots")
        given: Any = getattr(getattr(self.model.model, "generation_config", None), "eos_token_id", None)
        ends = {*np.atleast_1d(given).tolist(), *self.model.encoder.end_of_turn, tokenizer.eos_token_id} - {None}
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0
        ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows], device=self.model.device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=self.model.device)
        settings = {"max_new_tokens": room, "pad_token_id": pad, "eos_token_id": sorted(ends) or None, **_PLAIN}
        sampling = {"do_sample": True, "temperature": self._options.temperature, "top_k": 0, "top_p": 1.0}
        settings |= sampling if self._options.temperature else {"do_sample": False}
        out = self.model.generated(ids, mask, seed, {**settings, **dict.fromkeys(_DROPPED)})
        replies = []
        for row in out[:, longest:].tolist():
            n = next((n for n, token in enumerate(row, 1) if token in ends), None)
            text = str(tokenizer.decode(row[: n and n - 1], skip_special_tokens=True))
            replies.append(Reply(0, text, cut=n is None, output_tokens=n or len(row)))
        return replies


class _Choosing(LocalChat):
    """A local model that can only reply with one of the continuations; they are scored, not generated."""

    def identify(self) -> ModelInfo:
        info = super().identify()
        self._info = replace(info, identity={**info.identity, "reply": "the most probable continuation"})
        return self._info

    def replies_to(self, prompts: Sequence[Prompt], places: Collection[int] | None = None) -> Iterator[Reply]:
        indices = sorted(range(len(prompts)) if places is None else places)
        # Scored to the end of the turn: "N" begins "NONE", and "1" begins "10".
        turns = [replace(prompts[index], to_end=True) for index in indices]
        encoded = self.model.encoder.encode(turns)  # not the model's own, which refuses all if one is too long
        fitting = [at for at, item in enumerate(encoded) if item.longest <= self.model.limit]
        for at in set(range(len(indices))).difference(fitting):
            tokens = len(encoded[at].context)
            yield Reply(indices[at], None, f"a conversation of {tokens} tokens leaves no room for a reply")
        for scored in self.model.score([turns[at] for at in fitting], [encoded[at] for at in fitting]):
            index = indices[fitting[scored.index]]
            best = int(np.asarray(scored.logprobs).argmax())  # a local model scores every prompt, or raises an error
            yield Reply(index, prompts[index].continuations[best].strip(), output_tokens=1)


def load_chat(name: str, options: ModelOptions, generate: GenerateOptions) -> LocalChat:
    """A local model that generates; see :mod:`unslant.models.open`."""
    from unslant.models.hf import loading

    if generate.inspect:
        raise InputError("--inspect applies only to models behind inspect: leave it out for a local one")
    return LocalChat(loading.load_model(name, options), generate, options.connections or CONNECTIONS)


class StoredChat(Stored[ChatModel], ChatModel):
    """Wraps a chat model; replies that the store knows come from there, and first.

    A reply's key is the model's identity, the prompt, and its number among the equal prompts of a call: equal prompts
    are different samples. Every reply is written before it is yielded, so however the process ends, nothing that
    arrived is asked for again. Failed requests are not kept.
    """

    def __init__(self, model: ChatModel, store: Store, run: str = "", *, offline: bool = False) -> None:
        super().__init__(model, store, run, offline=offline)
        self.answerers = model.answerers  # shared, so that stored replies count there too
        self._counts = self  # copies made by `at` count their recalled replies here

    def at(self, generate: GenerateOptions) -> StoredChat:
        return self._storing(self.model_asked.at(generate))

    def choosing(self) -> StoredChat:
        return self._storing(self.model_asked.choosing())

    def _storing(self, model: ChatModel) -> StoredChat:
        """The same store in front of a variant of the model."""
        other = StoredChat(model, self.store, self.run, offline=self.offline)
        other._counts = self._counts
        return self.counted_here(other)

    def identify(self) -> ModelInfo:
        self._identity = self.store.known_as(self.model_asked.identify().identity)
        return self.info

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        try:
            yield from super().generate(prompts)
        except ModelChanged as change:
            raise change.with_store() from None

    def _note(self, reply: Reply, prompt: Prompt) -> None:
        if reply.recalled:  # the wrapped model has noted the others, before they were stored
            super()._note(reply, prompt)

    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        identity = self.identify().identity
        if why := self._why_apart():
            warnings.warn(f"{self.name}: {why}; its replies are neither stored nor reused", stacklevel=3)
            yield from self.model_asked.generate(prompts)
            return
        stored_pass = self.store.open_pass(KeptReply, identity, keys_of(identity, _contents(prompts)), self.run)
        stored = stored_pass.stored()
        for position, row in stored.items():
            self._counts.recalled += 1
            yield Reply(position, row.text, "", row.declined, *row.tokens, recalled=True, by=row.by, cut=row.cut)
        missing = [i for i in range(len(prompts)) if i not in stored]
        if missing and self.offline:
            raise self._not_stored(len(missing), len(prompts), "replies")
        done = len(stored)
        for reply in self.model_asked.generate_at(prompts, missing) if missing else ():
            if reply.text is not None:
                done += 1
                tokens = (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens)
                row = KeptReply(reply.text, reply.declined, tokens, reply.by, reply.cut)
                stored_pass.write([(reply.index, row)], done)
            yield reply


def _contents(prompts: Sequence[Prompt]) -> Iterator[bytes]:
    """What distinguishes each reply: the prompt, and how many equal ones come before it."""
    seen: Counter[Prompt] = Counter()
    for prompt in prompts:
        words = replace(prompt, continuations=(), group="")
        messages = [(message.role, message.content) for message in prompt.messages]
        yield json.dumps(["reply", prompt.text, messages, seen[words]]).encode()
        seen[words] += 1
