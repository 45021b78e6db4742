"""Commands that are imported only when called."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from cyclopts import App

EXIT_CODES = (
    "Exit codes: 0 done, 2 bad input (one line says why), 3 more than half of the requests failed, 4 a condition of "
    "--fail-if holds, 5 not written, 130 stopped."
)
DEFAULTS = (
    "Defaults of options can be set in unslant.toml in the working directory, or another file named by --config FILE."
)


def register(app: App, commands: Mapping[str, str]) -> None:
    """Add commands without importing them; their help is the docstring, with ``Examples:`` after the options."""
    for name, home in commands.items():
        about, _, examples = _docstring(home).partition("\n\nExamples:\n")
        about = re.sub(r"(?<!\n)\n(?!\n)", " ", about)  # rewrapped to the width of the terminal
        app.command(home, name=name, help=about, help_epilogue=f"Examples:\n{examples}\n\n{DEFAULTS}\n\n{EXIT_CODES}")


def _docstring(home: str) -> str:
    module, _, function = home.partition(":")
    package, _, file = module.rpartition(".")
    spec = find_spec(package)
    assert spec, home
    source = Path(*(spec.submodule_search_locations or ())[:1], f"{file}.py").read_text("utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return ast.get_docstring(node) or ""
    raise LookupError(f"{home}: no such function")
