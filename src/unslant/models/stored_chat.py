"""A chat model that remembers: replies that the store knows are not asked for again, and each is kept as it comes."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unslant.errors import ModelError
from unslant.models.base import ModelInfo
from unslant.models.chat import ChatModel, Reply
from unslant.models.options import GenerateOptions
from unslant.models.stored import Stored, keys_of
from unslant.prompts import Prompt
from unslant.store import KeptReply, Store


class StoredChat(Stored, ChatModel):
    """Wraps a chat model; replies that the store knows come from there, and first.

    A reply is known by the model's identity, the prompt, and which of the equal prompts of a call it answers: equal
    prompts are different samples. Every reply is written before it is given out, so that however the process ends,
    nothing that arrived is asked for again. Failed requests are not kept.

    Args:
        model: the model that is asked.
        store: where replies are kept.
        run: id of the run on whose behalf it is asked.
        offline: a model that is not local is not asked; every reply must be in the store.
    """

    def __init__(self, model: ChatModel, store: Store, run: str = "", *, offline: bool = False) -> None:
        super().__init__(model.info)
        self.model_asked: ChatModel = model
        self.store, self.run, self.offline = store, run, offline and model.info.remote
        self.answerers = model.answerers  # so that it knows of those that are stored
        self._counts = self  # those of copies made by `at` are counted here

    def at(self, generate: GenerateOptions) -> StoredChat:
        return self._storing(self.model_asked.at(generate))

    @property
    def takes_turns(self) -> bool:
        return self.model_asked.takes_turns

    def choosing(self) -> StoredChat:
        return self._storing(self.model_asked.choosing())

    def _storing(self, model: ChatModel) -> StoredChat:
        """The same store before another way of asking the model."""
        other = StoredChat(model, self.store, self.run, offline=self.offline)
        other._counts = self._counts
        return self._accounted_here(other)

    def identify(self) -> ModelInfo:
        self._identity = self.store.known_as(self.model_asked.identify().identity)
        return self.info

    def _note(self, reply: Reply, prompt: Prompt) -> None:
        if reply.recalled:  # of the others the model asked has taken note, before they were stored
            super()._note(reply, prompt)

    def _replies(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        identity = self.identify().identity
        if foreign := self.model_asked.foreign_code:
            warnings.warn(
                f"{self.name}: code that comes from no installed library acts on it: {', '.join(foreign[:3])}; its "
                "replies are neither stored nor recalled",
                stacklevel=3,
            )
            yield from self.model_asked.generate(prompts)
            return
        found = self.store.open_pass(KeptReply, identity, keys_of(identity, _contents(prompts)), self.run)
        known = found.stored()
        for position, kept in known.items():
            self._counts.recalled += 1
            yield Reply(position, kept.text, "", kept.declined, *kept.tokens, recalled=True, by=kept.by, cut=kept.cut)
        missing = [i for i in range(len(prompts)) if i not in known]
        if missing and self.offline:
            raise ModelError(
                f"{self.name}: offline, and {len(missing):,} of {len(prompts):,} replies are not in the store; leave "
                "out --offline"
            )
        done = len(known)
        for reply in self.model_asked.generate_at(prompts, missing) if missing else ():
            if reply.text is not None:
                tokens = (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens)
                done += 1
                found.write([(reply.index, KeptReply(reply.text, reply.declined, tokens, reply.by, reply.cut))], done)
            yield reply


def _contents(prompts: Sequence[Prompt]) -> Iterator[bytes]:
    """The key that distinguishes each reply: the prompt, and how many equal ones come before it."""
    seen: Counter[Prompt] = Counter()
    for prompt in prompts:
        asked = replace(prompt, continuations=(), group="")
        messages = [(message.role, message.content) for message in prompt.messages]
        yield json.dumps(["reply", prompt.text, messages, seen[asked]]).encode()
        seen[asked] += 1
