"""Which wrong options are part of the right one, or hold it."""

from __future__ import annotations

import pytest

from unslant.presentations.interventions.language import partly_right


def test_lists_and_ranges_either_way(subtests: pytest.Subtests) -> None:
    for right, wrong in (
        ("diaphragm and pleura", "diaphragm"),
        ("A, B and C", "B and A"),
        ("Both X and Y", "Y"),
        ("both of X and Y", "X"),
        ("salt & pepper", "pepper"),
        ("Surgery + radiotherapy", "Surgery"),
        ("copper/tin", "tin"),
        ("Nucleus; mitochondria", "Nucleus"),
        ("the heart as well as the lungs", "the lungs"),
        ("red or blue", "blue"),
        ("sugar, salt, flour", "salt, sugar"),
        ("I, II and III", "I and II"),
        ("vitamins A and D", "vitamin A"),
        ("x = 2 and x = 3", "x = 2"),
        ("Both statistics and predictions", "Predictions"),
        ("over 10 years", "over 20 years"),
        ("10-20", "10-30"),
        ("10-20", "15"),
        ("10 to 20%", "15%"),
        ("Between 10 and 20 percent", "15%"),
        ("18-24 months", "12 to 24 months"),
        ("$5 to $10", "$7"),
        ("1914–1918", "1916"),
        ("5 or more", "5"),
        ("less than 3 A", "2 A"),
        ("Less than four", "three"),
        ("at least 3 days", "5 days"),
        ("20 or older", "over 30"),
    ):
        with subtests.test(right=right, wrong=wrong):
            assert partly_right(right, wrong)
            assert partly_right(wrong, right)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("cerebral artery", "artery"),
        ("it rose because of rain", "it rose"),
        ("increase in price and quantity", "increase in quantity"),
        ("lower the price level and output in the economy", "lower the price level in the economy"),
        ("all birds fly", "some birds fly"),
        ("Paris, the capital", "Paris"),
    ],
)
def test_a_wrong_option_that_says_less(right: str, wrong: str) -> None:
    assert partly_right(right, wrong)


def test_what_is_wholly_wrong(subtests: pytest.Subtests) -> None:
    for right, wrong in (
        ("proportional to amplitude", "proportional to the square of amplitude"),
        ("X", "X only"),
        ("X and Y", "X only"),
        ("X and Y", "only X"),
        ("not soluble", "soluble"),
        ("soluble", "not soluble"),
        ("neither cats nor dogs", "cats"),
        ("Yes, it is", "No, it is"),
        ("3 A", "less than 3 A"),
        ("more than five senses", "five senses"),
        ("5", "15"),
        ("10-20", "20-30"),
        ("under 5", "over 5"),
        ("5 years", "5 months"),
        ("1,000 and more", "1"),
        ("- 5 mph", "5 mph"),
        ("a value between zero and g", "zero"),
        ("increased, decreased", "increased, increased"),
        ("(1, 2)", "1"),
        ("2x", "x"),
        ("x + 1", "x"),
        ("block P", "block P+V"),
        ("vitamin B12", "vitamin A"),
        ("Ig G", "Ig A"),
        ("the patient's caregiver", "the patient"),
        ("Parisian", "Paris"),
        ("salty", "salt"),
        ("New York is colder than Paris in winter", "Paris is colder than New York"),
        ("", "Yes, it is"),
        ("cats and dogs", "birds and fish"),
    ):
        with subtests.test(right=right, wrong=wrong):
            assert not partly_right(right, wrong)
