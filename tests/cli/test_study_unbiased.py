"""The commands around the unbiased evaluator: they run, write what they are told to, and name what is wrong."""

from __future__ import annotations

import json
import re

import pytest

from tests.command_line import unslant
from tests.studies.small_models import random_model
from unslant.studies.unbiased.metrics import UnbiasedResult


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model with random weights, as a folder."""
    path = tmp_path_factory.mktemp("model")
    model = random_model()
    model.model.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def responses(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    result = unslant("study", "unbiased", str(folder), "--limit", "8", "--runs", "2", "--shots", "1", "--no-store",
         "--probabilities", "BT=0", "--json", str(out / "r.json"), "--responses", str(out / "r.parquet"))  # fmt: skip
    assert result.code == 0, result.err
    screen = " ".join(result.out.split())
    assert re.search(r"as published and 0\.\d\d \(.*\) when the questions are presented differently", screen)
    assert "the two cannot be distinguished on" in screen
    found = json.loads((out / "r.json").read_text())
    assert found["metrics"]["vanilla"]["n"] == 8
    assert found["settings"]["probabilities"]["BT"] == 0.0
    return out / "r.parquet"


def test_runs_are_set_side_by_side(responses, tmp_path):
    (tmp_path / "ranking.csv").write_text("model,score\nx,1\n")
    UnbiasedResult.from_parquet(responses).renamed("other").to_parquet(other := tmp_path / "other.parquet")
    logs = ("--log", str(responses), str(other))
    result = unslant("study", "unbiased", *logs, "--ranking", str(tmp_path / "ranking.csv"), "--details")
    assert result.code == 0, result.err
    assert "Agreement" in result.out


def test_words_are_read(folder):
    arguments = [
        "study",
        "unbiased",
        str(folder),
        "--generate",
        "--limit",
        "2",
        "--runs",
        "1",
        "--shots",
        "0",
        "--no-alone",
        "--max-tokens",
        "5",
    ]
    result = unslant(*arguments)
    assert result.code == 3, result.err  # random weights say nothing that is an answer
    assert "none of 4 responses" in result.err
    assert "too few answers are left for a verdict" in " ".join(result.out.split())


@pytest.mark.thorough
def test_contamination_runs(folder, tmp_path):
    result = unslant("study", "contamination", str(folder), "--limit", "8", "--runs", "1", "--epochs", "2",
         "--json", str(tmp_path / "c.json"))  # fmt: skip
    assert result.code == 0, result.err
    assert json.loads((tmp_path / "c.json").read_text())["trained"]["questions"] == 8


def test_the_probe_runs_on_a_recorded_table(tmp_path):
    lines = ["question_id,rephraser,judge,score", "q,,m,9", "q,,n,9", "q,m,m,9", "q,m,n,2", "q,n,m,3", "q,n,n,2"]
    (tmp_path / "s.csv").write_text("\n".join(lines))
    result = unslant("study", "probe", "--log", str(tmp_path / "s.csv"), "--json", str(tmp_path / "p.json"))
    assert result.code == 0, result.err
    found = json.loads((tmp_path / "p.json").read_text())
    assert found["models"]["m"]["rates"]["1.0"]["ocr"]["value"] == 1.0
    assert found["models"]["n"]["rates"]["1.0"]["cer"]["value"] == pytest.approx(0.7)


@pytest.mark.thorough
def test_contamination_and_probe_read_their_own_responses_back(folder, tmp_path):
    common = ("--limit", 8, "--out", tmp_path / "c")
    result = unslant("study", "contamination", folder, "--runs", 1, "--epochs", 1, *common)
    assert result.code == 0, result.err
    files = [tmp_path / "c" / f"responses-{name}.parquet" for name in ("before", "after")]
    again = unslant("study", "contamination", "--log", *files, "--json", tmp_path / "again.json")
    assert again.code == 0, again.err
    first, second = (
        json.loads(path.read_text()) for path in (tmp_path / "c" / "numbers.json", tmp_path / "again.json")
    )
    assert first["excess"] == second["excess"]
    assert (tmp_path / "c" / "report.html").is_file()

    common = ("--limit", 3, "--max-tokens", 4, "--responses", tmp_path / "p.parquet", "--json", tmp_path / "p.json")
    result = unslant("study", "probe", f"{folder},fair", "embedded", *common)
    assert result.code == 0, result.err
    again = unslant("study", "probe", "--log", tmp_path / "p.parquet", "--json", tmp_path / "q.json")
    assert again.code == 0, again.err
    first, second = (json.loads((tmp_path / name).read_text()) for name in ("p.json", "q.json"))
    rates = [{name: model["rates"] for name, model in found["models"].items()} for found in (first, second)]
    assert rates[0] == rates[1]


def test_recorded_runs_of_the_evaluator_are_read_and_compared(responses, tmp_path):
    (tmp_path / "other.parquet").write_bytes(responses.read_bytes())
    one = unslant("study", "unbiased", "--log", responses, "--json", tmp_path / "r.json")
    assert one.code == 0, one.err
    assert json.loads((tmp_path / "r.json").read_text())["metrics"]["vanilla"]["n"] == 8
    wrong = unslant("audit", "--log", responses)
    assert wrong.code == 2
    assert "contains responses of the study unbiased; those of audit are needed" in wrong.err
    twice = unslant("study", "unbiased", "--log", responses, tmp_path / "other.parquet")
    assert twice.code == 2
    assert "two results are of the same model" in twice.err


def test_sheets_go_out_and_come_back(tmp_path):
    out = tmp_path / "sheet.csv"
    result = unslant("study", "annotation-sheet", "--items", "5", "--out", str(out))
    assert result.code == 0, result.err
    assert "5 items" in result.out
    out.write_text(out.read_text("utf-8-sig").replace(",\r\n", ",yes\r\n").replace(",\n", ",yes\n"), "utf-8")
    result = unslant("study", "annotation-agreement", str(out), "--json", str(tmp_path / "a.json"))
    assert result.code == 0, result.err
    assert json.loads((tmp_path / "a.json").read_text())["confirmed"]["value"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["unbiased", "fair", "--probabilities", "XX=0.5"], "unknown intervention 'XX'"),
        (["unbiased", "fair", "--probabilities", "OS=2"], "not between 0 and 1"),
        (["probe", "fair"], "two models or more"),
        (["contamination", "fair", "--learning-rate", "0"], "--learning-rate 0: give a number above 0"),
    ],
)
def test_what_is_wrong_is_named(arguments, words):
    result = unslant("study", *arguments)
    assert result.code == 2
    assert words in result.err
