"""The table of docs/questions.md holds; its examples are run by docs/conftest.py."""

from __future__ import annotations

from pathlib import Path

from unslant.questions import RECIPES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "questions.md"


def test_the_table_lists_every_recipe_as_it_is() -> None:
    page = PAGE.read_text("utf-8")
    for recipe in RECIPES.values():
        assert f"| `{recipe.name}` | {recipe.hub} | {recipe.config} | {recipe.split} | `load_" in page
