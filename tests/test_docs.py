"""What the pages list is what there is. Their code blocks are run by docs/conftest.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.count import DOCS, PAGES
from docs.generated import cli, sections
from unslant.cli import EXIT_STATUS, app
from unslant.cli.commands import EXIT_CODES
from unslant.studies import BY_HAND, STUDIES, TOP

ROOT = DOCS.parent
TRANSLATED = re.compile(
    r"\b(?:told|tells?\s+of|beside|anew|whatever|so\s+many|what\s+came\s+of|of\s+which|stands|goes\s+on\s+with|mends?|dear"
    r"|lacks|as\s+it\s+comes|by\s+its\s+name)\b|(?<!there )\bis\s+no\s+(?!longer\b|better\b|worse\b|more\b|less\b)\w+",
    re.IGNORECASE,
)
"""Phrases that betray a translation; the pattern spans line ends."""
QUOTED = {"cues", "language.py", "data", "intervention-examples.md"}
"""Folders and files whose words are others': replies, questions, and the words that are looked for in them."""
FENCE = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```(\w*)$", re.MULTILINE)


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", page("exit-codes.md"), re.MULTILINE)]
    assert listed == [int(code) for code in re.findall(r"\b\d+\b", EXIT_CODES)]
    assert set(EXIT_STATUS.values()) < set(listed)


def test_every_command_is_on_the_page_of_commands() -> None:
    listed = page("commands.md")
    for name in app:
        if not name.startswith("-") and name != "study":
            assert f"unslant {name}" in listed, name
    for name in (STUDIES | BY_HAND).keys() - {*TOP}:
        assert f"unslant study {name}" in listed, name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_every_block_says_what_it_is(path: Path) -> None:
    """Opening and closing fences alternate; an opening one has a language, and a skipped block a reason."""
    for notes, language in FENCE.findall(path.read_text("utf-8"))[::2]:
        assert language, f"a block without a language in {path.name}"
        assert "skip" not in notes or re.search(r"<!-- skip: .{8,} -->", notes), notes


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_papers_are_introduced_where_they_are_named(path: Path) -> None:
    """The first P1 to P5 in running text leads to the paper's page."""
    if path.name in ("papers.md", "index.md") or path.parent.name == "papers":
        return
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`|^#[^\n]*$|<!-- metrics: generated.*", "", path.read_text("utf-8"), flags=re.S | re.M
    )
    for key in sorted(set(re.findall(r"\bP[1-5]\b", text))):
        first = re.search(rf"\[?\b{key}\b", text)
        assert first, key
        assert first[0] == f"[{key}", f"{path.name}: {key} is not a link at its first mention"


@pytest.mark.thorough
def test_the_page_of_the_command_line_shows_options_as_help_does() -> None:
    text = cli()
    assert "## unslant study base-rate" in text
    assert not re.search(r"--no-no-|--empty-|default: (?:False|\(\)|\"\")", text)


@pytest.mark.slow
def test_every_key_of_the_json_is_described() -> None:
    """The page on JSON is made from results; a key that nothing describes would have an empty cell there."""
    found = sections()
    assert {study for _, study in found} >= set(STUDIES)
    assert not [f"{name}: {path}" for (name, _), rows in found.items() for path, (_, said) in rows.items() if not said]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_tables_have_heads(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"^\|(\s*\|)+$", text, re.MULTILINE), path.name


def test_the_glossary_is_in_order() -> None:
    entries = [entry.lower() for entry in re.findall(r"^\*\*(.+?)\*\*$", page("glossary.md"), re.MULTILINE)]
    assert len(entries) > 20
    assert entries == sorted(entries)


def test_pages_name_one_line_to_install() -> None:
    """Other lines add one extra for one purpose, on the page about it."""
    for name in ("quickstart.md", "tutorial.md", "index.md", "automation.md"):
        assert set(re.findall(r"'unslant\[([^]]*)\]'", page(name))) == {"local"}, name
    assert set(re.findall(r"'unslant\[([^]]*)\]'", (DOCS.parent / "README.md").read_text("utf-8"))) == {"local"}


def test_sentences_are_not_translated(subtests: pytest.Subtests) -> None:
    """Names, docstrings, messages, help and pages avoid phrases that no native engineer writes."""
    folders = [path for name in ("src", "docs") for path in (ROOT / name).rglob("*")]
    for path in (*folders, *ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md")):
        if path.suffix in {".py", ".pyi", ".md", ".toml", ".jinja", ".js"} and not QUOTED & {*path.parts}:
            text = path.read_text("utf-8")
            with subtests.test(path.relative_to(ROOT).as_posix()):
                found = [
                    f"line {text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}" for hit in TRANSLATED.finditer(text)
                ]
                assert not found, "; ".join(found)
