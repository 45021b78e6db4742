"""Every study's page in a real browser: wide and narrow, light and dark, printed; reachable for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.reports.conftest import Open
from tests.reports.results import RESULTS
from unslant.reports.report import Report

SERIOUS = ("serious", "critical")
MATRIX = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
PAPER_WIDTH = 718
"""Pixels between the margins of a sheet of A4."""


def written(name: str, folder: Path) -> Path:
    path = folder / f"{name}.html"
    Report.of([RESULTS[name]()]).to_html(path)
    return path


def faults(page: Any) -> list[str]:
    """Serious faults that axe-core finds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed (extra: test)")
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in SERIOUS]


def check_screen(page: Any, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    names = page.evaluate("[...document.querySelectorAll('.plot svg')].map((svg) => svg.getAttribute('aria-label'))")
    assert names
    assert len(set(names)) == len(names) == page.locator("[data-chart]").count()
    assert all("N = " in name for name in names)
    assert page.evaluate("[...document.querySelectorAll('table.data')].every((t) => t.caption.textContent.trim())")
    wide = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter((s) => s.scrollWidth > s.clientWidth + 1)"
        ".every((s) => s.classList.contains('wide'))"
    )
    assert wide
    assert page.evaluate("document.querySelectorAll('.plot svg [role]').length") == 0
    if width == 1280:
        lines = "(e) => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight)"
        assert round(page.locator("#headline").evaluate(lines)) <= 4
        assert page.evaluate(
            "(() => { const n = document.querySelector('nav'); return n.scrollWidth <= n.clientWidth; })()"
        )


def check_printed(page: Any) -> None:
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size({"width": PAPER_WIDTH, "height": 1000})
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER_WIDTH
    right = "[...document.querySelectorAll('table.data, .plot svg')].map((e) => e.getBoundingClientRect().right)"
    assert max(page.evaluate(right)) <= PAPER_WIDTH + 1
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#1d1f23"
    assert not page.locator(".top").is_visible()
    assert len(page.pdf(format="A4")) > 10_000
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")


def test_a_page_of_a_study_is_well_made(tmp_path: Path, open_page: Open) -> None:
    opened = open_page(written("contamination", tmp_path), scheme="dark")
    check_screen(opened.page, 1280)
    assert faults(opened.page) == []
    check_printed(opened.page)
    assert opened.said == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_every_page_on_every_screen_and_on_paper(name: str, tmp_path: Path, open_page: Open) -> None:
    path = written(name, tmp_path)
    for width, scheme in MATRIX:
        opened = open_page(path, width=width, scheme=scheme)
        check_screen(opened.page, width)
        assert faults(opened.page) == [], (width, scheme)
        assert opened.said == []
        check_printed(opened.page)
