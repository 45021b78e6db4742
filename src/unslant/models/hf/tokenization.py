"""From prompts to token ids, with token boundaries decided on whole tokenizations.

A continuation is never tokenized by itself: prompt and continuation are tokenized as one text, and the tokens after
the beginning that all candidates of the prompt share are the ones scored. Whether a label takes a space, or melts into
the bracket before it, is thus the tokenizer's decision and not ours.

Text that spells a special token (``</s>``, ``<|im_end|>``) stays text, see :mod:`unslant.models.hf.literal`; only what
a chat template itself writes becomes one. transformers and lm-evaluation-harness make tokens of it in questions too:
``special_tokens="allow"`` does as they do. Texts without any are tokenized as they tokenize them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from unslant.errors import InputError, ModelError, first_line
from unslant.models.base import Encoded, Ids
from unslant.models.hf.literal import Literal
from unslant.presentations.labels import ALPHABETS
from unslant.prompts.chat_templates import written_chat
from unslant.prompts.prompt import Prompt

_CUT = re.compile(r"(?<=[^\s]\n)(?=[^\s])")
SPECIAL_TOKENS = ("text", "allow")
_MAX_CACHED_PIECES = 200_000
_VERIFIED_PROMPTS = 16
_SAID = "unslant"


class Encoder:
    """Tokenizes prompts for one tokenizer.

    Texts are cut after line ends where the tokenizer provably never joins the text on both sides, and the pieces are
    cached: the orders of one question are made of the same few lines. The proof: no vocabulary entry holds a line end
    followed by a visible character, so no merge crosses the cut; and how a line begins can depend on no more than
    what comes right before it, so every line is tokenized behind the line end and the character that precede it.
    Every call checks a sample of its prompts against tokenizing them whole, and a tokenizer that fails the proof or the
    check is used on whole texts from then on.

    Continuations whose tokens begin those of another one are refused: P(10) could never exceed P(1).

    Args:
        special_tokens: ``text``: what a prompt spells is text, where the tokenizer allows it (fast ones do); ``allow``:
            it becomes tokens.

    Attributes:
        spelling: groups (questions) of the prompts that spell special tokens.
    """

    def __init__(self, tokenizer: Any, special_tokens: str = "text") -> None:
        if special_tokens not in SPECIAL_TOKENS:
            raise InputError(f"special tokens {special_tokens!r}: use {' or '.join(SPECIAL_TOKENS)}")
        self.tokenizer = tokenizer
        self.spelling: set[str] = set()
        self._literal = Literal(tokenizer)
        self._as_text = special_tokens == "text"
        self._pieces: dict[tuple[str, str], Ids] = {}
        special = tokenizer("a", add_special_tokens=True)["input_ids"]
        self._prefix = _leading_extra(special, self._ids("a"))
        self._adds_at_end = list(special) != [*self._prefix, *self._ids("a")]
        self._by_line = bool(getattr(tokenizer, "is_fast", False)) and _never_joins_lines(tokenizer)
        # What follows a token that swallows white space, or is alone before a line end, is another matter.
        added = [t for t in getattr(tokenizer, "added_tokens_decoder", {}).values() if t.content]
        self._no_cut_after = tuple(token.content for token in added)
        self._no_cut_before = tuple(token.content for token in added if token.lstrip)

    @property
    def special_tokens(self) -> str:
        """``text`` or ``allow``: what becomes of special tokens that a prompt spells."""
        return "text" if self._as_text and (not self.spelling or self._literal.allowed) else "allow"

    def ids(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt that is to be continued, without its continuations."""
        text, literal = self._written(prompt)
        prefix = [] if prompt.messages else self._prefix
        return [*prefix, *(self._literal.ids(text) if literal else self._ids(text))]

    def _written(self, prompt: Prompt) -> tuple[str, bool]:
        """The prompt as one text, and whether it is for :class:`Literal` to tokenize."""
        texts = [prompt.text, *(message.content for message in prompt.messages), *prompt.continuations]
        if not self._literal.spelled(texts):
            return self.text_of(prompt), False
        self.spelling.add(prompt.group)
        if self.special_tokens != "text":
            return self.text_of(prompt), False
        messages, mark = self._literal.marked(prompt.messages)
        written = self.text_of(replace(prompt, text="", messages=tuple(messages))) if messages else ""
        return self._literal.named(written, mark) + prompt.text, True

    def whole(self, text: str) -> list[int] | None:
        """Token ids of a text with what the tokenizer puts before it, by cached lines; None where that is not safe."""
        if not self._by_line or self._adds_at_end:
            return None
        return [*self._prefix, *np.concatenate(list(self._each(self._split(text)))).tolist()]

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
            text = written_chat(self.tokenizer, messages, prompt=True)
        except Exception as error:  # chat templates are model-supplied programs and raise anything
            raise ModelError(f"this model's chat template refuses the conversation: {first_line(error)}") from error
        return text + prompt.text

    def encode(self, prompts: Sequence[Prompt], *, apart: bool = True) -> list[Encoded]:
        """Token ids of every prompt, in order.

        Args:
            apart: the continuations compete, so none may begin another: refuse such prompts.

        Raises:
            ModelError: if a continuation is empty, leaves no token of context before it, or (``apart``) begins another.
        """
        written = [self._written(prompt) for prompt in prompts]
        if self._by_line:
            usual = [(p, text) for p, (text, literal) in zip(prompts, written, strict=True) if not literal]
            self._by_line = self._lines_equal_whole([p for p, _ in usual], [text for _, text in usual])
        found = [self._encode_one(prompt, *text) for prompt, text in zip(prompts, written, strict=True)]
        if not apart:
            return found
        told_apart: set[tuple[bytes, ...]] = set()
        for prompt, item in zip(prompts, found, strict=True):
            tokens = tuple(ids.tobytes() for ids in item.candidates)
            if tokens not in told_apart:
                self._tell_apart(prompt, item)
                told_apart.add(tokens)
        return found

    def _tell_apart(self, prompt: Prompt, item: Encoded) -> None:
        pair = _begins_another(item)
        if pair is None:
            return
        short, long = (prompt.continuations[i].strip() for i in pair)
        works = [
            name
            for name, other in _other_labels(prompt)
            if _begins_another(self._encode_one(other, *self._written(other))) is None
        ]
        use = f"use --labels={works[0]}" if works else "use labels of one token each"
        raise ModelError(
            f"labels {short!r} and {long!r}: this model's tokenizer begins {long!r} with all the tokens of {short!r}, "
            f"so {long!r} can never be the more probable one; {use}, or score labels to their end (--to-end=True)"
        )

    def _ending(self, prompt: Prompt) -> str:
        """What ends an answer: in a chat, what the template writes behind the assistant's words."""
        if prompt.messages:
            with suppress(Exception):  # some templates refuse this; they are programs, and raise what they like
                said = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _SAID}]
                written = written_chat(self.tokenizer, said, prompt=False)
                return written[written.rindex(_SAID) + len(_SAID) :].rstrip() or "\n"
        return "\n"

    def _encode_one(self, prompt: Prompt, text: str, literal: bool = False) -> Encoded:
        # A written chat already begins with the special tokens that its template wants.
        prefix = [] if prompt.messages else self._prefix
        *head, tail = [text] if literal else self._split(text)
        start = np.concatenate([np.asarray(prefix, dtype=np.int32), *self._each(head)])
        before = head[-1][-2:] if head else ""
        ending = self._ending(prompt) if prompt.to_end else ""
        if literal:
            ending = self._literal.named(ending, "\0")
        context, *whole = (
            np.asarray(self._literal.ids(tail + end), np.int32) if literal else self._piece(before, tail + end)
            for end in ("", *(continuation + ending for continuation in prompt.continuations))
        )
        shared = min(common_prefix(context, ids) for ids in whole)
        shared = min(shared, *(len(ids) - 1 for ids in whole))
        if len(start) + shared < 1 or "" in prompt.continuations:
            raise ModelError(f"prompt of {prompt.group!r}: nothing precedes the answer, or the answer is empty")
        return Encoded(np.concatenate([start, whole[0][:shared]]), tuple(ids[shared:] for ids in whole))

    def _split(self, text: str) -> list[str]:
        """Pieces of ``text`` that may be tokenized one by one; at least one."""
        if not self._by_line:
            return [text]
        pieces, start = [], 0
        for match in _CUT.finditer(text):
            cut = match.start()
            if text.endswith(self._no_cut_after, 0, cut - 1) or text.startswith(self._no_cut_before, cut):
                continue
            pieces.append(text[start:cut])
            start = cut
        return [*pieces, text[start:]]

    def _each(self, pieces: Sequence[str]) -> Iterator[Ids]:
        before = ""
        for piece in pieces:
            yield self._piece(before, piece)
            before = piece[-2:]

    def _piece(self, before: str, piece: str) -> Ids:
        """Token ids of ``piece`` where it follows ``before``: a character and a line end, or nothing."""
        ids = self._pieces.get((before, piece))
        if ids is None:
            if len(self._pieces) >= _MAX_CACHED_PIECES:
                self._pieces.clear()
            cut = len(self._piece("", before)) if before else 0
            ids = np.asarray(self._ids(before + piece)[cut:], dtype=np.int32)
            self._pieces[before, piece] = ids
        return ids

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _lines_equal_whole(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> bool:
        step = max(1, len(texts) // _VERIFIED_PROMPTS)
        return all(
            np.concatenate(list(self._each(self._split(text + prompt.continuations[-1])))).tolist()
            == self._ids(text + prompt.continuations[-1])
            for prompt, text in zip(prompts[::step], texts[::step], strict=True)
        )


def _begins_another(item: Encoded) -> tuple[int, int] | None:
    """Two candidates where the tokens of one begin, or are, those of the other."""
    order = sorted(range(len(item.candidates)), key=lambda i: item.candidates[i].astype(">i4").tobytes())
    for one, other in pairwise(order):
        if common_prefix(item.candidates[one], item.candidates[other]) == len(item.candidates[one]):
            return one, other
    return None


def _other_labels(prompt: Prompt) -> Iterator[tuple[str, Prompt]]:
    """The same prompt with the labels of every named alphabet, by its name."""
    conts = prompt.continuations
    shapes = [
        {text.replace(label, "\0", 1) for text, label in zip(conts, alphabet, strict=False)}
        for alphabet in ALPHABETS.values()
    ]
    lead = conts[0][: len(conts[0]) - len(conts[0].lstrip())]
    shape = next((next(iter(found)) for found in shapes if len(found) == 1), lead + "\0")
    for name, alphabet in ALPHABETS.items():
        labels = tuple(shape.replace("\0", label) for label in alphabet[: len(conts)])
        if len(labels) == len(conts):
            yield name, replace(prompt, continuations=labels)


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
    """Whether every text has a token boundary after a line end that something visible follows.

    Decided for merges (BPE) and whole words, with normalizers that work on single characters.
    """
    backend = tokenizer.backend_tokenizer
    if type(backend.model).__name__ not in ("BPE", "WordLevel") or not _local(_state(backend.normalizer)):
        return False
    return not any(_joins(token) for token in tokenizer.get_vocab())


def _state(part: Any) -> dict[str, Any]:
    return dict(json.loads(part.__getstate__())) if part is not None else {"type": "Sequence", "normalizers": []}


def _local(normalizer: dict[str, Any]) -> bool:
    kind = normalizer["type"]
    if kind == "Sequence":
        return all(_local(part) for part in normalizer["normalizers"])
    if kind == "Replace":
        return len(normalizer["pattern"].get("String", "")) == 1 and "\n" not in normalizer["pattern"]["String"]
    return kind in ("Prepend", "NFC", "NFD", "NFKC", "NFKD", "Lowercase")


def _joins(token: str) -> bool:
    """Whether a vocabulary entry, plain or in GPT-2's letters for bytes, goes on visibly after a line end."""
    if "\n" in token:
        return bool(token[token.index("\n") :].strip())
    if "Ċ" not in token:
        return False
    after = token[token.index("Ċ") :]
    try:
        return bool(bytes(_BYTE_OF[letter] for letter in after).decode().strip())
    except (KeyError, UnicodeDecodeError):
        return True


def _byte_letters() -> dict[str, int]:
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTE_OF = _byte_letters()
"""The byte each letter of a byte-level vocabulary represents (GPT-2's table)."""


def distinct_sequences(item: Encoded) -> tuple[list[Ids], list[int]]:
    """The distinct token sequences to be run for one prompt, and which of them each candidate is read from.

    The last token of a candidate is read, not run.
    """
    found: dict[bytes, int] = {}
    sequences: list[Ids] = []
    which = []
    for ids in item.candidates:
        which.append(found.setdefault(ids[:-1].tobytes(), len(sequences)))
        if which[-1] == len(sequences):
            sequences.append(np.concatenate([item.context, ids[:-1]]) if len(ids) > 1 else item.context)
    return sequences, which
