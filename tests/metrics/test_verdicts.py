"""No claim without an interval that carries it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from unslant.metrics import Bootstrap, Estimate, Verdict
from unslant.metrics.estimate import FEWEST, p_of, verdict, verdicts
from unslant.reports.numbers import about, unsettled


def estimate(value: float, half: float, n: int = 40) -> Estimate:
    return Estimate(value, value - half, value + half, n, "made")


ESTIMATES = st.builds(estimate, st.floats(-1, 1), st.floats(1e-6, 1), st.integers(1, 5000))


@given(ESTIMATES, st.floats(-1, 1))
def test_alone_a_difference_is_claimed_exactly_where_the_interval_excludes_the_null(one: Estimate, null: float) -> None:
    assume(min(abs(one.low - null), abs(one.high - null)) > 1e-12)  # at the bound itself, rounding decides
    found = verdict(one, null=null)
    assert found.differs == (one.excludes(null) and one.n >= FEWEST)
    if found.differs:
        assert found.kind == ("above" if one.value > null else "below")


@given(st.lists(ESTIMATES, min_size=1, max_size=9))
def test_the_joint_interval_holds_the_alone_one_and_keeps_what_is_claimed(several: list[Estimate]) -> None:
    for one in verdicts(several):
        joint, alone = one.jointly(), one.estimate
        assert one.joint == joint.within(-1.0, 1.0)
        assert joint.excludes(0.0) <= alone.excludes(0.0)
        assert joint.value == alone.value
        if one.kind == "above":
            assert 0 <= joint.low <= alone.low < alone.high <= joint.high
        elif one.kind == "below":
            assert joint.low <= alone.low < alone.high <= joint.high <= 0
        else:
            assert joint.low <= alone.low < alone.high <= joint.high


def test_the_largest_of_nine_losses_is_held_by_its_joint_interval() -> None:
    """Nine that lose 0.1 of 400 answers each: the interval of the largest loss alone holds 0.1 in 0.82."""
    rng, held = np.random.default_rng(0), []
    for _ in range(150):
        values = np.where(rng.random((400, 9)) < 0.2, -1.0, 0.0) + (rng.random((400, 9)) < 0.1)
        several = verdicts([Bootstrap(400).mean(column, share=False) for column in values.T])
        largest = min(several, key=lambda one: one.estimate.value)
        held.append([one.low <= -0.1 <= one.high for one in (largest.joint, largest.estimate)])
    joint, alone = np.mean(held, axis=0)
    assert joint >= 0.95 > 0.9 > alone


@given(ESTIMATES, st.integers(1, 100))
def test_the_more_are_looked_at_the_less_is_claimed(one: Estimate, looked_at: int) -> None:
    assert verdict(one).differs or not verdict(one, looked_at=looked_at).differs


@pytest.mark.parametrize(
    "one",
    [
        Estimate.undefined("none"),
        Estimate.bare(0.9, 400, "no interval"),
        *(estimate(1.0, 0.01, n) for n in (1, 2, 3, 4)),
        estimate(0.0, 0.0, 3),
        estimate(math.inf, 0.1),
    ],
)
def test_nothing_is_claimed_without_an_interval_or_of_too_few(one: Estimate) -> None:
    found = verdict(one, bound=2.0)
    assert (found.kind, found.needed) == ("unclear", None)


def test_equality_needs_a_bound_that_holds_the_whole_interval() -> None:
    assert verdict(estimate(0.01, 0.03)).kind == "unclear"
    assert verdict(estimate(0.01, 0.03), bound=0.05).kind == "equal"
    assert verdict(estimate(0.01, 0.03), bound=0.039).kind == "unclear"
    assert verdict(estimate(0.02, 0.01), bound=0.05).kind == "equal"
    assert verdict(estimate(0.3, 0.01), null=0.31, bound=0.02).kind == "equal"


def test_a_test_and_its_interval_must_agree() -> None:
    assert verdict(estimate(0.2, 0.1), p=0.01).kind == "above"
    assert verdict(estimate(0.2, 0.1), p=0.2).kind == "unclear"
    assert verdict(estimate(0.2, 0.3), p=0.001).kind == "unclear"
    assert verdict(estimate(0.2, 0.1), p=math.nan).kind == "above"


def test_a_family_is_corrected_for_its_number() -> None:
    clear, near = estimate(0.5, 0.1), estimate(0.105, 0.1)
    assert [one.kind for one in verdicts([near])] == ["above"]
    assert [one.kind for one in verdicts([clear, near, near, near])] == ["above", *["unclear"] * 3]
    missing = Estimate.undefined("none")
    assert [one.kind for one in verdicts([near, missing, missing])] == ["above", "unclear", "unclear"]


@pytest.mark.thorough
def test_families_of_nothing_are_rarely_claimed() -> None:
    """Of 400 families of ten true zeros, about one in twenty has any claim."""
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(400):
        sample = rng.choice([-1.0, 0.0, 1.0], size=(10, 60), p=(0.2, 0.6, 0.2))
        family = [Bootstrap(60).mean(one, share=False) for one in sample]
        wrong += any(one.differs for one in verdicts(family))
    assert wrong / 400 < 0.08


def test_the_number_needed_settles_it_four_times_in_five() -> None:
    rng = np.random.default_rng(5)

    def difference(n: int) -> Estimate:
        return Bootstrap(n).mean(rng.choice([-1.0, 0.0, 1.0], size=n, p=(0.1, 0.7, 0.2)), share=False)

    exact = Estimate(0.1, 0.1 - 1.96 * math.sqrt(0.29 / 40), 0.1 + 1.96 * math.sqrt(0.29 / 40), 40, "made")
    needed = verdict(exact).needed
    assert needed
    shown = np.mean([verdict(difference(needed)).kind == "above" for _ in range(400)])
    assert 0.72 < shown < 0.88
    assert verdict(exact, looked_at=10).needed > needed  # type: ignore[operator]


def test_a_p_value_is_read_off_the_interval() -> None:
    assert p_of(estimate(0.1, 0.1), 0.0) == pytest.approx(0.05)
    assert p_of(estimate(0.0, 0.1), 0.0) == 1.0
    uneven = Estimate(0.9, 0.7, 0.95, 40, "made")  # near its bound: exactly 0.05 at either end
    assert [p_of(uneven, end) for end in (uneven.low, uneven.high)] == pytest.approx([0.05, 0.05])
    assert p_of(estimate(0.2, 0.1, 10**6), 0.0) == pytest.approx(8.9e-5, rel=0.02)


def test_what_is_open_is_said_with_the_questions_that_would_settle_it() -> None:
    assert unsettled(verdict(estimate(0.02, 0.05))) == "on 40 questions; about 510 would settle it"
    assert unsettled(verdict(estimate(0.0, 0.05))) == "on 40 questions"
    assert unsettled(verdict(estimate(0.5, 0.1, 1))) == "on 1 question: too few for a verdict"
    assert unsettled(verdict(estimate(0.5, 0.1, 3)), "model") == "on 3 models: too few for a verdict"
    assert about(14321) == "14,000"


def test_no_model_is_ahead_because_a_sample_shows_no_question_that_tells_it_from_the_other() -> None:
    # what both know differs by a rare slip in one of 24 orders; a few other questions, by 3/4, which most samples miss
    rng, held, claimed, repeats, size = np.random.default_rng(0), 0, 0, 200, 100
    truth = 0.75 * 0.01 - 0.05 / 24
    for _ in range(repeats):
        slips = np.where(rng.random(size) < 0.05, -1 / 24, 0.0)
        values = np.where(rng.random(size) < 0.01, 0.75, slips)
        estimate = Bootstrap(size).mean(values, share=False, room="bounds, unsure")
        held += estimate.low <= truth <= estimate.high
        claimed += estimate.high < 0
    assert held / repeats >= 0.93
    assert not claimed  # the truth is above 0
    shown = np.r_[np.full(4, 0.5), np.full(4, -0.5), np.zeros(size - 8)]
    assert Bootstrap(size).mean(shown, share=False, room="bounds, unsure").high < 0.03


@pytest.mark.parametrize(("size", "runs", "known", "sure"), [(60, 10, 0.97, 0.97), (100, 10, 0.99, 0.97),
                                                             (20, 5, 0.97, 0.9), (20, 10, 0.9, 0.9)])  # fmt: skip
def test_a_slip_in_one_run_does_not_show_what_rare_questions_lose(
    size: int, runs: int, known: float, sure: float
) -> None:
    """The mean drop of a model that remembers the published form of what it does not know: 0.87 to 0.91 were held."""
    rng, held, repeats = np.random.default_rng(0), 0, 200
    truth = known * (1 - sure) + (1 - known) * 0.75
    for _ in range(repeats):
        share = np.where(rng.random(size) < known, sure, 0.25)
        drop = 1 - rng.binomial(runs, share) / runs
        estimate = Bootstrap(size).mean(drop, share=False, room="bounds, unsure")
        held += estimate.low <= truth <= estimate.high
    assert held / repeats >= 0.93


def test_where_all_are_alike_the_number_needed_is_not_that_of_a_root() -> None:
    """Of 10 questions without a difference, `about 3,900 would settle it`; 190 do."""

    def alike(n: int) -> Verdict:
        return verdict(Bootstrap(n).mean(np.zeros(n), share=False), bound=0.02)

    needed = alike(10).needed
    assert needed
    assert alike(needed).kind == "equal"
    assert alike(needed // 2).kind == "unclear"
