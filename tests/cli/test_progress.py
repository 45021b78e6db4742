"""What is shown of a run under way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import unslant
from unslant.experiment.running import ProgressView, facts, show_progress
from unslant.models.base import Cost, ModelInfo, Scored, ScoringModel
from unslant.prompts import Prompt
from unslant.responses import Responses, importers


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Model(ScoringModel):
    """What a view looks at."""

    def __init__(self) -> None:
        super().__init__(ModelInfo(name="m"))

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        return iter(())


def view_of(model: Model, clock: Clock) -> tuple[ProgressView, list[str]]:
    """A view that writes a line at every call."""
    lines: list[str] = []
    view = ProgressView(lines.append, clock=clock)
    view.model = model
    return view, lines


def test_rate_and_time_left_leave_out_what_came_from_the_store() -> None:
    clock, model = Clock(), Model()
    view, lines = view_of(model, clock)
    view("scoring", 0, 1000)
    model.recalled = 600
    clock.now += 10
    view("scoring", 600, 1000)
    assert lines == ["scoring: 600 of 1,000"]
    clock.now += 10
    view("scoring", 700, 1000)
    assert lines[-1] == "scoring: 700 of 1,000, 5/s, 1 min 00 s left"
    model.cost = Cost(tokens=1000, tokens_plain=10_000, tokens_baqckv=5000, prompts=700)
    clock.now += 10
    view("scoring", 900, 1000)  # the tokens of 1000 prompts, 700 of which are done
    assert lines[-1] == "scoring: 900 of 1,000, 10/s, 10 s left, 7.0x fewer tokens"
    clock.now += 3600
    view("scoring", 1000, 1000)
    assert "done in 1 h 00 min" in lines[-1]


def test_prompts_taken_over_save_no_tokens() -> None:
    clock, model = Clock(), Model()
    view, lines = view_of(model, clock)
    view("scoring", 0, 1000)
    model.taken_over = 500
    model.cost = Cost(tokens=100, tokens_plain=1000, tokens_baqckv=500, prompts=250)
    clock.now += 10
    view("scoring", 750, 1000)
    assert lines[-1].endswith("5.0x fewer tokens")


def test_plain_lines_come_now_and_then_and_at_the_end() -> None:
    clock, lines = Clock(), list[str]()
    view = ProgressView(lines.append, clock=clock)
    view("scoring", 0, 300)
    for done in range(1, 301):
        clock.now += 0.125
        view("scoring", done, 300)
    assert [line.split(",")[0] for line in lines] == [
        "scoring: 80 of 300",
        "scoring: 160 of 300",
        "scoring: 240 of 300",
        "scoring: 300 of 300",
    ]
    assert lines[0] == "scoring: 80 of 300, 8/s, 28 s left"
    assert lines[-1] == "scoring: 300 of 300, 8/s, done in 38 s"
    view("voting", 0, 10)
    view("voting", 10, 10)
    assert lines[-1].startswith("voting: 10 of 10")


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(quiet=True) as view:
        view("scoring", 0, 2)
        view("scoring", 2, 2)
    with show_progress(quiet=False) as view:
        view("scoring", 0, 2)
        view("scoring", 2, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("scoring: 2 of 2")
    assert "\x1b" not in err
    assert len(err.splitlines()) == 1


def test_a_terminal_gets_one_live_view(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress(quiet=False) as view:
        view.model = Model()  # type: ignore[assignment]
        for done in range(4):
            view("scoring", done, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert "scoring" in err
    assert "3/3" in err


def test_a_phase_that_comes_again_ends_silently_and_is_timed_again() -> None:
    clock, lines = Clock(), list[str]()
    view = ProgressView(lines.append, clock=clock)
    for _ in range(3):
        clock.now += 1
        view("scoring", 20, 20)
    assert len(lines) == 1
    clock.now += 60
    view("scoring", 5, 20)
    clock.now += 10
    view("scoring", 10, 20)
    assert lines[-1].startswith("scoring: 10 of 20, 1/s")


def test_loading_is_said_at_once_on_a_terminal_and_after_a_second_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    live = ProgressView(None, live=False)
    with live.loading("org/name"):
        assert [task.description for task in live.bar.tasks] == ["loading org/name"]
        assert facts(live.bar.tasks[0]) == ["0 s"]
    assert not live.bar.tasks
    lines: list[str] = []
    said = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        said.set()

    plain = ProgressView(write)
    with plain.loading("quick", after=600):
        pass
    with plain.loading("slow"):
        assert said.wait(60)
    assert lines == ["loading slow ..."]


def test_no_time_left_is_estimated_from_the_first_prompts() -> None:
    """4 of 9,397 prompts after 5 s would be three hours; the tree of the whole batch takes four minutes."""
    now = [0.0]
    lines: list[str] = []
    view = ProgressView(lines.append, clock=lambda: now[0])
    view("scoring", 0, 9397)
    for now[0], done in ((11.0, 4), (22.0, 300), (90.0, 310)):
        view("scoring", done, 9397)
    assert ["left" in line for line in lines] == [False, True, True]


def test_a_line_in_place_shows_every_end() -> None:
    """Several models go through the same phase; the last line must not stay at the middle of the last model."""
    lines: list[str] = []
    view = ProgressView(lines.append, clock=Clock(), in_place=True)
    for _ in range(2):
        view("scoring", 0, 10)
        view("scoring", 10, 10)
    assert [line.split(",")[0] for line in lines] == ["scoring: 10 of 10"] * 2


@pytest.mark.parametrize(
    "command",
    [["audit"], ["leaderboard"], ["debias", "--out", "answers.jsonl"], ["report"], ["plan", "--half-width=0.02"]],
)
def test_a_log_is_said_to_be_loaded_while_it_is_read(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"q{i}", "options": ["x", "y"], "answer": "AB"[i % 2], "probs": [0.7, 0.3]} for i in range(12)]
    Path("replies.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    steps: list[str] = []
    load_logs = importers.load_logs

    def read(*args: Any) -> list[Responses]:
        steps.append("read")
        return load_logs(*args)

    @contextmanager
    def loading(view: ProgressView, name: str, after: float) -> Iterator[None]:
        assert after == 10  # off a terminal, a log that takes seconds needs no line
        steps.append(f"loading {name}")
        yield
        steps.append("loaded")

    monkeypatch.setattr(ProgressView, "loading", loading)
    monkeypatch.setattr(importers, "load_logs", read)
    assert unslant(*command, *["--log"] * (command != ["report"]), "replies.jsonl").code == 0
    assert steps == ["loading replies.jsonl", "read", "loaded"]


@pytest.mark.parametrize(("command", "steps"), [("questions check embedded", ["embedded"]), ("plan --available 9", [])])
def test_a_command_that_asks_no_model_says_what_it_reads(
    command: str, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    @contextmanager
    def loading(view: ProgressView, name: str, after: float) -> Iterator[None]:
        if view.write:  # not quiet
            read.append(name)
        yield

    monkeypatch.setattr(ProgressView, "loading", loading)
    assert unslant(*command.split()).code == 0
    assert read == steps
    assert unslant(*command.split(), "--quiet").code == 0
    assert read == steps
