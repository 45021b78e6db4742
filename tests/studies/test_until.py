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
from unslant.auditing import AuditSettings
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.auditing.until_rule import FIRST_WHOLE, SQUARE, WHOLE, UntilSearch
from unslant.errors import InputError
from unslant.experiment import ShardOptions
from unslant.models.base import Scored
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.questions import Question
from unslant.questions.loaders import sample
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
    assert (told.ended, told.reached, told.whole) == ("width", True, FIRST_WHOLE)
    assert told.questions == len(result.scores) == result.metrics.counts.questions < 150
    assert told.prompts == len(result.responses) == len(model.seen) < told.of_prompts / 3
    for name in ("accuracy", "expected_accuracy", "order_advantage", "pbm"):
        estimate = means[name]
        assert estimate.high - estimate.low <= 0.2
        assert estimate.low <= {"order_advantage": 0, "pbm": 0}.get(name, 0.95) <= estimate.high
        assert "anytime-valid" in estimate.method
    assert means["consistency"].method.startswith("two-phase")
    known = f"Known to ±0.1 after asking {told.questions} of 200 questions, {told.squares} in a square of orders, 24"
    assert known in said(result)
    assert any("saved" in note for note in result.page().notes)
    page = " ".join(result.summary(details=True).split())
    assert "PBM, flips, label or position, corrections, AccStd and variance components come from these 24 alone" in page
    assert "PBM, consistency" not in page  # consistency is predicted from the squares, and PBM is not


def test_some_questions_are_asked_in_the_published_order_alone() -> None:
    result = audit(RuleModel(knowing), QUESTIONS, until=0.06)
    told, counts = result.run.until, result.scores.order_counts
    assert (counts == 24).sum() == told.whole == len(result.run.two_phase.full)
    assert (counts > 0).sum() == told.squares < told.questions
    assert result.metrics.counts.incomplete == 0
    assert result.metrics.means["expected_accuracy"].n == told.questions


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
    assert any("questions like these would be needed" in note for note in result.page().notes)


@pytest.mark.thorough
def test_orders_that_would_not_help_are_not_asked(whole: AuditResult) -> None:
    result = audit(RuleModel(unsure), QUESTIONS, until=0.03)
    told, means = result.run.until, result.metrics.means
    assert (told.ended, told.questions) == ("orders", 200)
    assert told.squares == 200 > told.whole
    assert told.share < 0.7
    for name in ("accuracy", "expected_accuracy", "order_advantage", "pbm"):
        few, every = means[name], whole.metrics.means[name]
        assert ("anytime" in few.method) == (name == "pbm")
        if name != "pbm":  # which is of the first questions
            assert few.high - few.low < 1.15 * (every.high - every.low)  # a tenth, and chance
        assert few.value == pytest.approx(every.value, abs=0.02)
    assert ", not ±0.03, after" in said(result)
    assert "but not until every interval was ±0.03 or narrower" in " ".join(result.summary(details=True).split())


def test_numbers_are_those_of_all_orders(whole: AuditResult) -> None:
    """A stop at any width: what is estimated of all orders is within the error of the questions asked."""
    found = audit(RuleModel(unsure), QUESTIONS, until=0.11)
    assert found.run.until.questions < 200
    for name in ("accuracy", "expected_accuracy", "order_advantage", "pbm"):
        own = found.metrics.means[name]
        assert own.low <= whole.metrics.means[name].value <= own.high
    asked = np.isin(whole.scores.ids, found.run.two_phase.full)
    assert found.metrics.means["pbm"].value == pytest.approx(whole.metrics.questions["pbm"][asked].mean())


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
def test_an_interrupted_search_resumes_and_the_audit_reuses_its_scores(tmp_path: Path) -> None:
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


