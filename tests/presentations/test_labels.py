from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.errors import InputError
from unslant.presentations import ALPHABETS, alphabetical, labels_for, parse_labels
from unslant.questions import MAX_OPTIONS


@pytest.mark.parametrize("name", ALPHABETS)
def test_alphabets_have_a_label_for_each_option_and_are_named_by_their_first(name):
    alphabet = parse_labels(name)
    assert len(set(alphabet)) == len(alphabet) == (26 if name in "Ii" else MAX_OPTIONS)
    assert alphabet[0] == name


def test_letters_go_on_with_numbers_as_in_inspect():
    answers = pytest.importorskip("inspect_ai._util.answer", reason="needs the extra unslant[inspect]")
    assert list(ALPHABETS["A"]) == [answers.answer_character(i) for i in range(MAX_OPTIONS)]


def test_roman_numerals_are_right():
    values = {"I": 1, "V": 5, "X": 10}

    def value(numeral: str) -> int:
        digits = [values[letter] for letter in numeral.upper()]
        return sum(-d if any(later > d for later in digits[i + 1 : i + 2]) else d for i, d in enumerate(digits))

    assert [value(label) for label in ALPHABETS["I"]] == list(range(1, 27))
    assert [value(label) for label in ALPHABETS["i"]] == list(range(1, 27))


def test_digits_count_from_one_or_from_nought():
    assert labels_for(parse_labels("1"), 4) == ("1", "2", "3", "4")
    assert labels_for(parse_labels("0"), 4) == ("0", "1", "2", "3")  # as P3's authors number options


def test_own_labels():
    assert parse_labels("W, X,Y ,Z") == ("W", "X", "Y", "Z")
    assert parse_labels("yes,no") == parse_labels(["yes", "no"]) == ("yes", "no")
    assert labels_for(("W", "X", "Y"), 2) == ("W", "X")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("B", "unknown label set 'B'"),
        ("", "unknown label set ''"),
        ("A,,C", "label 2 is empty"),
        ("A,B,", "label 3 is empty"),
        ("A,B,A", "label 'A' is given twice"),
        (["A", "B,C"], "label 'B,C' has a comma"),
    ],
)
def test_bad_label_sets_are_refused_in_one_line(spec, reason):
    with pytest.raises(InputError) as caught:
        parse_labels(spec)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_few_labels_are_refused():
    with pytest.raises(InputError, match="has 2 labels, but a question has 3 options"):
        labels_for(("yes", "no"), 3)


@given(st.sampled_from(sorted(ALPHABETS)), st.integers(2, 26), st.randoms(use_true_random=False))
def test_alphabetical_order_does_not_depend_on_the_order_given(name, n, rng):
    labels = list(labels_for(ALPHABETS[name], n))
    rng.shuffle(labels)
    assert alphabetical(labels) == ALPHABETS[name][:n]


def test_labels_of_no_alphabet_stay_as_given():
    assert alphabetical(["yes", "no"]) == ("yes", "no")
