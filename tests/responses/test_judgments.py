"""Logs of judges: each format with its verdicts, places and systems, and what is refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from unslant import study
from unslant.errors import InputError, naming_flags
from unslant.experiment.result import tables_of
from unslant.responses import Responses


def logged(path: Path, records: Any, fields: dict[str, str] | None = None) -> list[Responses]:
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, records)) if lines else json.dumps(records))
    return tables_of("judge", path, fields)


def chosen(table: Responses) -> list[tuple[tuple[int, ...], set[int] | None]]:
    """Order shown, and answers of the file that are preferred."""
    return [(row.contents, None if row.chosen is None else set(row.chosen)) for row in table.rows()]


def test_judge_bench_has_the_second_judgement_swapped(tmp_path: Path) -> None:
    said = {"judge_model": "critic", "prompt": "", "response": "[[A>B]]"}
    record = {
        "pair_id": "p", "question": "Why?", "response_A": "one", "response_B": "two", "label": "A>B", "source": "maths",
        "judgments": [{"judgment": said, "decision": "A>B"}, {"judgment": said, "decision": "A>B"}],
    }  # fmt: skip
    missing = record | {"pair_id": "q", "judgments": [{"judgment": said, "decision": None}, None]}
    (table,) = logged(tmp_path / "log.jsonl", [record, missing])
    assert table.run.model == "critic"
    assert chosen(table) == [((0, 1), {0}), ((1, 0), {1}), ((0, 1), None), ((1, 0), None)]
    rows = table.rows()
    assert [row.status for row in rows] == ["ok", "ok", "unparsed", "error"]
    assert {row.answers for row in rows} == {frozenset({0})}
    assert {row.subject for row in rows} == {"maths"}


def test_mt_bench_names_the_winner_by_its_model(tmp_path: Path) -> None:
    prompt = (
        "[User Question]\nWhy?\n\n[The Start of Assistant A's Answer]\none\n[The End of Assistant A's Answer]\n\n"
        "[The Start of Assistant B's Answer]\ntwo words\n[The End of Assistant B's Answer]"
    )
    record = {
        "question_id": 81, "turn": 1, "model_1": "amber", "model_2": "birch", "judge": ["gpt-4", "pair-v2"],
        "g1_winner": "model_1", "g2_winner": "model_1", "g1_user_prompt": prompt, "g1_judgment": "[[A]]",
        "g2_judgment": "[[B]]",
    }  # fmt: skip
    (table,) = logged(tmp_path / "gpt-4_pair.jsonl", [record, record | {"question_id": 82, "g2_winner": "error"}])
    assert chosen(table) == [((0, 1), {0}), ((1, 0), {0}), ((0, 1), {0}), ((1, 0), None)]
    assert table.questions[0].options == ("one", "two words")
    assert table.questions[0].authors == ("amber", "birch")
    assert table.questions[0].stem == "Why?"


def test_mt_bench_s_second_turn_has_what_the_assistants_say(tmp_path: Path) -> None:
    talk = "\n\n".join(
        f"<|The Start of Assistant {side}'s Conversation with User|>\n\n### User:\nWhy?\n\n"
        f"### Assistant {side}:\n{said}\n\n### User:\nAnd then?\n\n### Assistant {side}:\nNothing.\n\n"
        f"<|The End of Assistant {side}'s Conversation with User|>"
        for side, said in (("A", "So it is."), ("B", "Rain.\n\nAnd snow."))
    )
    record = {"question_id": 81, "model_1": "amber", "model_2": "birch", "g1_winner": "model_1", "g2_winner": "tie",
              "judge": ["critic", "pair-v2-multi-turn"], "turn": 2, "g1_user_prompt": talk}  # fmt: skip
    (table,) = logged(tmp_path / "critic_pair.jsonl", [record])
    (pair,) = table.questions
    assert pair.options == ("So it is.\n\nNothing.", "Rain.\n\nAnd snow.\n\nNothing.")


def test_votes_of_people_are_one_judge_and_say_nothing_of_places(tmp_path: Path) -> None:
    def vote(judge: str, winner: str) -> dict[str, Any]:
        said = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "x"}]
        return {"question_id": 1, "model_a": "amber", "model_b": "birch", "winner": winner, "judge": judge, "turn": 1,
                "conversation_a": said, "conversation_b": said}  # fmt: skip

    votes = [vote("expert_0", "model_b"), vote("author_2", "tie (inconsistent)")]
    (table,) = logged(tmp_path / "human.jsonl", votes)
    assert table.run.model == "people"
    assert [set(row.chosen or ()) for row in table.rows()] == [{1}, {0, 1}]
    assert {row.kind for row in table.rows()} == {"unplaced"}
    assert "which answer was shown first" in " ".join(table.run.logged.notes if table.run.logged else ())


def test_alpaca_eval_preferences_are_numbers(tmp_path: Path) -> None:
    records = [
        {"instruction": f"Do {k}", "output_1": "one", "generator_1": "base", "output_2": "two", "generator_2": "new",
         "annotator": "gpt4", "preference": value}
        for k, value in enumerate([1, 1.2, 1.5, 1.9, None])
    ]  # fmt: skip
    (table,) = logged(tmp_path / "annotations.json", records)
    assert [None if row.chosen is None else set(row.chosen) for row in table.rows()] == [{0}, {0}, {0, 1}, {1}, None]
    assert table.questions[0].authors == ("base", "new")
    with pytest.raises(InputError, match=r"3 is not a number from 1 to 2"):
        logged(tmp_path / "annotations.json", [records[0] | {"preference": 3}])
    # AlpacaFarm names no generators; pandas writes NaN for a missing number, and a CSV has texts.
    farm = [{key: one[key] for key in ("instruction", "output_1", "output_2")} | {"input": "this"} for one in records]
    for k, value in enumerate(("2.0", 0, float("nan"))):
        (table,) = logged(tmp_path / "farm.json", [farm[k] | {"preference": value}])
        assert chosen(table) == [((0, 1), ({1}, {0, 1}, None)[k])]
        assert table.questions[0].stem == f"Do {k}\n\nthis"


def test_llm_bar_has_both_orders_and_winners_by_their_number_in_the_file(tmp_path: Path) -> None:
    def verdicts(*winners: str | None) -> dict[str, Any]:
        names = ("swap = False", "swap = True")
        return {name: {"completion": ["...", "stop"], "winner": one} for name, one in zip(names, winners, strict=True)}

    record = {"input": "Do", "output_1": "one", "output_2": "two", "label": 2}
    logs = [[["metrics", "stop"], verdicts("1", "2")], [verdicts("1", "2"), verdicts("2", "2")], [verdicts(None, "1")]]
    for judge in ("GPT-4", "Falcon"):
        (tmp_path / judge / "CoT").mkdir(parents=True)
        records = [record | {"input": f"Do {k}", "results": results} for k, results in enumerate(logs)]
        (tmp_path / judge / "CoT" / "result.json").write_text(json.dumps(records))
    tables = tables_of("judge", tmp_path)
    assert sorted(table.run.model for table in tables) == ["Falcon/CoT", "GPT-4/CoT"]
    assert chosen(tables[0]) == [
        ((0, 1), {0}), ((1, 0), {1}), ((0, 1), {1}), ((1, 0), {1}), ((0, 1), None), ((1, 0), {0}),
    ]  # fmt: skip
    assert {row.answers for row in tables[0].rows()} == {frozenset({1})}


def test_panda_lm_has_three_people_and_zero_for_a_tie(tmp_path: Path) -> None:
    record = {"idx": 0, "cmp_key": "amber_birch", "instruction": "Do", "input": float("nan"), "response1": "",
              "response2": "two", "annotator1": 2, "annotator2": 0, "annotator3": 1}  # fmt: skip
    tables = logged(tmp_path / "testset-v1.json", [record])
    assert [table.run.model for table in tables] == ["annotator1", "annotator2", "annotator3"]
    assert [chosen(table) for table in tables] == [[((0, 1), {1})], [((0, 1), {0, 1})], [((0, 1), {0})]]
    assert (tables[0].questions[0].options, tables[0].questions[0].authors) == (("", "two"), ("amber", "birch"))
    page = study.judge(log=tmp_path / "testset-v1.json").page()
    assert page.headline == "3 judges in one order each"
    assert "a place" not in str(page.lines)  # nothing is known of it


def test_reward_bench_says_whether_the_chosen_answer_won(tmp_path: Path) -> None:
    record = {"id": 3, "prompt": "Why?", "chosen": "one", "rejected": "two", "subset": "hard", "results": 1}
    (table,) = logged(tmp_path / "scores.jsonl", [record | {"id": k, "results": x} for k, x in enumerate((1, 0, 0.5))])
    assert chosen(table) == [((0, 1), {0}), ((0, 1), {1}), ((0, 1), {0, 1})]
    assert {row.answers for row in table.rows()} == {frozenset({0})}
    with pytest.raises(InputError, match="does not say which of several answers won"):
        logged(tmp_path / "scores.jsonl", [record | {"rejected": ["two", "three"]}])


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    row = {"prompt": "Why?", "a": "one", "b": "two", "verdict": "B", "order": "BA", "gold": "tie", "system_A": "amber",
           "system_B": "birch"}  # fmt: skip
    fields = {"response_A": "a", "response_B": "b"}
    (table,) = logged(tmp_path / "own.jsonl", [row], fields)
    assert chosen(table) == [((1, 0), {0})]  # the answer shown second is the first of the file
    assert table.rows()[0].answers == {0, 1}
    words = {key: value for key, value in row.items() if key != "verdict"} | {"reply": "I prefer the first answer."}
    assert chosen(logged(tmp_path / "own.jsonl", [words], fields)[0]) == [((1, 0), {1})]
    for change, message in (
        ({"verdict": "perhaps"}, r"line 1, field .verdict.: .perhaps. is not a verdict: A, B or tie"),
        ({"order": "CD"}, r"field .order.: .CD. is not an order: AB, BA"),
        ({"a": None}, r"line 1, field .a.: is empty"),
        ({"sample": "s1"}, r"field .sample.: .s1. is not a sample number; omit it: fields=.*repeat"),
        ({"reply": ["A", "B"]}, r"line 1, field .reply.: is a list; write a row for each sample \(repeat 0, 1"),
        ({"verdict": ["A", "B", "A"]}, r"line 1, field .verdict.: .*: write a row for each sample \(repeat 0, 1"),
    ):
        with pytest.raises(InputError, match=message):
            logged(tmp_path / "own.jsonl", [row | change], fields)
    with pytest.raises(InputError, match="unknown field 'answer_one' for a table of judgements"):
        logged(tmp_path / "own.jsonl", [row | {"response_A": "x", "response_B": "y"}], {"answer_one": "a"})


def test_a_table_without_a_known_column_of_verdicts_asks_for_it(tmp_path: Path) -> None:
    """Not for the answer of a model, as a table of any other kind does."""
    path = tmp_path / "own.csv"
    path.write_text("question,response_1,response_2,result,points_1,points_2\nWhy?,one,two,B,8,5\nWho?,one,two,A,8,8\n")
    asked = 'field "decision": no column was found for the verdicts of this table of judgements among points_1'
    with pytest.raises(InputError, match=asked):
        tables_of("judge", path)
    (table,) = tables_of("judge", path, {"decision": "result"})
    assert chosen(table) == [((0, 1), {1}), ((0, 1), {0})]
    (table,) = tables_of("judge", path, {"scores": "points_1,points_2"})
    assert chosen(table) == [((0, 1), {0}), ((0, 1), {0, 1})]


def test_points_out_of_ten_are_not_two_scores(tmp_path: Path) -> None:
    """8/10 made the second answer win, with 10 against 8."""
    with pytest.raises(InputError, match=r"field .decision.: .8/10. is not a verdict"):
        logged(tmp_path / "own.jsonl", [PAIR | {"decision": "8/10"}])
    (table,) = logged(tmp_path / "own.jsonl", [PAIR | {"reply": "8/10"}])
    assert table.rows()[0].status == "unparsed"


def test_ratings_of_llm_bar_are_no_verdicts(tmp_path: Path) -> None:
    record = {
        "input": "Why?",
        "output_1": "one",
        "output_2": "two",
        "label": 1,
        "results": [{"output_1": {"rating": 5}}],
    }
    with pytest.raises(InputError, match=r'field "results": rates each answer alone; give a table with both ratings'):
        logged(tmp_path / "result.json", [record])


PAIR = {"id": "p", "question": "Why?", "response_A": "one", "response_B": "two words"}


def test_decisions_as_people_and_spreadsheets_write_them(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for decision, preferred in (
        (1, {0}), (2, {1}), (1.0, {0}), ([1], {0}), ("2.0", {1}), ("both_bad", {0, 1}), ("tie (bothbad)", {0, 1}),
        ("", None),
    ):  # fmt: skip
        with subtests.test(decision=decision):
            (table,) = logged(tmp_path / "own.jsonl", [PAIR | {"decision": decision, "label": "A"}])
            assert chosen(table) == [((0, 1), preferred)]
    # 0 is a tie in some files and the first answer in others; -1 to 1 is a scale.
    for decision in (0, -1, "+1", "-2"):
        with (
            subtests.test(decision=decision),
            pytest.raises(InputError, match=r"is not a verdict: A, B or tie \(also 1,"),
        ):
            logged(tmp_path / "own.jsonl", [PAIR | {"decision": decision}])
    assert chosen(logged(tmp_path / "own.jsonl", [PAIR | {"reply": "-1"}])[0]) == [((0, 1), None)]


def test_a_table_with_the_columns_of_votes_keeps_its_texts_and_orders(tmp_path: Path) -> None:
    row = {"question_id": 7, "model_a": "amber", "model_b": "birch", "winner": "B", "prompt": "Why?", "label": "A",
           "response_a": "one", "response_b": "two"}  # fmt: skip
    (table,) = logged(tmp_path / "own.jsonl", [row | {"order": 0.0}, row | {"order": 1.0}])
    assert chosen(table) == [((0, 1), {1}), ((1, 0), {0})]
    assert (table.questions[0].stem, table.questions[0].options) == ("Why?", ("one", "two"))
    assert table.rows()[0].answers == {0}


def test_pairs_of_several_systems_may_share_the_number_of_their_question(tmp_path: Path) -> None:
    row = {"question_id": 7, "question": "Why?", "response_A": "one", "response_B": "two", "decision": "A"}
    rows = [row | {"system_A": "amber", "system_B": other, "response_B": other} for other in ("birch", "cedar")]
    (table,) = logged(tmp_path / "own.jsonl", rows)
    assert [question.id for question in table.questions] == ["7/amber/birch", "7/amber/cedar"]


def test_a_vote_on_the_first_turn_is_about_its_answers(tmp_path: Path) -> None:
    said = [{"role": role, "content": f"{role} {turn}"} for turn in (1, 2) for role in ("user", "assistant")]
    vote = {"question_id": 1, "model_a": "amber", "model_b": "birch", "winner": "model_a", "judge": "expert_0",
            "conversation_a": said, "conversation_b": said}  # fmt: skip
    (table,) = logged(tmp_path / "human.jsonl", [vote | {"turn": turn} for turn in (1, 2)])
    assert [question.options[0] for question in table.questions] == ["assistant 1", "assistant 1\n\nassistant 2"]
    assert {question.stem for question in table.questions} == {"user 1"}  # pairs about one question stay together
    prompt = "".join(
        f"<|The Start of Assistant {x}'s Conversation with User|>\n\n### User:\nuser 1\n\n### Assistant {x}:\none\n\n"
        f"<|The End of Assistant {x}'s Conversation with User|>\n\n" for x in "AB"
    )  # fmt: skip
    game = {"question_id": 1, "turn": 2, "model_1": "amber", "model_2": "birch", "judge": ["gpt-4", "multi-turn"],
            "g1_winner": "tie", "g2_winner": "tie", "g1_user_prompt": prompt}  # fmt: skip
    assert logged(tmp_path / "gpt-4_pair.jsonl", [game])[0].questions[0].stem == "user 1"


def test_conversations_are_one_answer_each(tmp_path: Path) -> None:
    def talk(answer: str, parts: bool = False) -> list[dict[str, Any]]:
        said = [{"type": "text", "text": answer, "image": None}] if parts else answer
        return [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": said}]

    record = {"id": 0, "prompt": talk("")[:1], "chosen": talk("one"), "rejected": talk("two"), "decision": "B"}
    (table,) = logged(tmp_path / "own.jsonl", [record])
    assert chosen(table) == [((0, 1), {1})]
    assert (table.questions[0].id, table.questions[0].stem) == ("0", "Why?")
    assert table.questions[0].options == ("one", "two")
    vote = {"id": "x", "model_a": "amber", "model_b": "birch", "winner": "model_b"}
    vote |= {"conversation_a": talk("one", True), "conversation_b": talk("two", True)}
    (table,) = logged(tmp_path / "arena.jsonl", [vote])
    assert (table.questions[0].stem, table.questions[0].options) == ("Why?", ("one", "two"))
    system = [{"role": "system", "content": "Be brief."}]
    vote |= {f"conversation_{side}": [*system, *talk(answer)] for side, answer in (("a", "one"), ("b", "two"))}
    (table,) = logged(tmp_path / "briefed.jsonl", [vote])
    assert (table.questions[0].stem, table.questions[0].options) == ("Why?", ("one", "two"))


def test_a_decision_may_name_a_system_or_its_column(tmp_path: Path) -> None:
    row = {key: value for key, value in PAIR.items() if key != "id"} | {"model_a": "amber", "model_b": "birch"}
    for decision in ("birch", "model_b"):
        (table,) = logged(tmp_path / "own.jsonl", [row | {"winner": decision, "order": o} for o in ("AB", "BA")])
        assert chosen(table) == [((0, 1), {1}), ((1, 0), {1})]
    with pytest.raises(InputError, match=r"field .winner.: .B. may be a system or a place, which differ"):
        logged(tmp_path / "own.jsonl", [row | {"model_a": "B", "model_b": "A", "winner": "B"}])


def test_failed_judgements_are_no_ties_and_stay_with_their_judge(tmp_path: Path) -> None:
    scores = [[7, 5], [-1, -1], [None, 3], "[2, 2]"]
    (table,) = logged(tmp_path / "own.jsonl", [PAIR | {"id": str(k), "scores": two} for k, two in enumerate(scores)])
    assert chosen(table) == [((0, 1), {0}), ((0, 1), None), ((0, 1), None), ((0, 1), {0, 1})]
    said = {"judgment": {"judge_model": "critic", "response": "[[A>B]]"}, "decision": "A>B"}
    records = [{"pair_id": "p", "question": "Why?", "response_A": "one", "response_B": "two", "label": "A>B",
                "judge_name": "arena_hard", "judgments": two} for two in ([said, said], [None, None])]  # fmt: skip
    (table,) = logged(tmp_path / "bench.jsonl", [one | {"pair_id": str(k)} for k, one in enumerate(records)])
    assert table.run.model == "critic"
    assert [row.status for row in table.rows()] == ["ok", "ok", "error", "error"]


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    (table,) = logged(tmp_path / "own.jsonl", [PAIR | {"response_A": "", "decision": "B"}])
    assert chosen(table) == [((0, 1), {1})]
    assert table.questions[0].options == ("", "two words")


def test_lists_with_ties(tmp_path: Path) -> None:
    row = {"id": "1", "question": "A colour?", "chosen": ["red", "blue"], "rejected": ["five", "six"]}
    (table,) = logged(
        tmp_path / "scores.jsonl", [row | {"scores": [2, 2, 1, 0]}, row | {"id": "2", "scores": [1, 0, 3, 0]}]
    )
    assert [set(found.chosen or ()) for found in table.rows()] == [{0, 1}, {2}]
    assert {found.answers for found in table.rows()} == {frozenset({0, 1})}
    with pytest.raises(InputError, match=r"field .scores.: \[1\] is not a list of 4 numbers"):
        logged(tmp_path / "scores.jsonl", [row | {"scores": [1]}])


@pytest.mark.parametrize(
    ("decision", "preferred"),
    [("B", {1}), (" B", {1}), ("1", {1}), ("[0, 2]", {0, 2}), ('["A", "C"]', {0, 2}), ("", None)],
)
def test_csv_holds_lists_as_texts(tmp_path: Path, decision: str, preferred: set[int] | None) -> None:
    path = tmp_path / "log.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "responses", "decision", "order"])
        writer.writerow(["1", "Why?", '["one", "two", "three"]', decision, "[2, 0, 1]"])
    shown = [2, 0, 1]
    expected = None if preferred is None else {shown[k] for k in preferred}
    (table,) = tables_of("judge", path, None)
    assert chosen(table) == [((2, 0, 1), expected)]


def test_a_reply_that_is_a_list_is_named(tmp_path: Path) -> None:
    """It ended in "KeyError: 'reply'"."""
    game = {"g1_winner": "model_1", "g2_winner": "model_1", "g1_judgment": ["A", "B"], "g2_judgment": "A"}
    record = {"question_id": 1, "model_1": "x", "model_2": "y", "judge": "j", **game}
    with pytest.raises(InputError, match=r'line 1, field "reply": is a list; write a row for each sample'):
        logged(tmp_path / "log.jsonl", [record])


def test_the_audit_does_not_read_them(tmp_path: Path) -> None:
    record = {"question": "Why?", "response_A": "one", "response_B": "two", "decision": "A"}
    (tmp_path / "log.jsonl").write_text(json.dumps(record))
    with pytest.raises(InputError, match="contains responses of the study judge; those of audit are needed"):
        tables_of("audit", tmp_path / "log.jsonl")


def test_real_judges(shared_data: Path) -> None:
    """Claude 3 Haiku and a reward model, as JudgeBench logged them."""
    for name, counts in (
        ("judgebench_claude-3-haiku", {"first": 212, "second": 123, "tie": 192, "none": 13}),
        ("judgebench_skywork-reward-8b", {"first": 349, "second": 351}),
    ):
        (table,) = tables_of("judge", shared_data / "judges" / f"{name}.jsonl.gz")
        seen = Counter(
            "none" if row.chosen is None else "tie" if len(row.chosen) > 1 else
            "first" if row.contents[0] in row.chosen else "second"
            for row in table.rows()
        )  # fmt: skip
        assert seen == counts


PROMPT = (
    "<|User Prompt|>\nWhy?\n\n<|The Start of Assistant A's Answer|>\n{}\n<|The End of Assistant A's Answer|>\n\n"
    "<|The Start of Assistant B's Answer|>\n{}\n<|The End of Assistant B's Answer|>"
)


@pytest.mark.parametrize("version", [1, 2])
def test_arena_hard_shows_the_baseline_first_in_the_first_game(tmp_path: Path, version: int) -> None:
    def game(score: str | None, *answers: str) -> dict[str, Any]:
        prompt, reply = PROMPT.format(*answers), f"[[{score}]]"
        if version == 1:
            return {"user_prompt": prompt, "judgment": reply, "score": score}
        return {"prompt": [{"role": "user", "content": prompt}], "judgment": {"answer": reply}, "score": score}

    games = [game("A>B", "one", "two"), game("B>>A", "two", "one")]
    record = {"question_id": "q1", "model": "amber", "judge": "gpt-4", "games": games}
    undecided = record | {"question_id": "q2", "games": [games[0], game(None, "two", "one")]}
    failed = record | {"question_id": "q3", "games": [None, games[1]]}
    (table,) = logged(tmp_path / "amber.jsonl", [record, undecided, failed])
    assert table.run.model == "gpt-4"
    assert chosen(table)[:4] == [((0, 1), {0}), ((1, 0), {0}), ((0, 1), {0}), ((1, 0), None)]
    assert chosen(table)[4:] == [((0, 1), None), ((1, 0), {0})]
    assert {question.options for question in table.questions} == {("one", "two")}
    assert table.questions[0].options == ("one", "two")
    assert table.questions[0].authors == ("baseline", "amber")


def test_one_hot_votes_say_nothing_of_places(tmp_path: Path) -> None:
    vote = {"id": 1, "model_a": "amber", "model_b": "birch", "prompt": '["Why?", "And then?"]',
            "response_a": '["x", "y"]', "response_b": '["z", null]',
            "winner_model_a": 0, "winner_model_b": 1, "winner_tie": 0}  # fmt: skip
    tie = vote | {"id": 2, "winner_model_b": 0, "winner_tie": 1}
    (table,) = logged(tmp_path / "train.jsonl", [vote, tie, vote | {"id": 3, "winner_model_b": 0}])
    assert chosen(table) == [((0, 1), {1}), ((0, 1), {0, 1}), ((0, 1), None)]
    assert (table.questions[0].stem, table.questions[0].options) == ("Why?\nAnd then?", ("x\ny", "z\n"))
    with pytest.raises(InputError, match="says winner_model_a=1 and winner_model_b=1: mark the winner with 1"):
        logged(tmp_path / "train.jsonl", [vote | {"winner_model_a": 1}])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"verdict": "A", "winner": "B"}, r"'verdict' and 'winner' differ: 'A' and 'B'.*\"decision\": \"verdict\""),
        ({"decision": "A", "label": "A", "gold": "tie"}, "'label' and 'gold' differ"),
        ({"decision": "A", "order": "AB", "swapped": True}, "'order' and 'swapped' differ: 'AB' and True"),
        ({"decision": "B", "scores": [9, 1]}, "prefer another answer than 'B', a place as shown"),
        ({"decision": "A", "scores": [9, 1], "order": "BA"}, "prefer another answer than 'A', a place as shown"),
    ],
)
def test_columns_that_contradict_each_other(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    """The first of each two was read, and the other ignored in silence."""
    pair = {"question": "Why?", "response_A": "one", "response_B": "two"}
    with pytest.raises(InputError, match=message):
        logged(tmp_path / "log.jsonl", [pair | columns])


@pytest.mark.parametrize(
    "columns",
    [
        {"verdict": "[[A]]", "winner": "A"},
        {"decision": "A", "preference": 0.8},
        {"decision": "A", "scores": [9, 1], "order": "AB"},
        {"decision": "B", "scores": [9, 1], "order": "BA"},
        {"decision": "A", "scores": [5, 5]},
        {"decision": "A", "label": "A>B", "gold": "A", "order": "AB", "swapped": False},
    ],
)
def test_columns_that_say_the_same(tmp_path: Path, columns: dict[str, Any]) -> None:
    pair = {"question": "Why?", "response_A": "one", "response_B": "two"}
    (table,) = logged(tmp_path / "log.jsonl", [pair | columns])
    assert chosen(table)[0][1] == ({0, 1} if columns.get("scores") == [5, 5] else {0})


VOTE = {"id": "q", "question": "Which?", "response_A": "x", "response_B": "y", "order": "AB", "decision": "A"}
LISTED = {"id": "q", "question": "Which?", "responses": ["x", "y", "z"], "decision": "A"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (VOTE | {"order": "C"}, 'field "order": .C. is not an order: AB, BA, swapped .true or false., or the index of'),
        (LISTED | {"order": [0, 1, 1]}, "is not an order: the index of the answer at each place, from 0"),
        (VOTE | {"decision": "maybe"}, 'field "decision": .maybe. is not a verdict: A, B or tie'),
        (VOTE | {"label": "maybe"}, 'field "label": .maybe. is not a verdict'),
        (VOTE | {"question": ""}, 'field "question": is empty'),
        (VOTE | {"response_A": None}, 'field "response_A": is empty'),
        ({key: value for key, value in VOTE.items() if key != "question"}, "is missing; name its column: --fields que"),
        (LISTED | {"responses": "x"}, "is not a list of answers"),
        (LISTED | {"responses": ["x"]}, "options: 1 given, 2 to 100 are allowed"),
        (LISTED | {"decision": "D"}, "'D': give labels, A to C, or 0 to 2"),
        (LISTED | {"decision": ["A", "A"]}, "write a row for each sample"),
        (LISTED | {"scores": [1, 2]}, "is not a list of 3 numbers, one for each answer"),
        (VOTE | {"scores": 9}, "9 is not a list of 2 numbers"),
        (VOTE | {"scores": [9, True]}, "True is not a number"),
        (VOTE | {"repeat": "first"}, "'first' is not a sample number; omit it: --fields repeat="),
        (VOTE | {"system_A": "B", "system_B": "z", "decision": "B"}, "'B' may be a system or a place, which differ"),
        ({"pair_id": "p", "judgments": [], "response_A": "x", "response_B": "y"}, "holds 0; one, or two .the second"),
        ({"prompt": "?", "chosen": "x", "rejected": ["y", "z"], "results": 1}, "does not say which of several answers"),
        ({"instruction": "?", "output_1": "x", "output_2": "y", "preference": 3}, "3 is not a number from 1 to 2"),
    ],
)
def test_a_record_that_is_no_judgement_is_named(tmp_path: Path, record: dict[str, Any], reason: str) -> None:
    with naming_flags(), pytest.raises(InputError, match=rf"log\.jsonl, line 1.*{reason}"):
        logged(tmp_path / "log.jsonl", [record])


def test_scores_that_were_not_read_prefer_no_answer(tmp_path: Path) -> None:
    """FairEval and FastChat write -1 for them; a tie in words does not contradict scores."""
    for scores, decision, preferred in (([-1, -1], "A", None), ([9, None], "A", None), ([9, 1], "tie", {0})):
        (table,) = logged(tmp_path / "log.jsonl", [VOTE | {"scores": scores, "decision": decision}])
        assert [(row.status, row.chosen) for row in table.rows()] == [("ok" if preferred else "unparsed", preferred)]
