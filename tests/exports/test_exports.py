"""Audits in others' formats: each checked against what its makers publish, and read back where there is a reader."""

from __future__ import annotations

import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import unslant
from tests.command_line import unslant as command
from unslant.auditing import exports
from unslant.auditing.comparison import audit_logs
from unslant.auditing.exports import EVERY_EVAL, ExportOptions, eval_results, export, flat, model_index
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.metrics import METRICS
from unslant.responses import AGAIN, Responses
from unslant.responses.importers import load_logs

DATA = Path(__file__).parent / "data"
OPTIONS = ExportOptions(
    dataset="org/set", task="default", split="test", source_url="https://example.org/run", organization="Org"
)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return unslant.audit("prefers-a", "embedded", limit=8)


def _mean(result: AuditResult) -> Any:
    return result.metrics.means["expected_accuracy"]


def every_eval(result: AuditResult, options: ExportOptions) -> tuple[Any, list[Any]]:
    """The record and the samples in the files of an export."""
    with tempfile.TemporaryDirectory() as folder:
        record, *samples = export(result, EVERY_EVAL, Path(folder), options)
        lines = [line for file in samples for line in file.read_text("utf-8").splitlines()]
        return json.loads(record.read_text("utf-8")), [json.loads(line) for line in lines]


def test_flat_numbers_are_known_and_have_their_intervals(result: AuditResult) -> None:
    found = flat(result)
    assert all(isinstance(value, float) and value == value for value in found.values())
    key = "metrics.means.expected_accuracy"
    mean = _mean(result)
    assert [found[name] for name in (key, f"{key}/low", f"{key}/high", f"{key}/n")] == [
        mean.value, mean.low, mean.high, 8.0
    ]  # fmt: skip
    assert set("".join(found)) <= {*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./: "}  # of MLflow


def test_results_for_the_hub_are_what_its_library_reads(result: AuditResult) -> None:
    hub = pytest.importorskip("huggingface_hub")
    yaml = pytest.importorskip("yaml")
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(eval_results(result, OPTIONS)))
    mean = _mean(result)
    assert (entry.dataset_id, entry.task_id, entry.value) == ("org/set", "default", mean.value)
    assert f"95% interval {mean.low:.3f} to {mean.high:.3f}" in entry.notes
    card = hub.ModelCard(model_index(result, OPTIONS))
    found = {one.metric_name.partition(",")[2]: one for one in card.data.eval_results}
    assert [one.metric_value for one in found.values()] == [mean.value, result.metrics.means["accuracy"].value]
    assert {one.dataset_split for one in found.values()} == {"test"}


