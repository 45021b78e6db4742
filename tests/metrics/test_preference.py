"""Planted biases are found and named, and nothing is named where nothing was planted."""

from __future__ import annotations

import numpy as np
import pytest

from unslant.metrics import OrderScores, preference, read_scores
from unslant.presentations.labels import ALPHABETS

from .synthetic import (
    Answerer,
    always,
    ask,
    first,
    guesses,
    knows,
    label_a,
    last,
    last_label,
    leaning,
    make_questions,
    one_hot,
)

MIXED = (2, 3, 4, 5, 6, 7, 8)
PLANTED = [
    pytest.param(always(label_a), "A", "label", id="always label A"),
    pytest.param(always(first), "A", "position", id="always the first position"),
    pytest.param(always(last), "last", "position", id="always the last position"),
    pytest.param(leaning(label_a, 0.6), "A", "label", id="mostly label A"),
    pytest.param(leaning(last, 0.6), "last", "position", id="mostly the last position"),
]


def scores_of(answerer: Answerer, sizes: tuple[int, ...], count: int = 120, **how: object) -> OrderScores:
    questions = make_questions(count, sizes)
    return read_scores(ask(questions, knows(0.5, answerer), **how))  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(4,), MIXED], ids=["four options", "mixed"])
@pytest.mark.parametrize(("answerer", "named", "kind"), PLANTED)
def test_planted_bias_is_named(answerer: Answerer, named: str, kind: str, sizes: tuple[int, ...]) -> None:
    found = preference(scores_of(answerer, sizes))
    assert (found.named, found.kind) == (named, kind)
    assert found.phrase.startswith({"A": "prefers A", "last": "prefers the last position"}[named])
    assert found.slot is not None
    assert found.slot.chosen.high == 1
    assert found.slot.excess.low > 0.05


@pytest.mark.parametrize("share", [0.55, 0.8, 1.0])
def test_measured_probability_is_the_planted_one(share: float) -> None:
    def planted(question: object, contents: tuple[int, ...], labels: tuple[str, ...], rng: object) -> list[float]:
        return one_hot(len(labels), last(contents, labels), share)

    found = preference(scores_of(planted, MIXED))
    assert found.slot is not None
    assert found.slot.probability.value == pytest.approx(share)
    assert found.slot.probability.low <= share + 1e-12
    assert found.slot.probability.high >= share - 1e-12
    assert found.slot.chosen.value == 1
    assert found.unsure.low < 0.5 < found.unsure.high


@pytest.mark.parametrize("sizes", [(2,), (4,), MIXED], ids=["two options", "four options", "mixed"])
def test_fair_guessers_are_not_accused(sizes: tuple[int, ...]) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = preference(scores_of(guesses(0.3), sizes, count=70, rng=rng))
        assert found.named is None
        assert found.phrase == "prefers no label or position when unsure"


def test_a_trace_that_decides_nearly_equal_options_is_no_preference() -> None:
    # 0.255 against 0.248: always the answer, yet nothing to speak of
    def nearly_even(question: object, contents: tuple[int, ...], labels: tuple[str, ...], rng: object) -> list[float]:
        return one_hot(len(labels), labels.index("A"), 1 / len(labels) + 0.005)

    found = preference(scores_of(nearly_even, (4,)))
    assert found.slots[0].chosen.value == 1
    assert found.named is None
    assert preference(scores_of(nearly_even, (4,)), probability_margin=0.0).named == "A"


def test_last_label_and_last_position_are_told_apart_by_new_labels() -> None:
    found = preference(scores_of(always(last_label), (4,)))
    assert (found.named, found.kind) == ("D", "label")
    assert found.phrase == "prefers D when unsure (the label, wherever it stands)"


@pytest.mark.parametrize(("answerer", "named"), [(always(label_a), "A"), (always(last), "last")])
def test_without_new_labels_the_kind_is_left_open(answerer: Answerer, named: str) -> None:
    found = preference(scores_of(answerer, (4,), relabelled=False))
    assert (found.named, found.kind) == (named, None)
    assert not found.position_over_label.defined
    assert "(" not in found.phrase


def test_a_middle_label() -> None:
    found = preference(scores_of(always(lambda contents, labels: labels.index("B")), (4, 5)))
    assert (found.named, found.kind) == ("B", "label")


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
    assert found.named is None
    spread = make_questions(80, (6,))
    assert preference(read_scores(ask(spread, attracted, orders="5"))).named is None


def test_too_few_unsure_questions() -> None:
    found = preference(scores_of(always(label_a), (4,), count=12))
    assert found.named is None
    assert "at least 10" in found.note


def test_one_order_says_nothing() -> None:
    found = preference(scores_of(always(label_a), (4,), orders="given"))
    assert found.named is None
    assert not found.unsure.defined


def test_expected_share_is_one_in_n() -> None:
    found = preference(scores_of(always(last), (4,)))
    assert [slot.expected for slot in found.slots] == pytest.approx([0.25] * 5)
    assert [slot.label for slot in found.slots] == [*ALPHABETS["A"][:4], "last"]
