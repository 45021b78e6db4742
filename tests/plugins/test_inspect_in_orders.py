"""Any multiple-choice data set or task of inspect in all orders: samples, scorer, task, and the log read back."""

from __future__ import annotations

import math
import re
from itertools import permutations

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="needs inspect_ai: pip install 'unslant[inspect]'")

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import Logprob, Logprobs, ModelOutput, ModelUsage, TopLogprob, get_model
from inspect_ai.scorer import choice, includes
from inspect_ai.solver import multiple_choice
from rich.text import Text

import unslant
from tests.plugins.colours import OPTIONS, STEMS, answering, page, prefers_a
from tests.plugins.inspect_command import run_inspect
from tests.serving import FaultServer
from unslant.errors import InputError
from unslant.inspect import choice_in_orders, in_orders

pytestmark = pytest.mark.thorough


def samples(number=8):
    """Thing i is of colour i."""
    return [
        Sample(id=f"thing/{i}", input=STEMS[i], choices=list(OPTIONS), target="ABCD"[i % 4], metadata={"subject": "x"})
        for i in range(number)
    ]


def model(answer):
    """A model that answers by rule, and reports what it used: inspect would fetch a tokenizer to count it."""

    def reply(input, tools, tool_choice, config):
        output = answer(input[-1].text)
        output = output if isinstance(output, ModelOutput) else ModelOutput.from_content("rule", output)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


def run(task, answer, folder, **options):
    (log,) = inspect_eval(task, model=model(answer), log_dir=str(folder), display="none", **options)
    assert log.status == "success", log.error
    (score, *_) = log.results.scores
    return log, {metric.name: metric.value for metric in score.metrics.values()}, log.location.removeprefix("file://")


def coloured(dataset, **options):
    return Task(dataset=MemoryDataset(list(dataset), name="colours"), solver=multiple_choice(), **options)


def test_every_sample_in_every_order():
    found = in_orders(samples(3))
    assert len(found) == 3 * 24
    assert [sample.metadata["unslant"]["id"] for sample in found] == [f"thing/{i}" for i in range(3) for _ in range(24)]
    for sample in found:
        shown = sample.metadata["unslant"]
        assert sample.id == f"{shown['id']}|{'-'.join(map(str, shown['order']))}"
        assert shown["labels"] == list("ABCD")
        assert sample.choices == [OPTIONS[i] for i in shown["order"]]
        thing = int(shown["id"].rpartition("/")[2])
        assert [OPTIONS[thing]] == [sample.choices["ABCD".index(label)] for label in sample.target]
        assert sample.metadata["subject"] == "x"
    assert {tuple(s.metadata["unslant"]["order"]) for s in found[:24]} == set(permutations(range(4)))
    assert [len(in_orders(samples(3), orders)) for orders in ("cyclic", "reverse", "given")] == [12, 6, 3]
    for orders in (5, "5"):
        sampled = in_orders(samples(20), orders)
        shown = [sample.metadata["unslant"] for sample in sampled]
        besides = [one for one in shown if one.get("besides")]
        assert len(shown) == 20 * 5 + len(besides)
        assert 0 < len(besides) < 20
        assert all(one["order"] == [0, 1, 2, 3] for one in besides)
        assert sum(one["order"] == [0, 1, 2, 3] for one in shown) == 20


def test_targets_ids_and_choices_that_speak_about_others():
    several = Sample(input="?", choices=list("wxyz"), target="A, C")
    closed = Sample(input="?", choices=["x", "y", "z", "None of the above"], target=["d"])
    own = Sample(input="?", choices=list("xyz"), target="C", metadata={"unslant": {"pinned": [0]}})
    found = in_orders([several, closed, own], "cyclic")
    assert [sample.metadata["unslant"]["id"] for sample in found] == ["1"] * 4 + ["2"] * 3 + ["3"] * 2
    assert {tuple(sorted(s.choices["ABCD".index(t)] for t in s.target)) for s in found[:4]} == {("w", "y")}
    assert {sample.choices[3] for sample in found[4:7]} == {"None of the above"}
    assert [sample.metadata["unslant"]["pinned"] for sample in found[4:]] == [[3]] * 3 + [[0]] * 2
    assert several.choices == list("wxyz")
    assert several.metadata is None


