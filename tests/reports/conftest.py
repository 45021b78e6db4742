"""A real browser for the page; tests that need it are skipped where it is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@dataclass
class Opened:
    """A page in the browser, and everything it said or asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)


Open = Callable[..., Opened]


@pytest.fixture(scope="module")  # playwright holds an event loop: not longer than its own tests
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: test)")
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM} (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Open]:
    """Opens a file and waits until its charts and questions are there."""
    contexts = []

    def opened(path: Path, width: int = 1280, scheme: str = "light", fragment: str = "") -> Opened:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.set_default_timeout(60_000)
        found.page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
        found.page.on("dialog", lambda dialog: found.said.append(f"dialog: {dialog.message}"))
        found.page.on("request", lambda request: found.asked_for.append(request.url))
        found.page.goto(path.as_uri() + fragment)
        found.page.wait_for_function("!document.querySelector('#browser:not([data-ready])')")
        found.page.wait_for_function("[...document.querySelectorAll('[data-chart]')].every((e) => e.dataset.drawn)")
        return found

    yield opened
    for context in contexts:
        context.close()
