"""Every study says the same on the terminal, on the page and in JSON, and fits one screen."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reports.results import RESULTS, page_of
from unslant.experiment.page_parts import with_caveats
from unslant.experiment.result import StudyResult
from unslant.metrics import Estimate
from unslant.reports import Column, Describes, Page, Panel, Table, Tile
from unslant.reports.page import text
from unslant.reports.report import Report
from unslant.responses import Run
from unslant.responses.provenance import Agreement, AnsweredBy, ChatCost

MOST_WORDS = 30
NUMBER = re.compile(r"[<>]?[−+-]?\d[\d,]*(?:\.\d+)?|∞")


@cache
def details_of(name: str, width: int = 100) -> str:
    return text(page_of(name), width, details=True)


def shown(result: Describes, folder: Path) -> str:
    """The words of the page, without scripts and marks."""
    path = folder / "report.html"
    Report.of([result]).to_html(path)
    page = re.sub(r"<(script|style).*?</\1>", " ", path.read_text("utf-8"), flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def squeezed(words: str) -> str:
    return " ".join(words.split())


@pytest.mark.thorough
def test_headline_and_numbers_are_the_same_everywhere(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for name, make in RESULTS.items():
        with subtests.test(name):
            result, headline = make(), page_of(name).headline
            words = shown(result, tmp_path)
            assert headline
            lines = (headline, *page_of(name).lines)
            assert all(squeezed(line.replace("`", "")) in words for line in lines)  # commands are in <code>
            for told in (text(page_of(name), 100), details_of(name)):
                assert squeezed(headline) in squeezed(told)
            if isinstance(result, StudyResult):
                data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
                assert data["headline"] == headline == result.headline
                assert tuple(data["lines"]) == page_of(name).lines
            found, there = set(NUMBER.findall(details_of(name))), set(NUMBER.findall(words))
            assert len(found) > 10
            assert not found - there
            assert "nan" not in details_of(name)
            assert "inf " not in details_of(name)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.thorough
def test_every_table_and_note_is_in_the_details_and_no_number_is_cut(width: int, subtests: pytest.Subtests) -> None:
    for name in RESULTS:
        with subtests.test(name):
            details = details_of(name, width)
            assert "…" not in details
            assert max(map(len, details.splitlines())) <= width
            words = re.sub(r"\W", "", details)
            for panel in page_of(name).sections:
                for table in panel.tables:
                    assert re.sub(r"\W", "", table.title) in words
                    for column in table.columns:
                        assert re.sub(r"\W", "", column.name) in words
                for note in panel.notes:
                    assert re.sub(r"\W", "", note) in words


def test_the_first_screen_is_one_sentence_and_three_lines(subtests: pytest.Subtests) -> None:
    for name in RESULTS:
        with subtests.test(name):
            page = page_of(name)
            assert len(page.headline.split()) <= MOST_WORDS
            assert len(page.lines) <= 3
            for width in (80, 120):
                lines = text(page, width).splitlines()
                assert max(map(len, lines)) <= width
                assert lines[-1] == "All tables and notes: details=True"
                said = squeezed(" ".join(lines[:-1]))
                assert said == squeezed(" ".join((*page.caveats, page.headline, *page.lines)))


def test_the_pages_draw_and_export(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for name, make in RESULTS.items():
        with subtests.test(name):
            result = make()
            report = Report.of([result, result])
            ids = [(type(item), item.id) for panel in report.panels for item in (panel, *panel.charts, *panel.tables)]
            assert len(ids) == len(set(ids))
            written = Report.of([result]).save_tables(tmp_path / name)
            assert len(written) == 2 * sum(len(panel.tables) for panel in page_of(name).sections)
            assert not [path for path in written if re.search(r"\bnan\b", path.read_text("utf-8"))]


def _page(rows: int) -> Page:
    estimate = Estimate(0.1849, 0.1, 0.2004, 1234, "Wilson")
    row = tuple(estimate for _ in range(3))
    columns = (Column("name"), *(Column.of(key) for key in ("accuracy", "pbm", "fr")))
    table = Table("t", "A table", columns, tuple((f"row {i}", *row) for i in range(rows)))
    return Page(
        "model on questions",
        "0.185 as published",
        tiles=Tile.row(("accuracy", estimate), ("pbm", estimate)),
        panels=(Panel("p", "Panel", "", tables=(table,)),),
    )


def test_headline_tile_and_table_round_alike(tmp_path: Any) -> None:
    page = _page(3)

    class Result:
        def page(self) -> Page:
            return page

    Report.of([Result()]).to_html(tmp_path / "r.html")
    for shown in (text(page), text(page, details=True), (tmp_path / "r.html").read_text("utf-8")):
        assert "0.185" in shown
        assert not re.search(r"\b0\.18\b", shown)


def test_what_a_model_is_called_is_text_and_never_markup() -> None:
    page = replace(_page(2), about="[bold red]x[/] on [link=http://a]q[/link]", headline="[b]bold[/b] :smile:")
    assert "[bold red]x[/] on [link=http://a]q[/link]" in text(page, details=True)
    assert "[b]bold[/b] :smile:" in text(page)


def test_colour_adds_marks_alone() -> None:
    page = _page(3)
    plain = re.sub(r"\x1b\[[\d;]*m", "", text(page, color=True))
    assert [line.rstrip() for line in plain.splitlines()] == text(page).splitlines()


def test_an_undefined_number_is_a_dash_and_null_with_its_note() -> None:
    result = RESULTS["instruction-boundary"]()
    assert isinstance(result, StudyResult)
    found: list[dict[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if {"value", "low", "n", "note"} <= set(value):
                found.append(value)
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        else:
            assert not isinstance(value, float) or math.isfinite(value)

    walk(result.to_dict())
    undefined = [estimate for estimate in found if estimate["value"] is None]
    assert undefined
    assert all(estimate["note"] for estimate in undefined)


def said_of(**fields: Any) -> tuple[list[str], list[str]]:
    """Caveats and notes of a run with these fields."""
    page = with_caveats(Page("", ""), Run(model="m", **fields))
    return list(page.caveats), list(page.notes)


def test_what_a_run_in_half_precision_says_about_it() -> None:
    none, dtype = Agreement(), {"dtype": "bfloat16"}
    for fields, why in (
        ({}, "there was no memory for that"),
        ({"quantization": "4 bits"}, "its weights are quantised"),
        ({"identity": dtype | {"tensor parallel": 2}}, "it is cut into 2 parts"),
    ):
        (note,) = said_of(**{"identity": dtype, "half_precision": none} | fields)[1]
        assert note == f"Scored in bfloat16; not compared with float32, because {why}."
    compared = Agreement(prompts=16, argmax=0.9375, largest=0.25, mean=0.0125)
    (note,) = said_of(identity=dtype, half_precision=compared)[1]
    assert squeezed(note) == (
        "Scored in bfloat16; compared with float32 on 16 prompts: the same answer to 94 %, log-probabilities 0.013 "
        "apart on average, 0.250 at most."
    )
    (note,) = said_of(half_precision=replace(compared, argmax=None, prompts=1))[1]
    assert note.startswith("Scored in half precision; compared with float32 on 1 prompt: log-probabilities 0.013")


def test_what_a_run_says_about_its_server() -> None:
    for unsteady, caveat in ((5, True), (4, False)):
        caveats, notes = said_of(unsteady=unsteady, asked_again=16)
        noise = f"The server adds noise: {unsteady} of 16 prompts asked again got other scores."
        assert (caveats, notes) == (([noise], []) if caveat else ([], [noise]))
    assert said_of(offline=True)[0] == ["Offline: scores are from the store; the server was not asked."]
    assert said_of(apart="its file changed")[1] == ["Nothing was stored or recalled: its file changed."]
    one = AnsweredBy(model="m", system_fingerprint="fp1", replies=3)
    two = AnsweredBy(model="m", system_fingerprint="fp2", replies=1, first="q7")
    named = "The server of m named 2 systems: fp1 (3 replies), fp2 (1 reply, the first to question 'q7')"
    assert said_of(answered_by=(one,)) == said_of(answered_by=(one, replace(two, system_fingerprint=""))) == ([], [])
    assert said_of(answered_by=(one, two))[1] == [f"{named}; prompts asked again got the same scores."]
    assert said_of(answered_by=(one, two), unsteady=1, asked_again=9)[1][0].endswith("got other scores.")
    cost = ChatCost(requests=9, failed=2, input_tokens=1000, output_tokens=70, reasoning_tokens=50, uncounted=1)
    counted, systems = said_of(answered_by=(one, two), requests={"m": cost})[1]
    tokens = "1,000 tokens in, 70 out, 50 of them reasoning"
    assert counted == f"m: 9 requests (2 failed); {tokens}; the tokens of 1 reply were not counted."
    assert systems == f"{named}; whether this changed replies is unknown."
