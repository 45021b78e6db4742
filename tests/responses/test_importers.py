"""Logs of other harnesses: what is read from real samples, whose truth was planted, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command_line import unslant
from tests.first_screens import said
from unslant.auditing.comparison import AuditComparison, audit_logs
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.responses import Responses
from unslant.responses.importers import importers, load_logs


@pytest.fixture(scope="module")
def logs(shared_data: Path) -> Path:
    return shared_data / "logs"


def audit(*paths: Path, **fields: str) -> AuditResult:
    found = audit_logs(paths, fields)
    assert isinstance(found, AuditResult)
    return found


def pbm(result: AuditResult) -> float:
    """Population variance of each option's probability over the distinct orders, of questions seen in most orders."""
    seen: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
    for row in result.responses.rows():
        probs = np.zeros(row.n_options)
        probs[list(row.contents)] = np.exp(row.logprobs) / np.exp(row.logprobs).sum()
        seen.setdefault(row.question_id, {}).setdefault(row.contents, probs)
    most = max(map(len, seen.values()))
    return float(np.mean([np.var([*own.values()], axis=0).mean() for own in seen.values() if len(own) == most]))


def share_of_a(result: AuditResult) -> float:
    return result.metrics.given_labels[0]["predicted"].value


def test_lm_eval_letters(logs: Path) -> None:
    """The planted model knows half and answers A otherwise; from one order that cannot be told from content."""
    result = audit(logs / "lm_eval" / "samples_letter_24.jsonl")
    assert (result.metrics.counts.questions, result.metrics.counts.failed_rows) == (24, 0)
    assert result.metrics.means["accuracy"].value == pytest.approx(0.625)
    assert share_of_a(result) == pytest.approx(0.583, abs=1e-3)
    assert result.metrics.means["label_mass"].value > 0.99
    assert "One order cannot show whether the order matters" in said(result)
    assert not result.metrics.means["pbm"].defined
    assert result.corrections == ()
    first = result.responses.rows()[0]
    assert first.question_id == "world/town/Orgoo"
    assert first.logprobs is not None
    assert first.logprobs[0] == pytest.approx(-0.30589234828948975)


def test_lm_eval_numbers_of_options(logs: Path) -> None:
    result = audit(logs / "lm_eval" / "samples_letter_mixed.jsonl")
    assert len(result.metrics.counts.by_options) > 1


def test_lm_eval_texts_leave_out_the_unconditional_half(logs: Path) -> None:
    result = audit(logs / "lm_eval" / "samples_cloze.jsonl")
    assert {len(row.labels) for row in result.responses.rows()} == {4}
    recorded = [json.loads(line) for line in (logs / "lm_eval" / "samples_cloze.jsonl").read_text().splitlines()]
    assert result.metrics.means["accuracy"].value == np.mean([record["acc"] for record in recorded])
    assert any("option texts, which were not shown together" in note for note in result.page().notes)


def test_lm_eval_replies_are_one_a_document(logs: Path) -> None:
    result = audit(logs / "lm_eval" / "samples_generate.jsonl")
    lines = [json.loads(line) for line in (logs / "lm_eval" / "samples_generate.jsonl").read_text().splitlines()]
    documents = {line["doc_id"] for line in lines}
    assert result.metrics.counts.questions == len(documents)
    if len(lines) > len(documents):
        assert any("under another filter" in note for note in result.page().notes)


def test_lighteval_rows_by_id_and_label_mass(logs: Path) -> None:
    """It had applied a chat template unasked: the same answers, but almost nothing on the labels."""
    light, lm_eval = (
        audit(logs / "lighteval" / "details_letter.parquet"),
        audit(logs / "lm_eval" / "samples_letter_24.jsonl"),
    )
    assert light.metrics.means["accuracy"].value == lm_eval.metrics.means["accuracy"].value == 0.625
    assert light.metrics.means["label_mass"].value == pytest.approx(0.0003, abs=1e-4)
    assert "of the probability" in said(light)
    chosen = {name: [int(np.argmax(row.logprobs)) for row in found.responses.rows()] for name, found in
              (("light", light), ("lm", lm_eval))}  # fmt: skip
    by_number = {row.question_id: k for row, k in zip(light.responses.rows(), chosen["light"], strict=True)}
    assert [by_number[str(i)] for i in range(24)] == chosen["lm"]


