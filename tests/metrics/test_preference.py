"""Planted habits are found and named, and nothing is named where nothing was planted."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from benchmarks.planted import Planted, Weights, at, middle, none, planted_scores
from unslant.metrics import Bootstrap, OrderScores, Preference, preference, read_scores
from unslant.metrics.labels import Place
from unslant.metrics.preference import by_part, in_words, listed, when_unsure
from unslant.metrics.preference.habit import Habit, HabitSearch, Places, _compared, places_of
from unslant.metrics.sampling import brown_forsythe, holm, moments
from unslant.presentations import ALPHABETS

from .synthetic import Answerer, always, ask, first, guesses, knows, label_a, last, leaning, make_questions, one_hot

MIXED = (2, 3, 4, 5, 6, 7, 8)
SEEDS = 4
W = 2.5
NONE = "no preference that moves 5 points of all answers"

HABITS = [
    (Planted(label=at(0)), "falls back on A when unsure", ""),
    (Planted(label=at(2)), "falls back on C when unsure", ""),
    (Planted(label=at(-1)), "falls back on D when unsure", "falls back on the last label when unsure"),
    (Planted(position=at(0)), "falls back on the first position when unsure", ""),
    (Planted(position=at(1)), "falls back on the second position when unsure", ""),
    (Planted(position=at(-1)), "falls back on the last position when unsure", ""),
    (Planted(label=at(3, -W)), "avoids D when unsure", ""),
    (Planted(label=at(0, -W)), "avoids A when unsure", ""),
    (Planted(position=at(0, -W)), "avoids the first position when unsure", ""),
    (Planted(position=at(-1, -W)), "avoids the last position when unsure", ""),
    (Planted(label=at(1, W, 2)), "falls back on B or C when unsure", ""),
    (Planted(label=at(0, W, 3)), "falls back on A or D when unsure", ""),
    (Planted(label=at(1, -W, 2)), "falls back on A or D when unsure", "avoids B and C when unsure"),
    (Planted(position=at(0, W, 1)), "falls back on the first or second position when unsure", ""),
    (Planted(position=at(0, W, -1)), "falls back on the first or last position when unsure", ""),
    (Planted(position=middle()), "falls back on a middle position when unsure", ""),
    (Planted(label=at(0), position=at(-1)), "falls back on A or the last position when unsure", ""),
    (Planted(label=lambda n: at(0, 1.5)(n) + at(3, -1.5)(n)), "falls back on A, away from D, when unsure", ""),
    # a model that takes one label twice as often as another, as a real one does
    (Planted(label=lambda n: at(2, 2.0)(n) + at(0, 1.3)(n)), "falls back on A or C when unsure", ""),
    (Planted(label=at(0, 0.3)), "falls back on A when unsure", ""),
    (Planted(label=at(0), knows=0.95), "falls back on A when unsure", ""),
    (Planted(position=at(-1), knows=0.95), "falls back on the last position when unsure", ""),
    (Planted(label=at(0, 60), knows=0, hard=True), "always answers A", ""),
    (Planted(position=at(0, 2), hard=True), "falls back on the first position when unsure", ""),
    (Planted(), NONE, ""),
    (Planted(knows=0), NONE, ""),
    (Planted(hard=True), NONE, ""),
]


def phrases(model: Planted, count: int = 400, seeds: int = SEEDS, **how: object) -> Counter[str]:
    return Counter(preference(planted_scores(model, count, seed=s, **how)).phrase for s in range(seeds))  # type: ignore[arg-type]


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "four", "mixed"), HABITS, ids=[f"{i} {h[1]}" for i, h in enumerate(HABITS)])
@pytest.mark.parametrize("sizes", [(4,), MIXED], ids=["four options", "mixed"])
def test_what_is_planted_is_said(model: Planted, four: str, mixed: str, sizes: tuple[int, ...]) -> None:
    expected = mixed if len(sizes) > 1 and mixed else four
    assert phrases(model, sizes=sizes) == {expected: SEEDS}


@pytest.mark.slow
@pytest.mark.parametrize(("model", "four", "mixed"), HABITS, ids=[f"{i} {h[1]}" for i, h in enumerate(HABITS)])
@pytest.mark.parametrize("sizes", [(4,), MIXED], ids=["four options", "mixed"])
def test_what_is_planted_is_said_in_nearly_every_set(
    model: Planted, four: str, mixed: str, sizes: tuple[int, ...]
) -> None:
    expected = mixed if len(sizes) > 1 and mixed else four
    assert phrases(model, sizes=sizes, seeds=20)[expected] >= 19


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "sizes", "phrase"),
    [
        (Planted(label=at(0)), (2,), "falls back on A when unsure"),
        (Planted(label=at(0, -W)), (2,), "falls back on B when unsure"),
        (Planted(position=at(0)), (2,), "falls back on the first position when unsure"),
        (Planted(position=at(-1)), (2,), "falls back on the last position when unsure"),
        (Planted(position=at(0)), (3,), "falls back on the first position when unsure"),
        (Planted(position=middle()), (3,), "falls back on the middle position when unsure"),
        (Planted(position=at(-1)), (3,), "falls back on the last position when unsure"),
        (Planted(label=at(1)), (3,), "falls back on B when unsure"),
        (Planted(label=at(0, W, 1)), (3,), "avoids C when unsure"),
        (Planted(position=at(0)), (5,), "falls back on the first position when unsure"),
        (Planted(position=middle()), (5,), "falls back on the middle position when unsure"),
        (Planted(label=at(2)), (5,), "falls back on C when unsure"),
        (Planted(position=at(-1)), (5,), "falls back on the last position when unsure"),
        (Planted(position=middle()), (3, 5), "falls back on the middle position when unsure"),
        (Planted(position=middle(-W)), (3, 5), "avoids the middle position when unsure"),
        (Planted(label=at(0, W, 1, 2)), (8,), "falls back on A, B or C when unsure"),
        (Planted(label=at(3, -W)), (8,), "avoids D when unsure"),
        (Planted(label=at(0)), (12,), "falls back on A when unsure"),
        # with three options, both places are one
        (Planted(label=lambda n: at(2)(n) + at(-1, 1.5)(n)), MIXED, "falls back on C or the last label when unsure"),
    ],
)
def test_other_numbers_of_options(model: Planted, sizes: tuple[int, ...], phrase: str) -> None:
    assert phrases(model, sizes=sizes) == {phrase: SEEDS}


def in_turn(subject: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return subject % 2


@pytest.mark.parametrize("sizes", [(4,), MIXED], ids=["four options", "mixed"])
@pytest.mark.parametrize(
    ("other", "phrase"),
    [
        ((at(3), none), "falls back on A in 10 subjects, on D in 10 when unsure"),
        ((none, none), "falls back on A in 10 subjects, shows no preference in 10 when unsure"),
        ((at(0, -W), none), "falls back on A in 10 subjects, avoids A in 10 when unsure"),
    ],
)
def test_subjects_that_differ(other: tuple, phrase: str, sizes: tuple[int, ...]) -> None:
    model = Planted(label=at(0), others=(other,), which=in_turn)
    found = preference(planted_scores(model, 400, sizes, subjects=20))
    assert found.phrase == phrase
    assert found.subjects_p <= 0.01
    assert len(found.by_subject) == 20
    assert found.by_subject["s00"] == "falls back on A"


@pytest.mark.thorough
def test_chance_does_not_group_subjects() -> None:
    """One subject of 57 has a habit; others happen to share a place, and were tested for that very place."""

    def fifth(subject: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (subject == 5).astype(np.int64)

    model = Planted(others=((at(0, 3), none),), which=fifth, knows=0.3, noise=1.5)
    found = phrases(model, 57 * 15, seeds=20, subjects=57)
    assert found["falls back on A in 1 subject, shows no preference in 56 when unsure"] >= 19


@pytest.mark.parametrize("hard", [False, True])
def test_a_label_and_a_position_that_cancel_are_not_no_preference(hard: bool) -> None:
    """Label and position against each other: nothing shows over the orders, but each has an effect."""
    model = Planted(label=at(2), position=at(2, -W), hard=hard)
    assert phrases(model) == {"labels and their positions pull in opposite directions when unsure": SEEDS}


def test_two_subjects_are_named() -> None:
    model = Planted(label=at(0), others=((at(3), none),), which=in_turn)
    found = preference(planted_scores(model, 200, subjects=2))
    assert found.phrase == "falls back on A in s00, on D in s01 when unsure"


@pytest.mark.parametrize("weak", [0.6, 1.5])
@pytest.mark.parametrize("subjects", [2, 6])
def test_a_weaker_pull_in_some_subjects_is_a_preference(weak: float, subjects: int) -> None:
    """No habit explains it better than one of 4 nats does, and so these subjects were said to show none."""
    model = Planted(label=at(0, 4), others=((at(0, weak), none),), which=in_turn)
    found = preference(planted_scores(model, 400, subjects=subjects))
    assert found.phrase == "falls back on A when unsure"
    assert found.subjects_p < 0.01
    hardly = replace(model, others=((at(0, 0.05), none),))
    assert "shows no preference in" in preference(planted_scores(hardly, 400, subjects=subjects)).phrase


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (at(1), "on D in mid, shows no clear preference in tiny"),
        (none, "on D in mid, shows no preference in tiny"),
        (at(0, 1.0), "on D in mid"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_five_unsure_questions_of_a_subject_do_not_exclude_a_preference(
    weights: Weights, words: str, seed: int
) -> None:
    """Ten questions of a subject in which B is taken were said to show no preference, or to fall back on D."""
    others = ((at(3), none), (weights, none))
    model = Planted(label=at(0), others=others, which=lambda q, rng: (q >= 300).astype(int) + (q >= 340))
    scores = planted_scores(model, 350, subjects=350, seed=seed)
    found = preference(replace(scores, subjects=("big",) * 300 + ("mid",) * 40 + ("tiny",) * 10))
    big = "big" if "tiny" in words else "big and tiny"
    assert found.phrase == f"falls back on A in {big}, {words} when unsure"


@pytest.mark.parametrize(("sizes", "spreads"), [((80, 8), (1, 6)), ((80, 8), (6, 1)), ((5,) * 10 + (60,) * 2, (4, 1))])
def test_subjects_that_vary_more_do_not_differ_in_their_habit(sizes: tuple, spreads: tuple) -> None:
    """By an F test two subjects of 80 and 8 questions differed in 0.65 of the samples at 1 %, without a habit."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    spread = np.where(np.bincount(codes)[codes] == sizes[0], *spreads)[:, None]
    p_values = []
    for _ in range(600):
        pulls = rng.normal(size=(len(codes), 4))
        pulls = spread * (pulls - pulls.mean(axis=1, keepdims=True))
        p_values.append(_compared(pulls, codes, np.full(len(codes), 4), np.arange(len(codes)))[0])
    for level in (0.01, 0.05):
        assert np.mean(np.less(p_values, level)) <= level + 3 * np.sqrt(level * (1 - level) / 600)


