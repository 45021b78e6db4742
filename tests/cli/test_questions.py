from __future__ import annotations

import json

import pytest

BUILD = ["questions", "build", "instruction-boundary"]


def test_a_set_is_built_and_told(unslant, shared_data, tmp_path):
    out = tmp_path / "set.jsonl"
    source = f"truthfulqa={shared_data / 'truthfulqa_mc1.jsonl'}"
    arguments = ["--source", source, "--only", "truthfulqa", "--scale", "0.1", "--out", str(out)]
    done = unslant(*BUILD, *arguments)
    assert done.code == 0, done.err
    assert "30 multiple-choice questions (single 30)" in done.out
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == 30
    assert {row["part"] for row in rows} == {"choice"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "squad", "--out", "set.jsonl"], "unknown source 'squad'"),
        (["--out", "nowhere/set.jsonl"], "no folder nowhere"),
        (["--scale", "7", "--out", "set.jsonl"], "scale 7"),
    ],
)
def test_mistakes_are_named(unslant, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = unslant(*BUILD, *arguments)
    assert done.code == 2
    assert message in done.err