def test_inspect_in_several_orders(logs: Path) -> None:
    pytest.importorskip("inspect_ai")
    names = ("order_as_listed.eval", "shuffle_choices_1.eval", "shuffle_choices_2.eval")
    result = audit(*(logs / "inspect" / name for name in names))
    assert result.metrics.counts.questions == 24
    assert sum(result.responses.run.logged.orders.values()) == 24
    # the label scores of the stub are 0.7 at A and 0.1 elsewhere where it does not know
    unsure = [row for row in result.responses.rows() if row.logprobs is not None and row.logprobs[0] > -1]
    assert all(row.logprobs == pytest.approx(np.log([0.7, 0.1, 0.1, 0.1])) for row in unsure)
    assert result.metrics.means["pbm"].value == pytest.approx(pbm(result), abs=1e-12)
    assert result.metrics.means["pbm"].value == pytest.approx(0.0178947, abs=1e-6)
    assert result.metrics.means["consistency"].value == pytest.approx(12 / 19)
    assert (
        result.metrics.preference.phrase
        == "falls back on A when unsure (or the first position: cannot be distinguished)"
    )
    assert result.metrics.order_labels[0]["predicted"].value > 0.45
    assert {q.id for q in result.responses.questions} == {row.question_id for row in result.responses.rows()}
    # a question's options are the same in every order, by text
    texts = {q.id: q.options for q in result.responses.questions}
    for row in result.responses.rows():
        (right,) = row.answers
        (gold,) = next(q.answers for q in result.responses.questions if q.id == row.question_id)
        assert texts[row.question_id][right] == texts[row.question_id][gold]


def test_inspect_deprecated_shuffle_is_read_from_the_page(logs: Path) -> None:
    """Options, messages and reply are logged as if nothing had been shuffled; on its page the model mostly took A."""
    pytest.importorskip("inspect_ai")
    shuffled, listed = (audit(logs / "inspect" / name) for name in ("deprecated_shuffle.eval", "order_as_listed.eval"))
    rows = shuffled.responses.rows()
    assert all(row.raw and "ANSWER: " in row.raw for row in rows)
    for row in rows:
        (content,) = row.chosen or ()
        assert row.labels[row.contents.index(content)] == str(row.raw).rsplit("ANSWER: ", 1)[1].strip()[0]
    on_page = [row.labels[row.contents.index(min(row.chosen or {0}))] for row in rows]
    assert on_page.count("A") > 12
    both = audit(logs / "inspect" / "deprecated_shuffle.eval", logs / "inspect" / "order_as_listed.eval")
    assert both.metrics.counts.questions == 24
    assert share_of_a(listed) > 0.5


def test_inspect_epochs_are_repeats(logs: Path) -> None:
    pytest.importorskip("inspect_ai")
    result = audit(logs / "inspect" / "epochs.eval")
    assert sorted({row.repeat for row in result.responses.rows()}) == [0, 1]
    assert result.metrics.counts.questions == 24


def test_inspect_unparsed_is_no_score_of_zero(logs: Path) -> None:
    pytest.importorskip("inspect_ai")
    result = audit(logs / "inspect" / "unparsed_with_logprobs.eval")
    assert result.metrics.counts.unanswered_rows >= 20
    assert result.metrics.means["accuracy"].n == 24
    assert result.metrics.means["answered_accuracy"].n <= 4
    assert "of 24 replies (unparsed" in said(result)


