"""Redraw the pictures of the report in the README and the docs, from an audit of the embedded model.

    python -m benchmarks.report_picture

Needs chromium and playwright. Looks best where a system font such as Inter is installed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.reports.conftest import CHROMIUM, FLAGS
from unslant.auditing.study import audit
from unslant.questions import load_questions

FOLDER = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 1200


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder) / "report.html"
        audit("prefers-a", load_questions("embedded-skewed")).to_html(report)
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=FLAGS)
        for name, scale in (("report", 1.5), ("report-question", 1.0)):
            size = {"width": WIDTH, "height": 12_000}
            page = browser.new_context(viewport=size, device_scale_factor=scale, color_scheme="light").new_page()
            page.goto(report.as_uri())
            page.wait_for_selector("#browser[data-ready]")
            page.wait_for_function("[...document.querySelectorAll('[data-chart]')].every((e) => e.dataset.drawn)")
            top, bottom = 0.0, page.locator("#published").bounding_box()["y"] - 30
            if name == "report-question":
                page.select_option("#filter", label="wrong as published, right when voted")
                for button in page.locator("#list button").all():  # the first with four options
                    button.click()
                    if page.locator(".heat tbody tr[data-page]").count() == 26:
                        break
                box = page.locator("#questions").bounding_box()
                top, bottom = box["y"] + 1, box["y"] + box["height"] - 1
            clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top}
            page.screenshot(path=FOLDER / f"{name}.png", clip=clip)
        browser.close()


if __name__ == "__main__":
    main()
