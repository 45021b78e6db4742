"""How large a report of 5,000 questions in 24 orders is, and how soon a browser shows it.

    python -m benchmarks.report_size [questions]
    python -m benchmarks.report_size board [questions] [models]     a leaderboard, by default of 20,000 and 20

Prints the size, the time to make it, and for each of five openings in a fresh headless Chromium the milliseconds from
the start of navigation until the questions can be used and until every chart is drawn. Needs chromium and playwright.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.reports.conftest import CHROMIUM, FLAGS
from tests.reports.synthetic import synthetic_audit, synthetic_questions
from unslant.experiment.result import StudyResult
from unslant.studies.leaderboard.study import Leaderboard

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
    result = synthetic_audit(synthetic_questions(count))
    texts = sum(len(q.stem) + sum(map(len, q.options)) for q in result.responses.questions)
    measured(result, f"{count:,} questions x 24 orders, {texts / count:.0f} characters each")


def board(count: int = 20_000, models: int = 20) -> None:
    sets = {f"set-{s}": synthetic_questions(count // 4, words=12, seed=s) for s in range(4)}
    start = time.perf_counter()
    audits = [
        replace(audit, responses=replace(audit.responses, run=replace(audit.run, questions=name)))
        for m in range(models)
        for s, (name, questions) in enumerate(sets.items())
        for audit in [synthetic_audit(questions, lean=0.1 * m, knows=0.35 + 0.5 * m / models, seed=4 * m + s,
                                      model=f"organisation/model-{m}-instruct")]
    ]  # fmt: skip
    print(f"audits made up in {time.perf_counter() - start:.0f} s")
    start = time.perf_counter()
    ranked = Leaderboard.of(audits)
    print(f"ranked in {time.perf_counter() - start:.1f} s")
    measured(ranked, f"{models} models x {count:,} questions x 24 orders")


def measured(result: StudyResult, what: str) -> None:
    """Print how long writing the page takes, its size, and how soon a browser shows it."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        start = time.perf_counter()
        result.to_html(path)
        print(f"{what}; page made in {time.perf_counter() - start:.1f} s; {path.stat().st_size / 1e6:.2f} MB")
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
    if sys.argv[1:2] == ["board"]:
        board(*map(int, sys.argv[2:]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