def test_a_limit_counts_questions():
    some, more = in_orders(samples(), "cyclic", limit=2), in_orders(samples(), "cyclic", limit=4)
    assert len(some) == 8
    assert {sample.id for sample in some} < {sample.id for sample in more}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([Sample(id="q", input="?", target="yes")], "sample 'q': has no choices"),
        ([Sample(id="q", input="?", choices=["x", "y"], target="C")], "sample 'q'.*'C' is not one of the labels A, B"),
        ([Sample(id="q", input="?", choices=["x", "y"], target="x y")], "sample 'q'.*'x'"),
        ([Sample(id=1, input="?", choices=["x", "y"], target="A")] * 2, "sample '1': two samples have this id"),
        ([Sample(id="q", input="?", choices=["x"], target="A")], "sample 'q': options: 1 given"),
        ([Sample(id="q", input="?", choices=["x"] * 101, target="A")], "sample 'q': options: 101 given"),
        ([], "the data set holds no samples"),
        (in_orders([Sample(id="q", input="?", choices=["x", "y"], target="A")]), "already one of several orders"),
    ],
)
def test_what_cannot_be_shown_in_orders_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        in_orders(wrong)


def test_a_task_keeps_all_but_choice(tmp_path):
    task = coloured(samples(2), scorer=[choice(), includes()])
    made = in_orders(task, "cyclic")
    assert (len(task.dataset), len(task.scorer), len(made.dataset)) == (2, 2, 8)
    log, _, _ = run(made, lambda text: "ANSWER: A", tmp_path)
    assert [score.name for score in log.results.scores] == ["choice_in_orders", "includes"]
    assert log.eval.dataset.name == "colours"


def test_planted_preference_is_named_by_the_metrics_and_from_the_log(tmp_path):
    task = in_orders(coloured(samples(20), scorer=choice()), "cyclic")
    log, numbers, path = run(task, lambda text: f"ANSWER: {prefers_a(text)}", tmp_path)
    phrase = next(name for name in numbers if "unsure" in name)
    assert phrase.startswith("falls back on A when unsure")
    assert "pbm" not in numbers
    assert numbers == pytest.approx(
        {"mean_over_orders": 0.625, "stderr": math.sqrt(0.375**2 * 20 / 19 / 20), "consistency": 0.5, "unanswered": 0}
        | {phrase: 0.5}
    )
    read = unslant.audit(log=path)
    assert read.metrics.preference.phrase == phrase
    assert read.metrics.means["expected_accuracy"].value == numbers["mean_over_orders"]
    assert read.metrics.means["consistency"].value == numbers["consistency"]
    for row in read.responses.rows():
        sample = next(s for s in log.samples if s.id == f"{row.question_id}|{'-'.join(map(str, row.contents))}")
        assert row.labels == tuple("ABCD")
        assert sample.choices == [OPTIONS[i] for i in row.contents]
        assert row.answers == {int(row.question_id.rpartition("/")[2]) % 4}
        assert {sample.scores["choice_in_orders"].answer} == {row.labels[row.contents.index(c)] for c in row.chosen}


def scored(text, top=None):
    """A reply with the alternatives at the token of the answer: what the thing is gets +1 nat, A gets +2."""
    thing, shown = page(text)
    logits = {
        label: (option == OPTIONS[thing % 4]) + 2.0 * (label == "A") - thing / 10 for label, option in shown.items()
    }
    total = np.logaddexp.reduce([*logits.values(), -3.0])
    found = sorted(((value - total, label) for label, value in logits.items()), reverse=True)
    kept = [TopLogprob(token=f" {label}", logprob=value) for value, label in found][:top]
    best = kept[0]
    output = ModelOutput.from_content("rule", f"ANSWER:{best.token}")
    said = Logprob(token="ANSWER:", logprob=-0.1, top_logprobs=[TopLogprob(token="ANSWER:", logprob=-0.1)])
    output.choices[0].logprobs = Logprobs(
        content=[said, Logprob(token=best.token, logprob=best.logprob, top_logprobs=kept)]
    )
    return output


