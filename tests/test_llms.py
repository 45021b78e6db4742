"""The list of pages for language models names every page of the site, under its title."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_page_of_the_site_is_listed_under_its_title() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2].partition("not_in_nav")[0]
    listed = dict(re.findall(r"^- \[(.+)\]\((\S+)\)$", (ROOT / "docs" / "llms.txt").read_text("utf-8"), re.MULTILINE))
    pages = {path: title for title, path in listed.items()}
    assert list(pages) == re.findall(r"- ([\w/-]+\.md)$", nav, re.MULTILINE)
    for path, title in pages.items():
        page = ROOT / "docs" / path
        if page.exists():  # the others are made when the site is built
            assert page.read_text("utf-8").startswith(f"# {title}\n"), path