def test_the_test_between_groups_is_that_of_brown_and_forsythe() -> None:
    """By the formulas of their paper, with the degrees of freedom of Mehrotra (1997, eq. 2)."""
    rng = np.random.default_rng(0)
    for count in (2, 3, 20):
        groups = [rng.normal(rng.normal(0, 0.2), rng.uniform(1, 2), rng.integers(20, 60)) for _ in range(count)]
        sizes, means = np.asarray([len(one) for one in groups]), np.asarray([one.mean() for one in groups])
        variances, whole = np.asarray([one.var(ddof=1) for one in groups]), np.concatenate(groups)
        weighted = [(1 - n / len(whole)) * variance for n, variance in zip(sizes, variances, strict=True)]
        statistic = sum(sizes * (means - whole.mean()) ** 2) / sum(weighted)
        of_errors = 1 / sum((one / sum(weighted)) ** 2 / (n - 1) for one, n in zip(weighted, sizes, strict=True))
        squares = sum(variances**2) + (sum(sizes * variances) / len(whole)) ** 2
        of_groups = sum(weighted) ** 2 / (squares - 2 * sum(sizes * variances**2) / len(whole))
        p = brown_forsythe(*moments(whole[:, None], np.repeat(np.arange(count), sizes)))
        assert p == pytest.approx(scipy.stats.f.sf(statistic, of_groups, of_errors))


