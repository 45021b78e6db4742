"""How much code there is, and how the tests stand to each other: what two use is in a helper module without tests."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MOST_LINES = 63884
"""Of ``src``, together. Fewer is better: lower it when you take some away. What needs more looks for what can go."""
LONGEST = 399
"""Lines of a file of ``src``."""
IMPORT = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+(?:[\w.]*\.)?(test_\w+|[\w.]+[ \t]+import[ \t(][^#\n]*\btest_\w+)", re.M
)
"""Of a test module, also within a function or the text of a script."""


def test_the_sources_do_not_grow() -> None:
    """Line by line, as ``wc -l`` counts them."""
    lines = {path: path.read_bytes().count(b"\n") for path in (TESTS.parent / "src").rglob("*.py")}
    assert sum(lines.values()) <= MOST_LINES
    assert {path.name: n for path, n in lines.items() if n > LONGEST} == {}


def test_a_name_of_a_class_has_one_meaning() -> None:
    """Private names may repeat: they are read within their module alone."""
    sources = (path.read_text("utf-8") for path in (TESTS.parent / "src").rglob("*.py"))
    names = Counter(name for source in sources for name in re.findall(r"^class ([A-Z]\w*)", source, re.M))
    assert [name for name, n in names.items() if n > 1] == []


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


def test_the_root_holds_no_results() -> None:
    """Files that a command tried there has written are easily committed."""
    listed = subprocess.run(["git", "ls-files"], cwd=TESTS.parent, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    root = {name for name in listed.stdout.splitlines() if "/" not in name}
    assert {name for name in root if Path(name).suffix in {".json", ".jsonl", ".html", ".parquet", ".csv"}} == set()


def test_whether_a_file_is_there_is_asked_of_os_path() -> None:
    """Before Python 3.14, pathlib raises for a name that is too long or in a folder that may not be read; and still for
    the folder of a user that there is not."""
    asked = re.compile(r"\.(exists|is_file|is_dir|expanduser)\(\)")
    found = [path for path in (TESTS.parent / "src").rglob("*.py") if asked.search(path.read_text("utf-8"))]
    assert not found
