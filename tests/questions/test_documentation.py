"""The examples and the table of docs/questions.md hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unslant.questions import recipes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "questions.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) >= 5
    shared: dict[str, object] = {}
    for example in examples:
        exec(example, shared)


def test_the_table_lists_every_recipe_as_it_is() -> None:
    page = PAGE.read_text("utf-8")
    for recipe in recipes():
        assert f"| `{recipe.name}` | {recipe.hub} | {recipe.config} | {recipe.split} | `load_" in page
