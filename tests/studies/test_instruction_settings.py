from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace

import pytest

from unslant.errors import InputError
from unslant.presentations import NONE
from unslant.questions import JudgingQuestion, Question
from unslant.studies.instruction_boundary.instruction_settings import (
    SETTINGS,
    body,
    chat,
    form_of,
    instruction,
    is_dense,
    present_setting,
    right_answer,
)
from unslant.studies.instruction_boundary.question_sources import load_boundary
from unslant.studies.instruction_boundary.study import plan

EMBEDDED = load_boundary("embedded")
CHOICE = EMBEDDED.choice
JUDGING = EMBEDDED.judging
BOTH = (*CHOICE, *JUDGING)
UNCHANGED = ["vanilla", "reasoning-reflection", "mitigation", "vagueness", "missing-choices"]


def shown(question, name, **more):
    return present_setting(question, name, examples=BOTH, **more)


@pytest.mark.parametrize("name", [name for name in SETTINGS if not name.startswith("disturbing")])
def test_every_setting_shows_the_question_and_keeps_the_truth(name):
    for question in random.Random(0).sample(BOTH, 40):
        one = shown(question, name)
        assert (one.kind, one.item) == ("setting", name)
        assert one.answers == ({NONE} if form_of(question) == "none" else one.answers)
        text = "\n".join(message.content for message in chat(one))
        if isinstance(question, Question):
            assert question.stem in text
            assert all(option in text for option in question.options)
            if question.answers:
                assert {question.options[i] for i in one.answers} == {question.options[i] for i in question.answers}
        else:
            assert question.statement in text
            assert one.right_labels == (question.verdict,)
        assert "None of the above" not in text


def test_an_instruction_is_the_same_for_all_forms_of_a_kind():
    for name in UNCHANGED:
        assert len({shown(question, name).instruction for question in CHOICE}) == 1
        assert len({shown(question, name).instruction for question in JUDGING}) == 1


def test_what_instructions_name():
    vanilla = instruction("choice", "vanilla")
    assert all(word in vanilla for word in ("exactly one", "several", "none"))
    assert not set("ABCDN") & set(re.findall(r"\b[A-Z]\b", vanilla))  # no example of an answer, which would prime
    assert "none" not in instruction("choice", "missing-choices")
    assert "several" not in instruction("choice", "missing-choices", "several")
    assert "Unknown" not in instruction("judging", "missing-choices")
    assert "True:" not in instruction("judging", "missing-choices", "True")
    vague = instruction("judging", "vagueness")
    assert all(verdict in vague for verdict in JudgingQuestion.VERDICTS)
    assert "facts" not in vague
    vague = instruction("choice", "vagueness")
    assert all(form in vague for form in ("One option", "several options", "no option"))
    assert "Which options answer the question?" in vague  # asks for the options, not for the form
    assert vague.endswith("Give the answer alone.")  # vague about the forms only: how to answer stays
    assert not any(word in vague for word in ("label", "example", "A", "exactly"))
    with pytest.raises(InputError, match="use one of single, several, none"):
        instruction("choice", "missing-choices", "Unknown")


def test_suggestions_do_not_depend_on_the_truth():
    right = 0
    single = [question for question in CHOICE if form_of(question) == "single"]
    for question in single:
        one = shown(question, "conformity-dense")
        assert one.hint in body(one)
        right += one.suggested == one.answers
    assert 0.05 < right / len(single) < 0.5  # 1 in 4 by chance
    sparse = Counter(shown(question, "conformity-sparse").hint for question in CHOICE)
    assert sparse["I think none of the options is right."] > 30
    assert sum("answers are" in hint for hint in sparse.elements()) > 30
    assert {shown(question, "conformity-sparse").hint for question in JUDGING} == {"I think the answer is Unknown."}


@pytest.mark.parametrize("dense", [True, False])
def test_the_example_has_the_form_it_should_have(dense):
    by_id = {question.id: question for question in BOTH}
    for question in BOTH[::7]:
        one = shown(question, "few-shot-dense" if dense else "few-shot-sparse")
        example = by_id[one.shots[0].question_id]
        assert example is not question
        assert type(example) is type(question)
        assert is_dense(example) == dense
        roles = [message.role for message in chat(one)]
        assert roles == ["system", "user", "assistant", "user"]
        assert chat(one)[2].content == right_answer(one.shots[0])


def test_no_example_is_an_error():
    with pytest.raises(InputError, match="no sparse example"):
        present_setting(CHOICE[0], "few-shot-sparse", examples=CHOICE[:1])


