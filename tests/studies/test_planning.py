"""``unslant plan``: what a pilot says of the run that follows, and what is refused."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path

import pytest

import unslant
from tests.command_line import unslant as command
from tests.conftest import SHARED_DATA
from tests.fakes import RuleModel
from unslant.errors import InputError
from unslant.metrics import Estimate
from unslant.metrics.decision_study import half_width
from unslant.questions import Question
from unslant.studies.plan import PlanSettings
from unslant.studies.plan.planning import Pilot, PlanResult


@pytest.fixture(scope="module")
def pilot() -> unslant.AuditResult:
    return unslant.audit("prefers-a", "embedded", limit=80)


def half(estimate: Estimate) -> float:
    return (estimate.high - estimate.low) / 2


@pytest.mark.thorough
def test_a_pilot_predicts_the_interval_of_the_run(pilot: unslant.AuditResult) -> None:
    run = unslant.audit("prefers-a", "embedded", limit=200, seed=1)
    planned = {one.orders: one for one in unslant.plan(pilot, available=200).designs}
    means = run.metrics.means
    assert planned["auto"].half_width == pytest.approx(half(means["expected_accuracy"]), rel=0.1)
    assert planned["given"].half_width == pytest.approx(half(means["accuracy"]), rel=0.1)
    # 80 questions have another share of those with many options
    assert planned["auto"].prompts == pytest.approx(run.cost.prompts, rel=0.2)
    assert planned["auto"].tokens == pytest.approx(run.cost.tokens, rel=0.2)


def test_a_plan_of_the_run_itself_has_its_numbers(pilot: unslant.AuditResult) -> None:
    own = next(one for one in unslant.plan(pilot).designs if one.orders == "auto")
    assert own.questions == 80
    assert own.half_width == pytest.approx(half(pilot.metrics.means["expected_accuracy"]), rel=0.05)
    assert own.difference == pytest.approx(pilot.metrics.minimum_difference, rel=0.05)
    assert own.tokens == pytest.approx(pilot.cost.tokens, rel=0.1)


def test_prompts_that_are_asked_once_are_not_planned_for_each_question(pilot: unslant.AuditResult) -> None:
    """Those without content were: a pilot of 60 questions planned 29 % too many tokens for 400."""
    planned = {one.orders: one.tokens for one in unslant.plan(pilot, available=400).designs}
    run = unslant.audit("prefers-a", "embedded", orders="given")
    assert planned["given"] == pytest.approx(run.cost.tokens, rel=0.06)


@pytest.mark.thorough
def test_json_parquet_and_result_give_the_same_plan(pilot: unslant.AuditResult, tmp_path: Path) -> None:
    pilot.to_json(tmp_path / "pilot.json")
    pilot.to_parquet(tmp_path / "pilot.parquet")
    plans = [unslant.plan(one, half_width=0.03) for one in (pilot, *sorted(tmp_path.iterdir()))]
    assert len({(plan.best.orders, plan.best.questions, plan.best.tokens) for plan in plans}) == 1
    best = plans[0].best
    assert best.least < best.questions < best.most
    assert best.seconds > 0


def test_the_range_holds_the_questions_also_of_a_pilot_that_hardly_varies(pilot: unslant.AuditResult) -> None:
    values = pilot.to_dict()
    between = {**values["variance_components"]["between"], "value": 0.00035, "low": 0.0, "high": 0.0052}
    hardly = Pilot.of(values | {"variance_components": {**values["variance_components"], "between": between}}, "pilot")
    for goal in (0.02, 0.05):
        designs = PlanResult.of(hardly, PlanSettings(half_width=goal)).designs
        assert all(one.least <= one.questions <= one.most for one in designs if one.orders != "given")


def test_the_range_of_a_strong_pilot_holds_the_questions_of_a_weaker_score() -> None:
    """Right on 29 of 30 questions, as a model that knows 0.9 is in one pilot of six."""
    between = Estimate(0.032, 0.006, 0.17, 30, "Student")
    pilot = Pilot("strong", 30, 29 / 30, between, {"question": 0.032}, 4, 24, 1.0, {4: 1.0})
    auto = next(one for one in PlanResult.of(pilot, PlanSettings(half_width=0.05)).designs if one.orders == "auto")
    weaker = Pilot("weaker", 30, 0.9, Estimate.bare(0.09, 30, ""), {"question": 0.09}, 4, 24, 1.0, {4: 1.0})
    true = next(one for one in PlanResult.of(weaker, PlanSettings(half_width=0.05)).designs if one.orders == "auto")
    assert auto.least <= auto.questions < true.questions <= auto.most


@pytest.mark.parametrize("goal", [{"half_width": 0.03}, {"difference": 0.05}, {"half_width": 0.04, "difference": 0.05}])
def test_one_question_less_is_too_few(goal: dict[str, float]) -> None:
    best = unslant.plan(**goal, score=0.7).best
    assert best.half_width <= goal.get("half_width", 1)
    assert best.difference <= goal.get("difference", 1)
    less = unslant.plan(available=best.questions - 1, score=0.7).best
    assert less.half_width > goal.get("half_width", 1) or less.difference > goal.get("difference", 1)


@pytest.mark.thorough
def test_a_pilot_from_the_store_and_one_in_few_orders_cost_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, orders in (("first.json", "auto"), ("again.json", "auto"), ("few.json", "given:4")):
        assert (
            command("audit", "fair", "embedded", "--limit=30", "-q", f"--orders={orders}", f"--json={name}").code == 0
        )
    first, again, few = (
        {one.orders: one.tokens for one in unslant.plan(name, available=30).designs}
        for name in ("first.json", "again.json", "few.json")
    )
    assert again == pytest.approx(first, rel=0.01)
    assert few == pytest.approx(first, rel=0.01)


@pytest.mark.thorough
def test_a_pilot_that_stopped_early_costs_a_question_the_same() -> None:
    questions = options_of(150, 4)
    early, whole = unslant.audit("fair", questions, until=0.2), unslant.audit("fair", questions)
    assert early.run.until
    assert early.run.until.questions < 150
    first, second = (unslant.plan(one, available=100).best for one in (early, whole))
    assert first.tokens / first.prompts == pytest.approx(second.tokens / second.prompts, rel=0.25)


def test_tokens_given_replace_those_of_the_pilot(pilot: unslant.AuditResult) -> None:
    for design in unslant.plan(pilot, available=50, tokens=1000).designs:
        assert design.tokens == pytest.approx(1000 * design.prompts, rel=0.01)


def leans(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    """Knows some questions, and leans towards A otherwise."""
    known = hash_of(stem) < 0.4
    return [
        math.exp(6 * known * ("*" in text) + (not known) * (hash_of(text) + (i == 0))) for i, text in enumerate(texts)
    ]


def hash_of(text: str) -> float:
    return zlib.crc32(text.encode()) / 2**32


def options_of(count: int, *sizes: int) -> list[Question]:
    """Questions with these numbers of options in turn, whose right option is the first one of three in four."""
    questions = []
    for q in range(count):
        size, right = sizes[q % len(sizes)], 0 if q % 4 else q // 4 % sizes[q % len(sizes)]
        texts = tuple(f"option {q} {i}{'*' * (i == right)}" for i in range(size))
        questions.append(Question(f"q{q}", f"stem {q}", texts, frozenset({right})))
    return questions


@pytest.mark.thorough
def test_a_run_in_two_phases_plans_itself() -> None:
    run = unslant.audit(RuleModel(leans), options_of(240, 4))
    planned = {one.orders: one for one in unslant.plan(run).designs}
    assert planned["auto"].questions == 240
    assert planned["auto"].half_width == pytest.approx(half(run.metrics.means["expected_accuracy"]), rel=0.03)
    # the published order puts the right option first, where the model leans to
    assert abs(run.metrics.means["order_advantage"].value) > 0.15
    assert planned["given"].half_width == pytest.approx(half(run.metrics.means["accuracy"]), rel=0.03)
    assert planned["auto"].prompts == pytest.approx(run.cost.prompts, rel=0.02)


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(2,), (5,), (2, 3, 6)])
def test_tokens_are_those_of_all_numbers_of_options(sizes: tuple[int, ...]) -> None:
    run = unslant.audit("fair", options_of(30, *sizes))
    planned = {one.orders: one for one in unslant.plan(run).designs}
    assert planned["auto"].tokens == pytest.approx(run.cost.tokens, rel=0.1)
    larger = {one.orders: one for one in unslant.plan(run, available=1000).designs}
    assert larger["auto"].tokens < larger["auto"].prompts * run.cost.tokens_plain / run.cost.prompts
    if 5 in sizes:
        assert [name for name in larger if name.startswith("cyclic")] == [
            "cyclic:5",
            "cyclic:10",
            "cyclic:15",
            "cyclic:20",
        ]


def test_too_few_questions_are_asked_as_a_run_asks_so_few(pilot: unslant.AuditResult) -> None:
    for available in (150, 400):
        aimed = unslant.plan(pilot, half_width=0.02, available=available)
        plain = {one.orders: one for one in unslant.plan(pilot, available=available).designs}
        assert not aimed.best.reached
        for one in aimed.designs:
            assert (one.prompts, one.tokens) == (plain[one.orders].prompts, plain[one.orders].tokens)


def test_a_pilot_in_two_orders_plans_for_all_positions() -> None:
    components = {"question": 0.1, "question_position": 0.08}
    # between questions, over 2 and over 4 positions
    two = Pilot("m on q", 100, 0.5, Estimate(0.14, 0.1, 0.2, 100, "made"), components, 2.0, 2.0, 1.0, {4: 1.0})
    four = Pilot("m on q", 100, 0.5, Estimate(0.12, 0.1, 0.2, 100, "made"), components, 4.0, 4.0, 1.0, {4: 1.0})
    assert two.variance(4.0) == pytest.approx(0.12)
    assert two.variance(24.0) == pytest.approx(four.variance(24.0))


def test_the_part_in_all_orders_grows_in_the_plan_as_in_a_run() -> None:
    """Where questions hardly differ, and orders do, a run asks most questions in all orders."""
    components = {"question": 0.01, "question_order": 0.2}
    between = Estimate(0.01 + 0.2 / 24, 0.01, 0.03, 200, "made")
    pilot = Pilot("m on q", 200, 0.3, between, components, 4.0, 24.0, 1.0, {4: 1.0})
    auto = {one.orders: one for one in PlanResult.of(pilot, PlanSettings(available=1000)).designs}["auto"]
    assert 24_000 < auto.prompts < 27_000


def test_what_is_said_of_more_orders_is_true_of_the_table(pilot: unslant.AuditResult) -> None:
    for plan in (unslant.plan(pilot, available=500), unslant.plan(pilot, half_width=0.05)):
        more = [one.half_width for one in plan.designs if one.k > plan.best.k]
        assert more
        assert "hardly" in plan.page().lines[1] or "barely" in plan.page().lines[1]
    assert " 1 times" not in plan.page().lines[1]


def test_too_few_questions_are_named_with_what_they_give() -> None:
    plan = unslant.plan(half_width=0.02, available=300)
    assert not plan.best.reached
    assert plan.best.questions > 2000
    assert plan.best.half_width == unslant.plan(available=300).best.half_width
    assert plan.headline.startswith("300 questions are too few; about 2,400 are needed.")


@pytest.mark.parametrize(("available", "detects"), [(2, False), (5, False), (6, True)])
@pytest.mark.parametrize("goal", [None, 0.02])
def test_differences_are_named_only_where_some_are_detected(available: int, detects: bool, goal: float | None) -> None:
    plan = unslant.plan(available=available, half_width=goal)
    assert ("no differences between models" in plan.headline) is not detects
    assert "1.000" not in plan.headline


def test_the_first_screen_is_short() -> None:
    page = unslant.plan(half_width=0.02).page()
    assert len(page.headline.split()) <= 30
    assert len(page.lines) <= 3


def test_only_balanced_orders_are_recommended_and_the_cheapest_first() -> None:
    pilot = Pilot(
        "m on q", 100, 0.6, Estimate(0.15, 0.1, 0.2, 100, "made"),
        {"question": 0.14, "question_order": 0.24}, 4.0, 24.0, 1.0, {4: 1.0}, prompt_tokens=100,
    )  # fmt: skip
    plan = PlanResult.of(pilot, PlanSettings(half_width=0.07))
    by_name = {one.orders: one for one in plan.designs}
    # 0.15 + 0.24 (1/4 - 1/24): more questions in fewer orders
    assert by_name["given:4"].questions / by_name["auto"].questions == pytest.approx(0.2 / 0.15, rel=0.03)
    assert plan.best.orders == "given:4"
    assert [one.tokens for one in plan.designs] == sorted(one.tokens for one in plan.designs)
    assert by_name["given"].score == "as published"
    assert by_name["given"].tokens < plan.best.tokens
    # beyond 200 questions, 100 of them in all orders and the others in squares
    larger = {one.orders: one for one in PlanResult.of(pilot, PlanSettings(half_width=0.03)).designs}
    assert larger["auto"].k == 4
    assert larger["auto"].questions == pytest.approx(larger["given:4"].questions, rel=0.05)
    assert larger["auto"].prompts < 8 * larger["auto"].questions


def test_a_pilot_without_a_wrong_answer_is_not_certain() -> None:
    alike = Pilot("m on q", 20, 1.0, Estimate.bare(0.0, 20, "alike"), {}, 4.0, 4.0, 1.0, {4: 1.0}).with_two_more()
    assert alike.accuracy == pytest.approx(21 / 22)
    assert alike.between.value == pytest.approx(1 / 22)
    assert 300 < PlanResult.of(alike, PlanSettings(half_width=0.02)).best.questions < 600


@pytest.mark.parametrize("questions", [10, 30, 100])
def test_a_pilot_whose_questions_are_all_alike_says_that_far_fewer_may_do(questions: int) -> None:
    """Of a model that always takes A: ten questions asked for 530 where 93 are enough, and no range was printed."""
    alike = Pilot("m on q", questions, 0.25, Estimate.bare(0.0, questions, "alike"), {}, 4.0, 4.0, 1.0, {4: 1.0})
    plan = PlanResult.of(alike.with_two_more(), PlanSettings(half_width=0.02))
    enough = next(n for n in range(2, 500) if half_width(n, 0.25, 0.0) <= 0.02)
    assert plan.best.least <= enough
    # as many others as the pilot misses in 5 % of the draws, all right
    missed = 1 - 0.05 ** (1 / questions)
    others = next(
        n for n in range(2, 5000) if half_width(n, 0.25 + missed * 0.75, missed * (1 - missed) * 0.5625) <= 0.02
    )
    assert plan.best.most >= 0.9 * others
    assert f"Between {plan.best.least} and " in plan.page().lines[0]


def test_what_it_costs() -> None:
    plan = unslant.plan(available=100, tokens=1000, price=0.5)
    assert plan.best.tokens == plan.best.prompts * 1000
    assert plan.best.price == pytest.approx(plan.best.tokens * 0.5e-6)
    assert f"at a price of {plan.best.price:.2f}." in plan.summary()
    assert "at a price of <0.01." in unslant.plan(available=20, tokens=100, price=0.1).summary()  # which is not 0.00
    replies = Pilot(
        "m on q", 50, 0.5, Estimate(0.2, 0.1, 0.25, 50, "made"),
        {"question": 0.19, "question_order": 0.02, "repeat": 0.02},
        4.0, 4.0, 1.0, {4: 1.0}, in_words=True, prompt_tokens=100, output_tokens=10,
    )  # fmt: skip
    made = PlanResult.of(replies, PlanSettings(available=100, price=1, output_price=4)).best
    assert (made.orders, made.prompts, made.tokens, made.output_tokens) == ("given:4", 400, 40_000, 4_000)
    assert made.price == pytest.approx(0.04 + 0.016)
    twice = PlanResult.of(replies, PlanSettings(available=100, repeats=2)).best
    assert twice.prompts == 2 * made.prompts
    assert twice.half_width < made.half_width


@pytest.mark.parametrize("name", ["samples_letter.jsonl", "samples_letter_mixed.jsonl", "samples_generate.jsonl"])
def test_logs_of_one_order_plan_the_score(name: str) -> None:
    path = SHARED_DATA / "logs" / "lm_eval" / name
    if not path.is_file():
        pytest.skip("no logs")
    plan = unslant.plan(log=path, half_width=0.05)
    assert 100 < plan.best.questions < 500
    assert plan.best.tokens > 0
    assert "A pilot in several orders" in plan.page().lines[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to plan for"),
        (("--half-width", "0"), "--half-width 0: give a number between 0 and 1"),
        (("--half-width", "0.00001"), "ask for less precision"),
        (("--available", "1"), "available 1: give 2 or more"),
        (("--half-width", "0.1", "--options", "101"), "options 101: give 2 to 100"),
        (("--half-width", "0.1", "--tokens", "inf"), "tokens inf: give a finite number"),
        (("--correlation", "1", "--difference", "0.1"), "correlation 1: give 0 or more"),
        (("nosuch.json", "--difference", "0.1"), "nosuch.json"),
        (("plan.json", "--difference", "0.1"), "holds a result of the study plan"),
        (("changed.json", "--difference", "0.1"), "holds numbers in a form that unslant does not write"),
        (("pilot.json", "--score", "0.7"), "the pilot has its own: leave out --score 0.7"),
        (("pilot.json", "--repeats", "2"), "labels are scored"),
        (("pilot.json", "--log", "pilot.parquet"), "give a pilot or a log, not both"),
        (("--half-width", "0.1", "--output-price", "2"), "leave out --output-price"),
        (("--half-width", "0.1", "--baseline", "plan.json"), "Unknown option: --baseline"),
    ],
)
def test_what_cannot_be_planned_is_one_line(
    words: tuple[str, ...], message: str, pilot: unslant.AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pilot.to_json("pilot.json")
    pilot.to_parquet("pilot.parquet")
    unslant.plan(available=9).to_json("plan.json")
    values = json.loads(Path("pilot.json").read_text())
    values["variance_components"]["between"] = "much"
    Path("changed.json").write_text(json.dumps(values))
    ran = command("plan", *words)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert message in ran.err


def test_a_misspelt_keyword_is_named() -> None:
    with pytest.raises(InputError, match="half_width"):
        unslant.plan(halfwidth=0.1)  # type: ignore[call-arg]


def test_all_right_as_published_is_not_taken_for_certain() -> None:
    """A model that leans to the first option, where the published order always has the right one."""
    questions = [Question(f"q{q}", f"stem {q}", ("right", "x", "y", "z"), frozenset({0})) for q in range(20)]
    plan = unslant.plan(unslant.audit(RuleModel(leans), questions), half_width=0.05)
    given = {one.orders: one for one in plan.designs}["given"]
    assert plan.pilot.published == 21 / 22
    assert given.questions > 60  # 32, were all right for certain


@pytest.mark.thorough
def test_a_fine_target_is_not_rounded_to_a_finer_one() -> None:
    assert "±0.0010, and differences of 0.0014 " in unslant.plan(half_width=0.001).headline
