"""From prompts to token ids, with token boundaries decided on whole tokenizations.

A continuation is never tokenized by itself: prompt and continuation are tokenized as one text, and the tokens after
the beginning that all candidates of the prompt share are the ones scored. Whether a label takes a space, or melts into
the bracket before it, is thus the tokenizer's decision and not ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.errors import ModelError
from unslant.prompts.prompt import Prompt

Ids = NDArray[np.int32]

_CUT = re.compile(r"(?<=[^\s]\n)(?=[^\s])")
_ANCHOR = "a\n"
_MAX_CACHED_PIECES = 200_000
_VERIFIED_PROMPTS = 16


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of one prompt: ``context`` (shape ``(k,)``) and the tokens to be scored after it, per candidate."""

    context: Ids
    candidates: tuple[Ids, ...]


class Encoder:
    """Tokenizes prompts for one tokenizer.

    Texts are cut after line ends where the tokenizer provably never joins what stands on both sides (no vocabulary
    entry holds a line end followed by a visible character), and the pieces are cached: the orders of one question are
    made of the same few lines. Every call checks a sample of its prompts against tokenizing them whole, and a
    tokenizer that fails the proof or the check is used on whole texts from then on.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._pieces: dict[str, Ids] = {}
        plain = tokenizer("a", add_special_tokens=False)["input_ids"]
        special = tokenizer("a", add_special_tokens=True)["input_ids"]
        self._prefix = _leading_extra(special, plain)
        self._anchor_ids = tokenizer(_ANCHOR, add_special_tokens=False)["input_ids"]
        self._by_line = bool(getattr(tokenizer, "is_fast", False)) and _never_joins_lines(tokenizer)

    def text_of(self, prompt: Prompt) -> str:
        """The prompt as one text, its chat messages written with the tokenizer's chat template.

        Raises:
            ModelError: if the prompt is a chat and the tokenizer has no chat template.
        """
        if not prompt.messages:
            return prompt.text
        if not getattr(self.tokenizer, "chat_template", None):
            raise ModelError("this model's tokenizer has no chat template: leave out --chat")
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # chat templates are model-supplied programs and raise whatever they like
            raise ModelError(f"this model's chat template refuses the conversation: {error}") from error
        return str(text) + prompt.text

    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Token ids of every prompt, in order.

        Raises:
            ModelError: if a continuation is empty, or leaves no token of context before it.
        """
        texts = [self.text_of(prompt) for prompt in prompts]
        if self._by_line and not self._lines_equal_whole(prompts, texts):
            self._by_line = False
        return [self._encode_one(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]

    def _encode_one(self, prompt: Prompt, text: str) -> Encoded:
        # A written chat already begins with whatever special tokens its template wants.
        prefix = [] if prompt.messages else self._prefix
        head, tail = self._split(text)
        context = self._join(prefix, head, tail)
        whole = [self._join(prefix, head, tail + continuation) for continuation in prompt.continuations]
        shared = min(common_prefix(context, ids) for ids in whole)
        shared = min(shared, *(len(ids) - 1 for ids in whole))
        if shared < 1 or "" in prompt.continuations:
            raise ModelError(f"prompt of {prompt.group!r}: nothing stands before the answer, or the answer is empty")
        return Encoded(whole[0][:shared], tuple(ids[shared:] for ids in whole))

    def _split(self, text: str) -> tuple[list[str], str]:
        if not self._by_line:
            return [], text
        *head, tail = _CUT.split(text)
        return head, tail

    def _join(self, prefix: list[int], head: Iterable[str], tail: str) -> Ids:
        parts = [np.asarray(prefix, dtype=np.int32)]
        first = True
        for piece in (*head, tail):
            parts.append(self._piece(piece, first))
            first = False
        return np.concatenate(parts)

    def _piece(self, piece: str, first: bool) -> Ids:
        key = piece if first else _ANCHOR + piece
        ids = self._pieces.get(key)
        if ids is None:
            if len(self._pieces) >= _MAX_CACHED_PIECES:
                self._pieces.clear()
            ids = np.asarray(self.tokenizer(key, add_special_tokens=False)["input_ids"], dtype=np.int32)
            ids = ids if first else ids[len(self._anchor_ids) :]
            self._pieces[key] = ids
        return ids

    def _lines_equal_whole(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> bool:
        step = max(1, len(texts) // _VERIFIED_PROMPTS)
        for prompt, text in zip(prompts[::step], texts[::step], strict=True):
            full = text + prompt.continuations[-1]
            head, tail = self._split(full)
            whole = self.tokenizer(full, add_special_tokens=False)["input_ids"]
            if self._join([], head, tail).tolist() != list(whole):
                return False
        return True


def common_prefix(a: Ids, b: Ids) -> int:
    m = min(len(a), len(b))
    different = a[:m] != b[:m]
    return int(different.argmax()) if different.any() else m


def _leading_extra(special: list[int], plain: list[int]) -> list[int]:
    """What the tokenizer puts before a text (a beginning-of-sequence token, usually)."""
    for start in range(len(special) - len(plain) + 1):
        if special[start : start + len(plain)] == plain:
            return special[:start]
    return []


def _never_joins_lines(tokenizer: Any) -> bool:
    """Whether no vocabulary entry holds a line end followed by anything but white space."""
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    if type(model).__name__ not in ("BPE", "WordLevel"):
        return False
    line_ends = ("\n", "Ċ")
    blanks = {"\n", "Ċ", "\r", "č", " ", "Ġ", "▁", "\t", "ĉ"}
    for token in tokenizer.get_vocab():
        for line_end in line_ends:
            at = token.find(line_end)
            if at != -1 and any(ch not in blanks for ch in token[at:]):
                return False
    return True
