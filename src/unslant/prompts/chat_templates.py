"""Chat templates that come with a model: as transformers renders them, in the sandbox and the bounds of our own.

A chat template is a program from the model's folder. transformers runs it without a limit on time or memory; here it
has the budget of :mod:`unslant.prompts.rendering`. What chat templates need and a prompt template does not is added:
macros, ``break`` and ``continue``, more filters and methods, ``tojson`` as transformers writes it, ``raise_exception``
and ``strftime_now``. Templates are rendered to the same text (``tests/prompts/test_chat_templates.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateError, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.filters import FILTERS
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.utils import Namespace

from unslant.prompts.rendering import LONGEST_FORMAT, PromptEnvironment, charge, each

_LEFT_OUT = frozenset({"filesizeformat", "pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"})
"""Filters of Jinja2 that take time or space beyond what they are given, or differ from call to call."""
_METHODS = frozenset("center copy expandtabs isascii ljust rjust rindex zfill".split())


class _Generation(Extension):
    """``{% generation %}``, which marks the assistant's words for training, and prints them."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Namespace(Namespace):
    """Holds no names with an underscore, by which Python's own attributes could be replaced."""

    def __init__(*args: Any, **named: Any) -> None:  # so that namespace(self=...) is a name like any other
        self, values = args[0], dict(*args[1:], **named)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if str(name).startswith("_"):
        raise SecurityError(f"namespace: {name} begins with an underscore")


def _raise(message: object) -> None:
    raise TemplateError(str(message))


def _now(form: str) -> str:
    if LONGEST_FORMAT.search(form):
        raise SecurityError("strftime_now: such widths are more than a template needs")
    charge(100 * len(form))
    return datetime.now().strftime(form)


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class ChatEnvironment(PromptEnvironment):
    """The environment of chat templates; one that does too much raises ``SecurityError``."""

    refused = (nodes.Block, nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)
    methods = PromptEnvironment.methods | _METHODS
    classes = (*PromptEnvironment.classes, _Namespace)

    def __init__(self) -> None:
        super().__init__(
            filters=FILTERS.keys() - _LEFT_OUT,
            undefined=Undefined,
            keep_trailing_newline=False,
            extensions=[_Generation, LoopControlExtension],
        )
        self.filters["tojson"] = self.charged("tojson", _tojson)
        self.globals |= {"raise_exception": _raise, "strftime_now": _now, "namespace": _Namespace}

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(__obj, LoopContext) and args:
            args = (each(args[0]), *args[1:])
        elif not (isinstance(__obj, Macro | Undefined) or __obj in (_raise, _now)):
            return super().call(__context, __obj, *args, **kwargs)
        __self.charge_values(*args, *kwargs.values())
        return __self.plain_call(__context, __obj, *args, **kwargs)


@lru_cache(16)
def _compiled(source: str) -> Template:
    return ChatEnvironment().from_string(source)


def written_chat(tokenizer: Any, messages: Sequence[Mapping[str, str]], *, prompt: bool) -> str:
    """A conversation as the tokenizer's chat template writes it, within bounds.

    Args:
        prompt: whether the beginning of the assistant's turn follows.

    Raises:
        Exception: anything that the template raises; ``SecurityError`` if it does too much.
    """
    from transformers import PreTrainedTokenizerBase

    if getattr(type(tokenizer), "apply_chat_template", None) is not PreTrainedTokenizerBase.apply_chat_template:
        # no template of its own: such tokenizers write chats in Python
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt))
    special = {
        name: list(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in tokenizer.special_tokens_map.items()
    }
    template = _compiled(tokenizer.get_chat_template())
    shown = [dict(message) for message in messages]
    return template.render(messages=shown, tools=None, documents=None, add_generation_prompt=prompt, **special)
