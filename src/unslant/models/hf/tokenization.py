"""From prompts to token ids, with token boundaries decided on whole tokenizations.

A continuation is never tokenized by itself: prompt and continuation are tokenized as one text, and the tokens after
the beginning that all candidates of the prompt share are the ones scored. So it is the tokenizer that decides whether a
label takes a space, or merges with the bracket before it.

Text that spells a special token (``</s>``, ``<|im_end|>``) stays text (:class:`Literal`); only those that a chat
template writes become tokens. transformers and lm-evaluation-harness make tokens of it in questions too:
``as_text=False`` does as they do. Texts without any are tokenized as they tokenize them.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant.errors import ModelError
from unslant.models.base import Encoded, Ids
from unslant.models.hf import common_prefix, sort_key
from unslant.presentations import ALPHABETS
from unslant.prompts import Message, Prompt

if TYPE_CHECKING:
    from unslant.models.hf.chats import AnswerPlace

_CUT = re.compile(r"(?<=[^\s]\n)(?=[^\s])")
_MAX_CACHED_PIECES = 200_000
_VERIFIED_PROMPTS = 16
_MARKUP = re.compile(r"<[^\s<>]+>|\[/?[A-Z_]+\]")
_FIRST_MARK, _LAST_MARK = 0xF0000, 0xFFFFD
_PROBE = "Which of these?\nA. one (1)\nB. 2 %  é\nAnswer: "


class Encoder:
    """Tokenizes prompts for one tokenizer.

    Texts are cut after line ends where the tokenizer provably never joins the text on both sides, and the pieces are
    cached: the orders of one question consist of the same few lines. The proof: no vocabulary entry holds a line end
    followed by a visible character, so no merge crosses the cut; and how a line begins can depend only on what comes
    right before it, so every line is tokenized after the line end and the character that precede it. Every call checks
    a sample of its prompts against tokenizing them whole. A tokenizer that fails the proof or the check is used on
    whole texts from then on.

    Continuations whose tokens begin those of another one are refused: P(10) could never exceed P(1).

    Args:
        as_text: special tokens that a prompt spells stay text, where the tokenizer allows it (fast ones do); without
            it they become tokens.

    Attributes:
        spelling: groups (questions) of the prompts that spell special tokens.
        chat: whether the prompts last encoded are chats.
    """

    def __init__(self, tokenizer: Any, as_text: bool = True) -> None:
        self.tokenizer = tokenizer
        self.spelling: set[str] = set()
        self.chat = False
        self._literal = Literal(tokenizer)
        self._as_text = as_text
        self._pieces: dict[tuple[str, str], Ids] = {}
        # The tokens that the tokenizer puts before a text, usually a beginning-of-sequence token.
        special, plain = list(tokenizer("a", add_special_tokens=True)["input_ids"]), self._ids("a")
        starts = range(len(special) - len(plain) + 1)
        self._prefix = next((special[:at] for at in starts if special[at : at + len(plain)] == plain), [])
        self._adds_at_end = special != [*self._prefix, *plain]
        self._by_line = bool(getattr(tokenizer, "is_fast", False)) and _never_joins_lines(tokenizer)
        # Added tokens may swallow the white space next to them, so no cut goes where one could.
        added = [t for t in getattr(tokenizer, "added_tokens_decoder", {}).values() if t.content]
        self._no_cut_after = tuple(token.content for token in added)
        self._no_cut_before = tuple(token.content for token in added if token.lstrip)

    @property
    def special_tokens(self) -> str:
        """``text`` or ``allow``: how special tokens that a prompt spells are read."""
        return "text" if self._as_text and (not self.spelling or self._literal.allowed) else "allow"

    def ids(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt that the model is to reply to freely."""
        text, literal = self._written(prompt, reply=True)
        prefix = [] if prompt.messages else self._prefix
        return [*prefix, *(self._literal.ids(text) if literal else self._ids(text))]

    @property
    def answer_place(self) -> AnswerPlace:
        """See :func:`unslant.models.hf.chats.answer_place`."""
        from unslant.models.hf.chats import answer_place

        return answer_place(self.tokenizer)

    @property
    def end_of_turn(self) -> list[int]:
        """Id of the control token with which the chat template ends an answer, if it does so."""
        with suppress(Exception):  # some templates refuse this, and programs may raise anything
            first = self._ids(self.answer_place.ended.lstrip())[:1]
            return [i for i in first if i in self.tokenizer.added_tokens_decoder]
        return []

    def _written(self, prompt: Prompt, *, reply: bool = False) -> tuple[str, bool]:
        """The prompt as one text, and whether :class:`Literal` must tokenize it."""
        texts = [prompt.text, *(message.content for message in prompt.messages), *prompt.continuations]
        if spelled := self._literal.spelled(texts):
            self.spelling.add(prompt.group)
        named = spelled and self.special_tokens == "text"
        messages, mark = self._literal.marked(prompt.messages) if named else (prompt.messages, "")
        written = ""
        if messages:
            from unslant.models.hf.chats import chat_text

            written = chat_text(self.tokenizer, messages, reply=reply)
        return (self._literal.named(written, mark) if named else written) + prompt.text, named

    def whole(self, text: str) -> list[int] | None:
        """Token ids of a text and of the tokens before every text, by cached lines; None where that is not safe."""
        return None if not self._by_line or self._adds_at_end else [*self._prefix, *self._by_lines(text)]

    def encode(self, prompts: Sequence[Prompt], *, apart: bool = True) -> list[Encoded]:
        """Token ids of every prompt, in order.

        Args:
            apart: the continuations compete, so refuse prompts where one begins another.

        Raises:
            ModelError: if a continuation is empty, leaves no token of context before it, or (``apart``) begins another.
        """
        self.chat = bool(prompts[0].messages) if prompts else self.chat
        written = [self._written(prompt) for prompt in prompts]
        if self._by_line:
            plain = [text + p.continuations[-1] for p, (text, named) in zip(prompts, written, strict=True) if not named]
            sample = plain[:: max(1, len(plain) // _VERIFIED_PROMPTS)]
            self._by_line = all(self._by_lines(text) == self._ids(text) for text in sample)
        encoded = [self._encode_one(prompt, *text) for prompt, text in zip(prompts, written, strict=True)]
        seen: set[tuple[bytes, ...]] = set()
        for prompt, item in zip(prompts, encoded, strict=True) if apart else ():
            tokens = tuple(ids.tobytes() for ids in item.candidates)
            if tokens not in seen and (pair := _begins_another(item)):  # few prompts differ in their tokens
                raise self._refusal(prompt, pair)
            seen.add(tokens)
        return encoded

    def separable(self, prompt: Prompt) -> bool:
        """Whether no continuation begins with all the tokens of another, so that each can be the most probable one."""
        return _begins_another(self._encode_one(prompt, *self._written(prompt))) is None

    def _refusal(self, prompt: Prompt, pair: tuple[int, int]) -> ModelError:
        """The error for labels that are prefixes of each other, with an alphabet that works if there is one."""
        short, long = (prompt.continuations[i].strip() for i in pair)
        works = [name for name, other in _other_labels(prompt) if self.separable(other)]
        use = f"use --labels={works[0]}" if works else "use labels of one token each"
        return ModelError(
            f"labels {short!r} and {long!r}: this model's tokenizer begins {long!r} with all the tokens of {short!r}, "
            f"so {long!r} can never be the more probable one; {use}, or score labels to their end (--to-end=True)"
        )

    def _encode_one(self, prompt: Prompt, text: str, literal: bool = False) -> Encoded:
        # A chat template has already written the special tokens that a chat begins with.
        prefix = [] if prompt.messages else self._prefix
        *head, tail = [text] if literal else self._split(text)
        start = np.concatenate([np.asarray(prefix, dtype=np.int32), *self._each(head)])
        before = head[-1][-2:] if head else ""
        ending = "" if not prompt.to_end else self.answer_place.ended if prompt.messages else "\n"
        ending = self._literal.named(ending, "\0") if literal else ending
        context, *whole = (
            np.asarray(self._literal.ids(tail + end), np.int32) if literal else self._piece(before, tail + end)
            for end in ("", *(continuation + ending for continuation in prompt.continuations))
        )
        # A tokenizer may join the prompt's last characters with the label. Those tokens then belong to the candidates,
        # and so does the last token of each: a candidate without tokens would have probability 1.
        shared = min(*(common_prefix(context, ids) for ids in whole), *(len(ids) - 1 for ids in whole))
        if len(start) + shared < 1 or "" in prompt.continuations:
            raise ModelError(f"prompt of {prompt.group!r}: nothing precedes the answer, or the answer is empty")
        return Encoded(np.concatenate([start, whole[0][:shared]]), tuple(ids[shared:] for ids in whole))

    def _split(self, text: str) -> list[str]:
        """Pieces of ``text`` that can be tokenized one by one; at least one."""
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
        return (self._piece(before[-2:], piece) for before, piece in pairwise(["", *pieces]))

    def _piece(self, before: str, piece: str) -> Ids:
        """Token ids of ``piece`` after ``before``: a character and a line end, or nothing."""
        if (ids := self._pieces.get((before, piece))) is None:
            if len(self._pieces) >= _MAX_CACHED_PIECES:
                self._pieces.clear()
            cut = len(self._piece("", before)) if before else 0
            ids = np.asarray(self._ids(before + piece)[cut:], dtype=np.int32)
            self._pieces[before, piece] = ids
        return ids

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _by_lines(self, text: str) -> list[int]:
        return list(np.concatenate(list(self._each(self._split(text)))).tolist())


def _begins_another(item: Encoded) -> tuple[int, int] | None:
    """Two candidates such that the tokens of the first begin, or equal, those of the second."""
    ids = item.candidates
    pairs = pairwise(sorted(range(len(ids)), key=lambda i: sort_key(ids[i])))
    return next((pair for pair in pairs if common_prefix(ids[pair[0]], ids[pair[1]]) == len(ids[pair[0]])), None)


def _other_labels(prompt: Prompt) -> Iterator[tuple[str, Prompt]]:
    """Name of every alphabet, and the prompt with its labels."""
    conts = prompt.continuations
    shapes = [
        {text.replace(label, "\0", 1) for text, label in zip(conts, alphabet, strict=False)}
        for alphabet in ALPHABETS.values()
    ]
    lead = conts[0][: len(conts[0]) - len(conts[0].lstrip())]
    shape = next((next(iter(texts)) for texts in shapes if len(texts) == 1), lead + "\0")
    for name, alphabet in ALPHABETS.items():
        labels = tuple(shape.replace("\0", label) for label in alphabet[: len(conts)])
        if len(labels) == len(conts):
            yield name, replace(prompt, continuations=labels)


def _never_joins_lines(tokenizer: Any) -> bool:
    """Whether every text has a token boundary after a line end that something visible follows.

    Proved only for merges (BPE) and whole words, with normalizers that work on single characters.
    """
    backend, normalizer = tokenizer.backend_tokenizer, tokenizer.backend_tokenizer.normalizer
    return (
        type(backend.model).__name__ in ("BPE", "WordLevel")
        and (normalizer is None or _local(json.loads(normalizer.__getstate__())))
        and not any(_joins(tokenizer, token) for token in tokenizer.get_vocab())
    )


def _local(normalizer: dict[str, Any]) -> bool:
    kind = normalizer["type"]
    if kind == "Sequence":
        return all(_local(part) for part in normalizer["normalizers"])
    if kind == "Replace":
        return len(normalizer["pattern"].get("String", "")) == 1 and "\n" not in normalizer["pattern"]["String"]
    return kind in ("Prepend", "NFC", "NFD", "NFKC", "NFKD", "Lowercase")


def _joins(tokenizer: Any, token: str) -> bool:
    """Whether a vocabulary entry, plain or in GPT-2's letters for bytes, has something visible after a line end."""
    if "\n" not in token and "Ċ" not in token:  # few reach the decoder
        return False
    return bool(tokenizer.convert_tokens_to_string([token]).partition("\n")[2].strip())


class Literal:
    """Tokenizes texts that spell control tokens as text: ``<|im_end|>`` in a question gets no such token.

    Control tokens are the special ones, and added ones that look like markup (``<think>``, ``[INST]``). A copy of the
    tokenizer knows each of them under a secret name of private-use characters, with the same ids. So what a chat
    template writes can be given that name, and what a question spells consists of letters like any other text.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = getattr(tokenizer, "added_tokens_decoder", {}).values()
        control = {token.content for token in added if token.special or _MARKUP.fullmatch(token.content)}
        control.update(map(str, getattr(tokenizer, "all_special_tokens", ())))
        # Longest first: the expression below takes the first alternative that fits.
        self._control = sorted((text for text in control if text.strip()), key=lambda text: (-len(text), text))
        self._spelled = re.compile("|".join(map(re.escape, self._control)) or r"(?!)")

    def spelled(self, texts: Sequence[str]) -> bool:
        return any(self._spelled.search(text) for text in texts)

    @property
    def allowed(self) -> bool:
        """Whether this tokenizer can read control tokens as text."""
        return self._copy is not None

    def marked(self, messages: Sequence[Message]) -> tuple[list[Message], str]:
        """The messages with a mark in place of every control token they spell, and the character marks begin with."""
        used = {character for message in messages for character in message.content}
        first = next(chr(code) for code in range(_FIRST_MARK, _LAST_MARK) if chr(code) not in used)
        number = {text: i for i, text in enumerate(self._control)}

        def mark(match: re.Match[str]) -> str:
            return first + chr(_FIRST_MARK + number[match[0]])

        return [Message(m.role, self._spelled.sub(mark, m.content)) for m in messages], first

    def named(self, written: str, first: str) -> str:
        """A chat as its template wrote it from marked messages, its own control tokens under their secret names, and
        marks replaced by the text that they represent."""

        def name(match: re.Match[str]) -> str:
            text = match[0]
            return self._control[ord(text[1]) - _FIRST_MARK] if text[0] == first else self._names[text]

        return re.sub(f"{first}.|{self._spelled.pattern}", name, written, flags=re.DOTALL)

    def ids(self, text: str) -> list[int]:
        """Token ids of a text whose control tokens, if any, go by their secret names."""
        assert self._copy is not None
        tokenizer, original = self._copy
        return [original.get(i, i) for i in tokenizer.encode(text, add_special_tokens=False).ids]

    @cached_property
    def _names(self) -> dict[str, str]:
        secret = "".join(chr(_FIRST_MARK + secrets.randbelow(_LAST_MARK - _FIRST_MARK)) for _ in range(6))
        return {text: f"{secret}{chr(_FIRST_MARK + i)}" for i, text in enumerate(self._control)}

    @cached_property
    def _copy(self) -> tuple[Any, dict[int, int]] | None:
        """The tokenizer with control tokens renamed, and id in the copy -> id in the original where they differ."""
        if not getattr(self._tokenizer, "is_fast", False):
            return None
        from tokenizers import Tokenizer

        backend = self._tokenizer.backend_tokenizer
        try:
            state = json.loads(backend.to_str())
            _rename(state, self._names)
            copy = Tokenizer.from_str(json.dumps(state))
        except Exception:  # parts written in Python cannot be copied
            return None
        copy.no_truncation()
        copy.no_padding()
        original: dict[Any, int] = {
            copy.token_to_id(self._names.get(text, text)): backend.token_to_id(text)
            for text in (token["content"] for token in json.loads(backend.to_str())["added_tokens"])
        }
        return (copy, original) if self._same(copy, original) else None

    def _same(self, copy: Any, original: dict[int, int]) -> bool:
        """Whether the copy agrees with the tokenizer on text, and on each control token by its own name."""
        probe = copy.encode(_PROBE, add_special_tokens=False).ids
        if [original.get(i, i) for i in probe] != list(self._tokenizer(_PROBE, add_special_tokens=False)["input_ids"]):
            return False
        renamed = [copy.token_to_id(self._names[text]) for text in self._control]
        return bool([original.get(i, i) for i in renamed] == self._tokenizer.convert_tokens_to_ids(self._control))


def _rename(state: dict[str, Any], names: dict[str, str]) -> None:
    """Give control tokens other names in the JSON of a tokenizer: among the added tokens and in the vocabulary."""
    for token in state["added_tokens"]:
        if token["content"] in names:
            token.update(content=names[token["content"]], normalized=False)
    model = state["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {names.get(text, text): i for text, i in model["vocab"].items()}
    else:  # Unigram: pieces with their scores
        model["vocab"] = [[names.get(text, text), score] for text, score in model["vocab"]]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    if merges := model.get("merges"):
        pairs = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in merges]
        gone = [names.keys() & {*pair, "".join(pair)} for pair in pairs]
        model["merges"] = [merge for merge, named in zip(merges, gone, strict=True) if not named]
