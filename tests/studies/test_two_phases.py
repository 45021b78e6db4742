"""Audits of more questions than are asked in all orders."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes import RuleModel
from tests.metrics.synthetic import make_questions
from unslant.auditing import phases
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.responses import Responses

QUESTIONS = make_questions(40, subjects=2)


def leans(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    """Drawn to the first place, and to every option by as much as the page has it."""
    noise = [(zlib.crc32(" ".join([*texts, text]).encode()) % 1000) / 1000 for text in texts]
    return [(2.0 if place == 0 else 1.0) * (1 + n) for place, n in enumerate(noise)]


def after_another(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    """Drawn to the option that ends in 1 where it is next to that in 0."""
    return [9.0 if i and texts[i - 1].endswith("-0") and text.endswith("-1") else 1.0 for i, text in enumerate(texts)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "MOST_WHOLE", 20)
    monkeypatch.setattr(phases, "PART", 16)


def shown(result: AuditResult) -> Counter[tuple[str, str]]:
    return Counter((row.question_id, row.kind) for row in result.responses.rows())


def test_up_to_so_many_questions_everything_is_asked_as_before() -> None:
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
    assert "What was asked of what" in page
    assert "were shown in a sample of their orders" not in page


@pytest.mark.thorough
def test_the_part_grows_until_intervals_are_narrow_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "WIDTH", 1.2)
    grown = audit(RuleModel(leans), QUESTIONS)
    assert grown.run.two_phase is not None
    size = len(grown.run.two_phase.full)
    assert size > 16
    monkeypatch.setattr(phases, "PART", size)
    monkeypatch.setattr(phases, "WIDTH", 100.0)
    at_once = audit(RuleModel(leans), QUESTIONS)
    assert at_once.run.two_phase == grown.run.two_phase
    assert at_once.metrics.to_dict() == grown.metrics.to_dict()


def test_a_table_says_what_was_asked(tmp_path: Path) -> None:
    result = audit(RuleModel(leans), QUESTIONS)
    result.responses.to_parquet(tmp_path / "found.parquet")
    again = AuditResult.of(Responses.from_parquet(tmp_path / "found.parquet"))
    assert again.to_dict()["metrics"] == result.to_dict()["metrics"]
    assert again.beyond_places == result.beyond_places


def test_the_page_says_that_orders_matter_beyond_places() -> None:
    beyond = audit(RuleModel(after_another), QUESTIONS)
    assert "Orders matter beyond places" in beyond.summary(details=True)
    places = audit(RuleModel(lambda stem, labels, texts: [3.0, 1.0, 1.0, 1.0]), QUESTIONS)
    assert "Orders matter beyond places" not in places.summary(details=True)


def test_a_square_alone_has_no_part() -> None:
    result = audit(RuleModel(leans), QUESTIONS[:10], orders="latin")
    asked = Counter(row.question_id for row in result.responses.rows())
    assert {asked[question.id] for question in QUESTIONS[:10]} <= {4, 5}
    assert result.metrics.means["expected_accuracy"].n == 10
    assert not result.metrics.means["fr_labels"].defined