@pytest.mark.parametrize("sizes", [(2, 8), (2, 100), (5, 100), (12, 120), (2, 2, 2, 100), (3,) * 20, (2,) * 19 + (99,)])
@pytest.mark.parametrize("often", [0.1, 0.25, 0.5])
def test_few_choices_that_agree_do_not_differ_from_the_rest(sizes: tuple[int, ...], often: float) -> None:
    """Choices agree by chance: p was below 0.01 in up to 0.73 of the samples without any difference."""
    rng, codes = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes)
    p = [brown_forsythe(*moments((rng.random((len(codes), 1)) < often) * 1.0, codes)).item() for _ in range(600)]
    for level in (0.01, 0.05):
        assert np.mean(np.less(p, level)) <= level + 3 * np.sqrt(level * (1 - level) / 600)


def test_a_small_subject_where_every_answer_is_a_has_the_habit_of_the_others() -> None:
    """Of a model of words that nearly always takes A, 8 unsure questions were all A: p was 0 in 0.67 of the samples."""
    model = Planted(label=at(0, 4.0), hard=True, taste=1.0)
    names = ("large",) * 300 + ("small",) * 16
    scores = [replace(planted_scores(model, 316, seed=seed), subjects=names) for seed in range(20)]
    assert sum(preference(one).subjects_p < 0.01 for one in scores) <= 2


