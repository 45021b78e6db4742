"""Nothing of the user's is written over, and no output over another."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import unslant
from unslant import audit
from unslant.auditing.comparison import AuditComparison
from unslant.experiment import OutputOptions
from unslant.experiment.outputs import write_outputs
from unslant.models.open import open_model
from unslant.reach import Command
from unslant.writing import write_folder

QUESTION = {"id": "q", "question": "Is it?", "options": ["yes", "no"], "answer": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("audit", "fair", "q.jsonl", "--json", "q.jsonl"),
            "--json q.jsonl: is also QUESTIONS and would be overwritten",
        ),
        (("audit", "fair", "q.jsonl", "--html", "./q.jsonl"), "--html q.jsonl: is also QUESTIONS"),
        (("audit", "fair", "q.jsonl", "--json", "a", "--html", "a"), "--html a: is also where --json is written"),
        (("audit", "--log", "q.jsonl", "other.jsonl", "--responses", "other.jsonl"), "is also --log"),
        (
            ("audit", "fair", "other.jsonl", "--shots", "1", "--shots-from", "q.jsonl", "--json", "q.jsonl"),
            "--shots-from",
        ),
        (("debias", "fair", "q.jsonl", "--out", "q.jsonl"), "--out q.jsonl: is also QUESTIONS"),
        (("debias", "fair", "q.jsonl", "--train", "other.jsonl", "--out", "other.jsonl"), "is also --train"),
        (("study", "debias", "fair", "q.jsonl,other.jsonl", "--json", "other.jsonl"), "is also QUESTIONS"),
        (("replies", "q.jsonl", "--out", "q.jsonl"), "q.jsonl"),
        (("report", "q.jsonl", "--out", "q.jsonl"), "--out q.jsonl: is also RUNS"),
        (("audit", "fair", "q.jsonl", "--store", "s", "--json", "s"), "--json s: is the run store"),
        (
            ("audit", "fair", "q.jsonl", "--out", ".", "--html", "numbers.json"),
            "numbers.json: is also where --html is written",
        ),
        (("study", "base-rate", "fair", "q.jsonl", "--charts", "a.svg", "--html", "a.svg"), "is also where --"),
        (
            ("audit", "fair", "q.jsonl", "--out", "f", "--tables", "f"),
            "f: is also where --out is written; give another name",
        ),
        (("rerun", "q.jsonl", "--json", "q.jsonl"), "--json q.jsonl: is also FILE"),
        (("train", "fair", "q.jsonl", "--out", "q.jsonl/x"), "cannot be made: "),
        (
            ("questions", "build", "instruction-boundary", "--source", "mmlu=q.jsonl", "--out", "q.jsonl"),
            "--out q.jsonl: is also --source",
        ),
        (("audit", "fair", "q.jsonl", "--html", "-"), "only --json can be written to standard output"),
        (("audit", "fair", "q.jsonl", "--out", "q.jsonl/folder"), "q.jsonl"),
        (("audit", "fair", "q.jsonl", "--json", "nowhere/a.json"), "there is no folder nowhere"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written = json.dumps(QUESTION) + "\n"
    for name in ("q.jsonl", "other.jsonl"):
        Path(name).write_text(written)
    ran = unslant(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"q.jsonl", "other.jsonl"}
    assert all(path.read_text() == written for path in tmp_path.iterdir())


def test_links_do_not_help(tmp_path: Path) -> None:
    questions, link = tmp_path / "q.jsonl", tmp_path / "link.json"
    questions.write_text(json.dumps(QUESTION) + "\n")
    link.symlink_to(questions)
    ran = unslant("audit", "fair", questions, "--json", link)
    assert (ran.code, "is also QUESTIONS" in ran.err) == (2, True)


def test_a_folder_for_results_holds_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("responses.parquet").write_bytes(b"recorded")
    ran = unslant("audit", "--log", "responses.parquet", "--out", ".")
    assert ran.code == 2
    assert "responses.parquet: is also --log" in ran.err
    assert Path("responses.parquet").read_bytes() == b"recorded"


def test_a_model_is_not_saved_over_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model").mkdir()
    ran = unslant("study", "contamination", "model", "--save-model", "./model/")
    assert (ran.code, "--save-model model: is also MODEL" in ran.err) == (2, True)


def test_a_folder_that_cannot_be_written_into_is_found_before_any_work(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("unslant.experiment.job.open_model", lambda *_, **__: pytest.fail("work began"))
    Path("link").symlink_to("nowhere")
    for folder in ("link", "link/results"):
        ran = unslant("audit", "fair", "--out", folder)
        assert (ran.code, "link is not a folder" in ran.err) == (2, True)
    results = tmp_path / "results"
    (results / "report.html").mkdir(parents=True)
    ran = unslant("audit", "fair", "--out", results)
    assert (ran.code, "report.html: is a folder" in ran.err) == (2, True)


@pytest.mark.thorough
def test_a_folder_with_the_result_of_another_command_is_refused_before_any_work(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ("audit", "fair", "embedded", "--limit", 4, "--orders", "reverse")
    assert unslant(*made[:5], "--seed", 5, "--out", "seeds", "--quiet").code == 0
    assert unslant(*made[:4], 5, "--seed", 4, "--out", "seeds", "--quiet").code == 2  # the same words, but not the same
    assert unslant(*made, "--out", "results", "--quiet").code == 0
    kept = {path.name: path.read_bytes() for path in Path("results").iterdir()}
    again = unslant("audit", "fair", "--orders=reverse", "embedded", "--limit=4", "--out", "results", "--details")
    assert again.code == 0, again.err
    Path("results/numbers.json").write_text("")  # as a killed run leaves it
    assert unslant(*made, "--out", "results", "--quiet").code == 0
    monkeypatch.setattr("unslant.models.open.open_model", lambda *_, **__: pytest.fail("work began"))
    for other in (("audit", "prefers-a", *made[2:]), (*made[:4], 3, *made[5:]), ("study", "debias", *made[1:])):
        ran = unslant(*other, "--out", "results")
        assert ran.code == 2
        assert "results: holds the result of unslant audit fair embedded --" in ran.err
        assert "give another folder" in ran.err
    assert {path.name for path in Path("results").iterdir()} == kept.keys()
    for users in ("{}", '{"a":', "[1]", "0.5"):
        Path("results/numbers.json").write_text(users)
        ran = unslant(*made, "--out", "results")
        assert (ran.code, ran.err.count("\n"), "give another folder" in ran.err) == (2, 1, True), ran.err
        assert Path("results/numbers.json").read_text() == users


@pytest.mark.thorough
def test_numbers_on_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = unslant("audit", "fair", "--limit", 4, "--orders", "reverse", "--json", "-", "--no-store")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["study"] == "audit"
    assert "too few for a verdict" in ran.err
    quiet = unslant("audit", "fair", "--limit", 4, "--orders", "reverse", "--json", "-", "--no-store", "-q")
    assert json.loads(quiet.out)["metrics"] == json.loads(ran.out)["metrics"]
    assert quiet.err == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_a_merge_or_a_log_keeps_the_folder_of_another_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ("audit", "fair", "embedded", "--limit", 4, "--orders", "reverse", "--quiet")
    for part in (1, 2):
        assert unslant(*made, "--shard", f"{part}/2", "--responses", f"{part}.parquet").code == 0
    merge = ("merge", "merged.parquet", "1.parquet", "2.parquet", "--quiet", "--out")
    assert unslant("audit", "prefers-a", *made[2:], "--out", "other").code == 0
    kept = {path: path.read_bytes() for path in Path("other").iterdir()}
    refused = unslant(*merge, "other")
    assert (refused.code, "other: holds the result of unslant audit prefers-a" in refused.err) == (2, True)
    assert not Path("merged.parquet").exists()
    for _ in range(2):
        assert unslant(*merge, "own").code == 0
        assert unslant("audit", "--log", "merged.parquet", "--out", "own", "--quiet").code == 0
        assert unslant(*made, "--offline", "--out", "own").code == 0
    refused = unslant("audit", "--log", "merged.parquet", "--out", "other", "--quiet")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert kept == {path: path.read_bytes() for path in Path("other").iterdir()}


@pytest.mark.thorough
def test_a_folder_without_numbers_is_of_the_command_of_its_other_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ("audit", "fair", "embedded", "--limit", 4, "--orders", "reverse", "--quiet", "--json", "n.json", "--out")
    assert unslant(*made, "results").code == 0
    Path("results/responses.parquet").rename("responses.parquet")
    refused = unslant("audit", "prefers-a", *made[2:], "results")
    assert (refused.code, "results: holds the result of unslant audit fair" in refused.err) == (2, True)
    assert unslant(*made, "results").code == 0
    Path("mine").mkdir()
    Path("mine/report.html").write_text("<p>notes")
    refused = unslant(*made, "mine")
    assert (refused.code, refused.err.count("\n"), Path("mine/report.html").read_text()) == (2, 1, "<p>notes")


@pytest.mark.thorough
def test_of_two_commands_that_start_at_once_with_one_folder_each_keeps_its_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ("audit", "fair", "embedded", "--limit", 4, "--orders", "reverse", "--quiet", "--out", "results")
    opened = open_model

    def late(*arguments: Any, **options: Any) -> Any:
        """Another command checks the folder too, and writes into it, before this one does."""
        monkeypatch.setattr("unslant.experiment.job.open_model", opened)
        assert unslant("audit", "prefers-a", *made[2:]).code == 0
        return opened(*arguments, **options)

    monkeypatch.setattr("unslant.experiment.job.open_model", late)
    ran = unslant(*made)
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert f"this result is in {tmp_path / 'results-2'}" in ran.err
    for folder, model in (("results", "prefers-a"), ("results-2", "fair")):
        assert json.loads(Path(folder, "numbers.json").read_text())["provenance"]["models"][0]["name"] == model
        assert len(list(Path(folder).iterdir())) == 3


@pytest.mark.thorough
def test_folders_of_figures_and_tables_keep_the_result_of_another_command(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ("audit", "fair", "embedded", "--limit", 4, "--orders", "reverse", "--quiet")
    written = ("--figures", "figures", "--tables", "tables", "--responses", "run.parquet")
    assert unslant(*made, *written).code == 0
    kept = {path: path.read_bytes() for folder in ("figures", "tables") for path in Path(folder).iterdir()}
    assert {Path("figures/provenance.json"), Path("tables/provenance.json")} <= kept.keys()
    report = ("report", "run.parquet", "--figures", "figures", "--tables", "tables", "--quiet")
    for same in ((*made, *written[:4]), ("audit", "--log", "run.parquet", *written[:4], "--quiet"), report):
        assert unslant(*same).code == 0
    assert unslant("audit", "prefers-a", *made[2:], "--responses", "other.parquet").code == 0
    for option in (written[:2], written[2:4]):
        for other in (
            ("audit", "prefers-a", *made[2:], *option),
            ("audit", "--log", "other.parquet", *option),
            ("report", "other.parquet", *option),
            ("report", "run.parquet", "other.parquet", *option),
        ):
            ran = unslant(*other)
            assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
            assert f"{option[1]}: holds the result of unslant audit fair embedded --" in ran.err
    assert unslant("rerun", "tables", "--limit", 2, "--anyway", "-q").code == 0
    Path("figures/numbers.json").write_text("{}")  # figures are not written over it
    assert unslant(*report).code == 0
    Path("figures/numbers.json").unlink()
    assert kept.keys() == {path for folder in ("figures", "tables") for path in Path(folder).iterdir()}
    assert all(path.read_bytes() == content for path, content in kept.items() if path.suffix in (".csv", ".tex"))


@pytest.mark.thorough
def test_one_command_with_two_names_of_an_option_is_one_command(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rest = ("embedded", "--limit", 3, "--orders", "reverse", "--tables", "tables", "-q")
    for name in ("-m", "--model"):
        ran = unslant("audit", name, "fair", *rest)
        assert ran.code == 0, ran.err
    assert "--model" in json.loads(Path("tables/provenance.json").read_text())[0]["command"]


@pytest.mark.thorough
def test_responses_of_an_earlier_run_that_were_not_replaced_are_named(tmp_path: Path, capsys, monkeypatch) -> None:
    words = ("audit", "--model", "fair", "--model", "prefers-a")
    command = Command(words, words)
    monkeypatch.setattr("unslant.experiment.job.COMMAND", ContextVar("command", default=command))
    results = [audit(model, "embedded", limit=2, orders="reverse") for model in ("fair", "prefers-a")]
    monkeypatch.setattr(AuditComparison, "to_html", lambda *_: None)  # of all outputs it takes the longest
    options = OutputOptions(out=tmp_path / "out", quiet=True)
    write_outputs(AuditComparison.of(results), options, asked=True)
    write_outputs(AuditComparison.of(results), options, asked=True)
    assert capsys.readouterr().err == ""
    write_outputs(AuditComparison.of(results[:1]), options, asked=True)  # the other has failed
    left = tmp_path / "out" / "responses-prefers-a.parquet"
    assert capsys.readouterr().err == f"warning: {left} is of an earlier run; this one has no such responses\n"
    assert left.exists()


def test_a_folder_that_refuses_files_is_named_as_it_was_typed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    os.chmod("results", 0o500)
    if os.access("results", os.W_OK):  # root writes anywhere
        monkeypatch.setattr(Path, "touch", lambda *_, **__: os.open("/proc/version/none", os.O_WRONLY))
    for folder in ("results", "results/new"):
        ran = unslant("audit", "fair", "--out", folder)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert ran.err.startswith(f"error: {folder}: cannot be written: ")


@pytest.mark.parametrize("folder", ["-", "~", "~/results"])
def test_a_folder_that_nobody_means_is_not_made(tmp_path: Path, monkeypatch, folder: str) -> None:
    monkeypatch.chdir(tmp_path)
    for option in ("--out", "--tables"):
        ran = unslant("audit", "fair", f"{option}={folder}")
        assert (ran.code, ran.err) == (
            2,
            f"error: {folder}: would be a folder of this very name: give another, without the sign\n",
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names, and keep such folders")
def test_a_locale_without_utf_8_is_named_and_not_the_file(tmp_path: Path) -> None:
    (tmp_path / "fr\u00e4ge.csv").write_text("question,A,B,answer\nIs it?,yes,no,A\n")
    locale = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    words = [sys.executable, "-m", "unslant", "questions", "check", b"fr\xc3\xa4ge.csv"]
    ran = subprocess.run(words, cwd=tmp_path, env=os.environ | locale, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.endswith("Python reads the command line as ascii here; set PYTHONUTF8=1\n")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names, and keep such folders")
def test_names_that_are_not_text_and_folders_that_are_gone_are_one_line(tmp_path: Path, monkeypatch) -> None:
    name = os.fsdecode(b"b\xff.csv")
    (tmp_path / name).write_text("question,A,B,answer\nIs it?,yes,no,A\n")
    (tmp_path / os.fsdecode(b"folder\xff")).mkdir()
    monkeypatch.chdir(tmp_path)
    rest = ("--orders", "reverse", "--quiet")
    for words in (("fair", name), ("fair", "embedded", "--limit", "2", "--json", name)):
        ran = unslant("audit", *words, *rest, "--no-store")
        assert (ran.code, ran.err.count("\n"), "\\udcff.csv: is not UTF-8 text" in ran.err) == (2, 1, True), ran.err
    monkeypatch.chdir(tmp_path / os.fsdecode(b"folder\xff"))
    words = ("audit", "fair", "embedded", "--limit", "2", *rest, "--store", tmp_path / "s")
    assert unslant(*words).code == 0
    assert "done" in unslant("runs", "list", "--store", tmp_path / "s").out
    os.rmdir(os.getcwd())
    for words in (("audit", "fair"), ("runs", "list"), ("audit", "--log", "log.parquet")):
        ran = unslant(*words)
        assert (ran.code, ran.err.count("\n"), "the working folder cannot be read" in ran.err) == (2, 1, True), ran.err
    monkeypatch.chdir(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="simulates it")
def test_a_command_and_a_folder_of_outputs_without_what_windows_does_not_have(tmp_path: Path, monkeypatch) -> None:
    import fcntl

    def fsync(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_, **__: -1)
    monkeypatch.delattr(os, "set_blocking")  # before Python 3.12
    monkeypatch.chdir(tmp_path)
    Path("q.jsonl").write_text(json.dumps(QUESTION))
    assert unslant("questions", "check", "q.jsonl", "-q", "--json", "n.json").code == 0
    write_folder("made", lambda folder: (folder / "a.csv").write_text("a"))
    assert Path("made", "a.csv").read_text() == "a"
