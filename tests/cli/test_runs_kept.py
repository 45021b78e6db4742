"""Commands that debias, train or fine-tune: kept as they come, and never taken for the scores of another model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.interrupted_models import Guesser, Run, run_ids  # fixtures
from tests.debiasing.conftest import make_questions, tiny, tiny_folder  # noqa: F401  # fixtures
from tests.studies.small_models import random_model
from unslant.debiasing import method_named
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.base import debias
from unslant.models.base import Scored
from unslant.models.hf import identity
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.store import Store
from unslant.studies.unbiased.contamination.study import contamination

STUDY = ("study", "debias", "m", "q.jsonl", "--methods", "vote,pride", "--json", "out.json", "-q")


class Counting(Guesser):
    """Counts what it costs; its power may be cut."""

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for scored in super().score(prompts):
            if len(self.seen) > self.prompts_left:
                self.seen.pop()
                raise self.error
            self.cost.prompts += 1
            yield scored


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite3") as opened:
        yield opened


def numbers(out: Path) -> Any:
    """What the study found; seconds and provenance left out."""
    return [
        entry | {"spent": {name: value for name, value in entry["spent"].items() if "seconds" not in name}}
        for entry in json.loads(out.read_text("utf-8"))["entries"]
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("left", [3, 60, 110])
def test_a_study_of_debiasing_resumes_where_it_was_stopped(unslant: Run, serve, questions, left: int) -> None:
    whole = serve(Counting())
    assert unslant(*STUDY, "--no-store").code == 0
    expected = numbers(Path("out.json"))

    first = serve(Counting(left))
    assert unslant(*STUDY).code == 130
    (run,) = run_ids(unslant)
    second = serve(Counting())
    assert unslant("runs", "resume", run).code == 0
    assert numbers(Path("out.json")) == expected
    asked = [Counter(prompt.text for prompt in model.seen) for model in (whole, first, second)]
    assert asked[1].total() == left
    assert asked[1] + asked[2] == asked[0]

    again = serve(Counting())
    assert unslant(*STUDY).code == 0
    assert again.seen == []
    assert numbers(Path("out.json")) == expected


def test_the_cost_of_a_method_does_not_depend_on_the_store(unslant: Run, serve, questions) -> None:
    fewer = (*STUDY, "--limit", "6")
    serve(Counting())
    unslant(*fewer, "--no-store")
    expected = numbers(Path("out.json"))
    assert {entry["method"]: entry["spent"]["forwards"] for entry in expected}["vote"] == 6
    assert unslant(*STUDY).code == 0  # asks all of the same prompts
    assert unslant(*fewer).code == 0
    assert numbers(Path("out.json")) == expected


def test_answers_count_the_presentations_that_the_store_has(unslant: Run, serve, questions) -> None:
    command = ("debias", *STUDY[2:4], "--method", "vote", "--out", "answers.jsonl")
    serve(Counting())
    alone = unslant(*command, "--no-store")
    unslant("audit", *STUDY[2:4])  # asks the same prompts
    assert unslant(*command).out.splitlines()[-1] == alone.out.splitlines()[-1]
    assert "presentations per question" in alone.out


def test_contamination_of_two_models_is_kept(unslant: Run, monkeypatch, questions) -> None:
    def load(name: str, *_: object, **__: object) -> Guesser:
        models.append(Guesser(name=name))
        return models[-1]

    monkeypatch.setattr("unslant.models.hf.loading.load_model", load)
    models: list[Guesser] = []
    command = ("study", "contamination", "m", questions, "--against", "other", "--runs", "1", "--shots", "0")
    first = unslant(*command)
    assert first.code == 0, first.err
    models.clear()
    again = unslant(*command)
    assert again.out == first.out
    assert [model.seen for model in models] == [[], []]
    assert "reused from the store" in again.err
    assert len(run_ids(unslant)) == 1


@pytest.mark.parametrize("name", ["bnp:nodes=4:questions=4", "lora-1", "set-based"])
@pytest.mark.thorough
def test_a_changed_model_shares_no_scores(tiny, store: Store, name: str, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr(identity, "NOISE", dict.fromkeys(identity.NOISE, 100.0))  # fingerprints tell nothing apart
    method: Any = method_named(name)
    if name == "lora-1":
        method = replace(method, epochs=1, questions_per_epoch=4, learning_rate=0.1)
    asked, fit = make_questions([3] * 4), make_questions([3] * 12, seed=4)
    kept = StoredModel(tiny, store)

    def answers(how: Any, model: Any) -> list[Any]:
        found = debias(how, ModelAsker(model), asked, fit)
        return [found.fit_cost.prompts, found.cost.prompts, *((o.choice, o.probs.tolist()) for o in found.outcomes)]

    plain, expected = (answers(how, tiny) for how in (method_named("none"), method))
    assert plain[2:] != expected[2:]
    for _ in range(2):  # the second time, scores of both models are there to be taken for the other's
        assert answers(method_named("none"), kept) == plain
        assert answers(method, kept) == expected


@pytest.mark.thorough
def test_the_units_that_are_pruned_are_part_of_who_the_model_is(tiny) -> None:  # noqa: F811
    def who() -> dict[str, str]:
        return {name: value for name, value in tiny.identify().identity.items() if name != "fingerprint"}

    found = [who()]
    for nodes in (4, 5):
        fitted = method_named(f"bnp:nodes={nodes}:questions=4").fit(ModelAsker(tiny), make_questions([3] * 12, seed=4))
        found.append(who())
        fitted.close()
        assert who() == found[0]
    assert len(set(map(str, found))) == 3


@pytest.mark.thorough
def test_a_fine_tuned_model_shares_no_scores(store: Store) -> None:
    settings: dict[str, Any] = {"limit": 8, "epochs": 2, "runs": 1, "shots": 0}
    expected = contamination(random_model(), **settings)
    kept = contamination(StoredModel(random_model(), store), **settings)
    again = StoredModel(random_model(), store)
    recalled = contamination(again, **settings)
    for found in (kept, recalled):
        assert found.excess == expected.excess
        assert found.after.responses.table.equals(expected.after.responses.table)
    assert again.model_asked.cost.prompts == 0
    assert again.recalled
    assert not kept.before.responses.table.equals(kept.after.responses.table)
