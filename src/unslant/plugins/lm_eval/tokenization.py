"""Prompts as tokens, by lm-eval's own code."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from jinja2.exceptions import SecurityError
from lm_eval.models.huggingface import HFLM

from unslant.errors import ModelError
from unslant.models.base import Encoded
from unslant.models.hf.tokenization import Encoder
from unslant.prompts import Prompt
from unslant.prompts.chat_templates import written_chat

_CHECKED = 16
"""How many texts are tokenized in both ways at first, and the interval between later ones."""


class _Tokenizer(HFLM):  # type: ignore[misc]  # the library is not typed
    """lm-eval's transformers backend, asked for the tokens that it would run.

    Texts are tokenized by lines, which repeat from order to order, where unslant's encoder has shown that this is the
    same; a sample is compared with lm-eval's own way.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__(pretrained=model, tokenizer=copy.deepcopy(tokenizer))  # it may add a token for padding
        self._by_line: Encoder | None = Encoder(self.tokenizer, "allow")
        self._calls = 0
        self._begin = self.tokenizer.decode(self.prefix_token_id)

    @lru_cache(maxsize=64)  # noqa: B019  # the continuations of one context do not tokenize it again
    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **options: Any) -> list[int]:
        """As lm-eval's."""
        usual = self._by_line and add_special_tokens is None and not options and not string.startswith(self._begin)
        found = self._by_line.whole(string) if self._by_line and usual else None
        self._calls += 1
        if found is not None and self._calls > _CHECKED and self._calls % _CHECKED:
            return found
        own: list[int] = super().tok_encode(string, add_special_tokens, **options)
        if found is not None and found != own:
            self._by_line = None
        return own

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """As lm-eval's, once the template has shown that it stays within bounds."""
        try:
            written_chat(self.tokenizer, chat_history, prompt=add_generation_prompt)
        except SecurityError as error:
            raise ModelError(f"this model's chat template: {error}") from None
        except Exception:  # lm-eval tries again without the system message, or raises the same
            pass
        return str(super().apply_chat_template(chat_history, add_generation_prompt))

    def _loglikelihood_tokens(self, requests: Any, **_: Any) -> list[tuple[float, bool]]:
        self.tokens = [(context, continuation) for _, context, continuation in requests]
        return []

    def pairs(self, context: str, continuations: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Tokens of the context and of each continuation."""
        self.loglikelihood([SimpleNamespace(args=(context, text)) for text in continuations], disable_tqdm=True)
        return self.tokens


class HarnessEncoder:
    """Tokenizes as lm-eval's transformers backend does; takes the place of unslant's own encoder.

    White space at the end of a context goes to the continuation, what spells a special token becomes one, and contexts
    longer than the model takes are cut on the left.

    Attributes:
        cut: groups (questions) whose prompts were cut.
        spelling, special_tokens: see :class:`~unslant.models.hf.tokenization.Encoder`; not looked for here.
    """

    special_tokens = "allow"

    def __init__(self, model: Any) -> None:
        self.backend = _Tokenizer(model.model, model.tokenizer)
        self.spelling: set[str] = set()
        self.cut: set[str] = set()

    def pieces(self, prompt: Prompt) -> list[Prompt]:
        """The prompt; or one for each continuation, where contexts are cut and each leaves another part of it."""
        bytes_ = len(prompt.text.encode()) + max(len(text.encode()) for text in prompt.continuations)
        if len(prompt.continuations) == 1 or bytes_ + 8 < self.backend.max_length:  # a token holds a byte at least
            return [prompt]
        pairs = self.backend.pairs(prompt.text, prompt.continuations)
        lengths = {len(continuation) for _, continuation in pairs}
        if len(lengths) == 1 or len(pairs[0][0]) + max(lengths) <= self.backend.max_length + 1:
            return [prompt]
        return [replace(prompt, continuations=(text,)) for text in prompt.continuations]

    def encode(self, prompts: Sequence[Prompt], *, apart: bool = True) -> list[Encoded]:
        """Token ids of every prompt, in order; continuations that begin one another are scored as lm-eval scores them.

        Raises:
            ModelError: if a continuation has no token of its own, or more than the model takes.
        """
        return [self._encoded(prompt) for prompt in prompts]

    def _encoded(self, prompt: Prompt) -> Encoded:
        pairs = self.backend.pairs(prompt.text, prompt.continuations)
        longest = self.backend.max_length + 1
        contexts = set()
        for context, continuation in pairs:
            room = longest - len(continuation)
            if not continuation or room < 1:
                raise ModelError(f"question {prompt.group!r}: a continuation of {len(continuation)} tokens")
            if len(context) > room:
                self.cut.add(prompt.group)
            contexts.add(tuple(context[-room:]))
        if len(contexts) > 1:
            raise ModelError(f"question {prompt.group!r}: its continuations leave different parts of its context")
        return Encoded(np.asarray(contexts.pop(), np.int32), tuple(np.asarray(found, np.int32) for _, found in pairs))