def test_the_caveat_is_said_of_the_parts_whose_kind_is_unknown() -> None:
    """Labels move on pages of one subject only."""
    scores = planted_scores(Planted(label=at(0), others=((at(3), none),), which=in_turn), 400, subjects=2)
    moved = np.asarray(scores.subjects) == "s00"
    pages = {name: getattr(scores, name) for name in ("labels_reversed", "both_reversed", "labels_shifted")}
    found = preference(replace(scores, **{name: replace(view, ok=view.ok & moved) for name, view in pages.items()}))
    other = "on D (or the last position: cannot be distinguished)"
    assert found.phrase == f"falls back on A in s00, {other} in s01 when unsure"
    assert found.by_subject == {"s00": "falls back on A", "s01": f"falls back {other}"}


def test_subjects_of_one_question_cannot_be_compared() -> None:
    scores = planted_scores(Planted(label=at(0)), 60)
    found = preference(replace(scores, subjects=tuple(f"subject {i}" for i in range(60))))
    assert np.isnan(found.subjects_p)
    assert found.phrase == "falls back on A when unsure"


@pytest.mark.parametrize("model", [Planted(label=at(0)), Planted()])
def test_subjects_that_do_not_differ(model: Planted) -> None:
    found = preference(planted_scores(model, 400, subjects=20))
    assert found.by_subject == {}
    assert found.subjects_p > 0.01


