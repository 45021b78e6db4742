"""How large a report of 5,000 questions in 24 orders is, and how soon a browser shows it.

    python -m benchmarks.report_size [questions]

Prints the size, the time to make it, and for each of five openings in a fresh headless Chromium the milliseconds from
the start of navigation until the questions can be used and until every chart is drawn. Needs chromium and playwright.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.reports.conftest import CHROMIUM, FLAGS
from tests.reports.synthetic import synthetic_audit, synthetic_questions

OPENINGS = 5
_READY = """() => new Promise((resolve) => {
  const poll = () => {
    const questions = document.querySelector("#browser[data-ready]");
    if (questions && !window.usable) window.usable = performance.now();
    const charts = [...document.querySelectorAll("[data-chart]")].every((plot) => plot.dataset.drawn);
    if (questions && charts) resolve([window.usable, performance.now()]);
    else setTimeout(poll, 5);
  };
  poll();
})"""


def main(count: int) -> None:
    from playwright.sync_api import sync_playwright

    result = synthetic_audit(synthetic_questions(count))
    texts = sum(len(q.stem) + sum(map(len, q.options)) for q in result.responses.questions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        start = time.perf_counter()
        result.to_html(path)
        print(f"{count:,} questions x 24 orders, {texts / count:.0f} characters each; made in", end=" ")
        print(f"{time.perf_counter() - start:.1f} s; {path.stat().st_size / 1e6:.2f} MB")
        with sync_playwright() as playwright:
            for opening in range(OPENINGS):
                browser = playwright.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=FLAGS)
                page = browser.new_page()
                page.goto(path.as_uri(), wait_until="commit")
                usable, drawn = page.evaluate(_READY)
                load = os.getloadavg()[0]
                print(f"opening {opening + 1}: usable {usable:.0f} ms, drawn {drawn:.0f} ms (load average {load:.1f})")
                browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
