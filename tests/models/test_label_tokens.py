"""Labels whose tokens begin those of another label are never compared as if they could win."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

import unslant
from tests.models.samples import QUESTIONS
from tests.models.scoring import load, score
from tests.models.zoo import ZooFolder
from unslant.errors import ModelError
from unslant.models.hf.tokenization import Encoder
from unslant.presentations import parse_labels, present
from unslant.prompts import Cloze, Prompt, Writer, load_template

TEN = QUESTIONS[-1]
"""A question of ten options."""


@cache
def encoder_of(folder: Path) -> Encoder:
    return Encoder(AutoTokenizer.from_pretrained(folder))


def prompts(labels: str, *, template: str = "plain", chat: bool = False, to_end: bool = False) -> list[Prompt]:
    elicitation = Cloze(Writer(load_template(template), chat, to_end))
    return elicitation.prompts(present(TEN, alphabet=parse_labels(labels)))


@pytest.mark.thorough
def test_ten_numbers_are_refused_where_digits_are_tokens_before_anything_is_scored(zoo_model: ZooFolder) -> None:
    model = load(zoo_model("llama"))
    with pytest.raises(ModelError, match=r"labels '1' and '10'.*can never be the more probable one; use labels=.A."):
        unslant.audit(model, [*QUESTIONS[:-1], TEN], labels="1")
    assert model.cost.forwards == 0
    few = [question for question in QUESTIONS if len(question.options) < 10]
    assert unslant.audit(model, few, labels="1", orders="given").responses


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "works"), [("llama", "A"), ("gpt-neox", "A"), ("phi3", "A")])
@pytest.mark.parametrize(
    "template", ["plain", *(pytest.param(n, marks=pytest.mark.slow) for n in ("arc", "qasc", "teleqna"))]
)
@pytest.mark.parametrize("labels", ["1", "I", "i", "x,xy", "A", "a"])
def test_a_set_is_distinguishable_or_refused_with_one_that_is(
    zoo_model: ZooFolder, name, works, template, labels
) -> None:
    encoder = encoder_of(zoo_model(name))
    if labels == "x,xy":
        labels = ",".join("x" * (i + 1) for i in range(10))
    asked = prompts(labels, template=template)
    (item,) = encoder.encode([replace(asked[0], to_end=True)])
    try:
        (item,) = encoder.encode(asked)
    except ModelError as error:
        used = str(error).partition('use labels="')[2][0]
        (item,) = encoder.encode(prompts(used, template=template))
        assert labels not in ("A", "a")
    tokens = [ids.tolist() for ids in item.candidates]
    assert not any(one == other[: len(one)] for one in tokens for other in tokens if one is not other)


def test_a_label_begun_by_another_can_win_when_scored_to_its_end(zoo_model: ZooFolder) -> None:
    model = load(zoo_model("llama"))
    asked = [prompts("1", to_end=True)[0]]
    ids = torch.tensor([model.tokenizer(asked[0].text + " 10\n").input_ids])
    with torch.no_grad():  # a model that says 0 behind 1, and ends the line behind 10 only
        one, zero = (model.model.model(ids).last_hidden_state[0, at] for at in (-3, -2))
        model.model.lm_head.weight[ids[0, -2]] = one
        model.model.lm_head.weight[ids[0, -1]] = zero - one
    found = score(model, asked)
    assert found[0][9] > found[0][0]
    with torch.inference_mode():
        logprobs = torch.log_softmax(model.model(ids).logits[0], -1)
    context = len(model.encode(asked)[0].context)
    expected = sum(float(logprobs[at - 1, ids[0, at]]) for at in range(context, ids.shape[1]))
    assert found[0][9] == pytest.approx(expected, abs=1e-4)


@pytest.mark.thorough
def test_in_a_chat_the_end_is_that_of_the_turn(zoo_model: ZooFolder) -> None:
    encoder = encoder_of(zoo_model("llama-chat"))
    (item,) = encoder.encode(prompts("1", chat=True, to_end=True))
    assert [ids[-1] for ids in item.candidates] == [encoder.tokenizer.eos_token_id] * 10


def test_labels_that_a_tokenizer_does_not_know_are_refused() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {word: i for i, word in enumerate(["<unk>", *"ABCDEFGHIJ", ":"])}
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    encoder = Encoder(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"))
    with pytest.raises(ModelError, match=r"use labels=.A."):
        encoder.encode([Prompt("w :", (" W", " X"))])