def test_records_of_every_eval_ever_follow_its_schema_and_are_read_back(result: AuditResult, tmp_path: Path) -> None:
    for options in (OPTIONS, ExportOptions(organization="Org")):
        record, samples = every_eval(result, options)
        jsonschema.validate(record, json.loads((DATA / "eval.schema.json").read_text("utf-8")))
        schema = jsonschema.Draft7Validator(json.loads((DATA / "instance_level_eval.schema.json").read_text("utf-8")))
        assert [error.message for sample in samples for error in schema.iter_errors(sample)] == []
    by_key = {one["evaluation_result_id"]: one["score_details"] for one in record["evaluation_results"]}
    assert by_key["expected_accuracy"]["score"] == _mean(result).value
    path = tmp_path / "x_samples.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), "utf-8")
    back = audit_logs(path)
    assert isinstance(back, AuditResult)
    for name in ("expected_accuracy", "vote_accuracy", "robust_accuracy", "consistency", "pbm"):
        assert back.metrics.means[name].value == pytest.approx(result.metrics.means[name].value, abs=1e-12)
    assert back.run.logged is not None
    assert [one.parted for one in back.run.logged.reported] == [0]
    (tmp_path / "x.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"x\.json: holds the scores of a run and no answers: give x_samples\.jsonl$"):
        audit_logs(tmp_path / "x.json")


def test_what_is_asked_again_about_a_reply_is_no_sample(result: AuditResult) -> None:
    rows = result.responses.rows()
    first = next(row for row in rows if row.kind == "order")
    again = replace(first, elicitation=AGAIN, logprobs=None, raw="B")
    responses = replace(result.responses, table=Responses.from_rows([*rows, again]).table)
    _, samples = every_eval(AuditResult.of(responses), OPTIONS)
    assert len(samples) == len(every_eval(result, OPTIONS)[1]) == sum(row.kind == "order" for row in rows)


def test_samples_have_every_question_however_many_options_the_first_has() -> None:
    questions = [
        unslant.Question(f"q{n}", f"Which of {n}?", tuple(f"option {k}" for k in range(n)), frozenset({0}))
        for n in (3, 4, 2)
    ]
    _, samples = every_eval(unslant.audit("prefers-a", questions), ExportOptions(organization="Org"))
    orders = [sample["sample_id"] for sample in samples]
    assert {name: orders.count(name) for name in orders} == {"q3": 6, "q4": 24, "q2": 2}


def test_a_question_without_a_right_option_is_not_exported_as_answered_wrong() -> None:
    questions = [unslant.Question(f"q{n}", "Which?", ("x", "y", "z"), frozenset({0} if n else ())) for n in range(3)]
    result = unslant.audit("prefers-a", questions)
    _, samples = every_eval(result, OPTIONS)
    scores = [sample["evaluation"]["score"] for sample in samples]
    assert {sample["sample_id"] for sample in samples} == {"q1", "q2"}
    assert sum(scores) / len(scores) == pytest.approx(_mean(result).value)


def test_large_counts_have_separators(result: AuditResult) -> None:
    means = result.metrics.means | {METRICS["expected_accuracy"]: replace(_mean(result), n=14_042)}
    large = replace(result, metrics=replace(result.metrics, means=means))
    record, _ = every_eval(large, OPTIONS)
    notes = record["evaluation_results"][0]["score_details"]["details"]["notes"]
    assert "over option orders, 14,042 questions" in notes


def test_samples_are_written_one_by_one(result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = exports._sample, list[Any]()
    monkeypatch.setattr(exports, "_sample", lambda *about: seen.append(about) or read(*about))
    read_before_line: list[int] = []

    class File(io.BytesIO):
        def writelines(self, lines: Any) -> None:
            read_before_line.extend(len(seen) for _ in lines)

    def write(path: Path, content: Any) -> None:
        if callable(content):
            content(File())

    monkeypatch.setattr(exports, "write_atomically", write)
    exports.export(result, "every-eval", tmp_path, OPTIONS)
    assert read_before_line == [*range(1, 1 + len(seen))]  # all of a large audit are gigabytes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to", "every-eval"), "this format needs --organization"),
        (("--to", "every-eval", "--organization", "Org", "--relationship", "friend"), "--relationship friend: use one"),
        (("--to", "eval-results"), "this format needs --dataset and --task"),
        (("--to", "model-index"), "this format needs --dataset"),
    ],
)
def test_what_a_format_needs_is_said_before_the_run_is_read(options: tuple[str, ...], message: str) -> None:
    done = command("export", "no-such-run.parquet", *options, "--out", "out")
    assert (done.code, message in done.err) == (2, True), done.err


@pytest.mark.parametrize("scored", [True, False])
def test_hard_samples_come_back(tmp_path: Path, scored: bool) -> None:
    """Several right options, identical ones, labels of their own, and failures, which keep their status and log."""
    texts = [["x", "y", "z"], ["x", "x", "z"]]
    replies = ["1", "No idea.", None, "2 or 3", "(3)", "2"]
    rows = []
    for i in range(6):
        for order in ([0, 1, 2], [2, 1, 0]):
            scores = None if i == 2 else [-0.5, -1.0 - i, -2.0]
            answer = {"logprobs": scores, "chosen": None} if scored else {"reply": replies[i]}
            right = [order.index(1), order.index(2)] if i % 3 else [order.index(0)]
            right = [order.index(2)] if i == 5 else right  # which of its identical options is which only order says
            options = [texts[i % 2][k] for k in order]
            page = {"id": f"q{i}", "question": "Which?", "options": options, "order": order, "labels": ["1", "2", "3"]}
            rows.append(page | {"answer": [page["labels"][k] for k in right]} | answer)
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    before = audit_logs(path)
    assert isinstance(before, AuditResult)
    _, samples = every_eval(before, OPTIONS)
    right = [one.choice in one.answers for one in before.responses.rows()]
    assert [sample["evaluation"]["is_correct"] for sample in samples] == right
    exported = tmp_path / "1_samples.jsonl"
    exported.write_text("\n".join(map(json.dumps, samples)))
    (after,) = load_logs([exported])

    def facts(found: Any) -> list[tuple[Any, ...]]:
        return [
            (one.question_id, one.labels, one.contents, one.answers, one.status, one.choice) for one in found.rows()
        ]

    assert facts(after) == facts(before.responses)
    assert {one.status for one in after.rows()} == {"ok", "error"} | (set() if scored else {"unparsed"})
    assert [one.parted for one in after.run.logged.reported] == [0]