def test_a_habit_of_some_questions_is_the_habit() -> None:
    def when_long(subject: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(2, size=len(subject))

    model = Planted(label=at(0), others=((none, none),), which=when_long)
    assert phrases(model) == {"falls back on A when unsure": SEEDS}


@pytest.mark.parametrize(
    ("five", "phrase"),
    [
        ((none, at(-1)), "falls back on A with 4 options, on the last position with 5 when unsure"),
        ((none, none), "falls back on A with 4 options, shows no preference with 5 when unsure"),
        ((at(0, -W), none), "falls back on A with 4 options, avoids A with 5 when unsure"),
    ],
)
def test_numbers_of_options_that_differ(five: tuple, phrase: str) -> None:
    model = Planted(by_size={4: (at(0), none), 5: five})
    assert phrases(model, sizes=(4, 5)) == {phrase: SEEDS}


def test_a_label_is_one_habit_though_it_is_the_last_of_two() -> None:
    found = preference(scores_of(leaning(label_b, 0.6), MIXED))
    assert (found.phrase, found.by_size, found.note) == ("falls back on B when unsure", {}, "")


@pytest.mark.parametrize(("place", "named"), [(0, "the first position"), (-1, "the last position")])
def test_a_pull_that_shrinks_with_the_number_of_options_is_one_habit(place: int, named: str) -> None:
    model = Planted(by_size={2: (none, at(place, 6.0)), 5: (none, at(place, 0.9))})
    assert phrases(model, sizes=(2, 5)) == {f"falls back on {named} when unsure": SEEDS}


@pytest.mark.parametrize("count", [20, 60])
@pytest.mark.parametrize(
    ("model", "phrase"),
    [
        (Planted(label=at(0)), "falls back on A when unsure"),
        (Planted(position=at(-1)), "falls back on the last position when unsure"),
        (Planted(label=at(0, 60), knows=0, hard=True), "always answers A"),
        (Planted(), NONE),
    ],
)
def test_few_questions(model: Planted, phrase: str, count: int) -> None:
    if count == 20 and phrase.startswith("no"):  # ten unsure questions do not exclude a preference that matters
        phrase = "no clear fallback preference"
    assert phrases(model, count, seeds=10)[phrase] >= 8


def test_too_few_unsure_questions() -> None:
    found = preference(planted_scores(Planted(label=at(0), knows=0.95), 40))
    assert (found.finding, found.named) == ("open", None)
    assert "5 are needed" in found.note


@pytest.mark.parametrize("model", [Planted(hard=True), Planted(label=at(0, 2), hard=True)])
def test_a_lopsided_file_is_not_a_habit(model: Planted) -> None:
    """All right options first in the file: what is known of the content must not be taken for a place."""
    expected = "falls back on A when unsure" if model.label(4).any() else NONE
    assert phrases(model, right=lambda n, rng: 0) == {expected: SEEDS}


def test_no_preference_is_claimed_of_all_answers_and_not_of_few_unsure_ones() -> None:
    """Five unsure questions of 300 are too few to name A, which gets nearly all of their answers."""
    found = preference(planted_scores(Planted(label=at(0), knows=0.97), 300, seed=3))
    assert found.labels[0].chosen.value > 0.9
    assert (found.finding, found.phrase) == ("none", NONE)


def test_without_new_labels_label_and_position_cannot_be_distinguished() -> None:
    found = preference(planted_scores(Planted(label=at(0)), 200, relabelled=False))
    assert found.phrase == "falls back on A when unsure (or the first position: cannot be distinguished)"
    assert not found.labels[0].effect.defined
    assert "are together" in found.labels[0].effect.note
    assert found.labels[0].chosen.value > 0.7


def test_a_trace_that_decides_nearly_equal_options_is_reported_as_one() -> None:
    def nearly_even(question: object, contents: object, labels: tuple[str, ...], rng: object) -> list[float]:
        return one_hot(len(labels), labels.index("A"), 1 / len(labels) + 0.005)

    found = preference(scores_of(nearly_even, (4,)))
    assert found.labels[0].chosen.value == 1
    assert (found.finding, found.named) == ("trace", None)
    assert found.phrase == "falls back on A when unsure, which moves 75 points of its near ties"
    assert found.labels[0].effect.value == pytest.approx(0.75 * np.log(0.255 / (0.745 / 3)))


def test_a_trace_in_every_answer_of_many_questions_is_not_too_few_questions() -> None:
    def nearly_even(question: object, contents: object, labels: tuple[str, ...], rng: object) -> list[float]:
        return one_hot(len(labels), labels.index("A"), 1 / len(labels) + 0.005)

    found = preference(read_scores(ask(make_questions(60), nearly_even)))
    assert (found.finding, found.phrase) == (
        "trace",
        "falls back on A when unsure, which moves 75 points of its near ties",
    )


@pytest.mark.parametrize("sizes", [(4,), (3, 4), MIXED])
def test_a_trace_of_the_last_position_is_not_a_place_of_its_own_for_every_question(sizes: tuple[int, ...]) -> None:
    """The last of several numbers of options has several numbers, but is one place."""
    model = Planted(position=at(-1, 0.02), taste=0, noise=0.002, knows=0.3)
    found = preference(planted_scores(model, 200, sizes))
    assert (found.finding, found.takes) == ("trace", ())
    assert found.phrase.startswith("falls back on the last position when unsure, which moves ")


def test_a_place_of_its_own_for_every_question() -> None:
    def remembered(question: object, contents: object, labels: tuple[str, ...], rng: object) -> list[float]:
        return one_hot(len(labels), int(question.id[1:]) // 2 % len(labels), 0.9)  # type: ignore[attr-defined]

    found = preference(scores_of(remembered, (4,)))
    assert found.finding == "own places"
    assert found.phrase == "sticks to one position in 100 % of its unstable questions, not the same one in all"
    assert found.sticky.value == 1


def scores_of(answerer: Answerer, sizes: tuple[int, ...], count: int = 120, **how: object) -> OrderScores:
    return read_scores(ask(make_questions(count, sizes), knows(0.5, answerer), **how))  # type: ignore[arg-type]


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(4,), MIXED], ids=["four options", "mixed"])
@pytest.mark.parametrize(
    ("answerer", "named"),
    [
        pytest.param(always(label_a), "A", id="always label A"),
        pytest.param(always(first), "the first position", id="always the first position"),
        pytest.param(always(last), "last", id="always the last position"),
        pytest.param(leaning(label_a, 0.6), "A", id="mostly label A"),
        pytest.param(leaning(last, 0.6), "last", id="mostly the last position"),
    ],
)
def test_from_a_table_of_responses(answerer: Answerer, named: str, sizes: tuple[int, ...]) -> None:
    found = preference(scores_of(answerer, sizes))
    assert found.named == named
    row = {"A": found.labels[0], "the first position": found.positions[0], "last": found.positions[-1]}[named]
    assert row.chosen.high == 1
    assert row.effect.value > 0.5
    assert row.excess.value > 0.3
    assert row.p < 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(2,), (4,), MIXED], ids=["two options", "four options", "mixed"])
