"""The template of docs/presentations.md says what it seems to; its other examples are run by docs/conftest.py."""

from __future__ import annotations

import re
from pathlib import Path

from unslant.presentations import present
from unslant.prompts import Cloze, Writer, load_template, template_names
from unslant.questions.question import Question

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "presentations.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_template_file(tmp_path):
    (source,) = blocks("toml")
    path = tmp_path / "brackets.toml"
    path.write_text(source, "utf-8")
    shown = present(Question("q", "Which gas?", ("oxygen", "nitrogen"), frozenset({1}), context="Air is a mixture."))
    (prompt,) = Cloze(Writer(load_template(str(path)))).prompts(shown)
    assert prompt.text == ("Choose one of A, B.\n\nAir is a mixture.\nQ: Which gas?\n[A] oxygen\n[B] nitrogen\nA: [")
    assert prompt.continuations == ("A", "B")


def test_every_template_is_listed():
    assert all(f"`{name}`" in PAGE for name in template_names())
