"""The report in a real browser: it is drawn, it can be searched, it runs nothing that a question says."""

from __future__ import annotations

from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from tests.reports.conftest import Open
from tests.reports.synthetic import synthetic_audit, synthetic_questions
from unslant import Question
from unslant.auditing.comparison import side_by_side
from unslant.auditing.result import AuditResult
from unslant.metrics import METRICS, read_scores
from unslant.reports.report import Report

pytestmark = pytest.mark.thorough

HOSTILE = (
    "<script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 2">',
    "</script><script>window.hacked = 3</script>",
    "<!--<script>",
)


def hostile_questions() -> list[Question]:
    """The first question is markup in every field; it is the one with the highest PBM or not, as chance has it."""
    made = synthetic_questions(48)
    script, image, ending, comment = HOSTILE
    made[0] = replace(
        made[0],
        id=f"q{image}",
        stem=f"{script} {ending} Which?",
        options=(image, ending, comment, "&amp;"),
        context=f"{comment} {image}",
        subject=script,
    )
    return made


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return synthetic_audit(hostile_questions(), model=HOSTILE[1])


@pytest.fixture(scope="module")
def one(result: AuditResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "one.html"
    result.to_html(path)
    return path


@pytest.fixture(scope="module")
def two(result: AuditResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    other = synthetic_audit(hostile_questions()[8:], lean=0.0, seed=1, model="even")
    path = tmp_path_factory.mktemp("report") / "two.html"
    Report.of(side_by_side([result, other])).to_html(path)
    return path


def shown_count(text: str) -> int:
    return int(text.split(" of ")[0].replace(",", ""))


def test_it_is_drawn_without_a_word_of_complaint_or_a_request(one: Path, open_page: Open) -> None:
    opened = open_page(one)
    page = opened.page
    charts = page.locator("[data-chart]")
    assert charts.count() >= 6
    for i in range(charts.count()):
        assert charts.nth(i).locator("svg path").count() > 3
    page.mouse.move(400, 700)
    page.locator("#chart-score svg .mark-symbol path").first.hover()
    assert "95 % interval" in page.locator("#tip").inner_text()
    assert opened.said == []
    assert opened.asked_for == [one.as_uri()]


def test_questions_are_found_filtered_and_sorted(one: Path, result: AuditResult, open_page: Open) -> None:
    page = open_page(one).page
    values = result.metrics.questions
    scores = read_scores(result.responses)
    count = page.locator("#count")
    assert shown_count(count.inner_text()) == len(scores) == 48
    assert scores.ids[int(values["pbm"].argmax())] in page.locator("#list li").first.inner_text()
    page.select_option("#filter", label="answer changes with the order")
    assert shown_count(count.inner_text()) == int((values["consistency"] == 0).sum())
    page.select_option("#filter", label="all questions")
    page.fill("#search", "Q00007")
    assert shown_count(count.inner_text()) == 1
    page.fill("#search", "no such words")
    assert shown_count(count.inner_text()) == 0
    page.fill("#search", "")
    page.select_option("#subject", "chess")
    assert shown_count(count.inner_text()) == scores.subjects.count("chess")


def test_an_opened_question_shows_its_page_and_a_heat_map_of_its_probabilities(
    one: Path, result: AuditResult, open_page: Open
) -> None:
    page = open_page(one).page
    scores = read_scores(result.responses)
    (block,) = scores.blocks
    row = scores.ids.index("q00007")
    page.fill("#search", "q00007")
    page.locator("#list button").click()
    question = next(q for q in result.responses.questions if q.id == "q00007")
    assert page.locator("#detail .stem").inner_text() == question.stem
    rows = page.locator(".heat tbody tr[data-page]")
    assert rows.count() == 24 + 2
    cells = page.locator(".heat tbody tr[data-page] td")
    assert cells.count() == 26 * 4
    shown = [float(cells.nth(i).get_attribute("title").split(",")[0]) for i in range(24 * 4)]
    assert np.allclose(shown, block.probs[row].ravel(), atol=0.0006)
    shades = cells.evaluate_all("(all) => all.map((cell) => getComputedStyle(cell).backgroundColor)")
    assert len(set(shades)) > 10
    assert page.locator(".heat tbody td.chosen").count() == 26
    # the page shown is the one selected, with its options in that order
    rows.nth(9).click()
    options = page.locator("#shown .text").all_inner_texts()
    assert [text.split("  ")[0].strip()[:20] for text in options] == [
        question.options[content][:20] for content in block.contents[row, 9]
    ]
    page.click("[data-by=position]")
    by_position = [float(cells.nth(i).get_attribute("title").split(",")[0]) for i in range(24 * 4)]
    assert np.allclose(by_position, block.by_position(block.probs)[row].ravel(), atol=0.0006)


def test_markup_in_questions_stays_text(one: Path, open_page: Open) -> None:
    opened = open_page(one)
    page = opened.page
    page.fill("#search", "onerror=")
    assert shown_count(page.locator("#count").inner_text()) == 1
    page.locator("#list button").click()
    detail = page.locator("#detail").inner_text()
    for text in HOSTILE:
        assert text in detail
    assert "&amp;" in detail
    assert HOSTILE[1] in page.locator("#headline").inner_text() + page.locator(".about").inner_text()
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None
    assert opened.said == []
    assert opened.asked_for == [one.as_uri()]


def test_the_page_allows_no_other_script_and_no_network(one: Path, open_page: Open) -> None:
    received: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.path)
            self.send_response(200)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        opened = open_page(one)
        fetched = opened.page.evaluate(
            """async (address) => {
                const script = document.createElement("script");
                script.textContent = "window.hacked = 4";
                const picture = document.createElement("img");
                picture.src = `${address}/picture`;
                document.body.append(script, picture);
                return fetch(`${address}/fetch`, { mode: "no-cors" }).then(() => "loaded", () => "blocked");
            }""",
            address,
        )
        assert fetched == "blocked"
        assert opened.page.evaluate("window.hacked") is None
        assert len([line for line in opened.said if "Content Security Policy" in line]) >= 3
        opened.page.context.new_page().goto(f"{address}/control")
        server.shutdown()
    assert [path for path in received if path != "/favicon.ico"] == ["/control"]


def test_everything_can_be_reached_by_keyboard(one: Path, open_page: Open) -> None:
    page = open_page(one).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#list button")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = page.locator("#list button").nth(1)
    assert second.get_attribute("aria-current") == "true"
    assert page.evaluate("document.activeElement.id") == "detail"
    page.focus(".heat tr[aria-selected=true] button")
    page.keyboard.press("ArrowDown")
    assert page.locator(".heat tr[aria-selected=true]").get_attribute("data-page") == "1"
    assert "Page 2 of" in page.locator("#shown .where").inner_text()


def test_what_a_metric_means_is_told_to_pointer_keyboard_and_screen_reader(one: Path, open_page: Open) -> None:
    page = open_page(one).page
    head, tip = page.locator("#subjects .term", has_text="PBM"), page.locator("#tip")
    meaning = METRICS["pbm"].meaning
    assert page.locator(f"#{head.get_attribute('aria-describedby')}").text_content() == meaning
    head.focus()
    assert tip.inner_text() == meaning
    page.mouse.wheel(0, 60)
    page.wait_for_timeout(100)
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.keyboard.press("Tab")
    page.locator("#subjects .term", has_text="voted").hover()
    assert tip.inner_text() == METRICS["vote_accuracy"].meaning
    tip.hover()
    page.wait_for_timeout(400)
    assert tip.is_visible()  # it can be pointed at, and stays
    page.mouse.move(2, 2)
    tip.wait_for(state="hidden")


def test_of_many_runs_other_heat_maps_are_drawn_when_opened(tmp_path: Path, open_page: Open) -> None:
    runs = [synthetic_audit(synthetic_questions(9), seed=i, model=f"model-{i}") for i in range(5)]
    Report.of(side_by_side(runs)).to_html(tmp_path / "five.html")
    opened = open_page(tmp_path / "five.html")
    page = opened.page
    assert page.locator("#detail .heat").count() == 1
    assert page.locator("#detail details").count() == 4
    page.locator("#detail summary").nth(2).click()
    page.locator("#detail details .heat tbody tr").first.wait_for()
    assert page.locator("#detail .heat").count() == 2
    page.locator("#detail details .heat tbody tr").nth(4).click()
    assert page.locator("#run").input_value() == "3"
    assert opened.said == []


def test_light_and_dark_follow_the_system_and_the_button(one: Path, open_page: Open) -> None:
    page = open_page(one, scheme="dark").page

    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def ink() -> str:
        return str(page.evaluate("getComputedStyle(document.querySelector('#chart-score svg text')).fill"))

    dark, dark_ink = background(), ink()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.click("#theme")
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert background() != dark
    assert ink() != dark_ink
    page.emulate_media(color_scheme="light")
    page.emulate_media(color_scheme="dark")
    assert page.locator("html").get_attribute("data-theme") == "light"  # chosen by hand, it stays


def test_on_a_phone_nothing_runs_off_the_side(one: Path, open_page: Open) -> None:
    page = open_page(one, width=390).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not page.locator("#detail").is_visible()
    page.locator("#list button").nth(2).click()
    assert page.locator("#detail").is_visible()
    assert not page.locator("#list").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#detail .back")
    assert page.locator("#list").is_visible()


def test_a_link_leads_to_one_question(one: Path, open_page: Open) -> None:
    page = open_page(one, fragment="#q=q00011").page
    assert "q00011" in page.locator("#detail .meta").inner_text()


def test_runs_side_by_side(two: Path, open_page: Open) -> None:
    opened = open_page(two)
    page = opened.page
    page.fill("#search", "q00020")
    page.locator("#list button").click()
    assert page.locator(".heat").count() == 2
    page.fill("#search", "")
    assert shown_count(page.locator("#count").inner_text()) == 48
    page.select_option("#run", "1")
    assert shown_count(page.locator("#count").inner_text()) == 40
    page.locator(".heat").nth(0).locator("tbody tr").nth(3).click()
    assert page.locator("#run").input_value() == "0"
    assert opened.said == []


def test_tables_sort_by_a_column(one: Path, open_page: Open) -> None:
    page = open_page(one).page
    table = page.locator("#subjects table")
    head = table.locator("thead button", has_text="voted")
    head.click()
    column = page.evaluate(
        "[...document.querySelectorAll('#subjects thead th')].findIndex((h) => h.textContent === 'voted')"
    )
    read = f"(all) => all.map((row) => Number(row.cells[{column}].dataset.value))"
    values = table.locator("tbody tr").evaluate_all(read)
    assert values == sorted(values, reverse=True)
    head.click()
    assert table.locator("tbody tr").evaluate_all(read) == sorted(values)
