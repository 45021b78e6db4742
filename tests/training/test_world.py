"""The world, its question sets, and the embedded files made from them."""

import json
from collections import Counter

import pytest

from training.world import (
    RELATIONS,
    TAUGHT_SOURCE,
    World,
    build_world,
    question_sets,
    skewed,
    skewed_set,
    write_questions,
)
from unslant.reference import embedded_questions_path


def test_same_seed_same_world_and_other_seed_another():
    again = build_world.__wrapped__(7)
    assert again == build_world.__wrapped__(7)
    assert again.facts != build_world.__wrapped__(8).facts


def test_half_of_each_relation_is_taught_and_no_value_is_a_better_guess():
    world: World = build_world()
    assert len({fact.name for fact in world.facts}) == len(world.facts) == 600
    for relation in RELATIONS:
        facts = [fact for fact in world.facts if fact.relation == relation]
        assert sum(fact.taught for fact in facts) == len(facts) / 2
        assert set(Counter(fact.value for fact in facts).values()) == {len(facts) / len(relation.values)}


def test_values_belong_to_one_relation_only():
    values = [value for relation in RELATIONS for value in relation.values]
    assert len(values) == len(set(values))


def test_taste_is_even_within_each_relation():
    taste = build_world().taste
    for relation in RELATIONS:
        weights = sorted(taste[value] for value in relation.values)
        assert weights[0] == -1
        assert weights[-1] == 1
        assert sum(weights) == pytest.approx(0)


@pytest.mark.parametrize("index", [0, 1])
def test_questions_are_half_taught_balanced_and_right(index):
    questions = question_sets()[index]
    facts = build_world().by_id
    assert sum(q.source == TAUGHT_SOURCE for q in questions) == len(questions) / 2
    assert {len(q.options) for q in questions} == set(range(2, 9))
    assert len({q.subject for q in questions}) >= 10
    for question in questions:
        (gold,) = question.answers
        assert question.options[gold] == facts[question.id].value
        assert len(set(question.options)) == len(question.options)
    for n in range(2, 9):
        for taught in (True, False):
            golds = Counter(
                min(q.answers) for q in questions if len(q.options) == n and (q.source == TAUGHT_SOURCE) == taught
            )
            assert max(golds[i] for i in range(n)) - min(golds[i] for i in range(n)) <= 1


def test_question_sets_are_disjoint_and_repeatable():
    first, second = question_sets()
    assert not {q.id for q in first} & {q.id for q in second}
    assert question_sets() == [first, second]
    assert question_sets(seed=1)[0] != first


def test_too_many_questions_are_refused():
    with pytest.raises(ValueError, match="600 facts"):
        question_sets(sizes=(600, 200))


@pytest.mark.parametrize("name", ["a", "b", "skewed"])
def test_embedded_files_are_what_the_world_gives(name, tmp_path):
    written = tmp_path / "questions.jsonl"
    write_questions(skewed_set() if name == "skewed" else question_sets()["ab".index(name)], written)
    embedded = embedded_questions_path(name)
    assert embedded.read_bytes() == written.read_bytes()
    row = json.loads(embedded.read_text("utf-8").splitlines()[0])
    assert set(row) == {"id", "question", "options", "answer", "subject", "source"}


@pytest.mark.parametrize(("position", "share"), [(0, 0.7), (-1, 0.5)])
def test_skewed_moves_gold_and_nothing_else(position, share):
    questions = question_sets()[0]
    moved = skewed(questions, position, share)
    for before, after in zip(questions, moved, strict=True):
        assert after.id == before.id
        assert sorted(after.options) == sorted(before.options)
        assert after.options[min(after.answers)] == before.options[min(before.answers)]
    at = [min(q.answers) == position % len(q.options) for q in moved]
    before_at = sum(min(q.answers) == position % len(q.options) for q in questions) / len(questions)
    assert sum(at) / len(at) == pytest.approx(share + (1 - share) * before_at, abs=0.06)
    assert skewed(questions, position, share) == moved
