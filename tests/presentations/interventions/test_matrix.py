"""Which combinations are legal, and that the draw reaches all of them and no other."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from unslant.errors import InputError
from unslant.presentations.interventions import KINDS, MATRIX, NAMES, combinations, conflict
from unslant.presentations.interventions.choice import APPLY, APPLY_TO_JUDGED
from unslant.presentations.interventions.matrix import PROBABILITIES, check_probabilities, draw, in_order

EVERY_SUBSET = [c for size in range(len(NAMES) + 1) for c in itertools.combinations(NAMES, size)]


def legal_choice(chosen: set[str]) -> bool:
    """The constraints of P4 (C.2) in plain words, written apart from the table."""
    if chosen & {"QJ", "AJ"}:
        return False
    if "BT" in chosen:
        return chosen == {"BT"}
    return "AR" not in chosen or "DH" in chosen


def legal_maths(chosen: set[str]) -> bool:
    if "BT" in chosen or len(chosen & {"QJ", "AJ"}) != 1:
        return False
    if "QJ" in chosen:
        return chosen <= {"QJ", "OS", "LR"}
    return "AR" not in chosen or "DH" in chosen


@pytest.mark.parametrize(("kind", "legal"), [("choice", legal_choice), ("maths", legal_maths)])
def test_a_combination_is_legal_exactly_when_the_constraints_allow_it(kind, legal):
    allowed = {subset for subset in EVERY_SUBSET if conflict(subset, kind) == ""}
    assert allowed == {subset for subset in EVERY_SUBSET if legal(set(subset))}


def test_the_matrix_is_complete_and_symmetric():
    assert set(MATRIX) == set(itertools.permutations(NAMES, 2))
    assert all(MATRIX[a, b] == MATRIX[b, a] for a, b in MATRIX)


@pytest.mark.parametrize(("kind", "legal"), [("choice", legal_choice), ("maths", legal_maths)])
def test_the_draw_reaches_every_legal_combination_and_no_other(kind, legal):
    rng = random.Random(1)
    drawn = {draw(KINDS[kind], PROBABILITIES, rng, kind) for _ in range(20_000)}
    assert drawn == {subset for subset in EVERY_SUBSET if legal(set(subset))}
    assert drawn == set(combinations(kind))


def test_every_legal_pair_is_drawn_even_at_other_probabilities():
    rng = random.Random(2)
    chances = check_probabilities(dict.fromkeys(KINDS["choice"], 0.2))
    drawn = [draw(KINDS["choice"], chances, rng) for _ in range(20_000)]
    pairs = {pair for combination in drawn for pair in itertools.combinations(combination, 2)}
    assert pairs == {pair for pair in itertools.combinations(KINDS["choice"], 2) if MATRIX[pair]}


def test_frequencies_follow_the_probabilities():
    rng = random.Random(3)
    n = 40_000
    count = Counter(code for _ in range(n) for code in draw(KINDS["choice"], PROBABILITIES, rng))
    expected = {"BT": 0.1, "DQ": 0.45, "DH": 0.45, "OS": 0.45, "LR": 0.45, "AR": 0.225}
    for code, p in expected.items():
        assert abs(count[code] / n - p) < 0.015, code


def test_a_certain_binary_transformation_is_always_alone():
    rng = random.Random(4)
    assert {draw(KINDS["choice"], {**PROBABILITIES, "BT": 1.0}, rng) for _ in range(500)} == {("BT",)}


def test_maths_takes_one_jitter_in_proportion():
    rng = random.Random(5)
    only_jitters = {**dict.fromkeys(NAMES, 0.0), "QJ": 0.1, "AJ": 0.3}
    count = Counter(draw(KINDS["maths"], only_jitters, rng, "maths") for _ in range(20_000))
    assert set(count) == {("QJ",), ("AJ",)}
    assert abs(count["QJ",] / 20_000 - 0.25) < 0.02


def test_what_a_question_cannot_take_is_never_drawn_and_shifts_nothing_else():
    able = [code for code in KINDS["choice"] if code not in ("BT", "OS")]
    for seed in range(500):
        full = draw(KINDS["choice"], PROBABILITIES, random.Random(seed))
        less = draw(able, PROBABILITIES, random.Random(seed))
        assert not {"BT", "OS"} & set(less)
        if "BT" not in full:
            assert set(less) == set(full) - {"OS"}


def test_every_intervention_is_applied_in_the_order_of_its_name():
    assert [*APPLY] == [code for code in NAMES if code in APPLY]
    assert set(APPLY) | {"BT"} == set(KINDS["choice"])
    assert set(APPLY_TO_JUDGED) == {code for code in NAMES if code != "QJ" and MATRIX["QJ", code]}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: in_order(["OS", "XX"]), "unknown intervention 'XX'"),
        (lambda: in_order(["OS", "OS"]), "given twice"),
        (lambda: check_probabilities({"OS": 1.2}), "not between 0 and 1"),
        (lambda: check_probabilities({"oops": 0.2}), "unknown intervention"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()
