from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.studies.boundary_rows import LABELS, row
from unslant.errors import InputError
from unslant.metrics.association import agreement
from unslant.presentations import NONE
from unslant.responses import Response, Responses
from unslant.studies.instruction_boundary.comparison import across_models
from unslant.studies.instruction_boundary.metrics import (
    JUDGED,
    answer_form,
    boundary_metrics,
)
from unslant.studies.instruction_boundary.result import result_of


def table(*rows):
    return Responses.from_rows(rows)


# Two single (one right), two none (one right), two several (none right, one of them partly).
CHOICE = (
    row(0, {0}, {0}),
    row(1, {1}, {2}),
    row(2, {NONE}, {NONE}),
    row(3, {NONE}, {3}),
    row(4, {0, 1}, {0}),
    row(5, {2, 3}, {1, 2, 3}),
)


def test_accuracies_by_hand():
    metrics = boundary_metrics(table(*CHOICE))
    one = metrics.of("vanilla", "choice")
    assert one["accuracy"].value == pytest.approx(2 / 6)
    assert one["stability"].value == 0.5
    assert one["generalization"].value == 0.25
    assert one["generalization_none"].value == 0.5
    assert one["generalization_several"].value == 0
    assert one["robustness"].value == pytest.approx(2 * 0.5 * 0.25 / 0.75)
    assert (one["accuracy"].n, one["stability"].n, one["generalization"].n) == (6, 2, 4)
    assert {form: share.value for form, share in one.outputs.items()} == pytest.approx(
        {"single": 4 / 6, "several": 1 / 6, "none": 1 / 6}
    )
    assert one.truth == pytest.approx({"single": 1 / 3, "several": 1 / 3, "none": 1 / 3})
    assert one["outputs_sparse"].value == pytest.approx(2 / 6)


def test_options_of_the_same_text_are_one_answer_in_the_score_and_in_its_row():
    replies = ({2}, {0, 2}, {1}, {2, 3})
    rows = [replace(row(i, {0}, chosen), text_ranks=(1, 0, 1, 2)) for i, chosen in enumerate(replies)]
    result = result_of(table(*rows))
    assert result.metrics.of("vanilla", "choice")["accuracy"].value == 0.5
    assert result.of_questions()["right"] == [1, 1, 0, 0]


def test_statuses_are_never_answers():
    rows = [row(0, {0}, (), status="unparsed"), row(1, {0}, (), status="refused"), row(2, {0}, (), status="error")]
    one = boundary_metrics(table(*rows, row(3, {0}, {0}))).of("vanilla", "choice")
    assert one["accuracy"].n == 3  # the error is no reply
    assert one["accuracy"].value == pytest.approx(1 / 3)
    assert (one["unparsed"].value, one["refused"].value) == pytest.approx((1 / 3, 1 / 3))
    assert (one["errors"].value, one["errors"].n) == (0.25, 4)
    assert (one.outputs["single"].n, one.outputs_readable["single"].n) == (3, 1)


def test_what_the_judge_read_is_counted():
    rows = [row(0, {0}, {0}), row(1, {0}, {0}, elicitation=JUDGED)]
    one = boundary_metrics(table(*rows)).of("vanilla", "choice")
    assert one["judged"].value == 0.5
    assert one["accuracy"].value == 1


def test_judging_and_the_average_over_kinds():
    judging = [
        row(0, {0}, {0}, verdict=True),
        row(1, {1}, {1}, verdict=True),
        row(2, {2}, {2}, verdict=True),
        row(3, {2}, {0}, verdict=True),
    ]
    metrics = boundary_metrics(table(*CHOICE, *judging))
    one = metrics.of("vanilla", "judging")
    assert (one["stability"].value, one["generalization"].value) == (1, 0.5)
    assert one["robustness"].value == pytest.approx(2 / 3)
    assert one.outputs["True"].value == 0.5
    assert not one["generalization_none"].defined
    assert metrics.robustness["vanilla"].value == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert metrics.robustness["vanilla"].n == 10


def test_change_against_vanilla():
    other = [row(i, r.answers, r.chosen, setting="vagueness") for i, r in enumerate(CHOICE)]
    other[1] = row(1, {1}, {1}, setting="vagueness")
    other[2] = row(2, {NONE}, {0}, setting="vagueness")
    other[4] = row(4, {0, 1}, {0, 1}, setting="vagueness")
    (change,) = boundary_metrics(table(*CHOICE, *other)).changes
    assert (change.gained, change.lost) == (2, 1)
    assert change.difference.value == pytest.approx(1 / 6)
    assert change.p_value == pytest.approx(1.0)
    assert change.difference.n == 6


def test_repeated_samples_are_averaged_by_question():
    rows = [row(0, {0}, {0}, repeat=0), row(0, {0}, {1}, repeat=1), row(1, {NONE}, {NONE})]
    one = boundary_metrics(table(*rows)).of("vanilla", "choice")
    assert one["accuracy"].value == 0.75
    assert one["accuracy"].n == 2


