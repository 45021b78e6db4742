"""Outputs of every command: killed while they are written, on a full disk, and behind a full standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.attacked_outputs import COMMANDS, INPUTS, SILENT, attacked, commands, outputs
from tests.cli.killed_work import KILLED, REPLIES, killed_work
from tests.command_line import unslant
from unslant import Responses, audit
from unslant.auditing.result import AuditResult
from unslant.errors import OutputError
from unslant.experiment import OutputOptions
from unslant.experiment.outputs import write_outputs
from unslant.reach import OUTPUTS
from unslant.store import StoreError
from unslant.store.runs import Runs
from unslant.writing import scratch_prefix, write_all, write_atomically, write_folder

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
    assert all(one["tried"] >= 2 for one in found)


@pytest.mark.thorough
def test_outputs_are_old_or_new_and_the_others_are_written(tmp_path: Path) -> None:
    check(attacked(["replies"], tmp_path, seed=5, attempts=3))


@pytest.mark.thorough
@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.slow)], ids=["every other", "every"])
def test_outputs_of_commands(step: int, tmp_path: Path) -> None:
    names = [name for name in COMMANDS if name != "lm-eval" or find_spec("lm_eval")]
    check(attacked(names[::step], tmp_path, seed=7, attempts=1))


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


@pytest.mark.thorough
@pytest.mark.parametrize(
    "ascii",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["strict", "the C locale"],
)
def test_a_standard_output_in_ascii_gets_every_line(ascii: dict[str, str], tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"question": "Dónde?", "options": ["Málaga", "Vigo"], "answer": 0}\n', "utf-8")
    ascii_only = {**os.environ, **ascii, "UNSLANT_HOME": str(tmp_path)}
    ran = run("questions", "check", questions, stdout=subprocess.PIPE, env=ascii_only)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "M\\xe1laga" in ran.stdout
    ran = run("questions", "check", questions, "--json", "-", stdout=subprocess.PIPE, env=ascii_only)
    assert "\xa0%" in json.loads(ran.stdout)["lines"][1]


@pytest.mark.thorough
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
    for numbers in (tmp_path / "n.json", "-"):
        closed = run(*words, numbers, preexec_fn=lambda: os.close(1))
        assert (closed.returncode, closed.stderr.count("error: ")) == (5, 1)
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
        "import resource; from unslant.writing import write_atomically\n"
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


@pytest.mark.thorough
def test_the_attack_notices_a_writer_that_is_not_whole(tmp_path: Path) -> None:
    code = (
        "import unslant.writing as f, sys, pathlib\n"
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


@pytest.mark.thorough
def test_a_local_models_sampled_replies_are_the_same_after_a_kill(tmp_path: Path) -> None:
    (found,) = killed_work([REPLIES], tmp_path, seed=3, kills=2)
    assert found["wrong"] == []
    assert found["within"], "no kill came before the end"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KILLED if name != REPLIES])
def test_commands_killed_at_any_moment_end_as_if_nothing_had_happened(tmp_path: Path, name: str) -> None:
    (found,) = killed_work([name], tmp_path, seed=3, kills=4)
    assert found["wrong"] == []


def test_what_a_killed_process_left_is_deleted_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys; from unslant import writing\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "def killed(file): file.write(b'part'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "if sys.argv[2] == 'file': writing.write_atomically(here / 'out', killed)\n"
        "def save(folder): (folder / 'part').write_text('x'); killed(open(os.devnull, 'wb'))\n"
        "writing.write_folder(here, save)"
    )
    for kind in ("file", "folder"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path), kind], check=False)
    left = list(tmp_path.iterdir())
    assert left
    mine, others = Path(f"{scratch_prefix(tmp_path)}ab.tmp"), Path(".unslant-0123456789ab-1-ab.tmp")
    alike = (mine.name, others.name, ".unslant", ".unslant-notes.tmp", ".unslant-trial")
    for name in alike:
        (tmp_path / name).write_text("not litter")
    write_atomically(tmp_path / "out", "new")
    linux = Path("/proc/self/ns/pid").exists()
    assert {path.name for path in tmp_path.iterdir()} == {*alike, "out", *(() if linux else (p.name for p in left))}


@pytest.mark.parametrize(
    "words",
    [
        "audit fair embedded --limit 3 --orders reverse --json n.json --html r.html",
        *(
            pytest.param(words, marks=pytest.mark.thorough)
            for words in (
                "leaderboard -m fair -m prefers-a --sets embedded --limit 3 --orders 2 --json n.json --html r.html",
                "audit fair embedded --limit 3 --orders reverse --shard 1/2 --responses s.parquet",
                "debias fair embedded --limit 3 --out answers.jsonl",
                "study base-rate fair embedded --limit 3 --json n.json",
            )
        ),
    ],
    ids=lambda words: words.split(" --")[0],
)
def test_a_store_that_fails_after_everything_was_asked_loses_no_output(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Runs, run: str, values: object = (), *_: object) -> None:
        if "questions" not in str(values):  # which are noted before anything is asked
            raise StoreError("runs.sqlite3: cannot be written: no space left on device")

    monkeypatch.chdir(tmp_path)
    for method in ("keep_responses", "note", "end"):
        monkeypatch.setattr(Runs, method, fails)
    ran = unslant(*words.split(), *([] if "--shard" in words else ["--quiet"]), "--store", "runs.sqlite3")
    errors = [line for line in ran.err.splitlines() if not line.startswith(("loading ", "planning: ", "scoring: "))]
    assert (ran.code, errors) == (2, ["error: runs.sqlite3: cannot be written: no space left on device"])
    assert all(Path(file).read_bytes() for file in words.split() if "." in file)


def test_an_output_that_cannot_be_written_comes_before_a_store_that_cannot(tmp_path: Path) -> None:
    def store() -> None:
        raise StoreError("runs.sqlite3: full")

    written = tmp_path / "out"
    with pytest.raises(StoreError, match=r"^runs\.sqlite3: full$"):
        write_all(store, lambda: write_atomically(written, "x"))
    assert written.exists()
    with pytest.raises(OutputError, match=r"^runs\.sqlite3: full; .*there is no folder"):
        write_all(store, lambda: write_atomically(tmp_path / "none" / "a", ""))


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="no locks of folders")
def test_two_commands_that_end_at_once_have_a_folder_each(tmp_path: Path, monkeypatch) -> None:
    first, second = (audit(model, "embedded", limit=2, orders="reverse") for model in ("fair", "prefers-a"))
    writing = threading.Event()

    def slow(result: AuditResult, path: Path) -> None:
        if result is first:
            writing.set()
            time.sleep(0.3)
        path.write_text(result.model)

    monkeypatch.setattr(AuditResult, "to_html", slow)
    options = OutputOptions(out=tmp_path / "out", quiet=True)
    other = threading.Thread(target=write_outputs, args=(first, options), kwargs={"asked": True})
    other.start()
    assert writing.wait(10)
    write_outputs(second, options, asked=True)
    other.join()
    for folder, expected in ((tmp_path / "out", "fair"), (tmp_path / "out-2", "prefers-a")):
        model = json.loads((folder / "numbers.json").read_text())["model"]
        assert (folder / "report.html").read_text() == model == expected
        assert Responses.from_parquet(folder / "responses.parquet").run.model == model