@pytest.mark.thorough
def test_passages_are_drawn_whole() -> None:
    asked = [replace(q, context=f"passage {i // 5}") for i, q in enumerate(QUESTIONS)]
    result = audit(RuleModel(knowing), asked, until=0.15)
    passages = [int(name[1:]) // 5 for name in result.scores.ids]
    assert result.run.until.reached
    assert {passages.count(one) for one in set(passages)} == {5}


def test_orders_are_not_to_be_chosen() -> None:
    with pytest.raises(InputError, match="until chooses the orders itself"):
        audit(RuleModel(unsure), QUESTIONS, until=0.15, orders="12")


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
    assert result.metrics.counts.incomplete == 0


def test_a_model_without_scores_gives_no_answer() -> None:
    class Failing(RuleModel):
        def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
            return (Scored(i, None, "broken") for i in range(len(prompts)))

    result = audit(Failing(unsure), QUESTIONS[:60], until=0.1)
    assert not result.run.until.reached
    assert result.run.until.questions == 60
    assert "failed (broken); too few answers are left for a verdict" in result.headline


def searched(each: float, seed: int = 0, most: int = 100) -> tuple[UntilSearch, np.ndarray]:
    """A search of 60,000 questions whose squares cost ``each``, for some steps; and their means over orders."""
    rng = np.random.default_rng(seed)
    size = 60_000
    expected = rng.normal(0.5, 0.4, size).clip(0, 1)
    accuracy = (rng.random(size) < 0.5) * 1.0  # which says nothing about the mean over orders
    search = UntilSearch(0.02, np.ones(size, np.int64), rng.random(size), each)
    for _ in range(most):
        asked = search.asked
        known = {
            "accuracy": accuracy[: len(asked)],
            "certainty": accuracy[: len(asked)],
            "expected_accuracy": np.where(asked >= SQUARE, expected[: len(asked)], np.nan),
            "pbm": np.full(len(asked), 0.02),
        }
        intervals = search.look(known, lambda name, values: (0.0, 1.0))
        if search.next(intervals, np.zeros(search.whole)):
            break
    return search, expected


def test_squares_are_asked_where_they_are_worth_it() -> None:
    shares = {each: float((searched(each)[0].asked >= SQUARE).mean()) for each in (0.1, 100.0)}
    assert shares[100.0] < 0.5 < shares[0.1]


def test_once_every_question_has_its_square_no_value_is_a_guess() -> None:
    rng = np.random.default_rng(0)
    search, expected, right = (
        UntilSearch(0.02, np.ones(100, np.int64), rng.random(100), 1.0),
        rng.random(100),
        rng.random(100) < 0.5,
    )

    def values() -> np.ndarray:
        asked, accuracy = search.asked, right[: search.questions] * 1.0
        over_square = np.where(asked >= SQUARE, expected[: len(asked)], np.nan)
        columns = {
            "accuracy": accuracy,
            "certainty": accuracy,
            "expected_accuracy": over_square,
            "pbm": over_square / 4,
        }
        search.look(columns, lambda name, values: (0.0, 1.0))
        return search.values["expected_accuracy"]

    values()
    search.draws = 100  # the others in the published order alone
    assert (values()[48:] != expected[48:]).all()
    search.levels = np.maximum(search.levels, SQUARE)
    np.testing.assert_array_equal(values(), expected)


@pytest.mark.thorough
def test_values_are_unbiased_with_any_share_of_squares() -> None:
    errors = []
    for seed in range(200):
        search, expected = searched(100.0, seed, most=5)
        values = search.values["expected_accuracy"]
        errors.append(values.mean() - expected[: len(values)].mean())
    assert np.std(errors) > 0.01  # most questions were not asked in a square
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))


def test_a_question_that_is_asked_in_all_orders_at_once_counts_as_its_mean_over_them() -> None:
    """Of questions that PBM needs, none was drawn by chance: weighted as the squares are, they would be too far off."""
    rng, size, seen, at_once = np.random.default_rng(1), 2000, 0, 0
    expected, pbm = 1 - 0.1 * (rng.random(size) < 0.1), 0.25 * rng.integers(0, 2, size)
    search, right = UntilSearch(0.02, np.ones(size, np.int64), rng.random(size), 1.0), np.ones(size)
    for _ in range(20):
        n, new = search.questions, np.flatnonzero(search.asked == WHOLE)
        known = {"accuracy": right[:n], "certainty": right[:n], "expected_accuracy": expected[:n], "pbm": pbm[:n]}
        intervals = search.look(known, lambda name, values: (0.0, 1.0))
        new = new[new >= seen]
        assert search.values["expected_accuracy"][new] == pytest.approx(expected[new], abs=1e-12)
        seen, at_once = n, at_once + len(new) * (seen > 0)
        if search.next(intervals, np.zeros(search.whole)):
            break
    assert at_once


def test_more_orders_are_not_asked_for_the_published_score() -> None:
    """100 questions cannot show it to within 0.08, in however many orders; all other numbers were already known."""
    until = audit(RuleModel(unsure), QUESTIONS[:100], until=0.08).run.until
    widths = {key: (one["high"] - one["low"]) / 2 for key, one in until.path[-1].numbers.items()}
    assert widths.pop("accuracy") > 0.08 > max(widths.values())
    assert (until.ended, until.questions, until.whole, until.reached) == ("orders", 100, FIRST_WHOLE, False)


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


def test_settings_mention_it_only_where_it_was_asked_for() -> None:
    assert "until" not in AuditSettings().resolved(False).recorded()
    assert AuditSettings(until=0.1).resolved(False).recorded()["until"] == 0.1
