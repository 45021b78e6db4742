"""The study of judges: numbers of real logs, planted habits, models asked, several judges."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.chatting import RuleChat
from tests.command_line import unslant as command_line
from tests.first_screens import said
from tests.studies.planted_judges import HABITS, STRENGTHS, Habit, judged, truth
from unslant.errors import InputError
from unslant.metrics import Estimate
from unslant.questions import load_questions
from unslant.responses import Responses
from unslant.studies.judge.measures import abstention
from unslant.studies.judge.result import JudgeComparison, JudgeResult
from unslant.studies.judge.study import judge, load_pairs
from unslant.studies.judge.verdicts import Verdicts


def named(result: JudgeResult) -> dict[str, str]:
    """Habits that are shown, and which way."""
    return {one.name: one.verdict.kind for one in result.habits if one.verdict.differs}


def covered(result: JudgeResult, rates: Mapping[str, float]) -> list[bool]:
    return [not one["corrected"].excludes(rates[one.system]) for one in result.systems]


@pytest.mark.thorough
def test_claude_3_haiku(shared_data: Path) -> None:
    result = judge(log=shared_data / "judges" / "judgebench_claude-3-haiku.jsonl.gz")
    assert result.places["consistency"].value == 0.5
    assert result.places["consistency"].n == 270
    assert result.rights["right_both"].value == pytest.approx(38 / 270)
    assert dict(result.changes) == {
        "same verdict": 135, "winner follows the place": 44, "to or from a tie": 78, "no decision in an order": 13
    }  # fmt: skip
    assert result.places["first"].value == pytest.approx(212 / 335)
    assert result.places["reading"].value >= 0.99
    assert sum(result.undecided.values()) == 13
    assert named(result) == {"place": "above"}
    official = _judge_bench_score(result)
    assert result.rights["right_voted"].value == pytest.approx(official)
    assert "changes 0.50 (0.44 to 0.56) of its verdicts on 270 pairs" in result.headline


@pytest.mark.thorough
def test_every_prompt_is_counted_and_those_from_the_store_are_said_to_be(tmp_path: Path) -> None:
    """Pairs about questions of two options are worded as an audit words these, so the store may know them already."""
    alone = command_line("study", "judge", "--store", tmp_path / "alone.db").out
    command_line("audit", "--store", tmp_path / "shared.db", "-q")
    path = tmp_path / "judge.json"
    after = command_line("study", "judge", "--store", tmp_path / "shared.db", "--json", path).out
    assert re.search(r"800 prompts in \S+ s, 1\.1 times an ordinary run\.", alone)
    assert re.search(r"800 prompts \(80 from the store\) in \S+ s\.", after)
    cost = json.loads(path.read_text("utf-8"))["cost"]
    assert (cost["prompts"], cost["reused"]) == (720, 80)


def _judge_bench_score(result: JudgeResult) -> float:
    """JudgeBench's own: pairs with more right than wrong decisions over both orders."""
    net: dict[str, int] = {}
    for row in result.responses.rows():
        clear = row.chosen if row.chosen and len(row.chosen) == 1 else frozenset()
        net[row.question_id] = net.get(row.question_id, 0) + (bool(clear) and (1 if clear == row.answers else -1))
    return sum(value > 0 for value in net.values()) / len(net)


def test_a_reward_model_in_a_log(shared_data: Path) -> None:
    result = judge(log=shared_data / "judges" / "judgebench_skywork-reward-8b.jsonl.gz")
    assert result.places["consistency"].value == pytest.approx(349 / 350)
    assert named(result) == {}
    assert [one.verdict.kind for one in result.habits if one.name == "place"] == ["equal"]
    assert dict(result.misread) == {"scores": 2}  # equal scores in both orders, which the log calls a win of the second


def test_planted_habits_are_named(subtests: pytest.Subtests) -> None:
    expected = {"place": {"place"}, "length": {"length"}, "both": {"place", "length"}, "ties": {"ties"}}
    for name, habit in HABITS.items():
        with subtests.test(name):
            result = JudgeResult.of(judged(habit, seed=2))
            assert set(named(result)) == expected.get(name, set())
            assert all(covered(result, truth(habit)))