def test_helm_in_words(logs: Path) -> None:
    result = audit(logs / "helm" / "scenario_state.json")
    assert result.metrics.counts.rows == 12
    assert result.headline.endswith(
        "none of 12 responses of simple/model1 contains an answer; too few answers are left for a verdict"
    )


def test_opencompass_circular(logs: Path) -> None:
    result = audit(logs / "opencompass" / "gen_circular.json")
    rows = result.responses.rows()
    assert [row.contents for row in rows] == [(0, 1, 2, 3), (3, 0, 1, 2)]
    assert {row.answers for row in rows} == {frozenset({0})}
    assert [set(row.chosen or ()) for row in rows] == [{0}, {3}]


def test_the_recorded_model_as_it_stands(shared_data: Path) -> None:
    """All 24 orders in a row: vote, PBM and FR of an independent computation."""
    path = shared_data / "recorded" / "llama-7b_arc_24perm_sample.jsonl"
    result = audit(path)
    recorded = [json.loads(line)["data"] for line in path.read_text("utf-8").splitlines()]
    assert result.metrics.means["vote_accuracy"].value == np.mean([record["correct"] for record in recorded])
    assert result.metrics.means["pbm"].value == pytest.approx(pbm(result), abs=1e-12)
    choices = [np.argmax(record["probs"], axis=1) for record in recorded]  # orders 0 and 23: as given and reversed
    assert result.metrics.means["fr"].value == np.mean([own[0] != 3 - own[23] for own in choices])
    by_field = audit(path, id="idx", answer="ideal", probs="probs", options="options")
    assert repr(by_field.metrics.means) == repr(result.metrics.means)  # nan is not equal to itself
    assert result.metrics.counts.by_options == {4: 10}
    assert {block.k for block in result.scores.blocks} == {24}


PAGES = [
    {
        "id": "q1",
        "question": "Which?",
        "options": ["red", "blue"],
        "answer": "A",
        "logprobs": [-0.1, -2.5],
        "model": "m",
    },
    {
        "id": "q1",
        "question": "Which?",
        "options": ["blue", "red"],
        "answer": "B",
        "logprobs": [-0.2, -1.9],
        "model": "m",
    },
    {"id": "q2", "question": "What?", "options": ["x", "y"], "answer": "B", "logprobs": [-0.5, -1.1], "model": "m"},
    {"id": "q2", "question": "What?", "options": ["y", "x"], "answer": "A", "logprobs": [-0.5, -1.0], "model": "m"},
]


def table(path: Path, rows: list[dict]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        names = list(rows[0])
        written = [[json.dumps(v) if isinstance(v, list) else str(v) for v in row.values()] for row in rows]
        quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in written]
        path.write_text("\n".join([",".join(names), *(",".join(row) for row in quoted)]))
    return path


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.parquet", "pages.csv"])
def test_a_table_of_ones_own(tmp_path: Path, name: str) -> None:
    result = audit(table(tmp_path / name, PAGES))
    assert [row.contents for row in result.responses.rows()] == [(0, 1), (1, 0), (0, 1), (1, 0)]
    assert [row.answers for row in result.responses.rows()] == [{0}, {0}, {1}, {1}]
    assert result.metrics.means["accuracy"].value == 0.5
    assert result.metrics.means["fr"].value == 1.0  # both answers are A in either order
    assert result.name == "m"


def test_orders_labels_and_other_names(tmp_path: Path) -> None:
    """The order as indices, labels reversed and shifted, columns under names of one's own."""
    three = {"key": "q", "right": 0, "lp": [-0.1, -3, -4]}
    rows = [
        {**three, "labels": ["A", "B", "C"]},
        {**three, "labels": ["C", "B", "A"]},
        {**three, "labels": ["B", "C", "A"]},
        {**three, "labels": ["A", "B", "C"], "perm": [2, 1, 0], "right": 2},
        {**three, "labels": ["C", "B", "A"], "perm": [2, 1, 0], "right": 2},
        {**three, "labels": ["A", "B", "C"]},
    ]
    fields = {"id": "key", "answer": "right", "logprobs": "lp", "order": "perm"}
    path = table(tmp_path / "own.jsonl", rows)
    (responses,) = load_logs([path], fields)
    kinds = [(row.kind, row.repeat) for row in responses.rows()]
    assert kinds == [
        ("order", 0), ("labels-reversed", 0), ("labels-shifted", 0), ("order", 0), ("both-reversed", 0), ("order", 1)
    ]  # fmt: skip


