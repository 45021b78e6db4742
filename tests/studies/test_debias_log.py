"""Debiased answers from recorded scores, without a model."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import unslant
from tests.command_line import unslant as run
from tests.debiasing.conftest import make_questions
from tests.fakes import RuleModel
from unslant.auditing.comparison import audit_logs
from unslant.auditing.result import AuditResult
from unslant.debiasing import method_named
from unslant.debiasing.asker import RecordedAsker
from unslant.debiasing.base import debias
from unslant.responses.importers import load_logs
from unslant.studies.debias.answers import FROM_LOGS, debias_log

ORDERS = list(permutations(range(4)))


@pytest.fixture(scope="module")
def llama(shared_data: Path) -> Path:
    return shared_data / "recorded" / "llama-7b_arc_24perm_sample.jsonl"


class FromScores(RecordedAsker):
    """Answers from the scores that an audit read, rather than from its rows."""

    def __init__(self, result: AuditResult) -> None:
        super().__init__(result.responses)
        self._probs = {}
        for block in result.scores.blocks:
            for q, contents, probs in zip(block.index, block.contents, block.by_position(block.probs), strict=True):
                orders = [tuple(order) for order in contents.tolist()]
                self._probs[result.scores.ids[q]] = dict(zip(orders, probs, strict=True))


@pytest.mark.parametrize("method", [*FROM_LOGS, "pride:alpha=0.5:seed=2", "vote:orders=cyclic"])
def test_the_same_as_with_a_complete_table(llama: Path, method: str) -> None:
    """What the methods say of the scores as an audit reads them: questions with all orders are no special case."""
    answers = debias_log(llama, method)
    result = audit_logs(llama)
    assert isinstance(result, AuditResult)
    expected = debias(method_named(method), FromScores(result), result.responses.questions)
    assert [o.choice for o in answers.outcomes] == [o.choice for o in expected.outcomes]
    for found, other in zip(answers.outcomes, expected.outcomes, strict=True):
        np.testing.assert_allclose(found.probs, other.probs, atol=1e-12)
    assert (answers.cost, answers.fit_cost, answers.notes) == (expected.cost, expected.fit_cost, ())


def test_the_vote_is_the_recorded_one_for_all_ten_and_corrections_agree(llama: Path) -> None:
    recorded = [json.loads(line)["data"] for line in llama.read_text("utf-8").splitlines()]
    answers = debias_log(llama)
    assert ["ABCD"[o.choice] for o in answers.outcomes] == [record["sampled"] for record in recorded]
    assert [o.text for o in answers.outcomes] == [r["options"]["ABCD".index(r["sampled"])] for r in recorded]
    result = audit_logs(llama)
    assert isinstance(result, AuditResult)
    for correction in result.corrections:
        found = debias_log(llama, correction.method)
        right = [o.choice in q.answers for q, o in zip(found.questions, found.outcomes, strict=True)]
        assert correction.accuracy.value == np.mean(right)


def test_calibrated_gray_box_is_a_computation_of_its_own(llama: Path) -> None:
    recorded = [json.loads(line)["data"] for line in llama.read_text("utf-8").splitlines()]
    both = np.array([[record["probs"][0], record["probs"][23]] for record in recorded])
    both /= both.sum(axis=2, keepdims=True)
    frequency = 1 + np.bincount(both.argmax(axis=2).ravel(), minlength=4)
    by_label = both / (frequency / frequency.sum())
    by_label /= by_label.sum(axis=2, keepdims=True)
    expected = (by_label[:, 0] + by_label[:, 1, ::-1]) / 2
    answers = debias_log(llama, "gray-box-calibrated:share=1")
    np.testing.assert_allclose([outcome.probs for outcome in answers.outcomes], expected, rtol=1e-9)


def test_what_a_fit_has_asked_costs_once(llama: Path) -> None:
    """Each of E estimation questions costs its 4 rotations, one of which is the given order; the others cost 1."""
    for alpha, estimated in ((0.05, 1), (0.5, 5), (1, 10)):
        answers = debias_log(llama, f"pride:alpha={alpha}")
        assert answers.forwards_per_question == pytest.approx((10 + 3 * estimated) / 10)
    assert debias_log(llama, "gray-box-calibrated:share=1").forwards_per_question == 2


def test_lines_as_with_a_model(llama: Path, tmp_path: Path) -> None:
    ran = run("debias", "--log", llama, "--method", "pride", "--out", tmp_path / "answers.jsonl")
    assert ran.code == 0
    assert "pride: 10 answers" in ran.out
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [*lines[0]] == ["id", "method", "answer", "text", "confidence", "probabilities", "orders", "status"]
    assert lines == [*unslant.debias(log=llama, method="pride").records()]


def table(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rotated(name: str, starts: tuple[int, ...], scores: tuple[float, ...] = (0.5, 0.3, 0.2)) -> list[dict]:
    """A question without texts, in rotations; the scores stay with the labels."""
    return [
        {"id": name, "model": "m", "order": [(i + k) % 3 for i in range(3)], "answer": (3 - k) % 3, "probs": scores}
        for k in starts
    ]


def test_questions_that_lack_orders_have_no_answer_and_are_counted(tmp_path: Path) -> None:
    rows = rotated("whole", (0, 1, 2)) + rotated("given", (0,)) + rotated("other", (1,), (0.2, 0.2, 0.6))
    path = table(tmp_path / "own.jsonl", rows)
    answers = debias_log(path, "pride")
    assert [(o.choice >= 0, o.orders, o.text) for o in answers.outcomes] == [
        (True, 3, ""),
        (True, 1, ""),
        (False, 0, ""),
    ]
    assert any("no answer to 1 of" in note for note in answers.notes)
    np.testing.assert_allclose(answers.outcomes[1].probs, [1 / 3] * 3, atol=1e-9)  # all of it was the labels' prior
    assert [record["answer"] for record in answers.records()][2] is None
    voted = debias_log(path)
    assert [o.orders for o in voted.outcomes] == [3, 1, 1]
    assert voted.outcomes[2].choice == 0  # the last place, where option 0 stood
    assert voted.notes == ()


def test_replies_with_and_without_an_answer(tmp_path: Path) -> None:
    options = ["red", "blue"]
    rows = [{"id": "q1", "options": options, "answer": "A", "reply": "The answer is B."},
            {"id": "q1", "options": options[::-1], "answer": "B", "reply": "I cannot say."},
            {"id": "q2", "options": options, "answer": "A", "reply": "I cannot say."}]  # fmt: skip
    path = table(tmp_path / "replies.jsonl", rows)
    answers = debias_log(path, "vote")
    assert [(o.choice, o.text) for o in answers.outcomes] == [(1, "blue"), (-1, "")]
    assert answers.outcomes[0].probs.tolist() == [0, 0.5]
    assert answers.notes == ("2 replies give no answer; they have no vote",)
    with pytest.raises(unslant.InputError, match="pride needs log-probabilities"):
        debias_log(path, "pride")


def test_one_order_is_reported(tmp_path: Path) -> None:
    path = table(tmp_path / "own.jsonl", rotated("given", (0,)))
    assert debias_log(path).notes == ("every question was shown in one order: the vote is the model's own answer",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "bnp"), "bnp needs a model to ask; from --log there are none, vote"),
        (("--method", "adaptive"), "unslant debias MODEL QUESTIONS --method adaptive"),
        (("--method", "aoi"), "aoi needs a model to ask"),
        (("--method", "pride"), "pride estimates on questions shown in the order given, and some in all rotations"),
        (("--method", "gray-box"), "gray-box answers questions shown in the order given and reversed"),
        (("--limit", "3"), "leave out --limit 3"),
        (("--log", "other.jsonl"), "the logs are of 2 models"),
    ],
)
def test_what_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "own.jsonl", rotated("q", (0,)))
    table(tmp_path / "other.jsonl", [{**row, "model": "n"} for row in rotated("q", (0,))])
    ran = run("debias", "--log", "own.jsonl", *words, "--out", "answers.jsonl")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "answers.jsonl").exists()


def test_a_model_or_a_log_is_needed(tmp_path: Path) -> None:
    log = table(tmp_path / "own.jsonl", rotated("q", (0,)))
    neither = run("debias", "--out", tmp_path / "a.jsonl")
    both = run("debias", "fair", "embedded", "--log", log, "--out", tmp_path / "a.jsonl")
    assert (neither.code, both.code) == (2, 2)
    assert "give MODEL and QUESTIONS, or recorded answers with --log FILE" in neither.err
    assert "leave out fair" in both.err


def test_questions_in_memory_are_not_written_out_in_a_message() -> None:
    with pytest.raises(unslant.InputError, match=r"^vote is not fitted: leave out train, which has no effect here$"):
        unslant.debias("fair", "embedded", method="vote", train=make_questions([4] * 20))


def test_a_table_that_unslant_wrote(llama: Path, tmp_path: Path) -> None:
    load_logs([llama])[0].to_parquet(tmp_path / "own.parquet")
    assert [*debias_log(tmp_path / "own.parquet").records()] == [*debias_log(llama).records()]


@pytest.mark.parametrize("orders", ["2", "shared:3"])
def test_the_vote_over_an_audits_table_is_the_audits(tmp_path: Path, orders: str) -> None:
    """The audit also asks the published and the reversed order, which a vote over a sample of orders does not have."""
    questions = make_questions([4] * 40)
    model = RuleModel(leaning_on_the_first)
    result = unslant.audit(model, questions, orders=orders)
    result.to_parquet(tmp_path / "responses.parquet")
    answers = debias_log(tmp_path / "responses.parquet")
    live = unslant.debias(model, questions, method=f"vote:orders={orders}")
    assert [(o.text, o.orders) for o in answers.outcomes] == [(o.text, o.orders) for o in live.outcomes]
    right = [o.choice in q.answers for q, o in zip(answers.questions, answers.outcomes, strict=True)]
    assert np.mean(right) == result.metrics.means["vote_accuracy"].value


def leaning_on_the_first(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    return [(3.0 if i == 0 else 1.0) * (1 + len(text)) for i, text in enumerate(texts)]


def test_answers_are_counted_and_not_lines(tmp_path: Path) -> None:
    """`20 answers in FILE`, and `no answer to 8 of 20 questions` below."""
    rows = [
        {"id": f"q{k}", "options": [f"{k} {i}" for i in order], "answer": f"{k} 0", "probs": [0.7, 0.3]}
        for k in range(20)
        for order in ([0, 1], [1, 0])[: 1 + (k < 12)]
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "answers.jsonl"
    ran = run("debias", "--log", tmp_path / "log.jsonl", "--method", "gray-box", "--out", out)
    assert ran.out.startswith(f"gray-box: 12 answers to 20 questions in {out}; "), ran.err
    assert run("debias", "--log", tmp_path / "log.jsonl", "--method", "none", "--out", out).out.startswith(
        f"none: 20 answers in {out}; "
    )
