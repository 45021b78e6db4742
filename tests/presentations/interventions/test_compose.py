"""Composition: right answers stay right, choices are seeded, and what cannot be done is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.presentations.interventions.checks import check_composed, check_presentation
from unslant.errors import InputError
from unslant.presentations import FOREIGN, NONE, Presentation
from unslant.presentations.interventions import (
    Composed,
    NotApplicable,
    apply,
    combinations,
    compose,
    open_question,
    pool_of,
    possible,
)
from unslant.prompts import Writer, load_template
from unslant.questions import MathQuestion, Question

SHEEP = MathQuestion(
    "m/1",
    "Ann has 12 sheep and buys 5 more. Each sheep eats 3 kilos of hay. How many kilos do they eat?",
    "51",
    "She has 12+5=<<12+5=17>>17 sheep. They eat 17*3=<<17*3=51>>51 kilos.",
)
STORIES = (
    "Bert has {a} hens and {b} geese in the barn. How many birds has he?",
    "A train carries {a} children, then {b} adults step on. How many travel?",
    "Cora reads {a} pages at dawn plus {b} after supper. What is her total?",
    "Dan spent {a} dollars for paint, {b} for brushes. What did everything cost?",
)
FARM = [SHEEP] + [MathQuestion(f"m/{i}", STORIES[i % 4].format(a=i, b=7 * i), str(8 * i)) for i in range(2, 60)]


def question(stem="What colour is the lamp of the miller?", options=("red", "green", "blue"), answers=(0,), **more):
    return Question("q/own", stem, tuple(options), frozenset(answers), **more)


def done(result) -> Composed:
    assert isinstance(result, Composed), result
    return result


def shown_once(result) -> Presentation:
    ((_, presentation),) = done(result).items
    return presentation


def test_no_intervention_is_the_question_as_published(world_pool):
    presentation = shown_once(apply(question(), (), world_pool))
    assert [line.text for line in presentation.shown] == ["red", "green", "blue"]
    assert presentation.labels == ("A", "B", "C")
    assert (presentation.hint, presentation.distractor) == ("", "")


@pytest.mark.parametrize("combination", combinations("choice"), ids="+".join)
def test_every_legal_combination_on_questions(combination, world_questions, world_pool):
    changed = 0
    for one in world_questions[:40]:
        result = apply(one, combination, world_pool)
        if isinstance(result, Composed):
            changed += 1
            check_composed(one, result)
    assert changed > 30


@pytest.mark.parametrize("combination", combinations("maths"), ids="+".join)
def test_every_legal_combination_on_maths(combination):
    pool = pool_of(FARM)
    for one in FARM[:20]:
        check_composed(one, done(apply(one, combination, pool)))


def test_an_illegal_combination_is_refused(world_pool):
    with pytest.raises(InputError, match="answer removal needs distractor hint"):
        apply(question(), ("AR",), world_pool)
    with pytest.raises(InputError, match="cannot be combined"):
        apply(question(), ("BT", "OS"), world_pool)
    with pytest.raises(InputError, match="needs question jitter or answer jitter"):
        apply(SHEEP, (), world_pool)


def test_the_same_seed_gives_the_same_and_another_run_another(world_questions, world_pool):
    def draw(seed, run):
        composed = [compose(one, world_pool, seed=seed, run=run, shots=2) for one in world_questions[:60]]
        return [
            [(q, replace(p, run=0)) for q, p in one.items] if isinstance(one, Composed) else one for one in composed
        ]

    assert draw(0, 0) == draw(0, 0)
    assert draw(0, 0) != draw(0, 1)
    assert draw(0, 0) != draw(1, 0)


def test_the_file_order_does_not_matter(world_questions):
    there, back = pool_of(world_questions), pool_of(world_questions[::-1])
    for one in world_questions[:80]:
        assert compose(one, there, shots=3) == compose(one, back, shots=3)


def test_leaving_a_question_out_changes_only_those_that_borrowed_from_it(world_questions, world_pool):
    less = pool_of(world_questions[1:])
    same = sum(compose(one, world_pool) == compose(one, less) for one in world_questions[1:])
    assert same >= 0.97 * (len(world_questions) - 1)


def test_removal_takes_every_copy_of_a_right_option(world_pool):
    twice = question(options=("red", "red", "green"), answers=(0,))
    seen_none = False
    for run in range(40):
        presentation = shown_once(apply(twice, ("DH", "AR"), world_pool, run=run))
        check_presentation(twice, presentation)
        texts = [line.text for line in presentation.shown]
        if NONE in presentation.answers:
            seen_none = True
            assert "red" not in texts
            assert [line.content for line in presentation.shown][:2] == [FOREIGN, FOREIGN]
        else:
            assert presentation.right_labels == ("A", "B")
    assert seen_none


def test_removal_leaves_a_second_right_option_right(world_pool):
    several = question(options=("red", "crimson", "green"), answers=(0, 1))
    for run in range(20):
        presentation = shown_once(apply(several, ("DH", "AR"), world_pool, run=run))
        assert NONE not in presentation.answers
        check_presentation(several, presentation)


def test_nothing_equivalent_to_an_option_is_borrowed():
    own = question("How long is the rope of the miller in metres?", ("1000", "20", "7"))
    others = [
        Question(f"o/{i}", f"How heavy is boat number {i} by the quay?", options, frozenset({0}))
        for i, options in enumerate(
            [("1,000", "$1000.00"), ("Twenty", " 20. "), ("seven", "7.0"), ("anchor", "1,000.")]
        )
    ]
    borrowed = set()
    for run in range(200):
        presentation = shown_once(apply(own, ("DH", "AR"), pool_of(others), run=run))
        borrowed |= {line.text for line in presentation.shown if line.content == FOREIGN}
    assert borrowed == {"anchor"}


def test_what_answers_the_second_question_is_not_borrowed():
    own = question("How long is the rope of the miller in metres?", ("90", "20", "7"))
    second = Question("o/second", "Where does captain Ann keep her boat?", ("Loch Ness", "a shed"), frozenset({0}))
    others = [
        Question(f"o/{i}", f"What is painted on the wall {i}?", (text, f"mural {i}"), frozenset({0}))
        for i, text in enumerate(("LOCH NESS.", "the shore of Loch Ness", "Ness", "anchor"))
    ]
    borrowed: set[str] = set()
    for run in range(400):
        shown = shown_once(apply(own, ("DQ", "DH", "AR"), pool_of([second, *others]), run=run))
        if second.stem in (shown.stem, shown.distractor):
            borrowed |= {line.text for line in shown.shown if line.content == FOREIGN}
    assert borrowed == {"anchor", "mural 0", "mural 1", "mural 2", "mural 3"}


def test_numbers_that_answer_the_second_question_are_not_borrowed():
    farm = [*FARM, *(replace(one, id=f"{one.id}/twin", stem=f"{one.stem} Say it.") for one in FARM)]
    pool, by_stem = pool_of(farm), {one.stem: one for one in farm}
    for run in range(10):
        for one in FARM[:20]:
            shown = shown_once(apply(one, ("AJ", "DQ", "DH", "AR"), pool, run=run))
            (second,) = {shown.stem, shown.distractor} - {one.stem}
            foreign = [line.text for line in shown.shown if line.content == FOREIGN]
            assert not {by_stem[second].answer, one.answer} & set(foreign)


def test_the_options_do_not_hold_the_answer_to_the_second_question():
    own = question("Where does captain Ann keep her boat?", ("Loch Ness, Scotland", "Rome", "Oslo"))
    ness = Question("o/1", "What is painted on the northern wall?", ("Loch Ness", "a ship"), frozenset({0}))
    rope = Question("o/2", "What is sold in the corner shop?", ("rope", "tar"), frozenset({0}))
    for run in range(30):
        shown = shown_once(apply(own, ("DQ",), pool_of([ness, rope]), run=run))
        assert rope.stem in (shown.stem, shown.distractor)


@pytest.mark.parametrize(
    ("options", "right"),
    [
        (("diaphragm", "diaphragm and pleura", "skin"), 1),
        (("diaphragm", "diaphragm and pleura", "skin"), 0),
        (("both salt and tin", "tin", "wax"), 0),
        (("over 10 metres", "over 20 metres", "3 metres"), 0),
    ],
)
def test_partly_right_options_take_no_removal_and_no_judging(options, right, world_pool):
    nested = question("What does the miller mend at noon?", options, (right,))
    for codes in (("BT",), ("DH", "AR")):
        result = apply(nested, codes, world_pool)
        assert isinstance(result, NotApplicable)
        assert "part of the right one" in result.reason
    assert not {"BT", "AR"} & set(possible(nested)[0])
    other = replace(nested, answers=frozenset({2}))  # both parts are wrong
    assert {"BT", "AR"} <= set(possible(other)[0])


def test_the_label_for_none_makes_way_where_n_is_taken(world_pool):
    many = question(options=[f"shade {i} of amber" for i in range(26)], answers=(13,))
    presentation = shown_once(apply(many, ("DH",), world_pool))
    assert presentation.labels[13] == "N"
    assert presentation.none_label == "None"
    assert "answer None" in presentation.hint


def test_labels_that_could_be_read_as_options_are_not_used(world_pool):
    numbers = question("How many lamps has the miller?", ("3", "1", "2"))
    roman = question("What statements hold for lamps here?", ("I and II", "III", "II"))
    both = question("What statements hold for lamps here?", ("I and II", "III", "2"))
    for run in range(20):
        assert shown_once(apply(numbers, ("LR",), world_pool, run=run)).labels == ("I", "II", "III")
        assert shown_once(apply(roman, ("LR",), world_pool, run=run)).labels == ("1", "2", "3")
        assert shown_once(apply(both, ("LR",), world_pool, run=run)).labels == ("a", "b", "c")


def test_shuffling_moves_something_and_leaves_pinned_options(world_pool):
    pinned = question(options=("red", "green", "blue", "all of the above"), pinned=(3,))
    orders = set()
    for run in range(60):
        shown = shown_once(apply(pinned, ("OS",), world_pool, run=run)).shown
        orders.add(tuple(line.content for line in shown))
    assert len(orders) == 5  # 3! without the given one
    assert {order[3] for order in orders} == {3}


def test_a_second_question_comes_before_and_after_and_shares_no_option(world_questions, world_pool):
    first = 0
    for one in world_questions[:60]:
        presentation = shown_once(apply(one, ("DQ",), world_pool))
        first += presentation.stem == one.stem
        other = presentation.distractor if presentation.stem == one.stem else presentation.stem
        source = next(q for q in world_questions if q.stem == other)
        assert not set(source.options) & set(one.options)
        assert source.subject != one.subject
    assert 15 < first < 45


@pytest.mark.parametrize(
    ("given_question", "codes", "reason"),
    [
        (question(answers=()), (), "no option is right"),
        (question(options=("red", "green", "none of the above")), ("DH",), "says that none is right"),
        (question(options=("red", "both A and C", "blue"), pinned=(0, 1, 2)), ("DH", "AR"), "refer to other options"),
        (question(options=("red", "both A and C", "blue"), pinned=(0, 1, 2)), ("LR",), "by their labels"),
        (question(options=("red", "both A and C", "blue"), pinned=(0, 1, 2)), ("OS",), "may change place"),
        (question(options=("red", "red ")), ("OS",), "fewer than two different"),
        (question("Which of these is not a fruit of the garden?"), ("DH", "AR"), "exception"),
        (question("What is the largest lamp in town?"), ("DH", "AR"), "next best"),
        (question("Which of the following is true?"), ("DQ",), "fit any options"),
        (question("Which of the following lamps burns oil?"), ("BT",), "speaks of its options"),
        (question(options=("Aa", "aa", "AA")), ("DH", "AR"), "case or punctuation"),
        (question(options=("red", "", "blue")), ("BT",), "empty"),
    ],
)
def test_what_a_question_cannot_take_is_said(given_question, codes, reason, world_pool):
    result = apply(given_question, codes, world_pool)
    assert isinstance(result, NotApplicable)
    assert reason in result.reason
    if codes:  # the rest of the question can still be composed
        assert isinstance(compose(given_question, world_pool), Composed)
        for code in result.interventions:
            assert code not in possible(given_question)[0]


def test_a_lonely_question_takes_what_needs_no_other():
    alone = question()
    for run in range(100):
        composed = done(compose(alone, pool_of([alone]), run=run))
        check_composed(alone, composed)
        assert not {"DQ", "AR"} & set(composed.interventions)


def test_a_maths_question_without_a_number_is_counted():
    words = replace(SHEEP, answer="a dozen or so")
    result = compose(words, pool_of(FARM))
    assert result == NotApplicable("m/1", "the answer is not a number")


class TestShots:
    def test_carry_the_interventions_but_removal_in_half(self, world_questions, world_pool):
        removed = []
        for one in world_questions[:40]:
            presentation = shown_once(apply(one, ("DQ", "DH", "AR", "LR"), world_pool, shots=5))
            assert len({shot.question_id for shot in presentation.shots} | {one.id}) == 6
            for shot in presentation.shots:
                assert set(shot.interventions) - {"AR"} == {"DQ", "DH", "LR"}
                assert shot.labels[0] == presentation.labels[0]
                assert len(shot.right_labels) == 1
            removed.append(sum("AR" in shot.interventions for shot in presentation.shots))
        assert set(removed) == {2}

    def test_of_true_false_items_are_true_in_half(self, world_questions, world_pool):
        true = [
            sum(
                shot.right_labels == ("T",) for shot in done(apply(one, ("BT",), world_pool, shots=4)).items[0][1].shots
            )
            for one in world_questions[:20]
        ]
        assert set(true) == {2}

    def test_never_answer_the_distractor(self, world_questions, world_pool):
        """An example that answers the second stem shows which of the two does not fit the options."""
        for run in range(4):
            for one in world_questions[:60]:
                presentation = shown_once(apply(one, ("DQ",), world_pool, run=run, shots=5))
                stems = {presentation.stem, presentation.distractor}
                asked = {
                    next(q.stem for q in world_questions if q.id == shot.question_id) for shot in presentation.shots
                }
                assert not stems & asked

    def test_of_jittered_questions_are_true_in_half(self):
        pool, labels = pool_of(FARM), []
        for run in range(20):
            for k in (2, 4, 5):
                shots = shown_once(apply(SHEEP, ("QJ",), pool, run=run, shots=k)).shots
                labels.append(sum(shot.right_labels == ("T",) for shot in shots) - k / 2)
        assert set(labels) == {-0.5, 0.0, 0.5}

    def test_serve_open_questions(self):
        ((_, presentation),) = done(open_question(SHEEP, pool_of(FARM), shots=5)).items
        numbers = {question.id: question.answer for question in FARM}
        assert {shot.question_id: shot.open_answer for shot in presentation.shots}.items() <= numbers.items()
        assert len({shot.question_id for shot in presentation.shots} - {SHEEP.id}) == 5
        prompt = Writer(load_template("plain"), chat=True).prompt(presentation, "Answer:", ())
        replies = [message.content for message in prompt.messages if message.role == "assistant"]
        assert replies == [shot.open_answer for shot in presentation.shots]

    def test_serve_maths(self):
        pool = pool_of(FARM)
        for code in ("QJ", "AJ"):
            presentation = shown_once(apply(SHEEP, (code, "OS", "LR"), pool, shots=5))
            assert len(presentation.shots) == 5
            assert {shot.labels[0] for shot in presentation.shots} == {presentation.labels[0]}

    def test_too_few_is_an_error_that_says_so(self, world_questions):
        with pytest.raises(InputError, match=r"5 worked examples requested, but only 2"):
            apply(world_questions[0], (), pool_of(world_questions[:3]), shots=5)

    def test_another_question_of_the_same_id_may_serve(self, world_questions):
        one, first, second = world_questions[:3]
        pool = pool_of([replace(first, id=one.id), second])  # two numbered files
        assert len(shown_once(apply(one, (), pool, shots=2)).shots) == 2

    def test_may_come_from_another_set(self, world_questions, world_pool):
        other = [replace(one, id=f"dev/{one.id}") for one in world_questions[200:]]
        presentation = done(compose(world_questions[0], world_pool, shots=5, shots_from=pool_of(other))).items[0][1]
        assert all(shot.question_id.startswith("dev/") for shot in presentation.shots)


WORDS = st.sampled_from(
    ["Paris", "paris", "7", "7.0", "1,000", "1000", "Aa", "aa", "", " ", "none of these", "all of the above", "N", "IV",
     "the moon", "Moon!", "A", "½", "日本", "both A and B", "yes", "x^2", "-5", "5", "50%", "0.5", "\n", "a b c"]
)  # fmt: skip


@given(
    options=st.lists(WORDS, min_size=2, max_size=26),
    data=st.data(),
    stem=st.sampled_from(["What is it?", "Which city is not far from the river Seine?", "How many sheep has Ann?", ""]),
    run=st.integers(0, 5),
)
def test_any_question_composes_or_says_why(options, data, stem, run):
    answers = data.draw(st.sets(st.integers(0, len(options) - 1), max_size=3))
    pinned = data.draw(st.sets(st.integers(0, len(options) - 1), max_size=2))
    one = Question("q", stem, tuple(options), frozenset(answers), pinned=tuple(sorted(pinned)))
    others = [Question(f"o/{i}", f"Where does captain {w} keep boat {i}?", (w, f"pier {i}"), frozenset({0}))
              for i, w in enumerate(("anchor", "rope", "sail", "Paris", "1000"))]  # fmt: skip
    result = compose(one, pool_of([one, *others]), run=run)
    if isinstance(result, NotApplicable):
        assert result.reason == "no option is right"
        assert not answers
    else:
        check_composed(one, result)