@given(st.lists(st.tuples(st.sampled_from(["single", "several", "none"]), st.booleans()), min_size=2, max_size=40))
def test_rates_agree_with_each_other(questions):
    truths = {"single": {0}, "several": {0, 1}, "none": {NONE}}
    rows = [row(i, truths[form], truths[form] if right else {2}) for i, (form, right) in enumerate(questions)]
    one = boundary_metrics(table(*rows)).of("vanilla", "choice")
    n = len(rows)
    assert sum(share.value for share in one.outputs.values()) == pytest.approx(1)
    parts = [
        e.value * e.n
        for e in (one["stability"], one["generalization_none"], one["generalization_several"])
        if e.defined
    ]
    assert sum(parts) == pytest.approx(one["accuracy"].value * n)
    if one["robustness"].defined:
        low, high = sorted((one["stability"].value, one["generalization"].value))
        assert low - 1e-12 <= one["robustness"].value <= high + 1e-12
        interval = one["robustness"]
        assert math.isnan(interval.low) or interval.low <= interval.value <= interval.high


def test_disturbing_options_by_number():
    rows = [row(i, {0}, {0} if i < 4 - k else {1}, setting=f"disturbing-{k}") for k in (1, 2, 3) for i in range(4)]
    metrics = boundary_metrics(table(*rows))
    assert {k: e.value for k, e in metrics.disturbing().items()} == {1: 0.75, 2: 0.5, 3: 0.25}
    assert not metrics.robustness["disturbing-1"].defined


def test_json():
    plain = boundary_metrics(table(*CHOICE)).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["settings"][0]["accuracy"]["n"] == 6


def test_a_table_without_answers_in_words():
    scored = Response("q", "given", "cloze", LABELS, (0, 1, 2, 3), frozenset({0}), 4, logprobs=np.zeros(4))
    with pytest.raises(InputError, match="no generated replies"):
        boundary_metrics(table(scored))


def test_forms():
    assert answer_form("choice", frozenset({NONE})) == "none"
    assert answer_form("choice", frozenset({2})) == "single"
    assert answer_form("judging", frozenset({2})) == "Unknown"


def test_over_models_equals_the_formulas_of_the_paper():
    differences = [0.1, -0.05, 0.2, 0.02, 0.08]
    accuracies = {f"m{i}": {"vanilla": 0.5, "vagueness": 0.5 + d} for i, d in enumerate(differences)}
    (result,) = across_models(accuracies)
    mean, sd = np.mean(differences), np.std(differences, ddof=1)
    assert result.difference.value == pytest.approx(mean)
    assert result.t == pytest.approx(mean / (sd / math.sqrt(5)))
    assert result.difference.n == 5
    # 2.776 is the 97.5 % quantile of Student's t with 4 degrees of freedom.
    assert result.difference.high == pytest.approx(mean + 2.776445 * sd / math.sqrt(5))


def test_over_one_model_there_is_no_test():
    (result,) = across_models({"m": {"vanilla": 0.5, "vagueness": 0.25}})
    assert result.difference.value == -0.25
    assert math.isnan(result.p_value)
    (same,) = across_models({"a": {"vanilla": 0.5, "vagueness": 0.25}, "b": {"vanilla": 0.75, "vagueness": 0.5}})
    assert math.isnan(same.p_value)  # a difference of a few questions is easily the same in two models
    assert math.isnan(same.difference.low)
    assert json.dumps(same.to_dict(), allow_nan=False)


