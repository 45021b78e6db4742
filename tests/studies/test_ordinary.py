"""The cost of an audit in ordinary runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_line import unslant as command_line
from tests.fakes import RuleModel
from tests.studies.small_models import random_model
from training.world import question_sets
from unslant import load_questions
from unslant.auditing import AuditSettings, OrderDesign
from unslant.auditing.result import AuditResult
from unslant.auditing.study import COUNTED, audit, ordinary_cost
from unslant.models import Cost
from unslant.models.hf.model import TransformersModel
from unslant.presentations import present
from unslant.prompts import Cloze, Writer, load_template

QUESTIONS = [q for q in question_sets()[0] if len(q.options) == 4][:COUNTED]


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    return random_model()


@pytest.fixture(scope="module")
def audited(model: TransformersModel) -> AuditResult:
    return audit(model, QUESTIONS, shots=2)


def test_an_ordinary_run_is_the_published_order_alone_each_prompt_whole(model: TransformersModel) -> None:
    cloze, before = Cloze(Writer(load_template("plain"))), model.cost.copy()
    list(model.score([prompt for question in QUESTIONS for prompt in cloze.prompts(present(question))]))
    alone = (model.cost - before).tokens_plain
    assert audit(model, QUESTIONS, orders="given").cost.tokens_ordinary == alone


@pytest.mark.thorough
@pytest.mark.parametrize("orders", ["given", "reverse", "given:8", "balanced:4", "8"])
def test_the_cost_of_other_sets_is_what_an_audit_in_them_costs(
    model: TransformersModel, audited: AuditResult, orders: str
) -> None:
    assert audited.order_curve is not None
    runs = {point.orders: point.ordinary_runs for point in audited.order_curve.points}
    assert runs["auto"] == pytest.approx(audited.cost.ordinary_runs, abs=1e-4)
    found = audit(model, QUESTIONS, orders=orders, shots=2).cost
    assert found.tokens_ordinary == audited.cost.tokens_ordinary
    assert runs[orders] == pytest.approx(found.ordinary_runs, abs=1e-4)


@pytest.mark.thorough
def test_it_is_in_the_report_and_in_json(audited: AuditResult, tmp_path: Path) -> None:
    said = " ".join(audited.summary(details=True).split())
    assert f"({audited.cost.ordinary_runs:.3g} ordinary runs: the published order alone, whole prompts)" in said
    assert "Are fewer orders enough?" in said
    found = audited.to_dict()
    assert found["cost"]["ordinary_runs"] == audited.cost.ordinary_runs
    assert found["order_curve"]["points"][-1] == {
        "orders": "auto", "k": 24, "accuracy": 0, "vote": 0, "pbm": 0, "votes_differ": 0,
        "ordinary_runs": round(audited.cost.ordinary_runs, 4),
    }  # fmt: skip
    audited.to_parquet(tmp_path / "audit.parquet")
    again = AuditResult.from_parquet(tmp_path / "audit.parquet")
    assert again.cost == replace(audited.cost, seconds=0.0)
    assert again.order_curve == audited.order_curve


def test_where_tokens_cannot_be_counted_the_mean_prompt_replaces_the_published_one() -> None:
    class Counting(RuleModel):
        def score(self, prompts):
            for scored in super().score(prompts):
                self.cost.tokens += 30
                self.cost.tokens_plain += 60
                yield scored

    result = audit(Counting(lambda stem, labels, texts: [2.0, *[1.0] * (len(texts) - 1)]), QUESTIONS)
    said, cost = result.summary(details=True), result.cost
    assert "How close fewer orders come" not in said  # a chart
    assert "Are fewer orders enough?" in said
    assert "times the cost of an ordinary run" not in said
    assert cost.tokens_ordinary == 60 * len(QUESTIONS)
    assert cost.ordinary_runs == cost.prompts * 30 / (60 * len(QUESTIONS))
    assert Cost(tokens=3).to_dict()["ordinary_runs"] is None


def test_a_chart_is_drawn_only_where_there_is_something_to_draw(audited: AuditResult, model: TransformersModel) -> None:
    def charts(result: AuditResult) -> list[str]:
        return [chart.id for panel in result.page().sections if panel.id == "order-curve" for chart in panel.charts]

    assert charts(audited) == ["order-curve", "order-cost"]
    assert charts(audit(model, QUESTIONS, orders="cyclic")) == ["order-cost"]  # no PBM of the given order alone


@pytest.mark.thorough
def test_the_cost_of_a_mixed_set_is_not_that_of_its_questions_with_fewest_options(
    model: TransformersModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted by options, the first question of each tenth gave 13.7 % too little for a Latin square."""
    settings = AuditSettings(limit=60, orders="latin", template="plain")
    design = OrderDesign.of(settings.sampled(load_questions("embedded")), settings)
    sampled = ordinary_cost(model, Cost(), design, ())[1]
    monkeypatch.setattr("unslant.auditing.study.COUNTED", 60)
    every = ordinary_cost(model, Cost(), design, ())[1]
    assert sampled["latin"] == pytest.approx(every["latin"], rel=0.04)


@pytest.mark.thorough
@pytest.mark.parametrize("limit", [30, 120, None])
def test_costs_of_smaller_sets_are_corrected_by_what_the_run_did_cost(limit: int | None) -> None:
    """Of 400 questions the first screen said 5.6 ordinary runs for 5.28."""
    ran = audit("prefers-a", "embedded-skewed", limit=limit)
    assert ran.order_curve is not None
    assert ran.order_curve.ordinary_runs == pytest.approx(ran.cost.ordinary_runs, rel=1e-4)
    fewer = audit("prefers-a", "embedded-skewed", limit=limit, orders="given:4").cost.ordinary_runs
    assert ran.run.order_costs["given:4"] == pytest.approx(fewer, rel=0.03)


@pytest.mark.thorough
def test_prompts_without_content_from_the_store_change_no_cost(tmp_path: Path) -> None:
    """Of 400 questions the first screen said 5.6 ordinary runs for 5.3 once another file had been audited."""
    store = tmp_path / "scores.db"
    for *words, name in (["embedded", "--limit", "4", "first"], ["embedded-skewed", "second"]):
        ran = command_line("audit", "prefers-a", *words, "--store", store, "--responses", tmp_path / f"{name}.parquet")
        assert ran.code == 0, ran.err
    second = AuditResult.from_parquet(tmp_path / "second.parquet")
    assert second.cost.reused
    alone = audit("prefers-a", "embedded-skewed")
    assert second.run.order_costs == pytest.approx(alone.run.order_costs, rel=0.01)
