"""Outputs of every command: killed while they are written, on a full disk, and behind a full standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.attacked_outputs import COMMANDS, INPUTS, QUICK, SILENT, SLOW, attacked, commands, outputs
from unslant.errors import OutputError
from unslant.files import write_atomically
from unslant.studies.command_line import OUTPUTS
from unslant.writing import write_all, write_folder

OF_STANDARD_OUTPUT = ("models", "templates", "runs list", "runs show")


def test_every_command_and_every_output_is_known() -> None:
    known = dict(commands())
    writing = {name for name, arguments in known.items() if outputs(arguments)}
    assert writing == set(COMMANDS), "a command that writes files must be in the attack"
    assert known.keys() - writing == {*OF_STANDARD_OUTPUT, *SILENT}
    for name, arguments in known.items():
        unknown = outputs(arguments).keys() - OUTPUTS - {"output"}
        assert not unknown, f"{name}: is {unknown} an output (command_line.OUTPUTS) or an input?"
    assert not OUTPUTS & INPUTS


def check(found: list[dict[str, Any]]) -> None:
    assert [f"{one['command']}: {wrong}" for one in found for wrong in one["wrong"]] == []
    assert all(one["tried"] >= 3 for one in found)


def test_outputs_are_old_or_new_and_the_others_are_written(tmp_path: Path) -> None:
    names = ["replies", "report", "merge", "runs export", "--install-completion", "questions check"]
    check(attacked(names, tmp_path, seed=5, attempts=2))


@pytest.mark.thorough
@pytest.mark.parametrize("names", [list(QUICK), *([name] for name in SLOW)], ids=lambda names: names[0])
def test_outputs_of_every_command(tmp_path: Path, names: list[str]) -> None:
    if names == ["lm-eval"]:
        pytest.importorskip("lm_eval")
    check(attacked(names, tmp_path, seed=7, attempts=6))


def run(*words: object, **streams: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from unslant.cli import main; main()", *map(str, words)]
    return subprocess.run(command, text=True, check=False, stderr=subprocess.PIPE, **streams)


@pytest.mark.parametrize("words", [("models",), ("--help",), ("runs", "list", "--json")], ids=lambda words: words[0])
def test_a_full_standard_output_is_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        ran = run(*words, stdout=full, env={**os.environ, "UNSLANT_HOME": str(tmp_path)})
    if words[0] == "runs":  # there is no store
        assert ran.returncode == 2
    else:
        assert (ran.returncode, ran.stderr) == (
            5, "error: standard output: cannot be written: no space left on device\n",
        )  # fmt: skip


def test_a_reader_who_leaves_early_and_a_closed_standard_output_lose_no_file(tmp_path: Path) -> None:
    recorded = tmp_path / "replies.jsonl"
    recorded.write_text(json.dumps({"id": "1", "options": ["x", "y"], "reply": "Answer: A"}) + "\n")
    words = ("replies", recorded, "--out", tmp_path / "read.jsonl", "--json")
    reading, writing = os.pipe()
    os.close(reading)
    left = run(*words, tmp_path / "n.json", stdout=writing)
    assert (left.returncode, left.stderr) == (0, "")
    unread = run(*words, "-", stdout=writing)
    os.close(writing)
    assert unread.returncode == 5
    assert unread.stderr.endswith("error: standard output: cannot be written: broken pipe\n")
    closed = run(*words, tmp_path / "n.json", preexec_fn=lambda: os.close(1))
    assert (closed.returncode, closed.stderr.count("\n")) == (5, 1)
    assert json.loads((tmp_path / "n.json").read_text())["n"] == 1
    assert json.loads((tmp_path / "read.jsonl").read_text())["read"] == ["A"]


def test_one_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    paths = [tmp_path / "none" / "a", tmp_path / "b", Path("/dev/full"), tmp_path / "c"]
    with pytest.raises(OutputError) as caught:
        write_all(*(lambda path=path: write_atomically(path, "new") for path in paths))  # type: ignore[misc]
    assert all(str(path) in str(caught.value) for path in (paths[0], paths[2]))
    assert [path.read_text() for path in (paths[1], paths[3])] == ["new", "new"]
    with pytest.raises(OutputError, match=r"and 7 more$"):
        write_all(*(lambda i=i: write_atomically(tmp_path / "none" / str(i), "") for i in range(12)))  # type: ignore[misc]


def test_a_folder_gets_whole_files_and_keeps_what_is_not_ours(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    (folder / "config.json").write_text("old")

    def save(scratch: Path) -> None:
        (scratch / "config.json").write_text("new")
        (scratch / "parts").mkdir()
        (scratch / "parts" / "one").write_text("1")

    def fails(scratch: Path) -> None:
        save(scratch)
        raise ValueError("IoError: no space left on device\nin a library")

    with pytest.raises(OutputError, match="model: cannot be written: ioerror"):
        write_folder(folder, fails)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"mine": "mine", "config.json": "old"}
    write_folder(folder, save)
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert files == {"mine": "mine", "config.json": "new", "parts/one": "1"}


def test_what_a_library_makes_of_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    code = (
        "import resource; from unslant.files import write_atomically\n"
        "def content(file):\n"
        "    try: file.write(b'x' * 100_000)\n"
        "    except OSError: raise RuntimeError('enforce fail at inline_container.cc') from None\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        f"write_atomically({str(path)!r}, content)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"OutputError: {path}: cannot be written: file too large" in ran.stderr
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_attack_notices_a_writer_that_is_not_whole(tmp_path: Path) -> None:
    code = (
        "import unslant.files as f, sys, pathlib\n"
        "whole = f.write_atomically\n"
        "def part(path, content): (pathlib.Path(path).write_bytes if type(content) is bytes else \n"
        "    lambda content: whole(path, content))(content)\n"
        "f.write_atomically = part\n"
        "from tests.cli.attacked_outputs import main\n"
        "main(sys.argv[1], '5', '4', 'replies')"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(tmp_path)]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert any("neither the old nor the new" in wrong for wrong in json.loads(ran.stdout.splitlines()[-1])["wrong"])
