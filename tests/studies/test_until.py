"""The audit with ``--until``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import unslant
from tests.fakes import RuleModel
from tests.first_screens import said
from unslant.auditing.result import AuditResult
from unslant.auditing.settings import AuditSettings
from unslant.auditing.study import audit
from unslant.auditing.until_rule import Search
from unslant.errors import InputError
from unslant.metrics import measure
from unslant.models.base import Scored
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.questions import Question
from unslant.questions.loaders import sample
from unslant.scale.options import ShardOptions
from unslant.store import Store

QUESTIONS = [
    Question(f"q{i:03d}", f"Which is {i}?", ("red", "green", "blue", "grey"), frozenset({i % 4})) for i in range(200)
]
RIGHT = {question.stem: question.options[min(question.answers)] for question in QUESTIONS}


def drawn(*words: object) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:8], "big"))


def unsure(stem: str, labels: list[str], texts: list[str]) -> Sequence[float]:
    """Knows 60 % of the answers, is drawn to A, and to whatever the order of the page brings."""
    knows = drawn(stem).random() < 0.6
    noise = drawn(stem, tuple(texts), tuple(labels)).normal(0, 1, len(texts))
    return np.exp(noise + [4.0 * (knows and text == RIGHT.get(stem)) + 1.5 * (label == "A")
                           for label, text in zip(labels, texts, strict=True)])  # fmt: skip


def knowing(stem: str, labels: list[str], texts: list[str]) -> Sequence[float]:
    """Answers the same whatever the order, and nearly always right."""
    right = RIGHT.get(stem) if drawn(stem).random() < 0.95 else "green"
    return [0.9 if text == right else 0.03 for text in texts]


@pytest.fixture(scope="module")
def whole() -> AuditResult:
    return audit(RuleModel(unsure), QUESTIONS)


def test_an_easy_set_stops_early_with_intervals_that_hold_the_truth() -> None:
    model = RuleModel(knowing)
    result = audit(model, QUESTIONS, until=0.1)
    told, means = result.run.until, result.metrics.means
    assert (told.ended, told.reached, told.orders) == ("width", True, 8)
    assert told.questions == len(result.scores) == result.metrics.counts.questions < 150
    assert told.prompts == len(result.responses) == len(model.seen) < told.of_prompts / 3
    for name in ("accuracy", "expected_accuracy", "order_advantage", "pbm"):
        estimate = means[name]
        assert estimate.high - estimate.low <= 0.2
        assert estimate.low <= {"order_advantage": 0, "pbm": 0}.get(name, 0.95) <= estimate.high
        assert "anytime-valid" in estimate.method
    assert means["consistency"].method.startswith("Agresti") or means["consistency"].method == "Wilson"
    assert f"Known to ±0.1 after asking {told.questions} of 200 questions in 8 of 24 orders" in said(result)
    assert "right in every order asked" in said(result)
    assert any("saved" in note for note in result.page().notes)


def test_the_questions_asked_are_those_of_a_random_sample() -> None:
    result = audit(RuleModel(knowing), QUESTIONS, until=0.1, seed=3)
    asked = len(result.scores)
    assert result.scores.ids == tuple(q.id for q in sample(QUESTIONS, asked, 3))
    assert {q.id for q in result.responses.questions} == set(result.scores.ids)


@pytest.mark.thorough
def test_where_everything_was_asked_it_is_the_audit(whole: AuditResult) -> None:
    model = RuleModel(unsure)
    result = audit(model, QUESTIONS, until=0.0005)
    told = result.run.until
    assert (told.ended, told.reached, told.questions) == ("all", False, 200)
    assert len(model.seen) == len({prompt.text for prompt in model.seen}) == told.prompts == told.of_prompts
    assert result.responses.table.equals(whole.responses.table)
    assert result.metrics.to_dict() == whole.metrics.to_dict()
    assert "right in every order on" in said(result)
    assert re.search(r"Known to ±0\.06\d, not ±0\.0005, after", said(result))
    assert any("such questions would be needed" in note for note in result.page().notes)


@pytest.mark.thorough
def test_orders_that_would_not_help_are_not_asked(whole: AuditResult) -> None:
    result = audit(RuleModel(unsure), QUESTIONS, until=0.03)
    told, means = result.run.until, result.metrics.means
    assert (told.ended, told.questions) == ("orders", 200)
    assert told.orders < 24
    assert told.share < 0.7
    for name in ("accuracy", "expected_accuracy", "order_advantage", "pbm"):
        few, every = means[name], whole.metrics.means[name]
        assert "anytime" not in few.method
        assert (few.high - few.low) / 2 - (every.high - every.low) / 2 < 0.006  # a tenth of the width, and chance
        assert few.value == pytest.approx(every.value, abs=0.02)
    assert ", not ±0.03, after" in said(result)


def test_pbm_is_that_of_all_orders(whole: AuditResult) -> None:
    found = audit(RuleModel(unsure), QUESTIONS, until=0.04)
    own, every = found.metrics.questions["pbm"], whole.metrics.questions["pbm"]
    rows = np.searchsorted(whole.scores.ids, found.scores.ids)
    error = (own - every[rows]).std() / np.sqrt(len(own))
    assert abs(own.mean() - every[rows].mean()) < 3 * error
    over_those_asked = measure(replace(found.scores, whole=None))["pbm"]
    assert over_those_asked.mean() < own.mean() - error


def test_it_is_read_back_from_its_table(tmp_path: Path) -> None:
    result = audit(RuleModel(unsure), QUESTIONS, until=0.1)
    result.to_parquet(tmp_path / "r.parquet")
    again = AuditResult.from_parquet(tmp_path / "r.parquet")
    assert again.metrics.to_dict() == result.metrics.to_dict()
    assert again.headline == result.headline
    panel = next(panel for panel in again.page().sections if panel.id == "until")
    assert len(panel.tables[0].rows) == len(result.run.until.path)
    assert panel.charts[0].id == "until"


class Interrupted(RuleModel):
    """Stops answering after so many prompts."""

    def __init__(self, left: float) -> None:
        super().__init__(unsure)
        self.left = left

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for scored in super().score(prompts):
            if self.left <= 0:
                raise KeyboardInterrupt
            self.left -= 1
            yield scored


@pytest.mark.thorough
def test_an_interrupted_search_goes_on_and_the_audit_takes_over_its_scores(tmp_path: Path) -> None:
    asked = QUESTIONS[:100]
    unbroken = audit(RuleModel(unsure), asked, until=0.15)
    prompts = unbroken.run.until.prompts
    with Store(tmp_path / "s.sqlite3") as store:
        with pytest.raises(KeyboardInterrupt):
            audit(StoredModel(Interrupted(600), store), asked, until=0.15)
        rest = Interrupted(np.inf)
        resumed = audit(StoredModel(rest, store), asked, until=0.15)
        assert len(rest.seen) == prompts - 600
        assert resumed.metrics.to_dict() == unbroken.metrics.to_dict()
        assert resumed.run.until.path == unbroken.run.until.path
        later = Interrupted(np.inf)
        full = audit(StoredModel(later, store), asked)
        assert len(later.seen) == len(full.responses) - prompts


def test_passages_are_drawn_whole() -> None:
    asked = [replace(q, context=f"passage {i // 5}") for i, q in enumerate(QUESTIONS)]
    result = audit(RuleModel(knowing), asked, until=0.15)
    passages = [int(name[1:]) // 5 for name in result.scores.ids]
    assert result.run.until.reached
    assert {passages.count(one) for one in set(passages)} == {5}


@pytest.mark.parametrize(("orders", "most"), [("given", 1), ("reverse", 2), ("12", 12), ("cyclic", 4)])
def test_other_order_sets(orders: str, most: int) -> None:
    result = audit(RuleModel(unsure), QUESTIONS, until=0.15, orders=orders)
    told = result.run.until
    assert told.reached
    assert told.of_orders == most
    assert set(told.path[-1].numbers) >= ({"accuracy"} if orders == "given" else {"accuracy", "pbm"})


def test_questions_of_several_sizes_and_pinned_options() -> None:
    texts = ("red", "green", "blue", "grey", "all of the above")
    asked = [
        replace(q, options=texts[: 2 + i % 3] if i % 4 else (*texts[:3], texts[4]), pinned=() if i % 4 else (3,),
                answers=frozenset({i % 2}))
        for i, q in enumerate(QUESTIONS)
    ]  # fmt: skip
    model = RuleModel(lambda stem, labels, texts: [1 + (text == "red") for text in texts])
    result = audit(model, asked, until=0.15)
    assert result.run.until.reached
    assert result.run.until.whole == {"2": 2, "3": 6, "4": 24}
    assert result.metrics.counts.incomplete == 0


def test_a_model_without_scores_is_no_answer() -> None:
    class Failing(RuleModel):
        def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
            return (Scored(i, None, "broken") for i in range(len(prompts)))

    result = audit(Failing(unsure), QUESTIONS[:60], until=0.1)
    assert not result.run.until.reached
    assert result.run.until.questions == 60
    assert "failed (broken); too few answers are left for a verdict" in result.headline


def test_more_orders_are_asked_where_they_are_worth_it() -> None:
    rng = np.random.default_rng(0)
    found = {}
    for each in (1.0, 1000.0):  # tokens of an order; those of a question are 1,000
        search = Search(0.05, np.ones(4000, np.int64), np.full(4000, 24), lambda r, each=each: 1000 + each * r)
        ended = ""
        while not ended:
            n, r = search.questions, search.rounds
            expected = rng.normal(0.5, 0.3, n) + rng.normal(0, 0.3, n) * np.sqrt(1 / r - 1 / 24)
            values = {
                "accuracy": np.full(n, np.nan),
                "order_advantage": np.full(n, np.nan),
                "expected_accuracy": expected.clip(0, 1),
                "pbm": np.full(n, 0.02),
            }
            intervals = search.look(values, lambda name: (0.0, 1.0))
            ended = search.next(intervals, values, np.full(n, 0.1))
        found[each] = search.rounds
    assert found[1000.0] <= 4 < found[1.0]


@pytest.mark.parametrize("until", [0, 1, -1, 0.5, float("nan"), "0.1"])
def test_bad_widths(until: object) -> None:
    with pytest.raises(InputError, match="until"):
        audit(RuleModel(unsure), QUESTIONS, until=until)


def test_shards_and_replies_are_refused() -> None:
    with pytest.raises(InputError, match=r"until .*cannot be combined with shard"):
        audit.study.responses(RuleModel(knowing), QUESTIONS, AuditSettings(until=0.1), shards=ShardOptions(shard="1/2"))
    with pytest.raises(InputError, match="until needs label scores"):
        AuditSettings(until=0.1).resolved(generate=True)


@pytest.mark.parametrize("words", [["--until", "0"], ["--until", "abc"], ["--until", "0.1", "--log", "x.jsonl"]])
def test_on_the_command_line_an_error_is_one_line(words: list[str]) -> None:
    ran = unslant("audit", *words)
    assert ran.code == 2
    assert "until" in ran.err
    assert "Traceback" not in ran.err


def test_settings_tell_it_only_where_it_was_asked_for() -> None:
    assert "until" not in AuditSettings().resolved(False).recorded()
    assert AuditSettings(until=0.1).resolved(False).recorded()["until"] == 0.1
