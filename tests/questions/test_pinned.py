"""Which options keep their place."""

from __future__ import annotations

import pytest

from unslant.questions import find_pinned
from unslant.questions.pinned import label_references, rename

PLAIN = ["cats", "dogs", "birds"]


def test_an_option_about_all_others_keeps_its_place(subtests: pytest.Subtests) -> None:
    for wording in (
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
    ):
        with subtests.test(wording=wording):
            assert find_pinned([*PLAIN, wording]) == (3,)


def test_an_option_that_names_others_pins_those_too(subtests: pytest.Subtests) -> None:
    for wording, pinned in (
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
        ("A and D", (0, 3)),  # the list was longer once
        ("both A and D are correct.", (0, 3)),
        ("A B and C", (0, 1, 2, 3)),
        ("(B) (C) and (D).", (1, 2, 3)),
        ("(A)(C)", (0, 2, 3)),
        ("[A] and [B]", (0, 1, 3)),
        ("either A or B", (0, 1, 3)),
        ("Either (a) or (b), depending on the case", (0, 1, 3)),
        ("A and/or B", (0, 1, 3)),
        ("A as well as C", (0, 2, 3)),
        ("A but not B", (0, 1, 3)),
        ("Both A & B are true but C is false", (0, 1, 2, 3)),
        ("A through C", (0, 1, 2, 3)),
        ("options B-C", (1, 2, 3)),
        ("None of A, B, or C", (0, 1, 2, 3)),
        ("Two of A, B and C", (0, 1, 2, 3)),
        ("Answers A and C are both correct", (0, 2, 3)),
        ("Both A and B may be correct", (0, 1, 3)),
        ("B is correct", (1, 3)),
        ("option (b)", (1, 3)),
        ("same as C", (2, 3)),
        ("Only A", (0, 3)),
        ("all but B", (1, 3)),
        ("All of the above except C", (2, 3)),
        ("Both I and II", (0, 1, 3)),
        ("The first two", (0, 1, 2, 3)),
        ("first and third options", (0, 1, 2, 3)),
    ):
        with subtests.test(wording=wording, pinned=pinned):
            assert find_pinned([*PLAIN, wording]) == pinned


def test_such_words_inside_an_ordinary_option_pin_nothing(subtests: pytest.Subtests) -> None:
    for wording in (
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
        "A and a",
        "A B",
        "I",
        "A",
        "F, G and H",
        "second",
        "the last option contract",
        "hepatitis B and C",
        "reject all but one choice",
        "R & B music",
        "B and C minor",
        "a to z",
    ):
        with subtests.test(wording=wording):
            assert find_pinned([*PLAIN, wording]) == ()


def test_names_that_the_stem_or_the_options_define_are_not_options() -> None:
    assert find_pinned(["A only", "B only", "Both A and B", "C only"], "Which of A, B and C?") == ()
    assert find_pinned([*PLAIN, "Both A and B"], "Consider: (A) it rains. (B) it snows.") == ()
    assert find_pinned([*PLAIN, "Both 1 and 2"], "Statement 1| it rains. Statement 2| it snows.") == ()
    assert find_pinned(["1", "2", "3", "both 1 and 2"]) == ()


def test_letters_that_name_other_things(subtests: pytest.Subtests) -> None:
    for options, stem in (
        (["A and C", "B6 and B12", "B6 and D", "B12 and E"], "A shortage of these two vitamins mimics dementia:"),
        (["Vitamin A", "Vitamin D", "Both A and D", "Vitamin K"], "What is soluble in fat?"),
        (["AB", "O", "A and B", "Rh"], "Which blood groups can this donor give to?"),
        (["iron", "Hepatitis C", "B and C", "zinc"], "What is carried by blood?"),
        (["one", "two", "A and B"], "Which notes does she sing?"),
        (["wealthy", "poor", "Neither A nor B"], "Country A grows wheat; country B fishes. Who gains?"),
        (
            ["A and B only.", "A and C only.", "B and C only.", "A B and C."],
            "Segment A B C Total: which are disclosed?",
        ),
        (["I only", "II only", "I and II only", "Neither I nor II"], "I. Cats purr. II. Dogs purr."),
        (["yes", "no", "Both I and II"], "I. Cats purr. II. Dogs purr."),
        (["A,B,C", "A,C,B", "C,A,B"], "In what order? A-first sound B-wave C-ejection"),
        (["Option A", "Option B", "Both options"], "Option A costs 3, Option B costs 4. Which?"),
    ):
        with subtests.test(options=options, stem=stem):
            assert find_pinned(options, stem) == ()


def test_an_option_that_looks_like_a_list_of_numbers_is_not_one_of_names() -> None:
    assert find_pinned(["1, 0, float", "High, Low, Float", "Both A and B", "Set, Reset, Halt"]) == (0, 1, 2)


def test_options_repeated_in_the_passage_do_not_define_letters() -> None:
    options = [*PLAIN, "Both A and B are correct"]
    assert find_pinned(options, "Options:\n" + "\n".join(options) + "\nWhich purr?") == (0, 1, 3)


def test_names_are_changed_and_nothing_else() -> None:
    options = [*PLAIN, "A combination of A and C, but not of B"]
    assert label_references(options) == {3: {"a": 0, "c": 2, "b": 1}}
    assert rename(options[3], {"a": "1", "c": "3", "b": "2"}) == "A combination of 1 and 3, but not of 2"
    assert rename("both (a) and (c)", {"a": "I", "c": "III"}) == "both (I) and (III)"


def test_both_and_neither_close_a_list_but_quantities_do_not() -> None:
    assert find_pinned(["calories", "joules", "Both", "Neither"]) == (2, 3)
    assert find_pinned(["1", "2", "3", "None"], "How many moons has Venus?") == ()
    assert find_pinned(["None", "Some", "Most", "All"]) == ()
    assert find_pinned(["impolite", "none", "incorrect", "rude"]) == ()


def test_what_stands_above_must_stay_above() -> None:
    # Two more options stand below, so moving one of the first two under "above" would change its meaning.
    assert find_pinned(["x", "y", "all of the above", "z", "w"]) == (0, 1, 2)
    assert find_pinned(["x", "y", "all of the above", "none of the above"]) == (2, 3)
    assert find_pinned(["all of the below", "x", "y"]) == (0,)
    assert find_pinned(["w", "all of the below", "x", "y"]) == (1, 2, 3)
