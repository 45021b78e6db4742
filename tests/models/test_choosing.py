"""A local model that is asked again can say nothing but a label."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unslant.models.chat import LocalChat, StoredChat
from unslant.models.hf.model import TransformersModel
from unslant.models.open import open_model
from unslant.prompts import Message, Prompt
from unslant.store import Store

LABELS = ("A", "B", "N", "NONE")


@pytest.fixture
def model() -> TransformersModel:
    opened = open_model("words")
    assert isinstance(opened, TransformersModel)
    return opened


def conversations(*replies: str) -> list[Prompt]:
    return [
        Prompt("", LABELS, (Message("user", "Is tea a drink?"), Message("assistant", one), Message("user", "Which?")))
        for one in replies
    ]


def test_the_most_probable_label_is_the_reply(model: TransformersModel, tmp_path: Path) -> None:
    asked = conversations("A", "I like tea", "NONE of these", "B or A")
    chat = LocalChat(model)
    replies = {reply.index: reply.text for reply in chat.choosing().generate(asked)}
    for index, prompt in enumerate(asked):
        (scored,) = model.score([Prompt("", LABELS, prompt.messages, to_end=True)])
        assert scored.logprobs is not None
        assert replies[index] == LABELS[int(np.argmax(scored.logprobs))]
    assert chat.cost.requests == len(asked)  # counted with the model's own
    with Store(tmp_path / "s.sqlite3") as store:
        kept = StoredChat(LocalChat(model), store)
        free = [reply.text for reply in kept.generate(asked)]
        first = sorted(kept.choosing().generate(asked), key=lambda reply: reply.index)
        again = sorted(kept.choosing().generate(asked), key=lambda reply: reply.index)
        assert [one.text for one in first] == [one.text for one in again] == [replies[i] for i in range(len(asked))]
        assert (free == [one.text for one in first], all(one.recalled for one in again)) == (False, True)


def test_a_conversation_that_is_too_long_is_a_failed_reply(model: TransformersModel) -> None:
    long = "tea " * model.model.config.max_position_embeddings
    first, second = sorted(LocalChat(model).choosing().generate(conversations("A", long)), key=lambda one: one.index)
    assert first.text in LABELS
    assert (second.text, "leaves no room" in second.error) == (None, True)


def test_at_every_length_a_conversation_is_answered_or_fails(model: TransformersModel) -> None:
    """Near the limit, where the labels and the end of the turn decide what fits."""
    limit = model.model.config.max_position_embeddings
    empty = len(model.encoder.ids(conversations("tea")[0]))
    asked = conversations(*("tea " * (limit - empty + more) for more in range(-12, 4)))
    lengths = [item.longest for item in model.encoder.encode([replace(prompt, to_end=True) for prompt in asked])]
    replies = sorted(LocalChat(model).choosing().generate(asked), key=lambda reply: reply.index)
    assert [reply.text in LABELS for reply in replies] == [length <= limit for length in lengths]
    assert len({length <= limit for length in lengths}) == 2


def test_a_model_without_a_chat_template_takes_no_turns(model: TransformersModel) -> None:
    assert LocalChat(model).info.takes_turns
    model.tokenizer.chat_template = None
    assert not LocalChat(model).info.takes_turns