def test_fair_guessers_are_not_accused(sizes: tuple[int, ...]) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        assert preference(scores_of(guesses(0.3), sizes, count=70, rng=rng)).finding in ("none", "open")


def test_effects_are_the_planted_ones() -> None:
    model = Planted(label=at(0, 2.0), position=at(-1, 1.0), noise=0.2)
    found = preference(planted_scores(model, 2000))
    for row, planted in zip(found.labels, (1.5, -0.5, -0.5, -0.5), strict=True):
        assert row.effect.low - 0.05 < planted < row.effect.high + 0.05
    for row, planted in zip(found.positions, (-0.25, -0.25, -0.25, 0.75), strict=True):
        assert row.effect.low - 0.05 < planted < row.effect.high + 0.05
    assert sum(row.effect.value for row in found.labels) == pytest.approx(0)
    assert sum(row.excess.value for row in found.positions) == pytest.approx(0)
    assert [row.label for row in found.positions] == ["first", "second", "third", "last"]


def test_answers_in_words_have_no_nats() -> None:
    found = preference(planted_scores(Planted(label=at(0, 2), hard=True), 200))
    assert not found.labels[0].effect.defined
    assert "no probabilities" in found.labels[0].effect.note
    assert found.labels[0].excess.value > 0.3


def test_content_is_not_mistaken_for_position() -> None:
    """Options that attract wherever they stand, pinned at the end or sampled unevenly, are no preference."""

    def attracted(
        question: object, contents: tuple[int, ...], labels: tuple[str, ...], rng: np.random.Generator
    ) -> list[float]:
        # the option listed last in the file draws 0.8 of the answers
        at = contents.index(len(contents) - 1) if rng.random() < 0.8 else int(rng.integers(len(contents)))
        return one_hot(len(labels), at, 0.9)

    questions = make_questions(80, (4, 5), pinned=lambda q, n: (n - 1,))
    found = preference(read_scores(ask(questions, attracted)))
    assert found.slots[-1].chosen.value > 0.7
    assert found.finding != "habit"
    spread = make_questions(80, (6,))
    assert preference(read_scores(ask(spread, attracted, orders="5"))).finding != "habit"


def label_b(contents: tuple[int, ...], labels: tuple[str, ...]) -> int:
    return labels.index("B")


@pytest.mark.parametrize("orders", ["5", "reverse", "cyclic"])
@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(("pull", "named"), [(label_a, "A"), (first, "the first position"), (label_b, "B")])
def test_other_order_sets(orders: str, pinned: bool, pull: Callable, named: str) -> None:
    """Two orders leave open what is content and what position; contents even out over questions."""
    questions = make_questions(150, (5,), pinned=lambda q, n: (n - 1,) * pinned)
    found = preference(read_scores(ask(questions, knows(0.5, leaning(pull, 0.6)), orders=orders)))
    assert found.phrase == f"falls back on {named} when unsure"


def test_one_order_says_nothing() -> None:
    found = preference(scores_of(always(label_a), (4,), orders="given"))
    assert (found.finding, found.named) == ("open", None)
    assert not found.unsure.defined


def test_expected_share_is_one_in_n() -> None:
    found = preference(scores_of(always(last), (4,)))
    assert [slot.expected for slot in found.slots] == pytest.approx([0.25] * 5)
    assert [slot.label for slot in found.slots] == [*ALPHABETS["A"][:4], "last"]


def test_other_labels_are_named_as_they_are() -> None:
    scores = replace(planted_scores(Planted(label=at(0)), 200), labels=("1", "2", "3", "4"))
    assert preference(scores).phrase == "falls back on 1 when unsure"


