from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.presentations.strategies import questions
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, present
from unslant.prompts import Cloze, Counterfactual, Message, Prompt, Writer, load_template
from unslant.questions.question import Question

PLAIN = load_template("plain")
Q = Question("q", "Which gas?", ("oxygen", "nitrogen"), frozenset({1}))
SHOT = Question("shot", "Which animal?", ("dog", "oak"), frozenset({0}))
ASKED = "Question: Which gas?\nA. oxygen\nB. nitrogen\n"
EXAMPLE = "Question: Which animal?\nA. dog\nB. oak\n"


def test_cloze_in_plain_text():
    (prompt,) = Cloze(Writer(PLAIN)).prompts(present(Q).with_shots([present(SHOT)]))
    assert prompt == Prompt(f"{EXAMPLE}Answer: A\n\n{ASKED}Answer:", (" A", " B"), group="q")


def test_cloze_in_a_chat():
    template = load_template("medmcqa")
    (prompt,) = Cloze(Writer(template, chat=True)).prompts(present(Q).with_shots([present(SHOT)]))
    assert [message.role for message in prompt.messages] == ["system", "user", "assistant", "user"]
    assert prompt.messages[0].content == template.render_instruction(present(Q))
    assert prompt.messages[2] == Message("assistant", "A")
    assert prompt.messages[3].content.endswith("A. oxygen\nB. nitrogen\nOutput: option")
    assert (prompt.text, prompt.continuations) == ("", ("A", "B"))


def test_no_system_message_without_an_instruction():
    (prompt,) = Cloze(Writer(PLAIN, chat=True)).prompts(present(Q))
    assert prompt.messages == (Message("user", f"{ASKED}Answer:"),)


def test_counterfactual_in_plain_text():
    prompts = Counterfactual(Writer(PLAIN), canary="right one").prompts(present(Q))
    cue = "Of the answer choices above, answer choice {} is the"
    assert [prompt.text for prompt in prompts] == [ASKED + cue.format(label) for label in "AB"]
    assert {prompt.continuations for prompt in prompts} == {(" right one",)}


def test_counterfactual_in_a_chat_lets_the_assistant_name_the_label():
    prompts = Counterfactual(Writer(load_template("base-rate"), chat=True)).prompts(present(Q))
    assert [prompt.text for prompt in prompts] == [f"answer choice {label} is the" for label in "AB"]
    for prompt in prompts:
        assert prompt.continuations == (" best",)
        assert prompt.messages == (Message("user", "Which gas? (A) oxygen (B) nitrogen. Of the answer choices above,"),)


@pytest.mark.parametrize("canary", ["", "  "])
def test_an_empty_canary_is_refused(canary):
    with pytest.raises(InputError, match="the canary is empty"):
        Counterfactual(Writer(PLAIN), canary=canary)


@given(st.data(), questions(answers=1), st.sampled_from(sorted(ALPHABETS)))
def test_scores_come_back_under_the_label_they_were_asked_for(data, q, alphabet):
    """A model that always knows the right content is read as choosing it, in every order and elicitation."""
    order = data.draw(st.permutations(range(len(q.options))))
    shown = present(q, order, ALPHABETS[alphabet])
    (right,) = shown.right_labels
    cloze, counterfactual = Cloze(Writer(PLAIN)), Counterfactual(Writer(PLAIN))
    (prompt,) = cloze.prompts(shown)
    scores = [np.array([0.0 if text == f" {right}" else -9.0 for text in prompt.continuations])]
    counter_scores = [
        np.array([0.0 if prompt.text.endswith(f"answer choice {right} is the") else -9.0])
        for prompt in counterfactual.prompts(shown)
    ]
    for read in (cloze.read(shown, scores), counterfactual.read(shown, counter_scores)):
        assert read.shape == (len(shown.labels),)
        assert shown.contents[int(read.argmax())] in q.answers


@given(questions())
def test_prompts_of_one_question_share_its_beginning_and_group(q):
    prompts = Counterfactual(Writer(PLAIN)).prompts(present(q))
    page = PLAIN.render_question(present(q))
    assert all(prompt.text.startswith(page) and prompt.group == q.id for prompt in prompts)


def test_an_example_without_a_right_answer_is_refused():
    shot = present(Question("bad", "Which?", ("a", "b"), frozenset()))
    with pytest.raises(InputError, match="question 'bad' cannot be a worked example: no shown option is right"):
        Cloze(Writer(PLAIN)).prompts(present(Q).with_shots([shot]))


def test_examples_close_what_the_cue_opens():
    (prompt,) = Cloze(Writer(load_template("base-rate"))).prompts(present(Q).with_shots([present(SHOT)]))
    assert "the best answer choice is (A).\n\nWhich gas?" in prompt.text


def test_templates_can_be_compared_and_hashed():
    assert hash(load_template("plain")) == hash(PLAIN)
    assert load_template("arc") != PLAIN
