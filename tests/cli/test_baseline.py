"""``--baseline``: only like is compared with like, and the line says what changed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran
from unslant import compare
from unslant.experiment.gates import failed_conditions

Run = Callable[..., Ran]
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers(model: str, score: float, questions: Iterable[int] = range(40)) -> Rows:
    """Answers in words to every question in four orders, about ``score`` of them right."""
    rows = []
    for i in questions:
        chosen = i if random.Random(f"{score}-{i}").random() < score else i + 1
        for shift in range(4):
            order = [(shift + place) % 4 for place in range(4)]
            right, said = ("ABCD"[order.index(option % 4)] for option in (i, chosen))
            options = [f"q{i} option {option}" for option in order]
            row = {"id": f"q{i}", "question": f"Question number {i}?", "options": options, "order": order}
            rows.append(row | {"answer": right, "chosen": said, "model": model})
    return rows


def write(file: str, rows: Rows) -> str:
    Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def changes(file: str = "new.json") -> dict[str, Any]:
    found = json.loads(Path(file).read_text("utf-8"))["baseline"]
    return {key: one for key, one in found.items() if isinstance(one, dict)}


def test_rows_of_lists_are_compared_by_what_they_are_of_and_not_by_rank(unslant: Run) -> None:
    alpha, beta = write("alpha.jsonl", answers("alpha", 0.4)), write("beta.jsonl", answers("beta", 0.9))
    better = write("better.jsonl", answers("alpha", 1.0))
    assert unslant("leaderboard", "--log", alpha, beta, "--json", "old.json", "-q").code == 0
    same = unslant("leaderboard", "--log", alpha, "--baseline", "old.json", "--json", "new.json")
    assert "Against old.json: no change shown in" in same.out
    assert "models.alpha.expected_accuracy" in changes()
    assert all(one["difference"]["value"] == 0 for one in changes().values())
    condition = "baseline.models.alpha.expected_accuracy.difference>0.1"
    log = ("leaderboard", "--log", better, beta, "--baseline", "old.json", "--json", "new.json", "--details")
    ran = unslant(*log, "--fail-if", condition)
    assert ran.code == 4
    assert "baseline.models.alpha.expected_accuracy.difference is" in ran.err
    said = re.search(r"Against old.json: alpha: mean over orders \+([\d.]+)\s+\(([\d.]+)\s+to\s+([\d.]+)\)", ran.out)
    assert said
    low, high = map(float, said.groups()[1:])
    alone = changes()["models.alpha.expected_accuracy"]["difference"]
    assert 0 <= low < alone["low"] < alone["high"] < high <= 1, "what was picked from several has a wider interval"
    assert "beta: accuracy, mean over orders" in ran.out, "rows of the table have no names"
    assert not any(key.startswith("pairs") for key in changes()), "the other model is ahead now"


def test_the_line_names_the_run_that_changed(unslant: Run) -> None:
    beta, new = write("beta.jsonl", answers("beta", 0.9)), write("new.jsonl", answers("alpha", 1.0))
    assert (
        unslant("audit", "--log", write("a.jsonl", answers("alpha", 0.4)), beta, "--json", "old.json", "-q").code == 0
    )
    ran = unslant("audit", "--log", new, beta, "--baseline", "old.json")
    assert "Against old.json: alpha: mean over orders +" in ran.out
    assert "beta: mean" not in ran.out


def test_responses_that_a_study_does_not_have_are_not_said_to_be_written(unslant: Run) -> None:
    words = ("study", "debias", "fair", "embedded", "--methods", "vote", "--limit", 3, "--no-store")
    assert unslant(*words, "--json", "old.json", "-q").code == 0
    assert (
        "Written: out/numbers.json, out/report.html\n" in unslant(*words, "--baseline", "old.json", "--out", "out").out
    )


def test_logs_without_a_shared_question_are_refused_as_their_texts_say_so(unslant: Run) -> None:
    old, new = write("old.jsonl", answers("alpha", 0.4)), write("new.jsonl", answers("alpha", 0.9, range(40, 80)))
    assert unslant("audit", "--log", old, "--responses", "old.parquet", "-q").code == 0
    for file in (old, "old.parquet"):
        ran = unslant("audit", "--log", new, "--baseline", file)
        assert (ran.code, ran.err) == (
            2, f"error: {file}: was made on other questions, so there is nothing to compare\n"
        )  # fmt: skip
        assert "Against" not in ran.out


def test_a_log_of_other_questions_is_refused_before_the_model_is_opened(unslant: Run) -> None:
    Path("mine.csv").write_text("id,question,A,B,answer\n1,2+2?,4,5,A\n2,Capital of Italy?,Oslo,Rome,B\n")
    ran = unslant("audit", "no/such/model", "mine.csv", "--baseline", write("old.jsonl", answers("alpha", 0.4)))
    assert (ran.code, ran.err) == (
        2, "error: old.jsonl: was made on other questions, so there is nothing to compare\n"
    )  # fmt: skip


def test_where_texts_or_digests_are_unknown_the_line_says_that_the_questions_may_be_others(unslant: Run) -> None:
    rows = answers("alpha", 0.4)
    unknown = [{**row, "id": f"x{row['id']}", "options": None, "question": None, "labels": [*"ABCD"]} for row in rows]
    new = write("new.jsonl", answers("alpha", 0.9))
    assert unslant("audit", "--log", write("old.jsonl", rows), "--json", "old.json", "-q").code == 0
    for file in (write("unknown.jsonl", unknown), "old.json"):
        ran = unslant("audit", "--log", new, "--baseline", file)
        assert ran.code == 0, ran.err
        assert "it is not known whether the questions are the same." in " ".join(ran.out.split())


@pytest.mark.thorough
def test_a_result_of_the_same_questions_in_another_sequence_is_not_said_to_be_of_others(unslant: Run) -> None:
    lines = [f"{i},{i}+1?,{i + 1},{i + 2},A" for i in range(6)]
    for file, rows in (("one.csv", lines), ("two.csv", lines[::-1])):
        Path(file).write_text("\n".join(["id,question,A,B,answer", *rows]))
    audit = ("audit", "fair", "--no-store", "-q")
    assert unslant(*audit, "one.csv", "--json", "old.json", "--responses", "old.parquet").code == 0
    error = (
        "error: old.json: was made on other questions, or on the same ones in another sequence, so it cannot be "
        "compared; the Parquet file of an audit is compared on the questions that both have\n"
    )
    ran = unslant(*audit, "two.csv", "--baseline", "old.json", "--responses", "new.parquet")
    assert (ran.code, ran.err) == (2, error)
    assert unslant(*audit, "two.csv", "--baseline", "old.parquet", "--responses", "new.parquet").code == 0
    assert unslant("audit", "--log", "new.parquet", "--baseline", "old.json", "-q").err == error


@pytest.mark.thorough
def test_pbm_of_words_and_of_scores_is_not_compared_as_the_scales_differ(unslant: Run) -> None:
    words = [{**row, "chosen": "A" if i // 4 % 2 else row["chosen"]} for i, row in enumerate(answers("alpha", 0.9))]
    scored = [row | {"logprobs": {name: -1.2 - 0.2 * (name != row["chosen"]) for name in "ABCD"}} for row in words]
    for row in scored:
        del row["chosen"]
    for name, rows in (("words", words), ("scored", scored)):
        assert unslant("audit", "--log", write(f"{name}.jsonl", rows), "--json", f"{name}.json", "-q").code == 0
    for now, before in (("words", "scored"), ("scored", "words")):
        for file in (f"{before}.jsonl", f"{before}.json"):
            ran = unslant("audit", "--log", f"{now}.jsonl", "--baseline", file, "--json", "new.json", "--details")
            assert f"Against {file}: no change shown in 5 numbers" in ran.out
            left_out = (
                "PBM is not compared"
                if file.endswith("l")
                else "Missing or undefined in one, on different scales or over different numbers of orders: PBM"
            )
            assert left_out in " ".join(ran.out.split())
            assert "pbm" not in changes()
    assert "pbm" not in {one["measure"] for one in compare("words.jsonl", "scored.jsonl").to_dict()["differences"]}
    assert unslant("audit", "--log", "words.jsonl", "--baseline", "words.json", "--json", "new.json", "-q").code == 0
    assert "pbm" in changes()


def test_a_number_that_the_baseline_does_not_have_is_named(unslant: Run) -> None:
    log = write("a.jsonl", answers("alpha", 0.4))
    assert unslant("audit", "--log", log, "--json", "old.json", "-q").code == 0
    result = json.loads(Path("old.json").read_text())
    means = result["metrics"]["means"]
    means["expected_accuracy"] |= {"value": None, "low": None, "high": None}
    means["vote_accuracy"] = None
    Path("old.json").write_text(json.dumps(result))
    ran = unslant("audit", "--log", log, "--baseline", "old.json", "--details")
    names = "mean over orders and voted"
    Path("none.json").write_text(json.dumps(result | {"provenance": None}))
    refused = unslant("audit", "--log", log, "--baseline", "none.json")
    assert (refused.code, refused.err) == (2, 'error: none.json, field "provenance": is not a JSON object\n')
    why = "Missing or undefined in one, on different scales or over different numbers of orders"
    assert f"{why}: {names}." in " ".join(ran.out.split())


@pytest.mark.parametrize(("value", "printed"), [(0.59997, "0.59997"), (0.5912345, "0.5912"), ("-inf", "-inf")])
def test_a_rounded_number_does_not_contradict_the_condition(value: object, printed: str) -> None:
    result = {"accuracy": {"value": value, "low": None, "high": None, "n": 9}}
    (line,) = failed_conditions(["accuracy<0.6"], result)
    assert line.endswith(f"accuracy is {printed}")


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"value": 1e300}, "value is 1e+300, and must be 0 to 1"),
    ({"value": 1.7, "high": 1.9}, "value is 1.7, and must be 0 to 1"),
    ({"value": float("nan")}, "value is nan, and must be 0 to 1"),
    ({"low": 0.9}, "is not within its interval, 0.9 to"),
    ({"low": None}, "is not within its interval, nan to"),
    ({"n": -3}, "n is -3 and confidence 0.95"),
    ({"n": 2.5}, "holds numbers in a form that unslant does not write"),
    ({"confidence": 7}, "n is 40 and confidence 7"),
]


def test_a_baseline_with_impossible_numbers_is_refused_before_anything_is_asked(unslant: Run) -> None:
    log = write("one.jsonl", answers("one", 0.6))
    assert unslant("audit", "--log", log, "--json", "old.json", "-q").code == 0
    for changed, reason in IMPOSSIBLE:
        values = json.loads(Path("old.json").read_text("utf-8"))
        values["metrics"]["means"]["accuracy"] |= changed
        Path("changed.json").write_text(json.dumps(values))
        refused = unslant("audit", "fair", "embedded", "--baseline", "changed.json")
        assert refused.code == 2
        assert 'changed.json, field "metrics.means.accuracy": ' in refused.err
        assert reason in refused.err
        assert "scoring" not in refused.err
    for part in ("value", "low", "high", "n"):  # the number was left out of the comparison without a word
        values = json.loads(Path("old.json").read_text("utf-8"))
        del values["metrics"]["means"]["accuracy"][part]
        Path("changed.json").write_text(json.dumps(values))
        refused = unslant("audit", "fair", "embedded", "--baseline", "changed.json")
        assert (refused.code, 'field "metrics.means.accuracy": holds numbers in a form' in refused.err) == (2, True)


def test_differences_on_fewer_questions_than_the_result_say_how_many(unslant: Run) -> None:
    rows = answers("alpha", 0.7)
    ids = sorted({row["id"] for row in rows})
    for name, kept in (("old.jsonl", ids[:-4]), ("new.jsonl", ids[4:])):
        write(name, [row for row in rows if row["id"] in kept])
    both = len(ids) - 8
    ran = unslant("audit", "--log", "new.jsonl", "--baseline", "old.jsonl", "--details")
    assert f"on the {both} questions of both." in " ".join(ran.out.split())
    assert "Missing or undefined in one: 8 questions." in ran.out
