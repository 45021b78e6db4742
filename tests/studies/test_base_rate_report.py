"""Pictures and panels of the base-rate study, and its command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import unslant
from tests.studies.base_rate_results import fair, prefers_a
from unslant.errors import InputError
from unslant.reports.style import PAPER, specification
from unslant.studies.base_rate.study import save_charts


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_pictures_are_written_offline(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure{suffix}"
    save_charts(prefers_a(), path)
    start = path.read_bytes()[:8]
    assert start.startswith(b"<svg") if suffix == ".svg" else start == b"\x89PNG\r\n\x1a\n"
    if suffix == ".svg":
        text = path.read_text("utf-8")
        for words in ("Base rates, cloze", "Accuracy by gold label, cloze", "r = 0.", "Base rates, counterfactual"):
            assert words in text


@pytest.mark.thorough
def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.pdf, \.svg or \.png"):
        save_charts(prefers_a(), tmp_path / "figure.jpg")


def test_panels_hold_every_number_and_draw() -> None:
    panels = {panel.id: panel for panel in prefers_a().page().sections}
    assert list(panels) == [
        "base-rate-favourite",
        "base-rate-hypotheses",
        "base-rate-cloze",
        "base-rate-counterfactual",
        "base-rate-shortcuts",
    ]
    assert [row[2] for row in panels["base-rate-hypotheses"].tables[0].rows][:2] == ["holds", "unclear"]
    assert len(panels["base-rate-favourite"].charts) == 1
    assert len(panels["base-rate-cloze"].charts) == 3
    for panel in panels.values():
        for chart in panel.charts:
            assert specification(chart.draw(PAPER), PAPER)["config"]


@pytest.mark.thorough
def test_no_picture_of_a_correlation_that_is_not_there() -> None:
    panels = {panel.id: panel for panel in fair().page().sections}
    assert [chart.id for chart in panels["base-rate-favourite"].charts] == ["base-rates-cloze"]
    assert [chart.id for chart in panels["base-rate-cloze"].charts] == ["gold-labels-cloze"]


def test_the_command_reads_recorded_scores(tmp_path: Path) -> None:
    recorded = tmp_path / "scores.csv"
    lines = ["key,what,lp_A,lp_B,right,topic"]
    lines += [f"q{i},given,-0.1,-2.5,{'AB'[i % 2]},s{i % 3}" for i in range(60)]
    lines += [f"q{i},nvr-{x},-0.1,-2.5,{'AB'[x == 'A']},s{i % 3}" for i in range(60) for x in "AB"]
    recorded.write_text("\n".join(lines), "utf-8")
    mapped = ["question=key", "variant=what", "answer=right", "subject=topic"]
    fields = [argument for pair in mapped for argument in ("--fields", pair)]
    out = tmp_path / "out.json"
    arguments = ["study", "base-rate", "--log", recorded, *fields, "--json", out]
    result = unslant(*arguments)
    assert result.code == 0, result.err
    assert "scores 1.00 lower when A, not another label, is never right" in " ".join(result.out.split())
    assert "was not tested" in result.out
    details = unslant(*arguments, "--details").out
    assert "Nvr-X score" in details
    assert "cannot be tested" in details
    written = json.loads(out.read_text("utf-8"))
    assert written["elicitations"]["cloze"]["nvr"]["score"]["value"] == 0
    assert written["elicitations"]["cloze"]["cells"][0]["accuracy"]["first"] | {"low": 0, "high": 0} == {
        "value": 0.5, "low": 0, "high": 0, "n": 60, "confidence": 0.95, "note": "",
        "method": "Agresti-Coull over questions, within subjects",
    }  # fmt: skip
    again = unslant("study", "base-rate", "--log", recorded, recorded, *fields)
    assert again.code != 0, "every question would count twice"
    assert "question 'q0' is in another of these files too" in " ".join(again.err.split())


def test_shards_are_joined_before_they_are_read(tmp_path: Path) -> None:
    shards = [tmp_path / f"{i}.parquet" for i in (1, 2)]
    for i, shard in enumerate(shards, start=1):
        arguments = ["study", "base-rate", "prefers-a", "embedded", "--limit", 4, "--no-nvr", "--shard", f"{i}/2"]
        assert unslant(*arguments, "--no-store", "--quiet", "--responses", shard).code == 0
    result = unslant("study", "base-rate", "--log", *shards)
    assert result.code != 0, "the texts and the cost would be those of the first"
    assert "shards 1 and 2 of 2" in " ".join(result.err.split())
