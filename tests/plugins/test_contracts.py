"""The contracts that plugins are held to: ours keep them, and each broken promise is named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes import RuleModel
from unslant.debiasing.base import Debiaser, Method, OrderDebiaser, Outcome
from unslant.models import ModelInfo, Scored, ScoringModel, load_model
from unslant.models.chat import LocalChat
from unslant.plugins.contracts import check_importer, check_method, check_model, check_study
from unslant.prompts import Prompt
from unslant.responses.importers import Importer, Log, Logged
from unslant.studies.base_rate.study import BaseRateResult, base_rate


class Coin(ScoringModel):
    """Nobody can complain about it; subclasses break one promise each."""

    def __init__(self, **info: Any) -> None:
        super().__init__(ModelInfo(**{"name": "coin", "identity": {"model": "coin"}, **info}))

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            self.cost.prompts += 1
            yield Scored(index, self.scores(index, len(prompt.continuations)))

    def scores(self, index: int, n: int) -> Any:
        return np.full(n, -np.log(n))


class Forgetful(Coin):
    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        return (one for one in super().score(prompts) if one.index != 3)


class Ordered(Coin):
    def scores(self, index: int, n: int) -> Any:
        return np.full(n, -np.log(n) - index)


class Sure(Coin):
    def scores(self, index: int, n: int) -> Any:
        return np.ones(n)


class Uncounted(Coin):
    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            yield Scored(index, self.scores(index, len(prompt.continuations)))


class Short(Coin):
    def scores(self, index: int, n: int) -> Any:
        return np.full(n - 1, -np.log(n))


class Silent(Coin):
    def scores(self, index: int, n: int) -> Any:
        return None


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Forgetful(), "one result for each prompt"),
        (Ordered(), "do not depend on the other prompts"),
        (Sure(), "at most 0"),
        (Uncounted(), "cost.prompts"),
        (Short(), "a number for each continuation"),
        (Silent(), "says why"),
        (Coin(identity={}), "identity holds"),
        (Coin(identity={"version": 1}), "identity holds"),
        (Coin(name=""), "with a name"),
        (Coin(can=frozenset()), "can score"),
    ],
)
def test_each_broken_promise_of_a_model_is_named(model: ScoringModel, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_model(model)


@pytest.mark.thorough
def test_our_models_keep_the_contract() -> None:
    check_model(Coin())
    check_model(RuleModel(lambda stem, labels, texts: [2.0] + [1.0] * (len(labels) - 1)))
    model = load_model("fair")
    check_model(model)
    check_model(LocalChat(model))


class _First(OrderDebiaser):
    pass


@dataclass(frozen=True)
class Plain(Method):
    name = "plain"

    def fit(self, asker: Any, questions: Any = ()) -> Debiaser:
        return _First(asker)


class _Changed(_First):
    def outcomes(self, questions: Any) -> list[Outcome]:
        return [self.changed(outcome) for outcome in super().outcomes(questions)]

    def changed(self, outcome: Outcome) -> Outcome:
        return outcome


class _Unnormalised(_Changed):
    def changed(self, outcome: Outcome) -> Outcome:
        return replace(outcome, probs=outcome.probs * 2)


class _Worst(_Changed):
    def changed(self, outcome: Outcome) -> Outcome:
        return replace(outcome, choice=int(outcome.probs.argmin()))


class _Touching(_First):
    def outcomes(self, questions: Any) -> list[Outcome]:
        found = super().outcomes(questions)
        next(self.asker.model.model.parameters()).data.add_(1)  # type: ignore[attr-defined]
        return found


def made(debiaser: type[Debiaser] = _First, **tags: Any) -> Method:
    kind = dataclass(frozen=True)(
        type("Broken", (Plain,), {"fit": lambda self, asker, questions=(): debiaser(asker), **tags})
    )
    return kind()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (made(_Unnormalised), "sum to 1"),
        (made(_Worst), "most probable option"),
        (made(order_invariant=True), "order_invariant is claimed"),
        (made(needs_fit=True), "needs_fit"),
        (made(needs_model=True), "raises InputError"),
    ],
)
def test_each_broken_promise_of_a_method_is_named(method: Method, words: str) -> None:
    check_method(Plain())
    with pytest.raises(AssertionError, match=words):
        check_method(method)


def test_a_method_that_changes_a_model_and_one_that_changes_itself_are_named() -> None:
    with pytest.raises(AssertionError, match="as it was, bit for bit"):
        check_method(made(_Touching), load_model("fair"))

    @dataclass
    class Loose(Method):
        name = "loose"

        def fit(self, asker: Any, questions: Any = ()) -> Debiaser:
            return _First(asker)

    with pytest.raises(AssertionError, match="frozen"):
        check_method(Loose())


def dots(read: Any = None, recognises: Any = None) -> Importer:
    page = Logged("q", ("A", "B"), frozenset({0}), "here", chosen=frozenset({0}))
    return Importer(
        "a log of dots",
        recognises or (lambda head: "dots" in head.names),
        read or (lambda head: [Log("dotty", "dots", "words", (page,))]),
    )


def test_a_log_format_is_recognised_by_itself_alone_and_names_its_model(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"dots": 3}')
    (responses,) = check_importer(dots(), path)
    assert responses.run.name == "dotty"
    for importer, words in (
        (dots(recognises=lambda head: False), "recognises"),
        (dots(recognises=lambda head: True), "without names"),
        (dots(read=lambda head: []), "at least one answer"),
    ):
        with pytest.raises(AssertionError, match=words):
            check_importer(importer, path)
    (tmp_path / "b.json").write_text(json.dumps({"sample_id": 1, "interaction_type": "s", "answer_attribution": [],
                                                 "evaluation": {}, "dots": 1}))  # fmt: skip
    with pytest.raises(AssertionError, match=r"no other format recognises .*Every Eval Ever"):
        check_importer(dots(), tmp_path / "b.json")


@pytest.mark.thorough
def test_studies_keep_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    check_study(base_rate, "fair", "embedded", limit=8)
    monkeypatch.setattr(BaseRateResult, "to_dict", lambda self: {"page": id(self)})
    with pytest.raises(AssertionError, match="rebuilt from its file"):
        check_study(base_rate, "fair", "embedded", limit=8)
