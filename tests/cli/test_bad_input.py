"""Bad input gets one line that says what to do, exit code 2, and no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Ran
from unslant.errors import OutputError
from unslant.experiment.outputs import check_folder

Run = Callable[..., Ran]


def good(i: int) -> dict[str, object]:
    return {"id": f"q{i}", "question": f"What is {i}?", "options": ["x", "y", "z"], "answer": i % 3}


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def refused(ran: Ran, *words: str) -> None:
    assert ran.code == 2
    assert ran.out == ""
    assert len(ran.err.strip().splitlines()) == 1, ran.err
    for word in words:
        assert word in ran.err


def test_missing_file(unslant: Run) -> None:
    refused(unslant("audit", "fair", "nosuch.jsonl"), "nosuch.jsonl")


def test_empty_file(unslant: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    refused(unslant("audit", "fair", tmp_path / "empty.jsonl"), "empty.jsonl")


def test_wrong_json_on_line_17(unslant: Run, tmp_path: Path) -> None:
    lines = [json.dumps(good(i)) for i in range(20)]
    lines[16] = lines[16][:-5]
    refused(unslant("audit", "fair", write(tmp_path / "q.jsonl", lines)), "q.jsonl", "line 17")


def test_answer_out_of_range(unslant: Run, tmp_path: Path) -> None:
    lines = [json.dumps(good(i)) for i in range(3)] + [json.dumps(good(3) | {"answer": 9})]
    refused(unslant("audit", "fair", write(tmp_path / "q.jsonl", lines)), "line 4", "answer")


def test_one_option(unslant: Run, tmp_path: Path) -> None:
    lines = [json.dumps(good(0)), json.dumps(good(1) | {"options": ["x"], "answer": 0})]
    refused(unslant("audit", "fair", write(tmp_path / "q.jsonl", lines)), "line 2", "options")


def test_unknown_label_set(unslant: Run) -> None:
    refused(unslant("audit", "fair", "embedded", "--labels", "Z"), "label set", "A, a, 1, I, i")


def test_model_folder_without_tokenizer(unslant: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    refused(unslant("audit", tmp_path, "embedded"), "tokenizer")


def test_unknown_model_without_network(unslant: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    refused(unslant("audit", "no-such-model", "embedded"), "no-such-model", "prefers-a")


def test_output_path_is_checked_before_any_work(unslant: Run, tmp_path: Path) -> None:
    refused(unslant("audit", "fair", "embedded", "--json", tmp_path / "no" / "out.json"), "no folder")


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "fair"),
        *(
            ("audit", "fair", option)
            for option in ("--out", "--figures", "--tables", "--json", "--html", "--responses")
        ),
        ("audit", "fair", "--shard", "1/2", "--responses", "x.parquet", "--plan"),
        ("audit", "fair", "--baseline"),
        ("audit", "--log"),
        ("merge", "x.parquet"),
        ("report",),
    ],
    ids=" ".join,
)
def test_a_name_that_the_system_refuses(
    unslant: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(unslant(*words, "n" * 300), "nnn")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--shard", "--out", "--store", "--template", "--methods", "--model"])
def test_an_option_without_its_value_is_not_taken_for_its_default(unslant: Run, option: str) -> None:
    """As in a script, of a variable that was never set."""
    command = ("study", "debias") if option == "--methods" else ("audit",)
    refused(unslant(*command, "fair", f"{option}="), f"{option} is empty: give a value")


def test_an_empty_value_in_a_file_is_the_default(unslant: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unslant.toml").write_text('[audit]\ntemplate = ""\n', "utf-8")
    assert unslant("audit", "fair", "--limit", "5", "--no-store").code == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("study", "base-rate", "fair", "--seed=-1"), "--seed -1: give 0 or more"),
        (("train", "prefers-a", "embedded", "--out", "nowhere", "--seed=-1"), "--seed -1: give 0 or more"),
        (("plan", "--available", "9" * 20), "--available 1e+20: give 1,000,000,000 or less"),
        (("study", "unbiased", "fair", "--shots", "9" * 20), "--shots 1e+20: give 1,000,000,000 or less"),
        (
            ("study", "unbiased", "fair", "--limit", "5", "--shots", "9" * 8),
            "worked examples requested, of at most 4,000",
        ),
    ],
    ids=str,
)
def test_a_number_far_out_of_range(unslant: Run, words: tuple[str, ...], named: str) -> None:
    ran = unslant(*words)
    assert ran.code == 2
    assert named in ran.err.splitlines()[-1]


def test_a_store_where_none_can_be(unslant: Run) -> None:
    for name in ("/", "/dev/null/store"):
        refused(unslant("audit", "fair", "--store", name), "error: /")


def test_the_home_of_a_user_that_there_is_not(unslant: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(unslant("audit", "~nobody-of-this-name/model"), "no such model")
    assert unslant("audit", "fair", "--limit", "5", "--store", "~nobody-of-this-name/store").code == 0


def test_help_is_quick_to_import() -> None:
    code = (
        "import sys; from unslant.cli import app; app(['--help']); "
        "heavy = {'torch', 'transformers', 'numpy', 'pyarrow', 'pydantic', 'datasets'} & set(sys.modules); "
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert b"audit" in done.stdout


def test_the_store_may_be_in_the_folder_where_the_outputs_are_made(tmp_path: Path) -> None:
    (tmp_path / ".unslant").mkdir()
    check_folder(tmp_path / "results")


@pytest.mark.thorough
def test_an_output_that_cannot_be_written_is_code_5_and_the_others_are_there(
    unslant: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(value: object, path: Path) -> None:
        raise OutputError(f"{path}: cannot be written: no space left on device")

    monkeypatch.setattr("unslant.experiment.outputs.write_json", full)
    names = {name: tmp_path / name for name in ("n.json", "r.html", "r.parquet")}
    found = unslant("audit", "fair", "--limit", 3, "--orders", "given", "--no-store", "--json", names["n.json"],
                    "--html", names["r.html"], "--responses", names["r.parquet"])  # fmt: skip
    assert found.code == 5
    assert found.err.splitlines()[-1] == f"error: {names['n.json']}: cannot be written: no space left on device"
    assert "too few for a verdict" in found.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.parquet"]
