"""Every study's page speaks one language: first screen, charts, colours, captions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reports.results import RESULTS, page_of
from unslant.experiment.result import StudyResult
from unslant.metrics import Estimate
from unslant.reports import charts
from unslant.reports.export import drawing
from unslant.reports.figure import Chart
from unslant.reports.style import MEANINGS, PAGE, PAPER, Mark, fitted

LONGEST = 300
"""Characters of a headline: four lines of a page that is 1280 pixels wide."""


@cache
def drawn(name: str) -> list[tuple[Chart, dict[str, Any]]]:
    """The charts of a result's page with their specifications, drawn once."""
    page = page_of(name)
    style = replace(PAGE, compared=page.compared)
    return [(c, drawing(c, style).spec) for panel in page.sections for c in panel.charts]


def encodings(spec: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(spec, Mapping):
        if isinstance(spec.get("encoding"), Mapping):
            yield spec["encoding"]
        for key, value in spec.items():
            if key != "data":
                yield from encodings(value)
    elif isinstance(spec, list):
        for item in spec:
            yield from encodings(item)


@pytest.mark.thorough
def test_the_first_screen_says_who_what_and_how_sure(subtests: pytest.Subtests) -> None:
    for name in RESULTS:
        with subtests.test(name):
            page = page_of(name)
            assert len(page.headline) <= LONGEST
            told = f"{page.about} {page.headline}"
            models = page.compared or tuple(name for name in [page.name] if name not in ("annotation", "leaderboard"))
            assert [
                name.rpartition(": ")[2] for name in models if name.rpartition(": ")[2] in told or len(models) > 2
            ] == [name.rpartition(": ")[2] for name in models]
            assert page.tiles
            assert all(tile.estimate.n > 0 for tile in page.tiles)
            assert any(tile.estimate.low == tile.estimate.low for tile in page.tiles)
            names = {name for name, _ in page.settings}
            assert "day (UTC)" in names
            assert {"seed", "strengths"} & names or page.name in (
                "annotation",
                "short",
            )  # a log of another harness may not tell


@pytest.mark.thorough
def test_navigation_is_in_words_not_sentences(subtests: pytest.Subtests) -> None:
    for name in RESULTS:
        with subtests.test(name):
            page = page_of(name)
            named = [panel.short or panel.title for panel in page.sections]
            assert max(map(len, named)) <= 24
            assert len(set(named)) == len(named)
            assert not [name for name in named if "?" in name]


@pytest.mark.thorough
def test_no_chart_without_a_name_axis_titles_and_n(subtests: pytest.Subtests) -> None:
    for name in RESULTS:
        with subtests.test(name):
            assert drawn(name)
            for chart, spec in drawn(name):
                assert chart.title
                assert spec["description"].startswith(chart.title)
                assert "N = " in spec["description"], chart.id
                for channel in ("x", "y"):
                    used = [encoding[channel] for encoding in encodings(spec) if channel in encoding]
                    fields = [one for one in used if "field" in one]
                    assert not fields or any(one.get("title") for one in fields), (chart.id, channel)


@pytest.mark.thorough
def test_a_fitted_axis_says_where_it_begins(subtests: pytest.Subtests) -> None:
    for name in RESULTS:
        with subtests.test(name):
            for chart, spec in drawn(name):
                for encoding in encodings(spec):
                    for channel in ("x", "y"):
                        ends = encoding.get(channel, {}).get("scale", {}).get("domain")
                        if not ends or isinstance(ends[0], str) or encoding[channel].get("title") in (None, "rank"):
                            continue
                        whole = [float(end) for end in ends] in ([0.0, 1.0], [-1.0, 1.0])
                        title = encoding[channel]["title"]
                        told = " ".join(title if isinstance(title, list) else [title])
                        assert whole or "(axis " in told, (chart.id, channel, ends, told)


@pytest.mark.thorough
def test_a_meaning_has_one_colour_in_every_chart(subtests: pytest.Subtests) -> None:
    for name in RESULTS:
        with subtests.test(name):
            for chart, spec in drawn(name):
                for encoding in encodings(spec):
                    scale = encoding.get("color", {}).get("scale") or {}
                    colours = dict(zip(scale.get("domain", ()), scale.get("range", ()), strict=True))
                    for meaning, colour in colours.items():
                        meant = PAGE.series[MEANINGS[meaning]] if meaning in MEANINGS else None
                        assert meant in (None, colour), (chart.id, meaning)
                        others = {PAGE.series[i] for i in MEANINGS.values()}
                        assert meaning in MEANINGS or colour not in others, (chart.id, meaning)


def test_names_differ_in_colour_or_shape_and_look_the_same_everywhere() -> None:
    names = [f"model {i}" for i in range(24)]
    looks = PAPER.looks(names)
    assert len(set(looks)) == 24
    assert PAPER.looks(["as published", "voted"]) == [PAPER.looks([name])[0] for name in ("as published", "voted")]
    style = replace(PAPER, compared=tuple(names))
    assert style.looks(names[5:7]) == looks[5:7]


def test_points_in_one_place_are_rings_around_each_other() -> None:
    zero, other = Estimate.bare(0.0, 9, "made"), Estimate.bare(0.5, 9, "made")
    points = [("vote", zero, zero), ("pride", zero, zero), ("gray-box", zero, zero), ("none", other, other)]
    marks = [Mark(name, y, name, at=x) for name, x, y in points]
    spec = charts.scatter(marks, PAPER, across="x", axis="y", fit=True, zero=True).to_dict()
    rows = spec["layer"][0]["data"]["values"]
    sizes = {row["name"]: row["size"] for row in rows}
    assert sizes["vote"] < sizes["pride"] < sizes["gray-box"]
    assert sizes["none"] == sizes["vote"]
    assert "vote, pride, gray-box" in json.dumps(spec)


@pytest.mark.parametrize("last", [1, 2, 3, 9, 40])
def test_epochs_are_whole_numbers_each_at_most_once(last: int) -> None:
    marks = [Mark("", Estimate.bare(0.1 * i, 80, "made"), at=i) for i in range(last + 1)]
    spec = charts.lines(marks, PAPER, rows="epoch", axis="loss", whole=True).to_dict()
    ticks = next(encoding["x"]["axis"]["values"] for encoding in encodings(spec))
    assert ticks == sorted(set(ticks))
    assert all(tick == int(tick) for tick in ticks)
    assert 2 <= len(ticks) <= 8


@pytest.mark.parametrize(
    ("values", "zero", "ends"),
    [
        ([0.46, 0.54], False, (0.46, 0.54)),
        ([0.461, 0.539], True, (0.0, 0.6)),
        ([-0.21, 0.19], False, (-0.3, 0.2)),
        ([0.0, 0.0], True, (0.0, 0.5)),
        ([0.5], False, (0.45, 0.55)),
        ([], True, (0.0, 0.5)),
        ([1e-6, 3e-6], True, (0.0, 3e-6)),
        ([0.3, 0.1 + 0.2], False, (0.26, 0.34)),
        ([1e-17, -3e-17], False, (-0.6, 0.6)),
        ([11e9, 11e9 + 2e-6], False, (9.5e9, 12.5e9)),
    ],
)
def test_an_axis_ends_at_round_numbers(values: list[float], zero: bool, ends: tuple[float, float]) -> None:
    found = fitted(values, zero)
    assert found == pytest.approx(ends, abs=1e-12)
    assert all(found[0] <= value <= found[1] for value in values)


@pytest.mark.thorough
def test_labels_stand_in_one_order_and_do_not_collide() -> None:
    specs = {chart.id: spec for chart, spec in drawn("base-rate")}
    for encoding in encodings(specs["gold-labels-cloze"]):
        assert encoding["x"]["sort"] == ["A", "B", "C", "D"]
    layers = [layer for layer in specs["base-rate-correlation-cloze"]["layer"] if "data" in layer]
    labels = [row for layer in layers for row in layer["data"]["values"] if set(row) == {"rate", "label", "at"}]
    assert sorted(row["label"] for row in labels) == list("ABCD")
    spots = {(round(row["rate"], 1), row["at"]) for row in labels}
    assert len(spots) == 4


def test_lines_of_two_kinds_are_told_apart_in_the_legend() -> None:
    for _, spec in drawn("probe"):
        dashes = [encoding["strokeDash"] for encoding in encodings(spec) if "strokeDash" in encoding]
        assert [dash["legend"]["symbolType"] for dash in dashes] == ["stroke"]
        assert len(set(map(tuple, dashes[0]["scale"]["range"]))) == 2


@pytest.mark.parametrize("name", ["annotation", "contamination"])
def test_every_study_writes_figures_and_tables_with_n_and_method(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]()
    assert isinstance(result, StudyResult)
    figures, tables = result.save_figures(tmp_path / "f"), result.save_tables(tmp_path / "t")
    captions = [path.read_text("utf-8") for path in (*figures, *tables) if path.suffix == ".tex"]
    assert len(captions) >= 2
    for caption in captions:
        kind = "\\caption" if "\\begin{figure}" in caption else "\\par"  # a table has its N in the note below it
        (line,) = [line for line in caption.splitlines() if line.startswith(kind)]
        if "tab:annotation-disputed" in caption:  # names and no numbers
            assert line == r"\par\smallskip{\footnotesize }"
        else:
            assert re.search(r"(?:\\footnotesize |\. )N = \d", line), line
    assert any("intervals" in caption and ("Wilson" in caption or "Agresti" in caption) for caption in captions)
