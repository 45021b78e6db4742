"""Which options keep their place."""

from __future__ import annotations

import pytest

from unslant.questions import find_pinned

PLAIN = ["cats", "dogs", "birds"]


@pytest.mark.parametrize(
    "wording",
    [
        "All of the above",
        "all the above.",
        "All of above",
        "None of the above",
        "None of these",
        "None of these are correct",
        "None of the options given is correct",
        "All options given are correct",
        "Neither of these",
        "Any of the above",
        "None of the above; the author denies it",
        "All of these, although radiation is greatest",
        "Any two of the above",
        "None",
    ],
)
def test_an_option_about_all_others_keeps_its_place(wording: str) -> None:
    assert find_pinned([*PLAIN, wording]) == (3,)


@pytest.mark.parametrize(
    ("wording", "pinned"),
    [
        ("Both A and C", (0, 2, 3)),
        ("both (a) and (b)", (0, 1, 3)),
        ("A and B only", (0, 1, 3)),
        ("Only B and C", (1, 2, 3)),
        ("A, B, and C", (0, 1, 2, 3)),
        ("Neither A nor B", (0, 1, 3)),
        ("Both A & C", (0, 2, 3)),
        ("a. and c. above", (0, 2, 3)),
        ("Both A and B are correct", (0, 1, 3)),
        ("Both option 1 and option 2", (0, 1, 3)),
        ("Both options 1 and 3.", (0, 2, 3)),
        ("Both 2 and 3", (1, 2, 3)),
        ("1 and 3 only", (0, 2, 3)),
        ("All of them except B", (1, 3)),
    ],
)
def test_an_option_that_names_others_pins_those_too(wording: str, pinned: tuple[int, ...]) -> None:
    assert find_pinned([*PLAIN, wording]) == pinned


@pytest.mark.parametrize(
    "wording",
    [
        "vitamin A and D",
        "vitamins A and D",
        "both parents",
        "Both the mother and the father",
        "above sea level",
        "all of the passengers",
        "none of her friends",
        "either side of the road",
        "I and III only",
        "talk to each other",
        "All of these theories are speculation",
        "A and Z",
        "1 and 3",
        "2,3",
        "to join them in the robbery",
    ],
)
def test_such_words_inside_an_ordinary_option_pin_nothing(wording: str) -> None:
    assert find_pinned([*PLAIN, wording]) == ()


def test_names_that_the_stem_or_the_options_define_are_not_options() -> None:
    assert find_pinned(["A only", "B only", "Both A and B", "C only"], "Which of A, B and C?") == ()
    assert find_pinned([*PLAIN, "Both A and B"], "Consider: (A) it rains. (B) it snows.") == ()
    assert find_pinned([*PLAIN, "Both 1 and 2"], "Statement 1| it rains. Statement 2| it snows.") == ()
    assert find_pinned(["1", "2", "3", "both 1 and 2"]) == ()


def test_both_and_neither_close_a_list_but_quantities_do_not() -> None:
    assert find_pinned(["calories", "joules", "Both", "Neither"]) == (2, 3)
    assert find_pinned(["1", "2", "3", "None"], "How many moons has Venus?") == ()
    assert find_pinned(["None", "Some", "Most", "All"]) == ()
    assert find_pinned(["impolite", "none", "incorrect", "rude"]) == ()


def test_what_stands_above_must_stay_above() -> None:
    # Two more options stand below, so moving one of the first two under "above" would change its meaning.
    assert find_pinned(["x", "y", "all of the above", "z", "w"]) == (0, 1, 2)
    assert find_pinned(["x", "y", "all of the above", "none of the above"]) == (2, 3)
