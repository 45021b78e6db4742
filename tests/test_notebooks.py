"""The notebooks of the documentation were executed, and would show the same if they were executed now."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from docs.conftest import printed_alike
from docs.executed import cells, notebook_page, texts

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs").glob("*.ipynb"))


def results(cell: dict[str, Any]) -> list[tuple[str, str]]:
    """What the value of a cell's last line was shown as: type, and text."""
    return [found for output in cell["outputs"] if output["output_type"] == "execute_result" for found in texts(output)]


def code_of(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_cell_was_executed_in_order_and_is_on_the_page(path: Path) -> None:
    code = code_of(path)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(map(results, code))
    shown = notebook_page(path)
    for cell in code:
        assert cell["source"] in shown
        assert results(cell)[0][1].strip() in shown


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_executing_it_shows_the_same(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in code_of(path):
        *lines, last = ast.parse(cell["source"]).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(lines, []), path.name, "exec"), names)
        value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
        shown = dict(results(cell))
        if "text/html" in shown:
            assert printed_alike(_words(shown["text/html"]), _words(value._repr_html_()))
        else:
            assert shown["image/png"].startswith("iVBOR")
            assert value._repr_mimebundle_()[0]["image/png"]


def _words(html: str) -> str:
    """The text of a page, each part on a line."""
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"<style.*?</style>|<[^>]+>", "\n", html, flags=re.DOTALL)).strip()
