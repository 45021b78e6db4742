"""Rows that failed are failures in every format, and said where the harness counts them as wrong answers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import unslant
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.responses import Response, Responses
from unslant.responses.importers import load_logs

PROMPT = "Which?\nA. one\nB. two\nC. three\nAnswer:"
SAID = "0.500 (HELM's exact_match, 4 rows). Without the rows that failed (1), which do not count below, it is 0.667."

TABLE: list[dict[str, Any]] = [
    {"id": "a", "question": "Which?", "options": ["one", "two"], "answer": 1, "reply": "B"},
    {"id": "b", "question": "Name it.", "options": ["one"], "answer": 0, "reply": "A"},
]


def lm_eval(i: int, resps: Any, acc: float, **generated: Any) -> dict[str, Any]:
    doc = {"question": f"Which is {i}?", "choices": ["one", "two", "three"]}
    requests = {
        f"gen_args_{k}": {"arg_0": doc["question"], "arg_1": f" {text}"} for k, text in enumerate(doc["choices"])
    }
    requests = {"gen_args_0": {"arg_0": PROMPT, "arg_1": generated}} if generated else requests
    return {"doc_id": i, "doc": doc, "target": "1", "arguments": requests, "resps": resps, "filtered_resps": resps,
            "filter": "none", "metrics": ["acc"], "acc": acc}  # fmt: skip


def read(path: Path, rows: list[dict[str, Any]]) -> Responses:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (found,) = load_logs([path])
    return found


@pytest.mark.parametrize("failed", [[], [[[None, None]]] * 3, [[["nan", "False"]]] * 3])
def test_lm_eval_samples_without_scores(tmp_path: Path, failed: list[Any]) -> None:
    answers = [[["-2.0", "False"]], [["-1.0", "True"]], [["-3.0", "False"]]]
    found = read(tmp_path / "samples_t.jsonl", [lm_eval(0, answers, 1.0), lm_eval(1, failed, 0.0)])
    assert [row.status for row in found.rows()] == ["ok", "error"]
    (reported,) = found.run.logged.reported
    assert (reported.parted, reported.failed) == (0, 1)


@pytest.mark.parametrize("failed", [[], [[[None, None]]] * 2, [[["-2.0", "False"]], [["nan", "False"]]]])
def test_lm_eval_samples_with_the_options_in_their_contexts_and_without_scores(
    tmp_path: Path, failed: list[Any]
) -> None:
    """As in winogrande, where the scores and acc together say which option is right."""
    rows = []
    for i, (resps, acc) in enumerate([([[["-2.0", "False"]], [["-1.0", "True"]]], 1.0), (failed, 0.0)]):
        row = lm_eval(i, resps, acc)
        ends = ({"arg_0": f"The {name} of {i}", "arg_1": " is big."} for name in ("dog", "cat"))
        rows.append(row | {"arguments": {f"gen_args_{k}": end for k, end in enumerate(ends)}})
    found = read(tmp_path / "samples_w.jsonl", rows)
    assert [(row.status, row.answers) for row in found.rows()] == [("ok", {1}), ("error", set())]
    (reported,) = found.run.logged.reported
    assert (reported.parted, reported.failed) == (0, 1)


def test_a_question_with_one_option_is_left_out_and_counted(tmp_path: Path) -> None:
    """Five questions of a sample of MMLU-Pro have one option; its logs were refused for them."""
    whole = lm_eval(0, [["B"]], 1.0, until=["\n"])
    one = json.loads(json.dumps(whole).replace("\\nB. two\\nC. three", "").replace(', "two", "three"', ""))
    one |= {"doc_id": 1, "target": "0"}
    for name, rows in {"samples_t.jsonl": [whole, one], "table.jsonl": TABLE}.items():
        found = read(tmp_path / name, rows)
        assert len(list(found.rows())) == 1
        assert found.run.logged.dropped == {"questions with one option": 1}
    with pytest.raises(InputError, match=r"samples_t\.jsonl.*no page with two options"):
        read(tmp_path / "samples_t.jsonl", [one])


@pytest.mark.parametrize("cut", [5, 60, 200])
def test_a_log_whose_last_line_is_cut_off_says_so(tmp_path: Path, cut: int) -> None:
    answers = [[["-2.0", "False"]], [["-1.0", "True"]], [["-3.0", "False"]]]
    path = tmp_path / "samples_t.jsonl"
    path.write_text("".join(json.dumps(lm_eval(i, answers, 1.0)) + "\n" for i in range(2))[:-cut])
    with pytest.raises(
        InputError, match=r"samples_t\.jsonl, line 2: not valid JSON: .*was the run that wrote it stopped"
    ):
        load_logs([path])


def test_lm_eval_replies_that_are_missing(tmp_path: Path) -> None:
    rows = [lm_eval(i, resps, float(i == 0), until=["\n"]) for i, resps in enumerate(([["B"]], [[None]], [], [[]]))]
    found = read(tmp_path / "samples_t.jsonl", rows)
    assert [(row.status, row.raw) for row in found.rows()] == [("ok", "B"), *[("error", None)] * 3]


@pytest.mark.parametrize("resps", [["The answer is B."], "The answer is B."])
def test_the_characters_of_a_reply_are_not_replies(tmp_path: Path, resps: list[str] | str) -> None:
    rows = [lm_eval(i, [["B"]] if i == 0 else resps, 1.0, until=["\n"]) for i in range(2)]
    with pytest.raises(InputError, match=r"samples_t\.jsonl, line 2: .*resps holds a text, not a list of replies"):
        read(tmp_path / "samples_t.jsonl", rows)


def test_helm_counts_failed_requests_as_wrong(tmp_path: Path) -> None:
    texts = {"A": "one", "B": "two", "C": "three"}
    references = [{"output": {"text": text}, "tags": ["correct"] * (key == "B")} for key, text in texts.items()]
    states, stats = [], []
    for i, reply in enumerate(("B", "B", "A", None)):
        instance = {"id": f"id{i}", "split": "test", "input": {"text": f"Which is {i}?"}, "references": references}
        completions = [] if reply is None else [{"text": reply, "logprob": 0, "tokens": []}]
        result = {"success": reply is not None, "completions": completions}
        states.append({"instance": instance, "output_mapping": texts, "result": result, "train_trial_index": 0})
        score = {"name": {"name": "exact_match", "split": "test"}, "mean": float(reply == "B")}
        stats.append({"instance_id": f"id{i}", "train_trial_index": 0, "stats": [score]})
    (tmp_path / "per_instance_stats.json").write_text(json.dumps(stats))
    path = tmp_path / "scenario_state.json"
    spec = {"model": "m", "method": "multiple_choice_joint"}
    path.write_text(json.dumps({"adapter_spec": spec, "request_states": states}))
    ran = unslant("audit", "--log", path)
    assert SAID in " ".join(ran.out.split())
    assert "m scores 0.67" in ran.out


def test_a_failed_request_that_was_repeated_gives_way_to_its_answer(tmp_path: Path) -> None:
    answers = [[["-2.0", "False"]], [["-1.0", "True"]], [["-3.0", "False"]]]
    lines = [lm_eval(0, [], 0.0), lm_eval(1, answers, 1.0), lm_eval(0, answers, 1.0)]
    found = read(tmp_path / "samples_t.jsonl", lines)
    assert [(row.question_id, row.repeat, row.status) for row in found.rows()] == [
        ("0", 0, "ok"), ("0", 1, "error"), ("1", 0, "ok")
    ]  # fmt: skip


def test_answers_that_do_not_count_are_said_where_they_change_the_score(tmp_path: Path) -> None:
    right, wrong = ([[[str(-abs(k - best) - 0.1), "False"]] for k in range(3)] for best in (1, 2))
    once = [lm_eval(0, right, 1.0), lm_eval(1, wrong, 0.0)]
    found = read(tmp_path / "samples_t.jsonl", [*once, lm_eval(0, wrong, 0.0), lm_eval(1, wrong, 0.0)])
    assert found.run.logged.caveats == (
        "2 of the 4 answers repeat a page (epochs, samples or a row twice): only the first answer to "
        "each counts below. These are right in 0.500, all in 0.250.",
    )
    assert read(tmp_path / "samples_u.jsonl", once * 2).run.logged.caveats == ()


def test_perplexities_that_are_all_infinite_are_not_an_answer(tmp_path: Path, shared_data: Path) -> None:
    """The first label was, as the least of equals."""
    row = json.loads((shared_data / "logs/opencompass/ppl.json").read_text("utf-8"))["0"]
    failed = {key: value | {"PPL": math.inf} if key.startswith("label: ") else value for key, value in row.items()}
    path = tmp_path / "ppl.json"
    path.write_text(json.dumps({"0": row, "1": failed}))
    (found,) = load_logs([path])
    assert [one.status for one in found.rows()] == ["ok", "error"]


def test_a_traceback_in_place_of_replies_is_one_line_of_the_error() -> None:
    raw = "Traceback:\n\x1b[31m" + "z" * 2000
    row = Response("q", "order", "generate", ("A", "B"), (0, 1), frozenset({0}), 2, status="error", raw=raw)
    failure = AuditResult.of(Responses.from_rows([row])).failure
    assert failure.startswith(r"1 of 1 response of the model failed (Traceback:\n\x1b[31mzzz")
    assert len(failure) < 400
