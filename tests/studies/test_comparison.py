"""Runs side by side: differences, ranks, and agreement with another ranking."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unslant.auditing as unslant_auditing
from tests.command_line import unslant
from tests.fakes import RuleModel
from tests.metrics.synthetic import make_questions
from tests.reports.synthetic import synthetic_audit, synthetic_questions
from unslant import InputError, Leaderboard, ModelError, Question, audit, compare, leaderboard, load_questions
from unslant.auditing.comparison import AuditComparison
from unslant.auditing.result import AuditResult, paired
from unslant.experiment import ShardOptions
from unslant.experiment.comparison import UNPAIRED, Comparison, agreements, lead, mean_over_sets
from unslant.experiment.gates import Baseline
from unslant.experiment.result import Paired
from unslant.experiment.study import Study
from unslant.metrics import METRICS, Bootstrap, Estimate, PairedDifference, wilson
from unslant.models.base import Scored
from unslant.prompts import Prompt
from unslant.responses import Responses

RUNS = {
    "first": {"accuracy": wilson(0.5, 40), "pbm": Estimate.undefined("one order")},
    "second": {"accuracy": wilson(0.75, 40), "pbm": Estimate.bare(0.1, 40, "made")},
    "third": {"accuracy": Estimate.undefined("nothing came"), "pbm": Estimate.bare(0.2, 40, "made")},
}


def test_the_highest_is_first_and_what_is_undefined_last_without_a_rank() -> None:
    comparison = Comparison(RUNS, ["accuracy", "pbm"])
    assert comparison.best_first("accuracy") == ("second", "first", "third")
    assert comparison.ranks("accuracy") == {"first": 2, "second": 1, "third": None}
    assert comparison.base == "first"


def test_differences_are_from_the_first_run_and_unpaired_without_questions() -> None:
    comparison = Comparison(RUNS, ["accuracy", "pbm"])
    ((run, pair),) = comparison.differences  # pbm of the first, and accuracy of the third, are undefined
    assert (run, pair.measure, pair.a, pair.b) == (
        "second", "accuracy", RUNS["second"]["accuracy"], RUNS["first"]["accuracy"],
    )  # fmt: skip
    assert pair.difference.value == pytest.approx(0.25)
    assert pair.difference.method == UNPAIRED
    assert math.isnan(pair.p_value)
    assert not comparison.paired
    table = comparison.difference_figure("differences", "Differences").table
    assert [column.name for column in table.columns] == ["metric", "run", "first", "this run", "difference"]


def test_paired_differences_are_taken_metric_by_metric_with_their_remarks() -> None:
    def pairing(run: str, base: str) -> Paired | None:
        assert base == "first"
        if run == "third":
            return Paired([], ["Other questions."])
        half, p = wilson(0.5, 10), {"accuracy": 0.25, "pbm": math.nan}
        pairs = [PairedDifference(key, half, half, half, 3, 1, p[key], 30) for key in ("pbm", "accuracy")]
        return Paired(pairs, ["Other questions."])

    comparison = Comparison(RUNS, ["accuracy", "pbm"], pairing)
    assert [(run, pair.measure) for run, pair in comparison.differences] == [("second", "accuracy"), ("second", "pbm")]
    assert comparison.remarks == ("Other questions.",)
    assert comparison.paired
    figure = comparison.difference_figure("differences", "Differences")
    rows = [dict(zip([column.name for column in figure.table.columns], row, strict=True)) for row in figure.table.rows]
    assert [row["only this run"] for row in rows] == [3, None]  # PBM is not yes or no
    assert [row["left out"] for row in rows] == [30, 30]
    assert figure.by_row == (METRICS["accuracy"], METRICS["pbm"])


def test_another_ranking_is_compared_over_the_runs_in_both() -> None:
    scores = {name: {"accuracy": Estimate.bare(0.1 * i, 9, "made")} for i, name in enumerate("abcd")}
    comparison = Comparison(scores, ["accuracy"], ranking={"b": 1.0, "c": 2.0, "d": 3.0, "other": 0.0})
    found = comparison.agreement("accuracy")
    assert found is not None
    assert (found["kendall"].value, found["kendall"].n) == (pytest.approx(1.0), 3)
    assert comparison.unranked == ["Not in the ranking under this name: a; the ranking has b, c, d, other."]
    alone = Comparison(scores, ["accuracy"])
    assert alone.agreement("accuracy") is None
    assert alone.unranked == []
    (row,) = agreements("agreement", "Agreement", {("accuracy",): found, ("pbm",): None}, "score").table.rows
    assert row[0] == "accuracy"


def test_runs_are_rows_or_columns() -> None:
    comparison = Comparison(RUNS, ["accuracy"])
    by_row = comparison.figure("scores", "Scores", ["accuracy"]).table
    assert [row[0] for row in by_row.rows] == ["first", "second", "third"]
    cells = {("law",): {"first": wilson(0.5, 4)}, ("art",): {"third": wilson(1.0, 2)}}
    by_column = comparison.by_run("subjects", "Subjects", ["subject"], cells, METRICS["accuracy"]).table
    assert [column.name for column in by_column.columns] == ["subject", "first", "second", "third"]
    assert by_column.rows[1] == ("art", None, None, wilson(1.0, 2))


@pytest.mark.thorough
def test_a_run_on_other_questions_is_not_among_those_that_cannot_be_distinguished() -> None:
    questions = load_questions("embedded").questions
    one, two, apart = (
        audit(model, list(questions[start : start + 12]), orders="reverse")
        for model, start in (("prefers-a", 0), ("fair", 0), ("prefers-last", 12))
    )
    headline = AuditComparison.of([one, two, apart]).headline
    assert headline == f"{AuditComparison.of([one, two]).headline}; prefers-last answered other questions"


class Failing(RuleModel):
    """Answers every question but those that ``fails`` names."""

    def __init__(self, fails: Callable[[str], bool]) -> None:
        super().__init__(lambda stem, labels, texts: [1 + (label == "A") for label in labels], "failing")
        self.fails = fails

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for scored, prompt in zip(super().score(prompts), prompts, strict=True):
            yield Scored(scored.index, None, "no reply") if self.fails(prompt.group) else scored


@pytest.mark.thorough
@pytest.mark.parametrize("compared", [AuditComparison.of, Leaderboard.of])
def test_runs_that_answered_are_compared_though_another_failed(compared: Callable[[list[Any]], Any]) -> None:
    questions = list(load_questions("embedded").questions[:24])
    answered = {question.id for question in questions[:4]}
    runs = [audit(model, questions, orders="reverse") for model in ("prefers-a", "fair")]
    failing = audit(Failing(lambda name: name not in answered), questions, orders="reverse")
    page, rest = compared([failing, *runs]).page(), compared(runs).page()
    assert page.headline == rest.headline  # on all questions, not on the four that the failing one answered
    assert page.caveats[0].endswith(" responses of failing failed (no reply).")
    assert not any("has no score over orders" in caveat for caveat in page.caveats)  # nor do its questions count less
    assert compared([failing, *runs]).failure
    assert "too few answers are left" in compared([failing]).headline


def test_the_headline_counts_the_questions_answered_as_published() -> None:
    questions = list(load_questions("embedded").questions[:24])
    lost = questions[3].id
    result = audit(Failing(lambda name: name == lost), questions, orders="reverse")
    assert result.metrics.means["accuracy"].n == 23
    assert "on 23 of 24 questions" in result.headline


@pytest.mark.thorough
def test_shards_of_one_run_are_to_be_merged() -> None:
    questions = [question for question in load_questions("embedded") if len(question.options) == 3][:6]
    one, two, other = (
        AuditResult.of(audit.study.responses(model, questions, shards=ShardOptions(shard=shard)))
        for model, shard in (("fair", "1/2"), ("fair", "2/2"), ("prefers-a", "1/2"))
    )
    for compared in (AuditComparison.of, Leaderboard.of):
        with pytest.raises(
            InputError, match=r"shards 1 and 2 of 2 of one run of fair: join them first, with unslant merge MERGED"
        ):
            compared([one, other, two])
    page = AuditComparison.of([one, other]).page()
    assert page.caveats[-2:] == ("fair: shard 1 of 2 only.", "prefers-a: shard 1 of 2 only.")
    assert "cannot be distinguished" in page.headline


def logged(
    model: str, ids: range, is_right: Callable[[int], bool], right: Callable[[int], int] = lambda i: i % 4, **more: Any
) -> list[dict[str, Any]]:
    """Rows of a table: the right option, or the one after it."""
    return [
        {"id": f"q{i}", "question": f"Number {i}?", "options": [f"{i}{k}" for k in "wxyz"], "answer": right(i),
         "chosen": (right(i) + (not is_right(i))) % 4, "model": model, **{key: value(i) for key, value in more.items()}}
        for i in ids
    ]  # fmt: skip


def test_who_is_best_is_seen_on_the_same_questions() -> None:
    # Alpha's score is the highest, of easier questions; on those of all it is the lowest.
    alpha = [*logged("alpha", range(60), lambda i: i % 5 == 0), *logged("alpha", range(100, 300), lambda i: True)]
    beta = logged("beta", range(60), lambda i: i % 5 < 3)
    gamma = logged("gamma", range(60), lambda i: i % 5 < 4)
    assert audit(log=[*alpha, *beta]).headline.startswith("beta scores 0.40")
    assert audit(log=[*alpha, *beta, *gamma]).headline.startswith("gamma")


def lead_of(value: float, half: float) -> PairedDifference:
    """The best of several runs, compared with another on 200 questions."""
    difference = Estimate(value, value - half, value + half, 200, "made")
    return PairedDifference("accuracy", difference, difference, difference, 0, 0, math.nan, 0)


@pytest.mark.parametrize(
    ("pairs", "claim"),
    [
        ({"b": lead_of(0.1, 0.09)}, "a scores 0.10 (0.01 to 0.19) more than b on the same 200 questions, {how}"),
        ({"b": lead_of(0.1, 0.11)}, "a and b cannot be distinguished on 200 questions; about"),
        # alone the interval excludes 0, but the best of three was picked after looking at three pairs
        ({"b": lead_of(0.1, 0.09), "c": lead_of(0.2, 0.19)}, "a cannot be distinguished from any of the 2 other runs"),
        (
            {"b": lead_of(0.1, 0.05), "c": lead_of(0.3, 0.1)},
            "a scores highest of 3 runs, 0.10 (0.04 to 0.16) more than b",
        ),
        (
            {"b": lead_of(0.1, 0.11), "c": lead_of(0.3, 0.1)},
            "a cannot be distinguished from b; it scores more than 1 other run, {how}",
        ),
        (
            {"b": lead_of(-0.1, 0.05), "c": lead_of(0.3, 0.1)},
            "No run scores highest: a is ahead of most, and behind b, {how}",
        ),
    ],
)
def test_a_headline_claims_what_the_pairs_with_the_best_run_show(
    pairs: dict[str, PairedDifference], claim: str
) -> None:
    runs = [
        audit(RuleModel(lambda stem, labels, texts: [1.0] * len(texts), name), "embedded", limit=4) for name in "ab"
    ]
    made = AuditComparison.of(runs)
    headline = made._claim(["a", *pairs], [*pairs.values()])
    assert headline.startswith(claim.format(how=made._how))


@pytest.mark.parametrize(("sizes", "drawn", "orders"), [((4, 4, 4, 3), 4, 24), ((4, 3, 3, 4), 3, 6)])
def test_the_orders_drawn_are_those_of_the_most_common_number_of_options(
    sizes: tuple[int, ...], drawn: int, orders: int
) -> None:
    questions = [Question(f"q{i}", f"Which is {i}?", tuple("wxyz"[:n]), frozenset({0})) for i, n in enumerate(sizes)]
    runs = [audit(RuleModel(lambda stem, labels, texts: [1.0] * len(texts), name), questions) for name in "ab"]
    names = re.findall(r'"series": "([A-Z ]+)"', json.dumps(AuditComparison.of(runs).plot("orders").to_dict()))
    assert len(names) == 2 * orders
    assert {len(name.split()) for name in names} == {drawn}


def test_the_run_that_the_headline_names_has_the_first_line() -> None:
    easy = [row for k in range(4) for row in logged(f"easy-{k}", range(100 + 50 * k, 110 + 50 * k), lambda i: True)]
    beta = logged("beta", range(60), lambda i: i % 5 < 3)
    gamma = logged("gamma", range(60), lambda i: i % 5 < 4)
    page = AuditComparison.page(audit(log=[*easy, *beta, *gamma]))
    assert page.headline.startswith("gamma")
    assert page.lines[0].startswith("gamma: 0.80")
    assert "gamma" in repr(page.tiles[0])


@pytest.mark.parametrize(
    "other", [{"right": lambda i: (i + 1) % 4}, {"context": lambda i: f"Passage {i}, another."}], ids=["key", "passage"]
)
def test_questions_with_another_key_or_passage_are_not_the_same(other: dict[str, Any]) -> None:
    one = logged("alpha", range(60), lambda i: True, context=lambda i: f"Passage {i}.")
    two = logged("beta", range(60), lambda i: False, **{"context": lambda i: f"Passage {i}."} | other)
    headline = audit(log=[*one, *two]).headline
    assert headline.endswith("so nothing could be compared; if they are parts of one run, join the files")
    same = logged("beta", range(60), lambda i: False)  # its log does not hold the passages
    assert "on the same 60 questions" in audit(log=[*one, *same]).headline


def test_ids_alone_do_not_match_questions_with_other_numbers_of_options() -> None:
    def without_texts(model: str, labels: Callable[[int], str]) -> list[dict[str, Any]]:
        rows = logged(model, range(60), lambda i: i % 2 == 0, right=lambda i: i % 2)
        return [
            {"id": row["id"], "labels": [*labels(i)], "answer": row["answer"], "chosen": row["chosen"], "model": model}
            for i, row in enumerate(rows)
        ]

    one, two = (without_texts(model, lambda i: "ABCD") for model in ("alpha", "beta"))
    assert "on 60 questions" in audit(log=[*one, *two]).headline
    some = without_texts("beta", lambda i: "ABCD" if i < 40 else "ABC")
    result = audit(log=[*one, *some])
    assert {pair.difference.n for _, pair in result.differences} == {40}
    with_texts = logged("beta", range(60), lambda i: True)
    assert "on the same 60 questions" in audit(log=[*one, *with_texts]).headline
    none = without_texts("beta", lambda i: "ABC")
    assert "no questions in common" in audit(log=[*one, *none]).headline


def test_choices_and_scores_in_one_table_are_read_in_different_ways() -> None:
    def rows(model: str, scored: Callable[[int], bool]) -> list[dict[str, Any]]:
        given = logged(model, range(60), lambda i: i % 3 > 0)
        reordered = [
            {**row, "order": [3, 2, 1, 0], "options": row["options"][::-1], "answer": 3 - row["answer"],
             "chosen": 3 - row["chosen"]}
            for row in given
        ]  # fmt: skip
        both = [{"order": [0, 1, 2, 3], **row} for row in given] + reordered
        probabilities = [[0.7 if k == row["chosen"] else 0.1 for k in range(4)] for row in both]
        return [
            {**row, "chosen": None, "probs": p} if scored(i) else {**row, "probs": None}
            for i, (row, p) in enumerate(zip(both, probabilities, strict=True))
        ]

    chosen, scores, mixed = (
        rows(model, scored)
        for model, scored in (("alpha", lambda i: False), ("beta", lambda i: True), ("gamma", lambda i: i % 2 == 0))
    )
    together = audit(log=[*chosen, *scores])
    assert "Answers are read in different ways: alpha by words; beta by scores of labels." in together.page().notes
    assert "pbm" not in {pair.measure for _, pair in together.differences}
    caveats = audit(log=mixed).page().caveats
    assert any(caveat.startswith("Rows with a choice and no scores: 60; with scores: 60.") for caveat in caveats)
    assert audit(log=scores).page().caveats == ()


def test_passages_of_one_run_count_in_either_sequence() -> None:
    one = audit(log=logged("alpha", range(120), lambda i: i // 10 % 3 == 0, context=lambda i: f"Passage {i // 10}."))
    two = audit(log=logged("beta", range(120), lambda i: i // 10 % 4 > 0))
    (first,), (second,) = (
        [pair for _, pair in compare(*pair).differences if pair.measure == "accuracy"]
        for pair in ((one, two), (two, one))
    )
    assert first.p_value == pytest.approx(second.p_value)
    assert first.p_value > 1e-3  # McNemar's test, for questions on their own, has 1e-7
    assert first.difference.low == pytest.approx(-second.difference.high)


def test_a_run_without_the_score_is_named_and_none_is_lost_by_its_name() -> None:
    one, two = logged("m", range(60), lambda i: True), logged("m (1)", range(60), lambda i: i % 2 > 0)
    runs = [audit(log=rows) for rows in (one, one, two)]
    assert len(AuditComparison.of(runs).runs) == 3
    unpublished = [{**row, "model": "shuffled", "order": [1, 0, 2, 3]} for row in one]
    headline = audit(log=[*one, *two, *unpublished]).headline
    assert headline.endswith("; shuffled has no score as published")


@pytest.mark.thorough
def test_differences_are_for_other_subjects_where_the_audits_are() -> None:
    questions = [replace(q, subject=f"s{i % 6}") for i, q in enumerate(load_questions("embedded").questions[:36])]
    methods = []
    for across in (False, True):
        found = audit(["prefers-a", "fair"], questions, orders="reverse", across_subjects=across)
        (pair,) = [pair for _, pair in found.differences if pair.measure == "expected_accuracy"]
        methods.append(pair.difference.method)
    assert ["over subjects" in method for method in methods] == [False, True]


@pytest.mark.thorough
def test_the_tables_of_several_audits_are_written(tmp_path: Path) -> None:
    out = str(tmp_path / "both.parquet")
    unslant("audit", "-m", "fair", "-m", "prefers-a", "embedded", "--limit", "4", "--no-store", "--responses", out)
    tables = [tmp_path / f"both-{name}.parquet" for name in ("fair", "prefers-a")]
    assert [Responses.from_parquet(table).run.model for table in tables] == ["fair", "prefers-a"]


def even(name: str) -> RuleModel:
    return RuleModel(lambda stem, labels, texts: [1.0] * len(texts), name)


def stops_after(prompts: int, name: str = "m") -> RuleModel:
    """A model whose server stops answering."""

    def rule(stem: str, labels: list[str], texts: list[str]) -> list[float]:
        if len(model.seen) > prompts:
            raise ModelError("no connection")
        return [1.0] * len(texts)

    model = RuleModel(rule, name)
    return model


@pytest.mark.parametrize("prompts", [0, 30])
@pytest.mark.parametrize("asked", [audit, leaderboard])
def test_a_model_that_fails_is_left_out_and_the_others_are_described(asked: Any, prompts: int, tmp_path: Path) -> None:
    models = [even("first"), stops_after(prompts), even("last")]
    with pytest.warns(UserWarning, match="m is left out: no connection"):
        result = asked(models, load_questions("embedded", limit=4))
    assert len(models[0].seen) == len(models[2].seen) > 30
    assert result.failure == "m: no connection"
    values = result.to_dict()
    assert values["failed_models"] == {"m": "no connection"}
    assert values["caveats"][0] == "Left out: m: no connection."
    assert "first" in result.headline
    assert "last" in result.headline
    result.to_parquet(tmp_path / "r.parquet")
    assert len(list(tmp_path.iterdir())) == 2


def test_one_model_that_is_left_is_described_and_none_is_an_error() -> None:
    questions = load_questions("embedded", limit=4)
    with pytest.warns(UserWarning, match="m is left out"):
        result = audit([stops_after(3), even("last")], questions)
    assert result.page().caveats[0] == "Left out: m: no connection."
    assert result.headline.startswith("last scores")
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ModelError, match="no connection; no connection"):
        audit([stops_after(3), stops_after(3, "n")], questions)


@pytest.mark.thorough
def test_a_result_that_left_a_model_out_is_made_again_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ask, fails = Study.responses_of, [True]

    def responses_of(self: Any, job: Any, place: int) -> Any:
        if place and fails:
            raise ModelError("no connection")
        return ask(self, job, place)

    monkeypatch.setattr(Study, "responses_of", responses_of)
    models = ("-m", "fair", "-m", "prefers-a")
    with pytest.warns(UserWarning, match="prefers-a is left out"):
        ran = unslant("audit", *models, "--limit", 4, "--orders", "reverse", "--json", "a.json")
    assert ran.code == 3, ran.err
    fails.clear()
    again = unslant("rerun", "a.json", "--json", "b.json", "--quiet")
    assert again.code == 0, again.err
    assert "failed_models" not in Path("b.json").read_text()


def test_responses_of_models_whose_names_make_one_file_name_are_all_kept(tmp_path: Path) -> None:
    names, questions = (
        ["qwen:7b", "Qwen-7b", "qwen 7b", "漢" * 120, "漢" * 110],
        load_questions("embedded").questions[:2],
    )
    models = [RuleModel(lambda stem, labels, texts: [1.0] * len(labels), name) for name in names]
    audit(models, list(questions), orders="reverse").to_parquet(tmp_path / "responses.parquet")
    files = list(tmp_path.iterdir())
    assert len({file.name.casefold() for file in files}) == len(names)
    assert {Responses.from_parquet(file).run.model for file in files} == {*names}


def test_a_lead_counts_every_pair_as_looked_at() -> None:
    """The best of four was picked after looking at six pairs, and is as far ahead as its least certain lead says."""
    leads = {"b": 0.02, "c": 0.3, "d": 0.4}
    claim = lead("abcd", lambda _, other: Estimate(leads[other], leads[other] - 0.05, leads[other] + 0.05, 200, "made"))
    assert (claim.looked_at, claim.estimate.value, claim.differs) == (6, 0.02, False)


def test_sets_of_few_questions_widen_the_interval_of_a_mean_over_sets_and_no_more() -> None:
    rng = np.random.default_rng(0)
    sets = np.repeat([0, 1, 2], [100, 100, 5])
    values = np.where(sets == 2, 1.0, rng.integers(0, 2, 205)).astype(np.float64)
    weights = 1 / np.bincount(sets)[sets]
    bootstrap = Bootstrap(205, seed=0)
    plain = bootstrap.ratio(values * weights, weights, room="bounds, unsure", bounds=(0.0, 1.0))
    mean = mean_over_sets(bootstrap, values, weights, sets, (0.0, 1.0))
    assert mean.value == plain.value
    # five right answers of five leave room for less below, and for nothing above
    assert plain.low - 0.2 < mean.low < plain.low - 0.02
    assert plain.high <= mean.high < plain.high + 0.02


def test_numbers_that_depend_on_how_many_orders_are_shown_are_compared_only_in_as_many(tmp_path: Path) -> None:
    """The answers of one run in 24 orders and in 4 of them: consistency was said to differ by 0.19 (0.12 to 0.27)."""
    every = synthetic_audit(synthetic_questions(120), lean=0.3, knows=0.4)
    table = every.responses.table
    rotations = [[*range(i, 4), *range(i)] for i in range(4)]
    kept = [contents in rotations for contents in table["contents"].to_pylist()]
    few = AuditResult.of(replace(every.responses, table=table.filter(kept)))
    assert [block.k for block in few.scores.blocks] == [4]
    pair = paired(("few", few), ("every", every))
    assert [one.measure for one in pair.differences] == ["accuracy", "expected_accuracy"]
    assert pair.remarks == [
        "Not compared: voted, right in every order, consistency and PBM. They depend on the number of orders, which "
        "differs: 24 of every against 4 of few, for example."
    ]
    every.to_parquet(tmp_path / "every.parquet")
    (tmp_path / "every.json").write_text(json.dumps(every.to_dict()))
    for file in ("every.parquet", "every.json"):
        compared = Baseline.read(tmp_path / file, AuditResult).compared_with(few)
        assert {*compared.to_dict()["baseline"]} == {"file", "date", "accuracy", "expected_accuracy"}
        assert f"Against {file}: no change shown in 2 numbers" in compared.page().lines[0]
    alike = Baseline.read(tmp_path / "every.json", AuditResult).compared_with(every)
    assert {"consistency", "pbm", "vote_accuracy", "robust_accuracy"} < {*alike.to_dict()["baseline"]}
    assert len(paired(("a", few), ("b", few)).differences) == 6


def test_orders_that_failed_or_were_left_out_by_design_do_not_hide_a_number_from_a_baseline_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean number of orders was compared: it differs with one failed prompt, two phases and --until."""
    monkeypatch.setattr(unslant_auditing, "MOST_WHOLE", 20)
    monkeypatch.setattr(unslant_auditing, "PART", 16)
    questions = make_questions(60, (3, 4, 4))
    model = RuleModel(
        lambda stem, labels, texts: [(1.5 if i == 0 else 1.0) * len(text) for i, text in enumerate(texts)]
    )
    whole, phases, until = (audit(model, questions, **how) for how in ({"orders": "all"}, {}, {"until": 0.2}))
    assert whole.run.two_phase is None
    assert phases.run.two_phase is not None
    table = whole.responses.table
    last = max(i for i, kind in enumerate(table["kind"].to_pylist()) if kind == "order")
    lost = AuditResult.of(replace(whole.responses, table=table.take([i for i in range(len(table)) if i != last])))
    assert lost.metrics.counts.incomplete == 1
    for now, before in ((lost, whole), (whole, lost), (phases, whole), (whole, phases), (until, whole)):
        (tmp_path / "before.json").write_text(json.dumps(before.to_dict()))
        changes = Baseline.read(tmp_path / "before.json", AuditResult).compared_with(now).to_dict()["baseline"]
        assert {"consistency", "pbm", "vote_accuracy", "robust_accuracy"} < {*changes}
    less = audit(model, questions, orders="latin")
    (tmp_path / "before.json").write_text(json.dumps(whole.to_dict()))
    changes = Baseline.read(tmp_path / "before.json", AuditResult).compared_with(less)
    assert not {"consistency", "pbm", "vote_accuracy", "robust_accuracy"} & {*changes.to_dict()["baseline"]}
    assert "over different numbers of orders: voted" in " ".join(changes.summary(details=True).split())