def test_pbm_is_of_the_top_log_probabilities(tmp_path):
    """Against the formula, from the logged tokens: mean over options of the variance over orders."""
    log, numbers, path = run(in_orders(coloured(samples(3)), "all"), scored, tmp_path)
    by_question: dict[str, list[list[float]]] = {}
    for sample in log.samples:
        top = sample.output.choices[0].logprobs.content[1].top_logprobs
        weights = {one.token.strip(): math.exp(one.logprob) for one in top}
        contents = dict(zip(sample.choices, [weights[label] / sum(weights.values()) for label in "ABCD"], strict=True))
        by_question.setdefault(sample.metadata["unslant"]["id"], []).append([contents[option] for option in OPTIONS])
    expected = np.mean([np.var(probs, axis=0).mean() for probs in by_question.values()])
    assert numbers["pbm"] == pytest.approx(expected, rel=1e-9)
    read = unslant.audit(log=path)
    assert read.metrics.means["pbm"].value == pytest.approx(numbers["pbm"], rel=1e-9)
    assert read.metrics.preference.phrase in numbers
    row = read.responses.rows()[0]
    assert row.logprobs is not None
    assert row.chosen == {row.contents[int(np.argmax(row.logprobs))]}


def test_labels_outside_the_top_are_bounds(tmp_path):
    log, numbers, path = run(in_orders(coloured(samples(4)), "cyclic"), lambda text: scored(text, 2), tmp_path)
    pages = [sample.scores["choice_in_orders"].metadata["page"] for sample in log.samples]
    assert {len(one["bounds"]) for one in pages} == {2}
    assert all(len(row.bounds) == 2 for row in unslant.audit(log=path).responses.rows())
    assert numbers["pbm"] > 0


def test_epochs_are_kept_apart(tmp_path):
    """Right in the first epoch only: the second repeats the same orders, and makes no further ones."""
    asked: dict[str, int] = {}

    def first_time(text):
        asked[text] = asked.get(text, 0) + 1
        thing, shown = page(text)
        wanted = OPTIONS[(thing + asked[text] - 1) % 4]
        return f"ANSWER: {next(label for label, option in shown.items() if option == wanted)}"

    task = in_orders(coloured(samples(6)), "cyclic")
    _, numbers, path = run(task, first_time, tmp_path, epochs=2, max_samples=1)
    assert set(asked.values()) == {2}
    assert numbers["mean_over_orders"] == pytest.approx(0.5)
    assert numbers["stderr"] == pytest.approx(0)
    assert numbers["consistency"] == 1
    read = unslant.audit(log=path)
    assert read.metrics.means["expected_accuracy"].value == 1
    rows = read.responses.rows()
    assert len(rows) == 6 * 4 * 2
    for repeat in (0, 1):
        assert len({(row.question_id, row.contents) for row in rows if row.repeat == repeat}) == 6 * 4


def test_logs_of_a_file_shuffled_anew_are_joined_by_the_texts(tmp_path):
    """Order 0-1-2-3 is another in each run; what the model took is not."""
    paths = []
    for seed in (1, 2):
        dataset = MemoryDataset(samples(6))
        dataset.shuffle_choices(seed)
        task = in_orders(Task(dataset=dataset, solver=multiple_choice()), "given")
        paths.append(run(task, lambda text: f"ANSWER: {prefers_a(text)}", tmp_path)[2])
    read = unslant.audit(log=paths)
    texts = {question.id: question.options for question in read.responses.questions}
    assert len({row.contents for row in read.responses.rows()}) > 1
    for row in read.responses.rows():
        thing = int(row.question_id.rpartition("/")[2])
        assert {texts[row.question_id][i] for i in row.answers} == {OPTIONS[thing % 4]}
        assert row.chosen == (row.answers if thing % 2 else {row.contents[0]})


def test_replies_without_an_answer_are_counted(tmp_path):
    replies = {0: "", 1: "I would rather not say.", 2: "A, D", 3: "ANSWER: A"}
    log, numbers, path = run(in_orders(coloured(samples(4)), "cyclic"), lambda text: replies[page(text)[0]], tmp_path)
    assert numbers["unanswered"] == 0.75
    assert numbers["mean_over_orders"] == pytest.approx(0.25 / 4)
    values = {s.metadata["unslant"]["id"]: s.scores["choice_in_orders"] for s in log.samples}
    assert [values[f"thing/{i}"].value for i in range(3)] == ["N", "I", "I"]
    assert values["thing/0"].reason == "no_response"
    assert values["thing/1"].reason == "invalid_response_format"
    assert values["thing/2"].answer == "A, D"
    assert unslant.audit(log=path).metrics.counts.unanswered_rows == 12


