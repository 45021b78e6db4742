"""An audit of a server that returns only the most probable tokens: labels outside have bounds, no scores."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.serving import Fault, FaultServer
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.errors import ModelError
from unslant.models.served import ServedModel
from unslant.models.stored import StoredModel
from unslant.questions import Question
from unslant.responses import Responses
from unslant.store import Store

QUESTIONS = [
    Question(f"q{i}", f"Which is {i}?", ("red", "green", "blue", "grey"), frozenset({i % 4})) for i in range(30)
]
TOP = {" A": 0.5, " B": 0.2, " C": 0.05, " the": 0.04}
"""No D: it may be as probable as the least of these, but no more."""


def reply(top: dict[str, float]) -> Fault:
    logprobs = {"top_logprobs": [{token: math.log(p) for token, p in top.items()}]}
    return Fault(body={"choices": [{"text": next(iter(top)), "logprobs": logprobs}]})


def audited(url: str, store: Store, orders: str = "given") -> AuditResult:
    return audit(StoredModel(ServedModel("m", url), store), QUESTIONS, orders=orders)


@pytest.mark.thorough
def test_bounds_are_marked_counted_and_recalled(tmp_path: Path) -> None:
    with FaultServer(lambda request: reply(TOP)).running() as server, Store(tmp_path / "s.sqlite3") as store:
        first, again = audited(server.url, store), audited(server.url, store)
    for result in (first, again):
        rows = result.responses.where(kind="order").rows()
        assert {row.bounds for row in rows} == {(3,)}
        assert {row.status for row in rows} == {"ok"}
        counts = result.metrics.counts
        assert (counts.bounded_scores, counts.censored_rows) == (30 * 5, 0)
        assert result.metrics.means["label_mass"].value == pytest.approx(0.75)
        assert any("only upper bounds" in note for note in result.page().notes)
    path = tmp_path / "r.parquet"
    first.responses.to_parquet(path)
    assert Responses.from_parquet(path).table.equals(first.responses.table)


@pytest.mark.thorough
def test_a_best_label_that_is_a_bound_is_not_an_answer(tmp_path: Path) -> None:
    def answer(request: dict[str, object]) -> Fault:
        return reply(TOP if "Which is 0?" not in str(request) else {" the": 0.5, " a": 0.3})

    with FaultServer(answer).running() as server, Store(tmp_path / "s.sqlite3") as store:
        result = audited(server.url, store)
    (row,) = (row for row in result.responses.where(kind="order").rows() if row.question_id == "q0")
    assert row.status == "censored"
    assert result.metrics.counts.without_given == 1
    assert result.metrics.means["accuracy"].n == 29


@pytest.mark.parametrize(
    "top", [pytest.param({" the": 0.6, " a": 0.3}, marks=pytest.mark.thorough), {" the": 0.6, " A": 0.3}]
)
def test_an_audit_of_bounds_is_refused(tmp_path: Path, top: dict[str, float]) -> None:
    with FaultServer(lambda request: reply(top)).running() as server, Store(tmp_path / "s.sqlite3") as store:
        with pytest.raises(ModelError, match=r"label scores are only upper bounds.*chat"):
            audited(server.url, store, "auto")
        asked = len([request for request in server.requests if request.get("logprobs")])
        assert asked < 100  # not the 30 questions in all of their orders
