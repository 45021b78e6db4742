"""The debiasing study on models whose bias is known."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.debiasing.conftest import make_questions, open_model, tiny_folder  # noqa: F401  # a fixture
from tests.fakes import RuleModel
from tests.studies.leaning import KNOWN, OTHER, leaning
from unslant.debiasing import method_named
from unslant.debiasing.asker import ModelAsker
from unslant.errors import InputError, ModelError
from unslant.questions import Question, QuestionSet
from unslant.studies.debias.measure_debiased import MEASURES, answer_listings, listing_orders, measured
from unslant.studies.debias.result import DebiasResult
from unslant.studies.debias.study import _halves, debias


@pytest.mark.parametrize("sizes", [[1] * 7, [5], [3, 3, 1, 1], [4, 1, 1], [2, 2, 2, 2, 2]])
def test_questions_of_one_passage_are_in_one_half(sizes: list[int]) -> None:
    """Else a method would be fitted on passages that it is measured on."""
    passages = [f"passage {i}" for i, size in enumerate(sizes) for _ in range(size)]
    questions = [
        replace(q, context=text) for q, text in zip(make_questions([3] * len(passages)), passages, strict=True)
    ]
    for seed in range(20):
        first, second = _halves(questions, seed)
        assert first
        assert {q.id for q in first}.isdisjoint(q.id for q in second)
        assert [q.id for q in questions] == [q.id for q in questions if q in first or q in second]
        assert len(sizes) == 1 or {q.context for q in first}.isdisjoint(q.context for q in second)
        assert abs(len(second) - len(first)) <= 2 * max(sizes)


@pytest.fixture(scope="module")
def result() -> DebiasResult:
    sets = [QuestionSet.of(KNOWN, "known"), QuestionSet.of(OTHER, "other")]
    methods = ("vote", "vote-hard", "adaptive", "pride:alpha=0.2", "gray-box", "aoi")
    return debias([RuleModel(leaning, "leaning")], sets, methods=methods)


@pytest.mark.thorough
def test_vote_leaves_no_bias_and_finds_what_is_known(result: DebiasResult) -> None:
    base, voted = result.entry("none", questions="known"), result.entry("vote", questions="known")
    assert base.measures["pbm"].value > 0.04
    assert base.measures["accuracy"].value < 0.5
    for name in ("pbm", "fr", "acc_std"):
        assert voted.measures[name].value == pytest.approx(0, abs=1e-30)
    assert voted.measures["accuracy"].value == 1
    assert voted.constructed == ("pbm", "fr", "acc_std")
    assert voted.chance == pytest.approx((15 / 4 + 5 / 3) / 20)
    assert all(math.isnan(voted.measures[name].low) for name in voted.constructed)
    assert voted.change["pbm"].relative.value == pytest.approx(-1)
    assert voted.change["pbm"].difference.n == len(KNOWN)
    for name in ("rstd", "acc_std"):
        assert voted.change[name].p < 0.01
        assert math.isnan(voted.change[name].difference.low)
    # (1 - a) / a, from the two accuracies themselves
    a = base.measures["accuracy"].value
    assert voted.change["accuracy"].relative.value == pytest.approx((1 - a) / a)
    difference = voted.change["accuracy"].difference
    assert difference.value == pytest.approx(1 - a)
    assert 0 < difference.low < difference.value < difference.high


@pytest.mark.thorough
def test_pride_finds_the_prior_and_carries_it_over(result: DebiasResult) -> None:
    pride = result.entry("pride:alpha=0.2", questions="other")
    assert pride.measures["rstd"].value < 0.1 < result.entry("none", questions="other").measures["rstd"].value
    assert set(pride.draws) == set(MEASURES)
    assert pride.draws["accuracy"][0] > 0.9
    moved = [e for e in result.entries if e.transferred]
    assert {(e.method, e.fitted_on, e.questions) for e in moved} == {
        ("pride:alpha=0.2", "known", "other"), ("pride:alpha=0.2", "other", "known")
    }  # fmt: skip
    assert all(e.change["rstd"].relative.value < -0.5 for e in moved if e.questions == "other")
    assert any("3 options" in note for e in moved for note in e.notes)


def test_costs(result: DebiasResult) -> None:
    n = {q.id: len(q.options) for q in KNOWN}
    forwards = {e.method: e.spent.forwards for e in result.entries if e.questions == "known" and not e.transferred}
    assert forwards["none"] == forwards["aoi"] == 1
    assert forwards["gray-box"] == 2
    assert forwards["vote"] == np.mean([24 if k == 4 else 6 for k in n.values()])
    assert forwards["adaptive"] <= forwards["vote"]
    pride = result.entry("pride:alpha=0.2", questions="known").spent
    estimated = round(0.2 * 15) * 3 + round(0.2 * 5) * 2
    assert pride.forwards * len(KNOWN) == pytest.approx(len(KNOWN) + estimated)


def test_averages_are_over_models_and_sets_and_their_intervals_over_questions(result: DebiasResult) -> None:
    row = result.average["vote"]["accuracy"]
    entries = [result.entry("vote", questions=name) for name in ("known", "other")]
    relative = [entry.change["accuracy"].relative.value for entry in entries]
    assert (row.relative.value, row.relative.n) == (pytest.approx(np.mean(relative)), 2)
    assert math.isnan(row.relative.low)
    assert (row.smallest, row.largest) == (min(relative), max(relative))
    differences = [entry.change["accuracy"].difference for entry in entries]
    assert row.difference.value == pytest.approx(np.mean([one.value for one in differences]))
    assert row.difference.n == sum(one.n for one in differences)
    assert row.difference.low < row.difference.value < row.difference.high
    assert row.difference.high - row.difference.low < max(one.high - one.low for one in differences)
    assert math.isnan(result.average["vote"]["rstd"].difference.low)
    assert {(row.method, row.fitted_on) for row in result.transfer} == {
        ("pride:alpha=0.2", "known"), ("pride:alpha=0.2", "other")
    }  # fmt: skip
    (moved,) = (e for e in result.entries if e.transferred and e.fitted_on == "known")
    (carried,) = (row for row in result.transfer if row.fitted_on == "known")
    assert carried.change["rstd"].relative.value == moved.change["rstd"].relative.value
    assert carried.change["accuracy"].difference == moved.change["accuracy"].difference


def test_models_of_one_set_are_paired_by_question() -> None:
    """The same model twice: as many questions as once, and no more certain."""
    known = QuestionSet.of(KNOWN, "known")
    twice = debias([RuleModel(leaning, "one"), RuleModel(leaning, "two")], [known], methods=("gray-box",))
    alone = twice.entry("gray-box", model="one").change
    for key in ("accuracy", "pbm", "fr"):
        mean, one = twice.average["gray-box"][key].difference, alone[key].difference
        assert mean.n == one.n == len(KNOWN)
        assert (mean.value, mean.low, mean.high) == pytest.approx((one.value, one.low, one.high))


@pytest.mark.parametrize("questions", [1, 3])
def test_few_questions_and_methods_that_change_nothing_claim_nothing(questions: int) -> None:
    fair = RuleModel(lambda stem, labels, texts: [1.0 + len(text) for text in texts], "fair")
    for model in (fair, RuleModel(leaning, "leaning")):
        few = debias([model], [QuestionSet.of(KNOWN[:questions], "few")], methods=("gray-box", "pride"))
        assert "shown to raise" in few.headline
        assert not any("raised by" in line or "lowered by" in line for line in few.page().lines)
    several = debias([fair], [QuestionSet.of(KNOWN, "known")], methods=("gray-box", "pride"))
    assert several.headline.startswith("None of 2 methods is shown to raise the accuracy of fair on known")
    assert len(several.page().lines) <= 3
    assert len(several.page().tiles) <= 3
    unknown = debias([fair], [QuestionSet.of([replace(q, answers=frozenset()) for q in KNOWN], "open")], methods="vote")
    assert "Accuracy" not in unknown.summary(), "neither undebiased nor changed"


def test_models_in_folders_are_named_without_them() -> None:
    known = [QuestionSet.of(KNOWN, "known")]
    one, two = (debias([RuleModel(leaning, f"{at}/m") for at in places], known, methods="vote")
                for places in (["runs/a"], ["a", "b"]))  # fmt: skip
    assert " of m on known" in one.headline
    assert " of a/m and b/m on known" in two.headline


def test_written_and_shown(result: DebiasResult, tmp_path: Path) -> None:
    result.to_json(tmp_path / "out.json")
    data = json.loads((tmp_path / "out.json").read_text())
    entry = next(e for e in data["entries"] if e["method"] == "vote" and e["questions"] == "known")
    assert entry["measures"]["pbm"]["n"] == len(KNOWN)
    assert entry["change"]["pbm"]["relative"]["value"] == pytest.approx(-1)
    assert result.headline.startswith("vote raises the accuracy of leaning on known and other by ")
    assert result.headline == data["headline"]
    assert len(result.headline.split()) <= 30
    assert "removed by construction by vote" in " ".join(data["lines"])
    mean = data["average"]["vote"]["accuracy"]
    assert mean["difference"]["method"].endswith("over questions, within subjects")
    assert mean["relative"]["low"] is mean["relative"]["high"] is None
    assert mean["smallest"] < mean["relative"]["value"] < mean["largest"]
    assert "paired" not in data["entries"][0]
    text = result.summary(details=True)
    assert all(
        word in text
        for word in ("leaning on known", "gray-box", "−100\u00a0%", "on the other sets", "±", "by construction")
    )
    panels = result.page().sections
    assert [panel.id for panel in panels] == ["debias-0", "debias-1", "debias-all"]


@pytest.mark.thorough
def test_trained_methods_never_see_what_they_are_measured_on(tiny_folder: Path) -> None:  # noqa: F811
    questions = make_questions([4] * 40)
    model = open_model(tiny_folder)
    methods = ("lora-1:epochs=1:questions_per_epoch=4:max_orders=4", "bnp:nodes=4", "set-based")
    half = QuestionSet.of([Question(q.id, q.stem, q.options, frozenset({0, 2})) for q in questions], "half")
    found = debias([model], [half], methods=methods)
    assert found.measured_on == {"half": 20}
    assert found.trained_on == {"half": 20}
    assert found.entry("set-based").measures["pbm"].value == pytest.approx(0, abs=1e-12)
    assert found.entry(methods[0]).spent.debiasing_tokens > 0
    assert {e.measures["pbm"].n for e in found.entries} == {20}


@pytest.mark.thorough
@pytest.mark.parametrize("as_source", [list, pd.DataFrame, lambda rows: [pd.DataFrame(rows)]])
def test_questions_to_train_on_in_memory(tiny_folder: Path, as_source: Callable[[list[dict[str, Any]]], Any]) -> None:  # noqa: F811
    # A list of dicts is one set of questions, not one set for each dict.
    rows = [{"question": f"{i}?", "options": ["oak", "ash", "elm", "fir"], "answer": i % 4} for i in range(6)]
    half = QuestionSet.of(make_questions([4] * 8), "half")
    methods = ("lora-1:epochs=1:questions_per_epoch=4:max_orders=4",)
    found = debias([open_model(tiny_folder)], [half], methods=methods, train=as_source(rows))
    assert (found.trained_on, found.measured_on) == ({"half": 6}, {"half": 8})
    assert "oak" not in json.dumps(found.to_dict()["provenance"])  # questions are named there, not written out


@pytest.mark.thorough
def test_a_method_that_cannot_be_fitted_or_asked_is_a_note_and_the_others_give_results(
    tiny_folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = open_model(tiny_folder)
    certain = QuestionSet.of(make_questions([4] * 8), "set")
    unasked = debias([model], [certain], methods=("bnp:nodes=1000000", "gray-box"))
    assert [one.method for one in unasked.missing] == ["bnp:nodes=1000000"]
    assert unasked.entry("gray-box").change
    alone = debias([model], [certain], methods=("bnp:nodes=1000000",))
    assert "No method gave a result" in alone.headline
    assert any("no result from bnp" in line.lower() for line in alone.page().lines)
    assert alone.entry("none").measures["accuracy"].n == 4  # the half that it would have been measured on

    def refuse(*_: object) -> None:
        raise ModelError("out of memory")

    monkeypatch.setattr(type(method_named("gray-box").fit(ModelAsker(model))), "outcome", refuse)
    answering = debias([model], [certain], methods=("gray-box", "vote"))
    assert [(one.method, one.reason) for one in answering.missing] == [("gray-box", "out of memory")]
    assert answering.entry("vote").change


def test_a_missing_package_is_found_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    asked = RuleModel(leaning, "leaning")
    known = QuestionSet.of(KNOWN, "known")
    with pytest.raises(ModelError, match=r"LoRA-1 needs peft: pip install 'unslant\[local\]'"):
        debias([asked], [known], methods=("lora-1",))
    assert not asked.seen
    with pytest.warns(UserWarning, match="lora-1 is left out"):
        found = debias([asked], [known], methods=("lora-1", "vote"))
    assert [one.method for one in found.missing] == ["lora-1"]
    assert found.entry("vote").measures["accuracy"].n == len(KNOWN)


def test_what_is_refused() -> None:
    model, known = RuleModel(leaning), QuestionSet.of(KNOWN, "known")
    with pytest.raises(InputError, match="same name"):
        debias([model], [known, known], methods=("vote",))
    with pytest.raises(InputError, match="2 training sets for 1"):
        debias([model], [known], methods=("vote",), train=[known, known])
    with pytest.raises(InputError, match="unknown method"):
        debias([model], [known], methods=("voting",))
    with pytest.raises(InputError, match="loaded model"):
        debias([model], [known], methods=("bnp",), train=[QuestionSet.of(OTHER, "other")])
    with pytest.raises(InputError, match="a method is fitted on"):
        debias([model], [known], methods=("bnp",), train=[known])


def test_listings_map_answers_and_pinned_options() -> None:
    question = Question("q", "?", ("a", "b", "c", "all of these"), frozenset({1}), pinned=(3,))
    orders = listing_orders(question, "2", 0)
    assert {name for name, _ in orders} <= {"order", "given", "reverse"}
    assert (0, 1, 2, 3) in [order for _, order in orders]
    assert (2, 1, 0, 3) in [order for _, order in orders]
    listed = question.relisted((2, 0, 1, 3))
    assert listed.options == ("c", "a", "b", "all of these")
    assert listed.answers == {2}
    assert listed.pinned == (3,)


def test_a_false_claim_of_invariance_is_found_out() -> None:
    asker = ModelAsker(RuleModel(leaning, "leaning"))
    debiaser = method_named("none").fit(asker, [])
    honest, claimed = (
        answer_listings(debiaser, KNOWN, "auto", asker.alphabet, 0, invariant=claim).scores() for claim in (False, True)
    )
    assert measured(claimed).estimates["pbm"].value == measured(honest).estimates["pbm"].value > 0.04
    voter = method_named("vote").fit(asker, [])
    full, short = (
        answer_listings(voter, KNOWN, "auto", asker.alphabet, 0, invariant=claim).scores() for claim in (False, True)
    )
    for a, b in zip(full.blocks, short.blocks, strict=True):
        np.testing.assert_allclose(a.probs, b.probs, atol=1e-12)