def test_replies_and_choices(tmp_path: Path) -> None:
    rows = [
        {"id": "q1", "options": ["red", "blue"], "answer": "A", "reply": "The answer is (B) blue."},
        {"id": "q2", "options": ["red", "blue"], "answer": "A", "reply": "I cannot say."},
        {"id": "q3", "options": ["red", "blue"], "answer": "A", "reply": None},
    ]
    found = audit(table(tmp_path / "replies.jsonl", rows)).responses.rows()
    assert [row.status for row in found] == ["ok", "unparsed", "error"]
    assert found[0].chosen == {1}
    chosen = audit(table(tmp_path / "chosen.jsonl", [{"id": 1, "labels": ["A", "B"], "answer": "A", "chosen": "A"}]))
    assert chosen.metrics.means["accuracy"].value == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "E"}, "answer.*neither one of the labels A, B"),
        ({"logprobs": [-0.1]}, "1 numbers for 2 options"),
        ({"logprobs": [0.5, -1]}, "above 0"),
        ({"logprobs": ["a", "b"]}, "not a list of numbers"),
        ({"order": [0, 0]}, "does not name every option"),
        ({"order": "BA"}, r"does not name every option.*leave it out"),
        ({"id": ""}, "id.*is missing"),
        ({"labels": ["A", "B", "C"]}, "3 labels for 2 options"),
        ({"options": ["red", "green"], "answer": "A"}, "shows 'green' here"),
        ({"answer": "B"}, "another right option"),
    ],
)
def test_a_row_that_cannot_be_is_named(tmp_path: Path, change: dict, message: str) -> None:
    path = table(tmp_path / "pages.jsonl", [PAGES[0], {**PAGES[0], "logprobs": [-0.1, -2.0], **change}])
    with pytest.raises(InputError, match=message) as caught:
        audit(path)
    assert "pages.jsonl" in str(caught.value)
    assert "line 2" in str(caught.value)


def test_letters_without_options_ask_for_their_number(tmp_path: Path) -> None:
    rows = [{"question_id": 0, "correct": "C", "predicted": "B", "is_correct": False, "response": "B"}]
    with pytest.raises(InputError, match=r"number of options is not known.*COLUMN.*A\|B\|C\|D"):
        audit(table(tmp_path / "letters.jsonl", rows))
    assert audit(table(tmp_path / "labels.jsonl", [{**rows[0], "labels": "A|B|C|D"}])).metrics.means["accuracy"].n == 1


@pytest.mark.parametrize("marker", ["N/A", "None", "unparsed", "E", "-1"])
def test_a_word_for_no_answer_is_read_as_the_message_says(tmp_path: Path, marker: str) -> None:
    pages = [{"id": k, "options": ["red", "blue"], "answer": "B", "pred": pred} for k, pred in enumerate(("B", marker))]
    path = table(tmp_path / "pages.jsonl", pages)
    with pytest.raises(InputError, match=r"read the column as replies .*pred.* and not as choices .*chosen"):
        audit(path)
    assert audit(path, reply="pred", chosen="").metrics.means["accuracy"].value == 0.5


def lm_eval_line(**changes: object) -> dict:
    requests = {f"gen_args_{k}": {"arg_0": "Q?", "arg_1": text} for k, text in enumerate((" red", " blue"))}
    line = {"doc_id": 0, "doc": {"question": "Q?", "choices": ["red", "blue"]}, "target": "0", "arguments": requests}
    return {**line, "resps": [[["-1.5", "False"]], [["-0.5", "True"]]], **changes}