def test_the_same_scores_give_the_same_preference() -> None:
    def found() -> Preference:
        scores = planted_scores(Planted(label=at(0), others=((at(3), none),), which=in_turn), 200, subjects=10)
        return preference(scores, Bootstrap.of(scores))

    assert repr(found()) == repr(found())


def test_labels_out_of_sequence_are_not_a_habit() -> None:
    """A label that is unlikely wherever it stands out of its sequence is not avoided where it stands in it."""

    def answer(question: object, contents: object, labels: tuple[str, ...], rng: np.random.Generator) -> list[float]:
        surprised = [-2.0 if label == "D" and at != 3 else 0.0 for at, label in enumerate(labels)]
        return [2.0 * (at == len(labels) - 1) + s + rng.normal(0, 0.3) for at, s in enumerate(surprised)]

    assert preference(scores_of(answer, (4,))).phrase == "falls back on the last position when unsure"


def test_every_place_has_one_name() -> None:
    assert Place(3) not in places_of([4])
    assert {Place(3), Place(-1)} < set(places_of([4, 5]))
    assert Place(None) in places_of([3])
    assert Place(1) not in places_of([3])
    assert len(places_of([2])) == 2
    assert Place(-1).name("label", "ABCDE", [4]) == "D"
    assert Place(-1).name("label", "ABCDE", [4, 5]) == "the last label"
    assert Place(None).name("label", "ABCDE", [4]) == "B or C"
    assert Place(None).name("position", "ABCDE", [4]) == "a middle position"
    assert Place(None).name("position", "ABCDE", [3, 5]) == "the middle position"
    assert Place(11).name("position", (), [20]) == "the 12th position"


def test_words() -> None:
    assert listed(["A", "B", "C"], "or") == "A, B or C"
    assert listed(["the first position", "the last position"], "and") == "the first and last positions"
    assert in_words(("A",), ("D",)) == "falls back on A, away from D"
    assert when_unsure(in_words(("A",), ("D",))) == "falls back on A, away from D, when unsure"
    assert in_words(("A",), (), slight=True) == "leans slightly towards A"
    assert in_words((), ("A", "B"), slight=True) == "leans slightly away from A or B"
    said = {f"s{i}": words for i, words in enumerate(2 * ["falls back on A"] + 3 * ["falls back on D"] + 4 * [""])}
    assert by_part(said) == "falls back on A in 2 subjects, on D in 3, shows no preference in 4 when unsure"
    assert by_part({"a": "", "b": "avoids A", "c": ""}) == "shows no preference in a and c, avoids A in b when unsure"
    assert (
        by_part({4: "falls back on A", 5: "avoids A"}) == "falls back on A with 4 options, avoids A with 5 when unsure"
    )


def test_one_caveat_for_all_parts_or_one_for_each() -> None:
    first, last = (f"on {label} (or the {place} position: cannot be distinguished)"
                   for label, place in (("A", "first"), ("D", "last")))  # fmt: skip
    assert by_part({4: f"falls back {first}", 5: f"falls back {last}"}) == (
        "falls back on A with 4 options, on D with 5 when unsure (labels or their positions: cannot be distinguished)"
    )
    assert by_part({4: f"falls back {first}", 5: ""}) == (
        f"falls back {first} with 4 options, shows no preference with 5 when unsure"
    )
    assert by_part({4: f"falls back {first}", 5: "falls back on D"}) == (
        f"falls back {first} with 4 options, on D with 5 when unsure"
    )


def test_holm() -> None:
    assert holm([0.01, 0.04, float("nan"), 0.03]) == pytest.approx([0.03, 0.06, float("nan"), 0.06], nan_ok=True)
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def by_which(subject: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return subject % 2


LONE_POSITIONS = [
    ("plain", Planted(position=at(0)), {}),
    ("last", Planted(position=at(-1)), {"sizes": MIXED}),
    ("in words", Planted(position=at(0, 2.0), hard=True), {}),
    ("always", Planted(position=at(0, 60), knows=0, hard=True), {}),
    ("by subject", Planted(position=at(0), others=((none, at(3)),), which=by_which), {"subjects": 10}),
    ("two subjects", Planted(position=at(0), others=((none, none),), which=by_which), {"subjects": 2}),
    ("by size", Planted(by_size={4: (none, at(0)), 5: (none, at(-1))}), {"sizes": (4, 5)}),
    ("two places", Planted(position=at(0, 2.0, 2)), {}),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "model", "how"), LONE_POSITIONS, ids=[kind for kind, *_ in LONE_POSITIONS])
