"""What is published: the package page without broken links, and only what is ready."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
import types
from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from unslant import __version__

ROOT = Path(__file__).parents[1]
ADDRESS = "https://example.org/unslant"
RELATIVE = re.compile(r"\]\((?!https?://|#)")


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names in ``hatch_build.py``, also where the build backend is not installed."""
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    return run_path(str(ROOT / "hatch_build.py"))


def built(hook: dict[str, Any], repository: str, root: Path = ROOT) -> dict[str, Any]:
    metadata = {"version": __version__}
    maker = hook["Metadata"]()
    maker.root, maker.config = str(root), {"repository": repository}
    maker.update(metadata)
    return metadata


def test_without_an_address_links_are_plain_text_and_pictures_left_out(hook: dict[str, Any]) -> None:
    metadata = built(hook, "")
    text = metadata["readme"]["text"]
    assert "urls" not in metadata
    assert not RELATIVE.search(text)
    assert "![" not in text
    assert "docs/quickstart.md" in text, "what the link said stays"


def test_with_an_address_links_and_pictures_are_absolute(hook: dict[str, Any]) -> None:
    metadata = built(hook, ADDRESS + "/")
    text = metadata["readme"]["text"]
    assert not RELATIVE.search(text)
    assert f"]({ADDRESS}/blob/v{__version__}/docs/quickstart.md)" in text
    assert f"]({ADDRESS}/raw/v{__version__}/docs/images/report.png)" in text
    assert metadata["urls"]["Homepage"] == ADDRESS
    assert all(url.startswith(ADDRESS) for url in metadata["urls"].values())


def test_relative_links_of_the_readme_lead_to_files() -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize(
    ("file", "change", "missing"),
    [
        (None, None, None),
        ("CITATION.cff", lambda text: text.replace(f"version: {__version__}\n", "version: 0.0.0\n"), "version is not"),
        ("CITATION.cff", lambda text: text.replace("date-released", "date"), "date-released is missing"),
        ("CITATION.cff", lambda text: text.replace(ADDRESS, f"{ADDRESS}-old"), "repository-code is not"),
        ("CHANGELOG.md", lambda text: text.replace(f"## [{__version__}]", "## [Unreleased]"), "no section for"),
        ("CHANGELOG.md", lambda text: text.replace("2026-01-01", "unreleased"), "with the day of its release"),
    ],
)
def test_a_release_is_refused_until_it_is_ready(
    hook: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    file: str | None,
    change: Callable[[str], str] | None,
    missing: str | None,
) -> None:
    monkeypatch.setenv("RELEASE", "1")
    shutil.copy(ROOT / "README.md", tmp_path)
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    (tmp_path / "CITATION.cff").write_text(
        f"{citation}date-released: 2026-01-01\nrepository-code: {ADDRESS}\n", "utf-8"
    )
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{__version__}] - 2026-01-01\n", "utf-8")
    with pytest.raises(ValueError, match="repository of the metadata hook is not set"):
        built(hook, "", tmp_path)
    if file is None:
        assert built(hook, ADDRESS, tmp_path)["urls"]
        return
    assert change is not None
    (tmp_path / file).write_text(change((tmp_path / file).read_text("utf-8")), "utf-8")
    with pytest.raises(ValueError, match=missing):
        built(hook, ADDRESS, tmp_path)


def test_what_is_said_of_the_version_agrees() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    (tried,) = re.findall(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert named == [version.strip(' "') for version in tried.split(",")]
    assert project["requires-python"] == f">={named[0]}"


def test_the_extras_for_users_are_on_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = re.findall(r"^\| `unslant\[([\w-]+)\]` \|", (ROOT / "docs" / "python.md").read_text("utf-8"), re.M)
    assert {*listed} == {*project["optional-dependencies"]} - {"bench", "test", "docs", "release", "dev"}
