"""The jitters: near misses are near and wrong, and a changed question really has another answer."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.presentations.interventions import (
    Composed,
    NotApplicable,
    apply,
    compose,
    open_question,
    pool_of,
    possible,
)
from unslant.presentations.interventions.language import number
from unslant.presentations.interventions.maths import answer_jitter, question_jitter
from unslant.questions import MathQuestion

HAY = "Ann has 16 sheep and buys 9 more. Each eats 6 kilos of hay. How many kilos do they eat in all?"
HAY_SOLUTION = "16+9=<<16+9=25>>25 and 25*6=<<25*6=150>>150."


@given(
    value=st.decimals(min_value=-10_000, max_value=10_000_000, places=2),
    style=st.sampled_from("idc$"),
    seed=st.integers(0, 50),
)
def test_near_misses_are_four_distinct_numbers_with_the_answer_among_them(value, style, seed):
    text = {"i": f"{int(value)}", "d": f"{value:.2f}", "c": f"{int(value):,}", "$": f"${abs(int(value))}"}[style]
    question = answer_jitter(MathQuestion("m", "How many?", text), random.Random(seed))
    numbers = [number(option) for option in question.options]
    assert None not in numbers
    assert len(set(numbers)) == 4
    assert numbers == sorted(numbers)
    (right,) = question.answers
    assert question.options[right] == text
    if number(text) >= 0:
        assert min(numbers) >= 0
    if style == "$":
        assert all(option.startswith("$") for option in question.options)
    if style == "i":
        assert all("." not in option and "," not in option for option in question.options)


def test_the_answer_is_in_every_place_equally_often():
    places = [min(answer_jitter(MathQuestion("m", "How many?", "50"), random.Random(s)).answers) for s in range(4000)]
    assert all(900 < places.count(place) < 1100 for place in range(4))


@pytest.mark.parametrize("answer", ["5 %", "7$", "+5", "5.", "  7 ", "$-5", "2.50 %", "1,080", "1,000.50", "€ 3"])
def test_near_misses_are_written_as_the_answer_is(answer):
    for seed in range(20):
        question = answer_jitter(MathQuestion("m", "How many?", answer), random.Random(seed))
        assert (
            len({re.sub(r"-?\d[\d,]*(\.\d+)?", lambda one: f"{len(one[1] or '')}", text) for text in question.options})
            == 1
        )
        assert len(set(question.options)) == 4


@pytest.mark.parametrize("answer", ["1/2", "-1/2", "12/4", "1e3", "1_000", "1,5", "007", ".5", "٣"])
def test_an_answer_that_near_misses_cannot_imitate_takes_no_jitter_and_can_be_asked_as_it_is(answer):
    """The near misses of 1/2 were 0, 1 and 1."""
    question, pool = MathQuestion("m", "How many?", answer), pool_of([MathQuestion("n", "How many else?", "4")])
    for code in ("AJ", "QJ"):
        refused = apply(question, [code], pool)
        assert isinstance(refused, NotApplicable)
        assert refused.reason == "the answer is written as no near miss would be"
    assert isinstance(open_question(question, pool), Composed)


def items(question, n=400):
    return [question_jitter(question, random.Random(seed)) for seed in range(n)]


def test_true_and_false_are_equally_likely_and_false_ones_are_false():
    made = items(MathQuestion("m", HAY, "150", HAY_SOLUTION))
    true = [item for item in made if item.answers == {0}]
    false = [item for item in made if item.answers == {1}]
    assert 160 < len(true) < 240
    assert {item.stem for item in true} == {f"{HAY}\nProposed answer: 150"}
    changed_answer = [item for item in false if item.stem.startswith(HAY)]
    changed_question = [item for item in false if not item.stem.startswith(HAY)]
    assert len(changed_answer) > 60
    assert len(changed_question) > 60
    assert all(not item.stem.endswith(": 150") for item in changed_answer)
    for item in changed_question:
        assert item.stem.endswith("Proposed answer: 150")
        sheep, more, hay = (int(word) for word in item.stem.split() if word.isdigit() and word != "150")
        assert (sheep + more) * hay != 150


def test_a_question_is_not_changed_where_the_effect_is_not_shown(subtests: pytest.Subtests) -> None:
    for stem, answer, solution, why in (
        (HAY, "150", "", "no worked solution"),
        (HAY, "150", "<<16+9=26>>26 and <<26*6=156>>156", "a step is wrong"),
        (
            "He has 9 hens and 9 cows and loses 3. How many are left?",
            "12",
            "<<9+9-6=12>>12",
            "the number stands there twice",
        ),
        ("He cuts 36 metres of rope in 9. How long is a piece?", "4", "<<f(36)=4>>4", "a step cannot be followed"),
        ("He has 8 hats and eight coats. How many things?", "16", "<<8*2=16>>16", "it stands there in words too"),
        ("He has 12 hats and sells half. How many are left?", "6", "<<12/2=6>>6", "it may be implied elsewhere"),
        (
            "Ann buys 15 eggs for 26 pounds and finds 8 more. How many eggs has she?",
            "23",
            "<<26-15=11>>11 is no help.",
            "the solution ends in another number",
        ),
        (
            "Ann earns 35 pounds an hour for 8 hours and spends 22. How much is left?",
            "258",
            "35*8=280 and <<280-22=258>>258.",
            "280 comes from nowhere",
        ),
        (
            "There are 9 cakes and 2 plates beside the door. Cakes?",
            "9",
            "<<9*1=9>>9",
            "a result has the number's value",
        ),
    ):
        with subtests.test(stem=stem, answer=answer):
            question = MathQuestion("m", stem, answer, solution)
            assert all(item.stem.startswith(stem) for item in items(question, 200)), why


def test_no_question_jitter_where_the_solution_ends_in_another_number():
    """gsm8k/test/593 and 75 others of that file."""
    question = MathQuestion("m", HAY, "3", HAY_SOLUTION)
    reason = "the worked solution ends in another number than the answer"
    assert possible(question) == (("AJ", "DQ", "DH", "AR", "OS", "LR"), {"QJ": reason})
    pool = pool_of([question, MathQuestion("n", HAY, "150", HAY_SOLUTION)])
    assert apply(question, ("QJ",), pool) == NotApplicable("m", reason, ("QJ",))
    for run in range(20):
        composed = compose(question, pool, {"QJ": 1.0, "AJ": 0.0}, run=run)
        assert isinstance(composed, Composed)
        assert composed.interventions[0] == "AJ"
        assert composed.left_out["QJ"] == reason


def test_a_number_without_effect_is_not_changed():
    stem = "Ann paid 8 pounds for 15 eggs and ate 6 of them. How many eggs are left?"
    changed = set()
    for item in items(MathQuestion("m", stem, "9", "<<15-6=9>>9"), 300):
        assert "paid 8 pounds" in item.stem
        changed.add(item.stem.split("\n")[0])
    assert len(changed) > 4


def test_changes_keep_results_whole():
    changed = set()
    for item in items(MathQuestion("m", "A farmer shares 32 eggs among 8 friends.", "4", "<<32/8=4>>4"), 300):
        eggs, friends = (int(word) for word in item.stem.split("\n")[0].split() if word.isdigit())
        assert eggs % friends == 0
        changed.add((eggs, friends))
    assert changed == {(32, 8)}


def test_numbers_are_read(subtests: pytest.Subtests) -> None:
    for text, value in (
        ("1,080", "1080"),
        ("$3.50", "3.5"),
        ("-2", "-2"),
        ("−2", "-2"),
        ("1/2", "0.5"),
        ("50%", "0.5"),
        ("18.", "18"),
        ("1e3", "1000"),
    ):
        with subtests.test(text=text, value=value):
            assert number(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "a dozen", "2:30", "1/0", "nan", "inf", "3 and 4"])
def test_other_texts_are_not_numbers(text):
    assert number(text) is None
