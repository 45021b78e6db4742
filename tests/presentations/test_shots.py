from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.presentations.strategies import questions
from unslant.errors import InputError
from unslant.presentations import ALPHABETS
from unslant.presentations.shots import ShotChooser
from unslant.questions import load_questions
from unslant.questions.question import Question

POOL = [
    Question(f"q{i:02}", f"Question {i}?", tuple(f"{letter}{i}" for letter in "wxyz"), frozenset({i % 4}))
    for i in range(20)
]
OUTSIDE = Question("new", "A new question?", ("a", "b"), frozenset({0}))


def ids(shots):
    return [shot.question_id for shot in shots]


@given(st.integers(0, 12), st.integers(0, 5))
def test_the_question_is_never_among_its_own_examples(k, seed):
    chooser = ShotChooser(POOL, k, seed)
    for question in POOL:
        shots = chooser.of(question)
        assert len(set(ids(shots))) == k
        assert question.id not in ids(shots)


def test_a_copy_under_another_id_is_not_an_example_either():
    copies = [replace(q, id=f"copy {q.id}", options=q.options[::-1], answers=frozenset()) for q in POOL]
    chooser = ShotChooser(POOL, 10)
    for copy, original in zip(copies, POOL, strict=True):
        assert original.id not in ids(chooser.of(copy))


def test_another_question_with_the_id_of_an_example_keeps_the_example():
    chooser = ShotChooser(POOL[:5], 5)
    for example in POOL[:5]:  # test.csv and dev.csv both number their questions from 1
        assert chooser.of(replace(OUTSIDE, id=example.id)) == chooser.of(OUTSIDE)


@given(st.integers(1, 10), st.integers(0, 5))
def test_the_whole_run_has_the_same_examples(k, seed):
    chooser = ShotChooser(POOL, k, seed)
    usual = chooser.of(OUTSIDE)
    for question in POOL:
        shots = chooser.of(question)
        if question.id in ids(usual):
            place = ids(usual).index(question.id)
            assert ids(shots)[:place] + ids(shots)[place + 1 :] == ids(usual)[:place] + ids(usual)[place + 1 :]
        else:
            assert shots == usual


def test_seed_and_pool_order():
    assert ShotChooser(POOL, 5).of(OUTSIDE) == ShotChooser(POOL[::-1], 5).of(OUTSIDE)
    assert ShotChooser(POOL, 5, seed=1).of(OUTSIDE) != ShotChooser(POOL, 5, seed=2).of(OUTSIDE)


@given(st.integers(1, 12), st.integers(0, 20))
def test_right_answers_are_spread_evenly_over_positions(k, seed):
    shots = ShotChooser(POOL, k, seed).of(OUTSIDE)
    positions = Counter(shot.labels.index(shot.right_labels[0]) for shot in shots)
    counts = [positions[position] for position in range(4)]
    assert max(counts) - min(counts) <= 1


@given(st.lists(questions(), max_size=12), st.integers(0, 4))
def test_examples_are_whole_questions_with_one_right_answer(pool, k):
    pool = [replace(question, id=str(i)) for i, question in enumerate(pool)]
    usable = {q.id: q for q in pool if len(q.answers) == 1 and not q.pinned}
    if len(usable) < k:
        with pytest.raises(InputError, match=f"only {len(usable)} of {len(pool)} questions"):
            ShotChooser(pool, k).of(OUTSIDE)
        return
    for shot in ShotChooser(pool, k).of(OUTSIDE):
        original = usable[shot.question_id]
        assert len(shot.right_labels) == 1
        assert shot.content_of(shot.right_labels[0]) in original.answers
        assert {(o.content, o.text) for o in shot.shown} == set(enumerate(original.options))
        assert shot.kind == "shot"


def test_examples_carry_the_labels_of_the_run():
    shots = ShotChooser(POOL, 2, alphabet=ALPHABETS["1"]).of(OUTSIDE)
    assert all(shot.labels == ("1", "2", "3", "4") for shot in shots)


def test_too_few_without_the_question_itself():
    chooser = ShotChooser(POOL[:3], 3)
    assert len(chooser.of(OUTSIDE)) == 3
    with pytest.raises(InputError, match="too few are left without question 'q01' itself: use fewer shots"):
        chooser.of(POOL[1])


def test_by_subject_examples_are_of_the_subject_and_the_same_for_all_of_it():
    pool = [replace(question, subject="law" if i % 2 else "art") for i, question in enumerate(POOL)]
    chooser = ShotChooser(pool, 4, by_subject=True)
    for subject in ("law", "art"):
        asked = [replace(OUTSIDE, id=f"{subject}{i}", subject=subject) for i in range(3)]
        chosen = {tuple(ids(chooser.of(question))) for question in asked}
        assert len(chosen) == 1
        assert {int(name[1:]) % 2 for name in next(iter(chosen))} == {int(subject == "law")}
    inside = chooser.of(pool[1])
    assert "q01" not in ids(inside)
    assert len(set(ids(inside))) == 4


def test_by_subject_without_enough_of_it_names_the_subject():
    pool = [replace(question, subject="art") for question in POOL]
    chooser = ShotChooser(pool, 4, by_subject=True)
    with pytest.raises(InputError, match=r"4 worked examples of subject 'law' wanted, but only 0 of its questions"):
        chooser.of(replace(OUTSIDE, subject="law"))
    with pytest.raises(InputError, match=r"question 'new' has no subject; name its column with fields=..subject.."):
        chooser.of(OUTSIDE)
    assert ShotChooser(pool, 0, by_subject=True).of(OUTSIDE) == ()


def test_by_subject_those_with_pinned_options_come_last_and_as_published():
    pool = [replace(question, subject="law") for question in POOL[:3]]
    pool += [replace(question, subject="law", pinned=(3,)) for question in POOL[3:5]]
    shots = ShotChooser(pool, 5, by_subject=True).of(replace(OUTSIDE, subject="law"))
    assert set(ids(shots[:3])) == {"q00", "q01", "q02"}
    assert {shot.contents for shot in shots[3:]} == {(0, 1, 2, 3)}
    with pytest.raises(InputError, match=r"only 3 of 5 .* have exactly one right option and no pinned ones"):
        ShotChooser(pool, 5)
    with pytest.raises(InputError, match=r"only 5 of 5 .* have exactly one right option: use fewer"):
        ShotChooser(pool, 6, by_subject=True)


def test_every_subject_of_mmlu_has_its_five_examples(shared_data):
    dev = load_questions(shared_data / "mmlu_dev.jsonl").questions
    chooser = ShotChooser(dev, 5, by_subject=True)
    for question in dev:
        subject = {shot.id for shot in dev if shot.subject == question.subject}
        assert set(ids(chooser.of(replace(question, id="asked", stem="Another?")))) == subject
