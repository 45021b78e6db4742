"""Single-order numbers equal those of transformers' decision pipeline, which is prior art for the one-pass reading of
option probabilities from label tokens (it shows one order, and corrects for none)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.models.samples import QUESTIONS
from tests.models.scoring import load, score
from unslant.presentations import orders_for, present
from unslant.prompts import Cloze, Message, Prompt, Writer
from unslant.prompts.templates import load_template

decision = pytest.importorskip("transformers.decision", reason="transformers before 5.23 has no decision pipeline")


def ask_pipeline(folder, config, state: str, question, order) -> np.ndarray:
    from transformers import pipeline

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    decide = pipeline("decision", model=model, tokenizer=tokenizer, decision_config=config)
    options = {question.options[i]: None for i in order}
    asked = {"type": "choice", "instructions": question.stem, "criteria": options}
    answer = decide({"state": state, "questions": {"q": asked}})["q"]
    return np.array([answer["probabilities"][option] for option in options])


@pytest.mark.parametrize("question", QUESTIONS[2:4], ids=lambda question: question.id)
def test_equal_on_our_prompt(zoo_model, question):
    """The pipeline is given our text as its whole prompt, and our continuations as its labels."""
    folder = zoo_model("gpt2", small=True)
    order = orders_for(question, "24")[7]
    (prompt,) = Cloze(Writer(load_template("plain"))).prompts(present(question, order))
    config = decision.DecisionConfig(chat_template="{{ state }}", labels={"choice": list(prompt.continuations)})
    theirs = ask_pipeline(folder, config, prompt.text, question, order)
    (ours,) = score(load(folder), [prompt])
    np.testing.assert_allclose(softmax(ours), theirs, rtol=0, atol=1e-5)
    assert theirs.max() - theirs.min() > 0.01


def test_equal_on_its_own_chat_prompt(zoo_model):
    folder, question = zoo_model("llama-chat", small=True), QUESTIONS[2]
    order = (2, 0, 3, 1)
    theirs = ask_pipeline(folder, decision.DecisionConfig(), "Some state.", question, order)
    lines = [f"{label}. {question.options[i]}" for label, i in zip("ABCD", order, strict=True)]
    content = "\n".join(
        [
            f"Some state.\n\n{question.stem}",
            *lines,
            "Answer with the letter of the option that fits best (A to D) only.",
        ]
    )
    (ours,) = score(load(folder), [Prompt("", ("A", "B", "C", "D"), (Message("user", content),))])
    np.testing.assert_allclose(softmax(ours), theirs, rtol=0, atol=1e-5)
    assert theirs.max() - theirs.min() > 0.01
