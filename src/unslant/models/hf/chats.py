"""Write conversations with a tokenizer's chat template, up to the place of an answer.

After its generation prompt a model may first think, or name a channel for its words, and a label's score there says
nothing. The template itself shows where answers go: where it writes those of earlier turns. Labels are scored there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from jinja2 import Template

from unslant.errors import ModelError, first_line
from unslant.prompts import FOLDED, Message, folded
from unslant.prompts.rendering import TemplateEnvironment

_NO_THINKING = {"enable_thinking": False, "thinking": False}
"""Variables that switch thinking off, in those chat templates where it can be."""
_SYSTEM, _QUESTION, _ANSWER = "unslants", "unslantq", "unslanta"
_OPEN_THOUGHT = re.compile(r"[<\[◁|:](?:start_)?(?:think|thought|reason)[^\s<>\[\]◁▷]*[>\]▷]$", re.IGNORECASE)


@lru_cache(16)
def _compiled(source: str) -> Template:
    return TemplateEnvironment().from_string(source)


def written_chat(tokenizer: Any, messages: Sequence[Mapping[str, str]], *, prompt: bool, **variables: object) -> str:
    """A conversation as the tokenizer's chat template writes it, within bounds.

    Args:
        prompt: whether the beginning of the assistant's turn follows.
        variables: further ones of the template.

    Raises:
        Exception: anything that the template raises; ``SecurityError`` if it does too much.
    """
    from transformers import PreTrainedTokenizerBase

    if getattr(type(tokenizer), "apply_chat_template", None) is not PreTrainedTokenizerBase.apply_chat_template:
        # Tokenizers without a template write chats in Python.
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt))
    named = {**tokenizer.special_tokens_map, "tools": None, "documents": None, "add_generation_prompt": prompt}
    return _compiled(tokenizer.get_chat_template()).render(messages=[*map(dict, messages)], **named, **variables)


class AnswerPlace(NamedTuple):
    """What a chat template writes after the user's words, ``opened`` as its generation prompt and ``begun`` up to an
    answer; what it writes after an answer, ``ended``, if only a line end; and sentences for the reader of a result.
    """

    opened: str
    begun: str
    ended: str
    notes: tuple[str, ...]


def answer_place(tokenizer: Any) -> AnswerPlace:
    """Where the tokenizer's chat template, as it is now, puts an answer; raises anything that the template does."""
    return _answer_place(tokenizer, str(tokenizer.chat_template))


@lru_cache(4)
def _answer_place(tokenizer: Any, template: str) -> AnswerPlace:
    question, answer = {"role": "user", "content": _QUESTION}, {"role": "assistant", "content": _ANSWER}
    prompt = written_chat(tokenizer, [question], prompt=True, **_NO_THINKING)
    opened = begun = prompt.rpartition(_QUESTION)[2]
    ended, notes = "", [*folding(tokenizer, template)]
    with suppress(Exception):  # some templates refuse a conversation that ends in an answer
        whole = written_chat(tokenizer, [question, answer], prompt=False, **_NO_THINKING)
        before, word, ended = whole.rpartition(_ANSWER)
        begun = _beginning(opened, before.rpartition(_QUESTION)[2]) if word else opened
    if _OPEN_THOUGHT.search(begun.rstrip()):
        raise ModelError(f"it begins every answer with a thought ({begun.strip()!r}), and no label comes first")
    scored = prompt.removesuffix(opened) + begun
    if scored != written_chat(tokenizer, [question], prompt=True):
        notes.append(f"Labels are scored after {begun.lstrip()!r}, where a chat without thinking has its answers.")
    if "strftime_now" in template:
        notes.append("The chat template writes the date, so prompts change daily; SOURCE_DATE_EPOCH keeps a day.")
    return AnswerPlace(opened, begun, ended.rstrip() or "\n", tuple(notes))


@lru_cache(4)
def folding(tokenizer: Any, template: str) -> tuple[str, ...]:
    """A sentence for the reader of a result if the tokenizer's chat template takes no system message; else none."""
    turns = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _QUESTION}]
    with suppress(Exception):  # Gemma 2's refuses it, and others leave it out
        if _SYSTEM in written_chat(tokenizer, turns, prompt=True):
            return ()
    return (FOLDED,)


def _beginning(opened: str, begun: str) -> str:
    """What precedes an answer: ``opened`` where it leads to one, otherwise ``begun``, which is from an earlier turn.

    They may differ in white space, which is the template's layout unless spaces alone follow, as in ``[/INST] A``. And
    a generation prompt may hold an empty thought, with two tags, which earlier turns leave out.
    """
    one, other = "".join(opened.split()), "".join(begun.split())
    if one == other:
        return begun if begun.rstrip(" ") == opened else opened
    shared = max(n for n in range(len(one) + 1) if other.startswith(one[:n]))
    empty_thought = one.endswith(other[shared:]) and len(re.findall(r"[>\]▷]", one[shared:])) > 1
    return opened if empty_thought else begun


def chat_text(tokenizer: Any, messages: Sequence[Message], *, reply: bool = False) -> str:
    """A conversation up to the assistant's answer.

    Where the template takes no system message, its text begins the user's first one (:func:`unslant.prompts.folded`).

    Args:
        reply: the model goes on freely and may think, so the text ends with the template's generation prompt.

    Raises:
        ModelError: if there is no chat template, or it refuses the conversation or leaves out a message.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError("this model's tokenizer has no chat template: leave out --chat")
    joined = folded(messages) if folding(tokenizer, str(tokenizer.chat_template)) else messages
    turns = [{"role": message.role, "content": message.content} for message in joined]
    try:
        text = written_chat(tokenizer, turns, prompt=True, **({} if reply else _NO_THINKING))
        opened, begun = ("", "") if reply else answer_place(tokenizer)[:2]
    except Exception as error:  # chat templates are model-supplied programs and raise anything
        problem = f"this model's chat template refuses the conversation: {first_line(error)}; leave out --chat"
        raise ModelError(problem) from error
    visible = "".join(text.split())
    if lost := next((m.role for m in messages if "".join(m.content.split()) not in visible), ""):
        raise ModelError(f"this model's chat template leaves out or rewrites the {lost} message: leave out --chat")
    return text.removesuffix(opened) + begun if text.endswith(opened) else text
