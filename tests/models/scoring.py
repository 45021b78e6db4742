"""Folders loaded as models, the scores of prompts in their order, and what the prefix tree must cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer

from unslant.models.base import Cost, Encoded
from unslant.models.hf.engine import PlainEngine
from unslant.models.hf.model import TransformersModel
from unslant.prompts import Prompt

TOLERANCE = 1e-4
"""On natural-log probabilities, in float32."""


def load(folder, engine: str = "tree", **options) -> TransformersModel:
    model = AutoModelForCausalLM.from_pretrained(folder)
    return TransformersModel(model, tokenizer_of(folder), folder.name, engine=engine, **options)


tokenizer_of = cache(AutoTokenizer.from_pretrained)


def score(model: TransformersModel, prompts: Sequence[Prompt]) -> list[NDArray[np.float64]]:
    results = {scored.index: scored.logprobs for scored in model.score(prompts)}
    assert sorted(results) == list(range(len(prompts)))
    return [results[i] for i in range(len(prompts))]


def assert_equal(found: Sequence[NDArray[np.float64]], expected: Sequence[NDArray[np.float64]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)


def distinct_nodes(encoded: Sequence[Encoded]) -> int:
    """Nodes of the prefix tree, counted the slow way; the last token of a candidate is scored, not run."""
    nodes = set()
    for item in encoded:
        for ids in item.candidates:
            sequence = np.concatenate([item.context, ids[:-1]]).tobytes()
            nodes.update(sequence[:end] for end in range(4, len(sequence) + 1, 4))
    return len(nodes)


def plainly(model: TransformersModel, prompts: Sequence[Prompt]) -> list[NDArray[np.float64]]:
    """Scores of the model as it is now, without a store and without the tree."""
    found = dict(PlainEngine(model.model, 4096).score(model.encode(prompts), Cost()))
    return [found[i] for i in range(len(prompts))]
