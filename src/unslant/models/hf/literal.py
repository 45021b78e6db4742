"""Text from outside, tokenized as text: a question that spells a special token (``<|im_end|>``) gets no such token.

Control tokens are the special ones, and added ones that look like markup (``<think>``, ``[INST]``). A copy of the
tokenizer knows each of them under a secret name of private-use characters and has the same ids for them; so what a chat
template itself writes can be given that name, and what a question spells is letters like any other.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from unslant.prompts.prompt import Message

_MARKUP = re.compile(r"<[^\s<>]+>|\[/?[A-Z_]+\]")
_FIRST_MARK, _LAST_MARK = 0xF0000, 0xFFFFD
_PROBE = "Which of these?\nA. one (1)\nB. 2 %  é\nAnswer: "


class Literal:
    """Tokenizes what spells a control token of ``tokenizer``."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = getattr(tokenizer, "added_tokens_decoder", {}).values()
        found = {token.content for token in added if token.special or _MARKUP.fullmatch(token.content)}
        found.update(map(str, getattr(tokenizer, "all_special_tokens", ())))
        self._control = sorted((text for text in found if text.strip()), key=lambda text: (-len(text), text))
        self._spelled = re.compile("|".join(map(re.escape, self._control)) or r"(?!)")

    def spelled(self, texts: Sequence[str]) -> bool:
        """Whether any of the texts spells a control token."""
        return any(self._spelled.search(text) for text in texts)

    @property
    def allowed(self) -> bool:
        """Whether this tokenizer can take control tokens for text."""
        return self._copy is not None

    def marked(self, messages: Sequence[Message]) -> tuple[list[Message], str]:
        """The messages with a mark for everything that spells a control token, and the character marks begin with."""
        used = {character for message in messages for character in message.content}
        first = next(chr(code) for code in range(_FIRST_MARK, _LAST_MARK) if chr(code) not in used)
        number = {text: i for i, text in enumerate(self._control)}

        def mark(match: re.Match[str]) -> str:
            return first + chr(_FIRST_MARK + number[match[0]])

        return [Message(m.role, self._spelled.sub(mark, m.content)) for m in messages], first

    def named(self, written: str, first: str) -> str:
        """A chat that its template has written from marked messages: its own control tokens get their secret names, and
        the marks are replaced by what they represent."""

        def name(match: re.Match[str]) -> str:
            found = match[0]
            return self._control[ord(found[1]) - _FIRST_MARK] if found[0] == first else self._names[found]

        return re.sub(f"{first}.|{self._spelled.pattern}", name, written, flags=re.DOTALL)

    def ids(self, text: str) -> list[int]:
        """Token ids of a text whose control tokens, where it has any, go by their secret names."""
        assert self._copy is not None
        tokenizer, other = self._copy
        return [other.get(i, i) for i in tokenizer.encode(text, add_special_tokens=False).ids]

    @cached_property
    def _names(self) -> dict[str, str]:
        secret = "".join(chr(_FIRST_MARK + secrets.randbelow(_LAST_MARK - _FIRST_MARK)) for _ in range(6))
        return {text: f"{secret}{chr(_FIRST_MARK + i)}" for i, text in enumerate(self._control)}

    @cached_property
    def _copy(self) -> tuple[Any, dict[int, int]] | None:
        """The tokenizer with control tokens renamed, and its ids -> the tokenizer's own where they differ."""
        if not getattr(self._tokenizer, "is_fast", False):
            return None
        from tokenizers import Tokenizer

        own = self._tokenizer.backend_tokenizer
        try:
            state = json.loads(own.to_str())
            _rename(state, self._names)
            copy = Tokenizer.from_str(json.dumps(state))
        except Exception:  # parts written in Python cannot be copied
            return None
        copy.no_truncation()
        copy.no_padding()
        other: dict[Any, int] = {
            copy.token_to_id(self._names.get(text, text)): own.token_to_id(text)
            for text in (token["content"] for token in json.loads(own.to_str())["added_tokens"])
        }
        return (copy, other) if self._same(copy, other) else None

    def _same(self, copy: Any, other: dict[int, int]) -> bool:
        """Whether the copy agrees with the tokenizer on text, and on each control token by its own name."""
        whole = list(self._tokenizer(_PROBE, add_special_tokens=False)["input_ids"])
        if [other.get(i, i) for i in copy.encode(_PROBE, add_special_tokens=False).ids] != whole:
            return False
        for text in self._control:
            known = self._tokenizer.convert_tokens_to_ids(text)
            if other.get(found := copy.token_to_id(self._names[text]), found) != known:
                return False
        return True


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
    if model.get("merges"):
        model["merges"] = [merge for merge in model["merges"] if not names.keys() & _merged(merge)]


def _merged(merge: str | Sequence[str]) -> set[str]:
    left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
    return {left, right, left + right}
