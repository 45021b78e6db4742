"""The leaderboard of logs that differ in questions, orders and names."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

import unslant
from tests.first_screens import said
from unslant import InputError, QuestionSet
from unslant.metrics import Estimate, Numbers
from unslant.questions import question
from unslant.responses.provenance import ChatCost, Cost
from unslant.studies.leaderboard.panels import _headline, _moves, _prices
from unslant.studies.leaderboard.ranking import Pair, QuestionPool, Standing
from unslant.studies.leaderboard.study import _ways

Log = list[dict[str, Any]]


def log(model: str, numbers: Sequence[int], share: float, *, orders: int = 4, about: str = "Question") -> Log:
    """Answers of a model that knows this share of the questions; another ``about`` makes others of the same ids."""
    rows = []
    for i in numbers:
        knows = random.Random(f"{model}-{i}").random() < share
        for first in range(orders):
            shown = [(first + j) % 4 for j in range(4)]
            place = shown.index(i % 4)
            row: dict[str, Any] = {"id": f"q{i}", "question": f"{about} number {i}?", "model": model}
            row |= {"options": [f"{about}, {i}, {j}" for j in shown], "answer": "ABCD"[place]}
            row |= {"chosen": "ABCD"[place if knows else (place + 1) % 4]} | ({"order": shown} if orders > 1 else {})
            rows.append(row)
    return rows


def audit(name: str, rows: Log) -> unslant.AuditResult:
    """As of a file of this name."""
    found = unslant.audit(log=rows)
    assert isinstance(found, unslant.AuditResult)
    run = replace(found.run, questions=name)
    return unslant.AuditResult.of(unslant.Responses(found.responses.table, run, found.responses.questions))


def test_one_model_twice_on_the_same_questions_is_an_error_that_names_both_files() -> None:
    once, again = audit("x", log("alpha", range(20), 0.5)), audit("xb", log("alpha", range(1, 20), 0.9))
    other = audit("y", log("beta", range(20), 0.9))
    for files in ([once, again], [once, other, again], [other, again, once]):
        with pytest.raises(InputError, match=r"alpha has the same questions in xb? and xb?; give each model and set"):
            unslant.Leaderboard.of(files)
    further = audit("z", log("alpha", range(100, 120), 0.5))
    assert unslant.Leaderboard.of([once, further, other]).left_out == ("z",)
    two = [QuestionSet.of(once.responses.questions, name) for name in ("one", "copy")]
    with pytest.raises(InputError, match="one and copy have the same questions; give each set once"):
        unslant.leaderboard(["fair"], two)


def test_ids_alone_do_not_make_one_set_of_two() -> None:
    def bare(rows: Log) -> Log:
        """Without texts: number 3 of two data sets is not one question."""
        kept = ("id", "answer", "chosen", "order", "model")
        return [{key: row[key] for key in kept} | {"labels": list("ABCD")} for row in rows]

    logs = [audit(name, bare(log(model, range(20), 0.5))) for model in ("alpha", "beta") for name in ("one", "two")]
    assert dict(unslant.Leaderboard.of(logs).sets) == {"one": 20, "two": 20}


def test_questions_of_one_id_are_told_apart_though_the_first_run_has_neither() -> None:
    beta, gamma = log("beta", range(20), 0.9), log("gamma", range(20), 0.3, about="Riddle")
    for first in ([], log("alpha", range(50, 70), 0.9, orders=1)):
        found = unslant.leaderboard(log=[*first, *beta, *gamma])
        assert [one.rank for one in found.models] == [None] * len(found.models)
        assert found.pairs == ()
    renamed = [row | {"id": f"r{row['id']}"} for row in log("delta", range(20), 0.5, about="Riddle")]
    apart = unslant.leaderboard(log=[*log("alpha", range(20), 0.9, orders=1), *gamma, *renamed])
    assert {one.model: one["expected_accuracy"].n for one in apart.models if one.rank} == {"gamma": 20, "delta": 20}


def test_a_text_that_many_models_were_asked_is_compared_in_one_form_written_once() -> None:
    about = "Compared once"  # texts that no other test has
    logs = [row for m in range(6) for row in log(f"m{m}", range(30), 0.5, orders=1, about=about)]
    before = question.folded.cache_info().misses
    assert len(unslant.leaderboard(log=logs).audits) == 6
    assert question.folded.cache_info().misses - before <= 30


def without_given(rows: Log) -> Log:
    """Never shown in the published order."""
    return [row for row in rows if row["order"] != [0, 1, 2, 3]]


@pytest.mark.parametrize("rank_by", ["mean", "vote"])
def test_a_model_of_one_ranking_alone_moves_nobody_in_the_other(rank_by: Literal["mean", "vote"]) -> None:
    others = [*log("beta", range(40), 0.7), *log("gamma", range(40), 0.2)]
    for best in (log("alpha", range(40), 1.0, orders=1), without_given(log("alpha", range(40), 1.0))):
        found = unslant.leaderboard(log=[*others, *best], rank_by=rank_by)
        by_name = {one.model: one for one in found.models}
        assert {by_name["alpha"].rank, by_name["alpha"].published_rank} == {1, None}
        assert {name: (one.change, one.changes) for name, one in by_name.items()} == {
            "alpha": (None, None), "beta": (0, (0, 0)), "gamma": (0, (0, 0)),
        }  # fmt: skip
        assert "published order" not in " ".join(found.page().lines)


def test_models_without_a_common_question_are_told_so_and_not_of_orders() -> None:
    found = unslant.leaderboard(log=[*log("alpha", range(10), 0.5), *log("beta", range(10, 20), 0.5)])
    page = found.page()
    reason = "the models with a score have no question in common"
    assert page.headline == f"No model can be ranked: {reason}"
    assert f"alpha has no rank: {reason}." in page.notes
    assert "one order" not in " ".join((*page.lines, *page.notes, found.chance.note))
    two = [audit(name, log(model, range(first, first + 10), 0.5)) for name, model, first in
           (("one", "alpha", 0), ("one", "beta", 0), ("two", "alpha", 20), ("two", "beta", 30))]  # fmt: skip
    assert unslant.Leaderboard.of(two).page().headline.endswith(f"{reason} on some set")


@pytest.mark.thorough
def test_intervals_for_other_subjects_hold_for_the_board_too() -> None:
    found = unslant.leaderboard(["fair", "prefers-a"], "embedded", limit=60, across_subjects=True)
    for one in (*found.models, *found.entries):
        assert one["expected_accuracy"].method == "Agresti-Coull over subjects"
    assert "over subjects" in found.pairs[0].difference.method


def test_subjects_are_drawn_within_their_sets() -> None:
    """Sets of which one is easy and one is hard: another board of the kind has both, too."""
    subjects = np.repeat(np.arange(20), 6)
    sets, luck = subjects // 10, np.random.default_rng(0).normal(0, 0.05, 20)[subjects]
    values = {"score": (np.where(sets == 0, 0.9, 0.3) + luck)[:, None]}
    pool = QuestionPool(["a"], values, "score", sets.tolist(), list(map(str, subjects)), across_subjects=True)
    found = pool.mean(values["score"][:, 0], (-1.0, 2.0))
    assert "over subjects, within sets" in found.method
    assert 0.03 < found.high - found.low < 0.1  # the sets alone differ by 0.6


def test_missing_replies_come_before_the_ranks_and_are_not_called_an_order_habit() -> None:
    """A model that never changes its answer, but of whose replies every third is empty."""
    patchy = log("patchy", range(60), 0.9)
    for row in patchy[::3]:
        row["chosen"] = ""
    screen = said(unslant.leaderboard(log=[*patchy, *log("whole", range(60), 0.7)]))
    assert screen.startswith("patchy: No answer in 80 of 240 replies")
    assert "A vote over orders, which cancels order habits and skips missing answers, changes patchy by +" in screen
    assert "skips missing answers" not in said(unslant.leaderboard(log=log("whole", range(60), 0.7)))


class OfModel(dict[str, Estimate]):
    """The numbers of a model by their keys."""

    model = "m"


def test_what_each_way_costs() -> None:
    """Tokens, what they save of all orders one by one, and seconds, which only the way that ran took."""
    numbers = OfModel(
        {key: Estimate(k / 10, 0.0, 1.0, 10, "made")
         for k, key in enumerate(("expected_accuracy", "accuracy", "vote_accuracy", "pbm"))}
    )  # fmt: skip

    def ways(cost: Cost, **replies: int) -> dict[str, tuple[Any, ...]]:
        audits = [SimpleNamespace(cost=cost, scores=range(10), run=SimpleNamespace(replies=ChatCost(**replies)))]
        return {one.way: (one.tokens, one.saved, one.seconds, one.measured) for one in _ways(numbers, audits)}

    engine = Cost(tokens=300, tokens_plain=2400, tokens_baqckv=800, prompts=240, seconds=3.0, tokens_ordinary=120)
    assert ways(engine) == {
        "one order": (120, None, 1.2, False),
        "all orders, each prompt alone": (2400, 0, 24, False),
        "all orders, question-context cache": (800, pytest.approx(2 / 3), 8, False),
        "all orders, prefix tree": (300, 0.875, 3, True),
    }
    assert ways(replace(engine, tokens_ordinary=0))["one order"] == (100, None, 1, False)  # by the mean of a prompt
    assert ways(replace(engine, prompts=216, reused=24)) == ways(engine)
    unknown = {"one order": (None, None, None, False), "all orders, as asked": (None, None, None, False)}
    assert ways(replace(engine, prompts=215, reused=25)) == unknown  # what is left is not the cost of all
    assert ways(Cost(tokens=500, seconds=2.0))["all orders, as asked"] == (500, None, 2, True)
    assert ways(Cost(), input_tokens=70, output_tokens=30)["all orders, as asked"] == (100, None, None, False)
    one, *others = _ways(numbers, [SimpleNamespace(cost=engine, scores=range(10))])
    assert (one.accuracy, one.pbm) == (numbers["accuracy"], numbers["pbm"])
    assert {(way.accuracy.value, way.pbm.value) for way in others} == {(numbers["vote_accuracy"].value, 0.0)}


def standing(model: str, score: float, rank: int | None, first: int = 1, last: int = 1, **more: Any) -> Standing:
    scored = Estimate.undefined("nothing was answered") if rank is None else Estimate(score, score - 0.1, score + 0.1,
                                                                                     40, "made")  # fmt: skip
    numbers = Numbers({"expected_accuracy": scored, "habit_price": more.get("price", Estimate.undefined("one order"))})
    ranks = None if rank is None else (first, last)
    return Standing(model, rank, ranks, rank, rank, rank, more.get("change"), more.get("changes"), numbers)


def pair(higher: str, lower: str, differ: bool) -> Pair:
    return Pair(higher, lower, Estimate(0.1, 0.05, 0.15, 40, "made"), 0.01 if differ else 0.5, differ, None)


A, B, C = standing("a", 0.6, 1, 1, 2), standing("b", 0.58, 2, 1, 2), standing("c", 0.3, 3, 3, 3)
SAME = standing("b", 0.6, 1, 1, 2)


@pytest.mark.parametrize(
    ("models", "differ", "headline"),
    [
        (
            [standing("a", 0.6, 1)],
            False,
            "a scores 0.60 (0.50 to 0.70) averaged over option orders; guessing gives 0.25",
        ),
        (
            [standing("a", 0.6, 1), C],
            True,
            "a ranks first of 2 models: 0.60 (0.50 to 0.70) averaged over option",
        ),
        (
            [A, B],
            False,
            "a and b cannot be ranked on 40 questions: 0.60 and 0.58 averaged over option orders",
        ),
        ([A, SAME], False, "a and b cannot be ranked on 40 questions: both 0.60 averaged over option orders"),
        (
            [A, B, C],
            True,
            "a and b may each rank first of 3 models: 0.60 and 0.58 averaged over option orders",
        ),
        ([A, B, replace(C, ranks=(1, 3))], False, "a, b and c cannot be ranked on 40 questions: 0.30 to 0.60 averaged"),
        ([A, SAME, replace(A, model="c")], False, "a, b and c cannot be ranked on 40 questions: all 0.60 averaged"),
        (
            [standing("a", 0.6, None)],
            False,
            "No model can be ranked: none has a score over several orders",
        ),
    ],
)
def test_the_headline_claims_no_more_than_the_sets_of_ranks(models: list[Any], differ: bool, headline: str) -> None:
    chance = Estimate.bare(0.25, 40, "known by design")
    result = SimpleNamespace(models=models, rank_by="mean", score="expected_accuracy", chance=chance,
                             pairs=[pair("a", "c", differ)])  # fmt: skip
    assert _headline(result).startswith(headline)


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        (
            [(1, (1, 2)), (-1, (-2, -1))],
            ["against the published order a gains at least 1 place and b loses"],
        ),
        ([(2, (2, 3)), (-1, (-2, 0))], ["against the published order a gains at least 2 places"]),
        ([(1, (0, 2)), (-1, (-2, 0))], ["2 of 2 ranks differ from the published order, none beyond chance"]),
        ([(1, (0, 2)), (0, (-1, 1))], ["1 of 2 ranks differs from the published order, none beyond chance"]),
        ([(0, (0, 0)), (None, None)], []),
    ],
)
def test_places_are_gained_only_beyond_chance(changes: list[Any], moved: list[str]) -> None:
    models = [replace(one, change=change, changes=both) for one, (change, both) in zip((A, B), changes, strict=True)]
    said_of_them = _moves(SimpleNamespace(models=models))
    assert [words.startswith(start) for words, start in zip(said_of_them, moved, strict=True)] == [True] * len(moved)


def test_what_a_vote_changes_is_said_of_the_models_where_it_is_certain() -> None:
    audits = [SimpleNamespace(metrics=SimpleNamespace(counts=SimpleNamespace(unanswered_rows=n))) for n in (0, 3)]
    price = Estimate(0.1, 0.08, 0.12, 40, "made")

    def said_with(*models: Standing, audits: Any) -> str:
        return " ".join(" ".join(_prices(SimpleNamespace(models=models, audits=audits))).split())

    start = "A vote over orders, which cancels order habits"
    assert said_with(standing("a", 0.6, 1, price=price), B, audits=audits[:1]).startswith(f"{start}, changes a by +0.1")
    assert said_with(A, B, audits=audits) == f"{start} and skips missing answers, is not shown to change any score"
    assert said_with(standing("a", 0.6, None), audits=audits) == ""