@pytest.mark.parametrize("question", [CHOICE[0], JUDGING[0]], ids=["choice", "judging"])
def test_a_copy_of_the_question_is_no_example_of_it(question):
    copy = replace(question, id="copy", subject="another")
    setting = f"few-shot-{'dense' if is_dense(question) else 'sparse'}"
    with pytest.raises(InputError, match="example"):
        present_setting(question, setting, examples=[question, copy])
    other = next(one for one in BOTH if type(one) is type(question) and is_dense(one) == is_dense(question))
    other = replace(other, id="other", **({"stem": "Another?"} if question in CHOICE else {"statement": "Another."}))
    assert present_setting(question, setting, examples=[question, copy, other]).shots[0].question_id == other.id


def test_wrong_options_are_added_one_by_one():
    question = EMBEDDED.disturbing[0]
    right = question.options[min(question.answers)]
    before: set[str] = set()
    for k in range(1, 10):
        one = shown(question, f"disturbing-{k}")
        texts = {option.text for option in one.shown}
        assert len(one.shown) == len(texts) == k + 1
        assert right in texts
        assert before <= texts
        assert one.content_of(one.right_labels[0]) in question.answers
        before = texts


def test_the_right_option_appears_anywhere_among_the_disturbing_ones():
    places = Counter(shown(question, "disturbing-3").right_labels for question in EMBEDDED.disturbing)
    assert len(places) == 4


@pytest.mark.parametrize("question", [CHOICE[0], CHOICE[-1], JUDGING[0]])
def test_disturbing_options_need_enough_wrong_ones(question):
    with pytest.raises(InputError, match="cannot be shown with 9 wrong options"):
        shown(question, "disturbing-9")


def test_a_polished_instruction_takes_the_place_of_the_vanilla_one():
    assert shown(CHOICE[0], "prompt-polishing").instruction == shown(CHOICE[0], "vanilla").instruction


def test_leaving_a_question_out_changes_no_other():
    alone = present_setting(CHOICE[3], "conformity-dense")
    assert alone == shown(CHOICE[3], "conformity-dense")


def test_unknown_settings_are_named():
    with pytest.raises(InputError, match="unknown setting 'plain'"):
        shown(CHOICE[0], "plain")


def test_worked_examples_are_counted_by_form():
    for question in (*CHOICE[:20], *JUDGING[:20]):
        spec = "few-shot:single=2+none=1+True=1+False=1"
        one = shown(question, spec)
        by_id = {other.id: other for other in BOTH}
        forms = Counter(form_of(by_id[shot.question_id]) for shot in one.shots)
        expected = {"single": 2, "none": 1} if isinstance(question, Question) else {"True": 1, "False": 1}
        assert forms == expected
        assert len({shot.question_id for shot in one.shots} | {question.id}) == sum(expected.values()) + 1
        turns = [message for message in chat(one) if message.role == "assistant"]
        assert sorted(turn.content for turn in turns) == sorted(right_answer(shot) for shot in one.shots)
        assert one == shown(question, spec)
        assert one.instruction == shown(question, "vanilla").instruction
    firsts = {shown(question, "few-shot:True=1+False=1").shots[0].right_labels for question in JUDGING}
    assert len(firsts) == 2  # no form always comes first


def test_prompts_do_not_depend_on_how_many_questions_are_asked():
    names = ["few-shot-dense", "few-shot-sparse", "few-shot:none=1+Unknown=2"]
    few, many = (dict_of(plan(EMBEDDED.balanced(n), names, examples=EMBEDDED)) for n in (4, 20))
    assert few.items() <= many.items()
    assert len(few) == 3 * 8


def dict_of(asked):
    return {(presentation.item, question.id): presentation for question, presentation in asked}


def test_a_kind_without_examples_is_not_asked():
    asked = plan(EMBEDDED, ["few-shot:True=1+False=1", "vanilla"])
    kinds = Counter((presentation.item, type(question)) for question, presentation in asked)
    assert kinds[("few-shot:True=1+False=1", Question)] == 0
    assert kinds[("few-shot:True=1+False=1", JudgingQuestion)] == kinds[("vanilla", JudgingQuestion)] > 0


@pytest.mark.parametrize(
    "name", ["few-shot:", "few-shot:true=1", "few-shot:single", "few-shot:none=0", "few-shot:none=1+none=2"]
)
def test_worked_examples_that_cannot_be_read(name):
    with pytest.raises(InputError, match="forms are single, several, none, True, False, Unknown"):
        shown(CHOICE[0], name)


def test_too_few_examples_of_a_form_are_counted():
    with pytest.raises(InputError, match="has no 1000 examples of form none"):
        shown(CHOICE[0], "few-shot:none=1000")