def test_a_ranking_that_a_habit_turned_round_is_turned_back() -> None:
    by_place = JudgeResult.of(judged(Habit(place=2.0), seed=1, weak_first=True))
    by_length = JudgeResult.of(judged(Habit(length=3.0), seed=1, spread=0.4))
    best_first = list(STRENGTHS)
    published = [one.system for one in sorted(by_place.systems, key=lambda one: one.rank_published)]
    assert published == best_first[::-1]
    assert [one.system for one in by_place.systems] == best_first
    assert "turned round" in {one.change for one in by_place.matches}
    assert min(by_length.systems, key=lambda one: one.rank_published).system == "dune"
    assert by_length.systems[0].system == "amber"


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("worlds", [150, pytest.param(300, marks=pytest.mark.slow)])
def test_many_worlds_of_each_habit(worlds: int, subtests: pytest.Subtests) -> None:
    for name, habit in HABITS.items():
        results = [JudgeResult.of(judged(habit, seed=1000 + seed)) for seed in range(worlds)]
        own = {"place": habit.place > 0, "length": habit.length > 0, "ties": habit.tie != habit.tie_swapped}
        with subtests.test(name):
            assert np.mean([one for result in results for one in covered(result, truth(habit))]) > 0.925
            for kind, planted in own.items():
                share = np.mean([kind in named(result) for result in results])
                assert share > 0.95 if planted else share < 0.05


def test_verdicts_that_only_follow_the_place_rank_nobody() -> None:
    result = JudgeResult.of(judged(Habit(place=50.0), seed=0, pairs=60))
    assert result.systems == ()
    assert result.places["moved"].value == 1
    assert "No win rates" in " ".join(result.page().notes)


def test_a_system_that_always_comes_first_is_not_ranked() -> None:
    found = judged(HABITS["place"], seed=0)
    texts = {question.id: question.authors for question in found.questions}
    two = {"amber", "birch"}
    rows = [
        row
        for row in found.rows()
        if set(texts[row.question_id]) == two and texts[row.question_id][row.contents[0]] == "amber"
    ]
    kept = Responses(Responses.from_rows(rows).table, found.run, found.questions)
    assert len(rows) == 60
    assert JudgeResult.of(kept).systems == ()
    assert "No win rates" in " ".join(JudgeResult.of(kept).page().notes)


def test_a_system_that_always_wins_has_an_interval() -> None:
    result = JudgeResult.of(_always(judged(HABITS["neither"], seed=0, pairs=120)))
    best = result.systems[0]
    assert best.system == "amber"
    assert best["corrected"].low < 0.99 < best["corrected"].high


def _always(responses: Responses) -> Responses:
    """The same pages, on which amber wins whenever it is there."""
    texts = {question.id: question for question in responses.questions}
    rows = responses.rows()
    for row in rows:
        authors = texts[row.question_id].authors
        if "amber" in authors:
            object.__setattr__(row, "chosen", frozenset({authors.index("amber")}))
    return Responses(Responses.from_rows(rows).table, responses.run, responses.questions)


@pytest.mark.thorough
def test_the_default_has_something_to_show(tmp_path: Path) -> None:
    out, html, responses = tmp_path / "o.json", tmp_path / "o.html", tmp_path / "o.parquet"
    ran = command_line(
        "study", "judge", "--limit", 160, "--no-store", "--json", out, "--html", html, "--responses", responses
    )
    assert ran.code == 0, ran.err
    found = json.loads(out.read_text())
    assert len(found["headline"].split()) <= 30
    assert {one["name"]: one["shown"] for one in found["habits"]}["place"] == "above"
    assert found["systems"][0]["system"] == "careful"
    assert found["cost"]["ordinary_runs"] < 1.3
    assert {one["way"] for one in found["corrected_verdicts"]} > {"vote over both orders"}
    assert "Which system wins?" in html.read_text("utf-8")
    again = command_line("study", "judge", "--log", responses)
    assert found["headline"] in " ".join(again.out.split())


RECORDS = [{"prompt": f"Is {k} even?", "chosen": "yes", "rejected": "no, it is not"} for k in range(0, 40, 2)]