def test_what_the_scorer_cannot_tell_is_an_error(tmp_path):
    shuffled = Task(dataset=MemoryDataset(samples(4)), solver=multiple_choice(shuffle=True))
    for task, message in (
        (coloured(samples(2), scorer=choice_in_orders()), "has no order in its metadata"),
        (in_orders(shuffled), "shuffled by its solver"),
    ):
        (log,) = inspect_eval(task, model=model(lambda text: "ANSWER: A"), log_dir=str(tmp_path), display="none")
        assert log.status == "error"
        assert message in log.error.message


TASK_FILE = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

@task
def colours(number=8, first=0):
    dataset = [
        Sample(id=i, input=f"Which colour is thing {i}?", choices="red green blue grey".split(), target="ABCD"[i % 4])
        for i in range(first, number)
    ]
    return Task(dataset=dataset, solver=multiple_choice(), scorer=choice())
"""


@pytest.mark.slow
def test_the_task_takes_another_task_from_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(TASK_FILE)
    words = [
        "unslant/in_orders",
        "-T",
        "task=mine.py@colours",
        "-T",
        "first=4",
        "-T",
        "orders=reverse",
        "-T",
        "limit=2",
    ]
    with FaultServer(answering).running() as server:
        done = run_inspect(tmp_path, server.url, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(server.requests) == 4
    (path,) = (tmp_path / "logs").glob("*colours-in-orders*.eval")
    result = unslant.audit(log=path)
    assert result.metrics.counts.questions == 2
    assert {row.question_id for row in result.responses.rows()} < {"4", "5", "6", "7"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("unslant/instruction_boundary", "limit=2"), "a limit must be 4 or more"),
        (("unslant/instruction_boundary", "limit=few"), "limit 'few': give a whole number"),
        (("unslant/in_orders", "limit=0"), "limit=0: give 1 or more"),
        (("unslant/in_orders", "order=all"), "order: not an argument of unslant/in_orders"),
        (("unslant/in_orders", "orders=[some]"), "unknown orders"),
        (("unslant/in_orders", "task=nowhere"), "task 'nowhere': 0 tasks match"),
        (("unslant/in_orders", "questions=nowhere.jsonl"), "nowhere.jsonl: no such file"),
    ],
)
def test_arguments_that_do_not_work_are_one_line(words, message):
    """An InputError in Python; on the command line, inspect shows errors of this kind without a traceback."""
    from inspect_ai._eval.loader import load_tasks
    from inspect_ai._util.error import PrerequisiteError

    name, (argument, _, value) = words[0], words[1].partition("=")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load_tasks([name], {argument: int(value) if value.isdecimal() else value})
    assert isinstance(caught.value, PrerequisiteError)
    assert Text.from_markup(caught.value.message).plain == str(caught.value)


@pytest.mark.slow
def test_a_limit_too_small_is_told_on_the_command_line(tmp_path):
    done = run_inspect(tmp_path, "http://127.0.0.1:9/v1", "unslant/instruction_boundary", "-T", "limit=2")
    shown = " ".join((done.stdout + done.stderr).split())
    assert "a limit must be 4 or more" in shown
    assert "Traceback" not in shown


def test_a_file_of_questions_as_the_task(tmp_path):
    from inspect_ai._eval.loader import load_tasks

    (tmp_path / "q.jsonl").write_text(
        '{"id": "one", "question": "?", "context": "Read.", "options": ["x", "y", "z"], "answer": 1, "pinned": [2]}\n'
        '{"id": "two", "question": "?", "options": ["x", "y"], "answer": [0, 1]}\n'
    )
    (task,) = load_tasks(["unslant/in_orders"], {"questions": str(tmp_path / "q.jsonl"), "orders": "all"})
    assert task.name == "q_in_orders"
    assert [sample.id for sample in task.dataset] == ["one|0-1-2", "one|1-0-2", "two|0-1", "two|1-0"]
    assert task.dataset[0].input == "Read.\n\n?"
    assert task.dataset[2].target == ["A", "B"]
