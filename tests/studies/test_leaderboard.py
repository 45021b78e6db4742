"""The leaderboard, on models whose rule is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unslant
from tests.chatting import RuleChat
from tests.command_line import unslant as command_line
from tests.fakes import RuleModel
from tests.reports.synthetic import synthetic_audit, synthetic_questions
from tests.studies.label_guessers import QUESTIONS, gold, when_unsure
from tests.studies.talkers import takes_a
from unslant import InputError, Leaderboard, ModelError, QuestionSet
from unslant.auditing.result import AuditResult
from unslant.metrics import paired_difference
from unslant.studies.leaderboard.ranking import QuestionPool, standings

pytestmark = pytest.mark.thorough

OTHERS = [replace(question, id=f"o{question.id}") for question in QUESTIONS[:20]]
SETS = [QuestionSet.of(QUESTIONS, "one"), QuestionSet.of(OTHERS, "two")]


def first_taker() -> RuleModel:
    """Knows nothing, and takes the label of most answers of the sets."""
    return RuleModel(when_unsure({"A": 6.0}).rule, "takes-a")


def certain() -> RuleModel:
    return RuleModel(lambda stem, labels, texts: [9.0 if _right(stem, text, texts) else 1.0 for text in texts], "knows")


def _right(stem: str, text: str, texts: list[str]) -> bool:
    return stem.split()[-1].rstrip("?").isdecimal() and text == gold(stem, texts)


def half() -> RuleModel:
    """Knows what ``takes-a`` knows, and spreads the rest evenly."""
    return RuleModel(when_unsure({}).rule, "half")


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    return unslant.leaderboard([half(), first_taker(), certain()], SETS)


def test_models_are_ranked_by_the_mean_over_orders_averaged_over_sets(board: Leaderboard) -> None:
    assert board.models[0].model == "knows"
    assert board.models[0].rank == board.models[0].published_rank == 1
    for one in board.models:
        own = [entry for entry in board.entries if entry.model == one.model]
        assert {entry.questions for entry in own} == {"one", "two"}
        mean = sum(entry["expected_accuracy"].value for entry in own) / 2  # sets of any size count the same
        assert one["expected_accuracy"].value == pytest.approx(mean)
        assert one["accuracy"].value == pytest.approx(sum(entry["accuracy"].value for entry in own) / 2)
        assert one["expected_accuracy"].low <= mean <= one["expected_accuracy"].high
        assert one.ranks is not None
        assert one.ranks[0] <= (one.rank or 0) <= one.ranks[1]
        assert one.change == (one.published_rank or 0) - (one.rank or 0)
    assert dict(board.sets) == {"one": 48, "two": 20}


def test_models_differ_by_paired_differences_corrected_for_all_pairs(board: Leaderboard) -> None:
    assert len(board.pairs) == 3
    first, second = board.neighbours
    assert (first.higher, first.differ) == ("knows", True)
    assert not second.differ
    assert first.difference.low > 0
    assert second.p >= first.p
    assert {one.model: one.ranks for one in board.models} == {"knows": (1, 1), "half": (2, 3), "takes-a": (2, 3)}
    alone = unslant.leaderboard([half(), certain()], SETS[0])
    (pair,) = alone.pairs
    paired = paired_difference(alone.audits[1].scores, alone.audits[0].scores, "expected_accuracy").difference
    ours, theirs = ((one.value, one.low, one.high) for one in (pair.difference, paired))
    assert ours == pytest.approx(theirs)  # of one pair nothing is corrected
    assert pair.difference.n == paired.n
    same = next(p for p in board.pairs if {p.higher, p.lower} == {"knows", "half"})
    assert same.difference.high - same.difference.low > 0


def test_the_same_model_twice_shares_its_rank_and_does_not_differ() -> None:
    found = unslant.leaderboard([first_taker(), RuleModel(first_taker().rule, "again")], SETS[0])
    assert [one.rank for one in found.models] == [1, 1]
    assert [one.ranks for one in found.models] == [(1, 2), (1, 2)]
    (pair,) = found.pairs
    assert (pair.difference.value, pair.p, pair.differ) == (0.0, 1.0, False)
    assert pair.difference.low < 0 < pair.difference.high
    assert "takes-a and again cannot be ranked on 48 questions" in found.headline
    assert len(found.headline.split()) <= 30


def test_ranking_by_the_vote_leaves_the_habit_out() -> None:
    """Both know the same; one takes A where it hesitates. The vote is the same, and the habit has a price."""

    def knows(pull: float) -> RuleModel:
        def rule(stem: str, labels: list[str], texts: list[str]) -> list[float]:
            return [
                (3.0 if _right(stem, text, texts) else 1.0) * (pull if label == "A" else 1.0)
                for label, text in zip(labels, texts, strict=True)
            ]

        return RuleModel(rule, f"pull-{pull:g}")

    models = [knows(5.0), knows(1.0)]
    mean, vote = (unslant.leaderboard(models, SETS[0], rank_by=by) for by in ("mean", "vote"))
    assert [one.model for one in mean.models] == ["pull-1", "pull-5"]
    assert [one.mean_rank for one in vote.models] == sorted([1, 2], reverse=vote.models[0].model == "pull-5")
    by_name = {one.model: one for one in mean.models}
    for one in mean.models:
        assert one["habit_price"].value == pytest.approx(one["vote_accuracy"].value - one["expected_accuracy"].value)
    assert by_name["pull-5"]["habit_price"].low > 0
    assert by_name["pull-1"]["habit_price"].value == 0
    assert any("changes pull-5 by" in line and "pull-1" not in line for line in mean.page().lines)
    assert vote.headline.count("voted over option orders") == 1
    with pytest.raises(InputError, match="use one of mean, vote"):
        Leaderboard.of(mean.audits, rank_by="median")


def test_scores_that_a_regression_extends_to_all_orders_stay_shares() -> None:
    """Of single questions they can be above 1, and so were the means of few questions, up to 1.76."""
    extended = np.array([[1.3, 0.2], [0.8, -0.1], [1.2, 0.4]])
    pool = QuestionPool(["a", "b"], {"expected_accuracy": extended}, "expected_accuracy")
    for one in pool.means("expected_accuracy"):
        assert 0 <= one.low < one.high <= 1
        assert one.low <= one.value <= one.high


def test_the_price_of_a_habit_has_room_for_luck_that_went_one_way() -> None:
    """Of ten questions, the vote missed all five that the model does not know, each by 0.25."""
    lost = np.repeat([0.25, 0.0], 5)[:, None]
    values = {"expected_accuracy": 1 - 4 * lost + lost, "accuracy": 1 - 4 * lost, "vote_accuracy": 1 - 4 * lost}
    pool = QuestionPool(["a"], values | {"pbm": lost}, "expected_accuracy")
    price = standings(pool, ())[0]["habit_price"]
    assert price.value == pytest.approx(-0.125)
    assert price.high > 0


def test_files_of_one_set_are_ranked_under_any_name(tmp_path: Path) -> None:
    """A file for each model, as harnesses write: the set is named by neither."""
    logs = []
    for model, sure in (("a", 0.9), ("b", 0.3)):
        rows = [
            {"id": f"{i}", "model": model, "question": f"What is {i}?", "options": [f"{i} {x}" for x in shown],
             "answer": "AB"[shown.index("yes")], "probs": [sure if x == "yes" else 1 - sure for x in shown]}
            for i in range(12) for shown in (["yes", "no"], ["no", "yes"])
        ]  # fmt: skip
        logs.append(tmp_path / f"{model}.jsonl")
        logs[-1].write_text("".join(json.dumps(row) + "\n" for row in rows[2 * (model == "b") :]))  # b lost one
    found = unslant.leaderboard(log=logs)
    assert dict(found.sets) == {"a and b": 12}
    assert found.unpaired == {"b": 1}
    assert [one.model for one in found.models] == ["a", "b"]
    assert {entry.questions for entry in found.entries} == {"a and b"}
    assert found.page().questions is not None
    text = logs[1].read_text().replace("What is", "Where is").replace(" yes", " here").replace(" no", " there")
    logs[1].write_text(text)  # the same numbers for other questions
    with pytest.raises(InputError, match="a has a; b has b"):
        unslant.leaderboard(log=logs)


def test_luck_of_the_order_moves_the_published_rank() -> None:
    """All right options first: taking A looks perfect, and is not."""
    right = [gold(question.stem, list(question.options)) for question in QUESTIONS]
    listed = [
        replace(q, options=(first, *(text for text in q.options if text != first)), answers=frozenset({0}))
        for q, first in zip(QUESTIONS, right, strict=True)
    ]

    def mostly(stem: str, labels: list[str], texts: list[str]) -> list[float]:
        number = stem.split()[-1].rstrip("?")
        sure = number.isdecimal() and int(number) % 4 != 3
        return [9.0 if sure and text == gold(stem, sorted(texts)) else 1.0 + 2 * (label == "D") for label, text in
                zip(labels, texts, strict=True)]  # fmt: skip

    found = unslant.leaderboard([first_taker(), RuleModel(mostly, "mostly")], QuestionSet.of(listed, "listed"))
    ranks = {one.model: (one.published_rank, one.rank, one.change) for one in found.models}
    assert ranks == {"takes-a": (1, 2, -1), "mostly": (2, 1, 1)}
    assert {one.model: one.changes for one in found.models} == {"mostly": (1, 1), "takes-a": (-1, -1)}
    moves = "against the published order mostly gains at least 1 place and takes-a loses at least 1 place."
    assert any(line.endswith(moves) for line in found.page().lines)
    few = unslant.leaderboard([first_taker(), RuleModel(mostly, "mostly")], QuestionSet.of(listed[:3], "few"))
    assert [one.changes for one in few.models] == [(-1, 1)] * 2  # three questions move nobody
    assert "cannot be ranked on 3 questions" in few.headline
    assert not any("gains" in line or "by" in line for line in few.page().lines)
    assert {chart.id for panel in found.page().sections for chart in panel.charts} >= {"leaderboard-ranks"}


def test_pbm_goes_with_accuracy_only_over_three_points_and_one_way_to_ask(board: Leaderboard) -> None:
    by_name = {one.over: one.pbm_accuracy for one in board.pbm_accuracy}
    assert by_name["sets and models"]["pearson"].n == 6
    assert by_name["sets and models"]["pearson"].defined
    assert math.isnan(by_name["sets, knows"]["pearson"].value)
    assert by_name["sets, knows"]["pearson"].note == "needs 3 points or more, there are 2"
    mixed = unslant.leaderboard([half(), RuleChat(takes_a)], [QUESTIONS[:12]])
    assert [(one.elicitation, one.pbm_accuracy["pearson"].n) for one in mixed.pbm_accuracy] == [
        ("labels", 1),
        ("generate", 1),
    ]
    talker = [way for way in mixed.ways if way.model == "talker"]
    assert [way.tokens for way in talker] == [None, 12.0 * len(mixed.audits[1].responses)]
    assert {entry.model: entry.elicitation for entry in mixed.entries} == {"half": "labels", "talker": "generate"}


def test_questions_without_an_answer_count_for_no_model_and_are_reported(board: Leaderboard) -> None:
    half_audit, _, _, _, sure, _ = board.audits
    lost = unslant.Responses.from_rows(
        [
            replace(row, status="error", logprobs=None) if row.question_id in ("q1", "q3") else row
            for row in half_audit.responses.rows()
        ],
        half_audit.run,
    )
    found = Leaderboard.of([AuditResult.of(lost), sure])
    assert found.unpaired == {"half": 2}
    assert {one["expected_accuracy"].n for one in found.models} == {46}
    assert any("half has no score over orders for 2 of 48 questions" in note for note in found.page().caveats)
    assert "half has no score over orders for 2 of 48 questions" in found.summary()  # before any number


def test_one_order_gives_no_rank_and_says_why() -> None:
    found = unslant.leaderboard([half(), first_taker()], SETS[0], orders="given")
    assert [(one.rank, one.ranks) for one in found.models] == [(None, None)] * 2
    assert found.pairs == found.neighbours == ()
    assert "No model can be ranked" in found.headline
    assert any("one order only" in note for note in found.page().notes)
    assert "one order only" in found.summary()


def test_what_cannot_be_ranked_is_an_error() -> None:
    with pytest.raises(InputError, match="no models"):
        unslant.leaderboard([], SETS[0])
    with pytest.raises(InputError, match="no question sets: give one or more"):
        unslant.leaderboard([half()], [])
    with pytest.raises(InputError, match="two have the same name"):
        unslant.leaderboard([half(), half()], SETS[0])
    with pytest.raises(InputError, match="two question sets have the same name"):
        unslant.leaderboard([half()], [SETS[0], SETS[0]])
    found = unslant.leaderboard([half()], SETS)
    with pytest.raises(InputError, match="half on one is given twice"):
        Leaderboard.of([found.audits[0], found.audits[0]])
    other = unslant.leaderboard([certain()], SETS[1])
    with pytest.raises(InputError, match="no question set is common to all of half, knows"):
        Leaderboard.of([found.audits[0], other.audits[0]])
    assert Leaderboard.of([*found.audits, other.audits[0]]).left_out == ("one",)


def test_a_model_that_cannot_be_opened_stops_before_any_work(tmp_path: Path) -> None:
    asked = half()
    with pytest.raises(ModelError, match="no such model"):
        unslant.leaderboard([asked, str(tmp_path / "absent")], SETS[0])
    with pytest.raises(InputError, match="repeats applies only to generated replies"):
        unslant.leaderboard([RuleChat(takes_a), asked], SETS[0], repeats=2)
    assert not asked.seen


def test_the_command_ranks_models_and_recorded_audits_alike(tmp_path: Path) -> None:
    places = []
    for found in SETS:
        places += ["--sets", tmp_path / f"{found.name}.jsonl"]
        lines = [{"id": q.id, "question": q.stem, "options": list(q.options), "answer": min(q.answers)} for q in found]
        places[-1].write_text("".join(json.dumps(line) + "\n" for line in lines[:8]))
    models = ("-m", "fair", "-m", "prefers-a")
    out = tmp_path / "out"
    ran = command_line("leaderboard", *models, *places, "--out", out, "--store", tmp_path / "s.db", "--quiet")
    assert (ran.code, ran.out) == (0, ""), ran.err
    written = json.loads((out / "numbers.json").read_text())
    assert written["models"][0]["rank"] == 1
    assert {way["way"]: way["measured"] for way in written["ways"]} == {
        "one order": False,
        "all orders, each prompt alone": False,
        "all orders, question-context cache": False,
        "all orders, prefix tree": True,
    }
    again = command_line(
        "leaderboard", *models, *places, "--orders=cyclic", "--store", tmp_path / "s.db", "--json", tmp_path / "s.json"
    )
    # what the few prompts that were not in the store took is not the cost of all orders
    ways = json.loads((tmp_path / "s.json").read_text())["ways"]
    assert {(way["tokens"], way["seconds"]) for way in ways} == {(None, None)}, again.err
    logs = sorted(out.glob("responses-*.parquet"))
    assert len(logs) == 4
    again = command_line("leaderboard", "--log", *logs, "--json", tmp_path / "again.json")
    assert again.code == 0, again.err
    assert "cannot be ranked" in again.out
    recorded = json.loads((tmp_path / "again.json").read_text())
    assert {one["model"]: one for one in recorded["models"]} == {one["model"]: one for one in written["models"]}
    refused = command_line("leaderboard", "-m", "fair", "-m", tmp_path / "absent", *places, "--no-store")
    assert (refused.code, refused.out) == (2, "")
    assert "no such model" in refused.err
    assert "scoring" not in refused.err
    named = ("--model", "fair", "--model", "prefers-a")  # as recorded, whichever name was typed
    assert written["provenance"]["command"][:9] == ["leaderboard", *named, *map(str, places)]
    rerun = command_line("rerun", out / "numbers.json", "--trust", "--json", tmp_path / "rerun.json", "--quiet")
    assert rerun.code == 0, rerun.err
    assert json.loads((tmp_path / "rerun.json").read_text())["models"] == written["models"]


def test_models_in_other_numbers_of_orders_are_named_in_a_note() -> None:
    questions = synthetic_questions(40)
    every, few = (synthetic_audit(questions, seed=seed, model=name) for seed, name in enumerate(("every", "few")))
    rotations = [[*range(i, 4), *range(i)] for i in range(4)]
    kept = [contents in rotations for contents in few.responses.table["contents"].to_pylist()]
    less = AuditResult.of(replace(few.responses, table=few.responses.table.filter(kept)))
    note = "PBM and the vote depend on the number of orders, which differs: 4 of few, 24 of every."
    assert note in Leaderboard.of([every, less]).page().notes
    assert not any("number of orders" in one for one in Leaderboard.of([every, few]).page().notes)
