from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from unslant.cli import questions
from unslant.errors import InputError

app = typer.Typer()
app.command("other")(lambda: None)
questions.register(app)
BUILD = ["questions", "build", "instruction-boundary"]


def test_a_set_is_built_and_told(shared_data, tmp_path):
    out = tmp_path / "set.jsonl"
    source = f"truthfulqa={shared_data / 'truthfulqa_mc1.jsonl'}"
    arguments = ["--source", source, "--only", "truthfulqa", "--scale", "0.1", "--out", str(out)]
    done = CliRunner().invoke(app, [*BUILD, *arguments])
    assert done.exit_code == 0, done.output
    assert "30 multiple-choice questions (single 30)" in done.output
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == 30
    assert {row["part"] for row in rows} == {"choice"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "squad", "--out", "set.jsonl"], "unknown source 'squad'"),
        (["--out", "nowhere/set.jsonl"], "there is no folder nowhere"),
        (["--scale", "7", "--out", "set.jsonl"], "scale 7"),
    ],
)
def test_mistakes_are_named(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*BUILD, *arguments])
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
