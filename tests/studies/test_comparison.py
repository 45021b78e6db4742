"""Runs side by side: differences, ranks, and agreement with another ranking."""

from __future__ import annotations

import math

import pytest

from unslant import audit, load_questions
from unslant.auditing.comparison import AuditComparison
from unslant.experiment.comparison import UNPAIRED, Comparison, agreements
from unslant.experiment.result import Paired
from unslant.metrics import METRICS, Estimate, PairedDifference, wilson

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
    assert comparison.unranked == ["Not in the ranking by this name: a; it holds b, c, d, other."]
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


def test_a_run_on_other_questions_is_not_among_those_that_cannot_be_distinguished() -> None:
    questions = load_questions("embedded").questions
    one, two, apart = (
        audit(model, list(questions[start : start + 12]), orders="reverse")
        for model, start in (("prefers-a", 0), ("fair", 0), ("prefers-last", 12))
    )
    headline = AuditComparison.of([one, two, apart]).headline
    assert headline == f"{AuditComparison.of([one, two]).headline}; prefers-last answered other questions"
