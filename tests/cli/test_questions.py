from __future__ import annotations

import json

import pytest

BUILD = ["questions", "build", "instruction-boundary"]


def test_a_set_is_built_and_described(unslant, shared_data, tmp_path):
    out = tmp_path / "set.jsonl"
    source = f"truthfulqa={shared_data / 'truthfulqa_mc1.jsonl'}"
    arguments = ["--source", source, "--only", "truthfulqa", "--scale", "0.1", "--out", str(out)]
    done = unslant(*BUILD, *arguments)
    assert done.code == 0, done.err
    assert "30 multiple-choice questions (single 30)" in done.out
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == 30
    assert {row["part"] for row in rows} == {"choice"}


def test_columns_of_a_source_can_be_named(unslant, shared_data, tmp_path):
    renamed = tmp_path / "renamed.jsonl"
    rows = [json.loads(line) for line in (shared_data / "truthfulqa_mc1.jsonl").read_text("utf-8").splitlines()]
    renamed.write_text(
        "".join(
            json.dumps({"id": r["id"], "F": r["question"], "O": r["options"], "A": r["answer"]}) + "\n" for r in rows
        )
    )
    fields = [word for pair in ("question=F", "options=O", "answer=A") for word in ("--fields", f"truthfulqa.{pair}")]
    more = ["--only", "truthfulqa", "--scale", "0.1", "--quiet"]
    named = unslant(*BUILD, *more, "--source", f"truthfulqa={renamed}", *fields, "--out", tmp_path / "a.jsonl")
    assert named.code == 0, named.err
    plain = unslant(
        *BUILD, *more, "--source", f"truthfulqa={shared_data / 'truthfulqa_mc1.jsonl'}", "--out", tmp_path / "b.jsonl"
    )
    assert plain.code == 0, plain.err
    a, b = ([json.loads(line)["options"] for line in (tmp_path / f"{x}.jsonl").open()] for x in "ab")
    assert a == b


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "squad", "--out", "set.jsonl"], "unknown source 'squad'"),
        (["--out", "nowhere/set.jsonl"], "no folder nowhere"),
        (["--scale", "7", "--out", "set.jsonl"], "scale 7"),
        (["--fields", "question=q", "--out", "set.jsonl"], "write it as SOURCE.FIELD=COLUMN"),
        (["--fields", "squad.question=q", "--out", "set.jsonl"], "unknown source 'squad'"),
    ],
)
def test_mistakes_are_named(unslant, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = unslant(*BUILD, *arguments)
    assert done.code == 2
    assert message in done.err