def test_a_model_in_words_is_read_as_a_judge() -> None:
    chat = RuleChat(
        lambda stem, *_: {"0": "Both are equally good.", "2": "Hm."}.get(stem[-7], "The first answer wins.")
    )
    result = judge(chat, RECORDS)
    assert "Which answer is better: A or B?" in chat.asked[0]
    assert result.places["moved"].value == pytest.approx(1.0, abs=0.25)
    assert result.verdicts.tied.sum() == 8  # two orders of the questions about 0, 10, 20 and 30
    assert result.places["undecided"].value == pytest.approx(0.2)
    assert result.places["ties"].value == pytest.approx(8 / 32)  # of the decisions that there are
    reasoned = RuleChat(lambda *_: "One is right.\n\nVerdict: B")
    assert judge(reasoned, RECORDS, reasoning=True).places["first"].value == 0
    assert "Compare the answers step by step" in reasoned.asked[0]


def test_pairs_are_read_from_files(tmp_path: Path) -> None:
    asked = judge("fair", RECORDS, template="plain")
    assert {question.answers for question in asked.responses.questions} == {frozenset({0}), frozenset({1})}
    pairs = tmp_path / "pairs.jsonl"
    for record, message in (
        ({"prompt": "Why?", "chosen": "x"}, 'line 1, field "rejected": is missing'),
        ({"prompt": "Why?", "response_A": "x", "response_B": "y", "label": "neither of us"}, "is not a verdict"),
        ({"response_A": "x", "response_B": "y"}, "--fields question=COLUMN"),
    ):
        pairs.write_text(json.dumps(record))
        refused = command_line("study", "judge", "fair", pairs)
        assert refused.code == 2
        assert message in refused.err, refused.err
    pairs.write_text("\n".join(json.dumps(one) for one in [*RECORDS, {"prompt": "Why?"}]))
    kept = judge("fair", pairs, skip_bad=True, template="plain")
    assert "1 of 21 records left out" in said(kept)


def test_the_winner_of_a_vote_is_the_label_of_a_pair(tmp_path: Path) -> None:
    """Those of Kaggle's Arena data were read without their labels, and texts as lists in JSON."""
    path = tmp_path / "votes.csv"
    path.write_text(
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
        + "".join(f'{k},m1,m2,"[""{k}?""]","[""left""]","[""right""]",{k % 2},{1 - k % 2},0\n' for k in range(4))
        + '4,m1,m2,"[""4?""]","[""left""]","[""right""]",0,0,1\n'
    )
    pairs = load_pairs(path, {})
    right = [{pair.options[i] for i in pair.answers} for pair in pairs]
    assert right == [{"right"}, {"left"}, {"right"}, {"left"}, {"left", "right"}]
    assert [pair.stem for pair in pairs] == [f"{k}?" for k in range(5)]
    assert all(
        {**dict(zip(pair.options, pair.authors, strict=True))} == {"left": "m1", "right": "m2"} for pair in pairs
    )
    named = {"prompt": "Why?", "response_a": "left", "response_b": "right", "model_a": "m1", "model_b": "m2"}
    (pair,) = load_pairs([named | {"winner": "model_b"}], {})
    assert {pair.options[i] for i in pair.answers} == {"right"}
    with pytest.raises(InputError, match=r"item 2.*is a text, not a JSON object"):
        load_pairs([named | {"winner": "model_b"}, "nothing"], {})
    (pair,) = load_pairs([named | {"verdict": "A"}], {})  # of a judge
    assert not pair.answers


def test_lists_of_several_answers() -> None:
    records = [
        {"id": str(k), "question": f"{k}?", "responses": ["a", "b", "c"], "label": ["A", "B"]} for k in range(12)
    ]
    result = judge("fair", records, template="plain")
    assert len(result.responses) == 36  # every rotation
    assert result.places["consistency"].n == 12
    assert "reordered" in result.headline


def test_a_reward_model_is_blind_to_the_order(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from unslant.reference import reference_path

    source = reference_path("fair")
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1, pad_token_id=0)
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(source).save_pretrained(tmp_path)
    result = judge(f"reward:{tmp_path}", limit=30)
    assert result.places["consistency"].value == 1
    assert result.places["moved"].value == 0
    refused = command_line("study", "judge", "reward:fair", "--limit", 5, "--no-store")
    assert (refused.code, "score.weight" in refused.err) == (2, True), refused.err


