from __future__ import annotations

import random
from collections import Counter

import pytest

from training.words import (
    FIRST,
    KINDS,
    WHOLE,
    choice_question,
    conversation,
    encode,
    judging_question,
    planted_reply,
    words_tokenizer,
)
from unslant.questions.question import JudgingQuestion
from unslant.studies.instruction_boundary.instruction_settings import form_of, present_setting

RNG = random.Random


@pytest.mark.parametrize("form", ["single", "several", "none"])
@pytest.mark.parametrize("scope", [FIRST, WHOLE])
def test_questions_have_the_form_asked_for(form, scope):
    for seed in range(50):
        question = choice_question(form, RNG(seed), 4, scope=scope)
        assert form_of(question) == form
        assert len(set(question.options)) == 4


@pytest.mark.parametrize("verdict", JudgingQuestion.VERDICTS)
def test_statements_have_their_verdict(verdict):
    assert all(judging_question(verdict, RNG(seed)).verdict == verdict for seed in range(20))


def test_no_word_is_of_two_kinds():
    counts = Counter(word for words in KINDS.values() for word in words)
    assert set(counts.values()) == {1}
    assert all(len(words) == 10 for words in KINDS.values())


def test_what_is_planted():
    several = choice_question("several", RNG(0), 4, "q")
    none = choice_question("none", RNG(0), 4, "q")
    unknown = judging_question("Unknown", RNG(0), "q")

    def reply(question, name):
        return planted_reply(present_setting(question, name))

    first, second = (("A", "B", "C", "D")[i] for i in sorted(several.answers))
    assert reply(several, "vanilla") == f"{first}, {second}"
    assert reply(several, "vagueness") == first
    assert reply(none, "vanilla") == "none"
    assert reply(none, "missing-choices") == "A"
    assert reply(unknown, "missing-choices") == "False"
    assert reply(unknown, "conformity-dense") == "Unknown"
    true = judging_question("True", RNG(0), "q")
    assert reply(true, "conformity-sparse") == "Unknown"
    assert reply(true, "mitigation") == "True"


def test_training_text_is_in_the_words_of_the_study():
    tokenizer = words_tokenizer()
    rng = RNG(0)
    for _ in range(30):
        system, turns = conversation(rng)
        ids, learned = encode(tokenizer, system, turns)
        assert tokenizer.decode(ids, skip_special_tokens=False).startswith("<|system|>" + system)
        said = tokenizer.decode([i for i, learn in zip(ids, learned, strict=True) if learn], skip_special_tokens=False)
        assert said == "".join(reply + "<|eos|>" for _, reply in turns)
        assert len(ids) < 1024


def test_every_word_of_the_questions_is_one_token():
    tokenizer = words_tokenizer()
    for words in KINDS.values():
        assert all(len(tokenizer.encode(f" {word}").ids) == 1 for word in words)
