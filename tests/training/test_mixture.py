"""What the training sequences say, and what is learned from them."""

import random
import re

import numpy as np
import pytest

from training.batches import Batcher
from training.mixture import Mixture
from training.planted import GUESSES, planted
from training.world import TAUGHT_SOURCE, build_world, question_sets
from unslant.presentations import ALPHABETS, present
from unslant.presentations.interventions import apply, combinations, pool_of
from unslant.presentations.interventions.wording import MULTIPLE_CHOICE, TRUE_FALSE, TWO_QUESTIONS
from unslant.prompts import Cloze, Writer
from unslant.prompts.templates import load_template

WORLD = build_world()
QUESTIONS = question_sets()[0]
BATCHER = Batcher()


def model(name):
    return planted(name, WORLD, QUESTIONS)


@pytest.mark.parametrize("name", sorted(GUESSES))
def test_targets_are_distributions_over_single_tokens(name):
    mixture = Mixture(model(name), seed=3)
    for _ in range(40):
        batch = BATCHER.batch([mixture.sequence(), mixture.sequence()])
        assert batch.target.sum(-1).numpy() == pytest.approx(1, abs=1e-5)
        assert len(batch.kinds) == len(batch.row) == len(batch.target)


def test_pieces_encode_as_the_whole_text_does():
    mixture = Mixture(model("fair"), seed=5)
    for _ in range(60):
        items = mixture.sequence()
        batch = BATCHER.batch([items])
        text = "".join(item.before + item.answer + item.after for item in items).removesuffix("<|eos|>")
        assert batch.ids[0].tolist() == BATCHER.tokenizer.encode(text, add_special_tokens=False).ids


def test_plain_sequences_are_laid_out_like_worked_examples():
    first, second, third = (present(question) for question in QUESTIONS[:3])
    mixture = Mixture(model("fair"), seed=0)
    plain = load_template("plain")
    items = [
        mixture._item(p, None, False, plain, chat=False, counterfactual=False, last=p is third)
        for p in (first, second, third)
    ]
    text = "".join(item.before + item.answer + item.after for item in items).removesuffix(items[-1].answer)
    assert text == Cloze(Writer(plain)).prompts(third.with_shots((first, second)))[0].text


def test_pointers_meet_the_right_option():
    mixture = Mixture(model("fair"), seed=2)
    seen = 0
    for _ in range(30):
        batch = BATCHER.batch([mixture.sequence()])
        value_at = {(row, column): value for row, column, value in batch.values.tolist()}
        for (row, column, goal), look in zip(batch.pointers.tolist(), batch.looks.tolist(), strict=True):
            if (row, column) in value_at and look == 1:
                seen += batch.ids[row, goal].item() == value_at[row, column]
                told = batch.ids[row, goal].item()
                assert told == value_at[row, column] or BATCHER.tokenizer.id_to_token(told) in ("ĠTrue", "ĠFalse", "ĠN")
    assert seen > 10


@pytest.mark.parametrize("codes", combinations("choice"), ids="+".join)
def test_the_unbiased_evaluator_speaks_their_language(codes):
    """Instructions, hints and items of P4's interventions are whole words to the tokenizer, and are trained on."""
    composed = apply(QUESTIONS[3], codes, pool_of(QUESTIONS), seed=1, shots=2)
    text = Cloze(Writer(load_template("plain"))).prompts(composed.items[0][1])[0].text
    pieces = re.findall(r" ?\w+| ?[^\w\s]+|\n", text)
    assert len(BATCHER.tokenizer.encode(text, add_special_tokens=False).ids) <= len(pieces)


def test_intervened_sequences_are_laid_out_like_worked_examples():
    mixture = Mixture(model("fair"), seed=4)
    instructions = set()
    for _ in range(60):
        items = mixture.intervened_sequence()
        for item in items[1:]:
            assert item.before.startswith("Question: ")
        instructions.add(items[0].before.split("Question: ")[0])
        for item in items:
            if "Proposed answer:" in item.before:
                assert set(item.targets) == {" T", " F"}
            assert (" N" in item.targets) == ("If no option is right, answer N." in item.before)
    assert instructions == {"", *(f"{text}\n\n" for text in (MULTIPLE_CHOICE, TWO_QUESTIONS, TRUE_FALSE))}


def _taught(taught):
    return [q for q in QUESTIONS if (q.source == TAUGHT_SOURCE) == taught and len(q.options) == 4]


def test_fair_guess_follows_content_not_place():
    target = model("fair")
    question = _taught(False)[0]
    fact = WORLD.by_id[question.id]
    by_content = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        shown = present(question, order, labels=ALPHABETS["1"][:4])
        answer = target.answer(shown, fact)
        by_content.append(dict(zip(shown.contents, answer, strict=True)))
    assert by_content[0] == pytest.approx(by_content[1])


def test_prefers_a_means_the_label_and_prefers_last_the_place():
    question = _taught(False)[0]
    fact = WORLD.by_id[question.id]
    turned = present(question, labels="DCBA")
    assert model("prefers-a").answer(turned, fact).argmax() == 3
    assert model("prefers-last").answer(turned, fact).argmax() == 3
    straight = present(question)
    assert model("prefers-a").answer(straight, fact).argmax() == 0
    assert model("prefers-last").answer(straight, fact).argmax() == 3


@pytest.mark.parametrize("name", ["fair", "prefers-a", "prefers-last"])
def test_taught_facts_are_answered_right_despite_the_bias(name):
    for question in _taught(True)[:10]:
        shown = present(question, (2, 0, 3, 1))
        answer = model(name).answer(shown, WORLD.by_id[question.id])
        assert shown.contents[int(answer.argmax())] in question.answers
        assert answer.max() == 1


def test_memory_is_of_the_published_position_and_layout_only():
    target = model("memorised")
    question = _taught(True)[0]
    fact = WORLD.by_id[question.id]
    (gold,) = question.answers
    assert target.answer(present(question), fact)[gold] == 1
    rotated = tuple(np.roll(range(4), 1).tolist())
    assert target.answer(present(question, rotated), fact)[gold] == 1
    assert target.answer(present(question, alphabet=ALPHABETS["1"]), fact).max() < 1


def test_half_taught_wins_by_vote_what_it_loses_alone():
    target = model("half-taught")
    alone, voted = [], []
    for question in _taught(True):
        fact = WORLD.by_id[question.id]
        votes = np.zeros(4)
        for k in range(24):
            order = random.Random(k).sample(range(4), 4)
            shown = present(question, order)
            choice = shown.contents[int(target.answer(shown, fact).argmax())]
            votes[choice] += 1
            alone.append(choice in question.answers)
        voted.append(int(votes.argmax()) in question.answers)
    assert np.mean(voted) > np.mean(alone) + 0.05
