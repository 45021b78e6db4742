"""The benchmark finds at its start where it cannot write, keeps what has come, and is compared with the last one."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from benchmarks import changes, compare
from benchmarks.results import OURS


def run(seconds: float, tokens: int = 10) -> dict[str, float]:
    return {"seconds": seconds, "cpu_seconds": seconds, "tokens": tokens, "memory": 1}


def cell(plain: float) -> dict[str, object]:
    runs = {OURS: [run(1.0), run(1.1)], "plain": [run(plain), run(1.2 * plain)]}
    return {"size": "20M", "workload": "w", "questions": 1, "prompts": 2, "runs": runs, "apart": {OURS: 0.0}}


def facts(plain: float) -> dict[str, object]:
    return {"machine": {"processor": "p"}, "clock": "seconds", "cells": [cell(plain)]}


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "random_model", lambda size: None)
    monkeypatch.setattr(compare, "tokenizer", lambda: None)
    for name in ("scaling", "overhead", "whole_audit"):
        monkeypatch.setattr(compare, name, lambda *_: {})
    monkeypatch.setattr(compare, "write_report", lambda facts, folder: "summary")


def test_the_folder_is_made_and_results_are_written_as_they_come(
    no_models: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seen = tmp_path / "not" / "there", []

    def cells(size: str, _: object):
        yield cell(3.0)
        seen.append(json.loads((out / "results.partial.json").read_text())["cells"])
        yield cell(4.0)

    monkeypatch.setattr(compare, "_compare", cells)
    compare.main(["--sizes", "20M", "--out", str(out)])
    assert len(seen[0]) == 1
    assert [path.name for path in out.iterdir()] == ["results.json"]
    written = json.loads((out / "results.json").read_text())
    assert len(written["cells"]) == 2
    assert " to " in written["machine"]["load"]


def test_what_has_come_stays_when_the_run_breaks_off(
    no_models: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cells(size: str, _: object):
        yield cell(3.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "_compare", cells)
    with pytest.raises(KeyboardInterrupt):
        compare.main(["--sizes", "20M", "--out", str(tmp_path)])
    assert len(json.loads((tmp_path / "results.partial.json").read_text())["cells"]) == 1


def test_an_impossible_folder_or_model_is_found_before_anything_runs(
    no_models: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare, "_compare", lambda *_: pytest.fail("ran"))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        compare.main(["--out", str(tmp_path / "file")])
    with pytest.raises(SystemExit):
        compare.main(["--sizes", "real", "--out", str(tmp_path / "new")])
    assert "--sizes real needs --model" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_changes_are_told_and_those_beyond_the_repeats_stand_out() -> None:
    lines = list(changes.table(facts(3.0), facts(6.0)))
    assert lines[2] == "| 20M | w | plain | 3.14 (3.00 to 3.27) | 6.27 (6.00 to 6.55) | **+100%** |"
    assert lines[3].endswith("| +100% |")
    assert list(changes.table(facts(3.0), facts(3.1)))[2].endswith("| +3% |")
    other = copy.deepcopy(facts(3.0))
    other["cells"][0]["questions"] = 2
    assert len(list(changes.table(facts(3.0), other))) == 2


def test_other_numbers_of_tokens_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = facts(3.0)
    new["cells"][0]["runs"][OURS] = [run(1.0, 12), run(1.0, 12)]
    for name, found in (("old", facts(3.0)), ("new", new)):
        (tmp_path / name).write_text(json.dumps(found))
    changes.main([str(tmp_path / "old"), str(tmp_path / "new")])
    assert "20M, w: unslant computes 12 tokens, not 10." in capsys.readouterr().out
