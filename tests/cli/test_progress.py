"""What is shown of a run under way."""

from __future__ import annotations

import pytest

from unslant.cli.progress import Lines, Meter, progress
from unslant.models.base import Cost


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Model:
    """What a view looks at."""

    def __init__(self) -> None:
        self.cost = Cost()
        self.recalled = 0
        self.taken_over = 0


def test_rate_and_time_left_leave_out_what_came_from_the_store() -> None:
    clock, model = Clock(), Model()
    meter = Meter("scoring", 1000, clock, model)  # type: ignore[arg-type]
    assert str(meter) == "scoring: 0 of 1,000"
    model.recalled = 600
    meter.done = 600
    clock.now += 1
    assert str(meter) == "scoring: 600 of 1,000"
    meter.done = 700
    clock.now += 4
    assert meter.rate == 20
    assert meter.seconds_left == 15
    model.cost = Cost(tokens=1000, tokens_plain=10_000, prompts=700)
    assert meter.fewer_tokens == pytest.approx(7.0)  # the tokens of 1000 prompts, 700 of which are done
    assert str(meter) == "scoring: 700 of 1,000, 20/s, 15 s left, 7.0x fewer tokens"
    meter.done = 1000
    clock.now += 3600
    assert "done in 1 h 00 min" in str(meter)


def test_prompts_taken_over_save_no_tokens() -> None:
    model = Model()
    meter = Meter("scoring", 1000, Clock(), model)  # type: ignore[arg-type]
    model.taken_over = 500
    model.cost = Cost(tokens=100, tokens_plain=1000, prompts=250)
    assert meter.fewer_tokens == pytest.approx(5.0)


def test_plain_lines_come_now_and_then_and_at_the_end() -> None:
    clock, lines = Clock(), list[str]()
    view = Lines(lines.append, clock)
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
    with progress(quiet=True) as view:
        view("scoring", 0, 2)
        view("scoring", 2, 2)
    with progress(quiet=False) as view:
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
    with progress(quiet=False) as view:
        view.follow(Model())  # type: ignore[arg-type]
        for done in range(4):
            view("scoring", done, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert "scoring" in err
    assert "3/3" in err


def test_a_phase_that_comes_again_ends_silently_and_is_timed_anew() -> None:
    clock, lines = Clock(), list[str]()
    view = Lines(lines.append, clock)
    for _ in range(3):
        clock.now += 1
        view("scoring", 20, 20)
    assert len(lines) == 1
    clock.now += 60
    view("scoring", 5, 20)
    clock.now += 10
    view("scoring", 10, 20)
    assert lines[-1].startswith("scoring: 10 of 20, 1/s")
