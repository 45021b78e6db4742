"""Strings that are imported go the way of the rooms too: import-linter sees only import statements."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "unslant"
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]["layers"]
HEIGHT = {room.strip(): -i for i, layer in enumerate(LAYERS) for room in layer.split(":")}
NAMED = re.compile(r"unslant\.(\w+)(?:\.(\w+))?")

UPWARD = {
    "models/open.py": {"unslant.scale.ray:RayModel", "unslant.scale.tensor_parallel:TensorParallelModel"},
}
"""Tables whose rows are loaded when used, and what of a room above they name."""
NAMES_STUDIES = {"studies/__init__.py"}
"""Modules beside the studies that may name one: the table of studies."""


def _strings(code: str) -> list[str]:
    """Strings that begin as the name of a module; of an f-string the parts before and after its values."""
    found = (node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant))
    return [text for text in found if isinstance(text, str) and NAMED.match(text)]


def _upward(room: str, code: str) -> set[str]:
    def above(text: str) -> bool:
        named = NAMED.match(text)
        return named is not None and HEIGHT.get(named[1], HEIGHT[room]) > HEIGHT[room]

    return set(filter(above, _strings(code)))


def _modules() -> list[Path]:
    return [path for path in SRC.rglob("*.py") if path != SRC / "__init__.py"]


def test_no_string_reaches_upward() -> None:
    found = {}
    for path in _modules():
        name = path.relative_to(SRC)
        if upward := _upward(name.parts[0].removesuffix(".py"), path.read_text("utf-8")):
            found[name.as_posix()] = upward
    assert found == UPWARD


def test_only_the_table_of_studies_names_a_study_in_a_string() -> None:
    found = {
        path.relative_to(SRC).as_posix()
        for path in (SRC / "studies").rglob("*.py")
        if any(text.startswith("unslant.studies.") for text in _strings(path.read_text("utf-8")))
    }
    assert found == NAMES_STUDIES


@pytest.mark.parametrize(
    "code",
    [
        'import_module("unslant.auditing.comparison")',
        'import_module(f"unslant.studies.{folder}.command")',
        'PLACE = "unslant.cli.results:report"',
    ],
)
def test_such_a_string_is_seen(code: str) -> None:
    assert _upward("debiasing", code)
    assert not _upward("cli", code)


def test_only_the_command_line_knows_the_library_that_parses_it() -> None:
    knowing = {
        path.relative_to(SRC).parts[0]
        for path in _modules()
        if re.search(r"^\s*(?:from|import) cyclopts", path.read_text("utf-8"), re.MULTILINE)
    }
    assert knowing == {"cli"}