def test_several_judges(shared_data: Path, tmp_path: Path) -> None:
    habits = {"one": HABITS["neither"], "two": HABITS["place"]}
    files = []
    for name, habit in habits.items():
        found = judged(habit, seed=4, pairs=120)
        path = tmp_path / f"{name}.parquet"
        Responses(found.table, _named(found, name), found.questions).to_parquet(path)
        files.append(path)
    result = judge(log=files)
    assert isinstance(result, JudgeComparison)
    assert result.alpha["alpha"].defined
    assert result.agreement[0]["share"].n > 60
    assert "two" in said(result)
    assert set(result.to_dict()["results"][0]["places"]) >= {"consistency", "first"}
    result.to_html(tmp_path / "o.html")


def _named(responses: Responses, name: str):
    from dataclasses import replace

    return replace(responses.run, model=name)


def test_abstention_keeps_the_error_it_promises() -> None:
    v = _labelled(400, wrong_where_unsure=0.5)
    found = abstention(v, 0.1)
    assert found is not None
    assert found.margin == 1.0
    assert found.kept.value == pytest.approx(0.5, abs=0.1)
    assert found.wrong.value < 0.1
    for wrong in (0.0, 0.5):  # 20 pairs without an error do not show an error below 0.1, nor that no margin has it
        nothing = abstention(_labelled(20, wrong), 0.1)
        assert nothing is not None
        assert nothing.margin is None
        assert nothing.wrong.note == "no margin is shown to keep the error that low"


def _labelled(pairs: int, wrong_where_unsure: float) -> Verdicts:
    """Half of the pairs have one verdict in both orders, always right; the others one verdict and a tie."""
    from unslant.presentations import present
    from unslant.questions import Question
    from unslant.responses import Response

    rng = np.random.default_rng(0)
    rows = []
    for k in range(pairs):
        question = Question(f"q{k}", f"{k}?", ("a", "b"), frozenset({0}))
        sure = k % 2 == 0
        best = 0 if sure or rng.random() > wrong_where_unsure else 1
        for order, chosen in (((0, 1), {best}), ((1, 0), {best} if sure else {0, 1})):
            rows.append(Response.of(question, present(question, order), "generate", chosen=frozenset(chosen)))
    return Verdicts.of(Responses.from_rows(rows))


def test_intervals_have_an_n() -> None:
    result = JudgeResult.of(judged(HABITS["both"], seed=3, pairs=60))
    for numbers in (result.places, result.lengths, result.odds):
        for value in numbers.values():
            assert isinstance(value, Estimate)
            assert value.n or value.note


def test_the_pairs_that_ship_are_two_systems_on_every_question() -> None:
    pairs = load_pairs("embedded-pairs", {}).questions
    assert [pair.id for pair in pairs] == [question.id for question in load_questions("embedded")]
    assert {(len(pair.options), len(pair.answers), len(set(pair.authors))) for pair in pairs} == {(2, 1, 2)}
    assert {author for pair in pairs for author in pair.authors} == {"careful", "average", "careless"}


def test_pages_that_the_log_decides_otherwise_are_counted_with_the_rule_that_read_them(tmp_path: Path) -> None:
    pages = [("A", "My verdict: [[A]]"), ("B", "My verdict: [[A]]"), (None, "[[A]]"), (None, "[[A=B]]"), (None, None)]
    rows = [
        {"id": f"q{k}", "question": "Which?", "response_A": f"x{k}", "response_B": f"y{k}", "order": "AB",
         "decision": decision, "reply": reply}
        for k, (decision, reply) in enumerate(pages)
    ]  # fmt: skip
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    result = judge(log=path)
    notes = result.page().notes
    assert "1 page has another decision in the log; unslant's own reader: 1 by brackets." in notes
    assert "2 pages have no decision in the log; unslant's own reader: 2 by brackets." in notes
    assert (result.places["reading"].value, result.places["reading"].n) == (0.5, 2)
    assert (result.places["undecided"].value, result.rights["right_both"].note) == (0.6, "needs labels")