def test_leaderboards():
    ours, kinds = {"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.3, "e": 0.1}, ("kendall", "spearman")
    same = agreement(ours, ours, kinds)
    assert (same["kendall"].value, same["spearman"].value) == pytest.approx((1, 1))
    assert same["kendall_p"].value == pytest.approx(2 / math.factorial(5))
    swapped = agreement(ours, {"a": 5, "b": 3, "c": 4, "d": 2, "e": 1, "f": 9}, kinds)
    assert swapped["kendall"].value == pytest.approx(0.8)
    assert swapped["spearman"].value == pytest.approx(0.9)
    assert swapped["kendall"].low < 0.8 < swapped["kendall"].high
    assert swapped["kendall"].n == 5


def test_every_share_is_of_all_replies_and_the_readable_ones_have_their_own():
    rows = [
        row(0, {0}, {0}),
        row(1, {0}, (), status="unparsed"),
        row(2, {NONE}, {NONE}),
        row(3, {NONE}, (), status="refused"),
        row(4, {0, 1}, (), status="error"),
    ]
    one = boundary_metrics(table(*rows)).of("vanilla", "choice")
    assert {form: share.value for form, share in one.outputs.items()} == {"single": 0.25, "several": 0, "none": 0.25}
    assert one.outputs_readable["none"].value == 0.5
    assert (one["outputs_sparse"].value, one["outputs_sparse"].n) == (0.25, 4)
    assert (one["unreadable"].value, one["unparsed"].value, one["refused"].value) == (0.5, 0.25, 0.25)
    assert (one["accuracy"].value, one["readable"].value, one["readable"].n) == (0.5, 1, 2)
    assert one["errors"].value == 0.2


@pytest.mark.parametrize("unparsed", [0, 1, 2])
def test_the_first_screen_says_how_many_replies_have_no_answer(unparsed):
    rows = [row(i, {0} if i % 2 else {NONE}, {0} if i % 2 else {NONE}) for i in range(30)]
    rows[:unparsed] = [row(i, {0} if i % 2 else {NONE}, (), status="unparsed") for i in range(unparsed)]
    rows.append(row(0, {0}, {0}, "vagueness"))
    told = result_of(table(*rows)).summary(width=200)
    assert ("hold no answer" in told) == (unparsed == 2)  # 7 %; one is 3 %
    assert (
        "7\u00a0% of the replies hold no answer under vanilla, multiple choice (right among readable replies: 1" in told
    ) == (unparsed == 2)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("verdicts", [True, False])
def test_a_robustness_of_0_or_1_is_not_certain(right, verdicts):
    rows = [row(i, truth, truth if right else {3}) for i in range(10) for truth in [{0} if i % 2 else {NONE}]]
    if verdicts:
        rows += [row(i, {i % 3}, {0}, verdict=True) for i in range(12)]
    metrics = boundary_metrics(table(*rows))
    of_choice = metrics.of("vanilla", "choice")["robustness"]
    assert of_choice.value == right
    assert of_choice.high - of_choice.low > 0.25  # 5 questions of each form
    assert of_choice.low <= of_choice.value <= of_choice.high
    both = metrics.robustness["vanilla"]
    assert both.low < both.high
    assert both.low <= both.value <= both.high


def test_the_interval_of_robustness_has_room_for_failures_that_a_sample_misses():
    """One failure in 100 usual questions, none in 100 unusual ones: a sample without any has up to 3 % of them."""
    rows = [row(i, truth, {3} if i == 1 else truth) for i in range(200) for truth in [{0} if i % 2 else {NONE}]]
    rs = boundary_metrics(table(*rows)).of("vanilla", "choice")["robustness"]
    assert rs.low < 2 * 0.99 * 0.97 / 1.96 < rs.value < rs.high


def test_robustness_of_zero_keeps_the_chance_of_more():
    rows = [row(0, {0}, {0}), row(1, {NONE}, {1})]  # SR 1, GR 0, one question each
    found = boundary_metrics(table(*rows)).of("vanilla", "choice")["robustness"]
    assert (found.value, found.low) == (0, 0)
    assert found.high > 0.8


@pytest.mark.parametrize("n", [4, 6, 7])
def test_robustness_on_few_questions_has_the_interval_of_its_parts(n: int) -> None:
    rows = [row(i, truth, truth if i < 3 else {3}) for i in range(n) for truth in [{0} if i % 2 else {NONE}]]
    robustness = boundary_metrics(table(*rows)).of("vanilla", "choice")["robustness"]
    assert "Bonferroni" in robustness.method
    assert robustness.note == ""
    assert robustness.low < robustness.value < robustness.high
    assert robustness.high - robustness.low > 0.4


def test_no_interval_depends_on_the_sequence_of_the_rows():
    rng = np.random.default_rng(0)
    rows = [row(i, t := {0} if i % 2 else {NONE}, t if rng.random() < 0.6 else {3}) for i in range(30)]
    assert boundary_metrics(table(*rows)).robustness == boundary_metrics(table(*rows[::-1])).robustness


def test_a_loss_is_in_accuracy_and_not_a_part_of_it():
    """`loses 0.50 of its accuracy` would be half of what it had; all of it is lost here."""
    vanilla = [row(i, {0}, {0 if i < 20 else 1}) for i in range(40)]
    vague = [row(i, {0}, {1}, setting="vagueness") for i in range(40)]
    headline = result_of(table(*vanilla, *vague)).page().headline
    assert " loses 0.50 (0.3" in headline
    assert " in multiple-choice accuracy when " in headline


def test_a_little_noise_does_not_show_that_a_setting_changes_nothing():
    """Of ten samples of each reply one may be wrong; a question that the setting changes may be missing."""
    rows = [
        row(i, {0}, {int(repeat == 0 and i % 3 == (setting == "vagueness"))}, setting, repeat=repeat)
        for setting in ("vanilla", "vagueness")
        for i in range(40)
        for repeat in range(10)
    ]
    (change,) = [one for one in boundary_metrics(table(*rows)).changes if one.kind == "choice"]
    assert change.difference.low < -0.05
    assert change.difference.high > 0.05


def test_where_every_effect_is_a_gain_the_headline_and_the_tile_name_the_largest():
    """The headline named the smallest, as the lowest of all changes."""
    known = {"vanilla": 10, "vagueness": 28, "mitigation": 38}
    rows = [row(i, {0}, {0 if i < n else 1}, setting=name) for name, n in known.items() for i in range(40)]
    page = result_of(table(*rows)).page()
    assert " gains 0.70 (" in page.headline
    assert "change under mitigation" in {tile.name for tile in page.tiles}
    lower = [row(i, {0}, {1}, setting="missing-choices") for i in range(40)]
    assert " loses 0.25 (" in result_of(table(*rows, *lower)).page().headline
