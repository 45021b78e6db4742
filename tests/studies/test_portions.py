"""Runs of any size: presentations are made, scored and kept some at a time, and come out as if all at once."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import unslant
import unslant.asking
from tests.fakes import RuleModel
from unslant import InputError, Question
from unslant.asking import ask
from unslant.auditing import audit_presentations
from unslant.auditing.study import audit
from unslant.metrics import read_scores
from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.models.stored import StoredModel
from unslant.presentations import Asked
from unslant.prompts import Cloze, Counterfactual, Prompt, Writer, load_template
from unslant.store import Store

QUESTIONS = [
    Question(f"q{i}", f"Which is {i}?", tuple(f"item {j}" for j in range(n)), frozenset({i % n}), subject=f"s{i % 3}")
    for i, n in enumerate([2, 3, 4, 5] * 6)
]
WRITER = Writer(load_template("plain"))


class Counted(RuleModel):
    """Knows how many prompts it was asked at a time."""

    def __init__(self) -> None:
        super().__init__(lambda stem, labels, texts: [1.0 + len(stem + text) % 5 for text in texts])
        self.calls: list[int] = []

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        self.calls.append(len(prompts))
        yield from super().score(prompts)


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unslant.asking, "AT_ONCE", 30)
    monkeypatch.setattr(sys.modules["unslant.metrics.read_scores"], "ROWS_AT_ONCE", 47)


def test_an_audit_in_portions_is_the_audit(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    whole = audit(model := Counted(), QUESTIONS)
    assert len(model.calls) == 1
    request.getfixturevalue("portions")
    told: list[tuple[int, int]] = []
    found = audit(model := Counted(), QUESTIONS, progress=lambda _, done, total: told.append((done, total)))
    assert found.responses.table.equals(whole.responses.table)
    assert found.to_dict() | {"cost": 0} == whole.to_dict() | {"cost": 0}
    assert len(model.calls) > 10
    assert max(model.calls) < 30 + 27
    assert [done for done, _ in told] == list(range(len(told)))
    assert told[-1][0] == told[-1][1] == sum(model.calls)
    assert told[0][1] == pytest.approx(told[-1][1], rel=0.2)


@pytest.mark.usefixtures("portions")
def test_rows_stand_elicitation_by_elicitation() -> None:
    asked = [(q, shown) for q in QUESTIONS for shown in audit_presentations(q, "cyclic", tuple("ABCDE"))]
    ways = [Cloze(WRITER), Counterfactual(WRITER)]
    found = ask(AnyPrompt(), iter(asked), ways).rows()
    assert [(row.elicitation, row.question_id, row.contents) for row in found] == [
        (way.name, question.id, shown.contents) for way in ways for question, shown in asked
    ]
    for row, (_, shown) in zip(found, asked * 2, strict=True):
        way = ways[row.elicitation == "counterfactual"]
        assert row.logprobs is not None
        exact = way.read(shown, [AnyPrompt.answer(prompt) for prompt in way.prompts(shown)])
        assert np.array_equal(row.logprobs, exact)


class AnyPrompt(ScoringModel):
    """Answers by the length of things."""

    def __init__(self) -> None:
        super().__init__(ModelInfo(name="any", identity={"model": "any"}))

    @staticmethod
    def answer(prompt: Prompt) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return -np.array([1.0 + (len(prompt.text) * 7 + ord(text[-1])) % 11 for text in prompt.continuations])

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for i, prompt in enumerate(prompts):
            yield Scored(i, self.answer(prompt))


def test_nothing_to_ask_is_an_empty_table() -> None:
    assert len(ask(AnyPrompt(), [], [Cloze(WRITER)])) == 0


def test_what_cannot_be_asked_is_refused_before_the_model_is_loaded() -> None:
    def load() -> RuleModel:
        raise AssertionError("loaded")

    for settings in ({"labels": "A,B,C"}, {"shots": len(QUESTIONS)}, {"orders": "none"}):
        with pytest.raises(InputError):
            audit(load, QUESTIONS, **settings)


@pytest.mark.thorough
@pytest.mark.usefixtures("portions")
@pytest.mark.parametrize("stops", [(40,), (1, 29, 31, 150)])
def test_a_run_in_portions_resumes_bit_for_bit(tmp_path: Path, stops: tuple[int, ...]) -> None:
    model = unslant.load_model("fair")
    asked = QUESTIONS[:12]
    with Store(tmp_path / "whole.sqlite3") as store:
        audit(StoredModel(model, store), asked).to_parquet(tmp_path / "whole.parquet")
    path = tmp_path / "s.sqlite3"
    for after in stops:
        with Store(path) as store, pytest.raises(KeyboardInterrupt):
            audit(Stopped(model, store, after), asked)
    with Store(path) as store:
        last = StoredModel(model, store)
        audit(last, asked).to_parquet(tmp_path / "again.parquet")
        assert last.recalled >= max(stops) - 1
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


class Stopped(StoredModel):
    """Is interrupted after so many scores, over all its calls."""

    def __init__(self, model: object, store: Store, after: int) -> None:
        super().__init__(model, store)  # type: ignore[arg-type]
        self.left = after

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for scored in islice(super().score(prompts), self.left):
            self.left -= 1
            yield scored
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_what_is_held_while_asking_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unslant.asking, "AT_ONCE", 1000)
    question = QUESTIONS[2]

    def asked(number: int) -> Iterator[Asked]:
        for i in range(number):
            one = Question(f"q{i}", f"Which is {i}?", question.options, question.answers)
            for shown in audit_presentations(one, "all", tuple("ABCD")):
                yield one, shown

    peaks = []
    ask(AnyPrompt(), asked(80), [Cloze(WRITER)])  # fills caches
    for number in (80, 480):
        tracemalloc.start()
        table = ask(AnyPrompt(), asked(number), [Cloze(WRITER)])
        peaks.append(tracemalloc.get_traced_memory()[1])  # Arrow's own memory is not traced
        tracemalloc.stop()
        assert len(read_scores(table)) == number
    assert peaks[1] < 1.3 * peaks[0]
