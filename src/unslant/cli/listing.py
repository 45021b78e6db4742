"""``unslant models`` and ``unslant templates`` list what a command can name; and ``--install-completion``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.completion.detect import ShellDetectionError, detect_shell
from cyclopts.completion.install import create_install_completion_command, get_default_completion_path

from unslant.cli import app
from unslant.errors import InputError
from unslant.writing import make_folder, unwritable, write_atomically


def models() -> None:
    """List the kinds of models and how each is named.

    score: log-probabilities of labels. generate: replies. attend: attention and hidden states. train: weights.

    Examples:
      unslant models
    """
    from unslant.models.open import all_backends
    from unslant.reference import WORDS, reference_models

    kinds = [(one.example, f"{one.what}: {', '.join(one.can)}") for one in all_backends().values()]
    references = [(name, facts["description"]) for name, facts in reference_models().items()]
    references.append((WORDS, "answers in words; give it with --elicit generate"))
    print("Models can be named as", *_rows(kinds), sep="\n")
    print("", "Reference models: small, bundled, each with a planted bias", *_rows(references), sep="\n")


def templates(name: Annotated[str, Parameter(help="Print this template (TOML).")] = "", /) -> None:
    """List the prompt templates, or print one as a starting point for your own.

    Examples:
      unslant templates
      unslant templates plain
    """
    from unslant.prompts.templates import load_template, template_names, template_text

    if name:
        print(template_text(name), end="")
    else:
        print(*_rows([(known, load_template(known).description) for known in template_names()]), sep="\n")


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows) + 4
    return [
        textwrap.fill(f"{f'  {name}':{width}}{text}", 100, subsequent_indent=" " * width, break_on_hyphens=False)
        for name, text in rows
    ]


def _written(shell: Literal["zsh", "bash", "fish", "powershell"] | None, output: Path | None, **_: object) -> Path:
    """Write the script; startup files stay as they are, and the library's command says what to add to them."""
    try:
        shell = shell or detect_shell()
        path = (output or get_default_completion_path(shell, app.name[0])).absolute()
    except ShellDetectionError:
        raise InputError("the shell could not be detected; give --shell bash, zsh, fish or powershell") from None
    except OSError as error:
        raise unwritable(error.filename, error) from error
    make_folder(path.parent)
    write_atomically(path, app.generate_completion(shell=shell))
    return path


install = create_install_completion_command(_written, add_to_startup=False)
