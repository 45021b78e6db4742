"""``unslant models`` and ``unslant templates``: what can be named."""

from __future__ import annotations

import textwrap
from typing import Annotated

from cyclopts import Parameter


def models() -> None:
    """List the kinds of models and how each is named.

    score: log-probabilities of labels. generate: replies. attend: attention and hidden states. train: weights.

    Examples:
      unslant models
    """
    from unslant.models.open import all_backends
    from unslant.reference import WORDS, reference_info, reference_names

    kinds = [(one.example, f"{one.what}: {', '.join(one.can)}") for one in all_backends().values()]
    named = [(name, reference_info(name).description) for name in reference_names()]
    named.append((WORDS, "answers in words; give it with --elicit generate"))
    print("Models can be named as", *_rows(kinds), sep="\n")
    print("", "Reference models, small and with a planted bias, ship with unslant", *_rows(named), sep="\n")


def templates(name: Annotated[str, Parameter(help="Print this template (TOML).")] = "", /) -> None:
    """List the prompt templates, or print one as a start for your own.

    Examples:
      unslant templates
      unslant templates plain
    """
    from unslant.prompts.templates import load_template, template_names, template_text

    if name:
        print(template_text(name), end="")
    else:
        print(*_rows([(one, load_template(one).description) for one in template_names()]), sep="\n")


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows) + 4
    return [
        textwrap.fill(f"{f'  {name}':{width}}{text}", 100, subsequent_indent=" " * width, break_on_hyphens=False)
        for name, text in rows
    ]
