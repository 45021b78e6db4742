from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.presentations.strategies import questions
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, NONE, present
from unslant.questions.question import Question

Q = Question("q", "Which?", ("w", "x", "y"), frozenset({1}), context="Facts.")


@given(st.data(), questions(), st.sampled_from(sorted(ALPHABETS)))
def test_labels_decode_to_the_content_they_stand_before(data, q, alphabet):
    order = data.draw(st.permutations(range(len(q.options))))
    shown = present(q, order, ALPHABETS[alphabet])
    for place, content in enumerate(order):
        label = ALPHABETS[alphabet][place]
        assert shown.content_of(label) == content
        assert shown.shown[place].text == q.options[content]
    assert sorted(shown.contents) == list(range(len(q.options)))
    assert {shown.content_of(label) for label in shown.right_labels} == q.answers


@given(st.data(), questions())
def test_labels_of_ones_own_may_stand_in_any_order(data, q):
    labels = data.draw(st.permutations(ALPHABETS["A"][: len(q.options)]))
    shown = present(q, labels=labels)
    assert shown.labels == tuple(labels)
    assert [shown.content_of(label) for label in labels] == list(range(len(q.options)))


def test_everything_of_the_question_is_carried_over():
    shown = present(Q)
    assert (shown.question_id, shown.stem, shown.context, shown.answers) == ("q", "Which?", "Facts.", frozenset({1}))
    assert shown.right_labels == ("B",)


def test_none_label_is_a_label_without_a_line():
    shown = replace(present(Q), none_label="N", answers=frozenset({NONE}))
    assert shown.labels == ("A", "B", "C", "N")
    assert shown.content_of("N") == NONE
    assert shown.right_labels == ("N",)
    assert len(shown.shown) == 3


def test_an_unknown_label_is_not_decoded():
    with pytest.raises(KeyError, match="D"):
        present(Q).content_of("D")


@pytest.mark.parametrize("order", [(0, 1), (0, 1, 1), (0, 1, 3), (0, 1, 2, 3), (-1, 0, 1)])
def test_what_is_not_a_permutation_is_refused(order):
    with pytest.raises(ValueError, match="is not a permutation of the 3 options of question 'q'"):
        present(Q, order)


def test_wrong_labels_are_refused():
    with pytest.raises(ValueError, match="2 labels for the 3 options of question 'q'"):
        present(Q, labels=("A", "B"))
    with pytest.raises(ValueError, match="question 'q': label 'A' means two answers"):
        present(Q, labels=("A", "B", "A"))
    with pytest.raises(ValueError, match="label 'C' means two answers"):
        replace(present(Q), none_label="C")
    with pytest.raises(InputError, match="has 2 labels"):
        present(Q, alphabet=("yes", "no"))


def test_shots_are_added_without_touching_the_rest():
    shot = present(replace(Q, id="shot"))
    shown = present(Q).with_shots([shot])
    assert shown.shots == (shot,)
    assert replace(shown, shots=()) == present(Q)


def test_options_that_name_others_name_them_by_the_labels_they_carry():
    q = Question("q", "Which purr?", ("cats", "dogs", "lynxes", "both A and C"), frozenset({3}), pinned=(0, 2, 3))

    def last(**how):
        return next(line.text for line in present(q, **how).shown if line.content == 3)

    assert last() == "both A and C"
    assert last(alphabet=ALPHABETS["1"]) == "both 1 and 3"
    assert last(labels="DCBA") == "both D and B"
    assert last(order=(2, 1, 0, 3)) == "both C and A"
    assert last(alphabet=("W", "X", "Y", "Z")) == "both W and Y"
    free = replace(q, pinned=())
    assert present(free, alphabet=ALPHABETS["1"]).shown[3].text == "both A and C"
    content = replace(q, options=("cats", "same as A", "lynxes", "both A and C"))
    assert [line.text for line in present(content, labels="DCBA").shown][1::2] == ["same as A", "both D and B"]
    numbered = replace(q, options=("cats", "dogs", "lynxes", "Both 1 and 3"))
    assert present(numbered).shown[3].text == "Both 1 and 3"
    assert present(numbered, labels="4321").shown[3].text == "Both 4 and 2"
