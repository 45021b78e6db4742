"""How the tests stand to each other: what two modules use is in a helper module, which holds no tests."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
IMPORT = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+(?:[\w.]*\.)?(test_\w+|[\w.]+[ \t]+import[ \t(][^#\n]*\btest_\w+)", re.M
)
"""Of a test module, also within a function or the text of a script."""


def test_the_pattern_finds_every_way_to_import_a_test_module() -> None:
    for way in (
        "from tests.models.test_tree import x",
        "import tests.models.test_tree as tree",
        "    from .test_tree import x",
        "from tests.models import zoo, test_tree",
        "from tests import (test_files)",
    ):
        assert IMPORT.search(f"import re\n{way}\n"), way
    for other in ("from tests.models.zoo import ZOO", "from unslant.contest_x import y", "import pytest  # test_x"):
        assert not IMPORT.search(other), other


def test_no_module_imports_a_test_module() -> None:
    found = {
        f"{path.relative_to(TESTS)}: {match[0].strip()}"
        for path in TESTS.rglob("*.py")
        if path != Path(__file__)
        for match in IMPORT.finditer(path.read_text("utf-8"))
    }
    assert not found, f"put what they share into a helper module: {sorted(found)}"


def test_helper_modules_hold_no_tests() -> None:
    """They would never run: only ``test_*.py`` is collected."""
    found = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in TESTS.rglob("*.py")
        if not path.name.startswith("test_")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    ]
    assert not found