def test_samples_that_others_recorded_are_read(tmp_path: Path) -> None:
    """As the project's own converters write them: choices by text, answers by text, label or number; no scores."""

    def sample(i: int, reference: str, extracted: str, **more: Any) -> dict[str, Any]:
        attribution = {"turn_idx": 0, "source": "output.raw", "extracted_value": extracted, "extraction_method": "none"}
        return {
            "schema_version": "0.3.0", "evaluation_id": "e", "model_id": "org/m", "evaluation_name": "set",
            "sample_id": str(i), "interaction_type": "single_turn",
            "input": {"raw": f"Which is {i}?", "reference": [reference], "choices": ["one", "two", "three"]},
            "output": {"raw": [extracted]}, "answer_attribution": [attribution | {"is_terminal": True}],
            "evaluation": {"score": 1.0, "is_correct": True}, **more,
        }  # fmt: skip

    attempt = {"turn_idx": 0, "source": "output.raw", "extracted_value": "three", "extraction_method": "none"}
    of_both = [attempt | {"is_terminal": False}, attempt | {"extracted_value": "two", "is_terminal": True}]
    rows = [
        sample(0, "two", "two", answer_attribution=of_both),
        sample(1, "B", "B", output={"raw": []}),
        sample(2, "1", "two", output={"raw": "Two."}),  # as before schema 0.3
        sample(3, "two", "The answer is B."),
        sample(4, "two", "I cannot say.", evaluation={"score": 0.0, "is_correct": False}),
        sample(5, "x", "y", input={"raw": "2 + 2?", "reference": ["4"], "choices": None}),
        sample(6, "two", "", output=None, error="timeout after 60 s", evaluation={"score": 0.0, "is_correct": False}),
        sample(
            0,
            "one",
            "one",
            evaluation_name="another set",
            input={"raw": "Other?", "reference": ["two"], "choices": ["one", "two"]},
        ),
    ]
    path = tmp_path / "1_samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (found,) = load_logs([path])
    assert [(row.status, row.status == "ok" and row.choice) for row in found.rows()] == [
        *[("ok", 1)] * 4, ("unparsed", False), ("error", False), ("ok", 0)
    ]  # fmt: skip
    assert [row.raw for row in found.rows()] == [
        "two", "B", "Two.", "The answer is B.", "I cannot say.", "timeout after 60 s", "one"
    ]  # fmt: skip
    assert {tuple(row.answers) for row in found.rows()} == {(1,)}
    # scores, choices and failures of one model are tables of their own: failures are scores where there are scores
    scored = rows[1] | {"metadata": {"unslant_logprobs": "[-1, -2, -3]"}}
    path.write_text("".join(json.dumps(row) + "\n" for row in (rows[0], scored, rows[6])), "utf-8")
    assert [[row.question_id for row in table.rows()] for table in load_logs([path])] == [["0"], ["1", "6"]]
    path.write_text(json.dumps(rows[5]), "utf-8")
    with pytest.raises(InputError, match=r"none of its samples has choices, so that there is no order to audit"):
        load_logs([path])
    assert found.run.logged.dropped == {"samples without choices": 1}
    assert found.run.logged.reported[0].parted == 1


def test_the_command_writes_each_format_and_names_what_is_missing(result: AuditResult, tmp_path: Path) -> None:
    run = tmp_path / "run.parquet"
    result.to_parquet(run)
    for to, given in (
        ("flat", ()),
        ("eval-results", ("--dataset", "org/set", "--task", "default")),
        ("model-index", ("--dataset", "org/set")),
        ("every-eval", ("--organization", "Org")),
    ):
        out = tmp_path / to
        done = command("export", run, "--to", to, "--out", out, *given)
        assert done.code == 0, done.err
        assert all(Path(line).stat().st_size for line in done.out.splitlines())
        if given:
            done = command("export", run, "--to", to, "--out", out)
            assert done.code == 2
            assert f"this format needs {' and '.join(given[::2])}" in done.err
    assert len(list((tmp_path / "every-eval").iterdir())) == 2
    done = command(
        "export", run, "--to", "every-eval", "--out", tmp_path, "--organization", "O", "--relationship", "no"
    )
    assert "--relationship no: use one of first_party" in done.err
