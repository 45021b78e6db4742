"""lm-eval's transformers backend, extended both ways."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from jinja2.exceptions import SecurityError
from lm_eval.api.filter import Filter
from lm_eval.models.huggingface import HFLM

from unslant.errors import ModelError
from unslant.models.base import Encoded
from unslant.models.hf.chats import written_chat
from unslant.models.hf.model import TransformersModel
from unslant.models.hf.tokenization import Encoder
from unslant.presentations import ALPHABETS, labels_for
from unslant.prompts import Prompt
from unslant.replies import extract_labels
from unslant.responses.importers.lm_eval import document_options

_MOST_LABELS = 10


class TreeLM(HFLM):  # type: ignore[misc]  # the library is not typed
    """lm-eval's transformers backend (``--model unslant --model_args pretrained=NAME``), scoring with the prefix tree.

    All requests of a call share the beginnings of their prompts: worked examples, a passage, a question in several
    orders. Log-probabilities equal those of ``--model hf``. They also decide whether a continuation is greedy (what the
    model would generate) if it has more than half of the probability, or less than another one of its context; for the
    remaining requests, lm-eval's own code is run to decide it.
    """

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], disable_tqdm: bool = False, **options: Any
    ) -> list[tuple[float, bool]]:
        model = TransformersModel(self.model, self.tokenizer, self.model.config.name_or_path or "model")
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, (_, context, continuation) in enumerate(requests):
            window = context[-max(1, self.max_length + 1 - len(continuation)) :]  # cut on the left, as HFLM does
            groups.setdefault(tuple(window), []).append(place)
        encoded = [
            Encoded(np.array(context, np.int32), tuple(np.array(requests[i][2], np.int32) for i in places))
            for context, places in groups.items()
        ]
        prompts = [Prompt("", (" ",) * len(places), group=str(k)) for k, places in enumerate(groups.values())]
        values, by_group = np.full(len(requests), np.nan), list(groups.values())
        greedy: dict[int, bool] = {}
        for scored in model.score_encoded(prompts, encoded):
            assert scored.logprobs is not None, scored.error
            members, scores = by_group[scored.index], scored.logprobs
            values[members] = scores
            single = [len(requests[place][2]) == 1 for place in members]
            most = max((score for score, one in zip(scores, single, strict=True) if one), default=-np.inf)
            for place, score, one in zip(members, scores, single, strict=True):
                if score > np.log(0.5):
                    greedy[place] = True
                elif one and score < most:
                    greedy[place] = False
        if undecided := [place for place in range(len(requests)) if place not in greedy]:
            batch = [requests[place] for place in undecided]
            answers = super()._loglikelihood_tokens(batch, disable_tqdm=True, **options)
            greedy |= {place: bool(is_greedy) for place, (_, is_greedy) in zip(undecided, answers, strict=True)}
        results = [(float(value), greedy[place]) for place, value in enumerate(values)]
        for (key, _, _), result in zip(requests, results, strict=True):
            self.cache_hook.add_partial("loglikelihood", key, result)
        return results


class ReadLabel(Filter):  # type: ignore[misc]
    """The label that a reply gives, read by unslant's rules; ``[invalid]`` where it gives none or several.

    In a task: ``filter_list: [{name: read, filter: [{function: unslant}, {function: take_first}]}]``.
    """

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        """Labels of the replies of each document, whose options are expected under the usual names."""
        return [
            [self._label(reply, document_options(doc)) for reply in replies]
            for replies, doc in zip(resps, docs, strict=True)
        ]

    def _label(self, reply: str, options: tuple[str, ...]) -> str:
        labels = labels_for(ALPHABETS["A"], len(options) or _MOST_LABELS)
        extracted = extract_labels(reply, labels, options)
        return next(iter(extracted.labels)) if extracted.status == "ok" and len(extracted.labels) == 1 else "[invalid]"


_CHECKED = 16
"""How many texts are tokenized in both ways at first, and the interval between later checks."""


class _Tokenizer(HFLM):  # type: ignore[misc]  # the library is not typed
    """lm-eval's transformers backend, which here only tokenizes.

    Where unslant's encoder has verified that it is the same, texts are tokenized line by line, because lines repeat
    from order to order; a sample is compared with lm-eval's own tokens.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__(pretrained=model, tokenizer=copy.deepcopy(tokenizer))  # it may add a token for padding
        self._by_line: Encoder | None = Encoder(self.tokenizer, as_text=False)
        self._calls = 0
        self._begin = self.tokenizer.decode(self.prefix_token_id)

    @lru_cache(maxsize=64)  # noqa: B019  # the continuations of one context do not tokenize it again
    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **options: Any) -> list[int]:
        """As lm-eval's."""
        plain = add_special_tokens is None and not options and not string.startswith(self._begin)
        by_line = self._by_line.whole(string) if self._by_line and plain else None
        self._calls += 1
        if by_line is not None and self._calls > _CHECKED and self._calls % _CHECKED:
            return by_line
        ids: list[int] = super().tok_encode(string, add_special_tokens, **options)
        if by_line is not None and by_line != ids:
            self._by_line = None  # one difference is enough: from here on, only lm-eval's own way
        return ids

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """As lm-eval's, after a run of the template in our sandbox, which refuses unsafe ones."""
        try:
            written_chat(self.tokenizer, chat_history, prompt=add_generation_prompt)
        except SecurityError as error:
            raise ModelError(f"this model's chat template: {error}") from None
        except Exception:  # lm-eval retries without the system message, or raises the same error
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
    """Tokenizes as lm-eval's transformers backend does, in place of unslant's own encoder.

    White space at the end of a context goes to the continuation, text that spells a special token becomes that token,
    and contexts longer than the model takes are cut on the left.

    Attributes:
        cut: groups (questions) whose prompts were cut.
        chat, spelling, special_tokens: see :class:`~unslant.models.hf.tokenization.Encoder`; not used here.
    """

    special_tokens, chat = "allow", False

    def __init__(self, model: Any) -> None:
        self.backend = _Tokenizer(model.model, model.tokenizer)
        self.spelling: set[str] = set()
        self.cut: set[str] = set()

    def pieces(self, prompt: Prompt) -> list[Prompt]:
        """The prompt; or one for each continuation, if their lengths cut its context differently."""
        bytes_ = len(prompt.text.encode()) + max(len(text.encode()) for text in prompt.continuations)
        if len(prompt.continuations) == 1 or bytes_ + 8 < self.backend.max_length:  # a token is at least one byte
            return [prompt]
        pairs = self.backend.pairs(prompt.text, prompt.continuations)
        lengths = {len(continuation) for _, continuation in pairs}
        if len(lengths) == 1 or len(pairs[0][0]) + max(lengths) <= self.backend.max_length + 1:
            return [prompt]
        return [replace(prompt, continuations=(text,)) for text in prompt.continuations]

    def encode(self, prompts: Sequence[Prompt], *, apart: bool = True) -> list[Encoded]:
        """Token ids of every prompt, in order; continuations that are prefixes of others are scored as by lm-eval.

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
        return Encoded(np.asarray(contexts.pop(), np.int32), tuple(np.asarray(ids, np.int32) for _, ids in pairs))
