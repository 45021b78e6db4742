"""``inspect eval`` finds our task by its name and runs it, in a process of its own, with no network but 127.0.0.1."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.command_line import unslant
from tests.plugins.inspect_command import inspect_eval
from tests.serving import Fault, FaultServer, completion
from unslant.errors import InputError
from unslant.studies.instruction_boundary.instruction_settings import present_setting
from unslant.studies.instruction_boundary.question_sources import load_boundary

pytest.importorskip("inspect_ai", reason="needs inspect_ai: pip install 'unslant[inspect]'")


@pytest.mark.thorough
def test_inspect_eval_runs_the_task_and_its_log_becomes_responses(tmp_path):
    def answer(request):
        return Fault(body=completion("True" if "Statement:" in request["messages"][-1]["content"] else "none"))

    with FaultServer(answer).running() as server:
        arguments = ["-T", "settings=vanilla,missing-choices", "-T", "limit=8", "--epochs", "2"]
        done = inspect_eval(tmp_path, server.url, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(server.requests) == 2 * 16 * 2
    assert {request["temperature"] for request in server.requests} == {0.5}

    from inspect_ai.log import list_eval_logs, read_eval_log

    from unslant.plugins.inspect_ai import read_rows
    from unslant.responses import Responses
    from unslant.studies.instruction_boundary.metrics import boundary_metrics

    (info,) = list_eval_logs(str(tmp_path / "logs"))
    log = read_eval_log(info)
    assert log.status == "success"
    scores = {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}
    # Of the choice questions a quarter is none; of the judging ones a quarter is True, which is a dense form.
    assert scores["accuracy"] == pytest.approx(0.25)
    assert scores["dense"] == pytest.approx(0.25)
    assert scores["sparse"] == pytest.approx(0.25)
    rows = read_rows(tmp_path / "logs")
    assert len(rows) == 64
    metrics = boundary_metrics(Responses.from_rows(rows))
    assert metrics.of("missing-choices", "choice")["generalization_none"].value == 1
    assert metrics.of("vanilla", "judging").outputs["True"].value == 1


def test_a_setting_that_does_not_exist_is_named(tmp_path):
    from inspect_ai import eval
    from inspect_ai.model import get_model

    with pytest.raises(InputError, match="unknown setting 'plain'"):
        eval(
            "unslant/instruction_boundary",
            model=get_model("mockllm/model"),
            task_args={"settings": "plain"},
            log_dir=str(tmp_path),
            display="none",
        )


def test_the_command_line_asks_the_same(tmp_path, monkeypatch):
    """``unslant study instruction-boundary`` as typed."""
    monkeypatch.chdir(tmp_path)
    with FaultServer(lambda _: Fault(body=completion("none"))).running() as server:
        command = ["study", "instruction-boundary", "words", "embedded", "--base-url", server.url, "--quiet"]
        command += ["--settings", "vanilla", "--limit", "4"]
        done = unslant(*command, "--json", "r.json", "--responses", "r.parquet", "--html", "r.html")
    assert done.code == 0, done.err
    assert len(server.requests) == 8
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["statuses"] == {"ok": 4, "unparsed": 4}
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_samples_carry_what_is_needed_to_read_the_answer():
    from unslant.plugins.inspect_ai import from_metadata, to_sample

    embedded = load_boundary("embedded")
    for question in (*embedded.choice[::20], *embedded.judging[::20]):
        shown = present_setting(question, "conformity-sparse")
        sample = to_sample(question, shown)
        json.dumps(sample.metadata)
        back = from_metadata(sample.metadata)
        assert (back.labels, back.contents, back.answers) == (shown.labels, shown.contents, shown.answers)
        assert back.interventions == shown.interventions
        assert [message.role for message in sample.input] == ["system", "user"]


def test_the_core_does_not_import_inspect():
    code = (
        "import sys, unslant, unslant.cli, unslant.studies.instruction_boundary.study;"
        "print('inspect_ai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
