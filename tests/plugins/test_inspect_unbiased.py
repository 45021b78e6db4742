"""The inspect task of the unbiased evaluator, run by inspect with a model that answers by rule."""

from __future__ import annotations

import zlib

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import eval as inspect_eval
from inspect_ai.model import ModelAPI, ModelOutput, get_model, modelapi

from tests.studies.fakes import knows, read
from unslant.plugins.inspect_ai import read_unbiased, unbiased
from unslant.prompts import Prompt
from unslant.questions import load_questions


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    answer = knows(load_questions("embedded").questions)

    @modelapi(name="unbiasedrule")
    def rule():
        class Rule(ModelAPI):
            async def generate(self, input, tools, tool_choice, config):
                assert config.temperature == 0.0
                seen = read(Prompt(input[-1].text, ()))
                silent = zlib.crc32(input[-1].text.encode()) % 4 == 0
                reply = "I would rather not answer that." if silent else f"Answer: {answer(seen)}"
                return ModelOutput.from_content(self.model_name, reply)

        return Rule

    folder = tmp_path_factory.mktemp("logs")
    task = unbiased(runs=2, shots=1, limit=12, no_alone=True)
    logs = inspect_eval(
        task, model=get_model("unbiasedrule/x"), log_dir=str(folder), display="none", score_display=False
    )
    return logs[0], folder


def test_the_log_reads_as_a_result(result):
    log, folder = result
    assert log.status == "success"
    (found,) = read_unbiased(folder)
    assert found.model == "unbiasedrule/x"
    assert found.metrics.replies["ours"]["readable"].value == 1.0
    assert found.metrics.replies["vanilla"]["readable"].value == 1.0
    assert found.run.counts.drawn
    assert len(found.responses) == len(log.samples)
    unread = [row for row in found.responses.rows() if row.status != "ok"]
    assert unread
    assert found.metrics.no_answer == len(unread)
    assert found.metrics.failed == 0
    assert found.metrics.vanilla.value < 1.0
    assert all(row.chosen is None for row in unread)


def test_the_log_has_an_accuracy_of_its_own(result):
    log, _ = result
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    (found,) = read_unbiased([log])
    right = sum(row.status == "ok" for row in found.responses.rows())
    assert metrics["accuracy"] == pytest.approx(right / len(log.samples))


def test_open_maths_as_a_task(tmp_path):
    lines = [
        f'{{"id": "m/{i}", "question": "A man with {i} hats buys {3 * i} more. How many now?", "answer": "{4 * i}"}}'
        for i in range(5, 25)
    ]
    (tmp_path / "sums.jsonl").write_text("\n".join(lines))
    task = unbiased(str(tmp_path / "sums.jsonl"), maths=True, runs=1, shots=0, no_alone=True)
    opens = [sample for sample in task.dataset if sample.metadata["block"] == "vanilla"]
    assert len(opens) == 20
    assert opens[0].input[0].role == "system"
    assert opens[0].target == ["20"]
