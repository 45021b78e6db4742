"""Audits of more questions than are asked in all orders."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import unslant.auditing
from tests.fakes import RuleModel
from tests.metrics.synthetic import make_questions
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.metrics import order_curve
from unslant.questions import Question
from unslant.reports.numbers import with_interval
from unslant.responses import Responses

QUESTIONS = make_questions(40, subjects=2)


def leans(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    """Drawn to the first place, and to every option by as much as the page has it."""
    noise = [(zlib.crc32(" ".join([*texts, text]).encode()) % 1000) / 1000 for text in texts]
    return [(2.0 if place == 0 else 1.0) * (1 + n) for place, n in enumerate(noise)]


def leans_more(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    """The same, so much more strongly that squares of a question differ."""
    return [weight**4 for weight in leans(stem, labels, texts)]


def after_another(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    """Drawn to the option that ends in 1 where it is next to that in 0."""
    return [9.0 if i and texts[i - 1].endswith("-0") and text.endswith("-1") else 1.0 for i, text in enumerate(texts)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unslant.auditing, "MOST_WHOLE", 20)
    monkeypatch.setattr(unslant.auditing, "PART", 16)


def shown(result: AuditResult) -> Counter[tuple[str, str]]:
    return Counter((row.question_id, row.kind) for row in result.responses.rows())


def test_up_to_200_questions_everything_is_asked() -> None:
    model = RuleModel(leans)
    few, whole = audit(model, QUESTIONS[:20]), audit(model, QUESTIONS[:20], orders="cyclic:24")
    assert few.responses.table == whole.responses.table
    assert few.run.two_phase is None
    assert few.metrics.to_dict() == whole.metrics.to_dict()


def test_of_more_a_part_is_asked_in_all_orders_and_the_rest_in_a_square() -> None:
    model = RuleModel(leans)
    result = audit(model, QUESTIONS)
    found, run = shown(result), result.run.two_phase
    assert run is not None
    assert len(run.full) >= 16
    assert Counter(question.split("s")[0] for question in run.full)
    for question in QUESTIONS:
        orders, labels = found[question.id, "order"], found[question.id, "labels-shifted"]
        assert (orders, labels) == ((24, 1) if question.id in run.full else (4, 0))
        assert orders == 24 or found[question.id, "given"] + orders in (4, 5)
    assert len(set(model.seen)) == len(model.seen)  # nothing is asked twice, however the part grew
    page = " ".join(result.summary(details=True).split())
    assert f"{len(run.full)} of 40 questions" in page
    assert f"40 questions, each in a square of orders, {len(run.full)} in 24 orders" in page
    assert "Which orders each question was shown in" in page
    assert "PBM, consistency, the vote and right in every order are predicted from the squares" in page
    assert "by subject, in all orders, reversed, and with rearranged labels" in page
    assert "were shown in a sample of their orders" not in page


@pytest.mark.thorough
def test_the_part_grows_until_intervals_are_narrow_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_curve, "WIDTH", 1.5)
    grown = audit(RuleModel(leans_more), QUESTIONS)
    assert grown.run.two_phase is not None
    size = len(grown.run.two_phase.full)
    assert 16 < size < len(QUESTIONS)
    monkeypatch.setattr(unslant.auditing, "PART", size)
    monkeypatch.setattr(order_curve, "WIDTH", 100.0)
    at_once = audit(RuleModel(leans_more), QUESTIONS)
    assert at_once.run.two_phase == grown.run.two_phase
    assert at_once.metrics.to_dict() == grown.metrics.to_dict()


@pytest.mark.parametrize("between", [1.0, 0.6])
def test_the_part_grows_until_the_mean_over_orders_is_narrow_enough(between: float) -> None:
    rng, size, part = np.random.default_rng(0), 1000, 100
    questions, squares = between * 0.05 * rng.standard_normal(size), 0.05 * rng.standard_normal((size, 24))
    squares -= squares.mean(axis=1, keepdims=True)
    while True:
        means = 0.5 + questions + np.where(np.arange(size) < part, 0.0, squares[:, 0])
        larger = order_curve.part_for_mean(means, squares[:part].var(axis=1), np.arange(size) < part)
        if larger == part:
            break
        part = larger
    assert 100 < part < size
    assert means.std() <= 1.15 * questions.std()


def test_a_part_without_noisy_questions_does_not_pass_for_a_precise_mean() -> None:
    means = np.where(np.arange(1000) % 25 == 24, 0.5, 0.25)  # the others stay where they are in every square
    assert order_curve.part_for_mean(means, np.zeros(3), np.arange(1000) < 3) > 3
    assert order_curve.part_for_mean(np.full(1000, 0.25), np.zeros(100), np.arange(1000) < 100) == 100


def test_a_table_says_what_was_asked(tmp_path: Path) -> None:
    result = audit(RuleModel(leans), QUESTIONS)
    result.responses.to_parquet(tmp_path / "found.parquet")
    again = AuditResult.of(Responses.from_parquet(tmp_path / "found.parquet"))
    assert again.to_dict()["metrics"] == result.to_dict()["metrics"]
    assert again.beyond_places == result.beyond_places


def test_the_page_says_that_orders_matter_beyond_places() -> None:
    beyond = audit(RuleModel(after_another), QUESTIONS)
    assert beyond.beyond_places is not None
    share = with_interval(beyond.beyond_places["beyond_places"], 2)
    assert f"Orders matter beyond places: {share} of PBM" in " ".join(beyond.summary(details=True).split())
    places = audit(RuleModel(lambda stem, labels, texts: [3.0, 1.0, 1.0, 1.0]), QUESTIONS)
    assert "Orders matter beyond places" not in places.summary(details=True)


def test_a_square_alone_has_no_part() -> None:
    result = audit(RuleModel(leans), QUESTIONS[:10], orders="latin")
    asked = Counter(row.question_id for row in result.responses.rows())
    assert {asked[question.id] for question in QUESTIONS[:10]} <= {4, 5}
    assert result.metrics.means["expected_accuracy"].n == 10
    assert not result.metrics.means["fr_labels"].defined


HABITS = {
    "none": lambda place, label, last: 0.0,
    "A": lambda place, label, last: 2.5 * (label == "A"),
    "mildly A": lambda place, label, last: 0.7 * (label == "A"),
    "the last position": lambda place, label, last: 2.5 * (place == last),
    "not the first position": lambda place, label, last: -2.5 * (place == 0),
    "B and C": lambda place, label, last: 2.5 * (label in "BC"),
}


def planted(habit: Callable[[int, str, int], float]) -> Callable[[str, list[str], list[str]], list[float]]:
    """A model that knows half of the answers, and otherwise has a taste, a habit and noise of every page."""

    def weights(stem: str, labels: list[str], texts: list[str]) -> list[float]:
        known = zlib.crc32(stem.encode()) % 2
        logs = []
        for place, (label, text) in enumerate(zip(labels, texts, strict=True)):
            taste, noise = ((zlib.crc32(seed.encode()) % 1000) / 1000 for seed in (text, " ".join([*texts, text])))
            logs.append(6.0 * known * text.endswith("-2") + taste + 0.3 * noise + habit(place, label, len(texts) - 1))
        return np.exp(logs).tolist()

    return weights


@pytest.mark.thorough
@pytest.mark.parametrize("habit", HABITS)
def test_the_habit_named_is_that_of_all_orders(habit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unslant.auditing, "MOST_WHOLE", 200)
    monkeypatch.setattr(unslant.auditing, "PART", 100)
    model, questions = RuleModel(planted(HABITS[habit])), make_questions(600, subjects=2)
    part, whole = audit(model, questions), audit(model, questions, orders="cyclic:24")
    assert part.run.two_phase is not None
    assert part.metrics.preference.phrase == whole.metrics.preference.phrase
    assert (whole.metrics.preference.finding == "habit") == (habit != "none")


def test_a_sample_of_the_orders_of_many_options_is_not_called_all_of_them() -> None:
    many = [Question(f"q{i:02}", f"{i}?", tuple("uvwxy"), frozenset({i % 5})) for i in range(22)]
    result = audit(RuleModel(leans), many)
    page = " ".join(result.summary(details=True).split())
    assert f"{len(result.run.two_phase.full)} in 25 orders" in page
    assert "in all orders (at most 25 with 5 options or more), reversed" in page


def test_the_page_says_nothing_of_where_a_pbm_of_nothing_comes_from() -> None:
    """Of a model that knows all, probabilities move by a millionth, and orders do not matter."""

    def knowing(stem: str, labels: Sequence[str], texts: Sequence[str]) -> list[float]:
        moved = 1e-4 * (sum(ord(c) * i for i, c in enumerate("".join(texts))) % 7)
        return [1.0 if text == min(texts) else 1e-3 + moved for text in texts]

    result = audit(RuleModel(knowing), QUESTIONS)
    assert result.metrics.means["consistency"].value == 1
    assert result.beyond_places is not None
    assert result.beyond_places["beyond_places"].low > 0.1
    assert "Orders matter beyond places" not in result.summary(details=True)