def test_a_position_is_never_called_a_label_without_pages_that_show_it(kind: str, model: Planted, how: dict) -> None:
    for seed in range(25):
        found = preference(planted_scores(model, 200, seed=seed, relabelled=False, **how))
        assert found.finding == "habit", found.phrase
        assert all("position" in name for name in (*found.takes, *found.avoids))
        parts = {words for words in (*found.by_size.values(), *found.by_subject.values()) if words}
        assert all(words.endswith("cannot be distinguished)") for words in parts)
        if len(parts) == 1:
            assert found.phrase.startswith(parts.pop())
        else:
            assert found.phrase.endswith("cannot be distinguished)")


@pytest.mark.parametrize("sizes", [(3,), (4,), (5,), (3, 4)])
@pytest.mark.parametrize(
    ("model", "phrase"),
    [
        (Planted(label=at(0)), "falls back on A when unsure"),
        (Planted(position=at(0)), "falls back on the first position when unsure"),
        (Planted(position=at(-1, -W)), "avoids the last position when unsure"),
        # the last label is D or E, but A and the last place, or the middle, are their own mirror images: open
        (Planted(label=at(0, W, -1)), "cannot be distinguished)"),
        (Planted(position=middle()), "cannot be distinguished)"),
    ],
)
def test_reversed_labels_alone_separate_a_label_from_its_position(
    model: Planted, phrase: str, sizes: tuple[int, ...]
) -> None:
    """Without shifted labels, a log shows of each label only how much more it gets than the label it changes with."""
    scores = planted_scores(model, 200, sizes=sizes)
    shifted = scores.labels_shifted
    scores = replace(scores, labels_shifted=replace(shifted, ok=np.zeros_like(shifted.ok)))
    found = preference(scores)
    assert found.phrase.endswith(phrase)
    if "cannot" not in phrase:
        assert found.phrase == phrase
    assert "leave open" in found.labels[0].effect.note


def test_a_trace_without_relabelled_pages_names_the_position_too() -> None:
    def nearly_even(question: object, contents: object, labels: tuple[str, ...], rng: object) -> list[float]:
        return one_hot(len(labels), 0, 1 / len(labels) + 0.005)

    found = preference(scores_of(nearly_even, (4,), relabelled=False))
    moved = "falls back on A when unsure, which moves 75 points of its near ties"
    assert found.phrase == f"{moved} (or the first position: cannot be distinguished)"


@pytest.mark.parametrize("weaker", [0.8, 1.6])
def test_a_weaker_second_label_is_that_label(weaker: float) -> None:
    """Of few questions: neither a label between the two, nor a position."""
    model = Planted(label=lambda n: at(0, 2.5)(n) + at(3, weaker)(n))
    assert phrases(model, 40, seeds=20) == {"falls back on A or D when unsure": 20}


def test_every_answer_the_same_label() -> None:
    found = preference(scores_of(always(label_a), (4,), count=40))
    assert found.phrase == "falls back on A when unsure"  # half of the questions are known
    everywhere = read_scores(ask(make_questions(40, (4,)), always(label_a)))
    assert preference(everywhere).phrase == "always answers A"
    positions = read_scores(ask(make_questions(40, (4,)), always(last)))
    assert preference(positions).phrase == "always answers the last position"
    few = preference(read_scores(ask(make_questions(5, (3,)), always(label_a))))
    said = "every answer in every order is A (the first position); 5 questions are too few to call it a preference"
    assert (few.finding, few.phrase) == ("open", said)


def test_the_search_for_a_habit_keeps_the_terms_of_few_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 26 options, 3,000 sets of places are tried, each with terms of every question."""
    made: list[weakref.ref[Any]] = []
    most = 0
    of_places = HabitSearch._habit

    def counted(search: HabitSearch, places: Places) -> Habit:
        nonlocal most
        habit = of_places(search, places)
        made.append(weakref.ref(habit.terms))
        most = max(most, sum(one() is not None for one in made))
        return habit

    monkeypatch.setattr(HabitSearch, "_habit", counted)
    scores = planted_scores(Planted(label=at(0, 2.0, 1), knows=0.2), 60, sizes=(6,))
    assert preference(scores).takes == ("A", "B")
    assert most <= 10  # those of the last set, and with each of the seven places more
    assert len(made) > 40