def test_a_logged_score_that_is_no_number_is_an_error(tmp_path: Path) -> None:
    path = table(tmp_path / "samples_x.jsonl", [lm_eval_line(resps=[[["nan", "False"]], [["-0.5", "True"]]])])
    (responses,) = load_logs([path])
    assert [row.status for row in responses.rows()] == ["error"]


@pytest.mark.parametrize("value", ["1.0", None, 100, [1]])
def test_an_accuracy_that_is_not_compared_is_counted(tmp_path: Path, value: object) -> None:
    """Its row was left out of the comparison with the log in silence; all of them, where no accuracy is a number."""
    rows = [lm_eval_line(doc_id=0, target="1", acc=1.0), lm_eval_line(doc_id=1, target="1", acc=value)]
    logged = load_logs([table(tmp_path / "samples_x.jsonl", rows)])[0].run.logged
    assert [(one.n, one.parted) for one in logged.reported] == [(1, 0)]
    note = "lm-eval's acc is missing, or not a number from 0 to 1, in {} rows, the first at samples_x.jsonl, line {}: "
    assert [one.startswith(note.format("1 of 2", 2)) for one in logged.notes] == [True]
    logged = load_logs([table(tmp_path / "samples_x.jsonl", rows[1:])])[0].run.logged
    assert [one.startswith(note.format("1 of 1", 1)) for one in logged.notes] == [True] * (value is not None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resps": [[[False, "False"]], [["-0.5", "True"]]]}, "False is not a number"),
        ({"resps": [[["0.7", "False"]], [["-0.5", "True"]]]}, "log-probabilities above 0"),
        ({"resps": [[["-1"]], 7]}, "not a sample of lm-eval: TypeError"),
        ({"resps": [[["-1"]]]}, "not a sample of lm-eval: ValueError"),
        ({"arguments": []}, "not a sample of lm-eval: AttributeError"),
        ({"doc": None}, "not a sample of lm-eval"),
        ({"doc": {"question": "Q?", "choices": ["red", "\ud800"]}}, "half of a character"),
        ({"target": "[" * 3000}, "is not one of the options"),
        ({"target": 9}, "is not one of the options"),
    ],
)
def test_a_sample_of_another_shape_is_named(tmp_path: Path, change: dict, message: str) -> None:
    path = table(tmp_path / "samples_x.jsonl", [lm_eval_line(), lm_eval_line(doc_id=1, **change)])
    with pytest.raises(InputError, match=message) as caught:
        load_logs([path])
    assert "samples_x.jsonl, line 2" in str(caught.value)


def test_two_models_are_compared(tmp_path: Path) -> None:
    other = [{**row, "model": "n"} for row in PAGES]
    found = audit_logs([table(tmp_path / "m.jsonl", PAGES), table(tmp_path / "n.jsonl", other)])
    assert isinstance(found, AuditComparison)
    assert set(found.runs) == {"m", "n"}


def test_what_is_of_no_known_format(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"a": 1}\n')
    ran = unslant("audit", "--log", path)
    assert ran.code == 2
    assert "other.jsonl: is not in a known format" in ran.err
    assert ran.err.count("\n") == 1
    assert all(importer.what in ran.err for importer in importers())


def test_a_table_of_unslant_is_taken_as_it_is(tmp_path: Path) -> None:
    made = audit(table(tmp_path / "pages.jsonl", PAGES)).responses
    made.to_parquet(tmp_path / "own.parquet")
    (again,) = load_logs([tmp_path / "own.parquet"])
    assert isinstance(again, Responses)
    assert again.table.equals(made.table)
    assert audit(tmp_path / "own.parquet").headline == audit(tmp_path / "pages.jsonl").headline
