"""A small untrained model and questions for it; a rule-based one; neither needs a file or the network."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.models.conftest import tokenizer_cache, zoo_model  # noqa: F401  # fixtures
from tests.models.zoo import ZooFolder
from unslant.models.hf.model import TransformersModel
from unslant.questions import Question


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of 32 hidden units, tied embeddings, with sharp attention, and the reference tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from training.tokenizer import train_tokenizer, wrap

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = wrap(train_tokenizer())
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        config = LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, tie_word_embeddings=True,
            initializer_range=0.3, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        )  # fmt: skip
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def tiny(tiny_folder: Path) -> TransformersModel:
    return open_model(tiny_folder)


@pytest.fixture(scope="session")
def zoo_loaded(zoo_model: ZooFolder) -> Callable[[str], TransformersModel]:  # noqa: F811
    """A model of the zoo by name, with a small vocabulary, loaded once a session; tests give it back as it was."""
    return cache(lambda name: open_model(zoo_model(name, small=True)))


def open_model(folder: Path) -> TransformersModel:
    """A model folder, loaded."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    return TransformersModel(model, AutoTokenizer.from_pretrained(folder), folder.name)


def make_questions(counts: Sequence[int], seed: int = 0) -> list[Question]:
    """Questions of so many options each, with random right answers."""
    rng = random.Random(seed)
    values = "red green blue white black oak ash elm pine birch cat dog goat horse".split()
    questions = []
    for i, n in enumerate(counts):
        options, gold = tuple(rng.sample(values, n)), rng.randrange(n)
        questions.append(Question(f"q{i:03d}", f"Which option is it, number {i}?", options, frozenset({gold})))
    return questions
